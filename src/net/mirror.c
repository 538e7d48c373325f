/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror.c -- exchanges of values in memory that MPI cannot reach: they go on between host mirrors of the values. Before one starts, the cells that it sends, and
 * those that it adds to, come to the mirror; when it is done, the cells that it received go to the device, and no others, since what lies
 * between start and finish may have written those.
 */
#include "net/ir.h"

typedef struct part {
    halo_operand cells; /* of the value */
    hl_region region;   /* of the mirror */
    bool send, add;
} part;

struct hl_mirror {
    part *part;
    int parts;
    void *from, *to; /* one, but when blocks are gathered */
    void *dense;     /* the cells of the largest part */
    halo_dtype type;
};

void hl_mirror_free(hl_mirror *m)
{
    if (!m) return;
    if (m->from != m->to) free(m->from);
    free(m->to);
    free(m->dense);
    free(m->part);
    free(m);
}

halo_operand hl_region_box(const halo_operand *o, const hl_region *r)
{
    const bool last = o->layout == HALO_NDHWC; /* a run is of cells with all their channels */
    halo_operand b = {.dtype = o->dtype, .layout = o->layout};
    hl_strides t = hl_operand_strides(o);
    int64_t rest = r->offset - o->lo[HALO_N] * t.s[HALO_N];
    memcpy(b.alloc, o->alloc, sizeof(b.alloc));
    b.lo[HALO_N] = o->lo[HALO_N];
    for (int k = HALO_D; k < HALO_DIMS; k++) {
        b.lo[k] = rest / t.s[k];
        rest %= t.s[k];
    }
    for (int k = HALO_N; k < HALO_W; k++) b.ext[k] = r->count[k];
    b.ext[HALO_W] = r->run;
    if (last) b.ext[HALO_C] = o->alloc[HALO_C], b.ext[HALO_W] = r->run / o->alloc[HALO_C];
    HL_BUG_UNLESS(rest == 0 && hl_operand_valid(&b));
    return b;
}

/* The same memory with its dimensions in the order in which they lie: what the host sees of it is a region's elements one after another. */
static halo_operand in_order(const halo_operand *b)
{
    static const int from[HALO_DIMS] = {HALO_N, HALO_D, HALO_H, HALO_W, HALO_C};
    halo_operand o = {.dtype = b->dtype, .layout = HALO_NCDHW};
    if (b->layout != HALO_NDHWC) return *b;
    for (int k = 0; k < HALO_DIMS; k++) {
        o.alloc[k] = b->alloc[from[k]];
        o.lo[k] = b->lo[from[k]];
        o.ext[k] = b->ext[from[k]];
    }
    return o;
}

static halo_status memory(hl_program *p, int value, void **out)
{
    size_t bytes;
    if (!hl_operand_bytes(&p->value[value].operand, &bytes)) return hl_fail(p->ctx, HALO_ERR_SHAPE, "a value is too large");
    return hl_calloc(p->ctx, bytes, 1, "a mirror of a value that ranks exchange", out);
}

static halo_status fill(hl_program *p, const hl_transfer *t, const hl_message *message, int n, hl_mirror *m)
{
    int64_t most = 1;
    bool gather = t->kind == HL_TRANSFER_GATHER;
    HL_TRY(hl_calloc(p->ctx, (size_t)n + 1, sizeof(*m->part), "parts of a mirror", &m->part));
    m->type = p->value[t->to].operand.dtype;
    for (int i = 0; i < n; i++) {
        const halo_operand *o = &p->value[gather && message[i].send ? t->from : t->to].operand;
        if (hl_layout_block(o->layout) > 1)
            return hl_fail(p->ctx, HALO_ERR_UNSUPPORTED, "layer '%s': samples cannot be split over ranks in layout %s on this device yet: MPI cannot reach its memory",
                           hl_layer_of(p, t->layer)->name, hl_layout_name(o->layout));
        if (hl_region_elements(&message[i].region) == 0) continue;
        const halo_operand box = hl_region_box(o, &message[i].region);
        m->part[m->parts++] = (part){in_order(&box), message[i].region, message[i].send, message[i].add};
        most = hl_max64(most, hl_region_elements(&message[i].region));
    }
    HL_TRY(hl_calloc(p->ctx, (size_t)most, hl_dtype_size(m->type), "a part of a mirror", &m->dense));
    HL_TRY(memory(p, t->to, &m->to));
    m->from = m->to;
    return gather ? memory(p, t->from, &m->from) : HALO_OK;
}

halo_status hl_mirror_make(hl_program *p, const hl_transfer *t, const hl_message *message, int n, hl_mirror **out)
{
    hl_mirror *m;
    HL_TRY(hl_calloc(p->ctx, 1, sizeof(*m), "a mirror", &m));
    halo_status st = fill(p, t, message, n, m);
    if (st != HALO_OK)
        hl_mirror_free(m);
    else
        *out = m;
    return st;
}

halo_status hl_mirror_start(hl_program *p, hl_transfer *t, void *from, void *to)
{
    hl_mirror *m = t->mirror;
    for (int i = 0; i < m->parts; i++) {
        const part *e = &m->part[i];
        if (!e->send && !e->add) continue;
        bool source = e->send && m->from != m->to;
        HL_TRY(p->dev->ops->download(p->dev, &e->cells, source ? from : to, m->type, m->dense));
        hl_region_unpack(&e->region, m->type, false, m->dense, source ? m->from : m->to);
    }
    return hl_exchange_start(t->exchange, m->from, m->to);
}

halo_status hl_mirror_finish(hl_program *p, hl_transfer *t, void *to)
{
    hl_mirror *m = t->mirror;
    HL_TRY(hl_exchange_finish(t->exchange));
    for (int i = 0; i < m->parts; i++) {
        const part *e = &m->part[i];
        if (e->send) continue;
        hl_region_pack(&e->region, m->type, m->to, m->dense);
        HL_TRY(p->dev->ops->upload(p->dev, &e->cells, to, m->type, m->dense));
    }
    return HALO_OK;
}
