/* SPDX-License-Identifier: Apache-2.0 */
/* reduction.c -- see reduction.h. */
#include "comm/reduction.h"

#include "base/clock.h"
#include "tensor/operand.h"

halo_status hl_reduction_create(halo_context *ctx, hl_transport *t, halo_dtype type, hl_wire wire, int64_t segment, int fan, hl_reduction *r)
{
    size_t piece = (size_t)segment * hl_wire_size(wire, type);
    hl_reduction made = {.transport = t, .math = hl_wire_arithmetic(wire, type), .type = type, .wire = wire, .segment = segment, .fan = fan};
    halo_status st;
    HL_GOTO(st, hl_aligned(ctx, HL_WINDOW * (size_t)fan * piece, "a reduction's messages", &made.in), undo);
    if (made.math->encode) HL_GOTO(st, hl_aligned(ctx, HL_WINDOW * piece, "a reduction's messages", &made.out), undo);
    HL_GOTO(st, hl_calloc(ctx, HL_WINDOW * (size_t)fan, sizeof(*made.arriving), "a reduction's messages", &made.arriving), undo);
    HL_GOTO(st, hl_calloc(ctx, (size_t)fan, sizeof(*made.parts), "a reduction's messages", &made.parts), undo);
    *r = made;
    return HALO_OK;
undo:
    hl_reduction_destroy(&made);
    return st;
}

void hl_reduction_destroy(hl_reduction *r)
{
    free(r->in);
    free(r->out);
    free(r->arriving);
    free(r->parts);
    *r = (hl_reduction){0};
}

static char *element(const hl_reduction *r, int64_t i) { return r->buffer + (size_t)i * hl_dtype_size(r->type); }

static const hl_round *this_round(const hl_reduction *r) { return &r->route->round[r->round]; }

static size_t wire_bytes(const hl_reduction *r, int64_t n) { return (size_t)n * hl_wire_size(r->wire, r->type); }

/* Where receive k of block b lands: straight in its place where nothing is to be done with it. */
static void *landing(const hl_reduction *r, int b, int k, const hl_piece *p)
{
    if (this_round(r)->kind == HL_ROUND_COPY && !r->math->decode) return element(r, p->lo);
    return r->in + ((size_t)(b % HL_WINDOW) * (size_t)r->fan + (size_t)k) * wire_bytes(r, r->segment);
}

static hl_request *arrival(const hl_reduction *r, int b, int k) { return &r->arriving[(b % HL_WINDOW) * r->fan + k]; }

static int blocks(const hl_round *round) { return round->recvs / round->fan; }

static halo_status post_receives(hl_reduction *r)
{
    const hl_round *round = this_round(r);
    for (; r->asked < blocks(round) && r->asked < r->taken + HL_WINDOW; r->asked++)
        for (int k = 0; k < round->fan; k++) {
            const hl_piece *p = &r->route->recv[round->recv + r->asked * round->fan + k];
            HL_TRY(r->transport->ops->irecv(r->transport, landing(r, r->asked, k, p), wire_bytes(r, p->n), p->peer, r->tag,
                                            arrival(r, r->asked, k)));
        }
    return HALO_OK;
}

static halo_status post_sends(hl_reduction *r)
{
    const hl_round *round = this_round(r);
    for (; r->posted < round->sends && r->posted < r->sent + HL_WINDOW; r->posted++) {
        const hl_piece *p = &r->route->send[round->send + r->posted];
        const void *from = element(r, p->lo);
        if (r->math->encode) {
            char *scratch = r->out + (size_t)(r->posted % HL_WINDOW) * wire_bytes(r, r->segment);
            r->math->encode(p->n, from, scratch);
            from = scratch;
        }
        HL_TRY(r->transport->ops->isend(r->transport, from, wire_bytes(r, p->n), p->peer, r->tag, &r->leaving[r->posted % HL_WINDOW]));
    }
    return HALO_OK;
}

