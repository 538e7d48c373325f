/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c -- real-to-complex transforms of a cubic mesh in place, by FFTW3 in double precision.
 *
 * FFTW_ESTIMATE: plans must not depend on timing, so that equal seeds give equal universes. FFTW's planner is not
 * thread-safe and its state is the process's, so planning is serialised here; execution is not.
 */
#include "synth/mesh.h"

#include <fftw3.h>

#include "base/clock.h"

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
        return hl_fail(ctx, HALO_ERR_USAGE, "a mesh of %" PRId64 " cells a side: must be even, from 4 to 16384", n);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*m), "a mesh", &m));
    *m = (hl_mesh){.n = n, .pitch = 2 * (n / 2 + 1), .planes = n, .kplanes = n, .whole = true, .threads = threads};
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
    return (hl_mesh){.n = n, .pitch = n, .planes = n, .whole = true, .values = (size_t)(n * n * n), .threads = threads};
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

static int64_t signed_wave(int64_t i, int64_t n) { return i <= n / 2 ? i : i - n; }

void hl_mesh_modes(const hl_mesh *m, double *field, hl_mesh_row row, void *arg)
{
    double _Complex *modes = (double _Complex *)field;

#pragma omp parallel for num_threads(m->threads) schedule(static)
    for (int64_t r = 0; r < m->kplanes * m->n; r++) {
        int64_t slow = signed_wave(m->kfirst + r / m->n, m->n), fast = signed_wave(r % m->n, m->n);
        if (m->transposed) row(arg, fast, slow, modes + r * (m->n / 2 + 1));
        else row(arg, slow, fast, modes + r * (m->n / 2 + 1));
    }
}
