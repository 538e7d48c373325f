/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c -- links between the devices of all ranks, or of each node's, and sums over them.
 *
 * There are two of all ranks. What goes over one link is done in one order, and the sums of gradients, which go on beside the backward pass on a queue of their own, must not hold up the margins that the
 * next layer waits for. A group's sum is a step of the program behind the last one that writes a gradient of it; the updates begin when all sums are
 * there. The order of steps is that of all ranks, so nobody needs to ask who is ready. Where ranks hold samples together, each of their groups has a link, and so have the ranks at the same place
 * of all groups, for the statistics of norms.
 */
#include "net/ir.h"

#include "base/clock.h"

/* One link of each node's ranks, or of all: all of the context could, or why this one could not; the others' reasons are their own. */
static halo_status try_link(halo_context *ctx, halo_context *of, halo_device *dev, halo_link **link)
{
    unsigned char id[HALO_LINK_ID] = {0};
    halo_status mine = of->rank == 0 ? dev->ops->link_id(dev, id) : HALO_OK;
    double bad = mine != HALO_OK;
    HL_TRY(hl_comm_sum(ctx, &bad, 1));
    if (bad > 0) return HALO_ERR_UNSUPPORTED;
    HL_TRY(hl_comm_broadcast(of, id, sizeof(id), 0));
    mine = dev->ops->link(dev, id, of->ranks, of->rank, link);
    bad = mine != HALO_OK;
    HL_TRY(hl_comm_sum(ctx, &bad, 1));
    return bad > 0 ? HALO_ERR_UNSUPPORTED : HALO_OK;
}

static halo_status make_queues(halo_device *dev, hl_links *l)
{
    HL_TRY(dev->ops->queue(dev, &l->beside));
    for (int k = 0; l->between && k < HL_LINK_MARKS; k++) HL_TRY(dev->ops->queue(dev, &l->mark[k]));
    return HALO_OK;
}

/* `of`: the ranks that they are between, all of the team or those of a node. */
static halo_status open_links(const hl_team *team, halo_context *of, halo_device *dev, hl_links *l)
{
    halo_context *ctx = team->world;
    const bool parts = of == ctx && team->group->ranks > 1 && team->peers->ranks > 1;
    l->size = of->ranks;
    l->rank = of->rank;
    l->first = ctx->rank - of->rank;
    HL_TRY(try_link(ctx, of, dev, &l->order));
    HL_TRY(try_link(ctx, of, dev, &l->sums));
    if (parts) HL_TRY(try_link(ctx, team->group, dev, &l->group));
    if (parts) HL_TRY(try_link(ctx, team->peers, dev, &l->peers));
    halo_status mine = make_queues(dev, l);
    double bad = mine != HALO_OK;
    HL_TRY(hl_comm_sum(ctx, &bad, 1));
    return bad > 0 ? HALO_ERR_UNSUPPORTED : HALO_OK;
}

static halo_status open_nodes(const hl_team *team, halo_device *dev, hl_links *l)
{
    halo_context *ctx = team->world;
    const hl_place at = hl_comm_place(ctx);
    halo_context *node;
    HL_TRY(hl_comm_inner(ctx, at.local, at.local, at.node_size, &l->between));
    HL_TRY(hl_comm_inner(ctx, at.node, at.node * at.node_size, 1, &node));
    halo_status st = open_links(team, node, dev, l);
    halo_context_destroy(node);
    return st;
}

void hl_links_close(halo_device *dev, hl_links *links)
{
    if (!links) return;
    for (int k = 0; k < HL_LINK_MARKS; k++)
        if (links->mark[k]) dev->ops->unqueue(dev, links->mark[k]);
    if (links->beside) dev->ops->unqueue(dev, links->beside);
    if (links->peers) dev->ops->unlink(dev, links->peers);
    if (links->group) dev->ops->unlink(dev, links->group);
    if (links->sums) dev->ops->unlink(dev, links->sums);
    if (links->order) dev->ops->unlink(dev, links->order);
    halo_context_destroy(links->between);
    free(links);
}

