/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_gather.c -- prepares a gather: out[o, j] = sum over taps t and inputs i of w[o, i, t] in[i, j step + off[t]].
 *
 * Forward is one phase. Backward data with stride s has one phase per residue class of the output position: each is a convolution of stride 1 with
 * the taps of that class. For each phase the terms of an output become a list of rows: runs of inputs that are contiguous in memory, with the run of
 * weight vectors they meet. With channel-blocked input and dilation 1 a row is all taps along w of one block of channels (kw * lanes long).
 *
 * Weights that fit the cache are walked in full for every tile of positions (each input is then loaded once); larger ones are walked group by group of
 * output blocks and in chunks of rows, each chunk over many positions, with the output as the accumulator between chunks. Where registers are so few
 * that a tile has not more than four positions, weights are also taken in smaller chunks along each line.
 */
#include "conv_gather.h"

enum {
    WHOLE_WEIGHTS = 512 * 1024, /* bytes of weights walked per tile */
    CHUNK_WEIGHTS = 256 * 1024, /* bytes of weights that stay in the second-level cache */
    LINE_WEIGHTS = 80 * 1024, /* bytes of weights along one line of narrow tiles, measured */
    NARROW_TILE = 4,
    STRIP = 128 * 1024, /* bytes of outputs that wait for pooling */
    LARGE_OUTPUT = 32 * 1024 * 1024,
    ITEMS_PER_THREAD = 8
};

/* ------------------------------------------------------------------------------------------------------------------- rows */

/* Taps along w are one run: neighbours in the input and in the image. */
static bool taps_touch(const hl_gather_dim *w)
{
    for (int t = 1; t < w->taps; t++)
        if (w->off[t] != w->off[t - 1] + 1 || w->k[t] != w->k[t - 1] + 1) return false;
    return true;
}

typedef struct row_place {
    int64_t channel, lanes; /* first input channel and how many */
    int d, h, w, span;      /* taps; along w from w on */
} row_place;

static int64_t row_weight(const hl_gather *g, const int64_t kernel[3], const gather_phase *p, const row_place *r)
{
    int64_t kd = p->dim[0].k[r->d], kh = p->dim[1].k[r->h], kw = p->dim[2].k[r->w], c = r->channel;
    if (g->in.layout == HALO_NDHWC) return ((kd * kernel[1] + kh) * kernel[2] + kw) * g->in.ext[HALO_C] + c;
    int64_t block = g->is.block;
    return (((c / block * kernel[0] + kd) * kernel[1] + kh) * kernel[2] + kw) * block;
}

static void add_row(hl_gather *g, const int64_t kernel[3], gather_phase *p, row_place r)
{
    int64_t d = p->dim[0].off[r.d], h = p->dim[1].off[r.h], w = p->dim[2].off[r.w], i = p->nrows++;
    if (!p->row) return; /* counting */
    p->source[i] = (gather_source){d, h, w, r.span, r.lanes};
    p->row[i] = (hl_conv_row){
        .x = hl_offset(&g->is, 0, r.channel, d, h, w), .w = row_weight(g, kernel, p, &r), .n = (r.span - 1) * g->unit + r.lanes};
}

/* Counts the rows of a phase, and writes them once there is room. */
static void list_rows(hl_gather *g, const int64_t kernel[3], gather_phase *p)
{
    bool last = g->in.layout == HALO_NDHWC, touch = taps_touch(&p->dim[2]);
    int64_t channels = g->in.ext[HALO_C], block = last ? channels : g->is.block;
    p->nrows = 0;
    for (int64_t c = 0; c < channels; c += block)
        for (int d = 0; d < p->dim[0].taps; d++)
            for (int h = 0; h < p->dim[1].taps; h++) {
                row_place r = {c, hl_min64(block, channels - c), d, h, 0, p->dim[2].taps};
                if (touch && r.lanes == g->unit && r.span > 0) {
                    add_row(g, kernel, p, r);
                    continue;
                }
                for (r.w = 0, r.span = 1; r.w < p->dim[2].taps; r.w++) add_row(g, kernel, p, r);
            }
}

/* ------------------------------------------------------------------------------------------------------------------ shapes */

