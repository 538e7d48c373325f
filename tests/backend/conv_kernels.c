/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_kernels.c -- every convolution kernel of the cpu backend against the definition in double, on operands made to catch it: odd extents, boxes
 * inside larger allocations, margins from none to more than enough, NaN in every cell that must not be read, a known pattern in every cell that must
 * not be written, channels that do not fill a block.
 */
#include "backends/cpu/classes.h"
#include "backends/cpu/winograd.h"
#include "tests/tap.h"

enum { PATTERN = 0x7fa5a5a5 }; /* a NaN with a face */

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int64_t pick(int64_t lo, int64_t hi) { return lo + (int64_t)(draw() % (uint64_t)(hi - lo + 1)); }
static float uniform(void) { return (float)((double)(draw() >> 11) / 9007199254740992.0 * 2 - 1); }

/* ----------------------------------------------------------------------------------------------------------------- tensors */

/* An operand with its memory: pattern everywhere, values in the box and (readable ones) in the margin. */
typedef struct tensor {
    halo_operand o;
    hl_strides s;
    size_t n;
    float *p, *before;
} tensor;

static float pattern(void)
{
    uint32_t bits = PATTERN;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static float *cell(const tensor *t, int64_t n, int64_t c, int64_t d, int64_t h, int64_t w)
{
    const int64_t *lo = t->o.lo;
    return t->p + hl_offset(&t->s, lo[0] + n, lo[1] + c, lo[2] + d, lo[3] + h, lo[4] + w);
}

#define EACH_CELL(t, m)                                                                                      \
    for (int64_t n = 0; n < (t)->o.ext[0]; n++)                                                              \
        for (int64_t c = 0; c < (t)->o.ext[1]; c++)                                                          \
            for (int64_t d = -(m) * (t)->o.margin[0][0]; d < (t)->o.ext[2] + (m) * (t)->o.margin[0][1]; d++) \
                for (int64_t h = -(m) * (t)->o.margin[1][0]; h < (t)->o.ext[3] + (m) * (t)->o.margin[1][1]; h++) \
                    for (int64_t w = -(m) * (t)->o.margin[2][0]; w < (t)->o.ext[4] + (m) * (t)->o.margin[2][1]; w++)

static void padding_lanes(tensor *t)
{
    int64_t block = hl_layout_block(t->o.layout), lanes = hl_round_up(t->o.alloc[HALO_C], block);
    int64_t cells = t->o.alloc[2] * t->o.alloc[3] * t->o.alloc[4];
    for (int64_t n = 0; n < t->o.alloc[0]; n++)
        for (int64_t c = t->o.alloc[HALO_C]; c < lanes; c++)
            for (int64_t i = 0; i < cells; i++) t->p[n * t->s.s[0] + c / block * t->s.s[1] + i * block + c % block] = 0;
}

static void make(tensor *t, halo_layout layout, const int64_t ext[5], const int64_t margin[3][2], bool roomy)
{
    t->o = (halo_operand){.dtype = HALO_F32, .layout = layout};
    int64_t block = hl_layout_block(layout);
    for (int i = 0; i < 5; i++) {
        int64_t low = i >= 2 ? margin[i - 2][0] : 0, high = i >= 2 ? margin[i - 2][1] : 0;
        t->o.ext[i] = ext[i];
        t->o.lo[i] = low + (roomy ? pick(0, 1) * (i == 1 ? block : 1) : 0);
        t->o.alloc[i] = t->o.lo[i] + ext[i] + high + (roomy ? pick(0, 2) : 0);
        if (i >= 2) t->o.margin[i - 2][0] = low, t->o.margin[i - 2][1] = high;
    }
    t->s = hl_operand_strides(&t->o);
    int64_t n;
    if (!hl_operand_elements(&t->o, &n)) tap_bail("size");
    t->n = (size_t)n;
    if (posix_memalign((void **)&t->p, 64, t->n * 4) || posix_memalign((void **)&t->before, 64, t->n * 4)) tap_bail("memory");
    for (size_t i = 0; i < t->n; i++) t->p[i] = pattern();
    padding_lanes(t);
}

static void fill(tensor *t, int with_margin)
{
    EACH_CELL(t, with_margin) *cell(t, n, c, d, h, w) = uniform();
}

static void keep(tensor *t) { memcpy(t->before, t->p, t->n * 4); }

static void drop(tensor *t)
{
    free(t->p);
    free(t->before);
}

static bool readable(const tensor *t, int64_t d, int64_t h, int64_t w)
{
    const int64_t at[3] = {d, h, w};
    for (int i = 0; i < 3; i++)
        if (at[i] < -t->o.margin[i][0] || at[i] >= t->o.ext[2 + i] + t->o.margin[i][1]) return false;
    return true;
}

/* Compares the box with want (in EACH_CELL order), then wipes it: the rest must be as before. Worst error over max |want|, or 1e30. */
static double verify(tensor *t, const double *want)
{
    double worst = 0, most = 1e-30;
    int64_t i = 0;
    EACH_CELL(t, 0)
    {
        double err = fabs(*cell(t, n, c, d, h, w) - want[i]);
        if (!(err <= worst)) worst = isnan(err) ? 1e30 : err;
        most = fmax(most, fabs(want[i++]));
        *cell(t, n, c, d, h, w) = t->before[cell(t, n, c, d, h, w) - t->p];
    }
    if (memcmp(t->p, t->before, t->n * 4) != 0) {
        tap_note("cells outside the box were written");
        return 1e30;
    }
    return worst / most;
}

/* -------------------------------------------------------------------------------------------------------------- the cases */

typedef struct problem {
    const char *name;
    int64_t n, in, out, y[3];
    int64_t k[3], s[3], l[3], p[3], p_hi[3];
    halo_layout first; /* layout of x; HALO_LAYOUTS: blocked as y */
} problem;

static const problem problems[] = {
    {"3^3 same", 1, 19, 37, {5, 6, 29}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_LAYOUTS},
    {"3^3 same, two samples", 2, 32, 16, {3, 4, 13}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_LAYOUTS},
    {"3^3 valid", 1, 16, 64, {4, 3, 14}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, HALO_LAYOUTS},
    {"8^3 same", 1, 32, 64, {3, 3, 8}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_LAYOUTS},
    {"one-sided padding", 1, 16, 32, {3, 2, 17}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 0, 0}, HALO_LAYOUTS},
    {"wide padding", 1, 16, 16, {5, 4, 8}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {2, 2, 2}, {2, 2, 2}, HALO_LAYOUTS},
    {"thin", 1, 16, 16, {2, 2, 1}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_LAYOUTS},
    {"many channels", 1, 136, 72, {2, 4, 4}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_LAYOUTS},
    {"long sums", 1, 256, 24, {2, 3, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_LAYOUTS},
    {"2^3 cube", 1, 40, 80, {2, 2, 2}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_LAYOUTS},
    {"many tiles", 1, 20, 33, {9, 6, 11}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_LAYOUTS},
    {"begins inside", 1, 16, 16, {5, 4, 6}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {-1, 1, -2}, {1, -2, 3}, HALO_LAYOUTS},
    {"4^3 kernel", 1, 16, 32, {3, 4, 9}, {4, 4, 4}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, HALO_LAYOUTS},
    {"2^3 kernel", 1, 32, 33, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, HALO_LAYOUTS},
    {"1^3 kernel", 1, 24, 40, {3, 4, 7}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, HALO_LAYOUTS},
    {"stride 2 same", 1, 20, 24, {4, 3, 7}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 1, 0}, HALO_LAYOUTS},
    {"stride 2 valid", 1, 16, 48, {3, 3, 6}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 0, 0}, HALO_LAYOUTS},
    {"stride above kernel", 1, 16, 16, {3, 2, 4}, {1, 2, 1}, {2, 3, 3}, {1, 1, 1}, {0, 0, 0}, {0, 2, 2}, HALO_LAYOUTS},
    {"dilation", 1, 17, 16, {3, 3, 6}, {3, 2, 3}, {1, 1, 1}, {2, 1, 3}, {2, 0, 3}, {2, 1, 3}, HALO_LAYOUTS},
    {"dilation and stride", 1, 16, 16, {3, 2, 5}, {2, 3, 3}, {1, 2, 2}, {2, 2, 2}, {1, 2, 2}, {0, 1, 2}, HALO_LAYOUTS},
    {"5 x 1 x 7", 1, 16, 20, {6, 3, 10}, {5, 1, 7}, {1, 1, 1}, {1, 1, 1}, {2, 0, 3}, {2, 0, 3}, HALO_LAYOUTS},
    {"two dimensions", 2, 16, 32, {1, 7, 12}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}, HALO_LAYOUTS},
    {"first, 1 channel plain", 1, 1, 16, {4, 5, 21}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_NCDHW},
    {"first, 4 channels plain", 2, 4, 32, {3, 4, 9}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_NCDHW},
    {"first, 1 channel last", 1, 1, 24, {3, 3, 17}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, HALO_NDHWC},
    {"first, 4 channels last", 1, 4, 32, {3, 5, 15}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_NDHWC},
    {"first, 3 channels last, stride 2", 1, 3, 16, {3, 2, 7}, {5, 3, 4}, {2, 2, 2}, {1, 1, 1}, {2, 1, 1}, {1, 0, 1}, HALO_NDHWC},
    {"first, 2 channels plain, dilation", 1, 2, 16, {3, 2, 7}, {3, 3, 3}, {1, 1, 2}, {1, 2, 2}, {1, 2, 2}, {1, 2, 2}, HALO_NCDHW},
    {"first, 20 channels last", 1, 20, 16, {2, 3, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, HALO_NDHWC},
};

