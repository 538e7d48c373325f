/* SPDX-License-Identifier: Apache-2.0 */
/*
 * winograd.c -- forward and backward data of 3^3 convolutions of stride 1 by Winograd's minimal filtering,
 * F(2^3, 3^3) and F(4^3, 3^3):
 *
 *   U[p][t][c] = B' x_t  (a cube of a = m + 2 cells of tile t, m apart),  M[p][t][o] = sum_c U[p][t][c]
 * W[p][c][o],  y_t = A' M
 *
 * with a^3 points p: 64 or 216 products per tile and channel pair for 8 or 64 outputs, where the direct
 * algorithm needs 27 each, that is 3.4 or 8 times fewer. Backward data is the same from dy, with the channels
 * exchanged, the kernels mirrored and a padding of 2 - pad_lo.
 *
 * Tiles go in groups of as many rows as a product has in registers. Two orders of work:
 *   alone   each thread takes a few groups at a time through all three steps; U and M stay in its own
 * second-level cache. shared  where there are too few groups for that, or the weights are too large to be
 * read for each of them: all threads transform a batch, wait, and then take pairs (out group, some tile
 * groups) of its products and outputs. U lies in the last-level cache, weights are read once a batch. Which
 * thread does what never changes a bit: a tile's sums do not depend on its neighbours.
 *
 * Cells outside what is there or needed count as zero: tiles at edges are first copied into a cube of zeros,
 * outputs past y's box are not stored. Rounding: Winograd's sums cancel; errors grow with the points' size,
 * so F(4) at 0, +-1, +-2 and infinity is good to 2e-4 of the largest output, F(2) to 2e-6 (Lavin & Gray,
 * "Fast algorithms for convolutional neural networks", 2016; blocking after Jia, Zlateski, Durand & Li,
 * "Optimizing N-dimensional, Winograd-based convolution for manycore CPUs", PPoPP 2018).
 */
#include "winograd.h"

#ifdef HAVE_CONFIG_H
#include "halo_build.h"
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    LEAST_CHANNELS = 16, /* fewer give products too short to pay for the transforms */
    CACHE = 1 << 20,     /* bytes of U and M per thread, about */
    BATCH = 8 << 20,     /* bytes of U that all share */
    WEIGHTS = 12 << 20,  /* bytes of weights that may be read for every few groups of tiles */
};

extern const hl_wino_kern hl_generic_wino_8, hl_generic_wino_16;
#ifdef HAVE_KERN_AVX2
extern const hl_wino_kern hl_avx2_wino_8, hl_avx2_wino_16;
#endif
#ifdef HAVE_KERN_AVX512F
extern const hl_wino_kern hl_avx512f_wino_16;
#endif

const hl_wino_kern *hl_wino_kern_find(hl_isa isa, int block)
{
    if (block != 8 && block != 16) return NULL;
    (void)isa; /* a build without vector instructions */
#ifdef HAVE_KERN_AVX512F
    if (isa == HL_ISA_AVX512F && block == 16) return &hl_avx512f_wino_16;
#endif
#ifdef HAVE_KERN_AVX2
    if (isa != HL_ISA_GENERIC) return block == 8 ? &hl_avx2_wino_8 : &hl_avx2_wino_16;
#endif
    return block == 8 ? &hl_generic_wino_8 : &hl_generic_wino_16;
}

struct hl_wino {
    const hl_cpu_device *dev;
    const hl_wino_kern *kern;
    int m;
    bool backward, bias, accumulate;
    halo_operand in, out;
    int64_t pad[3], image;
    int64_t bias_origin;
    bool leaky;
    float slope;
    hl_strides is, os;
    int64_t points, ins, outs; /* channels */
    int64_t tiles[3], all;     /* per sample; of all samples */
    int64_t valid[3][2];       /* input cells that exist and are needed */
    int64_t groups;            /* of tiles */
    int64_t u_step, u_group;   /* floats between points; of a group of tiles */
    int64_t m_group;
    bool shared;
    int64_t run, batch; /* groups of tiles of one item; of a batch */
    int team;           /* threads */
    hl_conv_pool
        pool; /* of the tiles' outputs, each in its thread's hands: m is a multiple of the windows' sides */
};

/* --------------------------------------------------------------------------------------------------------------------
 * tiles */

