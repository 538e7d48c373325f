/* SPDX-License-Identifier: Apache-2.0 */
/* refused.c -- universes and halo's own files that do not fit, are damaged, or would be taken for what they are not. */
#include "tests/io/layouts.h"
#include "base/file.h"

/* Ranges that cannot be turned into physical units. */
static void bad_ranges(halo_context *ctx)
{
    static const hl_target target[2] = {{.name = "a", .low = 3, .high = 3, .mean = NAN, .std = NAN},
                                        {.name = "b", .low = NAN, .high = NAN, .mean = 1, .std = 0}};
    for (int k = 0; k < 2; k++) {
        hl_writer *w = NULL;
        float x[8] = {0};
        MUST(hl_writer_create(ctx, in_dir("range.h5"),
                              &(hl_writer_options){.ext = {1, 2, 2, 2}, .dtype = HALO_F32, .targets = 1, .target = &target[k]}, &w));
        MUST(hl_writer_add(w, x, x, -1));
        MUST(hl_writer_close(w, true));
        fails_with(ctx, refused(ctx, (hl_source_options){.path = in_dir("range.h5")}), HALO_ERR_FORMAT, "range.h5",
                   k ? "deviation of target 'b' is 0" : "target 'a' is 3 to 3", "a range of no width");
    }
}

static void bad_universes(halo_context *ctx)
{
    universe_form f = {.type = H5T_STD_I16LE, .targets = 4};
    char dir[1024];
    snprintf(dir, sizeof(dir), "%s", write_universes("bad", &f));
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir, .outputs = 3}), HALO_ERR_SHAPE, "4 targets",
               "3 outputs", "targets that do not match the network");
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir, .size = {4, 4, 4}}), HALO_ERR_SHAPE,
               "[8, 8, 8, 4] int16", "expects [4, 4, 4]", "another size");
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir, .channels = 5}), HALO_ERR_SHAPE,
               "4 channels", "expects 5", "too few channels");
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir, .crop = {16, 16, 16}}), HALO_ERR_SHAPE,
               "[16, 16, 16]", "[8, 8, 8]", "a crop larger than the box");
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir, .group_first = 3, .group_count = 2}),
               HALO_ERR_USAGE, "4 universes", "2 from", "universes that are not there");
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir, .format = "cosmouniverses"}),
               HALO_ERR_USAGE, "'cosmouniverses'", "did you mean 'cosmouniverse'", "an unknown format");
    fails_with(ctx, refused(ctx, (hl_source_options){.path = in_dir("nowhere")}), HALO_ERR_IO, "nowhere",
               "No such file", "a path that is not there");
    fails_with(ctx, refused(ctx, (hl_source_options){0}), HALO_ERR_USAGE, "no data", "path",
               "no path at all");
    mkdir(in_dir("empty"), 0777);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = in_dir("empty")}), HALO_ERR_IO, "no *.hdf5",
               "empty", "an empty directory");

    char victim[1100];
    snprintf(victim, sizeof(victim), "%s/ics_2.hdf5", dir);
    universe_form other = {.type = H5T_IEEE_F32LE, .targets = 4};
    write_universe(victim, 2, &other);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir}), HALO_ERR_SHAPE,
               "ics_2.hdf5': dataset 'full' is [8, 8, 8, 4] float32", "expected [8, 8, 8, 4] int16",
               "one file of another type");
    other.type = H5T_STD_I16LE;
    other.targets = 3;
    write_universe(victim, 2, &other);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir}), HALO_ERR_SHAPE, "ics_2.hdf5",
               "'unitPar' is [3] float32, expected 4", "one with fewer targets");
    struct stat st;
    stat(victim, &st);
    truncate(victim, st.st_size / 2);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir}), HALO_ERR_FORMAT, "ics_2.hdf5",
               "truncated", "one truncated, met at the start");
    unlink(victim);
    MUST(hl_file_write(ctx, victim, "<html>404</html>", 16));
    fails_with(ctx, refused(ctx, (hl_source_options){.path = dir}), HALO_ERR_FORMAT, "ics_2.hdf5",
               "not an HDF5 file", "one that is a web page");
}

static void put_plain(const char *path, const char *name, hid_t type, int rank, const hsize_t *dim,
                      hid_t memory, const void *data, bool create)
{
    hid_t file = create ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                        : H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    put_array(file, name, type, rank, dim, H5P_DEFAULT, memory, data);
    H5Fclose(file);
}

