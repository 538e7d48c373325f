/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c -- finding backends and opening devices, what wrong names get, the price of operations, and moving data in and out of any box. */
#include "backend/backend.h"

#include "tests/check.h"
#include "tests/tap.h"

static void test_names(void)
{
    int same = 0, unknown = 0;
    for (int i = 0; i < HALO_OP_KINDS; i++) {
        const char *name = hl_op_kind_name((halo_op_kind)i);
        unknown += !name || name[0] == '?';
        for (int k = 0; k < i; k++) same += name && strcmp(name, hl_op_kind_name((halo_op_kind)k)) == 0;
    }
    for (int i = 0; i < HALO_ROLES; i++) unknown += !hl_role_name((halo_role)i) || hl_role_name((halo_role)i)[0] == '?';
    tap_ok(same == 0 && unknown == 0, "every kind and role has a name of its own");
}

/* What the first backend cannot do is refused, not done by a slower one; double precision has one place to go. */
static void test_wishes(void)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    halo_context *ctx;
    halo_device *dev = NULL;
    if (strcmp(hl_backends()[0]->name, "cpu") != 0) {
        tap_skip("no cpu backend in this build");
        return;
    }
    o.isa = "nope";
    if (halo_context_create(&o, &ctx) != HALO_OK) tap_bail("no context");
    tap_ok(hl_context_device(ctx, &dev) == HALO_ERR_USAGE && !dev, "an instruction set that is not there is an error on 'auto', too: %s", halo_error_message(ctx));
    halo_context_destroy(ctx);
}

static void test_backends(halo_context *ctx)
{
    const halo_backend *const *b = hl_backends();
    int n = 0, wrong = 0;
    for (; b[n]; n++) wrong += b[n]->abi != HALO_BACKEND_ABI || !b[n]->name || !b[n]->summary || !b[n]->open;
    tap_ok(n > 0 && wrong == 0, "%d backends speak this version of the contract", n);
    tap_ok(n > 0 && strcmp(b[n - 1]->name, "ref") == 0, "ref is the last choice");
    halo_device *dev = NULL, *again = NULL;
    tap_ok(hl_context_device(ctx, &dev) == HALO_OK && hl_context_device(ctx, &again) == HALO_OK && dev == again,
           "the context has one device");
    halo_device *none = NULL;
    tap_ok(hl_device_open(ctx, "reff", NULL, &none) == HALO_ERR_USAGE && !none &&
               strstr(halo_error_message(ctx), "'ref'"),
           "a misspelt backend names the near one: %s", halo_error_message(ctx));
    tap_ok(hl_device_open(ctx, "abacus", NULL, &none) == HALO_ERR_USAGE && !none &&
               strstr(halo_error_message(ctx), "ref"),
           "an unknown backend lists what there is: %s", halo_error_message(ctx));
}

/* REQUIRED slots are there, and the description says something. */
static void test_device(halo_device *dev, const char *name)
{
    const halo_device_ops *o = dev->ops;
    halo_device_info info;
    int incomplete = 0, kinds = 0;
    tap_ok(o->alloc && o->release && o->upload && o->download && o->copy && o->fill && o->wait && o->describe &&
               o->close,
           "%s: every required slot of the device is filled", name);
    for (int k = 0; k < HALO_OP_KINDS; k++) {
        const halo_op_class *c = dev->classes[k];
        if (!c) continue;
        kinds++;
        incomplete += c->kind != (halo_op_kind)k || !c->candidates || !c->plan || !c->run || !c->destroy;
        if (c->destroy) c->destroy(NULL);
    }
    tap_ok(incomplete == 0, "%s: every class of its %d kinds is whole, destroy(NULL) is allowed", name, kinds);
    o->describe(dev, &info);
    tap_ok(info.name[0] && info.details[0] && info.threads >= 1, "%s describes itself: %s (%s)", name, info.name,
           info.details);
    tap_ok(dev->layouts[0] != HALO_LAYOUTS && (dev->compute == HALO_F32 || dev->compute == HALO_F64),
           "%s has a layout and a type", name);
}

/* 0 .. 96 over and over. */
static void fill_host(unsigned char *in, halo_dtype host, int64_t n)
{
    size_t size = hl_dtype_size(host);
    for (int64_t i = 0; i < n; i++) {
        float f = (float)(i % 97);
        double d = (double)(i % 97);
        int16_t s = (int16_t)(i % 97);
        uint8_t u = (uint8_t)(i % 97);
        const void *v = host == HALO_F32 ? (void *)&f : host == HALO_F64 ? (void *)&d : host == HALO_I16 ? (void *)&s : (void *)&u;
        memcpy(in + (size_t)i * size, v, size);
    }
}

