/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that others wrote: NPY and NPZ of every type and order, axes in any order, tables of targets, what bad files get, and how much is read. */
#include "tests/io/npytest.h"
#include "io/array_files.h"
#include "io/table.h"

#include <hdf5.h>

/* ---------------------------------------------------------------------------------------------------- types and orders */

static bool equals(halo_context *ctx, const char *path, const char *name, const npy_form *f)
{
    hl_array *a;
    int64_t start[8] = {0}, i = 0;
    bool good = true;
    MUST(hl_array_open(ctx, path, name, NULL, &a));
    good = a->ndim == f->ndim && a->reversed == (f->fortran && f->ndim > 1);
    void *raw = malloc((size_t)a->bytes + 1);
    MUST(hl_array_read(a, start, a->dim, raw, (size_t)a->bytes));
    for (int64_t m = 0; m < a->elements; m++) {
        int64_t at[8], rest = m, along = 1;
        for (int k = a->ndim - 1; k >= 0; k--) at[k] = rest % a->dim[k], rest /= a->dim[k];
        i = 0;
        for (int k = a->ndim - 1; k >= 0; k--) i += at[a->reversed ? a->ndim - 1 - k : k] * along, along *= f->dim[k];
        if (hl_number_value(a->type, raw, m) != npy_value(f, i)) good = false;
    }
    free(raw);
    hl_array_close(a);
    return good;
}

static void types(halo_context *ctx)
{
    static const char *const descr[] = {"|b1", "|i1", "|u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"};
    int good = 0, all = 0;
    for (size_t t = 0; t < HL_COUNT(descr); t++)
        for (int version = 1; version <= 3; version++)
            for (int fortran = 0; fortran < 2; fortran++, all++) {
                npy_form f = {.descr = descr[t], .fortran = fortran, .version = version, .ndim = 3, .dim = {3, 4, 5}};
                write_npy(in_dir("t.npy"), &f);
                bool same = equals(ctx, in_dir("t.npy"), "", &f);
                good += same;
                if (!same) tap_note("%s version %d fortran %d", descr[t], version, fortran);
            }
    tap_ok(good == all, "%d of %d combinations of type, byte order, memory order and version", good, all);
    npy_form scalar = {.descr = "<f8", .version = 1, .offset = 7}, one = {.descr = "<i4", .version = 1, .ndim = 1, .dim = {5}}, none = {.descr = "<i4", .version = 1, .ndim = 2, .dim = {0, 3}};
    write_npy(in_dir("scalar.npy"), &scalar), write_npy(in_dir("one.npy"), &one), write_npy(in_dir("none.npy"), &none);
    tap_ok(equals(ctx, in_dir("scalar.npy"), "", &scalar) && equals(ctx, in_dir("one.npy"), "", &one) && equals(ctx, in_dir("none.npy"), "", &none), "no axis, one axis, no elements");
}

static void archives(halo_context *ctx)
{
    const char *const name[] = {"vol", "y"};
    const npy_form form[] = {{.descr = ">f4", .fortran = true, .version = 1, .ndim = 3, .dim = {6, 5, 4}}, {.descr = "<i2", .version = 1, .ndim = 1, .dim = {2}, .offset = 3}};
    for (int kind = 0; kind < 4; kind++) {
        bool deflated = kind & 1, zip64 = kind & 2;
        const char *what = kind == 0 ? "stored" : kind == 1 ? "deflated" : kind == 2 ? "stored, ZIP64" : "deflated, ZIP64";
#ifndef HAVE_ZLIB
        if (deflated) {
            tap_skip("%s: no zlib", what);
            continue;
        }
#endif
        hl_str s = npz_text(2, name, form, deflated, zip64);
        put_file(in_dir("a.npz"), s.s, s.len);
        hl_str_free(&s);
        tap_ok(equals(ctx, in_dir("a.npz"), "vol", &form[0]) && equals(ctx, in_dir("a.npz"), "y.npy", &form[1]), "members of an archive: %s", what);
    }
}

