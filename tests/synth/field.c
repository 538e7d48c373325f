/* SPDX-License-Identifier: Apache-2.0 */
/* The initial field, the displacements and the force: symmetries and exact solutions. */
#include "tests/tap.h"

#include <complex.h>

#include "base/base.h"
#include "base/rng.h"
#include "synth/assign.h"
#include "synth/ic.h"
#include "synth/lpt.h"
#include "synth/pm.h"

#define PI 3.14159265358979323846

static const hl_cosmology model = {
    .omega_m = 0.3, .omega_b = 0.045, .h = 0.7, .n_s = 0.96, .sigma_8 = 0.8, .t_cmb = 2.7255};

static void must(halo_status st)
{
    if (st != HALO_OK) tap_bail("%s", halo_error_message(NULL));
}

typedef struct setup {
    hl_mesh *mesh;
    double *a, *b;
} setup;

static setup open_mesh(int64_t n)
{
    setup s;
    must(hl_mesh_create(NULL, n, 1, NULL, &s.mesh));
    must(hl_mesh_field(NULL, s.mesh, &s.a));
    must(hl_mesh_field(NULL, s.mesh, &s.b));
    return s;
}

static void close_mesh(setup *s)
{
    free(s->a);
    free(s->b);
    hl_mesh_destroy(s->mesh);
}

static double largest(const double *x, const double *y, size_t n)
{
    double most = 0.0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i] - (y ? y[i] : 0.0)));
    return most;
}

/* Modes that are not those of a real field do not survive a transform to a real field and back. */
static void test_hermitian(void)
{
    setup s = open_mesh(16);
    hl_power power = hl_power_prepare(&model, true);
    double cells = 16.0 * 16.0 * 16.0;

    must(hl_ic_modes(NULL, s.mesh, &power, 200.0, 7, 3, s.a));
    memcpy(s.b, s.a, s.mesh->values * sizeof(double));
    must(hl_mesh_backward(s.mesh, s.b));
    must(hl_mesh_forward(s.mesh, s.b));
    for (size_t i = 0; i < s.mesh->values; i++) s.b[i] /= cells;
    double err = largest(s.a, s.b, s.mesh->values) / largest(s.a, NULL, s.mesh->values);
    tap_ok(err <= 1e-14, "initial modes are those of a real field, on every plane: %.1e <= 1e-14", err);
    close_mesh(&s);
}

static double _Complex mode_at(const setup *s, int64_t kx, int64_t ky, int64_t kz)
{
    int64_t n = s->mesh->n;
    double phase = -2.0 * PI * HL_LATTICE_OFFSET * (double)(kx + ky + kz) /
                   (double)n; /* from the lattice point to the corner of the box */
    return ((double _Complex *)s->a)[((kx + n) % n * n + (ky + n) % n) * (n / 2 + 1) + kz] * cexp(I * phase);
}

static void test_resolutions(void)
{
    setup coarse = open_mesh(8), fine = open_mesh(20);
    hl_power power = hl_power_prepare(&model, true);
    double worst = 0.0, most = 0.0;

    must(hl_ic_modes(NULL, coarse.mesh, &power, 100.0, 1, 0, coarse.a));
    must(hl_ic_modes(NULL, fine.mesh, &power, 100.0, 1, 0, fine.a));
    for (int64_t kx = -3; kx <= 3; kx++)
        for (int64_t ky = -3; ky <= 3; ky++)
            for (int64_t kz = 0; kz <= 3; kz++) {
                worst = fmax(worst, cabs(mode_at(&coarse, kx, ky, kz) - mode_at(&fine, kx, ky, kz)));
                most = fmax(most, cabs(mode_at(&fine, kx, ky, kz)));
            }
    tap_ok(worst <= 1e-13 * most, "the modes of 8^3 cells are those of 20^3 cells: %.1e", worst / most);
    must(hl_ic_modes(NULL, coarse.mesh, &power, 100.0, 1, 1, coarse.a));
    tap_ok(cabs(mode_at(&coarse, 1, 0, 0) - mode_at(&fine, 1, 0, 0)) > 1e-3 * most,
           "another universe has other modes");
    close_mesh(&coarse);
    close_mesh(&fine);
}

typedef struct sphere_sum {
    const hl_power *power;
    double unit, volume, sum;
} sphere_sum;

static void expect_sphere(void *arg, int64_t kx, int64_t ky, double _Complex *modes)
{
    sphere_sum *s = arg;
    (void)modes;
    for (int64_t kz = 0; kz < 48 && kx < 48 && ky < 48; kz++) {
        double k = s->unit * sqrt((double)(kx * kx + ky * ky + kz * kz)), w = hl_sphere_window(8.0 * k);
        s->sum += (kz ? 2.0 : 1.0) * hl_power_at(s->power, k) / s->volume * w * w;
    }
}

