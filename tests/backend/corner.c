/* SPDX-License-Identifier: Apache-2.0 */
/*
 * corner.c -- boxes in the far corner of tensors of 2.5 x 10^9 elements, beyond element 2^31: what each operation makes of one there is what it makes of the same numbers in a
 * tensor of their own, for every implementation and layout. Memory is mapped and touched only where the boxes are, so that ten gigabytes are a few megabytes.
 */
#include "backend/backend.h"
#include "tensor/operand.h"

#include "tests/check.h"
#include "tests/tap.h"

#include <sys/mman.h>

enum { C = 16, EDGE = 6, MARGIN = 2 };

static const int64_t huge[3] = {600, 512, 512};

/* An operand's box of e^3 cells: alone with its margin, or `far`. */
static halo_operand operand(halo_layout layout, int64_t e, int64_t margin, bool far)
{
    halo_operand o = {.dtype = HALO_F32, .layout = layout, .alloc = {1, C}, .ext = {1, C, e, e, e}};
    for (int k = 0; k < 3; k++) {
        o.margin[k][0] = o.margin[k][1] = margin;
        o.alloc[HALO_D + k] = far ? huge[k] : e + 2 * margin;
        o.lo[HALO_D + k] = o.alloc[HALO_D + k] - e - margin;
    }
    return o;
}

static void *map(const halo_operand *o, size_t *bytes)
{
    if (!hl_operand_bytes(o, bytes)) tap_bail("an operand is too large");
    void *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static float *cell(const halo_operand *o, void *p, int64_t i)
{
    hl_strides t = hl_operand_strides(o);
    int64_t e = o->ext[HALO_W], c = i / (e * e * e);
    return (float *)p + hl_offset(&t, 0, o->lo[HALO_C] + c, o->lo[HALO_D] + i / (e * e) % e, o->lo[HALO_H] + i / e % e, o->lo[HALO_W] + i % e);
}

static int64_t cells(const halo_operand *o) { return hl_operand_box_elements(o); }

static halo_op_desc describe(halo_op_kind kind, halo_layout layout, bool far)
{
    halo_op_desc d = {.kind = kind, .act = kind == HALO_OP_ACT_FWD ? HALO_ACT_LEAKY_RELU : HALO_ACT_NONE, .slope = 0.1, .pool = HALO_POOL_MAX};
    bool pool = kind == HALO_OP_POOL_FWD, conv = kind >= HALO_OP_CONV_FWD && kind <= HALO_OP_CONV_BWD_WEIGHTS;
    for (int k = 0; k < 3; k++) d.window.kernel[k] = pool ? 2 : 3, d.window.stride[k] = pool ? 2 : 1, d.window.dilation[k] = 1;
    halo_role in = kind == HALO_OP_CONV_BWD_DATA ? HALO_DX : HALO_X, out = kind == HALO_OP_CONV_BWD_DATA || kind == HALO_OP_CONV_BWD_WEIGHTS ? HALO_DY : HALO_Y;
    d.t[in] = operand(layout, EDGE, 0, far);
    d.t[out] = operand(layout, conv ? EDGE - 2 : pool ? EDGE / 2 : EDGE, kind == HALO_OP_CONV_BWD_DATA ? MARGIN : 0, far);
    if (kind == HALO_OP_ADD) d.t[HALO_X2] = d.t[HALO_X];
    if (conv) d.t[kind == HALO_OP_CONV_BWD_WEIGHTS ? HALO_DW : HALO_WT] = hl_operand_whole(HALO_F32, HALO_NCDHW, (int64_t[]){C, C, 3, 3, 3});
    return d;
}

static halo_role result_of(halo_op_kind kind)
{
    return kind == HALO_OP_CONV_BWD_DATA ? HALO_DX : kind == HALO_OP_CONV_BWD_WEIGHTS ? HALO_DW : HALO_Y;
}

typedef struct memory {
    void *ptr[HALO_ROLES];
    size_t bytes[HALO_ROLES];
} memory;

static bool map_all(const halo_op_desc *d, memory *m)
{
    for (int r = 0; r < HALO_ROLES; r++) {
        bool weights = r == HALO_WT || r == HALO_DW;
        if (d->t[r].dtype == HALO_NONE) continue;
        if (!(m->ptr[r] = map(&d->t[r], &m->bytes[r]))) return false;
        for (int64_t i = 0; i < cells(&d->t[r]) && (halo_role)r != result_of(d->kind); i++)
            *(weights ? (float *)m->ptr[r] + i : cell(&d->t[r], m->ptr[r], i)) = (float)sin(0.7 * (double)i + r);
    }
    return true;
}

static void unmap_all(memory *m)
{
    for (int r = 0; r < HALO_ROLES; r++)
        if (m->ptr[r]) munmap(m->ptr[r], m->bytes[r]);
}

/* The image of the weights that the candidate reads, if it does. */
static halo_status make_image(halo_device *dev, const halo_op_desc *of, const halo_candidate *c, void *weights, void **image)
{
    halo_op_desc d = {.kind = HALO_OP_CONV_IMAGE, .window = of->window, .image = c->image};
    void *ptr[HALO_ROLES] = {[HALO_X] = weights};
    d.t[HALO_X] = of->t[HALO_WT];
    d.t[HALO_Y] = hl_operand_flat(HALO_U8, (int64_t)c->image_bytes);
    HL_TRY(dev->ops->alloc(dev, c->image_bytes, image));
    ptr[HALO_Y] = *image;
    return hl_op_run_once(dev, &d, NULL, ptr, NULL);
}

/* The box that candidate `which` makes, as a new array; NULL: there is none of that number, or no memory (*mapped false). */
static float *result(halo_device *dev, const halo_op_desc *d, const char *impl, bool *mapped)
{
    halo_candidate c[HALO_MAX_CANDIDATES];
    int n = dev->classes[d->kind] ? dev->classes[d->kind]->candidates(dev, d, c) : 0, which = 0;
    memory m = {0};
    halo_op_args args = {0};
    halo_plan *plan;
    void *image = NULL;
    float *out = NULL;
    while (which < n && strcmp(c[which].impl, impl) != 0) which++;
    if (which == n) return NULL;
    *mapped = map_all(d, &m);
    if (*mapped) {
        memcpy(args.ptr, m.ptr, sizeof(args.ptr));
        if (c[which].scratch) check_status(dev->ctx, dev->ops->alloc(dev, c[which].scratch, &args.scratch), "scratch");
        if (c[which].image) check_status(dev->ctx, make_image(dev, d, &c[which], m.ptr[HALO_WT], &image), "image");
        if (image) args.ptr[HALO_WT] = image;
        check_status(dev->ctx, dev->classes[d->kind]->plan(dev, d, &c[which], &plan), "plan");
        check_status(dev->ctx, dev->classes[d->kind]->run(plan, &args), impl);
        dev->classes[d->kind]->destroy(plan);
        const halo_operand *o = &d->t[result_of(d->kind)];
        out = check_alloc(cells(o), sizeof(*out));
        for (int64_t i = 0; i < cells(o); i++) out[i] = result_of(d->kind) == HALO_DW ? ((float *)m.ptr[HALO_DW])[i] : *cell(o, m.ptr[result_of(d->kind)], i);
        if (args.scratch) dev->ops->release(dev, args.scratch);
        if (image) dev->ops->release(dev, image);
    }
    unmap_all(&m);
    return out;
}

static double difference(const float *a, const float *b, int64_t n)
{
    double worst = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        worst = check_worse(worst, fabs((double)a[i] - (double)b[i]));
        most = check_worse(most, fabs((double)b[i]));
    }
    return most > 0 ? worst / most : INFINITY;
}

