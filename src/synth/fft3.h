/* SPDX-License-Identifier: Apache-2.0 */
/* fft3.h -- a real transform of any D x H x W, for analysis. The simulation's own is in mesh.h. */
#ifndef HL_SYNTH_FFT3_H
#define HL_SYNTH_FFT3_H

#include "base/base.h"

typedef struct hl_fft3 hl_fft3;

halo_status hl_fft3_create(halo_context *ctx, const int64_t dim[3], hl_fft3 **out);
void hl_fft3_destroy(hl_fft3 *fft);

/* [D, H, W], to be filled before each run. */
double *hl_fft3_input(hl_fft3 *fft);

/* [D, H, W/2 + 1] modes sum_x f(x) exp(-i k x), valid until the next run; the input is lost. */
const double _Complex *hl_fft3_run(hl_fft3 *fft);

#endif
