/* SPDX-License-Identifier: Apache-2.0 */
/* The HDF5 layer: every type, byte order and storage that HDF5 itself can write reads back; what cannot be
 * read says why. */
#include "tests/io/iotest.h"
#include "io/h5out.h"
#include "io/volume.h"

#include <sys/file.h>

enum { D0 = 3, D1 = 4, D2 = 5, D3 = 6, CELLS = D0 * D1 * D2 * D3 };
static const hsize_t dim4[4] = {D0, D1, D2, D3};

static double value_at(int64_t i, bool is_signed)
{
    return (double)((i * 7) % 101) - (is_signed ? 50 : 0);
}

/* --------------------------------------------------------------------------------------------- the matrix */

typedef struct kind {
    const char *name, *order; /* order: "little-endian" or "big-endian" */
    hid_t type;
    bool is_signed;
} kind;

enum layout { CONTIGUOUS = 0, COMPACT, CHUNKED, DEFLATE, SHUFFLE_DEFLATE, FLETCHER32, SCALE_OFFSET, LAYOUTS };
static const char *const layout_names[LAYOUTS] = {"contiguous",        "compact",    "chunked",     "deflate",
                                                  "shuffle + deflate", "fletcher32", "scale-offset"};

static hid_t creation(enum layout layout, bool is_float)
{
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    if (layout == COMPACT) H5Pset_layout(p, H5D_COMPACT);
    if (layout >= CHUNKED) H5Pset_chunk(p, 4, (hsize_t[]){2, 3, 5, 4}); /* divides no extent evenly but one */
    if (layout == SHUFFLE_DEFLATE) H5Pset_shuffle(p);
    if (layout == DEFLATE || layout == SHUFFLE_DEFLATE) H5Pset_deflate(p, 4);
    if (layout == FLETCHER32) H5Pset_fletcher32(p);
    if (layout == SCALE_OFFSET)
        H5Pset_scaleoffset(p, is_float ? H5Z_SO_FLOAT_DSCALE : H5Z_SO_INT,
                           is_float ? 2 : H5Z_SO_INT_MINBITS_DEFAULT);
    return p;
}

static void write_one(hid_t file, const char *name, const kind *k, enum layout layout)
{
    double v[CELLS];
    for (int i = 0; i < CELLS; i++) v[i] = value_at(i, k->is_signed);
    hid_t space = H5Screate_simple(4, dim4, NULL), p = creation(layout, H5Tget_class(k->type) == H5T_FLOAT);
    hid_t set = H5Dcreate2(file, name, k->type, space, H5P_DEFAULT, p, H5P_DEFAULT);
    if (set < 0 || H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) < 0)
        tap_bail("HDF5 cannot write %s", name);
    H5Dclose(set);
    H5Pclose(p);
    H5Sclose(space);
}

/* A box off the borders, then everything, in small pieces, then through halo's own types and as float. */
static bool reads_back(halo_context *ctx, hl_h5 *file, const char *name, const kind *k)
{
    hl_h5_data *d = NULL;
    static char raw[CELLS * 8], to[CELLS * 8];
    bool good = true;
    MUST(hl_h5_data_open(file, name, 0, &d));
    for (int64_t piece = 64; piece <= INT64_C(1) << 30; piece *= INT64_C(1) << 24) {
        d->piece = piece;
        const int64_t start[4] = {1, 0, 2, 1}, count[4] = {2, 4, 3, 5}, zero[4] = {0};
        MUST(hl_h5_read(d, start, count, raw, sizeof(raw)));
        for (int64_t i = 0; i < 2 * 4 * 3 * 5; i++) {
            int64_t at = ((1 + i / 60) * D1 + i / 15 % 4) * D2 * D3 + (2 + i / 5 % 3) * D3 + 1 + i % 5;
            good = good && hl_number_value(d->type, raw, i) == value_at(at, k->is_signed);
        }
        MUST(hl_h5_read(d, zero, d->dim, raw, sizeof(raw)));
        for (int64_t i = 0; i < CELLS; i++)
            good = good && hl_number_value(d->type, raw, i) == value_at(i, k->is_signed);
    }
    halo_dtype type = hl_number_dtype(d->type);
    hl_convert(d->type, raw, 1, type, to, CELLS);
    for (int64_t i = 0; i < CELLS; i++)
        good = good && hl_number_value(hl_dtype_number(type), to, i) == value_at(i, k->is_signed);
    hl_convert(d->type, raw, 3, HALO_F32, to, CELLS / 3);
    for (int64_t i = 0; i < CELLS / 3; i++)
        good = good && ((float *)to)[i] == (float)value_at(3 * i, k->is_signed);
    hl_h5_data_close(d);
    return good;
}

