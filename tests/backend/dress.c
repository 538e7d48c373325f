/* SPDX-License-Identifier: Apache-2.0 */
/* dress.c -- see dress.h. */
#include "dress.h"

#include "tensor/half.h"
#include "tests/check.h"

/* ------------------------------------------------------------------------------------------------- cells of an image */

static void put(unsigned char *at, halo_dtype type, double v)
{
    float f = (float)v;
    uint16_t half = type == HALO_F16 ? hl_f16_from_f32(f) : hl_bf16_from_f32(f);
    int32_t i = (int32_t)v;
    int16_t s = (int16_t)i;
    switch (type) {
    case HALO_F32: memcpy(at, &f, 4); break;
    case HALO_F64: memcpy(at, &v, 8); break;
    case HALO_F16:
    case HALO_BF16: memcpy(at, &half, 2); break;
    case HALO_U8: *at = (unsigned char)i; break;
    case HALO_I16: memcpy(at, &s, 2); break;
    case HALO_I32: memcpy(at, &i, 4); break;
    case HALO_NONE: break;
    }
}

static double get(const unsigned char *at, halo_dtype type)
{
    float f;
    double v = 0;
    uint16_t half;
    int32_t i;
    int16_t s;
    switch (type) {
    case HALO_F32: memcpy(&f, at, 4); return (double)f;
    case HALO_F64: memcpy(&v, at, 8); return v;
    case HALO_F16: memcpy(&half, at, 2); return (double)hl_f32_from_f16(half);
    case HALO_BF16: memcpy(&half, at, 2); return (double)hl_f32_from_bf16(half);
    case HALO_U8: return (double)*at;
    case HALO_I16: memcpy(&s, at, 2); return (double)s;
    case HALO_I32: memcpy(&i, at, 4); return (double)i;
    case HALO_NONE: break;
    }
    return v;
}

/* What may neither be read nor written. */
static void put_sentinel(unsigned char *at, halo_dtype type)
{
    static const uint64_t f64 = 0x7ff8a5a5a5a5a5a5u;
    static const uint32_t f32 = 0x7fc5a5a5u;
    static const uint16_t f16 = 0x7e5au, bf16 = 0x7fdau;
    memset(at, 0xa5, hl_dtype_size(type));
    if (type == HALO_F64) memcpy(at, &f64, 8);
    if (type == HALO_F32) memcpy(at, &f32, 4);
    if (type == HALO_F16) memcpy(at, &f16, 2);
    if (type == HALO_BF16) memcpy(at, &bf16, 2);
}

/* A walk over the cells of box and margin, in the order of operand.value. */
typedef struct walk {
    const halo_operand *op;
    hl_strides s;
    int64_t i[HALO_DIMS], index;
} walk;

static int64_t walk_low(const halo_operand *op, int k) { return k >= HALO_D ? -op->margin[k - HALO_D][0] : 0; }
static int64_t walk_high(const halo_operand *op, int k)
{
    return op->ext[k] + (k >= HALO_D ? op->margin[k - HALO_D][1] : 0);
}

static walk walk_begin(const halo_operand *op)
{
    walk w = {.op = op, .s = hl_operand_strides(op)};
    for (int k = 0; k < HALO_DIMS; k++) w.i[k] = walk_low(op, k);
    return w;
}

static bool walk_more(const walk *w) { return w->i[HALO_N] < w->op->ext[HALO_N]; }

static void walk_next(walk *w)
{
    w->index++;
    w->i[HALO_W]++;
    for (int k = HALO_W; k > HALO_N && w->i[k] >= walk_high(w->op, k); k--) {
        w->i[k] = walk_low(w->op, k);
        w->i[k - 1]++;
    }
}

static bool walk_in_box(const walk *w)
{
    for (int k = HALO_D; k < HALO_DIMS; k++)
        if (w->i[k] < 0 || w->i[k] >= w->op->ext[k]) return false;
    return true;
}

