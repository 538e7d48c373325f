/* SPDX-License-Identifier: Apache-2.0 */
/* Linear theory against published reference numbers: the Core Cosmology Library's benchmarks for Omega_m 0.3,
 * Omega_b 0.05, h 0.7, n_s 0.96, sigma_8 0.8, T 2.725 K. A few of them stand here; the whole tables are read
 * where HALO_TESTDATA has them. */
#include "tests/tap.h"

#include <math.h>

#include "base/base.h"
#include "synth/power.h"

static const hl_cosmology model = {
    .omega_m = 0.3, .omega_b = 0.05, .h = 0.7, .n_s = 0.96, .sigma_8 = 0.8, .t_cmb = 2.725};

static const double growth[][2] = {{0, 7.789810159545663693e-01},
                                   {1, 4.765850672798405685e-01},
                                   {2, 3.282981969689433011e-01},
                                   {3, 2.483706195535709260e-01},
                                   {4, 1.993271077162042104e-01},
                                   {5, 1.663409721669986685e-01},
                                   {10, 9.088014e-02},
                                   {100, 9.900986e-03},
                                   {1000, 9.990010e-04}};

static const double no_wiggle[][2] = {{1e-3, 3.872331892535939460e+03},
                                      {1.258925411794167490e-03, 4.792496131638794395e+03},
                                      {1.584893192461114082e-03, 5.910682433207593022e+03}};

static const double wiggle[][2] = {{0.001, 3895.01},    {0.00316228, 10738.6}, {0.01, 21948.4},
                                   {0.0158489, 24261},  {0.0316228, 18450.2},  {0.0501187, 12106.2},
                                   {0.0794328, 8235.55}};

static void test_growth(void)
{
    double worst = 0.0, rate = 0.0, second = 0.0;

    for (size_t i = 0; i < HL_COUNT(growth); i++)
        worst = fmax(worst, fabs(hl_growth(&model, 1.0 / (1.0 + growth[i][0])) / growth[i][1] - 1.0));
    tap_ok(worst <= 1e-6, "growth from z = 0 to 1000 agrees with the reference: %.1e <= 1e-6", worst);
    for (double a = 0.1; a < 1.05; a += 0.1) {
        double e = 1e-5, f = log(hl_growth(&model, a * (1.0 + e)) / hl_growth(&model, a * (1.0 - e))) /
                             log((1.0 + e) / (1.0 - e));
        hl_lpt_growth lo = hl_lpt_growth_at(&model, a * (1.0 - e)),
                      hi = hl_lpt_growth_at(&model, a * (1.0 + e)), mid = hl_lpt_growth_at(&model, a);
        rate = fmax(rate, fabs(hl_growth_rate(&model, a) / f - 1.0));
        second = fmax(second, fabs(mid.d2_prime * 2.0 * a * e / (hi.d2 - lo.d2) - 1.0));
    }
    tap_ok(rate <= 1e-7, "the growth rate is the derivative of the growth: %.1e <= 1e-7", rate);
    tap_ok(second <= 1e-6, "the second-order rate is the derivative of the second-order growth: %.1e <= 1e-6",
           second);
}

static void test_limits(void)
{
    hl_cosmology flat = model;
    flat.omega_m = 1.0;
    hl_lpt_growth g = hl_lpt_growth_at(&flat, 0.5);
    tap_ok(fabs(hl_growth(&flat, 0.5) - 0.5) <= 1e-9, "in a universe of matter alone D(a) = a");
    tap_ok(fabs(g.d2 / (3.0 / 7.0 * 0.25) - 1.0) <= 1e-6, "and D2(a) = (3/7) a^2: %.1e",
           g.d2 / (3.0 / 7.0 * 0.25) - 1.0);
    g = hl_lpt_growth_at(&model, 1.0);
    double fit = 3.0 / 7.0 * pow(model.omega_m, -1.0 / 143.0);
    tap_ok(fabs(g.d1 - 1.0) <= 1e-12 && fabs(g.d2 / fit - 1.0) <= 1e-3,
           "today D1 = 1 and D2 is near the usual fit: %.5f, %.5f", g.d2, fit);
}

static double worst_of(const hl_power *p, const double (*table)[2], size_t n)
{
    double worst = 0.0;
    for (size_t i = 0; i < n; i++) worst = fmax(worst, fabs(hl_power_at(p, table[i][0]) / table[i][1] - 1.0));
    return worst;
}

/* First two columns of a reference table. */
static int read_table(const char *name, double (*table)[2], int most)
{
    const char *dir = getenv("HALO_TESTDATA");
    char path[1024], line[1024];
    int n = 0;

    if (!dir) return 0;
    snprintf(path, sizeof(path), "%s/LSSTDESC+CCL/benchmarks/data/%s", dir, name);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    while (n < most && fgets(line, sizeof(line), f))
        if (sscanf(line, "%lf %lf", &table[n][0], &table[n][1]) == 2) n++;
    fclose(f);
    return n;
}

/* A transfer function enters squared: half the error of the power is its own. */
static void test_table(const hl_power *p, const char *name, double tolerance)
{
    double table[64][2];
    int n = read_table(name, table, 64);

    if (n == 0)
        tap_skip("no table '%s': HALO_TESTDATA is not set", name);
    else
        tap_ok(0.5 * worst_of(p, (const double(*)[2])table, (size_t)n) <= tolerance,
               "transfer function against %d numbers of %s: %.1e <= %.0e", n, name,
               0.5 * worst_of(p, (const double(*)[2])table, (size_t)n), tolerance);
}

static void test_power(void)
{
    hl_power smooth = hl_power_prepare(&model, false), full = hl_power_prepare(&model, true);
    double s = 0.5 * worst_of(&smooth, no_wiggle, HL_COUNT(no_wiggle)),
           w = 0.5 * worst_of(&full, wiggle, HL_COUNT(wiggle));

    tap_ok(s <= 1e-6, "the no-wiggle transfer function agrees with the reference: %.1e <= 1e-6", s);
    tap_ok(w <= 5e-3, "the transfer function agrees with the reference: %.1e <= 5e-3", w);
    test_table(&smooth, "model1_nowig_pk_eh.txt", 1e-6);
    test_table(&full, "model1_pk_eh.txt", 5e-3);
    test_table(&full, "codes/model1_pk_eh.txt", 5e-3);
    tap_ok(fabs(hl_power_sigma(&full, 8.0) - 0.8) <= 1e-9, "sigma(8 Mpc/h) is sigma_8");
    tap_ok(fabs(hl_eh98_transfer(&full.transfer, 1e-7) - 1.0) <= 1e-3,
           "the transfer function is 1 on the largest scales");
    tap_ok(fabs(hl_sphere_window(0.0099) - hl_sphere_window(0.0101)) <= 1e-5,
           "the sphere's window has no step where its series begins");
}

int main(void)
{
    test_growth();
    test_limits();
    test_power();
    return tap_done();
}