/* One problem on one device: operands, master weights. */
typedef struct bench {
    hl_cpu_device dev;
    int lanes;
    const problem *q;
    halo_op_desc d;
    tensor x, y;
    float *w, *b;
    int64_t taps;
    double worst[3]; /* errors by implementation */
} bench;

static void setup(bench *t, int margins, bool roomy)
{
    const problem *q = t->q;
    halo_layout blocked = t->lanes == 16 ? HALO_NCDHW16C : HALO_NCDHW8C;
    int64_t xe[5] = {q->n, q->in}, ye[5] = {q->n, q->out}, xm[3][2], ym[3][2];
    t->taps = q->k[0] * q->k[1] * q->k[2];
    for (int i = 0; i < 3; i++) {
        int64_t reach = (q->k[i] - 1) * q->l[i];
        ye[2 + i] = q->y[i];
        xe[2 + i] = (q->y[i] - 1) * q->s[i] + 1 + reach - q->p[i] - q->p_hi[i];
        for (int j = 0; j < 2; j++) {
            xm[i][j] = margins == 0 ? 0 : margins == 1 ? hl_max64(0, j ? q->p_hi[i] : q->p[i]) : pick(0, reach + 1);
            ym[i][j] = margins == 0 ? 0 : margins == 1 ? reach : pick(0, reach + 1);
        }
    }
    make(&t->x, q->first == HALO_LAYOUTS ? blocked : q->first, xe, (const int64_t(*)[2])xm, roomy);
    make(&t->y, blocked, ye, (const int64_t(*)[2])ym, roomy);
    size_t nw = (size_t)(q->out * q->in * t->taps);
    t->w = malloc(nw * 4);
    t->b = malloc((size_t)q->out * 4);
    if (!t->w || !t->b) tap_bail("memory");
    float scale = (float)sqrt(3.0 / (double)(q->in * t->taps)); /* outputs of order one: no activation saturates */
    for (size_t i = 0; i < nw; i++) t->w[i] = scale * uniform();
    for (int64_t i = 0; i < q->out; i++) t->b[i] = uniform();
    t->d = (halo_op_desc){.slope = 0.1};
    for (int i = 0; i < 3; i++) {
        t->d.window.kernel[i] = q->k[i];
        t->d.window.stride[i] = q->s[i];
        t->d.window.dilation[i] = q->l[i];
        t->d.window.pad_lo[i] = q->p[i];
    }
}