/* Outputs of one dimension whose taps all lie in the readable cells. */
static void inner_range(const hl_gather_dim *d, const int64_t valid[2], int64_t *low, int64_t *high)
{
    int64_t min = 0, max = 0;
    for (int t = 0; t < d->taps; t++) {
        min = t ? hl_min64(min, d->off[t]) : d->off[t];
        max = t ? hl_max64(max, d->off[t]) : d->off[t];
    }
    *low = 0;
    *high = d->n;
    if (d->taps == 0) return;
    while (*low < d->n && *low * d->in_step + min < valid[0]) ++*low;
    while (*high > 0 && (*high - 1) * d->in_step + max >= valid[1]) --*high;
}

static bool phase_inside(const gather_phase *p)
{
    for (int i = 0; i < 3; i++)
        if (p->low[i] > 0 || p->high[i] < p->dim[i].n) return false;
    return true;
}

static void readable(const halo_operand *in, int64_t valid[3][2])
{
    for (int i = 0; i < 3; i++) {
        valid[i][0] = -in->margin[i][0];
        valid[i][1] = in->ext[HALO_D + i] + in->margin[i][1];
    }
}

bool hl_gather_inside(const hl_gather_spec *s)
{
    int64_t valid[3][2];
    readable(&s->in, valid);
    for (int i = 0; i < s->phases; i++)
        for (int k = 0; k < 3; k++) {
            int64_t low, high;
            inner_range(&s->dims[i][k], valid[k], &low, &high);
            if (low > 0 || high < s->dims[i][k].n) return false;
        }
    return true;
}

bool hl_gather_large(const hl_gather_spec *s)
{
    return hl_operand_box_elements(&s->out) >= LARGE_OUTPUT / 4 && !s->accumulate && s->act < HALO_ACT_TANH;
}

/* The operand with just the margin that the phases read. */
static halo_operand padded_operand(const hl_gather_spec *s)
{
    int64_t margin[3][2] = {{0, 0}, {0, 0}, {0, 0}};
    for (int i = 0; i < s->phases; i++)
        for (int k = 0; k < 3; k++) {
            const hl_gather_dim *d = &s->dims[i][k];
            for (int t = 0; t < d->taps && d->n > 0; t++) {
                margin[k][0] = hl_max64(margin[k][0], -d->off[t]);
                margin[k][1] = hl_max64(margin[k][1], (d->n - 1) * d->in_step + d->off[t] + 1 - s->in.ext[HALO_D + k]);
            }
        }
    return hl_operand_margined(HALO_F32, s->in.layout, s->in.ext, (const int64_t(*)[2])margin);
}

/* ------------------------------------------------------------------------------------------------------------------- tiles */

static enum hl_conv_step step_of(int64_t step, int lanes)
{
    return step == lanes ? HL_STEP_LANES : step == 1 ? HL_STEP_ONE : step == 4 ? HL_STEP_FOUR : HL_STEP_LIST;
}

static bool all_threes(const gather_phase *p)
{
    for (int64_t r = 0; r < p->nrows; r++)
        if (p->row[r].n != 3) return false;
    return true;
}

/* Few registers, or lines too short for a wide tile, ask for more output vectors per input. */
static int group_vectors(const hl_conv_kern *k, int64_t blocks, int64_t positions)
{
    if (blocks >= 4 && k->max_p[4] > 0 && (k->max_p[2] < 8 || positions <= k->max_p[4] - 2)) return 4;
    return blocks >= 2 && k->max_p[2] > 0 ? 2 : 1;
}

/* The first and the last position lack at most one tap each (so no other lacks any), and all rows are whole lines of taps on full blocks. `low` and
 * `high` do not tell: they end with the line, however many taps its only position lacks. */
static bool can_cut(const hl_gather *g, const gather_phase *p)
{
    const hl_gather_dim *w = &p->dim[2];
    if (p->step != HL_STEP_LANES || w->in_step != 1 || w->taps < 2) return false;
    if (w->off[0] < g->valid[2][0] - 1 || w->n - 1 + w->off[w->taps - 1] > g->valid[2][1]) return false;
    for (int64_t r = 0; r < p->nrows; r++)
        if (p->source[r].span != w->taps || p->source[r].lanes != g->kern->lanes) return false;
    return true;
}