/* The lanes behind the allocation's last channel, at the last cell of the box, as raw bytes. */
static bool lanes_are_zero(halo_device *dev, const halo_operand *o, const void *p, size_t bytes)
{
    halo_operand raw = hl_operand_flat(HALO_U8, (int64_t)bytes);
    hl_strides s = hl_operand_strides(o);
    size_t size = hl_dtype_size(o->dtype);
    if (hl_layout_block(o->layout) == 1) return true;
    unsigned char *b = check_alloc((int64_t)bytes, 1);
    bool good = dev->ops->download(dev, &raw, p, HALO_U8, b) == HALO_OK;
    for (int64_t c = o->alloc[HALO_C]; c < hl_round_up(o->alloc[HALO_C], s.block); c++) {
        size_t at = (size_t)hl_offset(&s, 2, c, 2, 3, 4) * size;
        for (size_t k = 0; k < size; k++) good = good && b[at + k] == 0;
    }
    free(b);
    return good;
}

/* Upload into a box, download it again: equal values, nothing else touched, padding lanes zero. */
static bool round_trip(halo_device *dev, halo_layout layout, halo_dtype type, halo_dtype host)
{
    halo_operand o = {
        .dtype = type, .layout = layout, .alloc = {3, 40, 4, 5, 6}, .lo = {1, 16, 1, 1, 2}, .ext = {2, 24, 2, 3, 3}};
    halo_operand whole = o;
    int64_t n = hl_operand_box_elements(&o), all = 3 * 40 * 4 * 5 * 6;
    size_t bytes, size = hl_dtype_size(host);
    o.alloc[HALO_C] = whole.alloc[HALO_C] = 37, o.ext[HALO_C] = 21;
    memset(whole.lo, 0, sizeof(whole.lo));
    memcpy(whole.ext, whole.alloc, sizeof(whole.ext));
    HL_BUG_UNLESS(hl_operand_bytes(&o, &bytes) && hl_operand_valid(&o));
    void *p;
    unsigned char *in = check_alloc(n, 8), *out = check_alloc(n, 8);
    float *before = check_alloc(all, 4), *after = check_alloc(all, 4);
    fill_host(in, host, n);
    for (int64_t i = 0; i < all; i++) before[i] = -7;
    halo_status st = dev->ops->alloc(dev, bytes, &p);
    if (st == HALO_OK) st = dev->ops->fill(dev, p, 0xff, bytes, NULL);
    if (st == HALO_OK) st = dev->ops->upload(dev, &whole, p, HALO_F32, before);
    if (st == HALO_OK) st = dev->ops->upload(dev, &o, p, host, in);
    if (st == HALO_OK) st = dev->ops->download(dev, &o, p, host, out);
    if (st == HALO_OK) st = dev->ops->download(dev, &whole, p, HALO_F32, after);
    bool good = st == HALO_OK && memcmp(in, out, (size_t)hl_operand_box_elements(&o) * size) == 0;
    for (int64_t i = 0, c = 37; good && i < 3 * c * 4 * 5 * 6; i++) { /* outside the box: still -7 */
        int64_t at[HALO_DIMS] = {i / (c * 120), i / 120 % c, i / 30 % 4, i / 6 % 5, i % 6};
        bool inside = true;
        for (int k = 0; k < HALO_DIMS; k++) inside = inside && at[k] >= o.lo[k] && at[k] < o.lo[k] + o.ext[k];
        good = inside || after[i] == -7;
    }
    good = good && lanes_are_zero(dev, &o, p, bytes);
    dev->ops->release(dev, p);
    free(in), free(out), free(before), free(after);
    return good;
}

static void test_transfers(halo_device *dev, const char *name)
{
    static const halo_dtype hosts[] = {HALO_F32, HALO_F64, HALO_I16, HALO_U8};
    int failed = 0, tried = 0;
    for (int i = 0; dev->layouts[i] != HALO_LAYOUTS; i++)
        for (size_t h = 0; h < HL_COUNT(hosts); h++, tried++)
            failed += !round_trip(dev, dev->layouts[i], dev->compute, hosts[h]);
    tap_ok(failed == 0,
           "%s: boxes of %d layouts and host types come back, the rest untouched, lanes zero (%d do not)", name,
           tried, failed);
    halo_operand half = hl_operand_flat(HALO_BF16, 3);
    const double values[3] = {1, 1.00390625, -3.0009765625}; /* 1 + 2^-8: half way, to even */
    double got[3] = {0};
    void *p;
    check_status(dev->ctx, dev->ops->alloc(dev, 6, &p), "alloc");
    bool good = dev->ops->upload(dev, &half, p, HALO_F64, values) == HALO_OK &&
                dev->ops->download(dev, &half, p, HALO_F64, got) == HALO_OK;
    tap_ok(good && got[0] == 1 && got[1] == 1 && got[2] == -3, "%s: transfers round to bf16", name);
    dev->ops->release(dev, p);
}