/* ------------------------------------------------------------------------------------------------------------- axes */

typedef struct layout { const char *axes; bool fortran; } layout;
enum { CC = 2, CB = 3, EX = 5, EY = 4, EZ = 6, SAMPLES = 3 };

static int64_t extent(char l, int *cs)
{
    switch (l) {
    case 'n': return SAMPLES;
    case 'c': return (*cs)++ ? CB : CC;
    case 'd': return EX;
    case 'h': return EY;
    default: return EZ;
    }
}

static hl_words words_of(const char *axes)
{
    hl_words w = {0};
    for (; *axes; axes++) w.word[w.n][0] = *axes, w.word[w.n++][1] = '\0';
    return w;
}

/* The value that the file has at sample n, channel c, d, h, w: its writer's count. */
static double expected(const npy_form *f, const char *axes, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w)
{
    int64_t i = 0, cs = 0, several = strchr(axes, 'c') != strrchr(axes, 'c');
    for (int k = 0; axes[k]; k++) {
        int64_t at = axes[k] == 'n' ? n : axes[k] == 'd' ? d : axes[k] == 'h' ? h : axes[k] == 'w' ? w : !several ? c : cs++ == 0 ? c / CB : c % CB;
        i = i * f->dim[k] + at;
    }
    return npy_value(f, i);
}

static bool box_equals(halo_context *ctx, hl_source *s, const npy_form *f, const char *axes, int64_t sample, const hl_cells *cells)
{
    static float x[CC * CB * EX * EY * EZ];
    const int64_t *e = cells->ext, *n = s->info.ext + 1;
    int64_t at = 0;
    MUST(hl_source_read(s, sample, cells, x, NULL, NULL));
    for (int64_t c = 0; c < s->info.ext[0]; c++)
        for (int64_t d = 0; d < e[0]; d++)
            for (int64_t h = 0; h < e[1]; h++)
                for (int64_t w = 0; w < e[2]; w++, at++) {
                    double want = expected(f, axes, sample, c, (cells->lo[0] + d + n[0]) % n[0], (cells->lo[1] + h + n[1]) % n[1], (cells->lo[2] + w + n[2]) % n[2]);
                    if ((double)x[at] != want) return false;
                }
    return true;
}

static bool orders_read(halo_context *ctx, const layout *l, int64_t first_channels)
{
    npy_form f = {.descr = ">f4", .fortran = l->fortran, .version = 1, .ndim = (int)strlen(l->axes)};
    int cs = 0;
    for (int k = 0; k < f.ndim; k++) f.dim[k] = extent(l->axes[k], &cs);
    write_npy(in_dir("o.npy"), &f);
    hl_array_options a = {.x = "", .y = "", .y_from = "", .table = "", .x_axes = words_of(l->axes)};
    hl_source *s;
    MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("o.npy"), .array = &a, .channels = first_channels}, &s));
    bool n = strchr(l->axes, 'n');
    int64_t channels = first_channels ? first_channels : cs == 0 ? 1 : cs == 1 ? CC : CC * CB;
    bool good = s->info.samples == (n ? SAMPLES : 1) && s->info.ext[0] == channels && s->info.groups == s->info.samples;
    const hl_cells boxes[] = {{.ext = {s->info.ext[1], s->info.ext[2], s->info.ext[3]}}, {.lo = {1, 0, 2}, .ext = {1, 1, 1}}, {.lo = {0, 0, -2}, .ext = {1, 1, 4}}};
    for (int64_t i = 0; i < s->info.samples && good; i++)
        for (size_t b = 0; b < HL_COUNT(boxes) && good; b++)
            if (b == 0 || (s->info.ext[1] > 1 && s->info.ext[3] > 3)) good = box_equals(ctx, s, &f, l->axes, i, &boxes[b]);
    hl_source_close(s);
    if (!good) tap_note("%s%s, %d channels", l->axes, l->fortran ? " fortran" : "", (int)first_channels);
    return good;
}

