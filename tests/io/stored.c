/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that leave the loader as they are stored, prepared as a device does it (by the reference's operation): what comes of them is what a loader makes that turns and transforms them itself. */
#include "tests/io/iotest.h"
#include "backend/backend.h"

enum { SAMPLES = 6, CHANNELS = 2 };

typedef struct made { /* samples of numbers that nothing relates */
    hl_source super;
    int64_t bad; /* the sample with one value that log1p does not know; -1: none */
} made;

static double value_of(const made *m, int64_t sample, int64_t c, int64_t cell)
{
    hl_random r = hl_philox(7, 1, (uint64_t)sample, (uint64_t)(c * 100000 + cell));
    if (sample == m->bad && c == 1 && cell == 77) return -3;
    return m->super.info.dtype == HALO_F32 ? (double)(float)(r.v[0] * 0x1p-28) : (double)(r.v[0] % 200);
}

static halo_status read_cut(hl_source *s, int64_t sample, const hl_cut *cut, void *x)
{
    const int64_t *n = s->info.ext + 1;
    for (int64_t c = 0; c < CHANNELS; c++)
        for (int64_t d = 0; d < cut->ext[0]; d++)
            for (int64_t h = 0; h < cut->ext[1]; h++)
                for (int64_t w = 0; w < cut->ext[2]; w++) {
                    double v = value_of((made *)s, sample, c, ((cut->lo[0] + d) * n[1] + cut->lo[1] + h) * n[2] + cut->lo[2] + w);
                    int64_t to = ((c * cut->into[0] + cut->at[0] + d) * cut->into[1] + cut->at[1] + h) * cut->into[2] + cut->at[2] + w;
                    if (s->info.dtype == HALO_U8) ((uint8_t *)x)[to] = (uint8_t)v;
                    else if (s->info.dtype == HALO_I16) ((int16_t *)x)[to] = (int16_t)v;
                    else ((float *)x)[to] = (float)v;
                }
    return HALO_OK;
}

static halo_status target_cut(hl_source *s, int64_t sample, const hl_cut *cut, float *y)
{
    const int64_t *n = s->info.ext + 1;
    for (int64_t d = 0; d < cut->ext[0]; d++)
        for (int64_t h = 0; h < cut->ext[1]; h++)
            for (int64_t w = 0; w < cut->ext[2]; w++)
                y[((cut->at[0] + d) * cut->into[1] + cut->at[1] + h) * cut->into[2] + cut->at[2] + w] = (float)(sample * 10000 + ((cut->lo[0] + d) * n[1] + cut->lo[1] + h) * n[2] + cut->lo[2] + w);
    return HALO_OK;
}

static int64_t group_of(hl_source *s, int64_t sample)
{
    (void)s;
    return sample;
}

static void id_of(hl_source *s, int64_t sample, char *out, size_t size)
{
    (void)s;
    snprintf(out, size, "made#%" PRId64, sample);
}

static const hl_source_ops made_ops = {.name = "made", .read = read_cut, .target = target_cut, .group_of = group_of, .id_of = id_of};
static hl_target target = {.name = "mask"};

static made make_source(halo_context *ctx, halo_dtype type, const int64_t ext[3])
{
    made m = {.super = {.ops = &made_ops, .ctx = ctx}, .bad = -1};
    m.super.info = (hl_source_info){.description = "numbers", .samples = SAMPLES, .ext = {CHANNELS, ext[0], ext[1], ext[2]}, .dtype = type, .targets = 1, .target = &target, .whole_periodic = true};
    memcpy(m.super.info.target_ext, ext, sizeof(m.super.info.target_ext));
    memcpy(m.super.box, ext, sizeof(m.super.box));
    return m;
}

/* The reference's device, with memory that it can reach. */
static halo_status pin(halo_device *dev, size_t bytes, void **host) { return hl_calloc(dev->ctx, bytes, 1, "pinned memory", host); }

static void unpin(halo_device *dev, void *host)
{
    (void)dev;
    free(host);
}

/* y [samples, c, cells.ext] = x prepared. */
static void prepare(halo_context *ctx, halo_device *dev, const hl_loader_options *o, halo_dtype type, const int64_t ext[HALO_DIMS], void *x, void *numbers, bool transforms, float *y)
{
    static const halo_transform known[] = {[HL_LOG1P] = HALO_TRANSFORM_LOG1P, [HL_OVER_MEAN] = HALO_TRANSFORM_STANDARD, [HL_ZSCORE] = HALO_TRANSFORM_STANDARD, [HL_STANDARD] = HALO_TRANSFORM_STANDARD, [HL_CLIP] = HALO_TRANSFORM_WINDOW};
    halo_op_desc d = {.kind = HALO_OP_PREPARE, .transforms = transforms ? o->transforms : 0};
    void *ptr[HALO_ROLES] = {[HALO_X] = x, [HALO_STAT] = numbers, [HALO_Y] = y};
    for (int k = 0; k < d.transforms; k++) d.transform[k] = known[o->transform[k]];
    d.t[HALO_X] = hl_operand_whole(type, HALO_NCDHW, ext);
    d.t[HALO_STAT] = hl_operand_flat(HALO_F64, ext[HALO_N] * HALO_SAMPLE_NUMBERS);
    d.t[HALO_Y] = hl_operand_whole(HALO_F32, HALO_NCDHW, ext);
    MUST(hl_op_run_once(dev, &d, NULL, ptr, &(halo_step_record){0}));
}

/* Largest difference, over the largest value. */
static double distance(const float *a, const float *b, int64_t n)
{
    double most = 0, far = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)b[i]));
        far = fmax(far, fabs((double)a[i] - (double)b[i]));
        if (!isfinite(a[i])) return INFINITY;
    }
    return most > 0 ? far / most : far;
}