static void choose_tile(hl_gather *g, gather_phase *p)
{
    const int64_t n[3] = {p->dim[0].n, p->dim[1].n, p->dim[2].n};
    int64_t positions = phase_inside(p) ? n[0] * n[1] * n[2] : n[2];
    p->step = step_of(p->dim[2].in_step * g->unit, g->kern->lanes);
    if (p->step == HL_STEP_ONE && all_threes(p)) p->step = HL_STEP_THREE;
    p->group_v = group_vectors(g->kern, g->blocks, positions);
    int64_t most = g->kern->max_p[p->group_v];
    if (p->step == HL_STEP_LIST) most = hl_min64(most, HL_TILE_LIST);
    p->tile[0] = p->tile[1] = 1;
    p->tile[2] = hl_div_up(n[2], hl_div_up(n[2], most));
    p->cut = can_cut(g, p);
    int64_t room = hl_min64(most, HL_TILE_LIST) / n[2];
    if (room < 2 || !phase_inside(p) || positions == n[2]) return;
    p->step = HL_STEP_LIST; /* short lines: several in one tile */
    p->tile[2] = n[2];
    p->tile[1] = hl_min64(room, n[1]);
    if (p->tile[1] == n[1]) p->tile[0] = hl_min64(room / n[1], n[0]);
}

/* Outputs along d or h are cut at multiples of this. */
static int64_t unit_of(const hl_gather *g, const gather_phase *p, int k) { return g->pool.cells ? g->pool.side[k] : p->tile[k]; }

/* Parts of d and h so that there are items enough for all threads. */
static void split_phase(const hl_gather *g, gather_phase *p)
{
    int64_t want = (int64_t)g->dev->threads * ITEMS_PER_THREAD, have = g->samples * (g->together ? 1 : g->ngroups);
    int64_t d = hl_div_up(p->dim[0].n, unit_of(g, p, 0)), h = hl_div_up(p->dim[1].n, unit_of(g, p, 1));
    p->split[0] = hl_min64(d, hl_div_up(want, have));
    p->split[1] = hl_min64(h, hl_div_up(want, have * p->split[0]));
    p->items = p->dim[2].n > 0 && d > 0 && h > 0 ? have * p->split[0] * p->split[1] : 0;
}

/* ------------------------------------------------------------------------------------------------------------------ making */

static halo_status make_phase(hl_gather *g, const hl_gather_spec *s, int index)
{
    gather_phase *p = &g->phase[index];
    memcpy(p->dim, s->dims[index], sizeof(p->dim));
    for (int i = 0; i < 3; i++) inner_range(&p->dim[i], g->valid[i], &p->low[i], &p->high[i]);
    if (p->dim[0].n < 1 || p->dim[1].n < 1 || p->dim[2].n < 1) return HALO_OK;
    list_rows(g, s->kernel, p);
    HL_TRY(hl_calloc(g->dev->super.ctx, (size_t)p->nrows + 1, sizeof(*p->row), "convolution rows", &p->row));
    HL_TRY(hl_calloc(g->dev->super.ctx, (size_t)p->nrows + 1, sizeof(*p->source), "convolution rows", &p->source));
    list_rows(g, s->kernel, p);
    choose_tile(g, p);
    return HALO_OK;
}

static halo_status make_groups(hl_gather *g, int group_v)
{
    int64_t tail = g->out.ext[HALO_C] % g->kern->lanes; /* with pooling the allocation is imagined, and has no other channels */
    bool shared = tail && g->out.lo[HALO_C] + g->out.ext[HALO_C] < g->out.alloc[HALO_C];
    int64_t plain = g->blocks - shared;
    HL_TRY(hl_calloc(g->dev->super.ctx, (size_t)g->blocks, sizeof(*g->group), "convolution groups", &g->group));
    for (int64_t b = 0; b < plain;) {
        int ov = group_v;
        while (ov > plain - b) ov /= 2;
        g->group[g->ngroups++] = (gather_group){b, ov, false};
        b += ov;
    }
    if (shared) g->group[g->ngroups++] = (gather_group){plain, 1, true};
    return HALO_OK;
}