/* Every order of these letters, by Heap's method; returns how many were wrong. */
static int permute(halo_context *ctx, char *axes, int k, int64_t first, int *all)
{
    int wrong = 0;
    if (k == 1) {
        for (int fortran = 0; fortran < 2; fortran++, ++*all) wrong += !orders_read(ctx, &(layout){axes, fortran}, first);
        return wrong;
    }
    for (int i = 0; i < k; i++) {
        wrong += permute(ctx, axes, k - 1, first, all);
        char *a = &axes[k % 2 ? 0 : i], t = *a;
        *a = axes[k - 1], axes[k - 1] = t;
    }
    return wrong;
}

static void axes(halo_context *ctx)
{
    static const char *const letters[] = {"dhw", "cdhw", "ncdhw", "ccdhw", "hw", "chw", "nhw"};
    for (size_t i = 0; i < HL_COUNT(letters); i++) {
        char a[8];
        int all = 0;
        snprintf(a, sizeof(a), "%s", letters[i]);
        int wrong = permute(ctx, a, (int)strlen(a), 0, &all);
        tap_ok(wrong == 0, "%d of %d orders of %s read to the writer's values, whole and in boxes that wrap", all - wrong, all, letters[i]);
    }
    char first[8] = "ccdhw";
    int all = 0;
    tap_ok(permute(ctx, first, 5, 4, &all) == 0, "the first channels of repeated ones, in %d orders", all);
}

/* ------------------------------------------------------------------------------------------------------- what is read */

static void counted(halo_context *ctx)
{
    npy_form f = {.descr = "<f4", .version = 1, .ndim = 4, .dim = {32, 32, 32, 2}};
    write_npy(in_dir("big.npy"), &f);
    hl_array_options a = {.x = "", .y = "", .y_from = "", .table = "", .x_axes = words_of("dhwc")};
    hl_source *s;
    MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("big.npy"), .array = &a}, &s));
    static float x[2 * 32 * 32 * 32];
    int64_t before = hl_source_data_bytes(s);
    hl_cells slab = {.lo = {8, 0, 0}, .ext = {4, 32, 32}}, rows = {.lo = {0, 4, 0}, .ext = {32, 8, 32}};
    MUST(hl_source_read(s, 0, &slab, x, NULL, NULL));
    tap_ok(hl_source_data_bytes(s) - before == 4 * 32 * 32 * 2 * 4, "a slab reads its bytes and no others");
    before = hl_source_data_bytes(s);
    MUST(hl_source_read(s, 0, &rows, x, NULL, NULL));
    tap_ok(hl_source_data_bytes(s) - before == 32 * 8 * 32 * 2 * 4, "and so do rows");
    hl_source_close(s);
}

/* ------------------------------------------------------------------------------------------------------------- HDF5 */

