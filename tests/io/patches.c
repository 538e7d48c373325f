/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of volumes of different extents: what they hold, what draws them, where their middles are, on any number of ranks, and transforms that need the whole volume. */
#include "tests/io/npytest.h"
#include "io/array.h"
#include "io/cutter.h"

enum { FILES = 5, CLASSES = 4 };
static const int64_t extents[FILES][3] = {{9, 12, 7}, {12, 8, 10}, {5, 6, 20}, {16, 16, 16}, {8, 8, 8}};
static const int64_t patch[3] = {8, 8, 8};

/* A voxel's value says where it is: 100000 file + index + 1. One of index 77 and two of 100 and 101 have classes. */
static void write_data(void)
{
    for (int f = 0; f < FILES; f++) {
        char name[32];
        const int64_t *e = extents[f];
        npy_form x = {.descr = "<f4", .version = 1, .ndim = 3, .dim = {e[0], e[1], e[2]}, .offset = 100000 * f + 1}, y = {.descr = "|u1", .version = 1, .ndim = 3, .dim = {e[0], e[1], e[2]}};
        snprintf(name, sizeof(name), "x/case_%d.npy", f);
        write_npy(in_dir(name), &x);
        hl_str mask = npy_text(&y);
        char *cell = mask.s + mask.len - e[0] * e[1] * e[2];
        memset(cell, 0, (size_t)(e[0] * e[1] * e[2]));
        if (f < 4) cell[77] = 1, cell[100] = cell[101] = 3;
        snprintf(name, sizeof(name), "y/case_%d.npy", f);
        put_file(in_dir(name), mask.s, mask.len);
        hl_str_free(&mask);
    }
}

static hl_source *open_data(halo_context *ctx)
{
    hl_source *s = NULL;
    static char path[1024], from[1024];
    snprintf(path, sizeof(path), "%s", in_dir("x"));
    snprintf(from, sizeof(from), "%s", in_dir("y"));
    hl_array_options a = {.x = "", .y = "", .y_from = from, .table = "", .classes = true};
    MUST(hl_source_open(ctx, &(hl_source_options){.path = path, .array = &a, .patch = {8, 8, 8}}, &s));
    return s;
}

static hl_loader_options options_of(int64_t batch)
{
    return (hl_loader_options){.batch = batch, .ranks = 1, .shuffle = true, .drop_last = true, .classes = CLASSES, .patch = true, .patches = 3, .foreground = 0.33, .seed = 7};
}

/* Whether x [8, 8, 8] is a patch of file `id`: the places that its voxels name lie side by side, and what is beyond is 0. *lo: its corner. */
static bool is_patch(const float *x, int64_t id, int64_t lo[3])
{
    const int64_t *e = extents[id];
    int64_t first = -1;
    for (int64_t i = 0; i < 512 && first < 0; i++)
        if (x[i] != 0) first = i;
    if (first < 0) return false;
    int64_t v = (int64_t)x[first] - 1 - 100000 * id, place[3] = {v / (e[1] * e[2]), v / e[2] % e[1], v % e[2]}, in[3] = {first / 64, first / 8 % 8, first % 8};
    for (int k = 0; k < 3; k++) lo[k] = place[k] - in[k];
    for (int64_t i = 0; i < 512; i++) {
        int64_t at[3] = {lo[0] + i / 64, lo[1] + i / 8 % 8, lo[2] + i % 8};
        bool inside = true;
        for (int k = 0; k < 3; k++) inside = inside && at[k] >= 0 && at[k] < e[k];
        float want = inside ? (float)(100000 * id + (at[0] * e[1] + at[1]) * e[2] + at[2] + 1) : 0;
        if (x[i] != want) return false;
    }
    return true;
}

static bool mask_fits(const float *y, const float *x, int64_t id)
{
    for (int64_t i = 0; i < 512; i++) {
        int64_t v = x[i] == 0 ? -1 : (int64_t)x[i] - 1 - 100000 * id;
        if (y[i] != (id == 4 ? 0.0f : v == 77 ? 1.0f : v == 100 || v == 101 ? 3.0f : 0.0f)) return false;
    }
    return true;
}

