/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.c -- batch, group and instance normalisation in four passes; between them statistics may be merged across ranks.
 *
 * Groups of samples g (1, or one per sample), features f (a channel each, or `groups` runs of channels), m cells each:
 *   STAT [g][f] = m, mu, M2 = sum (x - mu)^2           y = act(gamma xhat + beta), xhat = (x - mu) rs, rs = 1 / sqrt(M2/m + eps)
 *   STAT2 [g][c] = A = sum dy, B = sum dy xhat         dx = rs (gamma dy - S/m - xhat T/m), S = sum of gamma A over the feature, T of gamma B
 *
 * A piece of work is (sample, channel block, section of the cells). Sums are taken about a centre, in double: the centre is the running mean of the
 * piece, renewed every FOLD cells by Chan, Golub & LeVeque's update ("Algorithms for computing the sample variance", 1983), so that neither a large mean nor a
 * strange first value costs digits. Pieces are merged by the same formula in a fixed order.
 */
#include "classes.h"
#include "kern/kern.h"
#include "runs.h"

enum { FOLD = 1024, STRETCH = 4096 }; /* cells before the centre moves; elements of one kernel call, to stay in the first cache */

typedef struct norm_plan {
    hl_cpu_plan super;
    const halo_operand *x;
    int64_t channels, features, groups; /* c, f, g */
    int64_t lanes, blocks, last_lanes;  /* channels of a block; of the last one */
    int64_t tile, last_tile;            /* period of parameter tiles: a multiple of the lanes and of HL_TILE */
    int64_t sections, pieces;
    int operands;
    halo_role role[3];
    hl_strides t[3];
    hl_runs runs, last; /* of one block; of the last block */
    double *sums;       /* [pieces][3][lanes]: what each piece found */
    double *work;       /* [pieces][3][longest tile]; as floats also [4][tile] */
    float *affine;      /* [4][groups][channels]: centre and factors of the pass */
} norm_plan;

typedef struct norm_run {
    const norm_plan *p;
    float *ptr[3];
    const double *stat;
    int64_t pieces; /* of samples that are there: the first ones */
} norm_run;

/* Least common multiple with HL_TILE. */
static int64_t tile_for(int64_t lanes)
{
    int64_t common = lanes, other = HL_TILE;
    while (other) {
        int64_t rest = common % other;
        common = other;
        other = rest;
    }
    return lanes / common * HL_TILE;
}

/* So many sections of each unit, at least, that `pieces` keep the threads as busy as twice as many sections could. */
static int64_t even_sections(int64_t threads, int64_t units, int64_t least)
{
    int64_t best = least;
    double most = 0;
    for (int64_t s = least; s <= 2 * least; s++) {
        int64_t pieces = units * s;
        double busy = (double)pieces / (double)(hl_div_up(pieces, threads) * threads);
        if (busy <= most + 1e-9) continue;
        most = busy;
        best = s;
    }
    return best;
}

static void shape(norm_plan *p)
{
    const halo_op_desc *d = &p->super.d;
    const halo_operand *x = &d->t[HALO_X];
    p->x = x;
    p->channels = x->ext[HALO_C];
    p->features = d->groups > 0 ? d->groups : p->channels;
    p->groups = d->per_sample ? x->ext[HALO_N] : 1;
    p->lanes = x->layout == HALO_NDHWC ? p->channels : hl_layout_block(x->layout);
    p->blocks = hl_div_up(p->channels, p->lanes);
    p->last_lanes = p->channels - (p->blocks - 1) * p->lanes;
    p->tile = tile_for(p->lanes);
    p->last_tile = tile_for(p->last_lanes);
    int64_t cells = x->ext[HALO_D] * x->ext[HALO_H] * x->ext[HALO_W], units = x->ext[HALO_N] * p->blocks;
    int64_t wanted = hl_div_up(hl_parts(p->super.dev, units * p->lanes * cells) * 2, units);
    p->sections = hl_max64(1, hl_min64(even_sections(p->super.dev->threads, units, wanted), cells));
    p->pieces = units * p->sections;
}