static void teardown(bench *t)
{
    drop(&t->x);
    drop(&t->y);
    free(t->w);
    free(t->b);
}

static halo_operand master(const problem *q)
{
    const int64_t e[5] = {q->out, q->in, q->k[0], q->k[1], q->k[2]};
    return hl_operand_whole(HALO_F32, HALO_NCDHW, e);
}

static double act(halo_act a, double v, double slope)
{
    switch (a) {
    case HALO_ACT_LEAKY_RELU: return v > 0 ? v : slope * v;
    case HALO_ACT_RELU: return v > 0 ? v : 0;
    case HALO_ACT_TANH: return tanh(v);
    case HALO_ACT_SIGMOID: return 1 / (1 + exp(-v));
    case HALO_ACT_SCALE: return slope * v;
    default: return v;
    }
}

#define EACH_TAP(q)                                                                                          \
    for (int64_t a = 0; a < (q)->k[0]; a++)                                                                  \
        for (int64_t e = 0; e < (q)->k[1]; e++)                                                              \
            for (int64_t f = 0; f < (q)->k[2]; f++)

static double weight(const bench *t, int64_t o, int64_t i, int64_t a, int64_t e, int64_t f)
{
    const problem *q = t->q;
    return t->w[(((o * q->in + i) * q->k[0] + a) * q->k[1] + e) * q->k[2] + f];
}

