/* SPDX-License-Identifier: Apache-2.0 */
/* redistribute.c -- blocks cut at random, laid out at random, into boxes wanted at random: every cell against the global array. Argument "funneled" as in exchange.c. */
#include "base/rng.h"
#include "comm/comm.h"
#include "comm/redistribute.h"
#include "halo/halo_mpi.h"
#include "tests/check.h"
#include "tests/tap.h"

static halo_context *ctx;
static uint64_t drawn;

static int64_t draw(int64_t n) { return (int64_t)(hl_rng_uniform(21, HL_STREAM_TEST, drawn++, 0) * (double)n); }

static void claim(bool holds, const char *sentence, double figure)
{
    double bad = holds ? 0 : 1;
    check_status(ctx, hl_comm_max(ctx, &bad, 1), "max");
    if (ctx->rank == 0) tap_ok(bad == 0, "%s [%.3g]", sentence, figure);
}

typedef struct world {
    int64_t extent[HALO_DIMS];
    bool periodic[HALO_DIMS];
    hl_cuboid *have; /* [ranks] */
    hl_held from, to;
    halo_dtype type;
    void *source, *target;
    int64_t source_n, target_n;
} world;

/* Axes in any order, some of them with gaps; returns elements. */
static int64_t lay_out(hl_held *p, uint64_t salt)
{
    int64_t n = 1;
    int axis[HALO_DIMS] = {0, 1, 2, 3, 4};
    for (int i = 0; i < HALO_DIMS; i++) {
        int k = i + (int)(hl_rng_uniform(8, HL_STREAM_TEST, salt * 16 + (uint64_t)i, 0) * (HALO_DIMS - i)), a = axis[k];
        axis[k] = axis[i];
        p->stride[a] = n;
        n *= hl_range_len(p->cells.axis[a]);
        n += (int64_t)(hl_rng_uniform(8, HL_STREAM_TEST, salt * 16 + (uint64_t)i, 1) * 3);
    }
    return n;
}

static void cut(const int64_t extent[HALO_DIMS], hl_cuboid *list, int n)
{
    list[0] = hl_cuboid_whole(extent);
    for (int i = 1; i < n; i++) {
        int k = (int)draw(i), a = (int)draw(HALO_DIMS);
        int64_t at = list[k].axis[a].lo + draw(hl_range_len(list[k].axis[a]) + 1);
        list[i] = list[k];
        list[k].axis[a].hi = list[i].axis[a].lo = at;
    }
}

static world draw_world(void)
{
    world w = {.type = draw(2) ? HALO_F64 : HALO_F32, .have = check_alloc(ctx->ranks, sizeof(hl_cuboid))};
    for (int a = 0; a < HALO_DIMS; a++) {
        w.extent[a] = 1 + draw(6);
        w.periodic[a] = draw(2);
    }
    cut(w.extent, w.have, ctx->ranks);
    for (int r = 0; r < ctx->ranks; r++) {
        hl_cuboid want;
        int64_t kind = draw(4);
        for (int a = 0; a < HALO_DIMS; a++) {
            int64_t lo = draw(w.extent[a] + 4) - 2;
            want.axis[a] = (hl_range){lo, lo + draw(w.extent[a] + 2)};
        }
        if (kind == 0) want = hl_cuboid_whole(w.extent);
        if (kind == 1) want = w.have[r];
        if (r == ctx->rank) w.to.cells = want;
    }
    w.from.cells = w.have[ctx->rank];
    w.source_n = lay_out(&w.from, drawn * 2 * 64 + (uint64_t)ctx->rank);
    w.target_n = lay_out(&w.to, (drawn * 2 + 1) * 64 + (uint64_t)ctx->rank);
    w.source = check_alloc(w.source_n, 8);
    w.target = check_alloc(w.target_n, 8);
    return w;
}

static void drop(world *w)
{
    free(w->have);
    free(w->source);
    free(w->target);
}

static double value(const world *w, const int64_t cell[HALO_DIMS], int64_t salt)
{
    int64_t i = salt;
    for (int a = 0; a < HALO_DIMS; a++) i = i * w->extent[a] + ((cell[a] % w->extent[a]) + w->extent[a]) % w->extent[a];
    return (double)(i + 1);
}

static int64_t place(const hl_held *p, const int64_t cell[HALO_DIMS])
{
    int64_t i = 0;
    for (int a = 0; a < HALO_DIMS; a++) i += (cell[a] - p->cells.axis[a].lo) * p->stride[a];
    return i;
}

static bool next(const hl_cuboid *b, int64_t cell[HALO_DIMS])
{
    for (int a = HALO_DIMS - 1; a >= 0; a--) {
        if (++cell[a] < b->axis[a].hi) return true;
        cell[a] = b->axis[a].lo;
    }
    return false;
}

static double get(const void *p, halo_dtype type, int64_t i) { return type == HALO_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i]; }

static void put(void *p, halo_dtype type, int64_t i, double v)
{
    if (type == HALO_F64)
        ((double *)p)[i] = v;
    else
        ((float *)p)[i] = (float)v;
}