static void test_costs(void)
{
    halo_op_desc d = {.kind = HALO_OP_CONV_FWD, .window = {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}};
    d.t[HALO_X] = hl_operand_whole(HALO_F32, HALO_NDHWC, (int64_t[]){2, 16, 64, 64, 64});
    d.t[HALO_Y] = hl_operand_whole(HALO_F32, HALO_NDHWC, (int64_t[]){2, 32, 64, 64, 64});
    d.t[HALO_WT] = hl_operand_whole(HALO_F32, HALO_NCDHW, (int64_t[]){32, 16, 3, 3, 3});
    hl_cost c = hl_op_cost(&d);
    tap_ok(c.flops == 2.0 * 2 * 32 * 64 * 64 * 64 * 16 * 27, "a convolution costs 2 N O I K^3 P operations");
    tap_ok(c.bytes == 4.0 * (2 * 48 * 64 * 64 * 64 + 32 * 16 * 27), "and its operands once");
    d.kind = HALO_OP_CONV_BWD_WEIGHTS;
    d.t[HALO_DY] = d.t[HALO_Y], d.t[HALO_DW] = d.t[HALO_WT];
    d.t[HALO_Y].dtype = d.t[HALO_WT].dtype = HALO_NONE;
    tap_ok(hl_op_cost(&d).flops == c.flops, "backward weights costs as much");
    halo_op_desc u = {.kind = HALO_OP_LINEAR_FWD};
    u.t[HALO_X] = hl_operand_whole(HALO_F32, HALO_NCDHW, (int64_t[]){3, 100, 1, 1, 1});
    u.t[HALO_Y] = hl_operand_whole(HALO_F32, HALO_NCDHW, (int64_t[]){3, 7, 1, 1, 1});
    tap_ok(hl_op_cost(&u).flops == 2.0 * 3 * 7 * 100, "a dense layer costs 2 N O I");
    halo_op_desc huge = d;
    for (int k = HALO_D; k < HALO_DIMS; k++) huge.t[HALO_X].ext[k] = huge.t[HALO_DY].ext[k] = 2048;
    tap_ok(hl_op_cost(&huge).flops == 2.0 * 2 * 32 * 2048.0 * 2048 * 2048 * 16 * 27,
           "costs past 2^63 bytes are numbers");
}

static void test_refusals(halo_device *dev, const char *name)
{
    halo_op_desc d = {.kind = HALO_OP_ACT_FWD, .act = HALO_ACT_RELU};
    void *ptr[HALO_ROLES] = {NULL};
    d.t[HALO_X] = hl_operand_flat(dev->compute, 4), d.t[HALO_Y] = hl_operand_flat(dev->compute, 5);
    tap_ok(hl_op_run_once(dev, &d, NULL, ptr, NULL) == HALO_ERR_UNSUPPORTED,
           "%s: extents that differ are declined: %s", name, halo_error_message(dev->ctx));
    d.t[HALO_Y] = d.t[HALO_X];
    tap_ok(hl_op_run_once(dev, &d, "no such way", ptr, NULL) == HALO_ERR_UNSUPPORTED,
           "%s: an unknown implementation is an error", name);
    halo_op_desc conv = {.kind = HALO_OP_CONV_FWD, .window = {{3, 3, 3}, {0, 1, 1}, {1, 1, 1}, {0, 0, 0}}};
    conv.t[HALO_X] = conv.t[HALO_Y] = hl_operand_whole(dev->compute, dev->layouts[0], (int64_t[]){1, 1, 4, 4, 4});
    conv.t[HALO_WT] = hl_operand_whole(dev->master, HALO_NCDHW, (int64_t[]){1, 1, 3, 3, 3});
    halo_candidate c[HALO_MAX_CANDIDATES];
    int zero_stride = hl_op_candidates(dev, &conv, c);
    conv.window.stride[0] = 1, conv.window.dilation[1] = INT64_MAX / 2;
    int absurd = hl_op_candidates(dev, &conv, c);
    conv.window.dilation[1] = 1, conv.t[HALO_Y].ext[HALO_N] = 2, conv.t[HALO_Y].alloc[HALO_N] = 2;
    tap_ok(zero_stride == 0 && absurd == 0 && hl_op_candidates(dev, &conv, c) == 0,
           "%s: stride 0, a dilation past 2^62 and unequal batches are declined (%d %d)", name, zero_stride, absurd);
}

int main(void)
{
    halo_context *ctx;
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    test_names();
    test_backends(ctx);
    test_wishes();
    test_costs();
    for (const halo_backend *const *b = hl_backends(); *b; b++) {
        halo_device *dev;
        if (hl_device_open(ctx, (*b)->name, NULL, &dev) != HALO_OK) {
            tap_skip("%s: %s", (*b)->name, halo_error_message(ctx));
            continue;
        }
        test_device(dev, (*b)->name);
        test_transfers(dev, (*b)->name);
        test_refusals(dev, (*b)->name);
        dev->ops->close(dev);
    }
    halo_context_destroy(ctx);
    return tap_done();
}
