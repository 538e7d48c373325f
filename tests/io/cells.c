/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of samples: any cells of any source beside the whole sample, wrapped around its borders; of turned and shifted samples; sums over a sample that nobody
 * has; and what reading costs, counted. */
#include "tests/io/iotest.h"
#include "io/cells.h"
#include "io/h5.h"
#include "io/universe.h"
#include "io/writer.h"
#include "tensor/grid.h"

static int64_t below(uint64_t *state, int64_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((*state >> 33) % (uint64_t)n);
}

static hl_source *open_source(halo_context *ctx, hl_source_options o)
{
    hl_source *s = NULL;
    MUST(hl_source_open(ctx, &o, &s));
    return s;
}

static float *floats(int64_t n)
{
    float *x = calloc((size_t)n, sizeof(*x));
    if (!x) tap_bail("out of memory");
    return x;
}

static int64_t wrap(int64_t i, int64_t n) { return ((i % n) + n) % n; }

/* ------------------------------------------------------------------------------------------------------ files */

enum { SAMPLES = 5, CHANNELS = 3 };
static const int64_t side[3] = {12, 10, 14};

static float value_at(int64_t i) { return (float)((i * 2654435761) % 100003) + 1; }

/* x and y, [SAMPLES, CHANNELS or 2, D, H, W], contiguous, or chunked and deflated. */
static void write_volumes(halo_context *ctx, const char *path, const int64_t ext[3], const hsize_t *chunk)
{
    for (int which = 0; which < 2; which++) {
        int64_t channels = which ? 2 : CHANNELS, n = SAMPLES * channels * ext[0] * ext[1] * ext[2];
        hsize_t dim[5] = {SAMPLES, (hsize_t)channels, (hsize_t)ext[0], (hsize_t)ext[1], (hsize_t)ext[2]}, c[5] = {1, 1};
        float *v = floats(n);
        for (int64_t i = 0; i < n; i++) v[i] = value_at(i + which);
        hid_t file = which ? H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT) : H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
              space = H5Screate_simple(5, dim, NULL), p = H5Pcreate(H5P_DATASET_CREATE);
        if (chunk) {
            memcpy(c + 2, chunk, 3 * sizeof(*chunk));
            H5Pset_chunk(p, 5, c);
            H5Pset_deflate(p, 1);
        }
        hid_t set = H5Dcreate2(file, which ? "y" : "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, p, H5P_DEFAULT);
        if (H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) < 0) tap_bail("cannot write '%s'", path);
        double one = 1;
        hid_t scalar = H5Screate(H5S_SCALAR);
        if (!which) {
            hid_t a = H5Acreate2(set, "periodic", H5T_IEEE_F64LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
            H5Awrite(a, H5T_NATIVE_DOUBLE, &one);
            H5Aclose(a);
        }
        H5Sclose(scalar), H5Dclose(set), H5Pclose(p), H5Sclose(space), H5Fclose(file);
        free(v);
    }
    (void)ctx;
}

static void write_universe(halo_context *ctx, const char *path)
{
    hl_universe_file u = {.ext = {side[0], side[1], side[2], CHANNELS}, .integer = true, .parameters = 1};
    int64_t n = side[0] * side[1] * side[2] * CHANNELS;
    u.full = floats(n);
    for (int64_t i = 0; i < n; i++) u.full[i] = (float)(i * 7919 % 32000);
    u.parameter[0] = (hl_universe_parameter){.name = "a", .physical = 1, .unit = 0.5, .low = 0, .high = 2};
    MUST(hl_universe_write(ctx, path, &u));
    free(u.full);
}

/* ------------------------------------------------------------------------------------------------------ reading */

