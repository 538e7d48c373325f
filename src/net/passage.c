/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passage.c -- what ranks exchange of values in device memory: the cells of each message are copied into a run of memory on the
 * device, sent, and copied or added to where they belong, axis after axis. What a rank would send to itself it takes from the sender's run. Runs are sent
 *
 *   over a link between the devices, in the order of the device's operations: the host waits for nothing, and there is nothing left to do when the transfer is to be finished. Between
 *   two ranks messages are matched by their order, which is that of their tags on both sides;
 *
 *   or by an MPI that takes addresses of device memory. The first axis is packed when the transfer starts; when it is to be finished, what computes meanwhile is on the device already:
 *   the host waits for the packing alone, by a queue that follows it, and MPI's messages pass while the device computes; those of all that have started leave together, so that nobody waits for
 *   what stands behind what it waits for itself. Further axes need the cells that came, and so come after what the device has to do.
 */
#include "net/ir.h"

enum { RUN_ALIGN = 256 };

typedef struct part {
    bool send, add;
    int stage, peer, tag;
    size_t at, bytes; /* of its run in `runs` */
    halo_plan *copy;
} part;

struct hl_passage {
    part *part; /* in the order of stage, peer, tag; sends before receives */
    int parts, stages;
    void *runs;
    int self;            /* this rank, as `peer` counts them */
    halo_link *link;     /* NULL: by MPI */
    halo_parcel *parcel;
    hl_exchange **by_mpi; /* [stages]; NULL: by the link */
    halo_queue *packed;
    hl_passage *next; /* of those that were started after this one and are not sent yet */
};

static void *run_of(const hl_passage *w, const part *e) { return (char *)w->runs + e->at; }

void hl_passage_free(hl_program *p, hl_passage *w)
{
    if (!w) return;
    for (int i = 0; i < w->parts; i++)
        if (w->part[i].copy) p->dev->classes[HALO_OP_COPY]->destroy(w->part[i].copy);
    for (int k = 0; w->by_mpi && k < w->stages; k++) hl_exchange_destroy(w->by_mpi[k]);
    if (w->packed) p->dev->ops->unqueue(p->dev, w->packed);
    if (w->runs) p->dev->ops->release(p->dev, w->runs);
    free(w->by_mpi);
    free(w->part);
    free(w->parcel);
    free(w);
}

static int by_order(const void *a, const void *b)
{
    const part *x = a, *y = b;
    if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
    if (x->send != y->send) return x->send ? -1 : 1;
    if (x->peer != y->peer) return x->peer < y->peer ? -1 : 1;
    return (x->tag > y->tag) - (x->tag < y->tag);
}

/* The copy between the value's cells and the run. */
static halo_status plan_copy(hl_program *p, const halo_operand *cells, part *e)
{
    const halo_operand run = hl_operand_whole(cells->dtype, cells->layout, cells->ext);
    halo_op_desc d = {.kind = HALO_OP_COPY, .accumulate = !e->send && e->add};
    halo_candidate c[HALO_MAX_CANDIDATES];
    d.t[HALO_X] = e->send ? *cells : run;
    d.t[HALO_Y] = e->send ? run : *cells;
    int n = hl_op_candidates(p->dev, &d, c);
    for (int i = 0; i < n; i++)
        if (c[i].scratch == 0) return p->dev->classes[HALO_OP_COPY]->plan(p->dev, &d, &c[i], &e->copy);
    return hl_fail(p->ctx, HALO_ERR_UNSUPPORTED, "this device cannot copy a part of a value of %s in layout %s", hl_dtype_name(cells->dtype), hl_layout_name(cells->layout));
}