/* Rows [first, *end) of a phase hold no more than chunk_terms terms (or are one row). */
static int64_t chunk_edge_floats(const hl_gather *g, const gather_phase *p)
{
    int64_t most = 0, floats = 0, terms = 0;
    for (int64_t r = 0; r < p->nrows; r++) {
        if (terms > 0 && terms + p->row[r].n > g->chunk_terms) floats = terms = 0;
        terms += p->row[r].n;
        floats += ((p->tile[2] - 1) * p->dim[2].in_step + p->source[r].span) * g->unit;
        most = hl_max64(most, floats);
    }
    return most;
}

static void size_scratch(hl_gather *g)
{
    const int lanes = g->kern->lanes;
    for (int i = 0; i < g->phases; i++) {
        g->max_rows = hl_max64(g->max_rows, g->phase[i].nrows);
        if (!phase_inside(&g->phase[i]) && !g->phase[i].cut) g->edge_floats = hl_max64(g->edge_floats, chunk_edge_floats(g, &g->phase[i]));
    }
    g->edge_floats = hl_round_up(g->edge_floats, 16);
    g->tile_floats = HL_TILE_P * HL_TILE_V * lanes;
    g->bias_floats = g->blocks * lanes;
    int64_t floats = g->edge_floats + g->tile_floats + g->strip_floats;
    g->thread_bytes = 2 * hl_round_up(g->max_rows * (int64_t)sizeof(hl_conv_row), 64) + floats * 4 + g->max_rows * 4;
}

/* A strip is one window deep and all of w wide: as many windows along h as fit the cache, for the blocks that one item computes. */
static void size_strip(hl_gather *g, int group_v)
{
    const int64_t *side = g->pool.side, lanes = g->kern->lanes, width = g->out.ext[HALO_W], blocks = g->together ? g->blocks : group_v;
    int64_t bytes = blocks * side[0] * side[1] * width * lanes * 4, most = g->out.ext[HALO_H] / side[1];
    g->strip = hl_max64(1, hl_min64(most, STRIP / bytes));
    g->os.s[HALO_W] = lanes;
    g->os.s[HALO_H] = width * lanes;
    g->os.s[HALO_D] = g->strip * side[1] * g->os.s[HALO_H];
    g->os.s[HALO_C] = side[0] * g->os.s[HALO_D];
    g->os.s[HALO_N] = 0;
    g->out_origin = 0;
    g->strip_floats = hl_round_up(blocks * g->os.s[HALO_C], 16);
    hl_conv_pool_lay(&g->pool, (const int64_t[]){g->os.s[HALO_D], g->os.s[HALO_H], g->os.s[HALO_W]});
}

static void start_gather(hl_gather *g, hl_cpu_device *dev, const hl_gather_spec *s)
{
    g->dev = dev;
    g->kern = hl_conv_kern_for(dev, s->out.layout);
    g->pad = s->pad;
    g->padded = s->pad ? padded_operand(s) : s->in;
    g->in = s->in;
    g->out = s->out;
    g->accumulate = s->accumulate;
    g->act = s->act;
    g->slope = s->slope;
    g->pool = s->pool;
    g->is = hl_operand_strides(&g->padded);
    g->os = hl_operand_strides(&g->out);
    g->in_origin = hl_box_offset(&g->padded);
    g->out_origin = hl_box_offset(&g->out);
    readable(&g->padded, g->valid);
    g->samples = s->in.ext[HALO_N];
    g->blocks = hl_div_up(s->out.ext[HALO_C], g->kern->lanes);
    g->unit = g->is.s[HALO_W];
    int64_t elements;
    if (s->pad && hl_operand_elements(&g->padded, &elements)) g->pad_floats = hl_round_up(elements, 16);
}

