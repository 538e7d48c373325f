/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c -- a specimen's potential, and the patterns of a scan over it: the positions are shared by threads, each of which has a wave. */
#include <complex.h> /* before fftw3.h, whose numbers are then of C */
#include <fftw3.h>
#include <math.h>

#include "synth/cbed/cbed.h"
#include "synth/cbed/multislice.h"

halo_status hl_cbed_potential(const hl_cbed *c, const hl_specimen *p, hl_potential **potential)
{
    hl_crystal strained = *p->crystal;
    hl_atom *atom;
    int64_t n;
    memcpy(strained.cell, p->cell, sizeof(strained.cell));
    HL_TRY(hl_crystal_cut(c->ctx, &strained, p->turn, p->origin, c->s->box, p->thickness, &atom, &n));
    halo_status st = hl_potential_create(c->ctx, c->s->grid, c->s->box, p->thickness, c->s->slice, atom, n, c->threads, &c->stop, potential);
    free(atom);
    return st;
}

/* The squares of the wave's modes, the beam in the middle. */
static void detect(const hl_cbed_settings *s, const double _Complex *wave, float *out)
{
    const int64_t n = s->grid, m = s->size;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            double _Complex a = wave[(i - m / 2 + n) % n * n + (j - m / 2 + n) % n];
            out[i * m + j] = (float)((double)(m * m) * (creal(a) * creal(a) + cimag(a) * cimag(a)));
        }
}

halo_status hl_cbed_patterns(const hl_cbed *c, const hl_potential *potential, float *patterns)
{
    const hl_cbed_settings *s = c->s;
    const int64_t n = s->grid, positions = s->scan * s->scan;
    hl_multislice *m;
    int failed = 0;
    HL_TRY(hl_multislice_create(c->ctx, potential, s->kv, c->threads, &c->stop, &m));
#pragma omp parallel num_threads(c->threads)
    {
        double _Complex *wave = fftw_alloc_complex((size_t)(n * n)), *work = fftw_alloc_complex((size_t)(n * n));
        bool ok = wave && work;
        if (!ok) __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
#pragma omp for schedule(dynamic, 1)
        for (int64_t p = 0; p < positions; p++) {
            const int64_t index[2] = {p / s->scan, p % s->scan};
            double at[2];
            if (!ok || hl_stop_asked(&c->stop)) continue;
            for (int k = 0; k < 2; k++) at[k] = s->box / 2 + ((double)index[k] - (double)(s->scan - 1) / 2) * s->step;
            hl_probe(&c->lens, n, s->box, at, wave);
            hl_multislice_run(m, wave, work);
            detect(s, wave, patterns + p * s->size * s->size);
        }
        fftw_free(wave);
        fftw_free(work);
    }
    hl_multislice_destroy(m);
    if (hl_stop_asked(&c->stop)) return HALO_ERR_STOPPED;
    return failed ? hl_fail(c->ctx, HALO_ERR_NOMEM, "out of memory: a wave") : HALO_OK;
}