static int64_t feature_of(const norm_plan *p, int64_t c) { return c / (p->channels / p->features); }

/* One piece: sample n, block b, its runs and what of them is its section. */
typedef struct piece {
    int64_t index, n, b, g, lanes, whole_lanes;
    const hl_runs *runs;
    hl_range range;
    int64_t shift[3]; /* of each operand, to sample n and block b */
} piece;

static piece piece_at(const norm_plan *p, int64_t i)
{
    int64_t unit = i / p->sections;
    piece w = {.index = i, .n = unit / p->blocks, .b = unit % p->blocks};
    bool last = w.b == p->blocks - 1;
    w.g = p->super.d.per_sample ? w.n : 0;
    w.lanes = last ? p->last_lanes : p->lanes;
    w.runs = last ? &p->last : &p->runs;
    w.whole_lanes = w.runs->len % p->lanes == 0 ? p->lanes : w.lanes;
    w.range = hl_runs_part(w.runs, w.whole_lanes, p->sections, i % p->sections);
    for (int k = 0; k < p->operands; k++) w.shift[k] = w.n * p->t[k].s[HALO_N] + w.b * p->t[k].s[HALO_C];
    return w;
}

/* ------------------------------------------------------------------------------------------------------------ sums */

/* count, mean, M2 joined with those of another set. */
static void chan(double *count, double *mean, double *m2, double n, double mu, double q)
{
    if (n == 0) return;
    double total = *count + n, delta = mu - *mean;
    *m2 += q + delta * delta * *count * (n / total);
    *mean += delta * (n / total);
    *count = total;
}

/* Adds up tile lanes that belong to one channel. */
static void fold_tile(const double *tile, int64_t size, int64_t lanes, double *out)
{
    memset(out, 0, (size_t)lanes * sizeof(*out));
    for (int64_t i = 0; i < size; i += lanes)
        for (int64_t c = 0; c < lanes; c++) out[c] += tile[i + c];
}

static int64_t tile_of(const norm_plan *p, const piece *w) { return w->whole_lanes == p->lanes ? p->tile : p->last_tile; }
static int64_t longest_tile(const norm_plan *p) { return hl_max64(p->tile, p->last_tile); }

/* The cells seen since the centre was set go into the piece's moments, and the centre moves to the new mean. */
static void renew(int64_t tile, int64_t lanes, double cells, double *work, double *found)
{
    double *center = work, *sum = work + tile, *square = work + 2 * tile;
    for (int64_t c = 0; c < lanes; c++) {
        double s = 0, q = 0;
        for (int64_t i = c; i < tile; i += lanes) {
            s += sum[i];
            q += square[i];
        }
        double *v = found + 3 * c;
        chan(&v[0], &v[1], &v[2], cells, center[c] + s / cells, q - s * (s / cells));
        for (int64_t i = c; i < tile; i += lanes) center[i] = v[1];
    }
    memset(sum, 0, 2 * (size_t)tile * sizeof(*sum));
}

static void stats_piece(void *arg, int64_t i)
{
    const norm_run *r = arg;
    const norm_plan *p = r->p;
    piece w = piece_at(p, i);
    int64_t lanes = w.whole_lanes, tile = tile_of(p, &w), stretch = hl_max64(STRETCH / tile * tile, tile), at[HL_RUN_OPERANDS], n, cells = 0;
    double *work = p->work + i * 3 * longest_tile(p), *found = p->sums + i * 3 * p->lanes;
    memset(work, 0, 3 * (size_t)tile * sizeof(*work));
    memset(found, 0, 3 * (size_t)p->lanes * sizeof(*found));
    hl_walk walk = hl_walk_begin(w.runs, w.range);
    bool first = true;
    while ((n = hl_walk_next(&walk, stretch, at)) > 0) {
        const float *x = r->ptr[0] + w.shift[0] + at[0];
        for (int64_t t = 0; first && t < tile; t++) work[t] = x[t % lanes];
        first = false;
        p->super.dev->kern->moments(x, n, tile, work, work + tile, work + 2 * tile);
        cells += n / lanes;
        if (cells < FOLD) continue;
        renew(tile, lanes, (double)cells, work, found);
        cells = 0;
    }
    if (cells) renew(tile, lanes, (double)cells, work, found);
}