/* Random cells of [-n, 2n) in every axis; whether they are those of the whole, for x or y. */
static bool cells_agree(halo_context *ctx, hl_source *s, bool target, uint64_t *state)
{
    const int64_t *n = target ? s->info.target_ext : s->info.ext + 1, channels = target ? s->info.targets : s->info.ext[0];
    size_t bytes = target ? sizeof(float) : hl_dtype_size(s->info.dtype);
    hl_cells c;
    for (int k = 0; k < 3; k++) {
        c.lo[k] = below(state, 3 * n[k]) - n[k];
        c.ext[k] = 1 + below(state, n[k] + 3);
    }
    int64_t cells = n[0] * n[1] * n[2], part = hl_cells_count(&c), sample = below(state, s->info.samples);
    char *whole = calloc((size_t)(channels * cells), bytes), *got = calloc((size_t)(channels * part), bytes);
    if (!whole || !got) tap_bail("out of memory");
    MUST(hl_source_read(s, sample, NULL, target ? NULL : whole, NULL, target ? (float *)whole : NULL));
    MUST(hl_source_read(s, sample, &c, target ? NULL : got, &c, target ? (float *)got : NULL));
    bool same = true;
    for (int64_t i = 0; i < channels * part; i++) {
        int64_t in[3], local = i % part;
        const int64_t at[3] = {local / (c.ext[1] * c.ext[2]), local / c.ext[2] % c.ext[1], local % c.ext[2]};
        for (int k = 0; k < 3; k++) in[k] = wrap(c.lo[k] + at[k], n[k]);
        int64_t from = ((i / part * n[0] + in[0]) * n[1] + in[1]) * n[2] + in[2];
        same = same && memcmp(got + (size_t)i * bytes, whole + (size_t)from * bytes, bytes) == 0;
    }
    if (!same)
        tap_note("cells %" PRId64 " %" PRId64 " %" PRId64 " + %" PRId64 " %" PRId64 " %" PRId64, c.lo[0], c.lo[1], c.lo[2], c.ext[0], c.ext[1], c.ext[2]);
    free(whole);
    free(got);
    return same;
}

static void any_cells(halo_context *ctx, const hl_source_options *o)
{
    uint64_t state = 42;
    hl_source *s = open_source(ctx, *o);
    bool same = true;
    for (int i = 0; i < 40 && same; i++) same = cells_agree(ctx, s, false, &state) && (!hl_target_volumes(&s->info) || cells_agree(ctx, s, true, &state));
    tap_ok(same, "40 parts, wrapped where they reach out, are those of whole samples: %s", s->info.description);
    hl_source_close(s);
}

/* ------------------------------------------------------------------------------------------------------ loader */

typedef struct gathered { float *x, *y; } gathered;

