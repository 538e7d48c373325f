/* SPDX-License-Identifier: Apache-2.0 */
/* redistribute.c -- see redistribute.h. Every rank knows the boxes of all, and from them both ends of each message follow without a word. */
#include "comm/redistribute.h"

#include "comm/comm.h"

enum { HL_IMAGES = 64 }; /* between two ranks: tags of an exchange */

/* What ranks tell each other. */
typedef struct holding {
    int64_t extent[HALO_DIMS];
    hl_held have, want;
} holding;

struct hl_redistribution {
    hl_exchange *exchange;
    bool none;
};

hl_held hl_held_dense(const hl_cuboid *cells)
{
    hl_held p = {.cells = *cells};
    int64_t n = 1;
    for (int a = HALO_DIMS - 1; a >= 0; a--) {
        p.stride[a] = n;
        n *= hl_range_len(cells->axis[a]);
    }
    return p;
}

/* Strides of axes along which there is one cell do not matter. */
static bool same_piece(const hl_held *a, const hl_held *b)
{
    if (hl_cuboid_cells(&a->cells) == 0 && hl_cuboid_cells(&b->cells) == 0) return true;
    for (int k = 0; k < HALO_DIMS; k++)
        if (hl_range_len(a->cells.axis[k]) > 1 && a->stride[k] != b->stride[k]) return false;
    return hl_cuboid_equal(&a->cells, &b->cells);
}

/* ------------------------------------------------------------------------------------------------------------ checks */

static halo_status check_tiles(halo_context *ctx, const int64_t *extent, const hl_cuboid *list)
{
    int who[2];
    int64_t c[HALO_DIMS];
    switch (hl_cuboid_tiling(list, ctx->ranks, extent, who, c)) {
    case HL_TILING_GOOD: return HALO_OK;
    case HL_TILING_OUTSIDE:
        return hl_fail(ctx, HALO_ERR_USAGE,
                       "rank %d has the cell [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "] of an array of %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
                       " x %" PRId64,
                       who[0], c[0], c[1], c[2], c[3], c[4], extent[0], extent[1], extent[2], extent[3], extent[4]);
    case HL_TILING_OVERLAP:
        return hl_fail(ctx, HALO_ERR_USAGE, "ranks %d and %d both have the cell [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]", who[0], who[1], c[0], c[1], c[2],
                       c[3], c[4]);
    default:
        return hl_fail(ctx, HALO_ERR_USAGE, "no rank has the cell [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]", c[0], c[1], c[2], c[3], c[4]);
    }
}

static halo_status check(halo_context *ctx, const holding *all)
{
    hl_cuboid *list;
    for (int r = 1; r < ctx->ranks; r++)
        for (int a = 0; a < HALO_DIMS; a++)
            if (all[r].extent[a] != all[0].extent[a])
                return hl_fail(ctx, HALO_ERR_USAGE, "the array has extent %" PRId64 " on rank 0 and %" PRId64 " on rank %d", all[0].extent[a], all[r].extent[a], r);
    HL_TRY(hl_calloc(ctx, (size_t)ctx->ranks, sizeof(*list), "a list of blocks", &list));
    for (int r = 0; r < ctx->ranks; r++) list[r] = all[r].have.cells;
    halo_status st = check_tiles(ctx, all[0].extent, list);
    free(list);
    return st;
}

/* ---------------------------------------------------------------------------------------------------------- messages */

/* Axes from the one whose cells the sender has farthest apart to the nearest: it reads along its memory. */
static void order_axes(const hl_held *sender, int axis[HALO_DIMS])
{
    for (int i = 0; i < HALO_DIMS; i++) {
        int k = i;
        for (; k > 0 && llabs(sender->stride[axis[k - 1]]) < llabs(sender->stride[i]); k--) axis[k] = axis[k - 1];
        axis[k] = i;
    }
}

static hl_region region_of(const hl_held *piece, const hl_cuboid *cells, const int64_t shift[HALO_DIMS], const int axis[HALO_DIMS])
{
    hl_region r = {.run = 1};
    for (int k = 0; k < HALO_DIMS; k++) {
        int a = axis[k];
        r.count[k] = hl_range_len(cells->axis[a]);
        r.stride[k] = piece->stride[a];
        r.offset += (cells->axis[a].lo + shift[a] - piece->cells.axis[a].lo) * piece->stride[a];
    }
    return r;
}

