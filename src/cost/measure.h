/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HL_MEASURE_H
#define HL_MEASURE_H

#include "backend/backend.h"

/* Seconds of the best of a few runs of one candidate, after one to warm up, on buffers of its own. */
halo_status hl_measure(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                       double *seconds);

#endif
