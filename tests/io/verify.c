/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets that are broken in every way that verification promises to find: each is named with its reason, in one line, and a good one is not. */
#include "tests/io/iotest.h"
#include "io/h5out.h"
#include "io/universe.h"
#include "io/verify.h"

enum { SAMPLES = 6, SIDE = 4, CELLS = SIDE * SIDE * SIDE };

/* How a file of halo's own layout is written; all zero: a good one. */
typedef struct spec {
    const char *name;
    int seed; /* files of one seed hold the same volumes */
    bool big_endian, deflate, fletcher, plugin, halved, no_y;
    double poison, of_y; /* what one value of x becomes; factor of y */
    bool constant;
    int samples; /* 0: SAMPLES */
} spec;

static double value(const spec *s, int64_t i)
{
    if (s->poison != 0 && i == 3 * CELLS + 17) return s->poison;
    if (s->constant && i / CELLS == 2) return 7;
    return floor(1000 * hl_rng_uniform(5, HL_STREAM_SYNTHETIC, (uint64_t)i, (uint64_t)s->seed));
}

static hid_t layout(const spec *s)
{
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    if (s->deflate || s->fletcher || s->plugin || s->halved) H5Pset_chunk(p, 5, (hsize_t[]){1, 1, SIDE, SIDE, SIDE});
    if (s->deflate) H5Pset_deflate(p, 4);
    if (s->fletcher) H5Pset_fletcher32(p);
    if (s->plugin) H5Pset_filter(p, 32015, 0, 0, NULL);
    return p;
}

static void put_x(hid_t file, const spec *s, int samples)
{
    double *x = malloc((size_t)samples * CELLS * sizeof(*x));
    const hsize_t dim[5] = {(hsize_t)samples, 1, SIDE, SIDE, SIDE}, half[5] = {(hsize_t)samples / 2, 1, SIDE, SIDE, SIDE}, zero[5] = {0};
    for (int64_t i = 0; i < samples * CELLS; i++) x[i] = value(s, i);
    hid_t space = H5Screate_simple(5, dim, NULL), part = H5Screate_simple(5, half, NULL), p = layout(s);
    hid_t set = H5Dcreate2(file, "x", s->big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE, space, H5P_DEFAULT, p, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, zero, NULL, s->halved ? half : dim, NULL);
    if (set < 0 || H5Dwrite(set, H5T_NATIVE_DOUBLE, s->halved ? part : H5S_ALL, space, H5P_DEFAULT, x) < 0) tap_bail("HDF5 cannot write %s", s->name);
    H5Dclose(set), H5Pclose(p), H5Sclose(space), H5Sclose(part);
    free(x);
}