typedef struct tile {
    int64_t n, at[3]; /* sample; first output */
} tile;

static tile tile_of(const hl_wino *p, int64_t t)
{
    const int64_t *k = p->tiles, per = k[0] * k[1] * k[2];
    return (tile){t / per, {t % per / (k[1] * k[2]) * p->m, t / k[2] % k[1] * p->m, t % k[2] * p->m}};
}

void hl_wino_cut(const hl_strides *s, const int64_t (*valid)[2], int64_t a, const float *x,
                 const int64_t *from, float *cube)
{
    int64_t block = s->block, lo[3], hi[3];
    memset(cube, 0, (size_t)(a * a * a * block) * sizeof(float));
    for (int i = 0; i < 3; i++) {
        lo[i] = hl_max64(valid[i][0] - from[i], 0);
        hi[i] = hl_min64(valid[i][1] - from[i], a);
    }
    if (hi[2] <= lo[2]) return;
    for (int64_t d = lo[0]; d < hi[0]; d++)
        for (int64_t h = lo[1]; h < hi[1]; h++)
            memcpy(cube + ((d * a + h) * a + lo[2]) * block,
                   x + d * s->s[HALO_D] + h * s->s[HALO_H] + lo[2] * block,
                   (size_t)((hi[2] - lo[2]) * block) * sizeof(float));
}

/* One channel block of one tile into its points. */
static void transform_tile(const hl_wino *p, const float *x, int64_t t, int64_t c, float *u)
{
    float cube[HL_WINO_POINTS * 16];
    tile k = tile_of(p, t);
    int64_t from[3], a = p->m + 2, block = p->kern->block;
    bool inside = true;
    for (int i = 0; i < 3; i++) {
        from[i] = k.at[i] - p->pad[i];
        inside = inside && from[i] >= p->valid[i][0] && from[i] + a <= p->valid[i][1];
    }
    const float *cells = x + hl_offset(&p->is, k.n, c * block, from[0], from[1], from[2]);
    if (inside) {
        p->kern->input(p->m, cells, p->is.s[HALO_D], p->is.s[HALO_H], u, p->u_step);
    } else {
        hl_wino_cut(&p->is, (const int64_t(*)[2])p->valid, a, cells, from, cube);
        p->kern->input(p->m, cube, a * a * block, a * block, u, p->u_step);
    }
}

static int64_t rows_of(const hl_wino *p, int64_t group)
{
    return hl_min64(p->kern->rows, p->all - group * p->kern->rows);
}

/* u: of this group */
static void transform_group(const hl_wino *p, const float *x, int64_t group, int64_t c, float *u)
{
    int64_t rows = p->kern->rows, block = p->kern->block, n = rows_of(p, group);
    for (int64_t r = 0; r < n; r++) transform_tile(p, x, group * rows + r, c, u + (c * rows + r) * block);
}

/* Points of groups [g0, g1) of tiles times those of out group o: into m. u: of g0. */
static void multiply(const hl_wino *p, int64_t g0, int64_t g1, int64_t o, const float *image, const float *u,
                     float *m)
{
    const hl_wino_kern *k = p->kern;
    int64_t width = hl_wino_width(p->outs, k->block, o), step = k->rows * width;
    const float *w = image + hl_wino_group_at(p->ins, k->block, p->m, o);
    for (int64_t q = 0; q < p->points; q++, w += p->ins * width)
        for (int64_t g = g0; g < g1; g++) {
            int64_t rows = rows_of(p, g);
            const float *ug = u + (g - g0) * p->u_group + q * p->u_step;
            float *mg = m + (g - g0) * p->m_group + q * step;
            for (int64_t v = 0; v < width; v += 2 * k->lanes) {
                int vectors = width - v > k->lanes ? 2 : 1;
                k->product[vectors][rows](ug, w + v, p->ins, width, mg + v);
            }
        }
}

/* Where results go: y and, with pooling, the allocations of Y and AUX. */
typedef struct target {
    float *y;
    uint8_t *aux;
} target;

