/* SPDX-License-Identifier: Apache-2.0 */
/* Random changes of samples and resampling: what is turned by nothing stays, turns and factors are those that are asked for, parts of a patch agree bit by bit, classes stay classes. */
#include "tests/io/npytest.h"
#include "io/cutter.h"
#include "io/array.h"
#include "io/nifti.h"
#include "io/scans.h"
#include "io/source.h"

enum { N = 16 };
static const int64_t all[3] = {N, N, N};

/* A ball of class 1 in the middle, and x = d, h or w as channel says... one volume: x = 100 d + 10 h + w, which interpolation takes exactly. */
static void write_data(void)
{
    npy_form x = {.descr = "<f4", .version = 1, .ndim = 3, .dim = {N, N, N}}, y = {.descr = "|u1", .version = 1, .ndim = 3, .dim = {N, N, N}};
    hl_str a = npy_text(&x), b = npy_text(&y);
    float *v = (float *)(void *)(a.s + a.len - N * N * N * 4);
    char *c = b.s + b.len - N * N * N;
    for (int i = 0; i < N * N * N; i++) {
        int d = i / N / N, h = i / N % N, w = i % N, r = (2 * d - N + 1) * (2 * d - N + 1) + (2 * h - N + 1) * (2 * h - N + 1) + (2 * w - N + 1) * (2 * w - N + 1);
        float f = (float)(100 * d + 10 * h + w);
        memcpy(v + i, &f, sizeof(f));
        c[i] = r < 4 * 5 * 5;
    }
    put_file(in_dir("x/a.npy"), a.s, a.len);
    put_file(in_dir("y/a.npy"), b.s, b.len);
    hl_str_free(&a);
    hl_str_free(&b);
}

static hl_source *open_data(halo_context *ctx)
{
    static char path[1024], from[1024];
    hl_source *s = NULL;
    snprintf(path, sizeof(path), "%s", in_dir("x"));
    snprintf(from, sizeof(from), "%s", in_dir("y"));
    hl_array_options a = {.x = "", .y = "", .y_from = from, .table = "", .classes = true};
    MUST(hl_source_open(ctx, &(hl_source_options){.path = path, .array = &a}, &s));
    return s;
}

static void take(halo_context *ctx, hl_source *s, hl_vary vary, int64_t epoch, const hl_cells *cells, float *x, float *y)
{
    hl_cutter *c;
    hl_loader_options o = {.classes = 2, .seed = 3, .vary = vary};
    MUST(hl_cutter_create(s, &o, &c));
    MUST(hl_cutter_take(c, epoch, 0, 0, all, cells, x, cells, y));
    hl_cutter_destroy(c);
}

static double volume(const float *y)
{
    double n = 0;
    for (int i = 0; i < N * N * N; i++) n += (double)y[i];
    return n;
}

static void moves(halo_context *ctx, hl_source *s)
{
    static float plain[N * N * N], x[N * N * N], y[N * N * N], truth[N * N * N];
    hl_cells whole = {.ext = {N, N, N}};
    take(ctx, s, (hl_vary){.share = 1}, 0, &whole, plain, truth);
    bool same = true;
    for (int i = 0; i < N * N * N; i++) same = same && plain[i] == (float)(100 * (i / N / N) + 10 * (i / N % N) + i % N);
    tap_ok(same, "nothing changes where nothing is asked for");
    take(ctx, s, (hl_vary){.share = 1, .scale = {1.5, 1.5}}, 0, &whole, x, y);
    double worst = 0, m = (N - 1) / 2.0;
    for (int i = 0; i < N * N * N; i++) {
        double d = m + (i / N / N - m) / 1.5, h = m + (i / N % N - m) / 1.5, w = m + (i % N - m) / 1.5;
        worst = fmax(worst, fabs((double)x[i] - (100 * d + 10 * h + w)));
    }
    tap_ok(worst <= 1e-3, "half as large again is half as large again, about the middle: off by %.1e", worst);
    double factor = volume(y) / volume(truth);
    tap_ok(factor > 3.1 && factor < 3.7, "and so are classes: a volume of %.2f times", factor);
    bool classes = true, balls = true, moved = false, linear = true;
    for (int epoch = 0; epoch < 20; epoch++) {
        take(ctx, s, (hl_vary){.share = 1, .rotate = 30}, epoch, &whole, x, y);
        for (int i = 0; i < N * N * N; i++) classes = classes && (y[i] == 0 || y[i] == 1);
        balls = balls && fabs(volume(y) / volume(truth) - 1) < 0.05;
        moved = moved || memcmp(x, plain, sizeof(x)) != 0;
        /* a linear function of place stays linear, with the same length of gradient */
        int i = (7 * N + 7) * N + 7;
        double gd = (double)(x[i + N * N] - x[i]), gh = (double)(x[i + N] - x[i]), gw = (double)(x[i + 1] - x[i]);
        linear = linear && fabs(sqrt(gd * gd + gh * gh + gw * gw) - sqrt(10101.0)) < 0.05;
    }
    tap_ok(classes, "classes stay classes");
    tap_ok(balls, "a ball stays a ball");
    tap_ok(moved && linear, "what is turned keeps its lengths");
}