static size_t walk_byte(const walk *w)
{
    const int64_t *lo = w->op->lo, *i = w->i;
    return (size_t)hl_offset(&w->s, lo[0] + i[0], lo[1] + i[1], lo[2] + i[2], lo[3] + i[3], lo[4] + i[4]) *
           hl_dtype_size(w->op->dtype);
}

/* -------------------------------------------------------------------------------------------------------- dressing */

static halo_dtype type_for(const operand *o, const halo_device *dev)
{
    if (o->type != HALO_NONE) return o->type;
    return o->dress == DRESS_STAT ? HALO_F64 : o->dress == DRESS_MASTER ? dev->master : dev->compute;
}

/* Room around box and margin that belongs to somebody else, in the first `dims` dimensions. */
static void add_slack(rng *r, halo_operand *op, int dims)
{
    for (int k = 0; k < dims; k++) {
        if (!rng_chance(r, 40)) continue;
        int64_t low = rng_int(r, 0, 2), high = rng_int(r, 0, 2);
        if (k == HALO_C) low = low * hl_layout_block(op->layout), high = rng_int(r, 0, 9);
        op->lo[k] += low;
        op->alloc[k] += low + high;
    }
}

static halo_layout any_layout(rng *r, const halo_device *dev)
{
    int n = 0;
    while (dev->layouts[n] != HALO_LAYOUTS) n++;
    return n == 1 ? (halo_layout)rng_int(r, 0, HALO_LAYOUTS - 1) : dev->layouts[rng_int(r, 0, n - 1)];
}

static void dress_operand(dressed *x, rng *r, const operand *o, stored *s)
{
    bool boxed = o->dress == DRESS_PROGRAM || o->dress == DRESS_ANY || o->dress == DRESS_AUX;
    halo_layout layout = !boxed ? HALO_NCDHW : o->dress == DRESS_ANY ? any_layout(r, x->dev) : x->layout;
    s->op = hl_operand_margined(type_for(o, x->dev), layout, o->ext, o->margin);
    size_t size = hl_dtype_size(s->op.dtype), allocation;
    if (boxed && !x->t->dense) add_slack(r, &s->op, HALO_DIMS);
    if (o->dress == DRESS_ROWS && !x->t->dense && rng_chance(r, 25)) add_slack(r, &s->op, HALO_D); /* N and C */
    if (!boxed && rng_chance(r, 70)) s->offset = (size_t)rng_int(r, 0, 5) * size;
    HL_BUG_UNLESS(hl_operand_valid(&s->op) && hl_operand_bytes(&s->op, &allocation));
    s->bytes = s->offset + allocation;
}

static void zero_lanes(const halo_operand *op, unsigned char *base, const unsigned char *restore)
{
    hl_strides s = hl_operand_strides(op);
    int64_t end = hl_round_up(op->alloc[HALO_C], hl_layout_block(op->layout));
    size_t size = hl_dtype_size(op->dtype);
    for (int64_t n = 0; n < op->alloc[HALO_N]; n++)
        for (int64_t c = op->alloc[HALO_C]; c < end; c++)
            for (int64_t p = 0; p < op->alloc[HALO_D] * op->alloc[HALO_H] * op->alloc[HALO_W]; p++) {
                unsigned char *at = base + (size_t)(hl_offset(&s, n, c, 0, 0, 0) + p * s.s[HALO_W]) * size;
                if (!restore)
                    put(at, op->dtype, 0);
                else if (get(at, op->dtype) == 0) /* -0 is a zero too */
                    memcpy(at, restore + (at - base), size);
            }
}

static void make_image(const operand *o, stored *s)
{
    size_t size = hl_dtype_size(s->op.dtype);
    s->before = check_alloc((int64_t)s->bytes, 1);
    s->after = check_alloc((int64_t)s->bytes, 1);
    for (size_t i = 0; i < s->bytes; i += size) put_sentinel(s->before + i, s->op.dtype);
    zero_lanes(&s->op, s->before + s->offset, NULL);
    if (!o->in) return;
    for (walk w = walk_begin(&s->op); walk_more(&w); walk_next(&w))
        put(s->before + s->offset + walk_byte(&w), s->op.dtype, o->value[w.index]);
}