static void put(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *dim, bool chunked, const void *data)
{
    hid_t space = H5Screate_simple(ndim, dim, NULL), p = H5Pcreate(H5P_DATASET_CREATE), l = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(l, 1);
    if (chunked) {
        hsize_t chunk[8];
        for (int k = 0; k < ndim; k++) chunk[k] = (dim[k] + 1) / 2;
        H5Pset_chunk(p, ndim, chunk);
        H5Pset_deflate(p, 1);
    }
    hid_t d = H5Dcreate2(file, name, type, space, l, p, H5P_DEFAULT);
    if (d < 0 || H5Dwrite(d, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) tap_bail("HDF5 cannot write '%s'", name);
    H5Dclose(d), H5Pclose(l), H5Pclose(p), H5Sclose(space);
}

static void hdf5(halo_context *ctx)
{
    static float v[SAMPLES * CC * CB * EX * EY * EZ];
    float y[SAMPLES * 2];
    const char *order = "nhcdwc";
    npy_form f = {.descr = "<f4", .ndim = 6, .dim = {SAMPLES, EY, CC, EX, EZ, CB}};
    hsize_t dim[6], ydim[2] = {SAMPLES, 2};
    for (int k = 0; k < 6; k++) dim[k] = (hsize_t)f.dim[k];
    for (size_t i = 0; i < HL_COUNT(v); i++) v[i] = (float)npy_value(&f, (int64_t)i);
    for (int i = 0; i < SAMPLES * 2; i++) y[i] = (float)i;
    for (int kind = 0; kind < 2; kind++) {
        hid_t file = H5Fcreate(in_dir("any.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        put(file, "/deep/er/v", kind ? H5T_STD_I32BE : H5T_IEEE_F32BE, 6, dim, kind, v);
        put(file, "/deep/y", H5T_IEEE_F64BE, 2, ydim, false, y);
        H5Fclose(file);
        hl_array_options a = {.x = "/deep/er/v", .y = "/deep/y", .y_from = "", .table = "", .x_axes = words_of(order)};
        hl_source *s;
        MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("any.h5"), .array = &a}, &s));
        int32_t l[CC * CB * EX * EY * EZ];
        float t[2], *x = (float *)(void *)l;
        bool good = s->info.samples == SAMPLES && s->info.ext[0] == CC * CB && s->info.targets == 2 && s->info.dtype == (kind ? HALO_I32 : HALO_F32);
        for (int64_t n = 0; n < SAMPLES && good; n++) {
            MUST(hl_source_read(s, n, NULL, l, NULL, t));
            good = t[0] == (float)(2 * n) && t[1] == (float)(2 * n + 1);
            for (int64_t i = 0; i < (int64_t)HL_COUNT(l) && good; i++) {
                double have = kind ? (double)l[i] : (double)x[i];
                good = have == expected(&f, order, n, i / (EX * EY * EZ), i / (EY * EZ) % EX, i / EZ % EY, i % EZ);
            }
        }
        tap_ok(good, "a dataset [n, h, c, d, w, c] of %s with its targets", kind ? "big-endian integers, chunked and deflated" : "big-endian floats");
        hl_source_close(s);
    }
}

