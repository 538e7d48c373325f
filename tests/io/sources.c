/* SPDX-License-Identifier: Apache-2.0 */
/* sources.c -- both data layouts as files have them: sub-volumes, groups, targets and their ranges; synthetic data. What bad files get is in refused.c. */
#include "tests/io/layouts.h"
#include "base/file.h"
#include "base/json.h"
#include "io/universe.h"

static void crops(halo_context *ctx, const universe_form *f, const char *dir)
{
    const char *path = write_universes(dir, f);
    hl_source *s = open_source(
        ctx, (hl_source_options){
                 .path = path, .crop = {4, 4, 2}, .channels = 3, .size = {4, 4, 2}, .outputs = f->targets});
    bool values = s->info.dtype == HALO_I16 || s->info.dtype == HALO_I32 || s->info.dtype == HALO_F32,
         targets = true, groups = true;
    union {
        int16_t i[3 * 32];
        int32_t l[3 * 32];
        float f[3 * 32];
    } x;
    float y[8];
    tap_ok(s->info.samples == U * 16 && s->info.groups == U && s->info.ext[0] == 3 && s->info.ext[1] == 4 &&
               s->info.ext[3] == 2 && !s->info.whole_periodic,
           "%s", s->info.description);
    for (int64_t sample = 0; sample < s->info.samples; sample++) {
        int u = (int)sample / 16, crop = (int)sample % 16,
            lo[3] = {crop / 8 * 4, crop / 4 % 2 * 4, crop % 4 * 2};
        MUST(hl_source_read(s, sample, NULL, &x, NULL, y));
        for (int i = 0; i < 3 * 32; i++) {
            int want = count_at(u, lo[0] + i / 8 % 4, lo[1] + i / 2 % 4, lo[2] + i % 2, i / 32);
            values = values && (s->info.dtype == HALO_I16   ? x.i[i] == (int16_t)want
                                : s->info.dtype == HALO_I32 ? x.l[i] == want
                                                            : x.f[i] == (float)want);
        }
        for (int t = 0; t < f->targets; t++) targets = targets && y[t] == unit_of(u, t);
        groups = groups && s->ops->group_of(s, sample) == u;
    }
    char id[64];
    s->ops->id_of(s, 37, id, sizeof(id));
    tap_ok(values, "sub-volumes are numbered x-major, the first channels are delivered, channel by channel");
    tap_ok(targets && groups, "every sub-volume has its universe's targets and group");
    tap_ok(strcmp(id, "ics_2.hdf5#5") == 0, "and a name: %s", id);
    hl_source_close(s);
}

static void meanings(halo_context *ctx)
{
    universe_form f = {.type = H5T_STD_I16LE, .targets = 4, .limits = true, .names = true};
    hl_source *s = open_source(ctx, (hl_source_options){.path = write_universes("limits", &f)});
    const hl_target *t = s->info.target;
    tap_ok(strcmp(t[2].name, "c") == 0 && t[2].low == 20 && t[2].high == 24 && isnan(t[2].std),
           "names from namePar, ranges from the attributes of unitPar");
    tap_ok(s->info.whole_periodic && s->info.samples == U, "a whole universe is a periodic box");
    hl_source_close(s);
    f = (universe_form){.type = H5T_STD_I16LE, .targets = 3, .physical = true};
    s = open_source(ctx, (hl_source_options){.path = write_universes("physical", &f)});
    t = s->info.target;
    tap_ok(strcmp(t[1].name, "target_1") == 0 && fabs(t[1].low - 10) < 1e-6 && fabs(t[1].high - 14) < 1e-6,
           "ranges from the line through unitPar and physPar");
    hl_source_close(s);
    f = (universe_form){.type = H5T_STD_I16LE, .targets = 4};
    s = open_source(ctx, (hl_source_options){.path = write_universes("bare", &f), .format = "cosmouniverse"});
    t = s->info.target;
    tap_ok(strcmp(t[1].name, "sigma_8") == 0 && t[1].low == 0.72 && t[1].high == 0.88,
           "with neither, four targets are the published ones");
    hl_source_close(s);
    f = (universe_form){.type = H5T_STD_I16LE, .targets = 2};
    s = open_source(ctx, (hl_source_options){.path = write_universes("two", &f)});
    tap_ok(isnan(s->info.target[0].low), "two are of unknown range");
    hl_source_close(s);
    s = open_source(ctx, (hl_source_options){.path = in_dir("two"), .group_first = 1, .group_count = 2});
    float y[2];
    int16_t x[N * N * N * C];
    MUST(hl_source_read(s, 0, NULL, x, NULL, y));
    tap_ok(s->info.samples == 2 && y[0] == unit_of(1, 0), "a part of the universes");
    hl_source_close(s);
    const char *list = in_dir("list.txt");
    MUST(hl_file_write(ctx, list, "# two of them\ntwo/ics_3.hdf5\n\n  two/ics_0.hdf5\r\n", 48));
    s = open_source(ctx, (hl_source_options){.path = list});
    MUST(hl_source_read(s, 0, NULL, x, NULL, y));
    tap_ok(s->info.samples == 2 && y[0] == unit_of(3, 0), "a list of files, in its own order");
    hl_source_close(s);
}

