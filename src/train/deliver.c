/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deliver.c -- predicted volumes to the visitor of rank 0, in slabs of some MiB: planes of one channel of one rank's block, which lie together in its memory.
 * Sample by sample, and in it rank by rank of those that hold it together: rank 0 receives in the order in which each of the others sends, holds one slab beside
 * its own block, and nobody holds a whole volume.
 */
#include "comm/comm.h"
#include "train/deliver.h"

#define SLAB_BYTES (INT64_C(4) << 20)

struct hl_delivery {
    const hl_run *run;
    hl_source *source;
    hl_transport *transport; /* NULL: one rank */
    hl_cells *box;           /* [ranks] */
    int64_t planes;          /* of a slab of any rank: at most */
    float *slab;             /* rank 0 */
};

bool hl_delivers(const hl_run *run, const hl_cells *box, const int64_t ext[3], int64_t number)
{
    bool whole = box->ext[0] == ext[0] && box->ext[1] == ext[1] && box->ext[2] == ext[2];
    return number == 0 || !whole || hl_grid_group(&run->grid) == 1;
}

static int64_t planes_of(const hl_cells *box)
{
    return hl_max64(1, hl_min64(box->ext[0], SLAB_BYTES / (box->ext[1] * box->ext[2] * (int64_t)sizeof(float))));
}

static halo_status allocate(hl_delivery *d)
{
    halo_context *ctx = d->run->ctx;
    int64_t most = 0;
    if (ctx->rank != 0) return HALO_OK;
    for (int r = 1; r < ctx->ranks; r++) most = hl_max64(most, planes_of(&d->box[r]) * d->box[r].ext[1] * d->box[r].ext[2]);
    return hl_calloc(ctx, (size_t)most, sizeof(float), "a slab of a prediction", &d->slab);
}

halo_status hl_delivery_create(const hl_run *run, hl_source *source, const hl_cells *box, hl_delivery **out)
{
    hl_delivery *d = NULL;
    halo_context *ctx = run->ctx;
    halo_status st = hl_calloc(ctx, 1, sizeof(*d), "the delivery of predictions", &d);
    if (st == HALO_OK) st = hl_calloc(ctx, (size_t)ctx->ranks, sizeof(*d->box), "the blocks of ranks", &d->box);
    HL_GOTO(st, hl_agree(ctx, st), destroy);
    d->run = run;
    d->source = source;
    HL_GOTO(st, hl_comm_gather(ctx, box, sizeof(*box), d->box), destroy);
    HL_GOTO(st, hl_agree(ctx, allocate(d)), destroy);
    if (ctx->ranks > 1) HL_GOTO(st, hl_transport_open(ctx, &d->transport), destroy);
    *out = d;
    return HALO_OK;
destroy:
    hl_delivery_destroy(d);
    return st;
}

void hl_delivery_destroy(hl_delivery *d)
{
    if (!d) return;
    if (d->transport) hl_transport_close(d->transport);
    free(d->slab);
    free(d->box);
    free(d);
}

/* Gives *value to rank 0, where it then is the slab. */
static halo_status pass_on(const hl_delivery *d, int from, int64_t cells, const float **value)
{
    hl_request request = {0};
    size_t bytes = (size_t)cells * sizeof(float);
    if (from == 0) return HALO_OK;
    if (d->run->ctx->rank == from) HL_TRY(d->transport->ops->isend(d->transport, *value, bytes, 0, 0, &request));
    else HL_TRY(d->transport->ops->irecv(d->transport, d->slab, bytes, from, 0, &request));
    HL_TRY(hl_transport_wait(d->transport, &request));
    *value = d->slab;
    return HALO_OK;
}

/* A sample's block of one rank; what the visitor says is kept, so that senders find their receiver until all agree on it. */
static halo_status deliver_block(const hl_delivery *d, int rank, int64_t sample, const float *block, hl_visit_prediction visit, void *user, halo_status *said)
{
    const hl_cells *box = &d->box[rank];
    hl_prediction p = {.sample = sample, .lo = {0, 0, box->lo[1], box->lo[2]}, .ext = {1, 0, box->ext[1], box->ext[2]}};
    int64_t plane = box->ext[1] * box->ext[2], planes = planes_of(box);
    for (int64_t c = 0; c < d->source->info.targets; c++)
        for (int64_t first = 0; first < box->ext[0]; first += planes) {
            p.lo[0] = c;
            p.lo[1] = box->lo[0] + first;
            p.ext[1] = hl_min64(planes, box->ext[0] - first);
            p.value = block ? block + (c * box->ext[0] + first) * plane : NULL;
            HL_TRY(pass_on(d, rank, p.ext[1] * plane, &p.value));
            if (d->run->ctx->rank == 0 && *said == HALO_OK) *said = visit(user, d->source, &p);
        }
    return HALO_OK;
}

halo_status hl_deliver(const hl_delivery *d, int64_t batch, const int64_t *ids, const float *prediction, hl_visit_prediction visit, void *user)
{
    const hl_run *run = d->run;
    const int64_t group = hl_grid_group(&run->grid);
    halo_status said = HALO_OK;
    for (int64_t i = 0; i < batch * run->grid.data; i++)
        for (int64_t number = 0; number < group && ids[i] >= 0; number++) {
            int rank = (int)(i / batch * group + number), me = run->ctx->rank;
            const hl_cells *box = &d->box[rank];
            if ((me != 0 && me != rank) || !hl_delivers(run, box, d->source->info.target_ext, number)) continue;
            const float *block = me == rank ? prediction + i % batch * d->source->info.targets * box->ext[0] * box->ext[1] * box->ext[2] : NULL;
            HL_TRY(deliver_block(d, rank, ids[i], block, visit, user, &said));
        }
    return said;
}