static hid_t half_type(bool big)
{
    hid_t t = H5Tcopy(big ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);
    H5Tset_fields(t, 15, 10, 5, 0, 10);
    H5Tset_size(t, 2);
    H5Tset_ebias(t, 15);
    return t;
}

static hid_t bits12(void)
{
    hid_t t = H5Tcopy(H5T_STD_I16LE);
    H5Tset_precision(t, 12);
    H5Tset_offset(t, 2);
    return t;
}

static void matrix(halo_context *ctx)
{
    const kind kinds[] = {
        {"int8", "little", H5T_STD_I8LE, true},        {"uint8", "little", H5T_STD_U8LE, false},
        {"int16", "little", H5T_STD_I16LE, true},      {"int16", "big", H5T_STD_I16BE, true},
        {"uint16", "little", H5T_STD_U16LE, false},    {"uint16", "big", H5T_STD_U16BE, false},
        {"int32", "little", H5T_STD_I32LE, true},      {"int32", "big", H5T_STD_I32BE, true},
        {"uint32", "little", H5T_STD_U32LE, false},    {"uint32", "big", H5T_STD_U32BE, false},
        {"int64", "little", H5T_STD_I64LE, true},      {"int64", "big", H5T_STD_I64BE, true},
        {"uint64", "little", H5T_STD_U64LE, false},    {"uint64", "big", H5T_STD_U64BE, false},
        {"float16", "little", half_type(false), true}, {"float16", "big", half_type(true), true},
        {"float32", "little", H5T_IEEE_F32LE, true},   {"float32", "big", H5T_IEEE_F32BE, true},
        {"float64", "little", H5T_IEEE_F64LE, true},   {"float64", "big", H5T_IEEE_F64BE, true},
        {"12 of 16 bits", "little", bits12(), true},   {"long double", "native", H5T_NATIVE_LDOUBLE, true}};
    const char *path = in_dir("matrix.h5");
    char name[64];
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (size_t k = 0; k < HL_COUNT(kinds); k++)
        for (int l = 0; l < LAYOUTS; l++) {
            snprintf(name, sizeof(name), "/%zu-%d", k, l);
            if (l != SCALE_OFFSET || (k < 14 && kinds[k].name[0] != 'f'))
                write_one(file, name, &kinds[k], (enum layout)l);
        }
    H5Fclose(file);
    hl_h5 *in = NULL;
    MUST(hl_h5_open(ctx, path, &in));
    for (size_t k = 0; k < HL_COUNT(kinds); k++) {
        int good = 0, of = 0;
        char which[128] = "";
        for (int l = 0; l < LAYOUTS; l++) {
            snprintf(name, sizeof(name), "/%zu-%d", k, l);
            if (!hl_h5_has(in, name)) continue;
            of++;
            if (reads_back(ctx, in, name, &kinds[k]))
                good++;
            else
                snprintf(which, sizeof(which), ", not %s", layout_names[l]);
        }
        tap_ok(good == of && of >= 6, "%s, %s-endian: boxes in large and small pieces, %d storages%s",
               kinds[k].name, kinds[k].order, of, which);
    }
    hl_h5_close(in);
}

static void halves(void)
{
    int wrong = 0;
    const struct {
        uint16_t bits;
        float value;
    } known[] = {{0x0000, 0.0f},     {0x3c00, 1.0f},     {0xc000, -2.0f},           {0x7bff, 65504.0f},
                 {0x0400, 0x1p-14f}, {0x0001, 0x1p-24f}, {0x03ff, 1023 * 0x1p-24f}, {0x7c00, INFINITY},
                 {0xfc00, -INFINITY}};
    for (size_t i = 0; i < HL_COUNT(known); i++) wrong += hl_half_to_float(known[i].bits) != known[i].value;
    tap_ok(wrong == 0 && isnan(hl_half_to_float(0x7e00)) && signbit(hl_half_to_float(0x8000)),
           "half precision: denormals, infinities, NaN, -0");
}