/* The windows of a tile, whose outputs become a cube first. */
static void pool_tile(const hl_wino *p, tile k, int64_t b, const float *points, int64_t step,
                      const float *bias, target to)
{
    float cube[4 * 4 * 4 * 16];
    const int64_t m = p->m, block = p->kern->block, *side = p->pool.side;
    hl_wino_out out = {.y = cube,
                       .y_d = m * m * block,
                       .y_h = m * block,
                       .n = {p->m, p->m, p->m},
                       .live = (int)block,
                       .bias = bias};
    out.leaky = p->leaky;
    out.slope = p->slope;
    int64_t n[3];
    for (int i = 0; i < 3; i++) n[i] = hl_min64(m, p->out.ext[HALO_D + i] - k.at[i]) / side[i];
    p->kern->output(p->m, points, step, &out);
    for (int64_t d = 0; d < n[0]; d++)
        for (int64_t h = 0; h < n[1]; h++) {
            const int64_t at[HALO_DIMS] = {k.n, b * block, k.at[0] / side[0] + d, k.at[1] / side[1] + h,
                                           k.at[2] / side[2]};
            hl_conv_pool_row(&p->pool, p->dev->kern, cube + d * side[0] * out.y_d + h * side[1] * out.y_h,
                             n[2], at, to.y, to.aux);
        }
}

/* Outputs of tile t in channel block b from its points. */
static void finish_tile(const hl_wino *p, int64_t t, int64_t b, const float *points, int64_t step,
                        const float *bias, target to)
{
    tile k = tile_of(p, t);
    float *y = to.y;
    int64_t block = p->kern->block;
    if (p->pool.cells) {
        pool_tile(p, k, b, points, step, bias, to);
        return;
    }
    hl_wino_out out = {.y = y + hl_offset(&p->os, k.n, b * block, k.at[0], k.at[1], k.at[2]),
                       .y_d = p->os.s[HALO_D],
                       .y_h = p->os.s[HALO_H],
                       .live = (int)hl_min64(block, p->outs - b * block),
                       .bias = bias,
                       .accumulate = p->accumulate,
                       .leaky = p->leaky,
                       .slope = p->slope};
    for (int i = 0; i < 3; i++) out.n[i] = (int)hl_min64(p->m, p->out.ext[HALO_D + i] - k.at[i]);
    p->kern->output(p->m, points, step, &out);
}

static void finish(const hl_wino *p, int64_t g0, int64_t g1, int64_t o, const float *m, const float *bias,
                   target to)
{
    const hl_wino_kern *k = p->kern;
    int64_t width = hl_wino_width(p->outs, k->block, o);
    for (int64_t i = 0; i < width / k->block; i++) {
        float own[16] = {0}; /* so that no lane is read past the vector's end */
        int64_t b = o * 2 + i;
        if (bias)
            memcpy(own, bias + b * k->block,
                   (size_t)hl_min64(k->block, p->outs - b * k->block) * sizeof(float));
        for (int64_t g = g0; g < g1; g++)
            for (int64_t r = 0; r < rows_of(p, g); r++)
                finish_tile(p, g * k->rows + r, b, m + (g - g0) * p->m_group + r * width + i * k->block,
                            k->rows * width, own, to);
    }
}

/* ----------------------------------------------------------------------------------------------------------------------
 * run */

typedef struct job {
    const float *x, *image, *bias;
    target to;
    float *u, *m; /* u, m: of all threads, or u of all and m of each */
} job;

static int64_t out_groups(const hl_wino *p)
{
    return hl_div_up(p->outs, 2 * p->kern->block);
}
static int64_t in_blocks(const hl_wino *p)
{
    return hl_div_up(p->ins, p->kern->block);
}

static int this_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

static void run_alone(const hl_wino *p, const job *j)
{
#pragma omp parallel for num_threads(p->team) schedule(dynamic)
    for (int64_t g0 = 0; g0 < p->groups; g0 += p->run) {
        int64_t g1 = hl_min64(g0 + p->run, p->groups), me = this_thread();
        float *u = j->u + me * p->run * p->u_group, *m = j->m + me * p->run * p->m_group;
        for (int64_t g = g0; g < g1; g++)
            for (int64_t c = 0; c < in_blocks(p); c++)
                transform_group(p, j->x, g, c, u + (g - g0) * p->u_group);
        for (int64_t o = 0; o < out_groups(p); o++) {
            multiply(p, g0, g1, o, j->image, u, m);
            finish(p, g0, g1, o, m, j->bias, j->to);
        }
    }
}