static void parts(halo_context *ctx, hl_source *s)
{
    static float whole[N * N * N], classes[N * N * N], x[N * N * N], y[N * N * N];
    hl_vary v = {.share = 1, .rotate = 30, .scale = {0.7, 1.4}, .gamma = {0.5, 2}, .noise = 5};
    hl_cells all_cells = {.ext = {N, N, N}};
    bool same = true;
    for (int epoch = 0; epoch < 4; epoch++) {
        take(ctx, s, v, epoch, &all_cells, whole, classes);
        for (int part = 0; part < 4; part++) {
            hl_cells c = {.lo = {part & 1 ? 5 : 0, part & 2 ? 9 : 0, 3}, .ext = {part & 1 ? N - 5 : 5, part & 2 ? N - 9 : 9, N - 3}};
            take(ctx, s, v, epoch, &c, x, y);
            for (int64_t i = 0; i < c.ext[0] * c.ext[1] * c.ext[2]; i++) {
                int64_t at = ((c.lo[0] + i / (c.ext[1] * c.ext[2])) * N + c.lo[1] + i / c.ext[2] % c.ext[1]) * N + c.lo[2] + i % c.ext[2];
                same = same && x[i] == whole[at] && y[i] == classes[at];
            }
        }
    }
    tap_ok(same, "parts have the bits of the whole, whatever is done to it");
    take(ctx, s, v, 0, &all_cells, x, y);
    take(ctx, s, v, 1, &all_cells, whole, classes);
    tap_ok(memcmp(x, whole, sizeof(x)) != 0, "another epoch changes in another way");
}

static void grays(halo_context *ctx, hl_source *s)
{
    static float plain[N * N * N], x[N * N * N], y[N * N * N];
    hl_cells whole = {.ext = {N, N, N}};
    take(ctx, s, (hl_vary){.share = 0}, 0, &whole, plain, y);
    take(ctx, s, (hl_vary){.share = 1, .gamma = {2, 2}}, 0, &whole, x, y);
    double worst = 0, most = 1665, sum = 0, square = 0;
    for (int i = 0; i < N * N * N; i++) worst = fmax(worst, fabs((double)x[i] - most * ((double)plain[i] / most) * ((double)plain[i] / most)));
    tap_ok(worst <= 1e-3, "gamma 2 squares between the least and the largest value: off by %.1e", worst);
    int seen = 0;
    double low = 1e9, high = 0;
    for (int epoch = 0; epoch < 200; epoch++) {
        take(ctx, s, (hl_vary){.share = 0.3, .noise = 8}, epoch, &whole, x, y);
        if (memcmp(x, plain, sizeof(x)) == 0) continue;
        seen++;
        sum = square = 0;
        for (int i = 0; i < N * N * N; i++) {
            double z = (double)x[i] - (double)plain[i];
            sum += z, square += z * z;
        }
        double std = sqrt(square / (N * N * N));
        low = fmin(low, std), high = fmax(high, std);
        if (fabs(sum / (N * N * N)) > 5 * std / N / 8) seen = -1000;
    }
    tap_ok(seen > 40 && seen < 80 && low < 1 && high > 7 && high < 8.5, "noise of up to 8 in a share of 0.3: %d of 200, deviations %.2f to %.2f", seen, low, high);
}

#ifdef HAVE_NIFTI
enum { D = 9, H = 8, W = 7 };

/* A scan whose voxels are 3 x 2 x 1 apart, and its mask. */
static void write_scan(halo_context *ctx)
{
    const int64_t ext[3] = {D, H, W};
    const double spacing[3] = {3, 2, 1};
    int16_t v[D * H * W];
    uint8_t m[D * H * W];
    hl_nifti n;
    for (int i = 0; i < D * H * W; i++) v[i] = (int16_t)(i * 7919 % 1000), m[i] = (uint8_t)(i * 7919 % 3);
    MUST(hl_nifti_make(ctx, ext, spacing, &n));
    MUST(hl_nifti_write(ctx, in_dir("scan.nii"), &n, (hl_number){'i', 2}, v));
    MUST(hl_nifti_write(ctx, in_dir("mask.nii.gz"), &n, (hl_number){'u', 1}, m));
    hl_nifti_free(&n);
}