/* -------------------------------------------------------------------------------------- any order of axes */

enum { C = 3, D = 4, H = 5, W = 6, N = 2 };

static int extent_of(char axis)
{
    return axis == 'n' ? N : axis == 'c' ? C : axis == 'd' ? D : axis == 'h' ? H : W;
}

/* The value tells where it is: n c d h w as digits of base 6. */
static int place_of(const int at[5])
{
    return (((at[0] * 6 + at[1]) * 6 + at[2]) * 6 + at[3]) * 6 + at[4];
}

static void write_axes(const char *path, const char *order, bool chunked)
{
    static int16_t v[N * C * D * H * W];
    hsize_t dim[5], chunk[5];
    int rank = (int)strlen(order), total = 1;
    for (int i = 0; i < rank; i++) {
        dim[i] = (hsize_t)extent_of(order[i]);
        chunk[i] = dim[i] > 3 ? 3 : dim[i];
        total *= (int)dim[i];
    }
    for (int i = 0; i < total; i++) {
        static const char letter[] = "ncdhw";
        int at[5] = {0}, rest = i;
        for (int k = rank - 1; k >= 0; rest /= (int)dim[k--])
            at[strchr(letter, order[k]) - letter] = rest % (int)dim[k];
        v[i] = (int16_t)place_of(at);
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
          space = H5Screate_simple(rank, dim, NULL);
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    if (chunked) H5Pset_chunk(p, rank, chunk);
    hid_t set = H5Dcreate2(file, "v", H5T_STD_I16BE, space, H5P_DEFAULT, p, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_INT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, v);
    H5Dclose(set), H5Pclose(p), H5Sclose(space), H5Fclose(file);
}

static bool read_axes(halo_context *ctx, const char *path, const char *order)
{
    hl_h5 *in = NULL;
    hl_h5_data *d = NULL;
    hl_volume volume;
    char *scratch = NULL;
    size_t capacity = 0;
    bool good = true;
    int n = strchr(order, 'n') ? 1 : 0, channels = strchr(order, 'c') ? 2 : 1;
    const hl_cut cut = {.lo = {1, 2, 0}, .ext = {3, 2, 5}, .into = {3, 2, 5}};
    float out[2 * 3 * 2 * 5];
    MUST(hl_h5_open(ctx, path, &in));
    MUST(hl_h5_data_open(in, "/v", 0, &d));
    hl_volume_set(&volume, d, order);
    MUST(hl_volume_read(&volume, n, channels, &cut, HALO_F32, out, &scratch, &capacity));
    for (int i = 0; i < channels * 3 * 2 * 5; i++)
        good = good && out[i] == (float)place_of((int[]){n, i / 30, i / 10 % 3 + 1, i / 5 % 2 + 2, i % 5});
    free(scratch);
    hl_h5_data_close(d);
    hl_h5_close(in);
    return good;
}

static void axes(halo_context *ctx)
{
    static const char *const order[] = {"dhwc", "cdhw", "ncdhw", "ndhwc", "whdc", "dhw", "nwhdc", "dhwcn"};
    const char *path = in_dir("axes.h5");
    for (size_t o = 0; o < HL_COUNT(order); o++) {
        bool good = true;
        for (int chunked = 0; chunked < 2; chunked++) {
            write_axes(path, order[o], chunked);
            good = good && read_axes(ctx, path, order[o]);
        }
        tap_ok(good, "a box of some channels from a file whose axes are %s, contiguous and chunked",
               order[o]);
    }
}

/* ---------------------------------------------------------------------------------------------- bad files */

static hid_t put(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dim, hid_t p,
                 const void *data, hid_t memory)
{
    hid_t space = rank < 0 ? H5Screate(H5S_NULL)
                  : rank   ? H5Screate_simple(rank, dim, NULL)
                           : H5Screate(H5S_SCALAR);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, p, H5P_DEFAULT);
    if (data) H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dclose(set);
    H5Sclose(space);
    return set;
}

static size_t pass_on(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t *size,
                      void **buffer)
{
    (void)flags, (void)n, (void)values, (void)size, (void)buffer;
    return bytes;
}