static void add_sphere(void *arg, int64_t kx, int64_t ky, double _Complex *modes)
{
    sphere_sum *s = arg;
    for (int64_t kz = 0; kz < 48; kz++) {
        double w = hl_sphere_window(8.0 * s->unit * sqrt((double)(kx * kx + ky * ky + kz * kz))),
               m = cabs(modes[kz]);
        s->sum += (kz ? 2.0 : 1.0) * m * m * w * w;
    }
}

static void test_sigma8(void)
{
    enum { SEEDS = 20 };
    setup s = open_mesh(96);
    hl_power power = hl_power_prepare(&model, true);
    double sum = 0.0, square = 0.0;
    sphere_sum expected = {&power, 2.0 * PI / 512.0, 512.0 * 512.0 * 512.0, 0.0};

    hl_mesh_modes(s.mesh, s.a, expect_sphere, &expected); /* the modes that this box and mesh have */
    for (int seed = 0; seed < SEEDS; seed++) {
        sphere_sum sphere = {&power, 2.0 * PI / 512.0, 0.0, 0.0};
        must(hl_ic_modes(NULL, s.mesh, &power, 512.0, (uint64_t)seed, 0, s.a));
        hl_mesh_modes(s.mesh, s.a, add_sphere, &sphere);
        double sigma = sqrt(sphere.sum);
        sum += sigma;
        square += sigma * sigma;
    }
    double mean = sum / SEEDS, error = sqrt((square / SEEDS - mean * mean) / (SEEDS - 1)),
           exact = sqrt(expected.sum);
    tap_ok(fabs(mean - exact) <= 3.0 * error,
           "sigma_8 of %d initial fields is the one asked for: %.4f +- %.4f, expected %.4f", SEEDS, mean,
           error, exact);
    tap_ok(fabs(exact / 0.8 - 1.0) <= 0.005, "and this box and mesh hold nearly all of it: %.4f of 0.8",
           exact);
    tap_ok(error <= 0.003, "and its scatter is that of so many modes: %.4f", error);
    close_mesh(&s);
}

/* delta = A (cos kx + cos ky): psi1 and psi2 are known. */
static void test_displacements(void)
{
    enum { N = 16 };
    const double box = 100.0, amplitude = 0.3, k = 2.0 * PI / box;
    setup s = open_mesh(N);
    hl_particles p;
    double first = 0.0, second = 0.0;

    must(hl_particles_alloc(NULL, N, 0, N, box, &p));
    memset(s.a, 0, s.mesh->values * sizeof(double));
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++)
            for (int64_t l = 0; l < N; l++)
                s.a[(i * N + j) * s.mesh->pitch + l] =
                    amplitude * (cos(k * box * (double)i / N) + cos(k * box * (double)j / N)) / (N * N * N);
    must(hl_mesh_forward(s.mesh, s.a));
    must(hl_lpt(s.mesh, s.a, s.b, &p));
    for (int64_t c = 0; c < p.count; c++) {
        double x = k * box * (double)(c / (N * N)) / N, y = k * box * (double)(c / N % N) / N;
        first = fmax(first, fabs(p.psi1[0][c] + amplitude * sin(x) / k));
        first = fmax(first, fabs(p.psi1[1][c] + amplitude * sin(y) / k) + fabs(p.psi1[2][c]));
        second = fmax(second, fabs(p.psi2[0][c] + amplitude * amplitude * sin(x) * cos(y) / (2.0 * k)));
        second = fmax(second, fabs(p.psi2[1][c] + amplitude * amplitude * cos(x) * sin(y) / (2.0 * k)) +
                                  fabs(p.psi2[2][c]));
    }
    tap_ok(first <= 1e-12 * box,
           "first order displacement of two crossed waves: %.1e Mpc/h from the exact one", first);
    tap_ok(second <= 1e-12 * box,
           "second order displacement of two crossed waves: %.1e Mpc/h from the exact one", second);
    hl_particles_free(&p);
    close_mesh(&s);
}

static void scatter(hl_particles *p, uint64_t seed)
{
    for (int64_t c = 0; c < p->count; c++)
        for (int d = 0; d < 3; d++)
            p->x[d][c] = p->box * hl_rng_uniform(seed, HL_STREAM_TEST, (uint64_t)c, (uint64_t)d);
}