static void from_our_writer(halo_context *ctx)
{
    float full[N * N * N * 2];
    for (int i = 0; i < N * N * N * 2; i++) full[i] = (float)(i % 3000);
    hl_universe_file u = {
        .ext = {N, N, N, 2},
        .integer = true,
        .full = full,
        .parameters = 1,
        .parameter = {{.name = "Omega_m", .physical = 0.3, .unit = 0.5, .low = 0.2, .high = 0.333}},
        .redshifts = 0,
        .box = NAN,
        .particles = NAN};
    MUST(hl_universe_write(ctx, in_dir("u.hdf5"), &u));
    hl_source *s = open_source(ctx, (hl_source_options){.path = in_dir("u.hdf5"), .outputs = 1});
    static int16_t x[N * N * N * 2];
    float y = 0;
    bool good = true;
    MUST(hl_source_read(s, 0, NULL, x, NULL, &y));
    for (int i = 0; i < N * N * N; i++)
        good = good && x[i] == (int16_t)full[2 * i] && x[N * N * N + i] == (int16_t)full[2 * i + 1];
    tap_ok(good && y == 0.5f && s->info.target[0].high == 0.333 &&
               strcmp(s->info.target[0].name, "Omega_m") == 0,
           "what the universe writer writes is read");
    hl_source_close(s);
}

/* ------------------------------------------------------------------------------------------ halo's layout */

static void types(halo_context *ctx)
{
    const halo_dtype type[] = {HALO_U8, HALO_I16, HALO_I32, HALO_F32, HALO_F64};
    for (size_t k = 0; k < HL_COUNT(type); k++)
        for (int level = 0; level < 5; level += 4) {
            const char *path = in_dir("types.h5");
            char want[120 * 8], got[120 * 8];
            float y[2];
            bool good = true;
            write_halo(ctx, path, type[k], 5, 0, level, two_targets, false);
            hl_source *s = open_source(
                ctx, (hl_source_options){.path = path, .size = {3, 4, 5}, .channels = 2, .outputs = 2});
            for (int i = 4; i >= 0; i--) {
                memset(want, 0, sizeof(want));
                memset(got, 0, sizeof(got));
                fill(want, type[k], i, 120);
                MUST(hl_source_read(s, i, NULL, got, NULL, y));
                good = good && memcmp(want, got, sizeof(want)) == 0 && y[0] == (float)i && y[1] == (float)-i;
            }
            tap_ok(good && s->info.dtype == type[k] && s->info.whole_periodic && s->info.groups == 5 &&
                       s->info.target[0].high == 2 && strcmp(s->info.target[1].name, "radius of it") == 0,
                   "%s written, read: %s", level ? "deflated" : "plain", s->info.description);
            hl_source_close(s);
        }
}