static void bad_files(halo_context *ctx)
{
    static const H5Z_class2_t blosc = {H5Z_CLASS_T_VERS, 32001, 1, 1, "a test", NULL, NULL, pass_on};
    const char *path = in_dir("bad.h5");
    double v[8] = {0};
    const hsize_t eight = 8, two[2] = {2, 4}, huge[3] = {1 << 20, 1 << 20, 1 << 10};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), text = H5Tcopy(H5T_C_S1),
          p = H5Pcreate(H5P_DATASET_CREATE);
    H5Zregister(&blosc);
    H5Gclose(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    put(file, "text", text, 1, &eight, H5P_DEFAULT, NULL, -1);
    put(file, "null", H5T_STD_I16LE, -1, NULL, H5P_DEFAULT, NULL, -1);
    put(file, "good", H5T_STD_I16LE, 2, two, H5P_DEFAULT, v, H5T_NATIVE_DOUBLE);
    H5Pset_chunk(p, 3, (hsize_t[]){64, 64, 64});
    put(file, "claims", H5T_IEEE_F64LE, 3, huge, p, NULL, -1);
    H5Pset_chunk(p, 1, &eight);
    H5Pset_filter(p, 32001, 0, 0, NULL);
    put(file, "filtered", H5T_STD_I16LE, 1, &eight, p, v, H5T_NATIVE_DOUBLE);
    H5Pclose(p), H5Tclose(text), H5Fclose(file);
    H5Zunregister(32001);

    hl_h5 *in = NULL;
    hl_h5_data *d = NULL;
    char raw[64];
    MUST(hl_h5_open(ctx, path, &in));
    fails_with(ctx, hl_h5_data_open(in, "/full", 0, &d), HALO_ERR_FORMAT, path, "no dataset '/full'",
               "a missing dataset");
    fails_with(ctx, hl_h5_data_open(in, "/a/b/full", 0, &d), HALO_ERR_FORMAT, path, "no dataset '/a/b/full'",
               "a missing group");
    fails_with(ctx, hl_h5_data_open(in, "/g", 0, &d), HALO_ERR_FORMAT, path, "'/g'", "a group");
    fails_with(ctx, hl_h5_data_open(in, "/text", 0, &d), HALO_ERR_FORMAT, path, "strings, not numbers",
               "strings");
    fails_with(ctx, hl_h5_data_open(in, "/null", 0, &d), HALO_ERR_FORMAT, path, "'/null'", "no extents");
    fails_with(ctx, hl_h5_data_open(in, "/filtered", 0, &d), HALO_ERR_FORMAT, "filter 32001 (blosc)",
               "HDF5_PLUGIN_PATH", "a filter that is not installed");
    MUST(hl_h5_data_open(in, "/good", 0, &d));
    fails_with(ctx, hl_h5_read(d, (int64_t[]){0, 2}, (int64_t[]){1, 3}, raw, sizeof(raw)), HALO_ERR_SHAPE,
               "'/good'", "dimension 1 of 4", "a box outside");
    hl_h5_data_close(d);
    MUST(hl_h5_data_open(in, "/claims", 0, &d));
    fails_with(ctx, hl_h5_claim(d, d->bytes), HALO_ERR_FORMAT, "[1048576, 1048576, 1024]",
               "0 bytes of it are stored", "2^53 bytes that are not there");
    tap_ok(hl_h5_claim(d, 1 << 20) == HALO_OK, "a small part of it may be asked for");
    hl_h5_data_close(d);
    int fd = open(path, O_RDWR), locked = flock(fd, LOCK_EX);
    hl_h5 *again = NULL;
    tap_ok(locked == 0 && hl_h5_open(ctx, path, &again) == HALO_OK, "a file that another has locked opens");
    hl_h5_close(again);
    close(fd);
    hl_h5_close(in);
}