/* h5py's bool is read as 0 and 1; an enumeration of anything else is refused. */
static void truths(halo_context *ctx)
{
    static const char *const words[2][2] = {{"FALSE", "TRUE"}, {"OFF", "ON"}};
    const unsigned char v[8] = {0, 1, 1, 0, 1, 0, 0, 1};
    const hsize_t dim[3] = {2, 2, 2};
    int64_t start[3] = {0}, count[3] = {2, 2, 2};
    unsigned char got[8] = {9};
    hl_array *a = NULL;
    for (int kind = 0; kind < 2; kind++) {
        hid_t file = H5Fcreate(in_dir("truth.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), type = H5Tenum_create(H5T_NATIVE_INT8);
        for (signed char i = 0; i < 2; i++) H5Tenum_insert(type, words[kind][i], &i);
        hid_t space = H5Screate_simple(3, dim, NULL), d = H5Dcreate2(file, "mask", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) < 0) tap_bail("HDF5 cannot write 'mask'");
        H5Dclose(d), H5Sclose(space), H5Tclose(type), H5Fclose(file);
        if (kind) break;
        MUST(hl_array_open(ctx, in_dir("truth.h5"), NULL, NULL, &a));
        MUST(hl_array_read(a, start, count, got, sizeof(got)));
        tap_ok(a->type.kind == 'u' && a->type.bytes == 1 && memcmp(got, v, sizeof(v)) == 0, "booleans of h5py are read as 0 and 1");
        hl_array_close(a);
    }
    fails_with(ctx, hl_array_open(ctx, in_dir("truth.h5"), "mask", NULL, &a), HALO_ERR_FORMAT, "truth.h5", "holds enumerations, not numbers", "another enumeration");
}

/* ----------------------------------------------------------------------------------------------------------- targets */

static void write_cubes(const char *dir, const char *format, int n)
{
    mkdir(in_dir(dir), 0777);
    for (int i = 0; i < n; i++) {
        char name[128], file[64];
        npy_form f = {.descr = "<f4", .version = 1, .ndim = 3, .dim = {4, 4, 4}, .offset = i * 64};
        snprintf(file, sizeof(file), format, i);
        snprintf(name, sizeof(name), "%s/%s", dir, file);
        write_npy(in_dir(name), &f);
    }
}

static void put_text(const char *path, const char *text) { put_file(path, text, strlen(text)); }

static void tables(halo_context *ctx)
{
    hl_source *s;
    float y[2];
    write_cubes("cubes", "c_%d.npy", 4);
    put_text(in_dir("cubes/params.txt"), "# made by nobody\n# name Omega_M, sigma_8\nc0 0.1, 0.6\nc1\t0.2, 1.0 # odd\n\nc2 0.4, 0.8\nc3 0.3, 5e-1\n");
    hl_array_options a = {.x = "", .y = "", .y_from = "", .table = "params.txt",
                          .columns = {.n = 2, .item = {{.word = "s8", .values = 1, .value = {"sigma_8"}}, {.word = "Om", .values = 1, .value = {"1"}}}}};
    hl_source_options o = {.path = in_dir("cubes"), .array = &a, .outputs = 2, .group_count = 3};
    MUST(hl_source_open(ctx, &o, &s));
    MUST(hl_source_read(s, 2, NULL, NULL, NULL, y));
    const hl_target *t = s->info.target;
    tap_ok(s->info.samples == 3 && strcmp(t[0].name, "s8") == 0 && strcmp(t[1].name, "Om") == 0 && t[0].low == 0.6 && t[0].high == 1.0 && t[1].low == 0.1 && t[1].high == 0.4,
           "columns by the header's name and by number; their range is that of the rows in use");
    tap_ok(fabs((double)y[0]) < 1e-6 && y[1] == 1, "stored from -1 to 1");
    hl_array_options with = a;
    with.like = s->info.target;
    with.likes = 2;
    hl_source *test;
    hl_source_options ot = o;
    ot.array = &with, ot.group_first = 3, ot.group_count = 1;
    MUST(hl_source_open(ctx, &ot, &test));
    MUST(hl_source_read(test, 0, NULL, NULL, NULL, y));
    tap_ok(test->info.samples == 1 && fabs((double)y[0] + 1.5) < 1e-6 && test->info.target[0].high == 1.0, "another set takes the range of the first, and may lie outside");
    hl_source_close(test);
    hl_source_close(s);
    a.range = (hl_map){.n = 2, .item = {{.word = "s8", .values = 2, .value = {"0", "2"}}, {.word = "Om", .values = 1, .value = {"none"}}}};
    MUST(hl_source_open(ctx, &o, &s));
    MUST(hl_source_read(s, 1, NULL, NULL, NULL, y));
    tap_ok(y[0] == 0 && y[1] == 0.2f && isnan(s->info.target[1].low), "ranges that are given, and none");
    hl_source_close(s);
    a.range.n = 0, a.columns.n = 0;
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_SHAPE, "gives 3 targets", "network has 2 outputs", "more columns than outputs");
    o.outputs = 0;
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_NONFINITE, "line 3", "no finite number", "a column of words");
    a.columns = (hl_map){.n = 1, .item = {{.word = "sigma8"}}};
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_USAGE, "no column 'sigma8' (did you mean 'sigma_8'?)", "3 columns", "a column that is not there");
    put_text(in_dir("cubes/short.txt"), "1\n2\n3\n");
    a.table = "short.txt", a.columns.n = 0;
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_SHAPE, "has 3 rows", "4 files", "too few rows");
    put_text(in_dir("cubes/ragged.txt"), "1 2\n2\n");
    a.table = "ragged.txt";
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_FORMAT, "line 2 has 1 column", "before have 2", "rows of different lengths");
    put_text(in_dir("cubes/flat.txt"), "1\n1\n1\n1\n");
    a.table = "flat.txt";
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_FORMAT, "is 1 in every row", "no range", "a column of one value");
    write_cubes("many", "c_%d.npy", 11);
    put_text(in_dir("many/p.txt"), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
    a.table = "p.txt", a.range = (hl_map){.n = 1, .item = {{.word = "none"}}};
    o.path = in_dir("many"), o.group_count = 0;
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_USAGE, "by name 'c_10.npy' comes before 'c_2.npy'", "data.targets.order", "names whose order is not clear");
    bool good = true;
    for (int order = HL_ORDER_NAME; order <= HL_ORDER_NUMBER; order++) {
        float x[64];
        a.order = order;
        MUST(hl_source_open(ctx, &o, &s));
        MUST(hl_source_read(s, 2, NULL, x, NULL, y));
        good = good && y[0] == 2 && x[0] == (order == HL_ORDER_NUMBER ? 128 : 640);
        hl_source_close(s);
    }
    tap_ok(good, "by name row 2 is c_10, by number c_2");
}