static void put_y(hid_t file, const spec *s, int samples)
{
    float y[SAMPLES];
    const double range[2] = {10, 20};
    const hsize_t dim = (hsize_t)samples, one = 1;
    for (int i = 0; i < samples; i++) y[i] = (float)((i - 2.5) / 3 * (s->of_y != 0 ? s->of_y : 1));
    hid_t space = H5Screate_simple(1, &dim, NULL), single = H5Screate_simple(1, &one, NULL);
    hid_t set = H5Dcreate2(file, "y", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, y);
    for (int i = 0; i < 2; i++) {
        hid_t a = H5Acreate2(set, i ? "high" : "low", H5T_IEEE_F64LE, single, H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(a, H5T_NATIVE_DOUBLE, &range[i]);
        H5Aclose(a);
    }
    H5Dclose(set), H5Sclose(space), H5Sclose(single);
}

static void write_set(const spec *s)
{
    int samples = s->samples ? s->samples : SAMPLES;
    hid_t file = H5Fcreate(in_dir(s->name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    put_x(file, s, samples);
    if (!s->no_y) put_y(file, s, samples);
    H5Fclose(file);
}

static void cut_off(const char *name, off_t bytes)
{
    if (truncate(in_dir(name), bytes) != 0) tap_bail("cannot cut '%s'", name);
}

/* Flips a byte of the file where the bytes of `cell` first are. */
static void damage(const char *name, const void *cell, size_t bytes)
{
    static char all[1 << 16];
    int fd = open(in_dir(name), O_RDWR);
    ssize_t n = read(fd, all, sizeof(all));
    char *at = n > 0 ? memmem(all, (size_t)n, cell, bytes) : NULL;
    if (!at) tap_bail("'%s' does not hold what should be damaged", name);
    *at ^= 1;
    if (pwrite(fd, at, 1, at - all) != 1) tap_bail("cannot damage '%s'", name);
    close(fd);
}

/* The file, or list, has so many bad files, and its text has all of these (NULL-ended). */
static void finds(halo_context *ctx, const char *name, int64_t bad, const char *const *texts, const char *what)
{
    hl_str text = {0};
    hl_json json = {0};
    hl_verified v = {0};
    hl_json_object(&json, NULL);
    bool good = hl_data_verify(ctx, in_dir(name), &text, &json, &v) == HALO_OK && v.bad == bad && iotest_errors == 0;
    hl_json_end_object(&json);
    int64_t lines = 0;
    for (char *c = text.s; c && *c; c++) {
        if (*c != '\n') continue;
        lines++;
        *c = c[1] ? '|' : '\0'; /* one line of TAP */
    }
    good = good && lines == bad;
    for (; *texts; texts++) good = good && text.s && strstr(text.s, *texts);
    tap_ok(good, "%s: %s", what, text.s ? text.s : "nothing is wrong");
    if (!good) tap_note("%" PRId64 " bad, expected %" PRId64 ", with '%s'", v.bad, bad, *texts ? *texts : "");
    iotest_errors = 0;
    hl_str_free(&text);
    hl_json_free(&json);
}
#define FINDS(name, bad, what, ...) finds(ctx, name, bad, (const char *const[]){__VA_ARGS__, NULL}, what)

static void write_list(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) tap_bail("cannot write '%s'", name);
}

static size_t pass_on(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t *size, void **buffer)
{
    (void)flags, (void)n, (void)values, (void)size, (void)buffer;
    return bytes;
}

static void one_file_each(halo_context *ctx)
{
    static const H5Z_class2_t zstd = {H5Z_CLASS_T_VERS, 32015, 1, 1, "a test", NULL, NULL, pass_on};
    write_set(&(spec){.name = "good.h5", .seed = 1});
    finds(ctx, "good.h5", 0, (const char *const[]){NULL}, "a good file");
    write_set(&(spec){.name = "nan.h5", .seed = 2, .poison = NAN});
    FINDS("nan.h5", 1, "a NaN", "'x' has 1 value that is not finite, the first at [3, 0, 1, 0, 1]");
    write_set(&(spec){.name = "infinite.h5", .seed = 2, .poison = INFINITY, .big_endian = true, .deflate = true});
    FINDS("infinite.h5", 1, "an infinity, in another storage", "not finite, the first at [3, 0, 1, 0, 1]");
    write_set(&(spec){.name = "constant.h5", .seed = 3, .constant = true});
    FINDS("constant.h5", 1, "a volume of one value", "all values of sample 2 of 'x' are 7");
    write_set(&(spec){.name = "range.h5", .seed = 4, .of_y = 2});
    FINDS("range.h5", 1, "targets out of their range", "'y' reaches", "outside -1 .. 1, which its 'low' and 'high' stand for");
    write_set(&(spec){.name = "halved.h5", .seed = 5, .halved = true});
    FINDS("halved.h5", 1, "half of it written", "'x' was not written as a whole");
    write_set(&(spec){.name = "cut.h5", .seed = 6});
    cut_off("cut.h5", 2500);
    FINDS("cut.h5", 1, "truncated", "truncated");
    write_list("text.h5", "not at all\n");
    FINDS("text.h5", 1, "not HDF5", "not an HDF5 file");
    H5Zregister(&zstd);
    write_set(&(spec){.name = "plugin.h5", .seed = 7, .plugin = true});
    H5Zunregister(32015);
    FINDS("plugin.h5", 1, "a filter that is not there", "filter 32015 (zstd)");
    spec f = {.name = "fletcher.h5", .seed = 8, .fletcher = true};
    float cells[4];
    write_set(&f);
    for (int i = 0; i < 4; i++) cells[i] = (float)value(&f, CELLS + i);
    damage("fletcher.h5", cells, sizeof(cells));
    FINDS("fletcher.h5", 1, "a damaged chunk", "'/x'");
    write_set(&(spec){.name = "unlabelled.h5", .seed = 9, .no_y = true});
    finds(ctx, "unlabelled.h5", 0, (const char *const[]){NULL}, "data to predict need no targets");
}

static void between_files(halo_context *ctx)
{
    write_set(&(spec){.name = "twin.h5", .seed = 1, .big_endian = true, .deflate = true, .samples = 2});
    write_list("twins.list", "good.h5\nunlabelled.h5\nrange.h5\ntwin.h5\n");
    FINDS("twins.list", 3, "volumes that were there before, whatever their storage", "twin.h5: sample 0 has the volume of sample 0 of '", "good.h5'; sample 1 has",
          "it has 0 targets", "range.h5: 'y'");
    write_list("missing.list", "good.h5\nnone.h5\n");
    FINDS("missing.list", 1, "a file that is not there", "none.h5: ");
    finds(ctx, "none.h5", 1, (const char *const[]){"No such file", NULL}, "nor alone");
}

/* A universe of `side`, with physPar as `physical` says. */
static void write_universe(halo_context *ctx, const char *name, int64_t side, double physical, double seed)
{
    hl_universe_file u = {.ext = {side, side, side, 1}, .integer = true, .parameters = 1};
    u.parameter[0] = (hl_universe_parameter){.name = "omega", .unit = 0.5, .physical = physical, .low = 0.2, .high = 0.4};
    u.full = malloc((size_t)(side * side * side) * sizeof(float));
    for (int64_t i = 0; i < side * side * side; i++) u.full[i] = (float)((i * i + (int64_t)seed) % 97);
    MUST(hl_universe_write(ctx, in_dir(name), &u));
    free(u.full);
}

static void universes(halo_context *ctx)
{
    write_universe(ctx, "u1.hdf5", 8, 0.35, 1);
    write_universe(ctx, "u2.hdf5", 8, 0.25, 2);
    write_universe(ctx, "u3.hdf5", 6, 0.35, 3);
    write_universe(ctx, "u4.hdf5", 8, 0.35, 1);
    write_list("universes.list", "u1.hdf5\nu2.hdf5\nu3.hdf5\nu4.hdf5\ngood.h5\n");
    FINDS("universes.list", 4, "universes", "u2.hdf5: physPar[0] is 0.25, but unitPar 0.5 of 0.2 .. 0.4 is 0.35",
          "u3.hdf5: its samples are 1 x 6 x 6 x 6 int16, those of '", "u4.hdf5: sample 0 has the volume of sample 0 of '",
          "good.h5: its samples are 1 x 4 x 4 x 4 float32");
}

static void checkpoints(halo_context *ctx)
{
    hl_ckpt *file;
    const double w[3] = {1.5, 2.25, 3.125};
    for (int i = 0; i < 2; i++) {
        MUST(hl_ckpt_create(ctx, in_dir(i ? "broken.h5" : "whole.h5"), &file));
        MUST(hl_ckpt_put(file, "parameters/a/weights", HALO_F64, 1, (int64_t[]){3}, w));
        MUST(hl_ckpt_close(file, true));
    }
    damage("broken.h5", w, sizeof(w));
    write_list("checkpoints.list", "whole.h5\nbroken.h5\n");
    FINDS("checkpoints.list", 1, "a checkpoint", "broken.h5: ", "is damaged: its checksum is");
}

int main(void)
{
    halo_context *ctx = iotest_begin("verify");
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    one_file_each(ctx);
    between_files(ctx);
    universes(ctx);
    checkpoints(ctx);
    tap_ok(leftovers() == 0, "no temporary file is left");
    return iotest_end(ctx);
}