/* By every thread of a team: groups [b0, b1) of tiles. */
static void run_batch(const hl_wino *p, const job *j, int64_t b0, int64_t b1)
{
    int64_t blocks = in_blocks(p), runs = hl_div_up(b1 - b0, p->run);
    float *m = j->m + this_thread() * p->run * p->m_group;
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < (b1 - b0) * blocks; i++)
        transform_group(p, j->x, b0 + i / blocks, i % blocks, j->u + i / blocks * p->u_group);
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < out_groups(p) * runs; i++) {
        int64_t o = i / runs, g0 = b0 + i % runs * p->run, g1 = hl_min64(g0 + p->run, b1);
        multiply(p, g0, g1, o, j->image, j->u + (g0 - b0) * p->u_group, m);
        finish(p, g0, g1, o, m, j->bias, j->to);
    }
}

static void run_shared(const hl_wino *p, const job *j)
{
#pragma omp parallel num_threads(p->team)
    for (int64_t b = 0; b < p->groups; b += p->batch) run_batch(p, j, b, hl_min64(b + p->batch, p->groups));
}

static int64_t u_floats(const hl_wino *p)
{
    return (p->shared ? p->batch : p->run * p->team) * p->u_group;
}
static size_t scratch_of(const hl_wino *p)
{
    return (size_t)(u_floats(p) + p->run * p->m_group * p->team) * sizeof(float) + 64;
}

