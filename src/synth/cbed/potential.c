/* SPDX-License-Identifier: Apache-2.0 */
/*
 * potential.c -- the projected potential of a slice on a periodic box of side L,
 *
 *     v(r) = (47.878 V A^2 / L^2) sum_k exp(2 pi i k r) sum_j f_j(k^2) exp(-b_j k^2 / 4) exp(-2 pi i k r_j)
 *
 * over the modes below two thirds of the highest (potential and wave then cannot alias, multislice.c). Atoms need not lie on points of the grid: the sum over them is a product of one factor along H and one along W, so that an
 * atom costs n^2 multiplications and 2 n exponentials. Atoms of one element and b share f.
 */
#include "synth/cbed/potential.h"

#include <complex.h> /* before fftw3.h, whose numbers are then of C */
#include <fftw3.h>
#include <math.h>

#include "synth/cbed/kirkland.h"
#include "synth/cbed/multislice.h"
#include "synth/cbed/optics.h"

typedef struct work { /* of a thread */
    double _Complex *sum, *mode, *h, *w; /* [n, n] twice, [n] twice */
} work;

static void add_atom(const hl_potential *p, const hl_atom *a, const work *t)
{
    const int64_t n = p->n;
    for (int64_t i = 0; i < n; i++) {
        double k = 2 * M_PI * hl_frequency(i, n, p->box);
        t->h[i] = a->weight * cexp(-I * k * a->at[0]);
        t->w[i] = cexp(-I * k * a->at[1]);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) t->sum[i * n + j] += t->h[i] * t->w[j];
}

/* Their factor times the structure of one kind of atoms. */
static void add_kind(const hl_potential *p, const hl_atom *kind, const work *t)
{
    const int64_t n = p->n;
    double scale = HL_POTENTIAL_OF_FACTOR / (p->box * p->box), most = hl_band_limit(n, p->box);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double kh = hl_frequency(i, n, p->box), kw = hl_frequency(j, n, p->box), q2 = kh * kh + kw * kw;
            if (q2 <= most * most) t->mode[i * n + j] += scale * hl_kirkland(kind->z, q2) * exp(-kind->b * q2 / 4) * t->sum[i * n + j];
        }
}

static int by_kind(const void *a, const void *b)
{
    const hl_atom *p = a, *q = b;
    if (p->z != q->z) return p->z - q->z;
    return (p->b > q->b) - (p->b < q->b);
}

static int64_t slice_of(const hl_potential *p, const hl_atom *a) { return hl_min64(p->slices - 1, (int64_t)(a->at[2] / p->dz)); }

/* Atoms are in the order of their kinds. */
static void add_slice(const hl_potential *p, int64_t slice, const hl_atom *atoms, int64_t count, const work *t)
{
    const size_t modes = (size_t)(p->n * p->n);
    memset(t->mode, 0, modes * sizeof(*t->mode));
    for (int64_t i = 0; i < count;) {
        const hl_atom *kind = &atoms[i];
        bool any = false;
        for (; i < count && by_kind(kind, &atoms[i]) == 0; i++) {
            if (slice_of(p, &atoms[i]) != slice) continue;
            if (!any) memset(t->sum, 0, modes * sizeof(*t->sum));
            any = true;
            add_atom(p, &atoms[i], t);
        }
        if (any) add_kind(p, kind, t);
    }
}

static bool work_open(const hl_potential *p, work *t)
{
    size_t n = (size_t)p->n;
    *t = (work){.sum = fftw_alloc_complex(n * n), .mode = fftw_alloc_complex(n * n), .h = fftw_alloc_complex(n), .w = fftw_alloc_complex(n)};
    return t->sum && t->mode && t->h && t->w;
}

static void work_close(work *t)
{
    fftw_free(t->sum);
    fftw_free(t->mode);
    fftw_free(t->h);
    fftw_free(t->w);
}

static void finish_slice(hl_potential *p, int64_t slice, const work *t, fftw_plan plan)
{
    const int64_t modes = p->n * p->n;
    fftw_execute_dft(plan, t->mode, t->sum);
    for (int64_t i = 0; i < modes; i++) p->v[slice * modes + i] = creal(t->sum[i]);
}

