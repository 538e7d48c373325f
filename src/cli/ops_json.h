/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HL_OPS_JSON_H
#define HL_OPS_JSON_H

#include "net/program.h"

/* The member "ops" of explain and bench. */
void hl_ops_json(const hl_program *program, bool timed, hl_json *j);

#endif
