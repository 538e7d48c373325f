/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_sums.c -- sums of gradients in two levels, for links between the devices of a node: a group of n elements over L devices of each of M nodes is
 *
 *     reduce-scattered in the node by its devices, so that each holds the node's sum of its slice, n / L elements;
 *     summed between the nodes by MPI, by the ranks of the same number on their nodes, each its slice, in memory of the host's that the device reaches;
 *     gathered in the node by its devices
 *
 * (the hierarchical allreduce of Sergeev & Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow", 2018, and of Kurth et al., "Exascale deep learning for climate
 * analytics", 2018). A node sends 2 (M - 1) / M n elements through its network, its ranks each their part at once. Slices are equal and begin where loads are aligned; what is left
 * behind them, fewer than L times UNIT bytes, is summed in the node as it is and goes with the last rank's slice, whose sum the others get by adding zeros to it.
 *
 * Slices leave the device as backward goes on; the host learns of each by a queue that follows its copy. MPI's sums come in the reducer's order, and gathers, after all slices
 * have left, in that in which these did: so all ranks of a node call the same in the same order. All nodes hold equal bits since the reducer's ranks do.
 */
#include "net/ir.h"

#include "base/clock.h"

enum { UNIT = 64, PAGE = 4096 }; /* bytes */

/* A group. */
typedef struct share {
    int64_t lo, each, rest; /* elements of the gradients: a slice of `each` for every rank of the node, from lo on, and what is left behind them */
    int64_t at, n;          /* this rank's, in `host` */
    bool here;              /* its sum has come in this step */
} share;

struct hl_node_sums {
    int groups;
    share *share;
    char *host;
    int *order;     /* [groups] as they left */
    int left, told; /* groups whose slices are on their way, and those that the reducer knows of */
};

void hl_node_sums_free(hl_program *p)
{
    hl_node_sums *s = p->node_sums;
    if (!s) return;
    if (s->host) p->dev->ops->unpin(p->dev, s->host);
    free(s->share);
    free(s->order);
    free(s);
    p->node_sums = NULL;
}

static size_t element(const hl_program *p) { return hl_dtype_size(p->model->dev->master); }

static share share_of(const hl_links *l, int64_t lo, int64_t hi, int64_t unit, int64_t at)
{
    share s = {.lo = lo, .each = (hi - lo) / l->size / unit * unit, .at = at};
    s.rest = hi - lo - l->size * s.each;
    s.n = s.each + (l->rank == l->size - 1 ? s.rest : 0);
    return s;
}

/* Where the reducer finds the slice of a group: from the first of its gradients to the last. */
static void place(hl_gradient *gradient, const hl_group *g, const share *s)
{
    for (int i = g->first; i < g->last; i++) gradient[i].lo = gradient[i].hi = s->at;
    gradient[g->last - 1].hi = s->at + s->n;
}

halo_status hl_program_share_sums(hl_program *p, hl_reducer_options *o, hl_gradient *gradient)
{
    const hl_links *l = p->opt.links;
    const int64_t size = (int64_t)element(p);
    hl_node_sums *s;
    int64_t at = 0;
    HL_BUG_UNLESS(l && l->between && !p->node_sums);
    HL_TRY(hl_calloc(p->ctx, 1, sizeof(*s), "sums between nodes", &s));
    p->node_sums = s;
    s->groups = o->groups;
    HL_TRY(hl_calloc(p->ctx, (size_t)o->groups, sizeof(*s->share), "sums between nodes", &s->share));
    HL_TRY(hl_calloc(p->ctx, (size_t)o->groups, sizeof(*s->order), "sums between nodes", &s->order));
    for (int g = 0; g < o->groups; g++) {
        const hl_group *d = &o->group[g];
        s->share[g] = share_of(l, gradient[d->first].lo, gradient[d->last - 1].hi, UNIT / size, at);
        at += hl_round_up(s->share[g].n + 1, PAGE / size); /* a page of its own: what one group does with it says nothing of another */
        place(gradient, d, &s->share[g]);
    }
    HL_TRY(p->dev->ops->pin(p->dev, (size_t)(at * size), (void **)&s->host));
    o->buffer = s->host;
    return HALO_OK;
}

/* ----------------------------------------------------------------------------------------------------------- out */

static char *gradient_at(const hl_program *p, int64_t i) { return (char *)p->model->base[HL_GRADIENT] + (size_t)i * element(p); }

static char *own(const hl_program *p, const share *s) { return gradient_at(p, s->lo + p->opt.links->rank * s->each); }

static halo_queue *mark(const hl_program *p, int k) { return p->opt.links->mark[k % HL_LINK_MARKS]; }

/* The slice that left as number `told` is in the host's memory: the reducer may sum it. */
static halo_status tell(hl_program *p)
{
    hl_node_sums *s = p->node_sums;
    hl_group g = hl_reducer_group_of(p->reducer, s->order[s->told]);
    const double since = hl_now();
    for (bool done = false;;) {
        HL_TRY(p->dev->ops->done(p->dev, mark(p, s->told), &done));
        if (done) break;
        hl_reducer_poll(p->reducer);
        hl_pause(since);
    }
    for (int i = g.first; i < g.last; i++) hl_reducer_ready(p->reducer, i);
    s->told++;
    return HALO_OK;
}

static halo_status scatter(hl_program *p, const share *s)
{
    const halo_device_ops *ops = p->dev->ops;
    const hl_links *l = p->opt.links;
    const halo_dtype type = p->model->dev->master;
    HL_TRY(ops->follow(p->dev, l->beside, NULL));
    if (s->each > 0) HL_TRY(ops->link_scatter(p->dev, l->sums, gradient_at(p, s->lo), type, s->each, l->beside));
    if (s->rest > 0) HL_TRY(ops->link_sum(p->dev, l->sums, gradient_at(p, s->lo + l->size * s->each), type, s->rest, l->beside));
    return ops->copy(p->dev, p->node_sums->host + (size_t)s->at * element(p), own(p, s), (size_t)s->n * element(p), l->beside);
}

static int group_at(const hl_node_sums *s, int64_t lo)
{
    int g = 0;
    while (g < s->groups && s->share[g].lo != lo) g++;
    HL_BUG_UNLESS(g < s->groups);
    return g;
}

halo_status hl_node_sums_out(hl_program *p, int64_t lo)
{
    hl_node_sums *s = p->node_sums;
    const int g = group_at(s, lo);
    if (s->left == 0) hl_reducer_begin(p->reducer);
    if (s->left - s->told == HL_LINK_MARKS) HL_TRY(tell(p));
    HL_TRY(scatter(p, &s->share[g]));
    HL_TRY(p->dev->ops->follow(p->dev, mark(p, s->left), p->opt.links->beside));
    s->share[g].here = false;
    s->order[s->left++] = g;
    return HALO_OK;
}

/* ----------------------------------------------------------------------------------------------------------- back */

static halo_status gather(hl_program *p, const share *s)
{
    const halo_device_ops *ops = p->dev->ops;
    const hl_links *l = p->opt.links;
    const halo_dtype type = p->model->dev->master;
    char *rest = gradient_at(p, s->lo + l->size * s->each);
    HL_TRY(ops->copy(p->dev, own(p, s), p->node_sums->host + (size_t)s->at * element(p), (size_t)s->n * element(p), l->beside));
    if (s->each > 0) HL_TRY(ops->link_gather(p->dev, l->sums, gradient_at(p, s->lo), type, s->each, l->beside));
    if (s->rest == 0) return HALO_OK;
    if (l->rank < l->size - 1) HL_TRY(ops->fill(p->dev, rest, 0, (size_t)s->rest * element(p), l->beside));
    return ops->link_sum(p->dev, l->sums, rest, type, s->rest, l->beside);
}

static void note_arrivals(hl_program *p)
{
    for (int g;;) {
        hl_reducer_try(p->reducer, &g);
        if (g < 0) return;
        p->node_sums->share[g].here = true;
    }
}

static halo_status wait_for(hl_program *p, int group)
{
    while (!p->node_sums->share[group].here) {
        int g;
        HL_TRY(hl_reducer_next(p->reducer, &g));
        HL_BUG_UNLESS(g >= 0);
        p->node_sums->share[g].here = true;
    }
    return HALO_OK;
}

halo_status hl_node_sums_in(hl_program *p)
{
    hl_node_sums *s = p->node_sums;
    HL_BUG_UNLESS(s->left == s->groups);
    while (s->told < s->left) {
        HL_TRY(tell(p));
        note_arrivals(p);
    }
    for (int k = 0; k < s->groups; k++) {
        HL_TRY(wait_for(p, s->order[k]));
        HL_TRY(gather(p, &s->share[s->order[k]]));
    }
    s->left = s->told = 0;
    HL_TRY(hl_reducer_finish(p->reducer));
    return p->dev->ops->follow(p->dev, NULL, p->opt.links->beside);
}

halo_status hl_node_sums_numbers(hl_program *p)
{
    double v[HALO_NUM_FACTOR];
    const halo_operand o = hl_operand_flat(HALO_F64, HALO_NUM_FACTOR);
    HL_TRY(p->dev->ops->download(p->dev, &o, hl_storage_of(p, p->numbers), HALO_F64, v));
    HL_TRY(hl_comm_sum(p->ctx, v, HALO_NUM_FACTOR));
    return p->dev->ops->upload(p->dev, &o, hl_storage_of(p, p->numbers), HALO_F64, v);
}
