/* SPDX-License-Identifier: Apache-2.0 */
/* Phantoms: equal for equal seeds; masks and partial volumes against the volume of a sphere and of what is drawn; noise; lesions where they belong; files that read back equal. */
#include "tests/io/iotest.h"
#include "io/source.h"
#include "synth/phantom.h"

static hl_phantom_settings settings(halo_context *ctx)
{
    hl_phantom_settings s;
    MUST(hl_config_defaults(ctx, hl_phantom_keys(), &s));
    s.size[0] = 40, s.size[1] = 48, s.size[2] = 44;
    return s;
}

static int64_t voxels(const hl_phantom *p) { return p->ext[0] * p->ext[1] * p->ext[2]; }

static int16_t *values(const hl_phantom *p, uint8_t **label)
{
    int16_t *v = malloc((size_t)voxels(p) * sizeof(*v));
    uint8_t *l = malloc((size_t)voxels(p));
    if (!v || !l) tap_bail("out of memory");
    hl_phantom_render(p, v, l);
    if (label) *label = l;
    else free(l);
    return v;
}

static bool same(const hl_phantom *p, const hl_phantom *q)
{
    int16_t *v = values(p, NULL), *w = values(q, NULL);
    bool equal = voxels(p) == voxels(q) && memcmp(v, w, (size_t)voxels(p) * sizeof(*v)) == 0;
    free(v), free(w);
    return equal;
}

static void test_seeds(halo_context *ctx)
{
    hl_phantom_settings s = settings(ctx), longer = s, other = s;
    hl_phantom p, q, r, t, u;
    longer.count = 1000;
    other.seed = 2;
    hl_phantom_draw(&s, 0, 3, &p);
    hl_phantom_draw(&longer, 0, 3, &q);
    hl_phantom_draw(&s, 0, 4, &r);
    hl_phantom_draw(&s, 1, 3, &t);
    hl_phantom_draw(&other, 0, 3, &u);
    tap_ok(same(&p, &q), "a phantom is the same whatever others are made");
    tap_ok(!same(&p, &r) && !same(&p, &t) && !same(&p, &u), "another number, part or seed gives another one");
}

/* One sphere of value 100 in 0, off the grid. */
static void test_sphere(void)
{
    hl_phantom p = {.ext = {30, 40, 50}, .spacing = {2, 1.5, 1}, .shapes = 1};
    uint8_t *label;
    double sum = 0, inside = 0, between = 0;
    p.shape[0] = (hl_ellipsoid){.centre = {1.3, -0.7, 0.4}, .radius = {15, 15, 15}, .axis = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, .value = 1000, .label = 1};
    int16_t *v = values(&p, &label);
    bool exact = true;
    for (int64_t i = 0; i < voxels(&p); i++) {
        double d = ((double)(i / 2000) + 0.5 - 15) * 2 - 1.3, h = ((double)(i / 50 % 40) + 0.5 - 20) * 1.5 + 0.7, w = (double)(i % 50) + 0.5 - 25 - 0.4;
        exact = exact && label[i] == (d * d + h * h + w * w <= 225);
        sum += v[i] / 1000.0;
        inside += label[i];
        between += v[i] > 0 && v[i] < 1000;
    }
    double want = hl_ellipsoid_volume(&p.shape[0]) / 3;
    tap_ok(exact, "the mask of a sphere has the voxels whose middles are in it");
    tap_ok(fabs(sum - want) <= 2e-3 * want, "its values add up to its volume: %.1f of %.1f voxels", sum, want);
    tap_ok(fabs(inside - want) <= 2e-2 * want && between > 500, "%g voxels of mask, %g of them and their neighbours are partly of both", inside, between);
    free(v), free(label);
}