/* All batches of an epoch put together from the loaders of `part` processes that hold each sample together, each with `margin` cells around its block. */
static gathered load_all(halo_context *ctx, hl_source *s, hl_loader_options o, const int64_t part[3], int64_t margin)
{
    const int64_t *n = s->info.ext + 1, cells = n[0] * n[1] * n[2], values = hl_target_values(&s->info), ranks = part[0] * part[1] * part[2];
    gathered g = {floats((s->info.samples + o.batch) * s->info.ext[0] * cells), floats((s->info.samples + o.batch) * values)}; /* with padding */
    hl_loader **l = calloc((size_t)ranks, sizeof(*l));
    const hl_loaded **b = calloc((size_t)ranks, sizeof(*b));
    hl_loader_options *of = calloc((size_t)ranks, sizeof(*of));
    if (!l || !b || !of) tap_bail("out of memory");
    o.ranks = 1;
    for (int64_t r = 0; r < ranks; r++) {
        hl_grid grid = hl_grid_of(ranks, part, r);
        of[r] = o;
        for (int k = 0; k < 3; k++) {
            hl_range own = hl_grid_range(&grid, k, n[k]);
            int64_t around = part[k] > 1 ? margin : 0;
            of[r].own.lo[k] = own.lo;
            of[r].own.ext[k] = own.hi - own.lo;
            of[r].x.lo[k] = own.lo - around;
            of[r].x.ext[k] = own.hi - own.lo + 2 * around;
        }
        of[r].y = of[r].own;
        MUST(hl_loader_create(ctx, s, &of[r], &l[r]));
        MUST(hl_loader_start(l[r], 1, 0));
    }
    for (int64_t at = 0;;) {
        for (int64_t r = 0; r < ranks; r++) MUST(hl_loader_next(l[r], &b[r]));
        if (!b[0]) break;
        int transforms, k = hl_loader_pending(l[0], &transforms);
        for (int first = k; k < transforms; k++) {
            hl_moments *all = calloc((size_t)b[0]->samples, sizeof(*all)), *mine = calloc((size_t)b[0]->samples, sizeof(*mine));
            for (int64_t r = 0; r < ranks && hl_loader_needs(l[0], k); r++) {
                hl_loader_moments(l[r], b[r], mine);
                if (k == first && memcmp(mine, b[r]->moments, (size_t)b[0]->samples * sizeof(*mine)) != 0) tap_bail("other moments");
                for (int64_t i = 0; i < b[0]->samples; i++) all[i] = hl_moments_merge(all[i], mine[i]);
            }
            for (int64_t r = 0; r < ranks; r++) MUST(hl_loader_apply(l[r], b[r], k, all));
            free(all);
            free(mine);
        }
        for (int64_t r = 0; r < ranks; r++)
            for (int64_t i = 0; i < b[r]->samples * s->info.ext[0] * hl_cells_count(&of[r].x); i++) { /* margins too: all must agree */
                const int64_t *e = of[r].x.ext, local = i % (e[0] * e[1] * e[2]), c = i / (e[0] * e[1] * e[2]);
                const int64_t in[3] = {wrap(of[r].x.lo[0] + local / (e[1] * e[2]), n[0]), wrap(of[r].x.lo[1] + local / e[2] % e[1], n[1]),
                                       wrap(of[r].x.lo[2] + local % e[2], n[2])};
                float *to = g.x + ((((at * s->info.ext[0] + c) * n[0] + in[0]) * n[1] + in[1]) * n[2] + in[2]);
                if (*to != 0 && *to != b[r]->x[i]) tap_bail("margins differ from what they are margins of");
                *to = b[r]->x[i];
            }
        for (int64_t r = 0; r < ranks; r++)
            for (int64_t i = 0; i < b[r]->samples * values / (hl_target_volumes(&s->info) ? cells : 1); i++)
                if (!hl_target_volumes(&s->info)) g.y[at * values + i] = b[r]->y[i];
                else
                    for (int64_t local = 0; local < hl_cells_count(&of[r].y); local++) {
                        int64_t in[3];
                        hl_cells_at(&of[r].y, n, local, in);
                        g.y[at * values + ((i * n[0] + in[0]) * n[1] + in[1]) * n[2] + in[2]] = b[r]->y[i * hl_cells_count(&of[r].y) + local];
                    }
        at += b[0]->samples;
    }
    for (int64_t r = 0; r < ranks; r++) hl_loader_destroy(l[r]);
    free(l), free(b), free(of);
    return g;
}

static double difference(const float *a, const float *b, int64_t n)
{
    double most = 0, d = 0;
    for (int64_t i = 0; i < n; i++) {
        d = fmax(d, fabs((double)a[i] - (double)b[i]));
        most = fmax(most, fabs((double)b[i]));
    }
    return most > 0 ? d / most : NAN;
}

static void put_together(halo_context *ctx, hl_source *s, hl_loader_options o, double most, const char *what)
{
    static const int64_t part[][3] = {{2, 1, 1}, {1, 3, 1}, {1, 1, 2}, {2, 2, 1}, {2, 2, 2}, {3, 2, 4}}, alone[3] = {1, 1, 1};
    int64_t cells = s->info.samples * s->info.ext[0] * s->info.ext[1] * s->info.ext[2] * s->info.ext[3], values = s->info.samples * hl_target_values(&s->info);
    gathered whole = load_all(ctx, s, o, alone, 0);
    bool good = true;
    for (size_t i = 0; i < HL_COUNT(part); i++) {
        gathered g = load_all(ctx, s, o, part[i], 2);
        double x = difference(g.x, whole.x, cells), y = difference(g.y, whole.y, values);
        if (!(x <= most && y <= 0)) tap_note("%" PRId64 " x %" PRId64 " x %" PRId64 ": x differs by %g, y by %g", part[i][0], part[i][1], part[i][2], x, y);
        good = good && x <= most && y <= 0;
        free(g.x);
        free(g.y);
    }
    tap_ok(good, "what six grids of ranks load of each sample is what one loads: %s", what);
    free(whole.x);
    free(whole.y);
}

