/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passage.c -- what ranks exchange of values in device memory, over a link between the devices: the cells of each message are copied into a run of memory on the
 * device, sent, and copied or added to where they belong, axis after axis, all in the order of the device's operations. The host waits for nothing, and there is nothing left to do
 * when the transfer is to be finished.
 *
 * Between two ranks messages are matched by their order, which is that of their tags on both sides. What a rank would send to itself it takes from the sender's run.
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
    halo_parcel *parcel;
};

void hl_passage_free(hl_program *p, hl_passage *w)
{
    if (!w) return;
    for (int i = 0; i < w->parts; i++)
        if (w->part[i].copy) p->dev->classes[HALO_OP_COPY]->destroy(w->part[i].copy);
    if (w->runs) p->dev->ops->release(p->dev, w->runs);
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
    const int first = (int)(p->grid.data_at * hl_grid_group(&p->grid)); /* of the group's ranks in the link */
    size_t at = 0;
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

halo_status hl_passage_make(hl_program *p, const hl_transfer *t, const hl_message *message, int n, hl_passage **out)
{
    hl_passage *w;
    HL_TRY(hl_calloc(p->ctx, 1, sizeof(*w), "an exchange between devices", &w));
    halo_status st = fill(p, t, message, n, w);
    if (st != HALO_OK)
        hl_passage_free(p, w);
    else
        *out = w;
    return st;
}

static void *run_of(const hl_passage *w, const part *e) { return (char *)w->runs + e->at; }

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

static halo_status run_stage(hl_program *p, hl_transfer *t, int stage, void *from, void *to)
{
    hl_passage *w = t->passage;
    const int self = p->ctx->rank;
    int parcels = 0;
    for (int i = 0; i < w->parts; i++) {
        const part *e = &w->part[i];
        if (e->stage != stage) continue;
        if (e->send) HL_TRY(copy(p, e, t->kind == HL_TRANSFER_GATHER ? from : to, run_of(w, e)));
        if (e->peer != self) w->parcel[parcels++] = (halo_parcel){.peer = e->peer, .send = e->send, .ptr = run_of(w, e), .bytes = e->bytes};
    }
    if (parcels > 0) HL_TRY(p->dev->ops->link_move(p->dev, p->opt.links->order, w->parcel, parcels, NULL));
    for (int i = 0; i < w->parts; i++) {
        const part *e = &w->part[i];
        if (e->stage == stage && !e->send) HL_TRY(copy(p, e, run_of(w, e->peer == self ? own(w, e) : e), to));
    }
    return HALO_OK;
}

halo_status hl_passage_run(hl_program *p, hl_transfer *t, void *from, void *to)
{
    for (int stage = 0; stage < t->passage->stages; stage++) HL_TRY(run_stage(p, t, stage, from, to));
    return HALO_OK;
}