/* Fills the source, or counts cells of the target that are wrong; what is in no piece keeps its -7. */
static int64_t each(world *w, bool fill, int64_t salt)
{
    hl_held *p = fill ? &w->from : &w->to;
    int64_t cell[HALO_DIMS], bad = 0, seen = 0, kept = 0;
    for (int64_t i = 0; fill && i < w->source_n; i++) put(w->source, w->type, i, -9);
    for (int64_t i = 0; fill && i < w->target_n; i++) put(w->target, w->type, i, -7);
    if (hl_cuboid_cells(&p->cells) > 0) {
        for (int a = 0; a < HALO_DIMS; a++) cell[a] = p->cells.axis[a].lo;
        do {
            bool outside = false;
            for (int a = 0; a < HALO_DIMS; a++) outside = outside || (!w->periodic[a] && (cell[a] < 0 || cell[a] >= w->extent[a]));
            if (fill)
                put(w->source, w->type, place(p, cell), value(w, cell, salt));
            else
                bad += get(w->target, w->type, place(p, cell)) != (outside ? -7 : value(w, cell, salt));
            seen += !outside;
        } while (next(&p->cells, cell));
    }
    for (int64_t i = 0; !fill && i < w->target_n; i++) kept += get(w->target, w->type, i) == -7;
    return bad + (!fill && kept != w->target_n - seen);
}

static void any(int cases)
{
    int64_t bad = 0;
    int none = 0;
    for (int k = 0; k < cases; k++) {
        world w = draw_world();
        hl_redistribution *r;
        hl_exchange_stats stats;
        check_status(ctx, hl_redistribution_create(ctx, w.type, w.extent, w.periodic, &w.from, &w.to, &r), "redistribution");
        if (hl_redistribution_none(r)) {
            none++;
            bad += !hl_cuboid_equal(&w.from.cells, &w.to.cells);
        }
        for (int64_t run = 0; run < 2 && !hl_redistribution_none(r); run++) {
            each(&w, true, run);
            check_status(ctx, hl_redistribution_start(r, w.source, w.target), "start");
            check_status(ctx, hl_exchange_poll(ctx), "poll");
            check_status(ctx, hl_redistribution_finish(r), "finish");
            bad += each(&w, false, run);
        }
        hl_redistribution_stats_get(r, &stats, false);
        bad += stats.runs != (hl_redistribution_none(r) ? 0 : 2);
        hl_redistribution_destroy(r);
        drop(&w);
    }
    claim(bad == 0, "blocks and wishes at random: every cell; of them nothing to do", none);
}

/* Slabs of one axis, the same again, and the same in another order of axes. */
static void same(void)
{
    const int64_t extent[HALO_DIMS] = {1, 2, 4 * ctx->ranks, 3, 5};
    const bool periodic[HALO_DIMS] = {false};
    hl_cuboid slab = hl_cuboid_whole(extent);
    slab.axis[HALO_D] = hl_block_range(extent[HALO_D], ctx->ranks, ctx->rank);
    hl_held have = hl_held_dense(&slab), want = have;
    hl_redistribution *r;
    check_status(ctx, hl_redistribution_create(ctx, HALO_F32, extent, periodic, &have, &want, &r), "redistribution");
    claim(hl_redistribution_none(r), "blocks that are wanted as they are: nothing to do", 0);
    hl_redistribution_destroy(r);
    want.stride[HALO_C] = 1;
    for (int a = 2; a < HALO_DIMS; a++) want.stride[a] *= 2;
    if (ctx->rank > 0) want = have;
    check_status(ctx, hl_redistribution_create(ctx, HALO_F32, extent, periodic, &have, &want, &r), "redistribution");
    claim(!hl_redistribution_none(r), "one rank has them in another order: not nothing, on any", 0);
    hl_redistribution_destroy(r);
}

static void refuse(const int64_t extent[HALO_DIMS], hl_cuboid mine, const char *words, const char *sentence)
{
    const bool periodic[HALO_DIMS] = {false};
    hl_held have = hl_held_dense(&mine), want = have;
    hl_redistribution *r = NULL;
    halo_status st = hl_redistribution_create(ctx, HALO_F32, extent, periodic, &have, &want, &r);
    claim(st == HALO_ERR_USAGE && !r && strstr(halo_error_message(ctx), words), sentence, 0);
    if (!strstr(halo_error_message(ctx), words)) fprintf(stderr, "# %s\n", halo_error_message(ctx));
}

static void mistakes(void)
{
    const int64_t extent[HALO_DIMS] = {1, 1, 12, 2, 2};
    hl_cuboid slab = hl_cuboid_whole(extent);
    slab.axis[HALO_D] = hl_block_range(extent[HALO_D], ctx->ranks, ctx->rank);
    hl_cuboid bad = slab;
    bad.axis[HALO_D].hi += ctx->rank == ctx->ranks - 1;
    refuse(extent, bad, "has the cell [0, 0, 12, 0, 0] of an array of 1 x 1 x 12 x 2 x 2", "a block beyond the array is refused, with rank and cell");
    bad = slab;
    bad.axis[HALO_D].hi -= ctx->rank == 0;
    refuse(extent, bad, "no rank has the cell [0, 0, ", "a hole is refused, with a cell");
    bad = slab;
    bad.axis[HALO_D].lo -= ctx->rank == 1;
    if (ctx->ranks > 1) refuse(extent, bad, "ranks 0 and 1 both have the cell [0, 0, ", "blocks that overlap are refused, with ranks and a cell");
    const int64_t other[HALO_DIMS] = {1, 1, 12, 2, 2 + (ctx->rank == 1)};
    if (ctx->ranks > 1) refuse(other, slab, "the array has extent 2 on rank 0 and 3 on rank 1", "ranks that do not agree on the array are refused");
}

int main(int argc, char **argv)
{
    int level;
    bool funneled = argc > 1 && strcmp(argv[1], "funneled") == 0;
    MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    check_status(NULL, halo_mpi_context_create(MPI_COMM_WORLD, NULL, &ctx), "context");
    hl_comm_stall(ctx, 60);
    any(60);
    same();
    mistakes();
    int rank = ctx->rank;
    halo_context_destroy(ctx);
    MPI_Finalize();
    return rank == 0 ? tap_done() : 0;
}