void dress_up(dressed *x, const trial *t, halo_device *dev, halo_layout layout, halo_device *oracle, double tolerance)
{
    rng r = {t->seed * 8 + (uint64_t)layout};
    *x = (dressed){.t = t, .dev = dev, .layout = layout, .d = t->d, .oracle = oracle, .tolerance = tolerance};
    for (int i = 0; i < HALO_ROLES; i++) {
        if (t->t[i].dress == DRESS_NONE || t->alias[i] >= 0) continue;
        dress_operand(x, &r, &t->t[i], &x->s[i]);
        make_image(&t->t[i], &x->s[i]);
        check_status(dev->ctx, dev->ops->alloc(dev, x->s[i].bytes, &x->s[i].memory), "alloc");
    }
    for (int i = 0; i < HALO_ROLES; i++)
        if (t->t[i].dress != DRESS_NONE) x->d.t[i] = x->s[t->alias[i] >= 0 ? t->alias[i] : i].op;
}

void dress_off(dressed *x)
{
    for (int i = 0; i < HALO_ROLES; i++) {
        free(x->s[i].before);
        free(x->s[i].after);
        if (x->s[i].memory) x->dev->ops->release(x->dev, x->s[i].memory);
    }
}

/* --------------------------------------------------------------------------------------------------------- checking */

static bool fail(dressed *x, const char *format, ...) HALO_PRINTF(2, 3);
static bool fail(dressed *x, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (!x->why[0]) vsnprintf(x->why, sizeof(x->why), format, ap);
    va_end(ap);
    return false;
}

static double largest(const operand *o, const double *v, bool box_only)
{
    halo_operand plain = operand_plain(o);
    double m = 0;
    for (walk w = walk_begin(&plain); walk_more(&w); walk_next(&w))
        if (!box_only || walk_in_box(&w)) m = fmax(m, fabs(v[w.index]));
    return m;
}

static double largest_change(const operand *o)
{
    double m = 0;
    for (int64_t i = 0; o->in && i < operand_cells(o); i++) m = fmax(m, fabs(o->want[i] - o->value[i]));
    return m;
}

/* Error that rounding explains, for cell i of an output. Moments are judged one by one; new weights by the size of their change. */
static double allowed(const dressed *x, int role, int64_t i, double scale)
{
    const operand *o = &x->t->t[role];
    const bool fine = o->dress == DRESS_STAT || (o->dress == DRESS_MASTER && !trial_multiplies(x->d.kind));
    double tol = x->dev->compute == HALO_F16 || x->dev->compute == HALO_BF16 ? fine ? 5e-6 : x->tolerance : x->tolerance;
    if (o->exact) return 0;
    if (x->d.kind == HALO_OP_NORM_STATS) {
        const double *m = o->want + i / 3 * 3;
        double sd = sqrt(m[2] / m[0]);
        return i % 3 == 0 ? 0 : i % 3 == 1 ? tol * (fabs(m[1]) + sd) : 4 * tol * m[2] + tol * tol * m[0] * m[1] * m[1];
    }
    if (x->d.kind == HALO_OP_UPDATE && role == HALO_WT)
        return tol * x->change + (x->dev->master == HALO_F64 ? 1e-15 : 1.5e-7) * scale;
    return tol * scale + (x->dev->compute == HALO_F16 && !fine ? 0x1p-24 : 0); /* a step of f16's smallest */
}

/* Scale of a sum of products whose result may be small by cancellation: a tenth of the sum of the absolute values. */
static double magnitude(const dressed *x, int role)
{
    double *out[HALO_ROLES], m;
    trial_oracle(x->t, x->oracle, true, out);
    m = largest(&x->t->t[role], out[role], true);
    for (int i = 0; i < HALO_ROLES; i++) free(out[i]);
    return m / 10;
}

/* What a convolution with pooling saved of the window of y's cell i, judged by the cells themselves: two that differ by less than rounding explains may
 * both be the largest, and a cell of that size may have either sign. */
