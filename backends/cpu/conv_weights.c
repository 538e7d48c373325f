/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_weights.c -- prepares dw[o,i,k] = sum_{n,p} dy[n,o,p] x[n,i, p stride - pad_lo + k dilation] and db[o] = sum dy.
 *
 * The sums of a block pair (lanes of o x a block of i x all taps) stay in the second-level cache while blocks of rows of x and dy pass; a kernel call
 * keeps one tile of them in registers over all rows of the block. With stride and dilation 1 along w the kernel slides: each x is broadcast once and
 * meets the outputs of up to three taps, which stay in registers (three taps x eight channels with 32 registers). Else each tap is a call of
 * its own. Plain x (the first layer: 1 to 4 channels) has listed runs instead of channel lanes: with one channel all 27 taps of a 3^3 kernel are one tile.
 *
 * Work items are groups of block pairs; where these are fewer than the threads need, each is split over the rows into parts with sums of their
 * own, which are added in the order of the parts: the result depends on the number of threads, never on their timing.
 */
#include "conv_weights.h"
#include "winograd.h"

enum {
    SUM_BYTES = 256 * 1024, /* sums of one item */
    ROW_BYTES = 192 * 1024, /* rows of x and dy of one block */
    PART_BYTES = 16 * 1024 * 1024,
    ITEMS_PER_THREAD = 4
};

enum { DIRECT = 1, PADDED };

/* ------------------------------------------------------------------------------------------------------------------- calls */

typedef struct tap {
    int64_t d, h, w;
} tap;

static int64_t tap_number(const hl_weights *p, tap t)
{
    const int64_t *k = p->s.w.kernel;
    return (t.d * k[1] + t.h) * k[2] + t.w;
}

static weights_call call_at(const hl_weights *p, tap t)
{
    const halo_window *w = &p->s.w;
    return (weights_call){.d = t.d * w->dilation[0] - w->pad_lo[0],
                          .h = t.h * w->dilation[1] - w->pad_lo[1],
                          .w = t.w * w->dilation[2] - w->pad_lo[2],
                          .taps = 1,
                          .dw = tap_number(p, t) * p->kern->lanes};
}

/* Calls for taps t.w and on, as many as one slide takes. */
static int64_t add_slides(hl_weights *p, tap t)
{
    const int64_t lanes = p->kern->lanes;
    int64_t left = p->s.w.kernel[2] - t.w, k = left == 4 ? 2 : hl_min64(left, HL_SLIDE_K), step = p->kern->slide_i[k];
    for (int64_t lane = 0; lane < lanes; lane += step) {
        weights_call c = call_at(p, t);
        c.slide = true;
        c.fn = p->kern->slide[k];
        c.taps = (int)k;
        c.lane = c.x = lane;
        c.dw += lane * p->taps * lanes;
        c.dw_row = lanes;
        c.dw_col = p->taps * lanes;
        if (p->call) p->call[p->ncalls] = c;
        p->ncalls++;
    }
    return k;
}

/* One tap of a channel block: runs of J lanes, R at a time. The lists are the same for all taps. */
static void add_lane_runs(hl_weights *p, tap t)
{
    const int64_t lanes = p->kern->lanes;
    int64_t j = p->kern->max_r[4] ? 4 : p->kern->max_r[2] ? 2 : 1, most = hl_min64(p->kern->max_r[j], HL_RUN_R);
    for (int64_t lane = 0; lane < lanes;) {
        int64_t r = hl_min64(most, (lanes - lane) / j);
        weights_call c = call_at(p, t);
        c.fn = p->kern->run[j][r];
        c.lane = lane;
        c.dw_col = p->taps * lanes;
        if (p->lists) {
            c.at = p->lists + lane / j;
            c.dw_at = p->lists + lanes + lane / j;
        }
        if (p->call) p->call[p->ncalls] = c;
        p->ncalls++;
        lane += r * j;
    }
    if (!p->lists) return;
    for (int64_t i = 0; i < lanes / j; i++) {
        p->lists[i] = i * j;
        p->lists[lanes + i] = i * j * p->taps * lanes;
    }
}