/* Pieces of a group in order, channels of a feature in order. */
static void merge_moments(const norm_plan *p, int64_t pieces, double *stat)
{
    for (int64_t i = 0; i < p->groups * p->features * 3 && !p->super.d.accumulate; i++) stat[i] = 0;
    for (int64_t i = 0; i < pieces; i++) {
        piece w = piece_at(p, i);
        for (int64_t c = 0; c < w.lanes; c++) {
            const double *v = p->sums + i * 3 * p->lanes + 3 * c;
            double *s = stat + (w.g * p->features + feature_of(p, w.b * p->lanes + c)) * 3;
            chan(&s[0], &s[1], &s[2], v[0], v[1], v[2]);
        }
    }
}

static double inverse_deviation(const halo_op_desc *d, const double *stat) { return 1 / sqrt(stat[2] / stat[0] + d->eps); }

static const double *stat_of(const norm_plan *p, const double *stat, int64_t g, int64_t c) { return stat + (g * p->features + feature_of(p, c)) * 3; }

static void backward_stats_piece(void *arg, int64_t i)
{
    const norm_run *r = arg;
    const norm_plan *p = r->p;
    piece w = piece_at(p, i);
    int64_t lanes = w.whole_lanes, tile = tile_of(p, &w), stretch = hl_max64(STRETCH / 2 / tile * tile, tile), at[HL_RUN_OPERANDS], n;
    double *center = p->work + i * 3 * longest_tile(p), *sum = center + tile, *product = sum + tile, *found = p->sums + i * 3 * p->lanes;
    memset(sum, 0, 2 * (size_t)tile * sizeof(*sum));
    for (int64_t t = 0; t < tile; t++) {
        int64_t c = w.b * p->lanes + t % lanes;
        center[t] = c < p->channels ? stat_of(p, r->stat, w.g, c)[1] : 0;
    }
    hl_walk walk = hl_walk_begin(w.runs, w.range);
    while ((n = hl_walk_next(&walk, stretch, at)) > 0)
        p->super.dev->kern->moments2(r->ptr[0] + w.shift[0] + at[0], r->ptr[1] + w.shift[1] + at[1], n, tile, center, sum, product);
    fold_tile(sum, tile, lanes, found);
    fold_tile(product, tile, lanes, found + p->lanes);
}