typedef struct messages {
    hl_message *list;
    size_t room, n;
} messages;

/* What `to` wants of what `from` has, as this rank sends or receives it. */
static halo_status add(halo_context *ctx, messages *m, const holding *from, const holding *to, const bool *periodic, bool send, int peer)
{
    static const int64_t nowhere[HALO_DIMS];
    hl_image image[HL_IMAGES];
    int axis[HALO_DIMS], n = hl_cuboid_images(&from->have.cells, &to->want.cells, from->extent, periodic, HL_IMAGES, image);
    if (n > HL_IMAGES) return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "a block reaches around a periodic array so often that it wants another's cells %d times; at most %d", n, HL_IMAGES);
    HL_TRY(hl_grow(ctx, &m->list, &m->room, m->n + (size_t)n, sizeof(*m->list), "messages of a redistribution"));
    order_axes(&from->have, axis);
    for (int i = 0; i < n; i++) {
        hl_region r = send ? region_of(&from->have, &image[i].cells, nowhere, axis) : region_of(&to->want, &image[i].cells, image[i].shift, axis);
        m->list[m->n++] = (hl_message){.send = send, .peer = peer, .tag = i, .region = r};
    }
    return HALO_OK;
}

/* Each rank begins with the one after it, so that not all send to the same. */
static halo_status list_messages(halo_context *ctx, const holding *all, const bool *periodic, messages *m)
{
    const holding *mine = &all[ctx->rank];
    for (int k = 0; k < ctx->ranks; k++) {
        int to = (ctx->rank + k) % ctx->ranks, from = (ctx->rank + ctx->ranks - k) % ctx->ranks;
        HL_TRY(add(ctx, m, mine, &all[to], periodic, true, to));
        HL_TRY(add(ctx, m, &all[from], mine, periodic, false, from));
    }
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------ making */

static halo_status make(halo_context *ctx, halo_dtype type, const bool *periodic, const holding *mine, holding *all, hl_redistribution *r)
{
    messages m = {0};
    HL_TRY(hl_comm_gather(ctx, mine, sizeof(*mine), all));
    HL_AGREE(ctx, ctx->rank == 0 ? check(ctx, all) : HALO_OK);
    r->none = true;
    for (int k = 0; k < ctx->ranks; k++) r->none = r->none && same_piece(&all[k].have, &all[k].want);
    halo_status st = r->none ? HALO_OK : hl_agree(ctx, list_messages(ctx, all, periodic, &m));
    if (st == HALO_OK) st = hl_exchange_create(ctx, type, m.list, (int)m.n, &r->exchange);
    free(m.list);
    return st;
}

halo_status hl_redistribution_create(halo_context *ctx, halo_dtype type, const int64_t extent[HALO_DIMS], const bool periodic[HALO_DIMS], const hl_held *have,
                                     const hl_held *want, hl_redistribution **out)
{
    hl_redistribution *r = NULL;
    holding mine = {.have = *have, .want = *want}, *all = NULL;
    memcpy(mine.extent, extent, sizeof(mine.extent));
    halo_status st = hl_calloc(ctx, 1, sizeof(*r), "a redistribution", &r);
    if (st == HALO_OK) st = hl_calloc(ctx, (size_t)ctx->ranks, sizeof(*all), "a list of blocks", &all);
    st = hl_agree(ctx, st);
    if (st == HALO_OK) st = make(ctx, type, periodic, &mine, all, r);
    free(all);
    if (st == HALO_OK)
        *out = r;
    else
        hl_redistribution_destroy(r);
    return st;
}

void hl_redistribution_destroy(hl_redistribution *r)
{
    if (!r) return;
    hl_exchange_destroy(r->exchange);
    free(r);
}

bool hl_redistribution_none(const hl_redistribution *r) { return r->none; }

halo_status hl_redistribution_start(hl_redistribution *r, const void *from, void *to) { return hl_exchange_start(r->exchange, from, to); }

halo_status hl_redistribution_finish(hl_redistribution *r) { return hl_exchange_finish(r->exchange); }

void hl_redistribution_stats_get(hl_redistribution *r, hl_exchange_stats *stats, bool reset)
{
    *stats = (hl_exchange_stats){0};
    if (r->exchange) hl_exchange_stats_get(r->exchange, stats, reset);
}
