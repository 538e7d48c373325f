/* SPDX-License-Identifier: Apache-2.0 */
/* Measured spectra, regression, the baseline, the report on a universe and its picture. */
#include "tests/tap.h"

#include <unistd.h>

#include "base/base.h"
#include "base/file.h"
#include "base/rng.h"
#include "synth/baseline.h"
#include "synth/inspect.h"
#include "synth/pack.h"
#include "synth/ridge.h"
#include "synth/spectrum.h"
#include "synth/universes.h"

#define PI 3.14159265358979323846

static void must(halo_status st)
{
    if (st != HALO_OK) tap_bail("%s", halo_error_message(NULL));
}

static void test_wave(void)
{
    enum { N = 16 };
    static float x[N * N * N];
    const int64_t dim[3] = {N, N, N};
    hl_shell shell[8];
    hl_spectrum *s;
    double others = 0.0;

    for (int c = 0; c < N * N * N; c++)
        x[c] = (float)(5.0 * (1.0 + 0.2 * cos(2.0 * PI * 3.0 * (c / N % N) / N)));
    must(hl_spectrum_create(NULL, dim, 0, 0, &s));
    hl_spectrum_of(s, x, 1, 0.0, shell);
    for (int m = 0; m < 8; m++)
        if (m != 2) others = fmax(others, shell[m].power);
    double total = shell[2].power * 2.0 * shell[2].modes; /* both k and -k */
    tap_ok(fabs(total / (0.2 * 0.2 / 2.0) - 1.0) <= 1e-5 && others <= 1e-12,
           "a plane wave has all its power in its shell: %.1e", total / 0.02 - 1.0);
    tap_ok(fabs(shell[2].k - 3.0) <= 0.2 && hl_spectrum_shells(s) == 8, "at its wave number: %.3f",
           shell[2].k);
    hl_spectrum_destroy(s);
}

/* Unclustered particles: the spectrum is shot noise alone, at every k, whatever the cloud. */
static void test_shot_noise(hl_scheme scheme)
{
    enum { N = 16, COUNT = 20000 };
    static int64_t masses[N * N * N];
    static float x[N * N * N];
    const int64_t dim[3] = {N, N, N};
    hl_mesh m = hl_mesh_plain(N, 1, NULL);
    hl_shell shell[8];
    hl_spectrum *s;
    double low = 0.0, high = 0.0;

    memset(masses, 0, sizeof(masses));
    for (uint64_t i = 0; i < COUNT; i++) {
        double q[3];
        for (uint64_t d = 0; d < 3; d++) q[d] = hl_rng_uniform(21, HL_STREAM_TEST, i, d);
        hl_assign(scheme, &m, hl_scale_of(&m, 1.0, 0.0), &q[0], &q[1], &q[2], 1, false, masses);
    }
    for (int c = 0; c < N * N * N; c++) x[c] = (float)((double)masses[c] / HL_MASS_UNIT);
    must(hl_spectrum_create(NULL, dim, 0, (int)scheme, &s));
    hl_spectrum_of(s, x, 1, 1.0 / COUNT, shell);
    for (int i = 0; i < 4; i++) {
        low += shell[i].power / 4.0;
        high += shell[4 + i].power / 4.0;
    }
    tap_ok(fabs(low) * COUNT <= 0.3 && fabs(high) * COUNT <= 0.15,
           "%s: shot noise is taken out on all scales: %.3f and %.3f of it are left", hl_scheme_name(scheme),
           low * COUNT, high * COUNT);
    hl_spectrum_destroy(s);
}

static void test_ridge(void)
{
    const double gram[9] = {4, 1, 0.5, 1, 3, 0.2, 0.5, 0.2, 2}, truth[6] = {1, -1, 2, 0.5, -3, 4};
    const double singular[4] = {1, 1, 1, 1}, two[2] = {1, 1};
    double moment[6] = {0}, scratch[9], w[6], worst = 0.0, pair[2];

    for (int i = 0; i < 3; i++)
        for (int t = 0; t < 2; t++)
            for (int k = 0; k < 3; k++)
                moment[i * 2 + t] += (gram[i * 3 + k] + (i == k ? 0.7 : 0.0)) * truth[k * 2 + t];
    bool solved = hl_ridge_solve(3, 2, gram, moment, 0.7, scratch, w);
    for (int i = 0; i < 6; i++) worst = fmax(worst, fabs(w[i] - truth[i]));
    tap_ok(solved && worst <= 1e-13, "ridge regression solves its equations: %.1e", worst);
    tap_ok(!hl_ridge_solve(2, 1, singular, two, 0.0, scratch, pair), "and says when they have no solution");
    tap_ok(hl_ridge_solve(2, 1, singular, two, 1.0, scratch, pair) && fabs(pair[0] - 1.0 / 3.0) <= 1e-14,
           "which a penalty gives them");
}