static void merge_sums(const norm_plan *p, int64_t pieces, const double *stat, double *stat2)
{
    for (int64_t i = 0; i < p->groups * p->channels * 2 && !p->super.d.accumulate; i++) stat2[i] = 0;
    for (int64_t i = 0; i < pieces; i++) {
        piece w = piece_at(p, i);
        for (int64_t k = 0; k < w.lanes; k++) {
            int64_t c = w.b * p->lanes + k;
            double *s = stat2 + (w.g * p->channels + c) * 2;
            s[0] += p->sums[i * 3 * p->lanes + k];
            s[1] += p->sums[i * 3 * p->lanes + p->lanes + k] * inverse_deviation(&p->super.d, stat_of(p, stat, w.g, c));
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------ affine */

/* p->affine: value k of channel c in group g. */
static float *affine_of(const norm_plan *p, int k, int64_t g, int64_t c) { return p->affine + ((int64_t)k * p->groups + g) * p->channels + c; }

/* mean and 1/sqrt(var + eps) of a channel, from the statistics or, in inference, from the running ones. */
static void moments_of(const norm_plan *p, const double *stat, const float *running, int64_t g, int64_t c, double *mean, double *inv)
{
    const halo_op_desc *d = &p->super.d;
    if (d->inference) {
        *mean = running[c];
        *inv = 1 / sqrt((double)running[p->channels + c] + d->eps);
    } else {
        const double *s = stat_of(p, stat, g, c);
        *mean = s[1];
        *inv = inverse_deviation(d, s);
    }
}

static void forward_factors(const norm_plan *p, const double *stat, const float *running, const float *gamma, const float *beta)
{
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t c = 0; c < p->channels; c++) {
            double mean, inv;
            moments_of(p, stat, running, g, c, &mean, &inv);
            double scale = inv * (gamma ? gamma[c] : 1), rest = mean - (float)mean;
            *affine_of(p, 0, g, c) = (float)mean;
            *affine_of(p, 1, g, c) = (float)scale;
            *affine_of(p, 2, g, c) = (float)((beta ? beta[c] : 0) - rest * scale);
        }
}

static void backward_factors(const norm_plan *p, const double *stat, const double *stat2, const float *gamma)
{
    int64_t per = p->channels / p->features;
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t c = 0; c < p->channels; c++) {
            const double *s = stat_of(p, stat, g, c);
            double inv = inverse_deviation(&p->super.d, s), sum = 0, product = 0, rest = s[1] - (float)s[1];
            for (int64_t k = c / per * per; k < (c / per + 1) * per; k++) {
                double w = gamma ? gamma[k] : 1;
                sum += w * stat2[(g * p->channels + k) * 2];
                product += w * stat2[(g * p->channels + k) * 2 + 1];
            }
            double slope = -inv * inv * product / s[0];
            *affine_of(p, 0, g, c) = (float)s[1];
            *affine_of(p, 1, g, c) = (float)(inv * (gamma ? gamma[c] : 1));
            *affine_of(p, 2, g, c) = (float)(-inv * sum / s[0] - slope * rest);
            *affine_of(p, 3, g, c) = (float)slope;
        }
}

/* Tiles [4][tile] of the factors for a piece; zero beyond the channels, so that padding lanes stay zero, and for a sample that is none. */
static const float *tiles_of(const norm_plan *p, const piece *w, int64_t tile, bool none)
{
    float *tiles = (float *)(p->work + w->index * 3 * longest_tile(p));
    for (int k = 0; k < 4; k++)
        for (int64_t t = 0; t < tile; t++) {
            int64_t c = w->b * p->lanes + t % w->whole_lanes;
            tiles[k * tile + t] = c < p->channels && !none ? *affine_of(p, k, w->g, c) : 0;
        }
    return tiles;
}

static void apply_piece(void *arg, int64_t i)
{
    const norm_run *r = arg;
    const norm_plan *p = r->p;
    const halo_op_desc *d = &p->super.d;
    const hl_kern *kern = p->super.dev->kern;
    piece w = piece_at(p, i);
    int64_t tile = tile_of(p, &w), at[HL_RUN_OPERANDS], n;
    const float *t = tiles_of(p, &w, tile, d->kind == HALO_OP_NORM_BWD_APPLY && i >= r->pieces);
    hl_walk walk = hl_walk_begin(w.runs, w.range);
    while ((n = hl_walk_next(&walk, INT64_MAX, at)) > 0) {
        const float *x = r->ptr[0] + w.shift[0] + at[0];
        float *b = r->ptr[1] + w.shift[1] + at[1], *c = p->operands == 3 ? r->ptr[2] + w.shift[2] + at[2] : NULL;
        if (d->kind == HALO_OP_NORM_APPLY)
            kern->affine(d->act, (float)d->slope, x, b, n, tile, t, t + tile, t + 2 * tile);
        else
            kern->norm_bwd(x, b, c, n, tile, t, t + tile, t + 3 * tile, t + 2 * tile);
    }
}

static void update_running(const norm_plan *p, const double *stat, float *run)
{
    const halo_op_desc *d = &p->super.d;
    for (int64_t c = 0; c < p->channels; c++) {
        const double *s = stat + 3 * c;
        double var = s[2] / (d->unbiased && s[0] > 1 ? s[0] - 1 : s[0]);
        run[c] = (float)(d->momentum * run[c] + (1 - d->momentum) * s[1]);
        run[p->channels + c] = (float)(d->momentum * run[p->channels + c] + (1 - d->momentum) * var);
    }
}

/* dgamma (which = 1) or dbeta (0), summed over groups. */
static void parameter_gradient(const norm_plan *p, const double *stat2, int which, float *out)
{
    for (int64_t c = 0; out && c < p->channels; c++) {
        double sum = p->super.d.accumulate ? out[c] : 0;
        for (int64_t g = 0; g < p->groups; g++) sum += stat2[(g * p->channels + c) * 2 + which];
        out[c] = (float)sum;
    }
}

/* ------------------------------------------------------------------------------------------------------------- class */

static int roles_of(const halo_op_desc *d, halo_role role[3])
{
    static const halo_role all[4][3] = {
        {HALO_X, HALO_ROLES, HALO_ROLES}, {HALO_X, HALO_Y, HALO_ROLES}, {HALO_X, HALO_DY, HALO_ROLES}, {HALO_X, HALO_DY, HALO_DX}};
    int n = 0;
    memcpy(role, all[d->kind - HALO_OP_NORM_STATS], sizeof(all[0]));
    while (n < 3 && role[n] != HALO_ROLES) n++;
    return n;
}

static bool parameters_valid(const halo_op_desc *d)
{
    bool running = hl_has(d, HALO_RUN), per_channel = !d->per_sample && d->groups <= 0;
    if (d->groups > 0 && d->t[HALO_X].ext[HALO_C] % d->groups != 0) return false;
    if (d->kind == HALO_OP_NORM_APPLY && d->inference) return running && per_channel;
    if (d->kind == HALO_OP_NORM_APPLY && running && !per_channel) return false;
    bool backward = d->kind == HALO_OP_NORM_BWD_STATS || d->kind == HALO_OP_NORM_BWD_APPLY;
    return d->t[HALO_STAT].dtype == HALO_F64 && (!backward || d->t[HALO_STAT2].dtype == HALO_F64);
}

static bool norm_valid(const halo_op_desc *d)
{
    static const halo_role vectors[] = {HALO_WT, HALO_B, HALO_RUN, HALO_DW, HALO_DB};
    halo_role role[3];
    int n = roles_of(d, role);
    for (int k = 0; k < n; k++)
        if (!hl_has_f32(d, role[k]) || d->t[role[k]].layout != d->t[HALO_X].layout || !hl_same_extents(&d->t[role[k]], &d->t[HALO_X])) return false;
    for (size_t k = 0; k < HL_COUNT(vectors); k++)
        if (hl_has(d, vectors[k]) && d->t[vectors[k]].dtype != HALO_F32) return false;
    return parameters_valid(d);
}

static int norm_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    if (!norm_valid(d)) return 0;
    norm_plan p = {.super = {hl_cpu(dev), *d}};
    shape(&p);
    return hl_cpu_candidate(dev, "cpu", (double)p.pieces, out);
}