halo_status hl_gather_make(hl_cpu_device *dev, const hl_gather_spec *s, hl_gather **out)
{
    hl_gather *g;
    halo_status st;
    HL_TRY(hl_calloc(dev->super.ctx, 1, sizeof(*g), "convolution plan", &g));
    start_gather(g, dev, s);
    g->phases = s->phases;
    HL_GOTO(st, hl_calloc(dev->super.ctx, (size_t)s->phases, sizeof(*g->phase), "convolution phases", &g->phase), undo_gather);
    for (int i = 0; i < s->phases; i++) HL_GOTO(st, make_phase(g, s, i), undo_gather);
    int group_v = HL_TILE_V;
    for (int i = 0; i < s->phases; i++)
        if (g->phase[i].group_v) group_v = g->phase[i].group_v < group_v ? g->phase[i].group_v : group_v;
    HL_GOTO(st, make_groups(g, group_v), undo_gather);
    g->w_vec = hl_image_terms(s->image, s->in.ext[HALO_C], s->kernel) * g->kern->lanes;
    g->together = g->w_vec * g->blocks * 4 <= WHOLE_WEIGHTS;
    g->stream = s->stream && g->together && !g->pool.cells;
    if (g->pool.cells) size_strip(g, group_v);
    g->chunk_terms = g->together ? INT64_MAX : CHUNK_WEIGHTS / (group_v * g->kern->lanes * 4);
    g->line_terms = g->kern->max_p[group_v] <= NARROW_TILE ? LINE_WEIGHTS / (group_v * g->kern->lanes * 4) : INT64_MAX;
    for (int i = 0; i < s->phases; i++)
        if (g->phase[i].group_v) split_phase(g, &g->phase[i]);
    size_scratch(g);
    *out = g;
    return HALO_OK;

undo_gather:
    hl_gather_free(g);
    return st;
}

size_t hl_gather_scratch(const hl_gather *g)
{
    return (size_t)((g->pad_floats + hl_round_up(g->bias_floats, 16)) * 4 + g->dev->threads * hl_round_up(g->thread_bytes, 64) + 64);
}

/* ------------------------------------------------------------------------------------------------------------------- items */

/* Range `index` of `parts` of n outputs, cut between tiles. */
static hl_range tile_range(int64_t n, int64_t tile, int64_t parts, int64_t index)
{
    hl_range r = hl_block_range(hl_div_up(n, tile), parts, index);
    return (hl_range){r.lo * tile, hl_min64(r.hi * tile, n)};
}

gather_item hl_gather_item(const hl_gather *g, int64_t item)
{
    int phase = 0;
    while (item >= g->phase[phase].items) item -= g->phase[phase++].items;
    const gather_phase *p = &g->phase[phase];
    int64_t h = item % p->split[1], d = item / p->split[1] % p->split[0], rest = item / (p->split[0] * p->split[1]);
    gather_item i = {.phase = p, .n = rest % g->samples, .group1 = g->ngroups};
    i.d = tile_range(p->dim[0].n, unit_of(g, p, 0), p->split[0], d);
    i.h = tile_range(p->dim[1].n, unit_of(g, p, 1), p->split[1], h);
    if (!g->together) {
        i.group0 = (int)(rest / g->samples);
        i.group1 = i.group0 + 1;
    }
    return i;
}

/* Output vectors times rows: rows of a phase are of one length but for the last channels. */
static double item_work(const void *arg, int64_t item)
{
    const hl_gather *g = arg;
    gather_item i = hl_gather_item(g, item);
    int vectors = 0;
    for (int k = i.group0; k < i.group1; k++) vectors += g->group[k].ov;
    return (double)hl_range_len(i.d) * (double)hl_range_len(i.h) * (double)i.phase->dim[2].n * (double)i.phase->nrows * vectors;
}

static int64_t items_of(const hl_gather *g)
{
    int64_t items = 0;
    for (int i = 0; i < g->phases; i++) items += g->phase[i].items;
    return items;
}

void hl_gather_share(const hl_gather *g, halo_candidate *out)
{
    int64_t items = items_of(g);
    out->items = (double)items;
    out->efficiency = hl_share(g->dev->threads, items, item_work, g);
}

void hl_gather_free(hl_gather *g)
{
    if (!g) return;
    for (int i = 0; g->phase && i < g->phases; i++) {
        free(g->phase[i].row);
        free(g->phase[i].source);
    }
    free(g->phase);
    free(g->group);
    free(g);
}
