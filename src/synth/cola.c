/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cola.c -- particle-mesh steps in the COLA frame (Tassev, Zaldarriaga & Eisenstein, "Solving large scale
 * structure in ten easy steps with COLA", 2013).
 *
 * With p = a^2 dx/dt, H_0 = 1, Q(a) = a^3 E(a) and g = -grad lap^-1 delta:
 *
 *   dx/da = p / Q,   dp/da = (3/2) Omega_m (a / Q) g
 *
 * Trajectory and momentum are split into that of perturbation theory and a rest,
 *
 *   x = q + d1 psi1 + d2 psi2 + rest,    dp_rest/da = (3/2) Omega_m (a / Q) (g - d1 psi1 - (d2 + d1^2) psi2),
 *
 * so that large scales are right however few the steps are, and the steps only have to follow small scales. p
 * below is the rest.
 *
 * Leapfrog: kick p from mid-step to mid-step with the force at a_n, drift x from a_n to a_n+1. As in the
 * paper's modified time stepping the rest is taken to vary as u = a^-2.5 between evaluations:
 *   kick  = (3/2) Omega_m a_n (u(a+) - u(a-)) / (Q(a_n) u'(a_n))
 *   drift = integral (u(a) / u(a_mid)) da / Q(a)
 * An output between a_n and a_n+1 takes a drift of its own, from the state it leaves untouched.
 */
#include "synth/cola.h"

#include "synth/quad.h"

#define SLOPE (-2.5) /* n_LPT of the paper */

static double q_of(const hl_cosmology *c, double a)
{
    return a * a * a * hl_expansion(c, a);
}

static double kick_factor(const hl_cosmology *c, double from, double to, double at)
{
    double slope = SLOPE * pow(at, SLOPE - 1.0);
    return 1.5 * c->omega_m * at * (pow(to, SLOPE) - pow(from, SLOPE)) / (q_of(c, at) * slope);
}

static double drift_integrand(double a, const void *arg)
{
    return pow(a, SLOPE) / q_of(arg, a);
}

static double drift_factor(const hl_cosmology *c, double from, double to, double mid)
{
    return hl_integrate(drift_integrand, c, from, to, 4) / pow(mid, SLOPE);
}

/* x = q + d1 psi1 + d2 psi2, q the point (i, j, k) of the lattice. */
static void place_particles(const hl_cosmology *c, double a, int threads, hl_particles *p)
{
    (void)threads; /* without OpenMP */
    hl_lpt_growth g = hl_lpt_growth_at(c, a);
    double cell = p->box / (double)p->side;

#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < p->count; i++) {
        int64_t at[3] = {p->first + i / (p->side * p->side), i / p->side % p->side, i % p->side};
        for (int d = 0; d < 3; d++) {
            double x =
                cell * ((double)at[d] + HL_LATTICE_OFFSET) + g.d1 * p->psi1[d][i] + g.d2 * p->psi2[d][i];
            p->x[d][i] = hl_wrap(x, p->box);
            p->p[d][i] = 0.0;
        }
    }
}

static halo_status kick(const hl_cosmology *c, double a, double factor, const hl_pm *pm, hl_particles *p)
{
    hl_lpt_growth g = hl_lpt_growth_at(c, a);
    double c1 = g.d1, c2 = g.d2 + g.d1 * g.d1;
    hl_scale scale = hl_scale_of(pm->mesh, p->box, pm->shift);

    HL_TRY(hl_pm_density(pm, p));
    for (int d = 0; d < 3; d++) {
        HL_TRY(hl_pm_force(pm, p->box, d));
#pragma omp parallel for num_threads(pm->mesh->threads) schedule(static)
        for (int64_t i = 0; i < p->count; i++) {
            double x[3] = {p->x[0][i], p->x[1][i], p->x[2][i]};
            double rest = hl_pm_gather(pm, scale, x) - c1 * p->psi1[d][i] - c2 * p->psi2[d][i];
            p->p[d][i] += factor * rest;
        }
    }
    return HALO_OK;
}

/* What brings the state (x at a = from, p at mid) to a = to. */
static hl_cola_moment moment_at(const hl_cosmology *c, double from, double mid, double to)
{
    hl_lpt_growth g0 = hl_lpt_growth_at(c, from), g1 = hl_lpt_growth_at(c, to);
    double q = q_of(c, to), los = to * to * hl_expansion(c, to); /* v / (a H) = p / (a^2 E) */

    return (hl_cola_moment){
        .drift = drift_factor(c, from, to, mid),
        .d1 = g1.d1 - g0.d1,
        .d2 = g1.d2 - g0.d2,
        .slip = 1.0 / los,
        .s1 = q * g1.d1_prime / los,
        .s2 = q * g1.d2_prime / los,
    };
}

static void drift(const hl_cola_moment *m, int threads, hl_particles *p)
{
    (void)threads; /* without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < p->count; i++)
        for (int d = 0; d < 3; d++)
            p->x[d][i] = hl_wrap(
                p->x[d][i] + m->drift * p->p[d][i] + m->d1 * p->psi1[d][i] + m->d2 * p->psi2[d][i], p->box);
}

/* Outputs with a <= until that are not yet done, from the state at `from`. */
static halo_status emit(const hl_cosmology *c, const hl_cola *cola, double from, double mid, double until,
                        const hl_particles *p, int *done)
{
    for (; *done < cola->count && cola->outputs[*done] <= until; (*done)++) {
        hl_cola_moment m = moment_at(c, from, mid, cola->outputs[*done]);
        m.index = *done;
        HL_TRY(cola->output(cola->arg, p, &m));
    }
    return HALO_OK;
}

halo_status hl_cola_run(const hl_cosmology *c, const hl_cola *cola, const hl_pm *pm, hl_particles *p)
{
    double end = cola->outputs[cola->count - 1], before = cola->start;
    int done = 0;

    place_particles(c, cola->start, pm->mesh->threads, p);
    HL_TRY(hl_particles_settle(cola->ctx, pm->mesh, p));
    if (cola->steps == 0 || end <= cola->start) return emit(c, cola, cola->start, cola->start, end, p, &done);
    HL_TRY(emit(c, cola, cola->start, cola->start, cola->start, p, &done));
    for (int n = 0; n < cola->steps; n++) {
        double step = (end - cola->start) / cola->steps, from = cola->start + n * step;
        double mid = from + 0.5 * step, to = n + 1 == cola->steps ? end : from + step;
        hl_cola_moment m = moment_at(c, from, mid, to);

        HL_TRY(kick(c, from, kick_factor(c, before, mid, from), pm, p));
        HL_TRY(emit(c, cola, from, mid, to, p, &done));
        drift(&m, pm->mesh->threads, p);
        HL_TRY(hl_particles_settle(cola->ctx, pm->mesh, p));
        before = mid;
    }
    return HALO_OK;
}