static bool saved_well(const dressed *x, const int64_t i[HALO_DIMS], int64_t saved, double limit)
{
    const int64_t *y = x->t->t[HALO_Y].ext, *side = x->d.pool_side;
    int64_t k = 0, cells = side[0] * side[1] * side[2];
    double best = -INFINITY, winner = NAN;
    for (int64_t a = 0; a < side[0]; a++)
        for (int64_t b = 0; b < side[1]; b++)
            for (int64_t c = 0; c < side[2]; c++, k++) {
                int64_t at = ((i[0] * y[1] + i[1]) * y[2] * side[0] + i[2] * side[0] + a) * y[3] * side[1] + i[3] * side[1] + b;
                double z = x->t->z[at * y[4] * side[2] + i[4] * side[2] + c];
                best = fmax(best, z);
                if (k == saved) winner = z;
                if (x->d.pool == HALO_POOL_AVG && (saved >> k & 1) != (z > 0) && !(fabs(z) <= limit)) return false;
            }
    if (x->d.pool == HALO_POOL_AVG) return saved >> cells == 0;
    return best - winner <= 2 * limit;
}

static bool check_saved(dressed *x, stored *s)
{
    const operand *y = &x->t->t[HALO_Y];
    double scale = fmax(largest(y, y->want, true), magnitude(x, HALO_Y));
    int64_t cells = x->d.pool_side[0] * x->d.pool_side[1] * x->d.pool_side[2];
    for (int k = 0; k < HALO_DIMS; k++) cells *= y->ext[k];
    for (int64_t i = 0; i < cells && x->d.pool == HALO_POOL_AVG; i++) scale = fmax(scale, fabs(x->t->z[i]));
    for (walk w = walk_begin(&s->op); walk_more(&w); walk_next(&w)) {
        size_t at = s->offset + walk_byte(&w);
        if (!walk_in_box(&w)) continue;
        if (!saved_well(x, w.i, s->after[at], 4 * x->tolerance * scale))
            return fail(x, "aux[%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "] is %d: not what these cells say", w.i[0], w.i[1], w.i[2], w.i[3],
                        w.i[4], s->after[at]);
        s->after[at] = s->before[at];
    }
    return true;
}

static const double f16_end = 65520; /* what is at least this is infinite in f16 */

/* Whether it is infinite because the type ends before what it should be. */
static bool overflows(halo_dtype type, double got, double want, double limit)
{
    return type == HALO_F16 && isinf(got) && signbit(got) == signbit(want) && fabs(want) + limit >= f16_end;
}

/* Compares the cells of an output, and puts back what was there before, so that the rest can be compared as bytes. */
static bool check_output(dressed *x, int role, stored *s)
{
    const operand *o = &x->t->t[role];
    if (x->d.kind == HALO_OP_CONV_POOL_FWD && role == HALO_AUX) return check_saved(x, s);
    const double end = s->op.dtype == HALO_F16 ? f16_end : INFINITY;
    double scale = fmin(largest(o, o->want, !o->any_margin), end);
    x->change = largest_change(o);
    bool wide = false;
    size_t size = hl_dtype_size(s->op.dtype);
    for (walk w = walk_begin(&s->op); walk_more(&w); walk_next(&w)) {
        if (!o->any_margin && !walk_in_box(&w)) continue;
        size_t at = s->offset + walk_byte(&w);
        double got = get(s->after + at, s->op.dtype), want = o->want[w.index], error = fabs(got - want);
        if (got == want) error = 0;
        double limit = allowed(x, role, w.index, scale);
        if (!(error <= limit) && !wide && !o->exact) {
            wide = true;
            scale = fmin(fmax(scale, magnitude(x, role)), end);
            limit = allowed(x, role, w.index, scale);
        }
        if (overflows(s->op.dtype, got, want, limit)) error = 0;
        if (!(error <= limit))
            return fail(x,
                        "%s[%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                        "] is %.9g, want %.9g: %.2e of the tolerance "
                        "(largest %.3g)",
                        hl_role_name((halo_role)role), w.i[0], w.i[1], w.i[2], w.i[3], w.i[4], got, want,
                        error / limit, scale);
        if (error > 0) x->worst = fmax(x->worst, error / limit);
        memcpy(s->after + at, s->before + at, size);
    }
    return true;
}