static void make_universes(const char *out)
{
    static const char *const set[] = {"count=120",    "validation=20", "test=40", "grid=16",
                                      "particles=32", "steps=0",       "box=512"};
    hl_universes_settings s;

    must(hl_config_defaults(NULL, hl_universes_keys(), &s));
    for (size_t i = 0; i < HL_COUNT(set); i++)
        must(hl_config_override(NULL, hl_universes_keys(), &s, set[i]));
    snprintf(s.out, sizeof(s.out), "%s", out);
    halo_context *ctx;
    must(halo_context_create(NULL, &ctx));
    must(hl_universes_make(ctx, &s, NULL, NULL));
    halo_context_destroy(ctx);
}

static halo_status fit(const char *path, hl_baseline *b)
{
    hl_baseline_data data = {.path = path, .seed = 1};
    return hl_baseline_fit(NULL, &data, b);
}

static void test_baseline(const char *dir)
{
    char part[3][128], file[3][128];
    static const char *const name[3] = {"train", "val", "test"};
    hl_baseline b, packed;
    hl_packed p;

    must(fit(dir, &b));
    tap_ok(b.train == 120 && b.validation == 20 && b.test == 40 && b.targets == 3,
           "the baseline reads the three parts of a directory");
    tap_ok(b.target[1].error <= 0.65 * b.target[1].constant_error,
           "and learns sigma_8 from the spectrum: %.2f of the constant's error",
           b.target[1].error / b.target[1].constant_error);
    tap_ok(fabs(b.target[1].constant_error - 0.0425) <= 0.012,
           "the constant's error is near a quarter of the range: %.4f", b.target[1].constant_error);
    tap_ok(b.target[1].correlation > 0.8, "the correlation says the same: %.2f", b.target[1].correlation);
    for (int i = 0; i < 3; i++) {
        snprintf(part[i], sizeof(part[i]), "%s/%s", dir, name[i]);
        snprintf(file[i], sizeof(file[i]), "%s-packed/%s.h5", dir, name[i]);
    }
    char packed_dir[160];
    snprintf(packed_dir, sizeof(packed_dir), "%s-packed", dir);
    must(hl_make_dirs(NULL, packed_dir));
    for (int i = 0; i < 3; i++) must(hl_pack(NULL, part[i], file[i], 9, &p));
    tap_ok(p.samples == 40 && strcmp(p.type, "uint8") == 0, "small counts are packed in a byte each");
    must(fit(packed_dir, &packed));
    tap_ok(packed.target[1].error == b.target[1].error && strcmp(packed.target[1].name, "sigma_8") == 0,
           "and give the same baseline");
    hl_baseline_data three = {.part = {part[0], file[1], part[2]}};
    must(hl_baseline_fit(NULL, &three, &b));
    tap_ok(b.target[1].error == packed.target[1].error && b.target[0].error == packed.target[0].error, "so do three paths");
    must(fit(part[0], &b));
    tap_ok(b.train == 96 && b.validation == 12 && b.test == 12, "a single data set is split 80 : 10 : 10");
    tap_ok(fit("nowhere", &b) != HALO_OK,
           "a directory that is not there is refused: %s", halo_error_message(NULL));
}

static void test_inspect(const char *dir)
{
    char path[128], plot[128], *data;
    hl_str text = {0};
    hl_json json = {0};
    size_t bytes;

    snprintf(path, sizeof(path), "%s/test/universe-000000.hdf5", dir);
    snprintf(plot, sizeof(plot), "%s/a.png", dir);
    hl_json_object(&json, NULL);
    must(hl_universe_inspect(NULL, path, plot, &text, &json));
    hl_json_end_object(&json);
    tap_ok(strstr(text.s, "sigma_8") && strstr(text.s, "shot noise") && strstr(text.s, "modes"),
           "a universe is described");
    tap_ok(strstr(json.out.s, "\"spectrum\"") && strstr(json.out.s, "\"shot_noise\":"), "also in JSON");
    must(hl_file_read(NULL, plot, 4 << 20, &data, &bytes));
    tap_ok(bytes > 1000 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0 &&
               memcmp(data + bytes - 8, "IEND\xae\x42\x60\x82", 8) == 0,
           "its picture is a PNG file, to the checksum of its end");
    tap_ok(hl_is_universe(path) && !hl_is_universe(plot), "and a picture is no universe");
    free(data);
    hl_str_free(&text);
    hl_json_free(&json);
}

int main(void)
{
    char dir[64], command[160];

    snprintf(dir, sizeof(dir), "synth-baseline.%ld.d", (long)getpid());
    test_wave();
    test_shot_noise(HL_NGP);
    test_shot_noise(HL_CIC);
    test_shot_noise(HL_TSC);
    test_ridge();
    make_universes(dir);
    test_baseline(dir);
    test_inspect(dir);
    snprintf(command, sizeof(command), "rm -rf %s %s-packed", dir, dir);
    if (system(command) != 0) tap_note("'%s' stays", dir);
    return tap_done();
}