static void norm_destroy(halo_plan *plan)
{
    norm_plan *p = (norm_plan *)plan;
    if (!p) return;
    free(p->sums);
    free(p->work);
    free(p->affine);
    free(p);
}

/* Lanes past the last channel may be taken along where they are padding and come out as zero. */
static bool whole_last(const norm_plan *p, const halo_operand *const *ops)
{
    const halo_op_desc *d = &p->super.d;
    if (d->kind == HALO_OP_NORM_APPLY && d->act == HALO_ACT_SIGMOID) return false;
    for (int k = 0; k < p->operands; k++)
        if (ops[k]->lo[HALO_C] + ops[k]->ext[HALO_C] != ops[k]->alloc[HALO_C]) return false;
    return p->x->layout != HALO_NDHWC;
}

static halo_status norm_make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    norm_plan *p;
    const halo_operand *ops[3];
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    shape(p);
    p->operands = roles_of(d, p->role);
    for (int k = 0; k < p->operands; k++) {
        ops[k] = &p->super.d.t[p->role[k]];
        p->t[k] = hl_operand_strides(ops[k]);
    }
    p->runs = hl_runs_block(ops, p->operands, p->lanes);
    p->last = hl_runs_block(ops, p->operands, whole_last(p, ops) ? p->lanes : p->last_lanes);
    size_t pieces = (size_t)p->pieces, affine = 4 * (size_t)p->groups * (size_t)p->channels;
    halo_status st = HALO_OK;
    HL_GOTO(st, hl_calloc(dev->ctx, pieces * 3 * (size_t)p->lanes, sizeof(*p->sums), "norm statistics", &p->sums), free_plan);
    HL_GOTO(st, hl_calloc(dev->ctx, pieces * 3 * (size_t)longest_tile(p), sizeof(*p->work), "norm statistics", &p->work), free_plan);
    HL_GOTO(st, hl_calloc(dev->ctx, affine, sizeof(*p->affine), "norm factors", &p->affine), free_plan);
    *out = (halo_plan *)p;
    return HALO_OK;