void hl_wino_run(const hl_wino *p, const halo_op_args *args)
{
    halo_role in = p->backward ? HALO_DY : HALO_X, out = p->backward ? HALO_DX : HALO_Y;
    job j = {.x = (const float *)args->ptr[in] + hl_box_offset(&p->in),
             .image = args->ptr[HALO_WT],
             .bias = p->bias ? (const float *)args->ptr[HALO_B] + p->bias_origin : NULL,
             .to = {(float *)args->ptr[out] + (p->pool.cells ? 0 : hl_box_offset(&p->out)),
                    p->pool.cells ? args->ptr[HALO_AUX] : NULL},
             .u = (float *)hl_round_up((int64_t)(intptr_t)args->scratch, 64)};
    j.m = j.u + u_floats(p);
    if (p->shared)
        run_shared(p, &j);
    else
        run_alone(p, &j);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * plan */

static void lay_out(hl_wino *p)
{
    const hl_wino_kern *k = p->kern;
    p->is = hl_operand_strides(&p->in);
    p->os = hl_operand_strides(&p->out);
    p->points = hl_wino_points(p->m);
    p->all = p->out.ext[HALO_N];
    for (int i = 0; i < 3; i++) {
        int64_t n = p->out.ext[HALO_D + i];
        p->tiles[i] = hl_div_up(n, p->m);
        p->all *= p->tiles[i];
        p->valid[i][0] = hl_max64(-p->in.margin[i][0], -p->pad[i]);
        p->valid[i][1] = hl_min64(p->in.ext[HALO_D + i] + p->in.margin[i][1], n + 2 - p->pad[i]);
    }
    p->groups = hl_div_up(p->all, k->rows);
    p->u_step = in_blocks(p) * k->rows * k->block;
    p->u_group = p->points * p->u_step;
    p->m_group = p->points * k->rows * hl_wino_width(p->outs, k->block, 0);
}

/* Pieces of work that do not wait for each other. */
static int64_t items_of(const hl_wino *p)
{
    return p->shared ? out_groups(p) * hl_div_up(p->batch, p->run) : hl_div_up(p->groups, p->run);
}

/* The order of work. */
static void arrange(hl_wino *p)
{
    int64_t threads = p->dev->threads,
            weights = hl_round_up(p->outs, p->kern->block) * p->ins * p->points * 4;
    p->run = hl_max64(1, CACHE / ((p->u_group + p->m_group) * 4));
    p->run = hl_min64(p->run, hl_max64(1, p->groups / (4 * threads)));
    p->shared = threads > 1 && hl_div_up(p->groups, p->run) < 4 * threads;
    p->shared = p->shared || weights > WEIGHTS;
    if (!p->shared) return;
    p->batch = hl_min64(p->groups, hl_max64(4, BATCH / (p->u_group * 4)));
    p->run = hl_min64(p->batch, hl_max64(1, CACHE / (p->m_group * 4)));
}

bool hl_wino_window(const halo_window *w)
{
    for (int i = 0; i < 3; i++)
        if (w->kernel[i] != 3 || w->stride[i] != 1 || w->dilation[i] != 1) return false;
    return true;
}

/* false: not for Winograd */
static bool set_up(hl_wino *p, const hl_cpu_device *dev, const halo_op_desc *fused, int m)
{
    hl_conv_shape s;
    hl_conv_pool pool;
    halo_op_desc conv, *desc = &conv;
    if (!hl_conv_pool_of(fused, &pool, desc)) return false;
    for (int i = 0; pool.cells && i < 3; i++)
        if (m % pool.side[i] != 0) return false;
    bool back = desc->kind == HALO_OP_CONV_BWD_DATA;
    if (!hl_conv_shape_of(desc, back ? HALO_DX : HALO_X, back ? HALO_DY : HALO_Y, &s) ||
        !hl_wino_window(&s.w))
        return false;
    int block = (int)hl_layout_block(s.y.layout);
    if (s.x.layout != s.y.layout || !hl_wino_kern_find(dev->isa, block)) return false;
    if (desc->act != HALO_ACT_NONE && desc->act != HALO_ACT_RELU && desc->act != HALO_ACT_LEAKY_RELU)
        return false;
    if (desc->accumulate && (hl_has(desc, HALO_B) || desc->act != HALO_ACT_NONE)) return false;
    if (hl_has(desc, HALO_B) && desc->t[HALO_B].dtype != HALO_F32) return false;
    *p = (hl_wino){.dev = dev,
                   .kern = hl_wino_kern_find(dev->isa, block),
                   .m = m,
                   .backward = back,
                   .bias = hl_has(desc, HALO_B),
                   .accumulate = desc->accumulate,
                   .in = back ? s.y : s.x,
                   .out = back ? s.x : s.y,
                   .ins = back ? s.out : s.in,
                   .outs = back ? s.in : s.out,
                   .image = hl_wino_image(m, back, block),
                   .leaky = desc->act != HALO_ACT_NONE,
                   .slope = desc->act == HALO_ACT_RELU ? 0.0f : (float)desc->slope};
    if (dev->winograd > 0 && p->ins < LEAST_CHANNELS) return false;
    for (int i = 0; i < 3; i++) p->pad[i] = back ? 2 - s.w.pad_lo[i] : s.w.pad_lo[i];
    if (p->bias) p->bias_origin = hl_box_offset(&desc->t[HALO_B]);
    p->pool = pool;
    if (pool.cells)
        hl_conv_pool_lay(&p->pool, (const int64_t[]){(int64_t)m * m * block, (int64_t)m * block, block});
    lay_out(p);
    arrange(p);
    p->team = (int)hl_min64(dev->threads, items_of(p));
    return true;
}

/* Whether the weights, transformed at every step, have outputs enough to earn that. */
static bool pays(const hl_wino *p)
{
    return hl_operand_box_elements(&p->out) / p->outs >= (p->m == 4 ? 1024 : 256);
}

int hl_wino_candidates(hl_cpu_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    int n = 0, cap = abs(dev->winograd);
    for (int m = 4; m >= 2; m -= 2) {
        hl_wino p;
        if (m > cap || !set_up(&p, dev, desc, m) || (dev->winograd > 0 && !pays(&p))) continue;
        static const char *const names[2][2] = {{"winograd-f2", "winograd-f4"},
                                                {"winograd-f2-pool", "winograd-f4-pool"}};
        hl_cpu_candidate(&dev->super, names[p.pool.cells > 0][m == 4], (double)items_of(&p), &out[n]);
        out[n].id = HL_WINO_ID + m;
        out[n].scratch = scratch_of(&p);
        out[n].image = (int)p.image;
        out[n].image_bytes =
            hl_wino_image_bytes((int)p.image, p.backward ? p.ins : p.outs, p.backward ? p.outs : p.ins);
        n++;
    }
    return n;
}

halo_status hl_wino_make(hl_cpu_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                         hl_wino **out)
{
    hl_wino *p;
    HL_TRY(hl_calloc(dev->super.ctx, 1, sizeof(*p), "convolution plan", &p));
    HL_BUG_UNLESS(set_up(p, dev, desc, choice->id - HL_WINO_ID));
    *out = p;
    return HALO_OK;
}

void hl_wino_free(hl_wino *p)
{
    free(p);
}
