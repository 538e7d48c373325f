/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HL_NONFINITE_H
#define HL_NONFINITE_H

#include "net/ir.h"

/* Runs the steps of a phase (run.c). */
halo_status hl_run_phase(hl_program *p, hl_phase phase);
halo_status hl_run_phases(hl_program *p, hl_phase first, hl_phase last); /* which follow each other */

/* Reports where the last step's first value that is not finite came from; returns HALO_ERR_NONFINITE.
 * collective: all ranks look, and the first that finds it speaks. */
halo_status hl_report_nonfinite(hl_program *p, bool collective);

#endif