static void several_files(halo_context *ctx)
{
    mkdir(in_dir("halo"), 0777);
    write_halo(ctx, in_dir("halo/a.h5"), HALO_I16, 4, 0, 0, two_targets, true);
    write_halo(ctx, in_dir("halo/b.h5"), HALO_I16, 5, 4, 0, two_targets, true);
    hl_source *s = open_source(ctx, (hl_source_options){.path = in_dir("halo")});
    int16_t want[120], got[120];
    float y[2];
    bool good = true;
    for (int i = 0; i < 9; i++) {
        fill(want, HALO_I16, i, 120);
        MUST(hl_source_read(s, i, NULL, got, NULL, y));
        good = good && memcmp(want, got, sizeof(want)) == 0 && y[0] == (float)i &&
               s->ops->group_of(s, i) == 4 - i / 2;
    }
    tap_ok(good && s->info.samples == 9 && s->info.groups == 5,
           "two files are one set; groups are numbered by their ids: %s", s->info.description);
    hl_source_close(s);
    s = open_source(ctx, (hl_source_options){
                             .path = in_dir("halo"), .group_first = 1, .group_count = 2, .crop = {3, 2, 5}});
    MUST(hl_source_read(s, 1, NULL, got, NULL, y)); /* groups 1 and 2 are samples 6 7 and 4 5, in file order 4 5 6 7; crop 1 of sample 4 */
    fill(want, HALO_I16, 4, 120);
    char id[64];
    s->ops->id_of(s, 1, id, sizeof(id));
    for (int i = 0; i < 60; i++) good = good && got[i] == want[i / 10 * 20 + 10 + i % 10];
    tap_ok(good && s->info.samples == 8 && y[0] == 4 && s->ops->group_of(s, 1) == 1 &&
               strcmp(id, "b.h5#0/1") == 0,
           "a part of the groups, in sub-volumes: %s", id);
    hl_source_close(s);
}

static void no_targets(halo_context *ctx)
{
    hl_writer *w = NULL;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got[8], y[1];
    MUST(hl_writer_create(ctx, in_dir("x.h5"), &(hl_writer_options){.ext = {1, 2, 2, 2}, .dtype = HALO_F32},
                          &w));
    MUST(hl_writer_add(w, x, NULL, -1));
    MUST(hl_writer_close(w, true));
    hl_source *s = open_source(ctx, (hl_source_options){.path = in_dir("x.h5")});
    MUST(hl_source_read(s, 0, NULL, got, NULL, y));
    tap_ok(s->info.targets == 0 && memcmp(x, got, sizeof(x)) == 0, "volumes without targets can be read");
    hl_source_close(s);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = in_dir("x.h5"), .outputs = 2}), HALO_ERR_FORMAT,
               "x.h5", "no dataset 'y'", "but not trained on");
    MUST(hl_writer_create(ctx, in_dir("given-up.h5"),
                          &(hl_writer_options){.ext = {1, 2, 2, 2}, .dtype = HALO_F32}, &w));
    MUST(hl_writer_add(w, x, NULL, -1));
    hl_writer_close(w, false);
    tap_ok(access(in_dir("given-up.h5"), F_OK) != 0 && leftovers() == 0,
           "a file that is given up leaves nothing");
}

/* Class numbers of voxels: each class is there, and where it is higher the volume is. */
static void synthetic_classes(halo_context *ctx)
{
    enum { SIDE = 16, CELLS = SIDE * SIDE * SIDE, CLASSES = 3, SAMPLES = 4 };
    hl_source *s = open_source(ctx, (hl_source_options){.synthetic = true, .seed = 3, .channels = 1, .size = {SIDE, SIDE, SIDE}, .outputs = 1,
                                                        .target_ext = {SIDE, SIDE, SIDE}, .classes = CLASSES, .synthetic_samples = SAMPLES});
    static float x[CELLS], y[CELLS];
    double sum[CLASSES] = {0}, count[CLASSES] = {0};
    bool whole = true;
    for (int n = 0; n < SAMPLES; n++) {
        MUST(hl_source_read(s, n, NULL, x, NULL, y));
        for (int i = 0; i < CELLS; i++) {
            int k = (int)y[i];
            whole = whole && y[i] == (float)k && k >= 0 && k < CLASSES;
            if (!whole) break;
            sum[k] += (double)x[i];
            count[k]++;
        }
    }
    tap_ok(whole && count[0] > 0.25 * CELLS * SAMPLES && count[1] > 0.25 * CELLS * SAMPLES && count[2] > 0.25 * CELLS * SAMPLES,
           "synthetic classes are 0 to 2, each of about a third of the cells: %.0f %.0f %.0f", count[0], count[1], count[2]);
    tap_ok(sum[0] / count[0] < 0.9 * sum[1] / count[1] && sum[1] / count[1] < 0.9 * sum[2] / count[2], "and shown by the volume: %.2f %.2f %.2f",
           sum[0] / count[0], sum[1] / count[1], sum[2] / count[2]);
    hl_source_close(s);
}