/* Closed again where it is not to be. */
static halo_status try_links(const hl_team *team, halo_device *dev, bool nodes, hl_links **links)
{
    halo_context *ctx = team->world;
    HL_AGREE(ctx, hl_calloc(ctx, 1, sizeof(**links), "links between devices", links));
    halo_status st = nodes ? open_nodes(team, dev, *links) : open_links(team, ctx, dev, *links);
    if (st == HALO_OK) return HALO_OK;
    hl_links_close(dev, *links);
    *links = NULL;
    return st;
}

static halo_status by_host(halo_context *ctx, const char *why)
{
    if (ctx->rank == 0) HL_WARN(ctx, "the ranks' devices cannot exchange data among themselves, so it goes by way of the host: %s", why);
    return HALO_OK;
}

halo_status hl_links_open(const hl_team *team, halo_device *dev, hl_link_way way, hl_links **links)
{
    halo_context *ctx = team->world;
    const hl_place at = hl_comm_place(ctx);
    double able = dev->ops->link != NULL && dev->ops->queue != NULL && dev->ops->pin != NULL;
    *links = NULL;
    HL_TRY(hl_comm_sum(ctx, &able, 1));
    if (ctx->ranks == 1 || way == HL_LINK_NONE || able == 0) return HALO_OK;
    if (able < ctx->ranks) return by_host(ctx, "some ranks compute with another backend, or with one that was built without NCCL");
    if (at.nodes == 1 && way == HL_LINK_NODE) way = HL_LINK_ALL;
    halo_status st = way == HL_LINK_NODE ? HALO_ERR_UNSUPPORTED : try_links(team, dev, false, links);
    if (st != HALO_ERR_UNSUPPORTED) return st;
    const bool nodes = way == HL_LINK_NODE || (way == HL_LINK_AUTO && at.nodes > 1 && at.node_size > 1);
    if (nodes && at.node_size == 0) return by_host(ctx, "nodes have different numbers of ranks");
    if (nodes) st = try_links(team, dev, true, links);
    return st == HALO_ERR_UNSUPPORTED ? by_host(ctx, halo_error_message(ctx)) : st;
}

/* --------------------------------------------------------------------------------------------------------- what sums cost */

enum { MEASURE_SIZES = 5, MEASURE_TIMES = 5 };
#define MEASURE_LEAST 4096.0
#define MEASURE_MOST 268435456.0

static halo_status time_sum(const hl_model *m, const hl_links *l, int64_t n, double *median)
{
    const halo_device_ops *ops = m->dev->ops;
    double seconds[MEASURE_TIMES];
    for (int i = 0; i < MEASURE_TIMES; i++) {
        HL_TRY(hl_comm_barrier(m->ctx));
        double start = hl_now();
        HL_TRY(ops->link_sum(m->dev, l->sums, m->base[HL_GRADIENT], m->dev->master, n, NULL));
        HL_TRY(ops->wait(m->dev, NULL));
        seconds[i] = hl_now() - start;
    }
    *median = hl_median(seconds, MEASURE_TIMES);
    return HALO_OK;
}