static void bad_halo(halo_context *ctx)
{
    const char *path = in_dir("wrong.h5");
    static float zeros[64];
    float y[4] = {0, 0, NAN, 0};
    char text[16] = "abcdefgh";
    const hsize_t four[4] = {1, 2, 3, 4}, five[5] = {2, 1, 2, 3, 4}, rows[2] = {2, 2}, short_rows[2] = {1, 2},
                  eight = 8;
    put_plain(path, "x", H5T_IEEE_F32LE, 4, four, H5T_NATIVE_FLOAT, zeros, true);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = path}), HALO_ERR_SHAPE,
               "'x' is [1, 2, 3, 4] float32", "5 dimensions [n, c, d, h, w]", "a dataset of the wrong rank");
    put_plain(path, "x", H5T_C_S1, 1, &eight, H5T_C_S1, text, true);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = path}), HALO_ERR_FORMAT, "wrong.h5",
               "strings, not numbers", "a dataset of the wrong type");
    put_plain(path, "volume", H5T_IEEE_F32LE, 5, five, H5T_NATIVE_FLOAT, zeros, true);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = path}), HALO_ERR_FORMAT, "wrong.h5",
               "neither 'full'", "an HDF5 file of no known layout");
    put_plain(path, "x", H5T_IEEE_F32LE, 5, five, H5T_NATIVE_FLOAT, zeros, true);
    put_plain(path, "y", H5T_IEEE_F32LE, 2, short_rows, H5T_NATIVE_FLOAT, y, false);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = path}), HALO_ERR_SHAPE, "'y' is [1, 2]",
               "expected [2, targets]", "targets for fewer samples");
    put_plain(path, "x", H5T_IEEE_F32LE, 5, five, H5T_NATIVE_FLOAT, zeros, true);
    put_plain(path, "y", H5T_IEEE_F64BE, 2, rows, H5T_NATIVE_FLOAT, y, false);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = path}), HALO_ERR_NONFINITE, "sample 1",
               "'target_0' is not finite", "a NaN among the targets");
    mkdir(in_dir("mixed"), 0777);
    hl_target swapped[2] = {two_targets[1], two_targets[0]};
    write_halo(ctx, in_dir("mixed/a.h5"), HALO_U8, 2, 0, 0, two_targets, false);
    write_halo(ctx, in_dir("mixed/b.h5"), HALO_U8, 2, 0, 0, swapped, false);
    fails_with(ctx, refused(ctx, (hl_source_options){.path = in_dir("mixed")}), HALO_ERR_FORMAT, "b.h5",
               "target 0 is 'radius of it', expected 'mass'", "files whose targets differ");
}

static void put_names(hid_t file, const char *a, const char *b)
{
    const char *name[2] = {a, b};
    hsize_t two = 2;
    hid_t text = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &two, NULL);
    H5Tset_size(text, H5T_VARIABLE);
    hid_t at = H5Acreate_by_name(file, "y", "names", text, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(at, text, name);
    H5Aclose(at), H5Sclose(space), H5Tclose(text);
}

/* Attributes of y that would give wrong physical units, or none, without a word. */
static void bad_attributes(halo_context *ctx)
{
    static const struct {
        const char *attr[4];
        double value[4][2];
        const char *first, *second; /* names */
        const char *about, *why, *what;
    } bad[] = {
        {{"low", "high"}, {{NAN, 1}, {2, 3}}, "a", "b", "attribute 'low' of 'y'", "target 'a', must be finite", "a low that is NaN"},
        {{"low", "high"}, {{0, 0}, {1, INFINITY}}, "a", "b", "attribute 'high' of 'y'", "target 'b', must be finite", "an infinite high"},
        {{"mean", "std"}, {{0, 0}, {INFINITY, 1}}, "a", "b", "attribute 'std' of 'y'", "must be finite", "an infinite std"},
        {{"low"}, {{0, 1}}, "a", "b", "'y' has an attribute 'low'", "no 'high'", "low without high"},
        {{"high"}, {{0, 1}}, "a", "b", "'y' has an attribute 'high'", "no 'low'", "high without low"},
        {{"mean"}, {{0, 1}}, "a", "b", "'y' has an attribute 'mean'", "no 'std'", "mean without std"},
        {{"std"}, {{1, 1}}, "a", "b", "'y' has an attribute 'std'", "no 'mean'", "std without mean"},
        {{"low", "high", "mean", "std"}, {{0, 0}, {1, 1}, {0, 0}, {1, 1}}, "a", "b", "'low' and 'high' and 'mean' and 'std'",
         "only one pair", "two meanings at once"},
        {{"names"}, {{1, 2}}, NULL, NULL, "attribute 'names' of 'y'", "no strings", "names that are numbers"},
        {{NULL}, {{0}}, "a", "a", "attribute 'names' of 'y'", "both 'a'", "two targets of one name"},
        {{NULL}, {{0}}, "a", "b\nc", "attribute 'names' of 'y'", "target 1 has a control character (10)", "a name of two lines"},
        {{NULL}, {{0}}, "a\x7f", "b", "attribute 'names' of 'y'", "target 0 has a control character (127)", "a name with DEL"},
    };
    const char *path = in_dir("attributes.h5");
    static float zeros[64];
    const hsize_t five[5] = {2, 1, 2, 3, 4}, rows[2] = {2, 2};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        put_plain(path, "x", H5T_IEEE_F32LE, 5, five, H5T_NATIVE_FLOAT, zeros, true);
        put_plain(path, "y", H5T_IEEE_F32LE, 2, rows, H5T_NATIVE_FLOAT, zeros, false);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        for (int k = 0; k < 4 && bad[i].attr[k]; k++) put_attr(file, "y", bad[i].attr[k], 2, bad[i].value[k]);
        if (bad[i].first) put_names(file, bad[i].first, bad[i].second);
        H5Fclose(file);
        fails_with(ctx, refused(ctx, (hl_source_options){.path = path}), HALO_ERR_FORMAT, bad[i].about, bad[i].why, bad[i].what);
        tap_ok(strstr(halo_error_message(ctx), "attributes.h5") != NULL, "and the message names the file");
    }
}

int main(void)
{
    halo_context *ctx = iotest_begin("refused");
    bad_ranges(ctx);
    bad_universes(ctx);
    bad_halo(ctx);
    bad_attributes(ctx);
    return iotest_end(ctx);
}
