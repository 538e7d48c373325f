/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c -- real-to-complex transforms of a cubic mesh in place, by FFTW3 in double precision.
 *
 * FFTW_ESTIMATE: plans must not depend on timing, so that equal seeds give equal universes. FFTW's planner is
 * not thread-safe and its state is the process's, so planning is serialised here; execution is not.
 *
 * On several ranks: transform (y, z) in this rank's planes, exchange so that each rank has all planes of its
 * own ky, transform along x. FFTW's own MPI transform does the same; done here it needs no second FFTW
 * library, runs over the project's transport, and does for one rank what it does for many.
 */
#include "synth/mesh.h"

#include <fftw3.h>

#include "base/clock.h"
#include "synth/fft3.h"

enum { PLANES_FORWARD = 0, ALONG_FORWARD, ALONG_BACKWARD, PLANES_BACKWARD, PLANS };

/* Two dimensions in each plane, then the third across planes: the same steps for one rank and for many. */
static void make_plans(hl_mesh *m, double *field)
{
    const int n = (int)m->n, half = n / 2 + 1, across = (int)m->kplanes * half;
    const int plane[2] = {n, n}, real[2] = {n, (int)m->pitch}, complex[2] = {n, half};
    fftw_complex *modes = (fftw_complex *)field;

#pragma omp critical(hl_fftw_planner)
    {
        if (fftw_init_threads()) fftw_plan_with_nthreads(m->threads);
        m->plan[PLANES_FORWARD] =
            fftw_plan_many_dft_r2c(2, plane, (int)m->planes, field, real, 1, n * (int)m->pitch, modes,
                                   complex, 1, n * half, FFTW_ESTIMATE);
        m->plan[PLANES_BACKWARD] =
            fftw_plan_many_dft_c2r(2, plane, (int)m->planes, modes, complex, 1, n * half, field, real, 1,
                                   n * (int)m->pitch, FFTW_ESTIMATE);
        m->plan[ALONG_FORWARD] = fftw_plan_many_dft(1, &n, across, modes, NULL, across, 1, modes, NULL,
                                                    across, 1, FFTW_FORWARD, FFTW_ESTIMATE);
        m->plan[ALONG_BACKWARD] = fftw_plan_many_dft(1, &n, across, modes, NULL, across, 1, modes, NULL,
                                                     across, 1, FFTW_BACKWARD, FFTW_ESTIMATE);
    }
}

/* This rank's planes of n; margins only where there is somebody to have them with. */
static hl_mesh geometry(int64_t n, int64_t pitch, int threads, hl_slabs *slabs)
{
    int64_t ranks = hl_slabs_ranks(slabs), planes = n / ranks, margins = ranks > 1 ? 2 : 0;

    return (hl_mesh){.n = n,
                     .pitch = pitch,
                     .first = planes * hl_slabs_rank(slabs),
                     .planes = planes,
                     .kfirst = planes * hl_slabs_rank(slabs),
                     .kplanes = planes,
                     .whole = ranks == 1,
                     .values = (size_t)((planes + margins) * n * pitch),
                     .threads = threads,
                     .slabs = slabs};
}

hl_mesh hl_mesh_plain(int64_t n, int threads, hl_slabs *slabs)
{
    return geometry(n, n, threads, slabs);
}

halo_status hl_mesh_create(halo_context *ctx, int64_t n, int threads, hl_slabs *slabs, hl_mesh **out)
{
    hl_mesh *m = NULL;
    double *field = NULL;
    halo_status st;

    if (n < 4 || n % 2 || n > 16384)
        return hl_fail(ctx, HALO_ERR_USAGE,
                       "a mesh of %" PRId64 " cells a side: must be even, from 4 to 16384", n);
    if (n % hl_slabs_ranks(slabs))
        return hl_fail(ctx, HALO_ERR_USAGE,
                       "a mesh of %" PRId64 " cells a side cannot be cut into %d equal slabs", n,
                       hl_slabs_ranks(slabs));
    HL_GOTO(st, hl_calloc(ctx, 1, sizeof(*m), "a mesh", &m), agree);
    *m = geometry(n, 2 * (n / 2 + 1), threads, slabs);
    HL_GOTO(st, hl_mesh_field(ctx, m, &field), agree);
    make_plans(m, field);
    for (int i = 0; i < PLANS; i++)
        if (!m->plan[i] && st == HALO_OK)
            st = hl_fail(ctx, HALO_ERR_NOMEM, "no FFT plan for %" PRId64 "^3 cells", n);
    if (slabs) { /* one rank needs no second field */
        m->scratch = field;
        field = NULL;
    }
agree:
    st = hl_slabs_agree(slabs, st);
    free(field);
    if (st == HALO_OK)
        *out = m;
    else
        hl_mesh_destroy(m);
    return st;
}

void hl_mesh_destroy(hl_mesh *m)
{
    if (!m) return;
#pragma omp critical(hl_fftw_planner)
    for (int i = 0; i < PLANS; i++)
        if (m->plan[i]) fftw_destroy_plan(m->plan[i]);
    free(m->scratch);
    free(m);
}

halo_status hl_mesh_field(halo_context *ctx, const hl_mesh *m, double **out)
{
    return hl_aligned(ctx, m->values * sizeof(double), "a mesh field", out);
}

/* ----------------------------------------------------------------------------------------- between slabs */

/* Equal blocks of a field, one per rank. */
static halo_status swap_blocks(const hl_mesh *m, double *from, double *to)
{
    return hl_slabs_transpose(m->slabs, from, to,
                              (size_t)(m->planes * m->kplanes * m->pitch) * sizeof(double));
}