static void loading(halo_context *ctx, const char *path)
{
    hl_source *cube = open_source(ctx, (hl_source_options){.synthetic = true, .synthetic_samples = 5, .channels = 2, .size = {8, 8, 8}, .outputs = 2}),
              *twins = open_source(ctx, (hl_source_options){.synthetic = true, .synthetic_samples = 3, .channels = 2, .size = {9, 9, 9}, .outputs = 3, .target_ext = {9, 9, 9}}),
              *file = open_source(ctx, (hl_source_options){.path = path});
    hl_loader_options o = {.batch = 2, .shuffle = true, .seed = 3};
    put_together(ctx, file, o, 0, "plain, from a file");
    o.cube = o.shift = true;
    put_together(ctx, cube, o, 0, "turned and shifted");
    put_together(ctx, twins, o, 0, "turned and shifted with their targets, uneven");
    o.cube = false;
    put_together(ctx, file, o, 0, "shifted, from a file");
    o.prefetch = 2;
    o.transforms = 4;
    memcpy(o.transform, (hl_transform[]){HL_OVER_MEAN, HL_LOG1P, HL_ZSCORE, HL_STANDARD}, sizeof(o.transform));
    o.mean = 0.5;
    o.std = 3;
    put_together(ctx, file, o, 1e-6, "over-mean, log1p, z-score and standard, shifted");
    o.cube = true;
    put_together(ctx, cube, o, 1e-6, "the same, turned");
    hl_source_close(cube);
    hl_source_close(twins);
    hl_source_close(file);
}

/* ------------------------------------------------------------------------------------------------------ bytes */

/* What process `rank` of a split reads of sample 1, with 3 cells of margin where there are neighbours. */
static int64_t bytes_read(halo_context *ctx, const char *path, const int64_t part[3], int64_t rank, hl_cells *c)
{
    hl_source *s = open_source(ctx, (hl_source_options){.path = path});
    hl_grid grid = hl_grid_of(part[0] * part[1] * part[2], part, rank);
    for (int k = 0; k < 3; k++) {
        hl_range own = hl_grid_range(&grid, k, s->info.ext[k + 1]);
        c->lo[k] = hl_max64(0, own.lo - 3);
        c->ext[k] = hl_min64(s->info.ext[k + 1], own.hi + 3) - c->lo[k];
    }
    float *x = floats(s->info.ext[0] * hl_cells_count(c));
    int64_t before = hl_source_bytes(s);
    MUST(hl_source_read(s, 1, c, x, NULL, NULL));
    int64_t bytes = hl_source_bytes(s) - before;
    free(x);
    hl_source_close(s);
    return bytes;
}

/* Uncompressed size of the chunks of 16^3 that a read touches. */
static int64_t chunks_touched(const hl_cells *c)
{
    int64_t n = CHANNELS * 4;
    for (int k = 0; k < 3; k++) n *= 16 * ((c->lo[k] + c->ext[k] - 1) / 16 - c->lo[k] / 16 + 1);
    return n;
}