static void contents(halo_context *ctx, hl_source *s)
{
    hl_loader *l = NULL;
    hl_loader_options o = options_of(3);
    int seen[FILES] = {0}, moved = 0;
    bool patches = true, masks = true, inside = true;
    MUST(hl_loader_create(ctx, s, &o, &l));
    tap_ok(s->info.samples == FILES && memcmp(s->info.ext + 1, patch, sizeof(patch)) == 0 && memcmp(s->info.target_ext, patch, sizeof(patch)) == 0, "samples are patches for who asks: %s", s->info.description);
    tap_ok(hl_loader_steps(l) == 5, "an epoch has as many patches of each as are asked for");
    for (int epoch = 0; epoch < 4; epoch++) {
        const hl_loaded *b = NULL;
        MUST(hl_loader_start(l, epoch, 0));
        for (;;) {
            MUST(hl_loader_next(l, &b));
            if (!b) break;
            for (int64_t i = 0; i < b->samples; i++) {
                int64_t lo[3];
                seen[b->id[i]]++;
                patches = patches && is_patch(b->x + i * 512, b->id[i], lo);
                masks = masks && mask_fits(b->y + i * 512, b->x + i * 512, b->id[i]);
                for (int k = 0; k < 3; k++) {
                    int64_t n = extents[b->id[i]][k];
                    inside = inside && (n > 8 ? lo[k] >= 0 && lo[k] + 8 <= n : lo[k] == -((8 - n) / 2));
                    moved += lo[k] > 0;
                }
            }
        }
    }
    tap_ok(patches, "each is cells of its volume side by side, and 0 beyond it");
    tap_ok(masks, "with the classes of these voxels");
    tap_ok(inside && moved > 20, "inside where the volume is larger, about it where it is smaller");
    tap_ok(seen[0] == 12 && seen[1] == 12 && seen[2] == 12 && seen[3] == 12 && seen[4] == 12, "all volumes give as many");
    hl_loader_destroy(l);
}

/* All bits of an epoch, patch by patch in the order of the steps; parts of patches are put together. */
static void epoch_of(halo_context *ctx, hl_source *s, int64_t epoch, int ranks, bool cut, float *out)
{
    for (int r = 0; r < ranks; r++)
        for (int half = 0; half < (cut ? 2 : 1); half++) {
            hl_loader *l = NULL;
            hl_loader_options o = options_of(5);
            o.rank = r;
            o.ranks = ranks;
            o.cube = true;
            if (cut) o.x = o.y = o.own = (hl_cells){.lo = {0, 0, 3 * half}, .ext = {8, 8, half ? 5 : 3}};
            const int64_t width = cut ? o.x.ext[2] : 8;
            MUST(hl_loader_create(ctx, s, &o, &l));
            MUST(hl_loader_start(l, epoch, 0));
            for (int step = 0;; step++) {
                const hl_loaded *b = NULL;
                MUST(hl_loader_next(l, &b));
                if (!b) break;
                for (int64_t i = 0; i < b->samples; i++)
                    for (int64_t row = 0; row < 64; row++)
                        memcpy(out + ((step * 5 + b->first_sample + i) * 64 + row) * 8 + 3 * half, b->x + (i * 64 + row) * width, (size_t)width * sizeof(float));
            }
            hl_loader_destroy(l);
        }
}

static void ranks(halo_context *ctx, hl_source *s)
{
    static float one[15 * 512], other[15 * 512];
    epoch_of(ctx, s, 2, 1, false, one);
    epoch_of(ctx, s, 2, 3, false, other);
    tap_ok(memcmp(one, other, sizeof(one)) == 0, "3 ranks have the patches of one");
    memset(other, 0, sizeof(other));
    epoch_of(ctx, s, 2, 1, true, other);
    tap_ok(memcmp(one, other, sizeof(one)) == 0, "and those who hold parts of a patch have parts of the same, turned as it is");
    epoch_of(ctx, s, 3, 1, false, other);
    tap_ok(memcmp(one, other, sizeof(one)) != 0, "another epoch has others");
}

static void middles(halo_context *ctx, hl_source *s)
{
    enum { DRAWS = 2000 };
    hl_cutter *c;
    hl_loader_options o = options_of(1);
    o.patches = DRAWS;
    MUST(hl_cutter_create(s, &o, &c));
    int at77 = 0, at100 = 0;
    for (int i = 0; i < DRAWS; i++) {
        int64_t lo[3], *lowest = lo;
        MUST(hl_cutter_draw(c, 1, 3, i, patch, lo));
        int64_t v[2][3] = {{0, 77 / 16, 77 % 16}, {0, 100 / 16, 100 % 16}}; /* d is 0, so that the patch begins there */
        int64_t want[2][2];
        for (int k = 0; k < 2; k++)
            for (int a = 1; a < 3; a++) want[k][a - 1] = hl_min64(8, hl_max64(0, v[k][a] - 4));
        at77 += lowest[0] == 0 && lo[1] == want[0][0] && lo[2] == want[0][1];
        at100 += lowest[0] == 0 && lo[1] == want[1][0] && (lo[2] == want[1][1] || lo[2] == want[1][1] + 1);
    }
    double a = (double)at77 / DRAWS, b = (double)at100 / DRAWS;
    tap_ok(a > 0.13 && a < 0.21 && b > 0.13 && b < 0.21, "a third of the middles are labelled voxels, of each class as many: %.3f and %.3f", a, b);
    int64_t lo[3], again[3];
    MUST(hl_cutter_draw(c, 5, 4, 0, patch, lo));
    MUST(hl_cutter_draw(c, 5, 4, 0, patch, again));
    tap_ok(memcmp(lo, again, sizeof(lo)) == 0, "of a volume without labels patches are drawn too");
    hl_cutter_destroy(c);
}