/* [planes][ky n][pitch] <-> [rank][planes][ky of the rank][pitch], row by row; `rank` goes with the block's
 * ky. */
static void regroup(const hl_mesh *m, const double *from, double *to, bool pack)
{
    int64_t rows = m->planes * m->n;

#pragma omp parallel for num_threads(m->threads) schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        int64_t i = r / m->n, ky = r % m->n, rank = ky / m->kplanes;
        int64_t block = ((rank * m->planes + i) * m->kplanes + ky % m->kplanes) * m->pitch;
        memcpy(to + (pack ? block : r * m->pitch), from + (pack ? r * m->pitch : block),
               (size_t)m->pitch * sizeof(double));
    }
}

halo_status hl_mesh_add_margins(const hl_mesh *m, int64_t *masses, int64_t *plane)
{
    int64_t cells = m->n * m->pitch, *own = masses, *high = masses + m->planes * cells, *low = high + cells;

    if (m->whole) return HALO_OK;
    HL_TRY(hl_slabs_shift(m->slabs, low, plane, high, plane + cells, (size_t)cells * sizeof(*plane)));
    for (int64_t c = 0; c < cells; c++) {
        own[c] += plane[cells + c];                   /* the previous rank's high margin is our first plane */
        own[(m->planes - 1) * cells + c] += plane[c]; /* and the next one's low margin our last */
    }
    return HALO_OK;
}

halo_status hl_mesh_fill_margins(const hl_mesh *m, double *field)
{
    int64_t cells = m->n * m->pitch;
    double *high = field + m->planes * cells, *low = high + cells;

    if (m->whole) return HALO_OK;
    return hl_slabs_shift(m->slabs, field, high, field + (m->planes - 1) * cells, low,
                          (size_t)cells * sizeof(*field));
}

/* -------------------------------------------------------------------------------------------- transforms */

halo_status hl_mesh_forward(hl_mesh *m, double *field)
{
    double start = hl_now();
    fftw_execute_dft_r2c(m->plan[PLANES_FORWARD], field, (fftw_complex *)field);
    if (!m->whole) {
        regroup(m, field, m->scratch, true);
        HL_TRY(swap_blocks(m, m->scratch, field));
    }
    fftw_execute_dft(m->plan[ALONG_FORWARD], (fftw_complex *)field, (fftw_complex *)field);
    m->fft_seconds += hl_now() - start;
    return HALO_OK;
}

halo_status hl_mesh_backward(hl_mesh *m, double *field)
{
    double start = hl_now();
    fftw_execute_dft(m->plan[ALONG_BACKWARD], (fftw_complex *)field, (fftw_complex *)field);
    if (!m->whole) {
        HL_TRY(swap_blocks(m, field, m->scratch));
        regroup(m, m->scratch, field, false);
    }
    fftw_execute_dft_c2r(m->plan[PLANES_BACKWARD], (fftw_complex *)field, field);
    m->fft_seconds += hl_now() - start;
    return HALO_OK;
}

static int64_t signed_wave(int64_t i, int64_t n)
{
    return i <= n / 2 ? i : i - n;
}

void hl_mesh_modes(const hl_mesh *m, double *field, hl_mesh_row row, void *arg)
{
    double _Complex *modes = (double _Complex *)field;

#pragma omp parallel for num_threads(m->threads) schedule(static)
    for (int64_t r = 0; r < m->n * m->kplanes; r++)
        row(arg, signed_wave(r / m->kplanes, m->n), signed_wave(m->kfirst + r % m->kplanes, m->n),
            modes + r * (m->n / 2 + 1));
}

/* ------------------------------------------------------------------------------------------ for analysis */

struct hl_fft3 {
    double *input;
    double _Complex *output;
    fftw_plan plan;
};

halo_status hl_fft3_create(halo_context *ctx, const int64_t dim[3], hl_fft3 **out)
{
    hl_fft3 *f;
    halo_status st;
    size_t rows = (size_t)(dim[0] * dim[1]);

    for (int d = 0; d < 3; d++)
        if (dim[d] < 1 || dim[d] > 16384)
            return hl_fail(ctx, HALO_ERR_SHAPE, "a transform of %" PRId64 " cells", dim[d]);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*f), "a transform", &f));
    HL_GOTO(st, hl_aligned(ctx, rows * (size_t)dim[2] * sizeof(double), "a transform", &f->input), destroy);
    HL_GOTO(st,
            hl_aligned(ctx, rows * (size_t)(dim[2] / 2 + 1) * sizeof(*f->output), "a transform", &f->output),
            destroy);
#pragma omp critical(hl_fftw_planner)
    {
        if (fftw_init_threads()) fftw_plan_with_nthreads(1);
        f->plan = fftw_plan_dft_r2c_3d((int)dim[0], (int)dim[1], (int)dim[2], f->input,
                                       (fftw_complex *)f->output, FFTW_ESTIMATE);
    }
    if (f->plan) {
        *out = f;
        return HALO_OK;
    }
    st = hl_fail(ctx, HALO_ERR_NOMEM, "no FFT plan for %" PRId64 " x %" PRId64 " x %" PRId64, dim[0], dim[1],
                 dim[2]);
destroy:
    hl_fft3_destroy(f);
    return st;
}

void hl_fft3_destroy(hl_fft3 *f)
{
    if (!f) return;
#pragma omp critical(hl_fftw_planner)
    if (f->plan) fftw_destroy_plan(f->plan);
    free(f->input);
    free(f->output);
    free(f);
}

double *hl_fft3_input(hl_fft3 *f)
{
    return f->input;
}

const double _Complex *hl_fft3_run(hl_fft3 *f)
{
    fftw_execute(f->plan);
    return f->output;
}