static void compare(halo_context *ctx, halo_device *dev, made *m, hl_loader_options o, const char *what)
{
    hl_loader *plain = NULL, *stored = NULL;
    const hl_loaded *a = NULL, *b = NULL;
    double x_far = 0, y_far = 0;
    int64_t batches = 0, serial = 0;
    bool alike = true;
    o.ranks = 1;
    o.batch = 4;
    MUST(hl_loader_create(ctx, &m->super, &o, &plain));
    o.stored = true;
    o.device = dev;
    MUST(hl_loader_create(ctx, &m->super, &o, &stored));
    MUST(hl_loader_start(plain, 3, 0));
    MUST(hl_loader_start(stored, 3, 0));
    for (;; batches++) {
        MUST(hl_loader_next(plain, &a));
        MUST(hl_loader_next(stored, &b));
        if (!a || !b) break;
        const int64_t *n = m->super.info.ext, *e = o.x.ext[0] ? o.x.ext : n + 1, *f = o.y.ext[0] ? o.y.ext : n + 1;
        const int64_t x_ext[HALO_DIMS] = {a->samples, n[0], e[0], e[1], e[2]}, y_ext[HALO_DIMS] = {a->samples, 1, f[0], f[1], f[2]};
        const int64_t x_cells = a->samples * n[0] * e[0] * e[1] * e[2], y_cells = a->samples * f[0] * f[1] * f[2];
        float *x = calloc((size_t)x_cells, sizeof(*x)), *y = calloc((size_t)y_cells, sizeof(*y));
        prepare(ctx, dev, &o, b->stored_type, x_ext, b->stored, b->numbers, true, x);
        prepare(ctx, dev, &o, HALO_F32, y_ext, b->y, b->numbers + b->samples * HALO_SAMPLE_NUMBERS, false, y);
        x_far = fmax(x_far, distance(x, a->x, x_cells));
        y_far = fmax(y_far, distance(y, a->y, y_cells));
        alike = alike && memcmp(a->id, b->id, (size_t)a->samples * sizeof(*a->id)) == 0 && memcmp(a->weight, b->weight, (size_t)a->samples * sizeof(*a->weight)) == 0;
        alike = alike && b->stored_type == m->super.info.dtype && (int64_t)b->serial > serial && !b->x;
        serial = (int64_t)b->serial;
        free(x);
        free(y);
    }
    tap_ok(x_far <= 3e-7 && y_far == 0 && alike && batches == 2 && !a && !b, "%s: the same but for rounding (%.1e), and labels the same", what, x_far);
    hl_loader_destroy(plain);
    hl_loader_destroy(stored);
}