/* ------------------------------------------------------------------------------------------------------------- definitions */

static void define_forward(const bench *t, bool bias, double *want)
{
    const problem *q = t->q;
    int64_t at = 0;
    EACH_CELL(&t->y, 0)
    {
        double sum = bias ? t->b[c] : 0;
        EACH_TAP(q)
        {
            int64_t xd = d * q->s[0] - q->p[0] + a * q->l[0], xh = h * q->s[1] - q->p[1] + e * q->l[1], xw = w * q->s[2] - q->p[2] + f * q->l[2];
            if (!readable(&t->x, xd, xh, xw)) continue;
            for (int64_t i = 0; i < q->in; i++) sum += weight(t, c, i, a, e, f) * (double)*cell(&t->x, n, i, xd, xh, xw);
        }
        want[at++] = act(t->d.act, sum, t->d.slope);
    }
}

static void define_data(const bench *t, double *want)
{
    const problem *q = t->q;
    int64_t at = 0;
    EACH_CELL(&t->x, 0)
    {
        double sum = t->d.accumulate ? (double)*cell(&t->x, n, c, d, h, w) : 0;
        EACH_TAP(q)
        {
            int64_t pd = d + q->p[0] - a * q->l[0], ph = h + q->p[1] - e * q->l[1], pw = w + q->p[2] - f * q->l[2];
            if (pd % q->s[0] || ph % q->s[1] || pw % q->s[2]) continue;
            pd /= q->s[0], ph /= q->s[1], pw /= q->s[2];
            if (!readable(&t->y, pd, ph, pw)) continue;
            for (int64_t o = 0; o < q->out; o++) sum += weight(t, o, c, a, e, f) * (double)*cell(&t->y, n, o, pd, ph, pw);
        }
        want[at++] = sum;
    }
}