static halo_status retire_sends(hl_reduction *r)
{
    for (bool done = true; r->sent < r->posted; r->sent++) {
        HL_TRY(r->transport->ops->test(r->transport, &r->leaving[r->sent % HL_WINDOW], &done));
        if (!done) break;
    }
    return HALO_OK;
}

static halo_status arrived(hl_reduction *r, int b, bool *all)
{
    *all = true;
    for (int k = 0; k < this_round(r)->fan; k++) {
        bool done;
        HL_TRY(r->transport->ops->test(r->transport, arrival(r, b, k), &done));
        *all = *all && done;
    }
    return HALO_OK;
}

/* Adds a block, or unpacks it. */
static void take(hl_reduction *r, int b)
{
    const hl_round *round = this_round(r);
    const hl_piece *p = &r->route->recv[round->recv + b * round->fan];
    if (round->kind == HL_ROUND_COPY) {
        if (r->math->decode) r->math->decode(p->n, landing(r, b, 0, p), element(r, p->lo));
        return;
    }
    for (int k = 0; k < round->fan; k++) r->parts[k] = landing(r, b, k, p);
    r->math->sum(p->n, round->fan, round->before, r->parts, element(r, p->lo));
}

static halo_status retire_receives(hl_reduction *r)
{
    for (bool all; r->taken < r->asked; r->taken++) {
        HL_TRY(arrived(r, r->taken, &all));
        if (!all) break;
        take(r, r->taken);
        HL_TRY(post_sends(r)); /* a long addition must not keep the partner waiting */
    }
    return HALO_OK;
}

/* One round as far as it goes. */
static halo_status go_on(hl_reduction *r, bool *over)
{
    const hl_round *round = this_round(r);
    *over = false;
    if (round->kind == HL_ROUND_SETTLE && r->math->settle) r->math->settle(round->n, element(r, round->lo));
    for (int before = -1; before != r->taken + r->sent;) {
        before = r->taken + r->sent;
        HL_TRY(post_receives(r));
        HL_TRY(post_sends(r));
        HL_TRY(retire_receives(r));
        HL_TRY(retire_sends(r));
    }
    *over = r->taken == blocks(round) && r->sent == round->sends;
    return HALO_OK;
}

static void begin_round(hl_reduction *r, int round)
{
    r->round = round;
    r->asked = r->taken = r->posted = r->sent = 0;
}

halo_status hl_reduction_start(hl_reduction *r, const hl_route *route, void *buffer, void *error, int tag)
{
    HL_BUG_UNLESS(!r->route && route->fan <= r->fan);
    r->buffer = buffer;
    r->tag = tag;
    if (route->rounds == 0) return HALO_OK;
    r->route = route;
    if (r->math->feed && error)
        r->math->feed(route->elements, buffer, error);
    else if (r->math->settle)
        r->math->settle(route->elements, buffer);
    begin_round(r, 0);
    return HALO_OK;
}

halo_status hl_reduction_test(hl_reduction *r, bool *done)
{
    *done = false;
    while (r->route) {
        bool over;
        HL_TRY(go_on(r, &over));
        if (!over) return HALO_OK;
        begin_round(r, r->round + 1);
        if (r->round == r->route->rounds) r->route = NULL;
    }
    *done = true;
    return HALO_OK;
}

halo_status hl_reduction_run(hl_reduction *r, const hl_route *route, void *buffer, void *error, int tag)
{
    HL_TRY(hl_reduction_start(r, route, buffer, error, tag));
    double since = hl_now();
    for (bool done = false; !done;) {
        int before = r->round + r->taken + r->sent;
        HL_TRY(hl_reduction_test(r, &done));
        if (before != r->round + r->taken + r->sent) since = hl_now();
        if (!done) hl_pause(since);
    }
    return HALO_OK;
}

int hl_reduction_peer(const hl_reduction *r)
{
    if (!r->route) return -1;
    const hl_round *round = this_round(r);
    if (r->taken < blocks(round)) return r->route->recv[round->recv + r->taken * round->fan].peer;
    return r->sent < round->sends ? r->route->send[round->send + r->sent].peer : -1;
}