static void samples_in_a_file(halo_context *ctx)
{
    hl_source *s;
    float y[4 * 4 * 4], x[64];
    npy_form v = {.descr = "<f4", .version = 1, .ndim = 4, .dim = {3, 4, 4, 4}}, l = {.descr = "|u1", .version = 1, .ndim = 4, .dim = {3, 4, 4, 4}, .offset = 1};
    const char *const name[] = {"v", "label"};
    hl_str z = npz_text(2, name, (const npy_form[]){v, l}, false, false);
    put_file(in_dir("set.npz"), z.s, z.len);
    hl_str_free(&z);
    put_text(in_dir("set.csv"), "a;b\n1;2\n3;4\n5;6\n");
    hl_array_options a = {.x = "v", .y = "", .y_from = "", .table = "set.csv", .x_axes = words_of("ndhw"), .range = {.n = 1, .item = {{.word = "none"}}}};
    hl_source_options o = {.path = in_dir("set.npz"), .array = &a};
    MUST(hl_source_open(ctx, &o, &s));
    MUST(hl_source_read(s, 1, NULL, x, NULL, y));
    tap_ok(s->info.samples == 3 && y[0] == 3 && y[1] == 4 && x[0] == 64 && strcmp(s->info.target[1].name, "b") == 0, "a row for each sample of one file");
    hl_source_close(s);
    a.table = "", a.y = "label";
    o.crop[0] = o.crop[1] = o.crop[2] = 2;
    MUST(hl_source_open(ctx, &o, &s));
    MUST(hl_source_read(s, 8 + 5, NULL, x, NULL, y)); /* sample 1, sub-volume 1 0 1 */
    tap_ok(s->info.samples == 24 && s->info.groups == 3 && hl_target_volumes(&s->info) && x[0] == 64 + 2 * 16 + 2 && y[0] == (float)((64 + 2 * 16 + 2 + 1) % 100),
           "targets that are volumes are cut where x is");
    hl_source_close(s);
    mkdir(in_dir("images"), 0777), mkdir(in_dir("labels"), 0777);
    npy_form one = {.descr = "<f4", .version = 1, .ndim = 3, .dim = {4, 4, 4}}, label = {.descr = "|b1", .version = 1, .ndim = 3, .dim = {4, 4, 4}};
    for (int i = 0; i < 2; i++) {
        char file[64];
        one.offset = label.offset = i;
        snprintf(file, sizeof(file), "images/p%d.npy", i), write_npy(in_dir(file), &one);
        snprintf(file, sizeof(file), "labels/p%d.npy", i), write_npy(in_dir(file), &label);
    }
    a = (hl_array_options){.x = "", .y = "", .y_from = "../labels", .table = ""};
    o = (hl_source_options){.path = in_dir("images"), .array = &a};
    MUST(hl_source_open(ctx, &o, &s));
    MUST(hl_source_read(s, 1, NULL, x, NULL, y));
    tap_ok(s->info.samples == 2 && hl_target_volumes(&s->info) && x[0] == 1 && y[0] == 0 && y[2] == 1, "labels in files of their own");
    hl_source_close(s);
    char pattern[1100];
    snprintf(pattern, sizeof(pattern), "%s/p*.npy", in_dir("images"));
    o.path = pattern;
    MUST(hl_source_open(ctx, &o, &s));
    tap_ok(s->info.samples == 2, "and a pattern of names");
    hl_source_close(s);
}

