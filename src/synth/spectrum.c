/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spectrum.c -- measured power in spherical shells.
 *
 *   delta_k = (1/cells) sum_x delta(x) exp(-i k x),   P(k)/V = <(|delta_k|^2 - noise C(k)) / W(k)^2>
 *
 * over the modes of a shell; W is the transform of the assignment cloud, C what the cloud's aliases leave of
 * white noise (Jing, "Correcting for the alias effect when measuring the power spectrum using a fast Fourier
 * transform", 2005). C / W^2 is not 1: dividing first and subtracting white noise afterwards is wrong near
 * the Nyquist wave number.
 */
#include "synth/spectrum.h"

#include "synth/fft3.h"

struct hl_spectrum {
    int64_t dim[3], longest;
    int shells, scheme;
    double *window[3], *noise[3]; /* [dim/2 + 1] squared window and its aliased sum, per axis */
    hl_fft3 *fft;
};

static halo_status tabulate(halo_context *ctx, hl_spectrum *s)
{
    for (int d = 0; d < 3; d++) {
        size_t n = (size_t)(s->dim[d] / 2 + 1);
        HL_TRY(hl_calloc(ctx, n, sizeof(double), "a window", &s->window[d]));
        HL_TRY(hl_calloc(ctx, n, sizeof(double), "a window", &s->noise[d]));
        for (size_t k = 0; k < n; k++) {
            double w = s->scheme ? hl_assign_window((hl_scheme)s->scheme, (int64_t)k, s->dim[d]) : 1.0;
            s->window[d][k] = w * w;
            s->noise[d][k] = s->scheme ? hl_assign_noise((hl_scheme)s->scheme, (int64_t)k, s->dim[d]) : 1.0;
        }
    }
    return HALO_OK;
}

halo_status hl_spectrum_create(halo_context *ctx, const int64_t dim[3], int shells, int scheme,
                               hl_spectrum **out)
{
    hl_spectrum *s;
    int64_t shortest = 0;

    HL_TRY(hl_calloc(ctx, 1, sizeof(*s), "a spectrum", &s));
    for (int d = 0; d < 3; d++) {
        s->dim[d] = dim[d];
        s->longest = hl_max64(s->longest, dim[d]);
        if (dim[d] > 1 && (shortest == 0 || dim[d] < shortest)) shortest = dim[d];
    }
    s->scheme = scheme;
    s->shells = shells > 0 ? shells : (int)hl_max64(1, shortest / 2);
    halo_status st = tabulate(ctx, s);
    if (st == HALO_OK) st = hl_fft3_create(ctx, dim, &s->fft);
    if (st == HALO_OK)
        *out = s;
    else
        hl_spectrum_destroy(s);
    return st;
}

void hl_spectrum_destroy(hl_spectrum *s)
{
    if (!s) return;
    hl_fft3_destroy(s->fft);
    for (int d = 0; d < 3; d++) {
        free(s->window[d]);
        free(s->noise[d]);
    }
    free(s);
}

int hl_spectrum_shells(const hl_spectrum *s)
{
    return s->shells;
}

/* delta into the transform's input. */
static void contrast(const hl_spectrum *s, const float *x, int64_t stride, double *delta)
{
    int64_t cells = s->dim[0] * s->dim[1] * s->dim[2];
    double sum = 0.0, least = (double)x[0];

    for (int64_t c = 0; c < cells; c++) {
        sum += (double)x[c * stride];
        least = fmin(least, (double)x[c * stride]);
    }
    double mean = sum / (double)cells, scale = least >= 0.0 && mean > 0.0 ? 1.0 / mean : 1.0;
    for (int64_t c = 0; c < cells; c++) delta[c] = ((double)x[c * stride] - mean) * scale;
}

/* Length of the wave vector (i, j, k) in units of the longest side's fundamental. */
static double length_of(const hl_spectrum *s, int64_t i, int64_t j, int64_t k)
{
    double l = (double)s->longest, x = (double)i * l / (double)s->dim[0],
           y = (double)j * l / (double)s->dim[1];
    double z = (double)k * l / (double)s->dim[2];
    return sqrt(x * x + y * y + z * z);
}

/* One row of modes: each of 0 < k < W/2 stands for its conjugate as well. */
static void add_row(const hl_spectrum *s, int64_t i, int64_t j, const double _Complex *modes, double noise,
                    hl_shell *shell)
{
    for (int64_t k = 0; k <= s->dim[2] / 2; k++) {
        const double *part = (const double *)&modes[k];
        double length = length_of(s, i, j, k), weight = k == 0 || 2 * k == s->dim[2] ? 0.5 : 1.0;
        int m = (int)(length + 0.5) - 1;
        if (m < 0 || m >= s->shells) continue;
        double square = part[0] * part[0] + part[1] * part[1],
               window = s->window[0][i] * s->window[1][j] * s->window[2][k];
        shell[m].k += weight * length;
        shell[m].power +=
            weight * (square - noise * s->noise[0][i] * s->noise[1][j] * s->noise[2][k]) / window;
        shell[m].modes += weight;
    }
}

void hl_spectrum_of(hl_spectrum *s, const float *x, int64_t stride, double noise, hl_shell *shell)
{
    double cells = (double)(s->dim[0] * s->dim[1] * s->dim[2]);
    int64_t row = s->dim[2] / 2 + 1;
    const double _Complex *modes;

    contrast(s, x, stride, hl_fft3_input(s->fft));
    modes = hl_fft3_run(s->fft);
    memset(shell, 0, (size_t)s->shells * sizeof(*shell));
    for (int64_t i = 0; i < s->dim[0]; i++)
        for (int64_t j = 0; j < s->dim[1]; j++)
            add_row(s, hl_min64(i, s->dim[0] - i), hl_min64(j, s->dim[1] - j),
                    modes + (i * s->dim[1] + j) * row, noise * cells * cells, shell);
    for (int m = 0; m < s->shells; m++) {
        if (shell[m].modes == 0.0) continue;
        shell[m].k /= shell[m].modes;
        shell[m].power /= shell[m].modes * cells * cells;
    }
}
