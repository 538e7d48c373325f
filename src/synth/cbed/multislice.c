/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multislice.c -- a wave passes the crystal slice by slice,
 *
 *     psi <- F^-1 P F (t_s psi),   t_s(r) = exp(i sigma v_s(r)),   P(k) = exp(-i pi lambda dz k^2)
 *
 * (J. M. Cowley and A. F. Moodie, "The scattering of electrons by atoms and crystals. I", 1957; E. J. Kirkland, 2010, chapter 6). t and psi have no modes beyond two thirds of the grid's highest, so that their product,
 * cut there again by P, is free of aliasing (that is why not all the intensity comes out: what is scattered beyond is lost). The wave lives in modes between slices: two transforms a slice.
 */
#include "synth/cbed/multislice.h"

#include <math.h>

#include "synth/cbed/optics.h"
#include "synth/cbed/potential.h"

double hl_band_limit(int64_t n, double box) { return (double)n / (3 * box); }

/* FFTW's planner is not thread-safe; with ESTIMATE plans do not depend on timing. */
fftw_plan hl_fft_plan(int64_t n, int sign)
{
    fftw_plan plan = NULL;
    fftw_complex *a = fftw_alloc_complex((size_t)(n * n)), *b = fftw_alloc_complex((size_t)(n * n));
#pragma omp critical(hl_fftw_planner)
    {
        if (fftw_init_threads()) fftw_plan_with_nthreads(1);
        if (a && b) plan = fftw_plan_dft_2d((int)n, (int)n, a, b, sign, FFTW_ESTIMATE);
    }
    fftw_free(a);
    fftw_free(b);
    return plan;
}

void hl_fft_plan_free(fftw_plan plan)
{
#pragma omp critical(hl_fftw_planner)
    if (plan) fftw_destroy_plan(plan);
}

static bool is_within(int64_t i, int64_t j, int64_t n, double box)
{
    double kh = hl_frequency(i, n, box), kw = hl_frequency(j, n, box), most = hl_band_limit(n, box);
    return kh * kh + kw * kw <= most * most;
}

static void set_propagator(hl_multislice *m, double lambda)
{
    const int64_t n = m->n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double kh = hl_frequency(i, n, m->box), kw = hl_frequency(j, n, m->box);
            m->propagator[i * n + j] = is_within(i, j, n, m->box) ? cexp(-I * M_PI * lambda * m->dz * (kh * kh + kw * kw)) / (double)(n * n) : 0;
        }
}

/* exp(i sigma v) without its modes beyond the limit. */
static void set_transmission(hl_multislice *m, int64_t slice, const double *v, double sigma, double _Complex *work)
{
    const int64_t n = m->n;
    double _Complex *t = m->transmission + slice * n * n;
    for (int64_t i = 0; i < n * n; i++) t[i] = cexp(I * sigma * v[i]);
    fftw_execute_dft(m->forward, t, work);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) work[i * n + j] = is_within(i, j, n, m->box) ? work[i * n + j] / (double)(n * n) : 0;
    fftw_execute_dft(m->backward, work, t);
}

static halo_status set_transmissions(hl_multislice *m, const hl_potential *p, double sigma, int threads, const hl_stop *stop)
{
    int failed = 0;
    (void)threads; /* without OpenMP */
#pragma omp parallel num_threads(threads)
    {
        double _Complex *work = fftw_alloc_complex((size_t)(m->n * m->n));
        if (!work) __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
#pragma omp for schedule(static)
        for (int64_t s = 0; s < m->slices; s++)
            if (work && !hl_stop_asked(stop)) set_transmission(m, s, p->v + s * m->n * m->n, sigma, work);
        fftw_free(work);
    }
    if (hl_stop_asked(stop)) return HALO_ERR_STOPPED;
    return failed ? hl_fail(m->ctx, HALO_ERR_NOMEM, "out of memory: a transmission") : HALO_OK;
}

halo_status hl_multislice_create(halo_context *ctx, const hl_potential *p, double kv, int threads, const hl_stop *stop, hl_multislice **out)
{
    hl_multislice *m;
    size_t modes = (size_t)(p->n * p->n);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*m), "a multislice", &m));
    *m = (hl_multislice){.ctx = ctx, .n = p->n, .slices = p->slices, .box = p->box, .dz = p->dz};
    m->transmission = fftw_alloc_complex((size_t)p->slices * modes);
    m->propagator = fftw_alloc_complex(modes);
    m->forward = hl_fft_plan(p->n, FFTW_FORWARD);
    m->backward = hl_fft_plan(p->n, FFTW_BACKWARD);
    halo_status st = m->transmission && m->propagator && m->forward && m->backward ? HALO_OK : hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: a multislice");
    if (st == HALO_OK) {
        set_propagator(m, hl_electron_wavelength(kv));
        st = set_transmissions(m, p, hl_interaction(kv), threads, stop);
    }
    if (st == HALO_OK) *out = m;
    else hl_multislice_destroy(m);
    return st;
}

void hl_multislice_destroy(hl_multislice *m)
{
    if (!m) return;
    fftw_free(m->transmission);
    fftw_free(m->propagator);
    hl_fft_plan_free(m->forward);
    hl_fft_plan_free(m->backward);
    free(m);
}

void hl_multislice_run(const hl_multislice *m, double _Complex *wave, double _Complex *work)
{
    const int64_t modes = m->n * m->n;
    for (int64_t s = 0; s < m->slices; s++) {
        const double _Complex *t = m->transmission + s * modes;
        fftw_execute_dft(m->backward, wave, work);
        for (int64_t i = 0; i < modes; i++) work[i] *= t[i];
        fftw_execute_dft(m->forward, work, wave);
        for (int64_t i = 0; i < modes; i++) wave[i] *= m->propagator[i];
    }
}
