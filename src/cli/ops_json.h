/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HL_OPS_JSON_H
#define HL_OPS_JSON_H

#include "perf/bench.h"

/* The member "ops" of explain (timed NULL) and bench. */
void hl_ops_json(const hl_program *program, const hl_bench *timed, hl_json *j);

#endif