static void test_shapes(halo_context *ctx)
{
    hl_phantom_settings s = settings(ctx);
    double want[3] = {0}, mask[3] = {0}, missing = 0, expected = 0;
    int lesions = 0, none = 0, outside = 0;
    s.noise = 0;
    for (int64_t n = 0; n < 12; n++) {
        hl_phantom p, without;
        uint8_t *label;
        hl_phantom_draw(&s, 0, n, &p);
        without = p;
        double voxel = p.spacing[0] * p.spacing[1] * p.spacing[2];
        while (without.shape[without.shapes - 1].label == 2) without.shapes--;
        none += without.shapes == p.shapes;
        for (int i = without.shapes; i < p.shapes; i++) {
            const hl_ellipsoid *organ = &p.shape[without.shapes - 1], *e = &p.shape[i];
            want[2] += hl_ellipsoid_volume(e) / voxel;
            expected += s.contrast * hl_ellipsoid_volume(e) / voxel;
            lesions++;
            for (int k = 0; k < 6; k++) { /* its ends are in the organ */
                double q = 0;
                for (int j = 0; j < 3; j++) {
                    double along = 0;
                    for (int x = 0; x < 3; x++) along += organ->axis[j][x] * (e->centre[x] + (k % 2 ? 1 : -1) * e->radius[k / 2] * e->axis[k / 2][x] - organ->centre[x]);
                    q += along * along / (organ->radius[j] * organ->radius[j]);
                }
                outside += q > 1;
            }
        }
        want[1] += hl_ellipsoid_volume(&p.shape[without.shapes - 1]) / voxel;
        int16_t *v = values(&p, &label), *w = values(&without, NULL);
        for (int64_t i = 0; i < voxels(&p); i++) {
            mask[label[i]]++;
            missing += w[i] - v[i];
        }
        free(v), free(w), free(label);
    }
    tap_ok(lesions > 6 && none > 0 && outside == 0, "%d lesions in 12 phantoms, %d of which have none, all of them within the organ", lesions, none);
    tap_ok(fabs(mask[1] + mask[2] - want[1]) <= 5e-3 * want[1], "masks of organs have their volume: %g of %.1f voxels", mask[1] + mask[2], want[1]);
    tap_ok(fabs(mask[2] - want[2]) <= 3e-2 * want[2], "those of lesions too: %g of %.1f", mask[2], want[2]);
    tap_ok(fabs(missing - expected) <= 1e-2 * expected, "what lesions take from the values is contrast times volume: %.0f of %.0f", missing, expected);
}

static void test_noise(halo_context *ctx)
{
    hl_phantom_settings s = settings(ctx), quiet = s;
    hl_phantom p, q;
    double sum = 0, squares = 0;
    quiet.noise = 0;
    hl_phantom_draw(&s, 2, 0, &p);
    hl_phantom_draw(&quiet, 2, 0, &q);
    int16_t *v = values(&p, NULL), *w = values(&q, NULL);
    double n = (double)voxels(&p);
    for (int64_t i = 0; i < voxels(&p); i++) {
        sum += v[i] - w[i];
        squares += (v[i] - w[i]) * (v[i] - w[i]);
    }
    tap_ok(fabs(sum / n) <= 4 * s.noise / sqrt(n) && fabs(sqrt(squares / n) - s.noise) <= 0.02 * s.noise, "noise has mean %.3f and deviation %.2f", sum / n, sqrt(squares / n));
    free(v), free(w);
}

/* Sample i of the data set is phantom i of the part. */
static bool reads_equal(halo_context *ctx, const hl_phantom_settings *s, int part, hl_source *source)
{
    bool equal = source->info.samples == (part ? s->validation : s->count);
    for (int64_t i = 0; i < source->info.samples && equal; i++) {
        hl_phantom p;
        uint8_t *label;
        hl_phantom_draw(s, part, i, &p);
        int16_t *v = values(&p, &label), *x = malloc((size_t)voxels(&p) * sizeof(*x));
        float *y = malloc((size_t)voxels(&p) * sizeof(*y));
        if (!x || !y) tap_bail("out of memory");
        MUST(hl_source_read(source, i, NULL, x, NULL, y));
        equal = memcmp(x, v, (size_t)voxels(&p) * sizeof(*x)) == 0;
        for (int64_t k = 0; k < voxels(&p) && equal; k++) equal = y[k] == (float)label[k];
        free(v), free(label), free(x), free(y);
    }
    return equal;
}

static void test_files(halo_context *ctx)
{
    hl_phantom_settings s = settings(ctx);
    hl_source *source;
    s.count = 3, s.validation = 2;
    s.size[0] = 16, s.size[1] = 12, s.size[2] = 20;
    snprintf(s.out, sizeof(s.out), "%s", in_dir("h"));
    MUST(hl_phantoms_make(ctx, &s, NULL, NULL));
    MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("h/val.h5")}, &source));
    tap_ok(reads_equal(ctx, &s, 1, source), "HDF5 has what was drawn: %s", source->info.description);
    hl_source_close(source);
#ifdef HAVE_NIFTI
    hl_array_options o = {.x = "", .y = "", .y_from = "../masks", .table = "", .classes = true};
    snprintf(s.out, sizeof(s.out), "%s", in_dir("n"));
    s.format = 1;
    MUST(hl_phantoms_make(ctx, &s, NULL, NULL));
    MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("n/train/images"), .array = &o}, &source));
    tap_ok(reads_equal(ctx, &s, 0, source), "NIfTI too: %s", source->info.description);
    hl_source_close(source);
#else
    tap_skip("built without nifticlib");
#endif
    s.format = 0;
    s.vary = 0.2;
    iotest_errors = 0;
    fails_with(ctx, hl_phantoms_make(ctx, &s, NULL, NULL), HALO_ERR_USAGE, "'vary' needs 'format: nifti'", "", "different extents in one HDF5 file");
}

int main(void)
{
    halo_context *ctx = iotest_begin("phantom");
    test_seeds(ctx);
    test_sphere();
    test_shapes(ctx);
    test_noise(ctx);
    test_files(ctx);
    return iotest_end(ctx);
}
