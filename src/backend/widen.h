/* SPDX-License-Identifier: Apache-2.0 */
/* widen.h -- operations on f16 and bf16 by a device that has them in f32 alone. */
#ifndef HL_WIDEN_H
#define HL_WIDEN_H

#include "backend/backend.h"

/* Of every kind; its candidates are marked `widened`. */
extern const halo_op_class hl_widened;

#endif
