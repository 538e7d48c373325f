/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c -- real-to-complex transforms of a cubic mesh in place, by FFTW3 in double precision.
 *
 * FFTW_ESTIMATE: plans must not depend on timing, so that equal seeds give equal universes. FFTW's planner is
 * not thread-safe and its state is the process's, so planning is serialised here; execution is not.
 */
#include "synth/mesh.h"

#include <fftw3.h>

#include "base/clock.h"
#include "synth/fft3.h"

static void make_plans(hl_mesh *m, double *field)
{
    int n = (int)m->n;
    fftw_complex *modes = (fftw_complex *)field;

#pragma omp critical(hl_fftw_planner)
    {
        if (fftw_init_threads()) fftw_plan_with_nthreads(m->threads);
        m->forward = fftw_plan_dft_r2c_3d(n, n, n, field, modes, FFTW_ESTIMATE);
        m->backward = fftw_plan_dft_c2r_3d(n, n, n, modes, field, FFTW_ESTIMATE);
    }
}

halo_status hl_mesh_create(halo_context *ctx, int64_t n, int threads, hl_mesh **out)
{
    hl_mesh *m = NULL;
    double *field = NULL;
    halo_status st;

    if (n < 4 || n % 2 || n > 16384)
        return hl_fail(ctx, HALO_ERR_USAGE,
                       "a mesh of %" PRId64 " cells a side: must be even, from 4 to 16384", n);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*m), "a mesh", &m));
    *m = (hl_mesh){
        .n = n, .pitch = 2 * (n / 2 + 1), .planes = n, .kplanes = n, .whole = true, .threads = threads};
    m->values = (size_t)(n * n * m->pitch);
    HL_GOTO(st, hl_mesh_field(ctx, m, &field), free_mesh);
    make_plans(m, field);
    free(field);
    if (!m->forward || !m->backward) {
        st = hl_fail(ctx, HALO_ERR_NOMEM, "no FFT plan for %" PRId64 "^3 cells", n);
        goto free_mesh;
    }
    *out = m;
    return HALO_OK;

free_mesh:
    hl_mesh_destroy(m);
    return st;
}

hl_mesh hl_mesh_plain(int64_t n, int threads)
{
    return (hl_mesh){
        .n = n, .pitch = n, .planes = n, .whole = true, .values = (size_t)(n * n * n), .threads = threads};
}

void hl_mesh_destroy(hl_mesh *m)
{
    if (!m) return;
#pragma omp critical(hl_fftw_planner)
    {
        if (m->forward) fftw_destroy_plan(m->forward);
        if (m->backward) fftw_destroy_plan(m->backward);
    }
    free(m);
}

halo_status hl_mesh_field(halo_context *ctx, const hl_mesh *m, double **out)
{
    return hl_aligned(ctx, m->values * sizeof(double), "a mesh field", out);
}

void hl_mesh_forward(hl_mesh *m, double *field)
{
    double start = hl_now();
    fftw_execute_dft_r2c(m->forward, field, (fftw_complex *)field);
    m->fft_seconds += hl_now() - start;
}

void hl_mesh_backward(hl_mesh *m, double *field)
{
    double start = hl_now();
    fftw_execute_dft_c2r(m->backward, (fftw_complex *)field, field);
    m->fft_seconds += hl_now() - start;
}

static int64_t signed_wave(int64_t i, int64_t n)
{
    return i <= n / 2 ? i : i - n;
}

void hl_mesh_modes(const hl_mesh *m, double *field, hl_mesh_row row, void *arg)
{
    double _Complex *modes = (double _Complex *)field;

#pragma omp parallel for num_threads(m->threads) schedule(static)
    for (int64_t r = 0; r < m->kplanes * m->n; r++) {
        int64_t slow = signed_wave(m->kfirst + r / m->n, m->n), fast = signed_wave(r % m->n, m->n);
        if (m->transposed)
            row(arg, fast, slow, modes + r * (m->n / 2 + 1));
        else
            row(arg, slow, fast, modes + r * (m->n / 2 + 1));
    }
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
