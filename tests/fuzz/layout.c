/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c -- fuzz target: HDF5 files of any layout. The bytes say which datasets a file has, of what type, rank, extents and storage, and with which attributes; HDF5 writes it, so that
 * what is tried is halo's reading of layouts and not the library's of broken files. What opens as a source is read, whole and in a box. tests/fuzz/run builds and runs it.
 */
#include "base/base.h"
#include "io/io.h"

#include <hdf5.h>
#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct input { const uint8_t *at, *end; } input;

static void ignore(void *user, halo_log_level level, const char *message) { (void)user, (void)level, (void)message; }

static unsigned take(input *in, unsigned below) { return in->at < in->end ? *in->at++ % below : 0; }

static hid_t type_of(unsigned t)
{
    const hid_t types[] = {H5T_STD_I8LE, H5T_STD_U8BE, H5T_STD_I16BE, H5T_STD_U16LE, H5T_STD_I32LE, H5T_STD_U32BE, H5T_STD_I64LE, H5T_STD_U64BE, H5T_IEEE_F32LE, H5T_IEEE_F32BE,
                           H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_NATIVE_LDOUBLE, H5T_STD_B8LE, H5T_C_S1};
    return types[t % HL_COUNT(types)];
}

/* Small extents are written; huge ones are only claimed. */
static bool extents(input *in, int ndim, hsize_t *dim)
{
    bool huge = take(in, 8) == 0;
    for (int k = 0; k < ndim; k++) dim[k] = huge ? (hsize_t)1 << take(in, 40) : take(in, 6);
    return huge;
}

static hid_t storage(input *in, int ndim, const hsize_t *dim, bool huge)
{
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[6];
    H5Pset_fill_time(p, H5D_FILL_TIME_NEVER);
    if ((!huge && !take(in, 2)) || ndim == 0) return p;
    for (int k = 0; k < ndim; k++) {
        hsize_t c = 1 + take(in, 4);
        chunk[k] = c < dim[k] ? c : dim[k] > 0 ? dim[k] : 1;
    }
    H5Pset_chunk(p, ndim, chunk);
    if (take(in, 2)) H5Pset_shuffle(p);
    if (take(in, 2)) H5Pset_deflate(p, 1);
    return p;
}

static void attribute(input *in, hid_t object)
{
    static const char *const names[] = {"names", "low", "high", "mean", "std", "periodic"};
    static const double values[] = {0, 1, -1, 2, 1e300, NAN, INFINITY, 0.5};
    double v[8];
    hsize_t n = take(in, 8);
    hid_t space = H5Screate_simple(1, &n, NULL);
    const char *name = names[take(in, HL_COUNT(names))];
    for (int i = 0; i < 8; i++) v[i] = values[take(in, 8)];
    hid_t a = H5Acreate2(object, name, take(in, 4) ? H5T_IEEE_F64LE : H5T_STD_I16BE, space, H5P_DEFAULT, H5P_DEFAULT);
    if (a >= 0) {
        if (n > 0) H5Awrite(a, H5T_NATIVE_DOUBLE, v);
        H5Aclose(a);
    }
    H5Sclose(space);
}

static void dataset(input *in, hid_t file)
{
    static const char *const names[] = {"x", "y", "full", "unitPar", "physPar", "namePar", "group", "redshifts", "a", "a/b"};
    static double v[15625]; /* 5^6 */
    hsize_t dim[6];
    const char *name = names[take(in, HL_COUNT(names))];
    int ndim = (int)take(in, 7);
    bool huge = extents(in, ndim, dim);
    hid_t space = ndim ? H5Screate_simple(ndim, dim, NULL) : H5Screate(H5S_SCALAR), p = storage(in, ndim, dim, huge), l = H5Pcreate(H5P_LINK_CREATE), type = type_of(take(in, 15));
    H5Pset_create_intermediate_group(l, 1);
    hid_t d = space < 0 ? -1 : H5Dcreate2(file, name, type, space, l, p, H5P_DEFAULT);
    for (size_t i = 0; i < 32; i++) v[i] = (double)take(in, 256) - 100;
    if (d >= 0 && !huge && take(in, 4) && H5Tget_class(type) != H5T_STRING && H5Tget_class(type) != H5T_BITFIELD) H5Dwrite(d, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v);
    for (unsigned n = take(in, 4); d >= 0 && n > 0; n--) attribute(in, d);
    if (d >= 0) H5Dclose(d);
    H5Pclose(l), H5Pclose(p);
    if (space >= 0) H5Sclose(space);
}

static hl_words axes(input *in)
{
    hl_words w = {0};
    for (unsigned n = take(in, 7); n > 0; n--) w.word[w.n++][0] = "ncdhw"[take(in, 5)];
    return w;
}

static void read_some(hl_source *s)
{
    int64_t x, y, v;
    const int64_t *e = s->info.ext;
    if (!hl_mul64(e[0] * e[1], e[2] * e[3], &x) || x > 1 << 20 || !hl_mul64(x, 8, &v)) return;
    y = hl_target_values(&s->info);
    if (y > 1 << 20) return;
    void *raw = malloc((size_t)v + 1);
    float *t = malloc((size_t)y * sizeof(*t) + 1);
    hl_cells some = {.lo = {e[1] / 2, e[2] / 2, -1}, .ext = {1, 1, hl_min64(2, e[3])}};
    char id[128];
    for (int64_t i = 0; i < s->info.samples && i < 8 && raw && t; i++) {
        if (hl_source_read(s, i, NULL, raw, NULL, t) != HALO_OK) break;
        HL_BUG_UNLESS(hl_source_read(s, i, &some, raw, NULL, NULL) == HALO_OK);
        s->ops->id_of(s, i, id, sizeof(id));
        HL_BUG_UNLESS(s->ops->group_of(s, i) >= 0 && s->ops->group_of(s, i) < s->info.groups);
    }
    free(raw);
    free(t);
}

static void open_as(halo_context *ctx, input *in, const char *path)
{
    static const char *const formats[] = {"auto", "cosmouniverse", "halo", "arrays"}, *const names[] = {"", "x", "/a/b", "y", "full"};
    hl_array_options a = {.x = names[take(in, 5)], .y = names[take(in, 5)], .y_from = "", .table = "", .x_axes = axes(in), .y_axes = axes(in), .periodic = take(in, 2)};
    hl_source_options o = {.path = path, .format = formats[take(in, 4)], .array = &a};
    hl_str text = {0};
    hl_json json = {0};
    hl_source *s;
    for (int k = 0; k < 3; k++) o.crop[k] = take(in, 3);
    if (hl_source_open(ctx, &o, &s) == HALO_OK) {
        read_some(s);
        hl_source_close(s);
    }
    hl_json_object(&json, NULL);
    (void)hl_data_inspect(ctx, path, &text, &json);
    hl_str_free(&text);
    hl_json_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static halo_context *ctx;
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    input in = {data, data + bytes};
    const char *tmp = getenv("TMPDIR");
    char path[1024];
    o.log = ignore;
    if (!ctx) {
        hl_io_own_process();
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
        if (halo_context_create(&o, &ctx) != HALO_OK) return 0;
    }
    snprintf(path, sizeof(path), "%s/halo-layout.%ld.h5", tmp ? tmp : "/tmp", (long)getpid()); /* HDF5 wants a name that it can resolve */
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    H5Pclose(fapl);
    HL_BUG_UNLESS(file >= 0); /* else nothing at all would be tried */
    for (unsigned n = 1 + take(&in, 4); n > 0; n--) dataset(&in, file);
    H5Fclose(file);
    open_as(ctx, &in, path);
    return 0;
}
