/* SPDX-License-Identifier: Apache-2.0 */
/* Diffraction scans read in place: windows, bins, crops and unit dose against sums made here; axes in any order; parts of a window are those of the whole; pixel sizes; and each mistake one clear error. */
#include "tests/io/iotest.h"
#include "io/h5out.h"
#include "io/source.h"

#include <math.h>

enum { SY = 5, SX = 7, PH = 12, PW = 10 };

static uint16_t value(int64_t y, int64_t x, int64_t h, int64_t w) { return (uint16_t)(1 + (y * 31 + x * 17 + h * 7 + w * 3 + h * w * y) % 97); }

/* As py4DSTEM writes it: the data, and a vector of each dimension with its name and units. */
static void write_scan(halo_context *ctx, const char *path, const char *group, bool turned)
{
    static uint16_t data[SY * SX * PH * PW];
    const int64_t dim[4] = {SY, SX, PH, PW}, other[4] = {PH, PW, SY, SX}, two = 2;
    static const char *const units[] = {"A", "A", "A^-1", "A^-1"};
    const double step[4] = {0.5, 0.5, 0.02, 0.03};
    char name[256];
    hl_h5_out *out;
    for (int64_t y = 0; y < SY; y++)
        for (int64_t x = 0; x < SX; x++)
            for (int64_t h = 0; h < PH; h++)
                for (int64_t w = 0; w < PW; w++) data[turned ? ((h * PW + w) * SY + y) * SX + x : ((y * SX + x) * PH + h) * PW + w] = value(y, x, h, w);
    MUST(hl_h5_create(ctx, path, &out));
    snprintf(name, sizeof(name), "%s/data", group);
    MUST(hl_h5_put(out, name, (hl_number){'u', 2}, 4, turned ? other : dim, data));
    for (int i = 0; i < 4 && !turned; i++) {
        const double v[2] = {0, step[i]};
        snprintf(name, sizeof(name), "%s/dim%d", group, i);
        MUST(hl_h5_put(out, name, (hl_number){'f', 8}, 1, &two, v));
        MUST(hl_h5_put_attr_strings(out, name, "units", -1, &units[i]));
    }
    MUST(hl_h5_finish(out, true));
}

static hl_words words(const char *a, const char *b, const char *c, const char *d)
{
    const char *w[4] = {a, b, c, d};
    hl_words out = {0};
    for (int i = 0; i < 4 && w[i]; i++) snprintf(out.word[out.n++], HL_WORD_MAX, "%s", w[i]);
    return out;
}

static hl_array_options options(void)
{
    hl_array_options a = {.x = "/datacube_root/datacube/data", .y = "", .y_from = "", .table = ""};
    a.x_axes = words("sy", "sx", "h", "w");
    a.scan_window = words("2", "3", NULL, NULL);
    a.scan_stride = words("1", "2", NULL, NULL);
    a.detector_crop = words("8", "6", NULL, NULL);
    a.detector_bin = words("2", NULL, NULL, NULL);
    return a;
}

static const hl_target label = {.name = "potential", .low = NAN, .high = NAN, .mean = NAN, .std = NAN};

static halo_status open_scan(halo_context *ctx, const char *file, const hl_array_options *a, hl_source **source)
{
    const hl_source_options o = {.path = in_dir(file), .format = "auto", .array = a, .label = &label, .labels = 1, .target_ext = {1, 4, 3}};
    return hl_source_open(ctx, &o, source);
}

/* Pixel (h, w) of position (y, x): crop 8 x 6 of 12 x 10 begins at (2, 2), bins of 2. */
static double binned(int64_t y, int64_t x, int64_t h, int64_t w)
{
    double v = 0;
    for (int64_t i = 0; i < 2; i++)
        for (int64_t j = 0; j < 2; j++) v += value(y, x, 2 + 2 * h + i, 2 + 2 * w + j);
    return v;
}

static bool is_window(const float *x, int64_t y0, int64_t x0, double scale)
{
    bool same = true;
    for (int64_t c = 0; c < 6; c++)
        for (int64_t h = 0; h < 4; h++)
            for (int64_t w = 0; w < 3; w++) same = same && fabs((double)x[(c * 4 + h) * 3 + w] - scale * binned(y0 + c / 3, x0 + c % 3, h, w)) <= 1e-5 * 400 * scale;
    return same;
}

