/* SPDX-License-Identifier: Apache-2.0 */
/* One universe: conservation, growth, reproducibility, resolutions, redshift space. */
#include "tests/tap.h"

#include "base/base.h"
#include "synth/power.h"
#include "synth/simulate.h"
#include "synth/spectrum.h"

static const hl_cosmology model = {
    .omega_m = 0.3, .omega_b = 0.045, .h = 0.7, .n_s = 0.96, .sigma_8 = 0.8, .t_cmb = 2.7255};

static hl_simulation_options options(int64_t particles, int64_t grid)
{
    return (hl_simulation_options){.grid = grid,
                                   .particles = particles,
                                   .mesh = particles,
                                   .steps = 10,
                                   .start = 9,
                                   .scheme = HL_CIC,
                                   .wiggles = true,
                                   .redshifts = 2,
                                   .redshift = {0, 3},
                                   .threads = 1};
}

/* A universe of seed 5; freed by the caller. */
static float *make(const hl_simulation_options *o, double box, uint64_t universe)
{
    hl_simulation *s = NULL;
    float *full = calloc((size_t)(o->grid * o->grid * o->grid * o->redshifts), sizeof(*full));

    if (!full || hl_simulation_create(NULL, o, NULL, &s) != HALO_OK) tap_bail("%s", halo_error_message(NULL));
    if (hl_simulate(s, &model, box, 5, universe, full, NULL) != HALO_OK)
        tap_bail("%s", halo_error_message(NULL));
    hl_simulation_destroy(s);
    return full;
}

static void test_counts(void)
{
    hl_simulation_options o = options(16, 16);
    double sum[2] = {0};
    bool whole = true;

    o.scheme = HL_NGP;
    float *full = make(&o, 128.0, 0);
    for (int c = 0; c < 16 * 16 * 16 * 2; c++) {
        sum[c % 2] += (double)full[c];
        whole = whole && full[c] == floorf(full[c]) && full[c] >= 0.0f;
    }
    tap_ok(sum[0] == 4096.0 && sum[1] == 4096.0, "the mean count is exactly 1 at both redshifts");
    tap_ok(whole, "counts are whole numbers");
    free(full);
    o.scheme = HL_TSC;
    full = make(&o, 128.0, 0);
    sum[0] = 0.0;
    for (int c = 0; c < 16 * 16 * 16; c++) sum[0] += (double)full[2 * c];
    tap_ok(fabs(sum[0] / 4096.0 - 1.0) <= 1e-5, "and 1 within rounding with clouds: %.1e",
           sum[0] / 4096.0 - 1.0);
    free(full);
}

static void spectrum(const float *full, int64_t n, int channel, hl_shell *shell)
{
    hl_spectrum *s;
    const int64_t dim[3] = {n, n, n};
    if (hl_spectrum_create(NULL, dim, 0, HL_CIC, &s) != HALO_OK) tap_bail("%s", halo_error_message(NULL));
    hl_spectrum_of(s, full + channel, 2, 0.0, shell);
    hl_spectrum_destroy(s);
}

static void test_growth(void)
{
    hl_simulation_options o = options(32, 32);
    const double box = 512.0, volume = box * box * box, unit = 2.0 * 3.14159265358979323846 / box;
    hl_shell now[16], then[16];
    hl_power linear = hl_power_prepare(&model, true);
    double d0 = hl_lpt_growth_at(&model, 1.0).d1, d3 = hl_lpt_growth_at(&model, 0.25).d1, late = 0.0,
           early = 0.0, sum = 0.0, expected = 0.0, modes = 0.0;
    float *full = make(&o, box, 1);

    spectrum(full, 32, 0, now);
    spectrum(full, 32, 1, then);
    for (int m = 0; m < 4; m++) {
        late += now[m].power * now[m].modes / (d0 * d0);
        early += then[m].power * then[m].modes / (d3 * d3);
    }
    tap_ok(fabs(late / early - 1.0) <= 0.05, "the largest scales grow as D^2 from z = 3 to 0: ratio %.3f",
           late / early);
    for (int m = 1; m < 8; m++) {
        sum += then[m].modes * then[m].power * volume / hl_power_at(&linear, then[m].k * unit);
        expected += then[m].modes * d3 * d3;
        modes += then[m].modes;
    }
    tap_ok(fabs(sum / expected - 1.0) <= 4.0 / sqrt(modes) + 0.03,
           "and agree with linear theory at z = 3: ratio %.3f with %.0f modes", sum / expected, modes);
    free(full);
}