static void counted(halo_context *ctx)
{
    const int64_t ext[3] = {64, 48, 32}, splits[][3] = {{4, 1, 1}, {1, 4, 1}, {1, 1, 4}, {2, 2, 2}}, whole = CHANNELS * 64 * 48 * 32 * 4;
    write_volumes(ctx, in_dir("long.h5"), ext, NULL);
    write_volumes(ctx, in_dir("chunks.h5"), ext, (hsize_t[]){16, 16, 16});
    for (size_t i = 0; i < HL_COUNT(splits); i++) {
        bool good = true, chunked = true;
        int64_t most = 0, most_chunked = 0;
        for (int64_t r = 0; r < splits[i][0] * splits[i][1] * splits[i][2]; r++) {
            hl_cells c;
            int64_t bytes = bytes_read(ctx, in_dir("long.h5"), splits[i], r, &c), share = CHANNELS * 4 * hl_cells_count(&c);
            good = good && bytes >= share && bytes <= share + 65536;
            most = hl_max64(most, bytes);
            bytes = bytes_read(ctx, in_dir("chunks.h5"), splits[i], r, &c);
            chunked = chunked && bytes > 0 && bytes <= chunks_touched(&c) + 65536;
            most_chunked = hl_max64(most_chunked, bytes);
        }
        tap_ok(good, "%" PRId64 " x %" PRId64 " x %" PRId64 ", contiguous: at most %" PRId64 " of %" PRId64 " bytes are read, the share and its margin within 64 KiB",
               splits[i][0], splits[i][1], splits[i][2], most, whole);
        tap_ok(chunked, "%" PRId64 " x %" PRId64 " x %" PRId64 ", chunked and deflated: at most %" PRId64 ", no more than the chunks touched", splits[i][0],
               splits[i][1], splits[i][2], most_chunked);
    }
}

/* halo's own writer: compressed volumes come in parts that a block does not share with all others. */
static void own_chunks(halo_context *ctx)
{
    enum { side_of = 80 };
    const int64_t n = (int64_t)side_of * side_of * side_of;
    const char *path = in_dir("own.h5");
    float *x = floats(n), *part = floats(n);
    hl_writer *w = NULL;
    for (int64_t i = 0; i < n; i++) x[i] = value_at(i);
    MUST(hl_writer_create(ctx, path, &(hl_writer_options){.ext = {1, side_of, side_of, side_of}, .dtype = HALO_F32, .level = 1}, &w));
    MUST(hl_writer_add(w, x, NULL, -1));
    MUST(hl_writer_close(w, true));
    hl_source *s = open_source(ctx, (hl_source_options){.path = path});
    hl_cells half = {.ext = {side_of / 2, side_of, side_of}};
    MUST(hl_source_read(s, 0, &half, part, NULL, NULL));
    int64_t of_half = hl_source_bytes(s);
    MUST(hl_source_read(s, 0, NULL, part, NULL, NULL));
    double share = (double)of_half / (double)hl_source_bytes(s); /* the cache has kept that half */
    tap_ok(share < 0.6 && memcmp(x, part, (size_t)n * sizeof(*x)) == 0, "half of a sample that halo compressed costs %.2f of its bytes", share);
    hl_source_close(s);
    free(x);
    free(part);
}

int main(void)
{
    halo_context *ctx = iotest_begin("cells");
    write_volumes(ctx, in_dir("plain.h5"), side, NULL);
    write_volumes(ctx, in_dir("deflated.h5"), side, (hsize_t[]){5, 4, 14});
    write_universe(ctx, in_dir("universe.hdf5"));
    any_cells(ctx, &(hl_source_options){.path = in_dir("plain.h5")});
    any_cells(ctx, &(hl_source_options){.path = in_dir("deflated.h5")});
    any_cells(ctx, &(hl_source_options){.path = in_dir("plain.h5"), .crop = {6, 5, 4}, .channels = 2});
    any_cells(ctx, &(hl_source_options){.path = in_dir("deflated.h5"), .crop = {5, 5, 5}});
    any_cells(ctx, &(hl_source_options){.path = in_dir("universe.hdf5")});
    any_cells(ctx, &(hl_source_options){.path = in_dir("universe.hdf5"), .crop = {6, 5, 7}, .channels = 1});
    any_cells(ctx, &(hl_source_options){.synthetic = true, .synthetic_samples = 4, .channels = 2, .size = {9, 10, 11}, .outputs = 4});
    any_cells(ctx, &(hl_source_options){.synthetic = true, .synthetic_samples = 4, .channels = 2, .size = {9, 10, 11}, .outputs = 3, .target_ext = {5, 6, 7}});
    loading(ctx, in_dir("plain.h5"));
    counted(ctx);
    own_chunks(ctx);
    return iotest_end(ctx);
}