static halo_status fill(hl_program *p, const hl_transfer *t, const hl_message *message, int n, hl_passage *w)
{
    const int first = w->link ? (int)(p->grid.data_at * hl_grid_group(&p->grid)) - p->opt.links->first : 0; /* of the group's ranks in the link */
    size_t at = 0;
    w->self = first + (int)hl_grid_number(&p->grid);
    HL_TRY(hl_calloc(p->ctx, (size_t)n + 1, sizeof(*w->part), "parts of an exchange", &w->part));
    HL_TRY(hl_calloc(p->ctx, (size_t)n + 1, sizeof(*w->parcel), "messages of an exchange", &w->parcel));
    for (int i = 0; i < n; i++) {
        const hl_message *m = &message[i];
        const halo_operand *o = &p->value[t->kind == HL_TRANSFER_GATHER && m->send ? t->from : t->to].operand, cells = hl_region_box(o, &m->region);
        if (hl_region_elements(&m->region) == 0) continue;
        part *e = &w->part[w->parts++];
        *e = (part){.send = m->send, .add = m->add, .stage = m->stage, .peer = first + m->peer, .tag = m->tag, .at = at};
        e->bytes = (size_t)hl_region_elements(&m->region) * hl_dtype_size(o->dtype);
        at += (size_t)hl_round_up((int64_t)e->bytes, RUN_ALIGN);
        if (w->stages <= m->stage) w->stages = m->stage + 1;
        HL_TRY(plan_copy(p, &cells, e));
    }
    qsort(w->part, (size_t)w->parts, sizeof(*w->part), by_order);
    return at > 0 ? p->dev->ops->alloc(p->dev, at, &w->runs) : HALO_OK;
}

/* A stage's messages between ranks, from run to run. All of the group make it, also those that have none. */
static halo_status make_stage(hl_program *p, const hl_transfer *t, hl_passage *w, int stage)
{
    const halo_dtype type = p->value[t->to].dtype;
    hl_message *m;
    int n = 0;
    HL_TRY(hl_calloc(p->ctx, (size_t)w->parts + 1, sizeof(*m), "messages of an exchange", &m));
    for (int i = 0; i < w->parts; i++) {
        const part *e = &w->part[i];
        const int64_t elements = (int64_t)(e->bytes / hl_dtype_size(type));
        if (e->stage != stage || e->peer == w->self) continue;
        m[n++] = (hl_message){.send = e->send, .peer = e->peer, .tag = e->tag, .region = {.run = elements, .count = {1, 1, 1, 1, 1}}, .run = run_of(w, e)};
    }
    halo_status st = hl_exchange_create(p->opt.team->group, type, m, n, &w->by_mpi[stage]);
    if (st == HALO_OK) hl_exchange_name(w->by_mpi[stage], hl_layer_of(p, t->layer)->name);
    free(m);
    return st;
}

static halo_status make_stages(hl_program *p, const hl_transfer *t, hl_passage *w)
{
    double stages = w->stages;
    HL_TRY(hl_comm_max(p->opt.team->group, &stages, 1));
    w->stages = (int)stages;
    HL_AGREE(p->opt.team->group, hl_calloc(p->ctx, (size_t)w->stages + 1, sizeof(*w->by_mpi), "an exchange between devices", &w->by_mpi));
    for (int stage = 0; stage < w->stages; stage++) HL_TRY(make_stage(p, t, w, stage));
    return hl_agree(p->opt.team->group, p->dev->ops->queue(p->dev, &w->packed));
}

halo_status hl_passage_make(hl_program *p, const hl_transfer *t, const hl_message *message, int n, halo_link *link, hl_passage **out)
{
    hl_passage *w;
    HL_TRY(hl_calloc(p->ctx, 1, sizeof(*w), "an exchange between devices", &w));
    w->link = link;
    halo_status st = fill(p, t, message, n, w);
    if (!link) st = hl_agree(p->opt.team->group, st);
    if (st == HALO_OK && !link) st = make_stages(p, t, w);
    if (st != HALO_OK)
        hl_passage_free(p, w);
    else
        *out = w;
    return st;
}

static halo_status copy(hl_program *p, const part *e, void *x, void *y)
{
    halo_op_args args = {.record = &p->record};
    args.ptr[HALO_X] = x;
    args.ptr[HALO_Y] = y;
    return p->dev->classes[HALO_OP_COPY]->run(e->copy, &args);
}

/* What this rank sends to itself under that tag. */
static const part *own(const hl_passage *w, const part *receive)
{
    for (int i = 0; i < w->parts; i++) {
        const part *e = &w->part[i];
        if (e->send && e->stage == receive->stage && e->peer == receive->peer && e->tag == receive->tag) return e;
    }
    return receive;
}