/* Every implementation that takes the far box, beside itself, or the first, on the near one. */
static void compare(halo_device *dev, const char *backend, halo_op_kind kind, halo_layout layout)
{
    halo_op_desc far = describe(kind, layout, true), near = describe(kind, layout, false);
    halo_candidate c[HALO_MAX_CANDIDATES], few[HALO_MAX_CANDIDATES];
    int n = dev->classes[kind] ? dev->classes[kind]->candidates(dev, &far, c) : 0, m = n ? dev->classes[kind]->candidates(dev, &near, few) : 0;
    for (int i = 0; i < n && m > 0; i++) {
        bool mapped = true;
        float *got = result(dev, &far, c[i].impl, &mapped), *want = NULL;
        for (int k = 0; k < m && !want; k++)
            if (strcmp(few[k].impl, c[i].impl) == 0) want = result(dev, &near, few[k].impl, &mapped);
        if (!want) want = result(dev, &near, few[0].impl, &mapped);
        double error = got && want ? difference(got, want, cells(&near.t[result_of(kind)])) : INFINITY;
        if (!mapped) tap_skip("no %s of so many elements can be mapped here", backend);
        else tap_ok(error <= 1e-5, "%s, %s in %s by %s: as near (%.1e)", backend, hl_op_kind_name(kind), hl_layout_name(layout), c[i].impl, error);
        free(got), free(want);
    }
}

int main(void)
{
    static const halo_op_kind kinds[] = {HALO_OP_CONV_FWD, HALO_OP_CONV_BWD_DATA, HALO_OP_CONV_BWD_WEIGHTS, HALO_OP_POOL_FWD, HALO_OP_ACT_FWD, HALO_OP_ADD, HALO_OP_COPY};
    static const halo_layout layouts[] = {HALO_NCDHW, HALO_NDHWC, HALO_NCDHW8C, HALO_NCDHW16C};
    static const char *const backend[] = {"ref", "cpu", "cpu", "cpu"}, *const isa[] = {NULL, "generic", "avx2", "avx512f"};
    if (sizeof(void *) < 8) tap_skip_all("addresses are too short for such tensors");
    for (size_t b = 0; b < HL_COUNT(backend); b++) {
        halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
        halo_context *ctx;
        halo_device *dev;
        o.isa = isa[b];
        check_status(NULL, halo_context_create(&o, &ctx), "context");
        if (hl_device_open(ctx, backend[b], NULL, &dev) == HALO_OK) { /* this machine, or this build, may lack it */
            for (size_t k = 0; k < HL_COUNT(kinds); k++)
                for (size_t l = 0; l < HL_COUNT(layouts); l++) compare(dev, isa[b] ? isa[b] : "ref", kinds[k], layouts[l]);
            dev->ops->close(dev);
        }
        halo_context_destroy(ctx);
    }
    return tap_done();
}