free_plan:
    norm_destroy((halo_plan *)p);
    return st;
}

/* The address of a dense vector's first element, NULL when absent. */
#define VECTOR(T, d, args, role) (hl_has(d, role) ? (T *)(args)->ptr[role] + hl_box_offset(&(d)->t[role]) : NULL)

static halo_status norm_do(halo_plan *plan, const halo_op_args *args)
{
    const norm_plan *p = (const norm_plan *)plan;
    const halo_op_desc *d = &p->super.d;
    double *stat = VECTOR(double, d, args, HALO_STAT), *stat2 = VECTOR(double, d, args, HALO_STAT2);
    float *gamma = VECTOR(float, d, args, HALO_WT), *beta = VECTOR(float, d, args, HALO_B), *running = VECTOR(float, d, args, HALO_RUN);
    norm_run r = {.p = p, .stat = stat};
    for (int k = 0; k < p->operands; k++) r.ptr[k] = args->ptr[p->role[k]];
    r.pieces = p->pieces;
    if (!d->per_sample) r.pieces -= hl_padding_samples(args->record, p->x->ext[HALO_N]) * p->blocks * p->sections;
    switch (d->kind) {
    case HALO_OP_NORM_STATS:
        hl_parallel(p->super.dev, r.pieces, stats_piece, &r);
        merge_moments(p, r.pieces, stat);
        break;
    case HALO_OP_NORM_BWD_STATS:
        hl_parallel(p->super.dev, r.pieces, backward_stats_piece, &r);
        merge_sums(p, r.pieces, stat, stat2);
        break;
    case HALO_OP_NORM_APPLY:
        forward_factors(p, stat, running, gamma, beta);
        hl_parallel(p->super.dev, p->pieces, apply_piece, &r);
        if (running && !d->inference) update_running(p, stat, running);
        break;
    default:
        backward_factors(p, stat, stat2, gamma);
        hl_parallel(p->super.dev, p->pieces, apply_piece, &r);
        parameter_gradient(p, stat2, 1, VECTOR(float, d, args, HALO_DW));
        parameter_gradient(p, stat2, 0, VECTOR(float, d, args, HALO_DB));
    }
    return HALO_OK;
}

#define NORM(name, op)                                                                                       \
    const halo_op_class name = {                                                                             \
        .kind = op, .candidates = norm_candidates, .plan = norm_make, .run = norm_do, .destroy = norm_destroy}

NORM(hl_cpu_norm_stats, HALO_OP_NORM_STATS);
NORM(hl_cpu_norm_apply, HALO_OP_NORM_APPLY);
NORM(hl_cpu_norm_bwd_stats, HALO_OP_NORM_BWD_STATS);
NORM(hl_cpu_norm_bwd_apply, HALO_OP_NORM_BWD_APPLY);