/* The same as what is packed at a spacing, in whatever boxes it is read. */
static void resampled(halo_context *ctx, double spacing)
{
    hl_scans scans;
    hl_scans_packed r;
    hl_source *packed = NULL, *s = NULL;
    MUST(hl_scans_find(ctx, in_dir("scan.nii"), in_dir("mask.nii.gz"), &scans));
    MUST(hl_scans_pack(&scans, &(hl_scan_packing){.spacing = {spacing, spacing, spacing}}, in_dir("packed.h5"), &r));
    hl_scans_free(&scans);
    char from[1024];
    snprintf(from, sizeof(from), "%s", in_dir("mask.nii.gz"));
    hl_array_options a = {.x = "", .y = "", .y_from = from, .table = "", .classes = true};
    MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("packed.h5")}, &packed));
    MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("scan.nii"), .array = &a, .patch = {4, 4, 4}, .spacing = {spacing, spacing, spacing}}, &s));
    int64_t n[3], cells = packed->info.ext[1] * packed->info.ext[2] * packed->info.ext[3];
    hl_source_extents(s, 0, n);
    bool same = memcmp(n, packed->info.ext + 1, sizeof(n)) == 0;
    float *x = calloc((size_t)cells, sizeof(*x)), *y = calloc((size_t)cells, sizeof(*y)), part[64], mask[64];
    MUST(hl_source_read(packed, 0, NULL, x, NULL, y));
    hl_cutter *c;
    MUST(hl_cutter_create(s, &(hl_loader_options){.classes = 3}, &c));
    for (int64_t d = 0; d < n[0] && same; d += 3)
        for (int64_t h = 0; h < n[1]; h += 4)
            for (int64_t w = 0; w < n[2]; w += 2) {
                hl_cells box = {.lo = {d, h, w}, .ext = {hl_min64(3, n[0] - d), hl_min64(4, n[1] - h), hl_min64(2, n[2] - w)}};
                MUST(hl_cutter_read(c, 0, &box, part, mask));
                for (int64_t i = 0; i < box.ext[0] * box.ext[1] * box.ext[2]; i++) {
                    int64_t at = ((d + i / (box.ext[1] * box.ext[2])) * n[1] + h + i / box.ext[2] % box.ext[1]) * n[2] + w + i % box.ext[2];
                    same = same && fabsf(part[i] - x[at]) <= 1e-3f && mask[i] == y[at];
                }
            }
    tap_ok(same, "resampled to %g it is what convert makes, box by box: %" PRId64 " x %" PRId64 " x %" PRId64, spacing, n[0], n[1], n[2]);
    hl_cutter_destroy(c);
    free(x);
    free(y);
    hl_source_close(packed);
    hl_source_close(s);
}

/* Predictions at another spacing go back to the voxels of the scan. */
static void back(halo_context *ctx)
{
    const hl_target target = {.name = "class", .low = NAN, .high = NAN, .mean = NAN, .std = NAN};
    const int64_t ext[4] = {1, 18, 8, 4}, lo[4] = {0, 0, 0, 0}, start[3] = {0, 0, 0};
    float v[18 * 8 * 4];
    uint8_t out[D * H * W];
    hl_volumes *volumes = NULL;
    hl_array *a;
    for (int i = 0; i < 18 * 8 * 4; i++) v[i] = (float)(i / 32 >= 8); /* from d = 8 of 18 on: 4 of 9 */
    MUST(hl_volumes_create_images(ctx, in_dir("back"), ext, &target, &volumes));
    hl_volumes_resample(volumes);
    MUST(hl_volumes_add(volumes, "scan.nii", in_dir("scan.nii"), 0, NULL));
    MUST(hl_volumes_put(volumes, lo, ext, v));
    MUST(hl_volumes_close(volumes, true));
    MUST(hl_array_open(ctx, in_dir("back/scan.nii.gz"), "", NULL, &a));
    bool good = a->dim[0] == D && a->dim[1] == H && a->dim[2] == W && a->type.kind == 'u';
    if (good) MUST(hl_array_read(a, start, a->dim, out, sizeof(out)));
    for (int i = 0; i < D * H * W && good; i++) good = out[i] == (i / (H * W) >= 4);
    tap_ok(good, "and goes back to the voxels of its scan");
    hl_array_close(a);
}
#endif

static void spacings(halo_context *ctx)
{
#ifdef HAVE_NIFTI
    write_scan(ctx);
    resampled(ctx, 1);
    resampled(ctx, 2.5);
    back(ctx);
#else
    tap_skip("built without nifticlib");
#endif
    hl_source *s = open_data(ctx), *r = NULL;
    fails_with(ctx, hl_resampled_open(s, (const double[3]){1, 1, 1}, &r), HALO_ERR_USAGE, "'data.spacing' is of NIfTI images", "a.npy' is not", "arrays without spacing");
    hl_source_close(s);
}

int main(void)
{
    halo_context *ctx = iotest_begin("vary");
    if (mkdir(in_dir("x"), 0777) != 0 || mkdir(in_dir("y"), 0777) != 0) tap_bail("cannot make directories");
    write_data();
    hl_source *s = open_data(ctx);
    moves(ctx, s);
    parts(ctx, s);
    grays(ctx, s);
    hl_source_close(s);
    spacings(ctx);
    return iotest_end(ctx);
}