static void list_blocked(hl_weights *p)
{
    const halo_window *w = &p->s.w;
    bool slide = w->stride[2] == 1 && (w->dilation[2] == 1 || w->kernel[2] == 1);
    p->ncalls = 0;
    tap t;
    for (t.d = 0; t.d < w->kernel[0]; t.d++)
        for (t.h = 0; t.h < w->kernel[1]; t.h++)
            for (t.w = 0; t.w < w->kernel[2];) {
                if (slide)
                    t.w += add_slides(p, t);
                else
                    add_lane_runs(p, (tap){t.d, t.h, t.w++});
            }
}

/* Length of the runs of a plain x: channels of a cell, or taps along w of one channel. */
static int64_t run_length(const hl_weights *p, bool *along_w)
{
    int64_t c = p->s.in, kw = p->s.w.kernel[2];
    *along_w = p->xs.s[HALO_W] == 1;
    int64_t n = !*along_w ? c : p->s.w.dilation[2] == 1 ? kw : 1;
    for (int64_t j = HL_RUN_J; j > 1; j--)
        if (n % j == 0 && p->kern->max_r[j] > 0) return j;
    return 1;
}

/* All terms as runs of one length, in groups of as many as a tile takes. Every input cell must be readable. */
static void list_plain(hl_weights *p)
{
    const int64_t lanes = p->kern->lanes, *k = p->s.w.kernel;
    bool along_w;
    int64_t j = run_length(p, &along_w), total = p->s.in * p->taps / j, most = p->kern->max_r[j];
    int64_t groups = hl_div_up(total, most), *at = p->lists, *dw_at = p->lists ? p->lists + total : NULL;
    p->ncalls = (int)groups;
    if (!p->call) return;
    for (int64_t i = 0; i < total; i++) {
        int64_t c = along_w ? i / (p->taps / j) : i % (p->s.in / j) * j;
        int64_t t = along_w ? i % (p->taps / j) * j : i / (p->s.in / j);
        weights_call a = call_at(p, (tap){t / (k[1] * k[2]), t / k[2] % k[1], t % k[2]});
        at[i] = hl_offset(&p->xs, 0, c, a.d, a.h, a.w);
        dw_at[i] = (c * p->taps + t) * lanes;
    }
    for (int64_t g = 0; g < groups; g++) {
        hl_range r = hl_block_range(total, groups, g);
        p->call[g] = (weights_call){.fn = p->kern->run[j][r.hi - r.lo], .taps = 1, .at = at + r.lo, .dw_at = dw_at + r.lo};
        p->call[g].dw_col = along_w ? lanes : p->taps * lanes;
    }
}

