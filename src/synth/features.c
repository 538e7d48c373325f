/* SPDX-License-Identifier: Apache-2.0 */
/*
 * features.c -- what two- and one-point statistics know of a volume.
 *
 * With delta = x / mean - 1: log mean, log var(delta), <delta^3> / var^2 (the hierarchical skewness), and log
 * P(k) in shells of one fundamental wave number up to k = 0.8 G, beyond the Nyquist wave number G/2 along an
 * axis into the corners of the cube. Neither the window nor shot noise is taken out: both are the same for
 * all samples of a set, and a regression does not care.
 */
#include "synth/features.h"

enum { MOMENTS = 3 };

struct hl_features {
    int64_t channels, cells;
    hl_spectrum *spectrum;
    hl_shell *shell;
};

halo_status hl_features_create(halo_context *ctx, const int64_t ext[4], hl_features **out)
{
    hl_features *f;
    int shells = (int)(0.8 * (double)hl_max64(ext[1], hl_max64(ext[2], ext[3])));
    halo_status st;

    HL_TRY(hl_calloc(ctx, 1, sizeof(*f), "features", &f));
    f->channels = ext[0];
    f->cells = ext[1] * ext[2] * ext[3];
    HL_GOTO(st, hl_spectrum_create(ctx, ext + 1, shells > 0 ? shells : 1, 0, &f->spectrum), destroy);
    HL_GOTO(st,
            hl_calloc(ctx, (size_t)hl_spectrum_shells(f->spectrum), sizeof(*f->shell), "features", &f->shell),
            destroy);
    *out = f;
    return HALO_OK;
destroy:
    hl_features_destroy(f);
    return st;
}

void hl_features_destroy(hl_features *f)
{
    if (!f) return;
    hl_spectrum_destroy(f->spectrum);
    free(f->shell);
    free(f);
}

int hl_features_count(const hl_features *f)
{
    return (int)f->channels * (MOMENTS + hl_spectrum_shells(f->spectrum));
}

static double safe_log(double x)
{
    return log(fmax(x, 1e-30));
}

static void moments(const float *x, int64_t cells, double *out)
{
    double sum = 0.0, square = 0.0, cube = 0.0;

    for (int64_t c = 0; c < cells; c++) sum += (double)x[c];
    double mean = sum / (double)cells, scale = mean > 0.0 ? 1.0 / mean : 1.0;
    for (int64_t c = 0; c < cells; c++) {
        double d = ((double)x[c] - mean) * scale;
        square += d * d;
        cube += d * d * d;
    }
    double variance = square / (double)cells;
    out[0] = mean > 0.0 ? safe_log(mean) : mean;
    out[1] = safe_log(variance);
    out[2] = variance > 0.0 ? cube / (double)cells / (variance * variance) : 0.0;
}

void hl_features_of(hl_features *f, const float *x, double *out)
{
    int shells = hl_spectrum_shells(f->spectrum);

    for (int64_t c = 0; c < f->channels; c++, out += MOMENTS + shells) {
        moments(x + c * f->cells, f->cells, out);
        hl_spectrum_of(f->spectrum, x + c * f->cells, 1, 0.0, f->shell);
        for (int m = 0; m < shells; m++)
            out[MOMENTS + m] = f->shell[m].modes > 0.0 ? safe_log(f->shell[m].power) : 0.0;
    }
}