static halo_status pack(hl_program *p, const hl_transfer *t, int stage, void *from, void *to)
{
    const hl_passage *w = t->passage;
    for (int i = 0; i < w->parts; i++) {
        const part *e = &w->part[i];
        if (e->stage == stage && e->send) HL_TRY(copy(p, e, t->kind == HL_TRANSFER_GATHER ? from : to, run_of(w, e)));
    }
    return HALO_OK;
}

static halo_status unpack(hl_program *p, const hl_passage *w, int stage, void *to)
{
    for (int i = 0; i < w->parts; i++) {
        const part *e = &w->part[i];
        if (e->stage == stage && !e->send) HL_TRY(copy(p, e, run_of(w, e->peer == w->self ? own(w, e) : e), to));
    }
    return HALO_OK;
}

static halo_status move(hl_program *p, const hl_passage *w, int stage)
{
    int n = 0;
    for (int i = 0; i < w->parts; i++) {
        const part *e = &w->part[i];
        if (e->stage == stage && e->peer != w->self) w->parcel[n++] = (halo_parcel){.peer = e->peer, .send = e->send, .ptr = run_of(w, e), .bytes = e->bytes};
    }
    return n > 0 ? p->dev->ops->link_move(p->dev, w->link, w->parcel, n, NULL) : HALO_OK;
}

/* The runs of the last time have left, and are filled anew. */
static halo_status pack_for_mpi(hl_program *p, const hl_transfer *t, int stage, void *from, void *to)
{
    hl_passage *w = t->passage;
    HL_TRY(hl_exchange_settle(w->by_mpi[stage]));
    HL_TRY(pack(p, t, stage, from, to));
    return p->dev->ops->follow(p->dev, w->packed, NULL);
}

static halo_status start_by_mpi(hl_program *p, const hl_transfer *t, void *from, void *to)
{
    hl_passage **last = &p->packed;
    if (t->passage->stages == 0) return HALO_OK;
    while (*last) last = &(*last)->next;
    *last = t->passage;
    t->passage->next = NULL;
    return pack_for_mpi(p, t, 0, from, to);
}

bool hl_passage_on_device(const hl_passage *w) { return w->link != NULL; }

halo_status hl_passage_start(hl_program *p, const hl_transfer *t, void *from, void *to)
{
    const hl_passage *w = t->passage;
    if (!w->link) return start_by_mpi(p, t, from, to);
    for (int stage = 0; stage < w->stages; stage++) {
        HL_TRY(pack(p, t, stage, from, to));
        HL_TRY(move(p, w, stage));
        HL_TRY(unpack(p, w, stage, to));
    }
    return HALO_OK;
}

static halo_status send(hl_program *p, const hl_passage *w, int stage)
{
    HL_TRY(p->dev->ops->wait(p->dev, w->packed));
    return hl_exchange_start(w->by_mpi[stage], NULL, NULL);
}

halo_status hl_passage_finish(hl_program *p, const hl_transfer *t, void *from, void *to)
{
    const hl_passage *w = t->passage;
    if (w->link) return HALO_OK;
    for (; p->packed; p->packed = p->packed->next) HL_TRY(send(p, p->packed, 0));
    for (int stage = 0; stage < w->stages; stage++) {
        if (stage > 0) {
            HL_TRY(pack_for_mpi(p, t, stage, from, to));
            HL_TRY(send(p, w, stage));
        }
        HL_TRY(hl_exchange_finish(w->by_mpi[stage]));
        HL_TRY(unpack(p, w, stage, to));
    }
    return HALO_OK;
}

void hl_passage_stats(const hl_passage *w, hl_exchange_stats *stats)
{
    *stats = (hl_exchange_stats){0};
    for (int stage = 0; w->by_mpi && stage < w->stages; stage++) {
        hl_exchange_stats s;
        hl_exchange_stats_get(w->by_mpi[stage], &s, false);
        stats->runs = s.runs;
        stats->messages += s.messages;
        stats->bytes += s.bytes;
        stats->seconds += s.seconds;
        stats->exposed += s.exposed;
    }
}