static halo_status make_calls(hl_weights *p, halo_context *ctx)
{
    void (*list)(hl_weights *) = p->blocked ? list_blocked : list_plain;
    int64_t most = p->blocked ? 2 * p->kern->lanes : 2 * p->s.in * p->taps;
    list(p);
    HL_TRY(hl_calloc(ctx, (size_t)p->ncalls, sizeof(*p->call), "convolution calls", &p->call));
    HL_TRY(hl_calloc(ctx, (size_t)most, sizeof(*p->lists), "convolution lists", &p->lists));
    list(p);
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ shapes */

/* Input cells that dw reads, relative to the box, in dimension i. */
static hl_range reads(const hl_conv_shape *s, int i)
{
    const halo_window *w = &s->w;
    return hl_window_need((hl_range){0, s->y.ext[HALO_D + i]}, (hl_window1){w->kernel[i], w->stride[i], w->pad_lo[i], w->dilation[i]});
}

static bool weights_inside(const hl_conv_shape *s)
{
    for (int i = 0; i < 3; i++) {
        hl_range r = reads(s, i);
        if (r.lo < -s->x.margin[i][0] || r.hi > s->x.ext[HALO_D + i] + s->x.margin[i][1]) return false;
    }
    return true;
}

static halo_operand padded_x(const hl_conv_shape *s)
{
    int64_t margin[3][2];
    for (int i = 0; i < 3; i++) {
        hl_range r = reads(s, i);
        margin[i][0] = hl_max64(0, -r.lo);
        margin[i][1] = hl_max64(0, r.hi - s->x.ext[HALO_D + i]);
    }
    return hl_operand_margined(HALO_F32, s->x.layout, s->x.ext, (const int64_t(*)[2])margin);
}

static int64_t items_of(const hl_weights *p) { return hl_div_up(p->out_blocks, p->group_out) * hl_div_up(p->in_blocks, p->group_in); }

/* Groups of block pairs that fit the cache, small enough for all threads where that needs no splits; then splits. */
static void choose_items(hl_weights *p)
{
    int64_t want = (int64_t)p->dev->threads * ITEMS_PER_THREAD, all = p->out_blocks * p->in_blocks * p->block_floats * 4;
    p->group_out = hl_min64(p->out_blocks, 4);
    p->group_in = hl_min64(p->in_blocks, 4);
    while (p->group_out * p->group_in > 1) {
        int64_t bytes = p->group_out * p->group_in * p->block_floats * 4, items = items_of(p);
        if (bytes <= SUM_BYTES && (items >= want || hl_div_up(want, items) * all <= PART_BYTES)) break;
        int64_t *larger = p->group_in > p->group_out ? &p->group_in : &p->group_out;
        *larger = hl_div_up(*larger, 2);
    }
    p->out_groups = hl_div_up(p->out_blocks, p->group_out);
    p->in_groups = hl_div_up(p->in_blocks, p->group_in);
    int64_t rows = p->s.n * p->s.y.ext[HALO_D] * p->s.y.ext[HALO_H];
    p->splits = hl_min64(hl_div_up(want, items_of(p)), rows);
    p->part_floats = hl_round_up(p->group_out * p->group_in * p->block_floats + p->group_out * p->kern->lanes, 16);
}

/* Block pairs times rows. */
static double item_work(const void *arg, int64_t index)
{
    const hl_weights *p = arg;
    int64_t g = index / p->splits, o = g / p->in_groups * p->group_out, i = g % p->in_groups * p->group_in;
    hl_range lines = hl_block_range(p->s.n * p->s.y.ext[HALO_D] * p->s.y.ext[HALO_H], p->splits, index % p->splits);
    return (double)(hl_min64(p->group_out, p->out_blocks - o) * hl_min64(p->group_in, p->in_blocks - i) * hl_range_len(lines));
}

static void choose_rows(hl_weights *p)
{
    const halo_window *w = &p->s.w;
    const int64_t *y = p->s.y.ext;
    int64_t y_row = p->group_out * y[HALO_W] * p->kern->lanes * 4;
    int64_t x_row = p->group_in * y[HALO_W] * w->stride[2] * p->xs.s[HALO_W] * 4;
    if (!p->blocked && p->x.layout == HALO_NCDHW) x_row *= p->s.in;
    int64_t per_h = y_row + x_row * w->stride[1] * w->kernel[0], fixed = x_row * w->kernel[0] * (w->kernel[1] - 1);
    p->rows_h = hl_min64(y[HALO_H], hl_max64(hl_max64(ROW_BYTES - fixed, 0) / per_h, 2));
    p->rows_d = 1;
    if (p->rows_h == y[HALO_H]) p->rows_d = hl_min64(y[HALO_D], hl_max64(1, ROW_BYTES / 2 / (y[HALO_H] * (y_row + x_row))));
}

/* -------------------------------------------------------------------------------------------------------------------- class */

static bool weights_supported(const hl_cpu_device *dev, const halo_op_desc *desc, hl_conv_shape *s)
{
    if (!hl_conv_shape_of(desc, HALO_X, HALO_DY, s) || !hl_conv_kern_for(dev, s->y.layout)) return false;
    if (desc->t[HALO_DW].dtype != HALO_F32) return false;
    return hl_layout_block(s->x.layout) == 1 || s->x.layout == s->y.layout;
}

static void start_weights(hl_weights *p, hl_cpu_device *dev, const halo_op_desc *desc, const hl_conv_shape *s)
{
    p->dev = dev;
    p->s = *s;
    p->kern = hl_conv_kern_for(dev, s->y.layout);
    p->blocked = hl_layout_block(s->x.layout) > 1;
    p->pad = !p->blocked && !weights_inside(s);
    p->x = p->pad ? padded_x(s) : s->x;
    p->xs = hl_operand_strides(&p->x);
    p->ys = hl_operand_strides(&s->y);
    p->x_origin = hl_box_offset(&p->x);
    p->y_origin = hl_box_offset(&s->y);
    p->dw_origin = hl_box_offset(&desc->t[HALO_DW]);
    p->bias = desc->t[HALO_DB].dtype != HALO_NONE;
    if (p->bias) p->db_origin = hl_box_offset(&desc->t[HALO_DB]);
    p->accumulate = desc->accumulate;
    for (int i = 0; i < 3; i++) { /* of a plain x every cell that a call reads is there */
        p->valid[i][0] = p->blocked ? -p->x.margin[i][0] : INT32_MIN;
        p->valid[i][1] = p->blocked ? p->x.ext[HALO_D + i] + p->x.margin[i][1] : INT64_MAX;
    }
    p->taps = s->w.kernel[0] * s->w.kernel[1] * s->w.kernel[2];
    p->block_in = p->blocked ? p->kern->lanes : s->in;
    p->out_blocks = hl_div_up(s->out, p->kern->lanes);
    p->in_blocks = hl_div_up(s->in, p->block_in);
    p->block_floats = p->block_in * p->taps * p->kern->lanes;
    int64_t elements;
    if (p->pad && hl_operand_elements(&p->x, &elements)) p->pad_floats = hl_round_up(elements, 16);
    choose_items(p);
    choose_rows(p);
}

static void weights_destroy(halo_plan *plan)
{
    hl_weights *p = (hl_weights *)plan;
    if (!p) return;
    hl_onednn_free(p->library);
    hl_wino_weights_free(p->winograd);
    free(p->call);
    free(p->lists);
    free(p);
}

static halo_status weights_make(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice, halo_plan **plan)
{
    hl_conv_shape s;
    hl_weights *p;
    halo_status st;
    HL_TRY(hl_calloc(dev->ctx, 1, sizeof(*p), "convolution plan", &p));
    if (choice->id >= HL_ONEDNN_ID) {
        HL_GOTO(st, hl_onednn_make(hl_cpu(dev), desc, choice, &p->library), undo_plan);
    } else if (hl_wino_is(choice)) {
        HL_GOTO(st, hl_wino_weights_make(hl_cpu(dev), desc, choice, &p->winograd), undo_plan);
    } else {
        HL_BUG_UNLESS(weights_supported(hl_cpu(dev), desc, &s));
        start_weights(p, hl_cpu(dev), desc, &s);
        HL_GOTO(st, make_calls(p, dev->ctx), undo_plan);
    }
    *plan = (halo_plan *)p;
    return HALO_OK;

undo_plan:
    weights_destroy((halo_plan *)p);
    return st;
}

static int weights_candidates(halo_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    hl_conv_shape s;
    if (desc->t[HALO_DW].dtype != HALO_F32) return 0;
    if (!weights_supported(hl_cpu(dev), desc, &s)) return hl_onednn_candidates(hl_cpu(dev), desc, out);
    int n = hl_wino_weights_candidates(hl_cpu(dev), desc, out);
    hl_weights p = {0};
    start_weights(&p, hl_cpu(dev), desc, &s);
    hl_cpu_candidate(dev, p.pad ? "direct-pad" : "direct", (double)(items_of(&p) * p.splits), &out[n]);
    out[n].efficiency = hl_share(p.dev->threads, items_of(&p) * p.splits, item_work, &p);
    out[n].id = p.pad ? PADDED : DIRECT;
    out[n].scratch = hl_weights_scratch(&p);
    return n + 1 + hl_onednn_candidates(hl_cpu(dev), desc, &out[n + 1]);
}

static halo_status weights_run(halo_plan *plan, const halo_op_args *args)
{
    const hl_weights *p = (const hl_weights *)plan;
    if (p->library) return hl_onednn_run(p->library, args);
    if (p->winograd) {
        hl_wino_weights_run(p->winograd, args);
        return HALO_OK;
    }
    float *db = p->bias ? (float *)args->ptr[HALO_DB] + p->db_origin : NULL;
    hl_weights_run(p, args->ptr[HALO_X], args->ptr[HALO_DY], (float *)args->ptr[HALO_DW] + p->dw_origin, db, args->scratch);
    return HALO_OK;
}

const halo_op_class hl_cpu_conv_bwd_weights = {
    .kind = HALO_OP_CONV_BWD_WEIGHTS,
    .candidates = weights_candidates,
    .plan = weights_make,
    .run = weights_run,
    .destroy = weights_destroy,
};