static void synthetic(halo_context *ctx)
{
    hl_source_options o = {.synthetic = true,
                           .seed = 3,
                           .channels = 2,
                           .size = {8, 6, 10},
                           .outputs = 5,
                           .synthetic_samples = 40};
    hl_source *a = open_source(ctx, o), *b;
    static float x[960], x2[960];
    float y[5], y2[5], least = 1e9f;
    o.group_first = 7;
    o.group_count = 3;
    b = open_source(ctx, o);
    MUST(hl_source_read(a, 9, NULL, x, NULL, y));
    MUST(hl_source_read(b, 2, NULL, x2, NULL, y2));
    tap_ok(memcmp(x, x2, sizeof(x)) == 0 && memcmp(y, y2, sizeof(y)) == 0 && b->info.samples == 3,
           "a synthetic sample depends on seed and global number alone");
    hl_source_close(b);
    o.seed = 4;
    b = open_source(ctx, o);
    MUST(hl_source_read(b, 2, NULL, x2, NULL, y2));
    tap_ok(memcmp(x, x2, sizeof(x)) != 0, "another seed is another set");
    double var[40], width[40], mean[40], t1[40], c0 = 0, c1 = 0;
    for (int s = 0; s < 40; s++) {
        double m = 0, v = 0;
        MUST(hl_source_read(a, s, NULL, x, NULL, y));
        for (int i = 0; i < 960; i++) {
            m += (double)x[i] / 960;
            least = x[i] < least ? x[i] : least;
        }
        for (int i = 0; i < 960; i++) v += ((double)x[i] - m) * ((double)x[i] - m) / 960;
        var[s] = sqrt(v) / m, width[s] = (double)y[0], mean[s] = m, t1[s] = (double)y[1];
    }
    for (int s = 0; s < 40; s++)
        for (int t = 0; t < s; t++) {
            c0 += (var[s] > var[t]) == (width[s] > width[t]);
            c1 += (mean[s] > mean[t]) == (t1[s] > t1[t]);
        }
    tap_ok(least > 0 && c0 > 0.8 * 780 && c1 > 0.9 * 780,
           "its volumes are positive and show their targets: %.0f and %.0f of 780 pairs are in order", c0,
           c1);
    hl_source_close(a);
    hl_source_close(b);
}

/* ---------------------------------------------------------------------------------------------- bad input */

static void inspection(halo_context *ctx)
{
    hl_str text = {0};
    hl_json json = {0};
    hl_json_object(&json, NULL);
    MUST(hl_data_inspect(ctx, in_dir("halo"), &text, &json));
    hl_json_end_object(&json);
    tap_ok(strstr(text.s, "9 samples of 2 x 3 x 4 x 5 int16") && strstr(text.s, "mass") &&
               strstr(text.s, "1 .. 2"),
           "inspected as text");
    tap_ok(strstr(json.out.s, "\"samples\": 9") && strstr(json.out.s, "\"name\": \"y\""),
           "and as JSON: %.100s...", json.out.s);
    hl_str_free(&text);
    hl_json_free(&json);
    text = (hl_str){0};
    json = (hl_json){0};
    MUST(hl_data_inspect(ctx, in_dir("limits"), &text, &json));
    tap_ok(strstr(text.s, "4 universes") && strstr(text.s, "20 .. 24"), "universes too");
    hl_str_free(&text);
    hl_json_free(&json);
}

int main(void)
{
    halo_context *ctx = iotest_begin("sources");
    crops(ctx, &(universe_form){.type = H5T_STD_I16LE, .targets = 4}, "le");
    crops(ctx, &(universe_form){.type = H5T_STD_I16BE, .targets = 4, .chunked = true}, "be");
    crops(ctx, &(universe_form){.type = H5T_IEEE_F32LE, .targets = 3, .chunked = true}, "float");
    crops(ctx, &(universe_form){.type = H5T_STD_U16LE, .targets = 1}, "u16");
    meanings(ctx);
    from_our_writer(ctx);
    types(ctx);
    several_files(ctx);
    no_targets(ctx);
    synthetic(ctx);
    synthetic_classes(ctx);
    inspection(ctx);
    return iotest_end(ctx);
}