static void all_transforms(halo_context *ctx, halo_device *dev)
{
    const struct { halo_dtype type; int n; hl_transform t[4]; const char *what; } cases[] = {
        {HALO_I16, 0, {0}, "int16 as it is"},
        {HALO_I16, 1, {HL_LOG1P}, "int16, log1p"},
        {HALO_U8, 2, {HL_LOG1P, HL_ZSCORE}, "bytes, log1p, z-score"},
        {HALO_F32, 3, {HL_OVER_MEAN, HL_LOG1P, HL_ZSCORE}, "float32, over-mean, log1p, z-score"},
        {HALO_I16, 4, {HL_STANDARD, HL_CLIP, HL_OVER_MEAN, HL_LOG1P}, "int16, standard, window, over-mean, log1p"},
    };
    for (size_t i = 0; i < HL_COUNT(cases); i++) {
        made m = make_source(ctx, cases[i].type, (const int64_t[]){6, 6, 6});
        hl_loader_options o = {.transforms = cases[i].n, .mean = 40, .std = 25, .window = {-1, 2}, .shuffle = true, .cube = true, .seed = 4};
        memcpy(o.transform, cases[i].t, sizeof(o.transform));
        compare(ctx, dev, &m, o, cases[i].what);
    }
}

static void parts_of_samples(halo_context *ctx, halo_device *dev)
{
    made m = make_source(ctx, HALO_I16, (const int64_t[]){8, 8, 8}), flat = make_source(ctx, HALO_I16, (const int64_t[]){4, 6, 10});
    hl_loader_options o = {.transforms = 1, .transform = {HL_LOG1P}, .cube = true, .shift = true, .seed = 5, .prefetch = 1};
    compare(ctx, dev, &m, o, "turned and shifted");
    o.x = (hl_cells){{-1, 0, 3}, {6, 8, 5}};
    o.y = o.own = (hl_cells){{0, 0, 4}, {4, 8, 4}};
    compare(ctx, dev, &m, o, "a block of each with cells around it");
    o = (hl_loader_options){.flip = true, .seed = 6};
    compare(ctx, dev, &flat, o, "flipped, of unequal extents");
}

static void errors(halo_context *ctx, halo_device *dev)
{
    made m = make_source(ctx, HALO_I16, (const int64_t[]){6, 6, 6});
    hl_loader_options o = {.transforms = 1, .transform = {HL_LOG1P}, .ranks = 1, .batch = 2};
    char message[2][512];
    m.bad = 3;
    for (int k = 0; k < 2; k++) {
        hl_loader *l = NULL;
        const hl_loaded *b = NULL;
        halo_status st = HALO_OK;
        o.stored = k;
        o.device = dev;
        MUST(hl_loader_create(ctx, &m.super, &o, &l));
        MUST(hl_loader_start(l, 0, 0));
        for (int i = 0; i < 3 && st == HALO_OK; i++) st = hl_loader_next(l, &b);
        snprintf(message[k], sizeof(message[k]), "%d %s", (int)st, halo_error_message(ctx));
        hl_loader_destroy(l);
    }
    tap_ok(strcmp(message[0], message[1]) == 0 && strstr(message[0], "log1p is not defined for -3 in voxel [c 1, d 2, h 0, w 5]"), "what cannot be transformed is named as ever: %s", message[1]);
}

/* What comes next is shown once it is there, and is then what comes. */
static void peek(halo_context *ctx, halo_device *dev)
{
    made m = make_source(ctx, HALO_I16, (const int64_t[]){6, 6, 6});
    hl_loader *l = NULL;
    const hl_loaded *b = NULL, *next = NULL;
    MUST(hl_loader_create(ctx, &m.super, &(hl_loader_options){.ranks = 1, .batch = 2, .prefetch = 2, .stored = true, .device = dev}, &l));
    bool good = !hl_loader_peek(l);
    MUST(hl_loader_start(l, 0, 0));
    for (int i = 0; i < 3; i++) {
        MUST(hl_loader_next(l, &b));
        good = good && (!next || next == b);
        for (int k = 0; i < 2 && k < 2000 && !(next = hl_loader_peek(l)); k++) usleep(1000);
        good = good && (i == 2 || (next && next != b && next->serial > b->serial));
    }
    tap_ok(good && !hl_loader_peek(l), "the next batch is seen before it is taken, and none after the last");
    hl_loader_destroy(l);
}

int main(void)
{
    halo_context *ctx = iotest_begin("stored");
    halo_device *dev = NULL;
    MUST(hl_device_open(ctx, "ref", &(halo_device_options){.compute = HALO_F32}, &dev));
    halo_device_ops ops = *dev->ops;
    ops.pin = pin;
    ops.unpin = unpin;
    dev->ops = &ops;
    all_transforms(ctx, dev);
    parts_of_samples(ctx, dev);
    errors(ctx, dev);
    peek(ctx, dev);
    dev->ops->close(dev);
    return iotest_end(ctx);
}