/* ---------------------------------------------------------------------------------------------------------- bad input */

static halo_status open_raw(halo_context *ctx, const char *header, int64_t length, size_t data)
{
    hl_array *a;
    hl_str s = {0};
    char head[10] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(length & 255), (char)(length >> 8 & 255)};
    hl_str_addn(&s, head, sizeof(head));
    hl_str_add(&s, header);
    for (size_t i = 0; i < data; i++) hl_str_addn(&s, "\0", 1);
    put_file(in_dir("bad.npy"), s.s, s.len);
    hl_str_free(&s);
    halo_status st = hl_array_open(ctx, in_dir("bad.npy"), NULL, NULL, &a);
    if (st == HALO_OK) hl_array_close(a);
    return st;
}

static void bad_headers(halo_context *ctx)
{
    static const struct { const char *header, *says; int64_t length; } bad[] = {
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "Python objects (pickled)", 0},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", "complex numbers", 0},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "records", 0},
        {"{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }", "strings", 0},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }", "16 bytes", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "negative", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "2^63", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999), }", "2^63", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 1000), }", "there are 8", 0},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", "neither True nor False", 0},
        {"{'descr': '<f4', 'shape': (2,), }", "lacks 'fortran_order'", 0},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2,), }", "twice", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", "unknown key 'x'", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "shape cannot be read", 0},
        {"import os", "no dictionary", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "does not end", 60000},
    };
    for (size_t i = 0; i < HL_COUNT(bad); i++)
        fails_with(ctx, open_raw(ctx, bad[i].header, bad[i].length ? bad[i].length : (int64_t)strlen(bad[i].header), 8), HALO_ERR_FORMAT, bad[i].says, "bad.npy", "a bad header");
}

/* Every length of a good file is refused or, where only padding is lost, read; and each byte of it may be another one. */
static void damaged(halo_context *ctx, const hl_str *good, const char *file, const char *name)
{
    int refused = 0, wrong = 0;
    for (size_t cut = 0; cut < good->len; cut += 1 + good->len / 300) {
        hl_array *a;
        put_file(in_dir(file), good->s, cut);
        iotest_errors = 0;
        halo_status st = hl_array_open(ctx, in_dir(file), name, NULL, &a);
        wrong += st == HALO_OK || iotest_errors != 1 || !strstr(halo_error_message(ctx), file);
        if (st == HALO_OK) hl_array_close(a);
    }
    char *copy = malloc(good->len);
    for (size_t i = 0; i < good->len; i += 1 + good->len / 600) {
        hl_array *a;
        int64_t start[HL_ARRAY_RANK] = {0};
        memcpy(copy, good->s, good->len);
        copy[i] = (char)(copy[i] ^ (1 << i % 8));
        put_file(in_dir(file), copy, good->len);
        iotest_errors = 0;
        halo_status st = hl_array_open(ctx, in_dir(file), name, NULL, &a);
        if (st == HALO_OK) {
            void *raw = malloc((size_t)a->bytes + 1);
            st = hl_array_read(a, start, a->dim, raw, (size_t)a->bytes);
            free(raw);
            hl_array_close(a);
        }
        refused += st != HALO_OK;
        wrong += iotest_errors != (st != HALO_OK);
    }
    free(copy);
    iotest_errors = 0;
    tap_ok(wrong == 0, "%s: cut anywhere it ends in one error; of single bits %d do, none in more", file, refused);
}

