/* SPDX-License-Identifier: Apache-2.0 */
/* plot.h -- a picture of a universe: a slice, and the spectrum beside linear theory. */
#ifndef HL_SYNTH_PLOT_H
#define HL_SYNTH_PLOT_H

#include "base/base.h"

typedef struct hl_plot_point {
    double k, power, linear; /* h/Mpc, (Mpc/h)^3 */
} hl_plot_point;

typedef struct hl_plot {
    const float *full; /* [n0, n1, n2, channels] */
    int64_t ext[4];
    int64_t channel;
    double box, redshift;
    int points;
    const hl_plot_point *point;
} hl_plot;

halo_status hl_plot_write(halo_context *ctx, const char *path, const hl_plot *plot);

#endif