halo_status hl_links_measure(const hl_model *m, const hl_links *links, hl_reduce_cost *cost)
{
    const double element = (double)hl_dtype_size(m->dev->master), largest = fmin((double)m->trained * element, MEASURE_MOST), least = fmin(MEASURE_LEAST, largest / 2);
    double size[MEASURE_SIZES], seconds[MEASURE_SIZES];
    for (int i = 0; i < MEASURE_SIZES; i++) {
        const int64_t n = hl_max64(1, (int64_t)(least * pow(largest / least, (double)i / (MEASURE_SIZES - 1)) / element));
        size[i] = (double)n * element;
        HL_TRY(time_sum(m, links, n, &seconds[i]));
    }
    HL_TRY(hl_comm_max(m->ctx, seconds, MEASURE_SIZES));
    *cost = hl_fit_cost(size, seconds, MEASURE_SIZES);
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------- sums as steps */

/* The backward step after which all gradients of a group have their values. */
static int complete_after(const hl_program *p, hl_group g)
{
    int last = -1;
    for (int i = g.first; i < g.last; i++)
        if (p->complete[i] > last) last = p->complete[i];
    return last;
}

static halo_status add_sum(hl_program *p, hl_group g)
{
    const hl_model *m = p->model;
    hl_step *s;
    HL_TRY(hl_step_new(p, HL_STEP_SUM, HL_PHASE_BACKWARD, p->model->param[p->arrival[g.last - 1].param].layer, &s));
    s->lo = m->offset[p->arrival[g.first].param];
    s->n = (g.last == p->gradients ? m->trained : m->offset[p->arrival[g.last].param]) - s->lo;
    return HALO_OK;
}

/* Groups whose last gradient is complete after backward step i, -1: before the first; these sums come in the order of groups. */
static halo_status add_sums(hl_program *p, const hl_reducer *r, int i)
{
    for (int g = 0; g < hl_reducer_groups(r); g++) {
        hl_group members = hl_reducer_group_of(r, g);
        if (complete_after(p, members) == i) HL_TRY(add_sum(p, members));
    }
    return HALO_OK;
}

/* Behind backward: the sums are waited for, and so is that of losses and votes. */
static halo_status add_end(hl_program *p)
{
    hl_step *s;
    HL_TRY(hl_step_new(p, HL_STEP_JOIN, HL_PHASE_GRADIENT_NORMS, -1, &s));
    if (p->opt.links->between) return hl_step_new(p, HL_STEP_SUM, HL_PHASE_GRADIENT_NORMS, -1, &s);
    HL_TRY(hl_step_new(p, HL_STEP_ADD, HL_PHASE_GRADIENT_NORMS, -1, &s));
    s->link = p->opt.links->order;
    s->n = HALO_NUM_FACTOR;
    s->args.ptr[HALO_X] = hl_storage_of(p, p->numbers);
    return HALO_OK;
}

static halo_status write_anew(hl_program *p, const hl_reducer *r, const hl_step *step, int n)
{
    const int first = p->phase[HL_PHASE_BACKWARD], end = p->phase[HL_PHASE_BACKWARD + 1];
    for (int i = 0; i <= n; i++) {
        if (i == first) HL_TRY(add_sums(p, r, -1));
        if (i == end) HL_TRY(add_end(p));
        if (i < n) HL_TRY(hl_step_again(p, &step[i]));
        if (i < n && p->merged && hl_statistics_after(&step[i])) HL_TRY(hl_merge_place(p, &step[i]));
        if (i >= first && i < end) HL_TRY(add_sums(p, r, i));
    }
    return HALO_OK;
}

halo_status hl_sums_place(hl_program *p, const hl_reducer *r)
{
    int n;
    p->merged = !p->opt.links->between;
    hl_step *step = hl_take_steps(p, &n);
    halo_status st = write_anew(p, r, step, n);
    free(step);
    hl_find_phases(p);
    free(p->seconds); /* they were of steps by number, and have done their work */
    p->seconds = NULL;
    return st;
}

halo_status hl_sum_run(hl_program *p, const hl_step *s)
{
    const halo_device_ops *ops = p->dev->ops;
    const hl_links *l = p->opt.links;
    const hl_model *m = p->model;
    if (!p->summing) return HALO_OK;
    if (l->between) return s->n == 0 ? hl_node_sums_numbers(p) : hl_node_sums_out(p, s->lo);
    HL_TRY(ops->follow(p->dev, l->beside, NULL));
    p->forked = true;
    return ops->link_sum(p->dev, l->sums, (char *)m->base[HL_GRADIENT] + (size_t)s->lo * hl_dtype_size(m->dev->master), m->dev->master, s->n, l->beside);
}

halo_status hl_sums_join(hl_program *p)
{
    if (!p->forked) return HALO_OK;
    p->forked = false;
    return p->dev->ops->follow(p->dev, NULL, p->opt.links->beside);
}