static void quiet(void *user, halo_log_level level, const char *message)
{
    (void)user, (void)message;
    if (level == HALO_LOG_ERROR) iotest_errors++;
}

static void damage(halo_context *loud)
{
    const char *const name[] = {"v"};
    npy_form f = {.descr = "<f4", .version = 1, .ndim = 3, .dim = {4, 4, 4}};
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    halo_context *ctx = NULL;
    (void)loud;
    o.log = quiet;
    o.threads = 1;
    if (halo_context_create(&o, &ctx) != HALO_OK) tap_bail("no context");
    hl_str npy = npy_text(&f), stored = npz_text(1, name, &f, false, false);
    damaged(ctx, &npy, "cut.npy", "");
    damaged(ctx, &stored, "cut.npz", "v");
#ifdef HAVE_ZLIB
    hl_str deflated = npz_text(1, name, &f, true, true);
    damaged(ctx, &deflated, "cut64.npz", "v");
    hl_str_free(&deflated);
#endif
    hl_str_free(&npy), hl_str_free(&stored);
    halo_context_destroy(ctx);
}

static void misfits(halo_context *ctx)
{
    hl_source *s;
    npy_form f = {.descr = "<f4", .version = 1, .ndim = 4, .dim = {8, 8, 8, 4}}, other = f;
    write_npy(in_dir("m.npy"), &f);
    hl_array_options a = {.x = "", .y = "", .y_from = "", .table = ""};
    hl_source_options o = {.path = in_dir("m.npy"), .array = &a, .channels = 4, .size = {8, 8, 8}};
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_SHAPE, "[8, 8, 8, 4] float32", "'data.x.axes: [d, h, w, c]' would fit", "axes that nobody named");
    a.x_axes = words_of("cdhw");
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_SHAPE, "the network expects 4 x 8 x 8 x 8", "'data.x.axes: [d, h, w, c]' would fit", "the wrong order");
    a.x_axes = words_of("dhw");
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_SHAPE, "4 axes", "names 3", "too few axes");
    a.x_axes = words_of("dhwc");
    o.size[0] = o.size[1] = o.size[2] = 16;
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_SHAPE, "16 x 16 x 16", "no order of its axes would fit", "a shape that cannot fit");
    a.x_axes = words_of("ddhw");
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_USAGE, "'d' twice", "data.x.axes", "an axis twice");
    mkdir(in_dir("mixed"), 0777);
    other.dim[0] = 6;
    write_npy(in_dir("mixed/a.npy"), &f), write_npy(in_dir("mixed/b.npy"), &other);
    a.x_axes = words_of("dhwc");
    o = (hl_source_options){.path = in_dir("mixed"), .array = &a};
    fails_with(ctx, hl_source_open(ctx, &o, &s), HALO_ERR_SHAPE, "b.npy' is [6, 8, 8, 4]", "expected [8, 8, 8, 4] float32 as in 'a.npy'", "files that differ");
    a.x = "v";
    fails_with(ctx, hl_array_open(ctx, in_dir("set.npz"), "w", NULL, &(hl_array *){NULL}), HALO_ERR_FORMAT, "no member 'w'", "v, label", "a member that is not there");
    fails_with(ctx, hl_array_open(ctx, in_dir("set.npz"), "", NULL, &(hl_array *){NULL}), HALO_ERR_FORMAT, "which member?", "v, label", "one of several members");
}

int main(void)
{
    halo_context *ctx = iotest_begin("arrays");
    types(ctx);
    archives(ctx);
    axes(ctx);
    counted(ctx);
    hdf5(ctx);
    truths(ctx);
    tables(ctx);
    samples_in_a_file(ctx);
    misfits(ctx);
    bad_headers(ctx);
    damage(ctx);
    return iotest_end(ctx);
}