static void test_windows(halo_context *ctx)
{
    hl_array_options a = options();
    hl_source *s;
    hl_window_place place;
    float x[6 * 4 * 3];
    char id[64];
    bool all = true;
    MUST(open_scan(ctx, "scan.emd.h5", &a, &s));
    tap_ok(s->info.samples == 4 * 3 && s->info.ext[0] == 6 && s->info.ext[1] == 1 && s->info.ext[2] == 4 && s->info.ext[3] == 3 && s->info.unlabelled && s->info.groups == 1, "%s", s->info.description);
    for (int64_t k = 0; k < 12; k++) {
        MUST(hl_source_read(s, k, NULL, x, NULL, NULL));
        all = all && is_window(x, k / 3, k % 3 * 2, 1);
    }
    tap_ok(all, "each window has its positions as channels, and its pixels cut and summed");
    s->ops->id_of(s, 7, id, sizeof(id));
    s->ops->place_of(s, 7, &place);
    tap_ok(strcmp(id, "scan.emd.h5@2,2") == 0 && place.offset[0] == 2 && place.offset[1] == 2, "window 7 is '%s'", id);
    tap_ok(place.step[0] == 0.5 && place.pixel[0] == 0.04 && fabs(place.pixel[1] - 0.06) < 1e-12 && strcmp(place.step_units, "A") == 0 && strcmp(place.pixel_units, "A^-1") == 0,
           "pixel sizes are those of the dimension vectors, of bins: %g %s, %g %s", place.step[0], place.step_units, place.pixel[0], place.pixel_units);
    hl_source_close(s);
}

static void test_dose(halo_context *ctx)
{
    hl_array_options a = options();
    hl_source *s;
    float x[6 * 4 * 3], part[6 * 2 * 2];
    double sum = 0, of_counts = 0;
    bool same = true;
    a.unit_dose = true;
    MUST(open_scan(ctx, "scan.emd.h5", &a, &s));
    const hl_cells cells = {.lo = {0, 1, 1}, .ext = {1, 2, 2}};
    MUST(hl_source_read(s, 5, &cells, part, NULL, NULL)); /* before the whole was read */
    MUST(hl_source_read(s, 5, NULL, x, NULL, NULL));
    for (int i = 0; i < 6 * 4 * 3; i++) {
        sum += (double)x[i];
        of_counts += binned(1 + i / 12 / 3, 4 + i / 12 % 3, i / 3 % 4, i % 3);
    }
    tap_ok(fabs(sum / (6 * 4 * 3) - 1) < 1e-6 && is_window(x, 1, 4, 6 * 4 * 3 / of_counts), "unit dose: the mean of a window is 1");
    for (int i = 0; i < 6 * 2 * 2; i++) same = same && part[i] == x[(i / 4 * 4 + 1 + i / 2 % 2) * 3 + 1 + i % 2];
    tap_ok(same, "a part of a window is that of the whole, to the bit");
    const int64_t before = hl_source_data_bytes(s);
    MUST(hl_source_read(s, 6, NULL, x, NULL, NULL));
    const int64_t first = hl_source_data_bytes(s) - before;
    MUST(hl_source_read(s, 6, NULL, x, NULL, NULL));
    tap_ok(first > 0 && hl_source_data_bytes(s) - before == 2 * first, "a whole window, whose mean is not known yet, is read as often as one whose mean is: %" PRId64 " bytes", first);
    hl_source_close(s);
}

static void test_axes(halo_context *ctx)
{
    hl_array_options a = options();
    hl_source *s;
    float x[6 * 4 * 3];
    a.x = "";
    a.x_axes = words("h", "w", "sy", "sx");
    MUST(open_scan(ctx, "turned.h5", &a, &s));
    MUST(hl_source_read(s, 7, NULL, x, NULL, NULL));
    tap_ok(s->info.samples == 12 && is_window(x, 2, 2, 1), "axes may lie in another order, and the only dataset needs no name");
    hl_source_close(s);
}

static void refuse(halo_context *ctx, const char *file, const hl_array_options *a, halo_status status, const char *what)
{
    hl_source *s;
    halo_status st = open_scan(ctx, file, a, &s);
    if (st == HALO_OK) hl_source_close(s);
    tap_ok(st == status && strstr(halo_error_message(ctx), what), "refused: %s", halo_error_message(ctx));
}