static void define_weights(const bench *t, double *dw, double *db)
{
    const problem *q = t->q;
    EACH_CELL(&t->y, 0)
    {
        double g = *cell(&t->y, n, c, d, h, w);
        db[c] += g;
        EACH_TAP(q)
        {
            int64_t xd = d * q->s[0] - q->p[0] + a * q->l[0], xh = h * q->s[1] - q->p[1] + e * q->l[1], xw = w * q->s[2] - q->p[2] + f * q->l[2];
            if (!readable(&t->x, xd, xh, xw)) continue;
            for (int64_t i = 0; i < q->in; i++)
                dw[(((c * q->in + i) * q->k[0] + a) * q->k[1] + e) * q->k[2] + f] += g * (double)*cell(&t->x, n, i, xd, xh, xw);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------------- running */

static bool run(const halo_op_class *class, bench *t, const halo_candidate *c, halo_op_args *args)
{
    halo_plan *plan;
    if (class->plan(&t->dev.super, &t->d, c, &plan) != HALO_OK) return false;
    args->scratch = aligned_alloc(64, (c->scratch + 127) / 64 * 64);
    if (!args->scratch) tap_bail("memory");
    memset(args->scratch, 0xff, c->scratch);
    halo_status st = class->run(plan, args);
    class->destroy(plan);
    free(args->scratch);
    return st == HALO_OK;
}

/* The image that a candidate asked for; freed by the caller. */
static float *image_of(bench *t, const halo_candidate *c)
{
    float *image = aligned_alloc(64, (c->image_bytes + 63) / 64 * 64);
    if (!image) tap_bail("memory");
    halo_op_desc saved = t->d;
    halo_candidate pack;
    t->d = (halo_op_desc){.kind = HALO_OP_CONV_IMAGE, .image = c->image};
    t->d.t[HALO_X] = master(t->q);
    t->d.t[HALO_Y] = hl_operand_flat(HALO_F32, (int64_t)(c->image_bytes / 4));
    halo_op_args args = {.ptr = {[HALO_X] = t->w, [HALO_Y] = image}};
    if (hl_cpu_conv_image.candidates(&t->dev.super, &t->d, &pack) != 1 || !run(&hl_cpu_conv_image, t, &pack, &args)) tap_bail("image");
    t->d = saved;
    return image;
}

/* Streamed stores are offered for outputs larger than caches only: here they are tried on all. */
static int add_streamed(halo_candidate c[2 * HALO_MAX_CANDIDATES], int n)
{
    int all = n;
    for (int i = 0; i < n; i++)
        if (c[i].id < HL_ONEDNN_ID && !hl_wino_is(&c[i])) {
            c[all] = c[i];
            c[all++].id |= HL_GATHER_STREAMED;
        }
    return all;
}

static double worst_of(double a, double b) { return !(b <= a) ? b : a; }

enum { IMPLS = 3 };
static const char *const impls[IMPLS] = {"winograd-f4", "winograd-f2", "others"};
static const double bounds[IMPLS] = {2e-4, 2e-6, 5e-6}; /* of the largest output */

static int impl_of(const halo_candidate *c)
{
    int i = 0;
    while (i < IMPLS - 1 && strncmp(c->impl, impls[i], strlen(impls[i])) != 0) i++;
    return i;
}

/* An error in units of the implementation's bound; the largest of each is kept, for the report. */
static double judge(bench *t, const halo_candidate *c, double error)
{
    int i = impl_of(c);
    t->worst[i] = worst_of(t->worst[i], error);
    if (!(error <= bounds[i])) tap_note("%s: %g", c->impl, error);
    return error / bounds[i];
}

static double try_forward(bench *t)
{
    halo_candidate c[2 * HALO_MAX_CANDIDATES];
    bool bias = pick(0, 1);
    t->d.kind = HALO_OP_CONV_FWD;
    t->d.act = (halo_act)pick(0, 5);
    t->d.t[HALO_X] = t->x.o;
    t->d.t[HALO_Y] = t->y.o;
    t->d.t[HALO_B] = bias ? hl_operand_flat(HALO_F32, t->q->out) : (halo_operand){0};
    fill(&t->x, 1);
    double worst = 0, *want = malloc((size_t)hl_operand_box_elements(&t->y.o) * sizeof(double));
    define_forward(t, bias, want);
    int n = add_streamed(c, hl_cpu_conv_fwd.candidates(&t->dev.super, &t->d, c));
    if (n < 1) worst = 1e30;
    for (int i = 0; i < n; i++) {
        float *image = image_of(t, &c[i]);
        halo_op_args args = {.ptr = {[HALO_X] = t->x.p, [HALO_WT] = image, [HALO_B] = t->b, [HALO_Y] = t->y.p}};
        keep(&t->y);
        if (!run(&hl_cpu_conv_fwd, t, &c[i], &args)) worst = 1e30;
        worst = worst_of(worst, judge(t, &c[i], verify(&t->y, want)));
        free(image);
    }
    free(want);
    return worst;
}

static double try_data(bench *t)
{
    halo_candidate c[2 * HALO_MAX_CANDIDATES];
    t->d.kind = HALO_OP_CONV_BWD_DATA;
    t->d.t[HALO_DX] = t->x.o;
    t->d.t[HALO_DY] = t->y.o;
    t->d.accumulate = pick(0, 1);
    fill(&t->y, 1);
    if (t->d.accumulate) fill(&t->x, 0);
    double worst = 0, *want = malloc((size_t)hl_operand_box_elements(&t->x.o) * sizeof(double));
    define_data(t, want);
    int n = add_streamed(c, hl_cpu_conv_bwd_data.candidates(&t->dev.super, &t->d, c));
    if (n < 1) worst = 1e30;
    for (int i = 0; i < n; i++) {
        float *image = image_of(t, &c[i]);
        halo_op_args args = {.ptr = {[HALO_DX] = t->x.p, [HALO_WT] = image, [HALO_DY] = t->y.p}};
        keep(&t->x);
        if (!run(&hl_cpu_conv_bwd_data, t, &c[i], &args)) worst = 1e30;
        worst = worst_of(worst, judge(t, &c[i], verify(&t->x, want)));
        free(image);
    }
    free(want);
    return worst;
}

static double compare(const float *got, const float *before, const double *want, int64_t n)
{
    double worst = 0, most = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        double w = want[i] + (before ? before[i] : 0), err = fabs(got[i] - w);
        if (!(err <= worst)) worst = isnan(err) ? 1e30 : err;
        most = fmax(most, fabs(w));
    }
    return worst / most;
}

static double try_weights(bench *t)
{
    const problem *q = t->q;
    halo_candidate c[HALO_MAX_CANDIDATES];
    int64_t nw = q->out * q->in * t->taps;
    t->d.kind = HALO_OP_CONV_BWD_WEIGHTS;
    t->d.t[HALO_X] = t->x.o;
    t->d.t[HALO_DY] = t->y.o;
    t->d.t[HALO_DW] = master(q);
    t->d.t[HALO_DB] = hl_operand_flat(HALO_F32, q->out);
    t->d.accumulate = pick(0, 1);
    fill(&t->x, 1);
    fill(&t->y, 0);
    double *want = calloc((size_t)(nw + q->out), sizeof(double)), worst = 0;
    float *dw = malloc((size_t)nw * 4), *db = malloc((size_t)q->out * 4);
    define_weights(t, want, want + nw);
    int n = hl_cpu_conv_bwd_weights.candidates(&t->dev.super, &t->d, c);
    if (n < 1) worst = 1e30;
    for (int i = 0; i < n; i++) {
        memcpy(dw, t->w, (size_t)nw * 4);
        memcpy(db, t->b, (size_t)q->out * 4);
        halo_op_args args = {.ptr = {[HALO_X] = t->x.p, [HALO_DY] = t->y.p, [HALO_DW] = dw, [HALO_DB] = db}};
        if (!run(&hl_cpu_conv_bwd_weights, t, &c[i], &args)) worst = 1e30;
        worst = worst_of(worst, judge(t, &c[i], compare(dw, t->d.accumulate ? t->w : NULL, want, nw)));
        worst = worst_of(worst, judge(t, &c[i], compare(db, t->d.accumulate ? t->b : NULL, want + nw, q->out)));
    }
    free(want);
    free(dw);
    free(db);
    return worst;
}

/* Every problem, margins none | as planned | any, boxes whole | inside, on one table of kernels; the number of threads takes turns. The table "avx2, 16
 * lanes" is the source for AVX-512 lowered by the compiler to pairs of registers, so that it is tested where no AVX-512 is. */
static void try_all(hl_isa isa, int lanes)
{
    static const char *const passes[] = {"forward", "backward data", "backward weights"};
    static const struct {
        int margins;
        bool roomy;
    } variants[] = {{0, false}, {1, true}, {2, false}, {2, true}};
    static const int threads[] = {1, 3, 16, 64};
    double worst[3] = {0}, by[3][IMPLS] = {{0}};
    for (size_t i = 0; i < HL_COUNT(problems); i++)
        for (size_t v = 0; v < HL_COUNT(variants); v++)
            for (size_t pass = 0; pass < 3; pass++) {
                const problem *q = &problems[i];
                if (pass == 1 && q->first != HALO_LAYOUTS) continue;
                bench t = {.dev = {.threads = threads[(i + v + pass) % 4], .isa = isa, .kern = hl_cpu_kern(isa), .winograd = -4}, .lanes = lanes, .q = q};
                setup(&t, variants[v].margins, variants[v].roomy);
                double err = pass == 0 ? try_forward(&t) : pass == 1 ? try_data(&t) : try_weights(&t);
                if (!(err <= 1)) tap_note("%s of '%s', variant %zu, %d threads: %g of the bound", passes[pass], q->name, v, t.dev.threads, err);
                worst[pass] = worst_of(worst[pass], err);
                for (int k = 0; k < IMPLS; k++) by[pass][k] = worst_of(by[pass][k], t.worst[k]);
                teardown(&t);
            }
    for (int pass = 0; pass < 3; pass++)
        tap_ok(worst[pass] <= 1, "%s, %d lanes, 1, 3, 16 and 64 threads: %s near its definition (%s %.1e of %.0e, %s %.1e of %.0e, %s %.1e of %.0e)",
               hl_isa_name(isa), lanes, passes[pass], impls[0], by[pass][0], bounds[0], impls[1], by[pass][1], bounds[1], impls[2], by[pass][2], bounds[2]);
}

int main(void)
{
    static const struct {
        hl_isa isa;
        int lanes;
    } tables[] = {{HL_ISA_GENERIC, 8}, {HL_ISA_GENERIC, 16}, {HL_ISA_AVX2, 8}, {HL_ISA_AVX2, 16}, {HL_ISA_AVX512F, 16}};
    for (size_t i = 0; i < HL_COUNT(tables); i++) {
        if (hl_isa_usable(tables[i].isa))
            try_all(tables[i].isa, tables[i].lanes);
        else
            tap_skip("%s: not on this machine", hl_isa_name(tables[i].isa));
    }
    return tap_done();
}
