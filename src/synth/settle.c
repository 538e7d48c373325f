/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settle.c -- particles move between ranks.
 *
 * After each drift a particle belongs to the rank whose slab it is in, so that its cloud reaches at most one
 * plane into the neighbours' slabs. Those that have left are packed by destination, all their components, and
 * the others close the ranks. A particle may go to any rank: nothing limits how far one step takes it.
 */
#include "synth/assign.h"
#include "synth/particles.h"

typedef struct move {
    int ranks;
    int64_t *leave, *arrive;      /* [ranks] particles */
    size_t *out_bytes, *in_bytes; /* [ranks] */
    void **out, **in;             /* [ranks] into the packed arrays */
    double *packed, *unpacked;    /* [particles, components] */
    int64_t leaving, arriving;
} move;

static halo_status move_open(halo_context *ctx, int ranks, move *m)
{
    size_t n = (size_t)ranks;
    *m = (move){.ranks = ranks};
    HL_TRY(hl_calloc(ctx, n, sizeof(*m->leave), "a move", &m->leave));
    HL_TRY(hl_calloc(ctx, n, sizeof(*m->arrive), "a move", &m->arrive));
    HL_TRY(hl_calloc(ctx, n, sizeof(*m->out_bytes), "a move", &m->out_bytes));
    HL_TRY(hl_calloc(ctx, n, sizeof(*m->in_bytes), "a move", &m->in_bytes));
    HL_TRY(hl_calloc(ctx, n, sizeof(*m->out), "a move", &m->out));
    return hl_calloc(ctx, n, sizeof(*m->in), "a move", &m->in);
}

static void move_close(move *m)
{
    free(m->leave);
    free(m->arrive);
    free(m->out_bytes);
    free(m->in_bytes);
    free(m->out);
    free(m->in);
    free(m->packed);
    free(m->unpacked);
}

static int owner(const hl_mesh *mesh, hl_scale scale, double x)
{
    return (int)((int64_t)(x * scale.per_cell) / mesh->planes);
}

/* Where each destination's part of the packed array begins. */
static void lay_out(const int64_t *count, int ranks, int components, double *base, void **part, size_t *bytes)
{
    for (int r = 0; r < ranks; r++) {
        part[r] = base;
        bytes[r] = (size_t)(count[r] * components) * sizeof(double);
        base += count[r] * components;
    }
}

static halo_status count_leaving(halo_context *ctx, const hl_mesh *mesh, const hl_particles *p, move *m)
{
    hl_scale scale = hl_scale_of(mesh, p->box, 0.0);
    int here = hl_slabs_rank(mesh->slabs);

    for (int64_t i = 0; i < p->count; i++) {
        int to = owner(mesh, scale, p->x[0][i]);
        if (to == here) continue;
        m->leave[to]++;
        m->leaving++;
    }
    HL_TRY(hl_aligned(ctx, (size_t)(m->leaving * p->components) * sizeof(double), "a move", &m->packed));
    lay_out(m->leave, m->ranks, p->components, m->packed, m->out, m->out_bytes);
    return HALO_OK;
}

/* Copies those that leave out and closes the gaps. */
static void pack(const hl_mesh *mesh, hl_particles *p, move *m)
{
    hl_scale scale = hl_scale_of(mesh, p->box, 0.0);
    int here = hl_slabs_rank(mesh->slabs);
    int64_t kept = 0;

    for (int64_t i = 0; i < p->count; i++) {
        int to = owner(mesh, scale, p->x[0][i]);
        double *out = m->out[to];
        for (int c = 0; c < p->components; c++) {
            double *component = *hl_particles_component(p, c);
            if (to == here)
                component[kept] = component[i];
            else
                out[c] = component[i];
        }
        if (to == here)
            kept++;
        else
            m->out[to] = out + p->components;
    }
    p->count = kept;
    lay_out(m->leave, m->ranks, p->components, m->packed, m->out, m->out_bytes);
}

static halo_status make_room(halo_context *ctx, hl_particles *p, move *m)
{
    for (int r = 0; r < m->ranks; r++) m->arriving += m->arrive[r];
    HL_TRY(hl_aligned(ctx, (size_t)(m->arriving * p->components) * sizeof(double), "a move", &m->unpacked));
    lay_out(m->arrive, m->ranks, p->components, m->unpacked, m->in, m->in_bytes);
    int64_t needed = p->count + m->arriving;
    return needed <= p->capacity ? HALO_OK : hl_particles_reserve(ctx, needed + needed / 16, p);
}

static void unpack(hl_particles *p, const move *m)
{
    for (int64_t i = 0; i < m->arriving; i++)
        for (int c = 0; c < p->components; c++)
            (*hl_particles_component(p, c))[p->count + i] = m->unpacked[i * p->components + c];
    p->count += m->arriving;
}

halo_status hl_particles_settle(halo_context *ctx, const hl_mesh *mesh, hl_particles *p)
{
    move m;
    halo_status st;

    if (mesh->whole) return HALO_OK;
    st = move_open(ctx, hl_slabs_ranks(mesh->slabs), &m);
    if (st == HALO_OK) st = count_leaving(ctx, mesh, p, &m);
    HL_GOTO(st, hl_slabs_agree(mesh->slabs, st), close_move);
    pack(mesh, p, &m);
    HL_GOTO(st, hl_slabs_counts(mesh->slabs, m.leave, m.arrive), close_move);
    HL_GOTO(st, hl_slabs_agree(mesh->slabs, make_room(ctx, p, &m)), close_move);
    HL_GOTO(st, hl_slabs_exchange(mesh->slabs, m.out, m.out_bytes, m.in, m.in_bytes), close_move);
    unpack(p, &m);
close_move:
    move_close(&m);
    return st;
}