static void test_mistakes(halo_context *ctx)
{
    hl_array_options a = options();
    a.scan_window = words("8", NULL, NULL, NULL);
    refuse(ctx, "scan.emd.h5", &a, HALO_ERR_SHAPE, "a scan of 5 x 7 positions has no window of [8, 8]");
    a = options();
    a.x = "/datacube_root/datacube/dim0";
    refuse(ctx, "scan.emd.h5", &a, HALO_ERR_SHAPE, "1 axis, 'data.x.axes' names 4");
    a.x = "/nothing";
    refuse(ctx, "scan.emd.h5", &a, HALO_ERR_FORMAT, "/datacube_root/datacube/data");
    refuse(ctx, "nowhere.h5", &a, HALO_ERR_IO, "nowhere.h5");
    a = options();
    a.detector_crop = words("14", NULL, NULL, NULL);
    refuse(ctx, "scan.emd.h5", &a, HALO_ERR_SHAPE, "a detector of 12 x 10 pixels cannot be cut to [14, 14]");
    a.detector_crop = words("7", "6", NULL, NULL);
    refuse(ctx, "scan.emd.h5", &a, HALO_ERR_SHAPE, "cannot be cut to [7, 6] in bins of [2, 2]");
    a.detector_crop = words("x", NULL, NULL, NULL);
    refuse(ctx, "scan.emd.h5", &a, HALO_ERR_USAGE, "'data.detector_crop': 'x' is no whole number above 0");
    a = options();
    a.x_axes = words("sy", "sx", "h", "h");
    refuse(ctx, "scan.emd.h5", &a, HALO_ERR_USAGE, "sy, sx, h and w, each once");
    a = options();
    a.expect[0] = 64, a.expect[2] = 4, a.expect[3] = 3;
    refuse(ctx, "scan.emd.h5", &a, HALO_ERR_SHAPE, "the network takes 64 x 1 x 4 x 3");
    a = options();
    const hl_source_options training = {.path = in_dir("scan.emd.h5"), .format = "auto", .array = &a};
    hl_source *s;
    tap_ok(hl_source_open(ctx, &training, &s) == HALO_ERR_USAGE && strstr(halo_error_message(ctx), "no targets"), "refused: %s", halo_error_message(ctx));
}

/* What is predicted of windows says where they lie. */
static void test_places(halo_context *ctx)
{
    const int64_t ext[4] = {1, 1, 4, 3}, lo[4] = {0};
    const float image[12] = {1, 2, 3};
    hl_volumes *v;
    hl_h5 *file;
    hl_h5_data *d;
    double step[2], pixel[2];
    int64_t n, m, offset[4], start[2] = {0}, count[2] = {2, 2};
    char **units;
    MUST(hl_volumes_create(ctx, in_dir("p.h5"), ext, &label, &v));
    for (int64_t i = 0; i < 2; i++) {
        const hl_window_place place = {.offset = {4 * i, 8}, .step = {0.5, 0.5}, .pixel = {0.04, 0.06}, .step_units = "A", .pixel_units = "A^-1"};
        MUST(hl_volumes_add(v, "w", NULL, 0, NULL));
        MUST(hl_volumes_place(v, &place));
        MUST(hl_volumes_put(v, lo, ext, image));
    }
    MUST(hl_volumes_close(v, true));
    MUST(hl_h5_open(ctx, in_dir("p.h5"), &file));
    MUST(hl_h5_attr_numbers(file, "/prediction", "scan_pixel_size", 2, step, &n));
    MUST(hl_h5_attr_numbers(file, "/prediction", "detector_pixel_size", 2, pixel, &m));
    tap_ok(n == 2 && m == 2 && step[1] == 0.5 && pixel[1] == 0.06, "predictions have the pixel sizes as attributes");
    MUST(hl_h5_strings(file, "/prediction", "detector_pixel_size_units", &units, &n));
    tap_ok(n == 1 && strcmp(units[0], "A^-1") == 0, "with their units");
    free(units);
    MUST(hl_h5_data_open(file, "/scan_offset", 0, &d));
    MUST(hl_h5_read(d, start, count, offset, sizeof(offset)));
    tap_ok(offset[0] == 0 && offset[1] == 8 && offset[2] == 4 && offset[3] == 8, "and the offset of each window");
    hl_h5_data_close(d);
    hl_h5_close(file);
}

int main(void)
{
    halo_context *ctx = iotest_begin("scan_windows");
    write_scan(ctx, in_dir("scan.emd.h5"), "/datacube_root/datacube", false);
    write_scan(ctx, in_dir("turned.h5"), "/a", true);
    test_windows(ctx);
    test_dose(ctx);
    test_axes(ctx);
    test_mistakes(ctx);
    test_places(ctx);
    return iotest_end(ctx);
}