static void test_assignment(hl_scheme scheme)
{
    enum { N = 8, COUNT = 500 };
    hl_mesh m = hl_mesh_plain(N, 1, NULL);
    int64_t masses[2][N * N * N] = {{0}}, sum = 0;
    double x[3][COUNT];

    for (int i = 0; i < COUNT; i++)
        for (int d = 0; d < 3; d++)
            x[d][i] = i == 0   ? nextafter(50.0, 0.0)
                      : i == 1 ? 0.0
                               : 50.0 * hl_rng_uniform(3, HL_STREAM_TEST, (uint64_t)i, (uint64_t)d);
    hl_assign(scheme, &m, hl_scale_of(&m, 50.0, 0.0), x[0], x[1], x[2], COUNT, false, masses[0]);
    for (int i = COUNT - 1; i >= 0; i--)
        hl_assign(scheme, &m, hl_scale_of(&m, 50.0, 0.0), &x[0][i], &x[1][i], &x[2][i], 1, true, masses[1]);
    for (int c = 0; c < N * N * N; c++) sum += masses[0][c];
    tap_ok(fabs((double)sum / HL_MASS_UNIT - COUNT) <= 1e-8, "%s conserves mass: %.1e",
           hl_scheme_name(scheme), (double)sum / HL_MASS_UNIT - COUNT);
    tap_ok(memcmp(masses[0], masses[1], sizeof(masses[0])) == 0,
           "%s does not depend on the order of particles, to the bit", hl_scheme_name(scheme));
}

static void test_force(void)
{
    enum { N = 16 };
    setup s = open_mesh(N);
    hl_particles p;
    hl_pm pm;
    double drift = 0.0, size = 0.0;

    must(hl_particles_alloc(NULL, N, 0, N, 80.0, &p));
    must(hl_pm_init(NULL, s.mesh, N, s.a, s.b, &pm));
    scatter(&p, 11);
    hl_scale scale = hl_scale_of(s.mesh, 80.0, pm.shift);
    must(hl_pm_density(&pm, &p));
    for (int d = 0; d < 3; d++) {
        double sum = 0.0;
        must(hl_pm_force(&pm, p.box, d));
        for (int64_t c = 0; c < p.count; c++) {
            double x[3] = {p.x[0][c], p.x[1][c], p.x[2][c]}, g = hl_pm_gather(&pm, scale, x);
            sum += g;
            size += fabs(g) / 3.0;
        }
        drift = fmax(drift, fabs(sum));
    }
    tap_ok(drift <= 1e-10 * size, "momentum is conserved: sum of forces / sum of their sizes = %.1e <= 1e-10",
           drift / size);
    hl_pm_free(&pm);
    hl_particles_free(&p);
    close_mesh(&s);
}

/* Lattice particles displaced by a long plane wave: the force is the linear one. */
static void test_linear_force(void)
{
    enum { N = 32 };
    const double box = 320.0, k = 2.0 * PI / box, size = 0.05;
    setup s = open_mesh(N);
    hl_particles p;
    hl_pm pm;
    double worst = 0.0;

    must(hl_particles_alloc(NULL, N, 0, N, box, &p));
    must(hl_pm_init(NULL, s.mesh, N, s.a, s.b, &pm));
    for (int64_t c = 0; c < p.count; c++) {
        int64_t at[3] = {c / (N * N), c / N % N, c % N};
        for (int d = 0; d < 3; d++) p.x[d][c] = box * ((double)at[d] + HL_LATTICE_OFFSET) / N;
        p.x[1][c] += size * sin(k * p.x[1][c]);
    }
    must(hl_pm_density(&pm, &p));
    must(hl_pm_force(&pm, box, 1));
    for (int64_t c = 0; c < p.count; c++) {
        double x[3] = {p.x[0][c], p.x[1][c], p.x[2][c]},
               q = box * ((double)(c / N % N) + HL_LATTICE_OFFSET) / N;
        worst =
            fmax(worst, fabs(hl_pm_gather(&pm, hl_scale_of(s.mesh, box, pm.shift), x) - size * sin(k * q)));
    }
    tap_ok(worst <= 0.01 * size, "a displaced lattice feels its displacement: %.1e of it <= 1e-2",
           worst / size);
    hl_pm_free(&pm);
    hl_particles_free(&p);
    close_mesh(&s);
}

int main(void)
{
    hl_mesh *mesh;
    test_hermitian();
    test_resolutions();
    test_sigma8();
    test_displacements();
    test_assignment(HL_NGP);
    test_assignment(HL_CIC);
    test_assignment(HL_TSC);
    test_force();
    test_linear_force();
    tap_ok(hl_mesh_create(NULL, 15, 1, NULL, &mesh) == HALO_ERR_USAGE, "an odd mesh is refused");
    return tap_done();
}