static void transforms(halo_context *ctx, hl_source *s)
{
    hl_cutter *plain, *scored;
    hl_loader_options o = options_of(1);
    hl_cells box = {.lo = {3, -2, 9}, .ext = {4, 5, 6}};
    float x[120], z[120];
    MUST(hl_cutter_create(s, &o, &plain));
    o.transforms = 2;
    o.transform[0] = HL_OVER_MEAN;
    o.transform[1] = HL_ZSCORE;
    MUST(hl_cutter_create(s, &o, &scored));
    MUST(hl_cutter_read(plain, 1, &box, x, NULL));
    MUST(hl_cutter_read(scored, 1, &box, z, NULL));
    double n = 12 * 8 * 10, mean = 100001 + (n - 1) / 2, std = sqrt((n * n - 1) / 12), worst = 0;
    bool beyond = true;
    for (int i = 0; i < 120; i++) {
        if (x[i] == 0) beyond = beyond && z[i] == 0;
        else worst = fmax(worst, fabs((double)z[i] - ((double)x[i] - mean) / std));
    }
    tap_ok(worst < 2e-3 && beyond, "z-scores are those of the whole volume: off by %.1e", worst);
    hl_moments m;
    MUST(hl_cutter_moments(scored, 3, 0, &m));
    tap_ok(m.n == 4096 && fabs(m.mean - (300001 + 2047.5)) < 1e-6, "whose moments are found slab by slab");
    hl_cutter_destroy(plain);
    hl_cutter_destroy(scored);
}

static void errors(halo_context *ctx)
{
    hl_source *s = NULL;
    char path[1024], from[1024];
    npy_form f = {.descr = "|u1", .version = 1, .ndim = 3, .dim = {4, 4, 4}};
    snprintf(path, sizeof(path), "%s", in_dir("x"));
    snprintf(from, sizeof(from), "%s", in_dir("y"));
    hl_array_options a = {.x = "", .y = "", .y_from = from, .table = "", .classes = true};
    hl_source_options o = {.path = path, .array = &a, .patch = {8, 8, 8}};
    write_npy(in_dir("y/case_2.npy"), &f);
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_SHAPE, "case_2.npy' has targets of [4, 4, 4]", "which has [5, 6, 20]", "a mask of other extents");
    f.dim[3] = 2, f.ndim = 4;
    write_npy(in_dir("x/case_1.npy"), &f);
    a.y_from = "";
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_SHAPE, "case_1.npy' is [4, 4, 4, 2] uint8", "as in 'case_0.npy'", "an array of other axes");
}

/* Predicted volumes of different extents. */
static void predictions(halo_context *ctx)
{
    const hl_target target[2] = {{.name = "a"}, {.name = "b"}};
    const int64_t all[4] = {2, 1, 2, 3}, other[3] = {2, 2, 2}, lo[4] = {0, 0, 0, 0}, lo_b[4] = {1, 0, 0, 0}, ext[4] = {1, 2, 2, 2}, start[4] = {0, 0, 0, 0};
    const float v[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}, w[8] = {0, 0.5f, 1, 1, 1, 1, 1, -1};
    hl_volumes *volumes = NULL;
    hl_array *a, *b;
    uint8_t x[12];
    float y[16];
    MUST(hl_volumes_create_arrays(ctx, in_dir("predictions"), all, target, &volumes));
    MUST(hl_volumes_add(volumes, "one.npy", NULL, 0, all + 1));
    MUST(hl_volumes_put(volumes, lo, all, v));
    MUST(hl_volumes_add(volumes, "two.h5#3/1", NULL, 0, other));
    MUST(hl_volumes_put(volumes, lo_b, ext, w));
    MUST(hl_volumes_close(volumes, true));
    MUST(hl_array_open(ctx, in_dir("predictions/one.npy"), "", NULL, &a));
    MUST(hl_array_open(ctx, in_dir("predictions/two.h5#3_1.npy"), "", NULL, &b));
    bool good = a->bytes == sizeof(x) && b->bytes == sizeof(y) && a->ndim == 4 && b->dim[0] == 2 && b->dim[3] == 2;
    if (good) MUST(hl_array_read(a, start, a->dim, x, sizeof(x)));
    if (good) MUST(hl_array_read(b, start, b->dim, y, sizeof(y)));
    for (int i = 0; i < 12 && good; i++) good = (float)x[i] == v[i];
    for (int i = 0; i < 8 && good; i++) good = y[i] == 0 && y[8 + i] == w[i];
    tap_ok(good, "predictions of different extents are arrays of their own, of bytes where they fit");
    hl_array_close(a);
    hl_array_close(b);
}

int main(void)
{
    halo_context *ctx = iotest_begin("patches");
    if (mkdir(in_dir("x"), 0777) != 0 || mkdir(in_dir("y"), 0777) != 0) tap_bail("cannot make directories");
    write_data();
    hl_source *s = open_data(ctx);
    contents(ctx, s);
    ranks(ctx, s);
    middles(ctx, s);
    transforms(ctx, s);
    hl_source_close(s);
    errors(ctx);
    predictions(ctx);
    return iotest_end(ctx);
}