/* Where in the allocation a byte lies, for a message. */
static bool check_untouched(dressed *x, int role, stored *s)
{
    size_t size = hl_dtype_size(s->op.dtype);
    zero_lanes(&s->op, s->after + s->offset, s->before + s->offset);
    for (size_t i = 0; i < s->bytes; i += size)
        if (memcmp(s->after + i, s->before + i, size) != 0)
            return fail(
                x, "%s: element %zd of the allocation was written though it is outside the box (%.6g became %.6g)",
                hl_role_name((halo_role)role), (ssize_t)((i - s->offset) / size), get(s->before + i, s->op.dtype),
                get(s->after + i, s->op.dtype));
    return true;
}

static bool check_all(dressed *x)
{
    for (int i = 0; i < HALO_ROLES; i++) {
        int owner = x->t->alias[i] >= 0 ? x->t->alias[i] : i;
        if (x->t->t[i].dress != DRESS_NONE && x->t->t[i].out && !check_output(x, i, &x->s[owner])) return false;
    }
    for (int i = 0; i < HALO_ROLES; i++)
        if (x->s[i].before && !check_untouched(x, i, &x->s[i])) return false;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- running */

static halo_status move_all(dressed *x, bool up)
{
    for (int i = 0; i < HALO_ROLES; i++) {
        stored *s = &x->s[i];
        if (!s->before) continue;
        halo_operand raw = hl_operand_flat(HALO_U8, (int64_t)s->bytes);
        HL_TRY(up ? x->dev->ops->upload(x->dev, &raw, s->memory, HALO_U8, s->before)
                  : x->dev->ops->download(x->dev, &raw, s->memory, HALO_U8, s->after));
    }
    return HALO_OK;
}

/* The image that the candidate wants of the master weights, in fresh memory full of NaN. */
static halo_status make_weights_image(dressed *x, const halo_candidate *c, halo_op_args *args, void **image)
{
    halo_op_desc d = {.kind = HALO_OP_CONV_IMAGE, .window = x->d.window, .image = c->image};
    void *ptr[HALO_ROLES] = {[HALO_X] = args->ptr[HALO_WT]};
    d.t[HALO_X] = x->d.t[HALO_WT];
    d.t[HALO_Y] = hl_operand_flat(HALO_U8, (int64_t)c->image_bytes);
    HL_TRY(x->dev->ops->alloc(x->dev, c->image_bytes, image));
    HL_TRY(x->dev->ops->fill(x->dev, *image, 0xff, c->image_bytes, NULL));
    ptr[HALO_Y] = args->ptr[HALO_WT] = *image;
    return hl_op_run_once(x->dev, &d, NULL, ptr, &x->t->record);
}

static halo_status run_plan(dressed *x, const halo_candidate *c, halo_plan *plan, int times)
{
    halo_op_args args = {.record = &x->t->record};
    void *image = NULL;
    halo_status st = HALO_OK;
    if (c->scratch) HL_TRY(x->dev->ops->alloc(x->dev, c->scratch, &args.scratch));
    for (int k = 0; k < times && st == HALO_OK; k++) {
        for (int i = 0; i < HALO_ROLES; i++) {
            const stored *s = &x->s[x->t->alias[i] >= 0 ? x->t->alias[i] : i];
            if (x->t->t[i].dress != DRESS_NONE) args.ptr[i] = (char *)s->memory + s->offset;
        }
        if (c->scratch) HL_GOTO(st, x->dev->ops->fill(x->dev, args.scratch, 0xff, c->scratch, NULL), release);
        HL_GOTO(st, move_all(x, true), release);
        if (c->image && !image) HL_GOTO(st, make_weights_image(x, c, &args, &image), release);
        if (c->image) args.ptr[HALO_WT] = image;
        if (x->dev->ops->enter) x->dev->ops->enter(x->dev);
        st = hl_op_class(x->dev, x->d.kind, c)->run(plan, &args);
        if (x->dev->ops->leave) x->dev->ops->leave(x->dev);
        if (st == HALO_OK) st = x->dev->ops->wait(x->dev, NULL);
        if (st == HALO_OK) st = move_all(x, false);
    }
release:
    if (args.scratch) x->dev->ops->release(x->dev, args.scratch);
    if (image) x->dev->ops->release(x->dev, image);
    return st;
}

bool dress_run(dressed *x, const halo_candidate *c, int times)
{
    halo_plan *plan = NULL;
    const halo_op_class *class = hl_op_class(x->dev, x->d.kind, c);
    unsigned char *first[HALO_ROLES] = {NULL};
    bool good = true;
    if (class->plan(x->dev, &x->d, c, &plan) != HALO_OK)
        return fail(x, "plan failed: %s", halo_error_message(x->dev->ctx));
    for (int k = 0; k < times && good; k++) {
        if (run_plan(x, c, plan, 1) != HALO_OK) good = fail(x, "run failed: %s", halo_error_message(x->dev->ctx));
        for (int i = 0; good && i < HALO_ROLES; i++) {
            const stored *s = &x->s[i];
            if (s->before && k == 0) first[i] = memcpy(check_alloc((int64_t)s->bytes, 1), s->after, s->bytes);
            if (s->before && k > 0 && memcmp(first[i], s->after, s->bytes) != 0)
                good = fail(x, "a second run gives other bits in %s", hl_role_name((halo_role)i));
        }
    }
    class->destroy(plan);
    for (int i = 0; i < HALO_ROLES; i++) free(first[i]);
    return good && check_all(x);
}

/* --------------------------------------------------------------------------------------------------------- printing */

static void print5(const char *what, const int64_t *v)
{
    printf(" %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, what, v[0], v[1], v[2], v[3], v[4]);
}

static void print3(const char *what, const int64_t *v)
{
    printf(" %s %" PRId64 " %" PRId64 " %" PRId64, what, v[0], v[1], v[2]);
}

static void print_operand(const dressed *x, int role)
{
    const halo_operand *o = &x->d.t[role];
    printf("#     %-7s %s %s", hl_role_name((halo_role)role), hl_dtype_name(o->dtype), hl_layout_name(o->layout));
    print5("alloc", o->alloc);
    print5("lo", o->lo);
    print5("ext", o->ext);
    printf(" margin");
    for (int k = 0; k < 3; k++) printf(" %" PRId64 ":%" PRId64, o->margin[k][0], o->margin[k][1]);
    if (x->s[role].offset) printf(" at byte %zu", x->s[role].offset);
    if (x->t->alias[role] >= 0) printf(" in place of %s", hl_role_name((halo_role)x->t->alias[role]));
    printf("\n");
}

void dress_print(const dressed *x, const halo_candidate *c)
{
    const halo_op_desc *d = &x->d;
    printf("#   %s by %s, seed %" PRIu64 ": %s\n", hl_op_kind_name(d->kind), c ? c->impl : "?", x->t->seed, x->why);
    printf("#    ");
    print3("kernel", d->window.kernel);
    print3("stride", d->window.stride);
    print3("dilation", d->window.dilation);
    print3("pad", d->window.pad_lo);
    if (d->kind == HALO_OP_CONV_POOL_FWD) print3("pooled by", d->pool_side);
    printf("\n#     act %s slope %g pool %d count_pad %d accumulate %d inference %d unbiased %d last %d reverse %d "
           "groups %" PRId64 " per_sample %d loss %d optimizer %d larc %d clip %g\n",
           hl_act_name(d->act), d->slope, d->pool, d->count_pad, d->accumulate, d->inference, d->unbiased,
           d->channels_last, d->reverse, d->groups, d->per_sample, d->loss, d->update.kind, d->update.larc,
           d->clip_norm);
    for (int k = 0; d->kind == HALO_OP_MARGIN && k < 3; k++)
        printf("#     margin mode %d %d\n", d->margin_mode[k][0], d->margin_mode[k][1]);
    for (int i = 0; i < HALO_ROLES; i++)
        if (d->t[i].dtype != HALO_NONE) print_operand(x, i);
    fflush(stdout);
}