/* The sum over slices is made anew from v, so that it does not depend on threads. */
static halo_status add_up(hl_potential *p)
{
    const int64_t modes = p->n * p->n;
    double _Complex *sum = fftw_alloc_complex((size_t)modes);
    fftw_plan plan = hl_fft_plan(p->n, FFTW_FORWARD);
    halo_status st = sum && plan ? HALO_OK : hl_fail(p->ctx, HALO_ERR_NOMEM, "out of memory: a potential");
    for (int64_t i = 0; st == HALO_OK && i < modes; i++) {
        double v = 0;
        for (int64_t s = 0; s < p->slices; s++) v += p->v[s * modes + i];
        sum[i] = v / (double)modes;
    }
    if (st == HALO_OK) fftw_execute_dft(plan, sum, p->all);
    hl_fft_plan_free(plan);
    fftw_free(sum);
    return st;
}

static halo_status fill(hl_potential *p, const hl_atom *atoms, int64_t count, int threads, const hl_stop *stop)
{
    fftw_plan plan = hl_fft_plan(p->n, FFTW_BACKWARD);
    int failed = plan == NULL;
    (void)threads; /* without OpenMP */
#pragma omp parallel num_threads(threads)
    {
        work t;
        bool ok = work_open(p, &t) && plan;
        if (!ok) __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
#pragma omp for schedule(dynamic, 1)
        for (int64_t s = 0; s < p->slices; s++) {
            if (!ok || hl_stop_asked(stop)) continue;
            add_slice(p, s, atoms, count, &t);
            finish_slice(p, s, &t, plan);
        }
        work_close(&t);
    }
    hl_fft_plan_free(plan);
    if (hl_stop_asked(stop)) return HALO_ERR_STOPPED;
    return failed ? hl_fail(p->ctx, HALO_ERR_NOMEM, "out of memory: a potential") : add_up(p);
}

halo_status hl_potential_create(halo_context *ctx, int64_t n, double box, double thickness, double slice, const hl_atom *atoms, int64_t count, int threads, const hl_stop *stop, hl_potential **out)
{
    hl_potential *p;
    hl_atom *sorted = NULL;
    halo_status st;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*p), "a potential", &p));
    p->ctx = ctx;
    p->n = n;
    p->box = box;
    p->slices = hl_max64(1, (int64_t)ceil(thickness / slice - 1e-9));
    p->dz = thickness / (double)p->slices;
    HL_GOTO(st, hl_calloc(ctx, (size_t)(p->slices * n * n), sizeof(*p->v), "a potential", &p->v), undo);
    HL_GOTO(st, hl_calloc(ctx, (size_t)count + 1, sizeof(*sorted), "atoms", &sorted), undo);
    p->all = fftw_alloc_complex((size_t)(n * n));
    if (!p->all) HL_GOTO(st, hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: a potential"), undo);
    if (count) memcpy(sorted, atoms, (size_t)count * sizeof(*atoms));
    qsort(sorted, (size_t)count, sizeof(*sorted), by_kind);
    HL_GOTO(st, fill(p, sorted, count, threads, stop), undo);
    free(sorted);
    *out = p;
    return HALO_OK;
undo:
    free(sorted);
    hl_potential_destroy(p);
    return st;
}

void hl_potential_destroy(hl_potential *p)
{
    if (!p) return;
    free(p->v);
    fftw_free(p->all);
    free(p);
}

/* image[i, j] = sum_kh e(kh, i) sum_kw e(kw, j) all[kh, kw]: first along W for each kh, then along H. */
halo_status hl_potential_image(const hl_potential *p, int64_t size, double pixel, double blur, float *image)
{
    const int64_t n = p->n;
    double _Complex *wave, *part;
    HL_TRY(hl_calloc(p->ctx, (size_t)(n * size), sizeof(*wave), "an image", &wave));
    halo_status st = hl_calloc(p->ctx, (size_t)(n * size), sizeof(*part), "an image", &part);
    for (int64_t k = 0; k < n && st == HALO_OK; k++)
        for (int64_t i = 0; i < size; i++) {
            double q = hl_frequency(k, n, p->box), at = p->box / 2 + (double)(i - size / 2) * pixel;
            wave[k * size + i] = exp(-2 * M_PI * M_PI * blur * blur * q * q) * cexp(2 * M_PI * I * q * at);
        }
    for (int64_t k = 0; k < n && st == HALO_OK; k++)
        for (int64_t l = 0; l < n; l++)
            for (int64_t j = 0; j < size; j++) part[k * size + j] += p->all[k * n + l] * wave[l * size + j];
    for (int64_t i = 0; i < size && st == HALO_OK; i++)
        for (int64_t j = 0; j < size; j++) {
            double v = 0;
            for (int64_t k = 0; k < n; k++) v += creal(part[k * size + j] * wave[k * size + i]);
            image[i * size + j] = (float)v;
        }
    free(wave);
    if (st == HALO_OK) free(part);
    return st;
}