static void test_reproducible(void)
{
    hl_simulation_options o = options(16, 16);
    const size_t bytes = 16 * 16 * 16 * 2 * sizeof(float);

    o.scheme = HL_NGP;
    float *a = make(&o, 200.0, 3), *b = make(&o, 200.0, 3), *other = make(&o, 200.0, 4);
    o.threads = 2;
    float *threads = make(&o, 200.0, 3);
    tap_ok(memcmp(a, b, bytes) == 0, "the same universe again is the same to the bit");
    tap_ok(memcmp(a, threads, bytes) == 0, "and with two threads");
    tap_ok(memcmp(a, other, bytes) != 0, "another one is not");
    free(a);
    free(b);
    free(other);
    free(threads);
}

static double correlation(const float *a, const float *b, int64_t n)
{
    double sab = 0.0, saa = 0.0, sbb = 0.0, ma = 0.0, mb = 0.0;

    for (int64_t i = 0; i < n; i++) {
        ma += (double)a[2 * i] / (double)n;
        mb += (double)b[2 * i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        double x = (double)a[2 * i] - ma, y = (double)b[2 * i] - mb;
        sab += x * y;
        saa += x * x;
        sbb += y * y;
    }
    return sab / sqrt(saa * sbb);
}

static void test_resolutions(void)
{
    hl_simulation_options coarse = options(32, 8), fine = options(64, 8);
    float *a = make(&coarse, 512.0, 2), *b = make(&fine, 512.0, 2), *other = make(&coarse, 512.0, 3);
    double same = correlation(a, b, 512), different = correlation(a, other, 512);

    tap_ok(same >= 0.98, "32^3 and 64^3 particles make the same universe: correlation %.3f", same);
    tap_ok(fabs(different) <= 0.2, "which another one is not: %.3f", different);
    free(a);
    free(b);
    free(other);
}

/* Share of the power of plane waves along axis 2 against those along axis 0, longest two wavelengths. */
static double anisotropy(const float *full, int64_t n)
{
    double along[2] = {0.0, 0.0};

    for (int axis = 0; axis < 2; axis++)
        for (int k = 1; k <= 3; k++) {
            double re = 0.0, im = 0.0;
            for (int64_t c = 0; c < n * n * n; c++) {
                int64_t at = axis ? c % n : c / (n * n);
                re += (double)full[2 * c] * cos(2.0 * 3.14159265358979323846 * k * (double)at / (double)n);
                im += (double)full[2 * c] * sin(2.0 * 3.14159265358979323846 * k * (double)at / (double)n);
            }
            along[axis] += re * re + im * im;
        }
    return along[1] / along[0];
}

static void test_redshift_space(void)
{
    hl_simulation_options o = options(32, 32);
    float *real = make(&o, 600.0, 6);
    o.rsd = true;
    float *redshift = make(&o, 600.0, 6);
    double f = hl_growth_rate(&model, 1.0), kaiser = (1.0 + f) * (1.0 + f),
           ratio = anisotropy(redshift, 32) / anisotropy(real, 32);

    tap_ok(fabs(ratio / kaiser - 1.0) <= 0.2,
           "redshift space raises the power along the line of sight by (1 + f)^2: %.2f, %.2f expected", ratio,
           kaiser);
    free(real);
    free(redshift);
}

static void test_perturbation_theory(void)
{
    hl_simulation_options o = options(32, 16);
    float *steps = make(&o, 512.0, 7);
    o.steps = 0;
    float *alone = make(&o, 512.0, 7);

    tap_ok(correlation(steps + 1, alone + 1, 4096) >= 0.995,
           "at z = 3 steps and perturbation theory agree: %.4f", correlation(steps + 1, alone + 1, 4096));
    free(steps);
    free(alone);
}

static void refuse(const char *what, hl_simulation_options o)
{
    tap_ok(hl_simulation_check(NULL, &o) == HALO_ERR_USAGE, "%s is refused: %s", what,
           halo_error_message(NULL));
}

static void test_refusals(void)
{
    hl_simulation_options o = options(16, 16);
    o.grid = 15;
    refuse("an odd grid", o);
    o = options(16, 16);
    o.steps = -1;
    refuse("a negative number of steps", o);
    o = options(16, 16);
    o.redshift[1] = -0.5;
    refuse("a redshift in the future", o);
    o = options(16, 16);
    o.redshifts = 0;
    refuse("no redshift", o);
    o = options(16, 16);
    o.start = NAN;
    refuse("a start that is not a number", o);
}

int main(void)
{
    test_counts();
    test_growth();
    test_reproducible();
    test_resolutions();
    test_redshift_space();
    test_perturbation_theory();
    test_refusals();
    return tap_done();
}