/* Data past the end of the file, as after a copy that stopped; and a chunk whose checksum fails. */
static void damaged_files(halo_context *ctx)
{
    const char *path = in_dir("damaged.h5");
    static int16_t v[4096];
    const hsize_t n = 4096;
    for (int i = 0; i < 4096; i++) v[i] = (int16_t)(i * 11);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), p = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(p, 1, (hsize_t[]){1024});
    H5Pset_fletcher32(p);
    put(file, "checked", H5T_STD_I16LE, 1, &n, p, v, H5T_NATIVE_INT16);
    H5Pclose(p), H5Fclose(file);
    FILE *f = fopen(path, "r+b");
    static char bytes[1 << 16];
    size_t have = fread(bytes, 1, sizeof(bytes), f);
    char *at = memmem(bytes, have, v + 2048, 512);
    tap_ok(at != NULL, "the chunk is in the file as it is");
    fseek(f, (long)(at - bytes) + 9, SEEK_SET);
    fputc(at[9] ^ 4, f);
    fclose(f);
    hl_h5 *in = NULL;
    hl_h5_data *d = NULL;
    MUST(hl_h5_open(ctx, path, &in));
    MUST(hl_h5_data_open(in, "/checked", 0, &d));
    int16_t out[1024];
    tap_ok(hl_h5_read(d, (int64_t[]){0}, (int64_t[]){1024}, out, sizeof(out)) == HALO_OK,
           "a good chunk reads");
    fails_with(ctx, hl_h5_read(d, (int64_t[]){2048}, (int64_t[]){1024}, out, sizeof(out)), HALO_ERR_IO,
               "damaged.h5", "hecksum", "a damaged one does not");
    hl_h5_data_close(d);
    hl_h5_close(in);
    truncate(path, (off_t)have / 2);
    fails_with(ctx, hl_h5_open(ctx, path, &in), HALO_ERR_FORMAT, "damaged.h5", "truncated", "half a file");
    truncate(path, 0);
    fails_with(ctx, hl_h5_open(ctx, path, &in), HALO_ERR_FORMAT, "damaged.h5", "empty", "an empty file");
}

static void strings(halo_context *ctx)
{
    const char *path = in_dir("strings.h5");
    const char *variable[3] = {"Omega_m", "sigma_8", "\xc3\xa9"};
    const char fixed[3][4] = {"abc ", "d   ", "    "};
    const hsize_t three = 3;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), vlen = H5Tcopy(H5T_C_S1),
          four = H5Tcopy(H5T_FORTRAN_S1);
    H5Tset_size(vlen, H5T_VARIABLE);
    H5Tset_size(four, 4);
    put(file, "variable", vlen, 1, &three, H5P_DEFAULT, variable, vlen);
    put(file, "fixed", four, 1, &three, H5P_DEFAULT, fixed, four);
    put(file, "numbers", H5T_STD_I16LE, 1, &three, H5P_DEFAULT, NULL, -1);
    H5Tclose(vlen), H5Tclose(four), H5Fclose(file);
    hl_h5 *in = NULL;
    char **s = NULL;
    int64_t n;
    MUST(hl_h5_open(ctx, path, &in));
    MUST(hl_h5_strings(in, "/variable", NULL, &s, &n));
    tap_ok(n == 3 && strcmp(s[1], "sigma_8") == 0 && strcmp(s[2], "\xc3\xa9") == 0,
           "strings of variable length");
    free(s);
    MUST(hl_h5_strings(in, "/fixed", NULL, &s, &n));
    tap_ok(n == 3 && strcmp(s[0], "abc") == 0 && strcmp(s[1], "d") == 0 && s[2][0] == '\0',
           "of fixed length without end, padded with spaces");
    free(s);
    MUST(hl_h5_strings(in, "/numbers", NULL, &s, &n));
    tap_ok(n == 0 && s == NULL, "numbers are no strings");
    MUST(hl_h5_strings(in, "/nothing", NULL, &s, &n));
    tap_ok(n == 0 && s == NULL, "what is not there is none");
    hl_h5_close(in);
}

static int loud;
static herr_t application(hid_t stack, void *user)
{
    (void)stack;
    (void)user;
    loud++;
    return 0;
}

int main(void)
{
    halo_context *ctx = iotest_begin("h5");
    H5E_auto2_t kept = NULL;
    void *data = NULL;
    H5Eset_auto2(H5E_DEFAULT, application, &loud);
    matrix(ctx);
    halves();
    axes(ctx);
    bad_files(ctx);
    damaged_files(ctx);
    strings(ctx);
    H5Eget_auto2(H5E_DEFAULT, &kept, &data);
    tap_ok(kept == application && data == &loud && loud == 0,
           "the application's error reporting is left in place, and was never called");
    return iotest_end(ctx);
}
