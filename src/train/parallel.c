/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.c -- a run on several ranks: who takes what, how gradients are summed, and what is refused.
 *
 * R ranks are P groups of d h w: a group holds each of its samples together, a block of it on every rank (`parallel.spatial`). A step's batch of B samples is cut
 * into P blocks by the block algebra, the first ones larger by one sample where P does not divide B. Programs are compiled
 * for the largest block and smaller ones are filled up with samples of weight 0. Every rank divides by the weights of all groups, so that gradients are
 * only added: the sum is that of one rank with B samples, whatever P is.
 */
#include "train/run.h"

#include <stdio.h>
#include <unistd.h>

int hl_run_threads(const halo_context *ctx)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int locals = hl_comm_place(ctx).locals;
    if (locals == 1 || cores < 1 || (int64_t)ctx->threads * locals <= cores) return ctx->threads;
    return (int)hl_max64(1, cores / locals);
}

/* Not those of a sample's parts: that is an error of its own, which says which numbers would do. */
static halo_status check_multiple(const hl_run *run, int64_t ranks, int64_t group)
{
    const int64_t *part = run->set.parallel.spatial;
    char near[64];
    if (ranks % group == 0) return HALO_OK;
    int64_t below = ranks / group * group;
    snprintf(near, sizeof(near), below > 0 ? "%" PRId64 " or %" PRId64 : "%" PRId64, below > 0 ? below : group, below + group);
    return hl_fail(run->ctx, HALO_ERR_USAGE,
                   "'parallel.spatial' is %" PRId64 " x %" PRId64 " x %" PRId64 ", so that %" PRId64 " ranks hold a sample together, but there %s %" PRId64 " rank%s: %s would do",
                   part[0], part[1], part[2], group, ranks == 1 ? "is" : "are", ranks, HL_S(ranks), near);
}

static halo_status check_grid(const hl_run *run, bool look, int64_t *ranks)
{
    const int64_t *part = run->set.parallel.spatial, given = run->set.parallel.ranks;
    int64_t group;
    if (!hl_mul64(part[0], part[1], &group) || !hl_mul64(group, part[2], &group) || group > INT32_MAX)
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'parallel.spatial' is %" PRId64 " x %" PRId64 " x %" PRId64 ": more ranks than there can be", part[0], part[1], part[2]);
    *ranks = look ? given > 0 ? given : hl_max64(group, run->ctx->ranks) : run->ctx->ranks;
    if (!look && given > 0 && given != *ranks)
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'parallel.ranks' is %" PRId64 ", but %d %s started", given, run->ctx->ranks, run->ctx->ranks == 1 ? "rank was" : "ranks were");
    return check_multiple(run, *ranks, group);
}

halo_status hl_run_make_grid(hl_run *run, bool look)
{
    int64_t ranks = 1;
    HL_AGREE(run->ctx, check_grid(run, look, &ranks));
    run->grid = hl_grid_of(ranks, run->set.parallel.spatial, look ? 0 : run->ctx->rank);
    if (!look) return hl_team_create(run->ctx, run->set.parallel.spatial, &run->team);
    for (int k = 0; k < 3; k++) run->grid.at[k] = run->grid.part[k] > 2; /* neighbours on both sides where anybody has, and among the first, which are larger */
    return HALO_OK;
}

static halo_status check_batch(const hl_run *run)
{
    const hl_settings *s = &run->set;
    const hl_grid *g = &run->grid;
    if (s->batch >= g->data) return HALO_OK;
    if (!hl_grid_split(g))
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'batch' is %" PRId64 ", but there are %" PRId64 " ranks: each needs a sample of every step", s->batch, g->data);
    return hl_fail(run->ctx, HALO_ERR_USAGE, "'batch' is %" PRId64 ", but there are %" PRId64 " groups of %" PRId64 " ranks: each group needs a sample of every step",
                   s->batch, g->data, hl_grid_group(g));
}

halo_status hl_run_check_ranks(const hl_run *run)
{
    HL_TRY(check_batch(run));
    if (hl_grid_split(&run->grid) && run->set.reduce.average == HL_AVERAGE_PARAMETERS)
        return hl_fail(run->ctx, HALO_ERR_UNSUPPORTED, "'reduce.average: parameters' is for ranks that hold whole samples: leave it out or 'parallel.spatial' at 1");
    return HALO_OK;
}

/* A log line for each line of text. */
static void say_lines(const hl_run *run, char *text)
{
    for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        HL_INFO(run->ctx, "%.*s", (int)(end ? end - line : (ptrdiff_t)strlen(line)), line);
    }
}

halo_status hl_run_seats(hl_run *run)
{
    hl_seat mine = hl_seat_here(run->ctx->threads);
    hl_str text = {0};
    char odd[512];
    int ranks = run->ctx->ranks;
    HL_AGREE(run->ctx, hl_calloc(run->ctx, (size_t)ranks, sizeof(mine), "a list of ranks", &run->seat));
    HL_TRY(hl_comm_gather(run->ctx, &mine, sizeof(mine), run->seat));
    if (run->ctx->rank != 0) return HALO_OK;
    if (ranks > 1) hl_seats_text(run->seat, ranks, &text);
    if (text.s) say_lines(run, text.s);
    hl_str_free(&text);
    if (hl_seats_overlap(run->seat, ranks, odd, sizeof(odd))) HL_WARN(run->ctx, "%s", odd);
    if (hl_seats_crowded(run->seat, ranks, odd, sizeof(odd))) HL_WARN(run->ctx, "%s", odd);
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------ reducer */

static hl_algorithm choose_algorithm(const hl_run *run)
{
    static const hl_algorithm named[] = {HL_RABENSEIFNER, HL_ALGORITHM_MPI, HL_RING, HL_RABENSEIFNER, HL_HIERARCHICAL};
    hl_place place = hl_comm_place(run->ctx);
    if (run->links && run->links->between) return run->set.reduce.algorithm == 0 ? HL_RABENSEIFNER : named[run->set.reduce.algorithm];
    if (run->set.reduce.algorithm == 0 && place.nodes > 1 && place.node_size > 1) return HL_HIERARCHICAL;
    return named[run->set.reduce.algorithm];
}

static hl_reducer_options reducer_options(const hl_run *run)
{
    static const hl_wire wires[] = {HL_WIRE_NATIVE, HL_WIRE_NATIVE, HL_WIRE_BF16, HL_WIRE_F16};
    return (hl_reducer_options){.type = hl_model_dtype(run->model), .algorithm = choose_algorithm(run), .wire = wires[run->set.reduce.wire],
                                .orchestration = (hl_orchestration)run->set.reduce.orchestration, .stall = fmax(0, run->set.reduce.stall)};
}

static bool averages(const hl_run *run) { return run->set.reduce.average == HL_AVERAGE_PARAMETERS; }

static void say_grid(const hl_run *run)
{
    const hl_grid *g = &run->grid;
    if (hl_grid_split(g))
        HL_INFO(run->ctx, "%" PRId64 " group%s of %" PRId64 " ranks, %" PRId64 " x %" PRId64 " x %" PRId64 ": each rank holds a block of every sample of its group", g->data,
                HL_S(g->data), hl_grid_group(g), g->part[0], g->part[1], g->part[2]);
}

static void say_groups(const hl_run *run, const hl_reducer_options *o)
{
    hl_str text = {0};
    char nodes[96];
    say_grid(run);
    if (averages(run)) {
        HL_INFO(run->ctx, "%d ranks; parameters are averaged every %" PRId64 " step%s", run->ctx->ranks, run->set.reduce.average_steps, HL_S(run->set.reduce.average_steps));
        return;
    }
    hl_group_text(o->gradient, o->group, o->groups, &text);
    snprintf(nodes, sizeof(nodes), "the devices of each node, and by %s between %d nodes", hl_algorithm_name(o->algorithm), hl_comm_place(run->ctx).nodes);
    const char *by = !run->links ? hl_algorithm_name(o->algorithm) : run->links->between ? nodes : "their devices among themselves";
    HL_INFO(run->ctx, "%d ranks; gradients are summed in %d group%s by %s%s%s", run->ctx->ranks, o->groups, HL_S(o->groups), by, text.len ? ", ending at " : "", text.len ? text.s : "");
    hl_str_free(&text);
}

/* Over all ranks; or, where devices sum in the nodes, over those that hold the same slice. */
static halo_status create_reducer(hl_run *run, hl_reducer_options *o, hl_gradient *gradient)
{
    if (!run->links || !run->links->between) return hl_reducer_create(run->ctx, o, &run->reducer);
    HL_AGREE(run->ctx, hl_program_share_sums(run->train, o, gradient));
    return hl_agree(run->ctx, hl_reducer_create(run->links->between, o, &run->reducer));
}

halo_status hl_run_make_reducer(hl_run *run)
{
    hl_gradient *gradient = NULL;
    hl_group *group = NULL;
    int64_t elements;
    HL_AGREE(run->ctx, hl_run_check_groups(run));
    if (run->ctx->ranks == 1) return HALO_OK;
    size_t most = (size_t)hl_model_params(run->model, NULL) + 1;
    hl_reducer_options o = reducer_options(run);
    halo_status st = hl_model_gradient_range(run->model, &o.buffer, &elements);
    if (st == HALO_OK) st = hl_calloc(run->ctx, most, sizeof(*gradient), "the order of gradients", &gradient);
    if (st == HALO_OK) st = hl_calloc(run->ctx, most, sizeof(*group), "groups of gradients", &group);
    HL_GOTO(st, hl_agree(run->ctx, st), free_lists);
    o.gradients = hl_program_gradients(run->train, gradient);
    o.gradient = gradient;
    o.group = group;
    HL_GOTO(st, hl_run_choose_groups(run, &o, gradient, group), free_lists);
    HL_GOTO(st, create_reducer(run, &o, gradient), free_lists);
    HL_GOTO(st, hl_agree(run->ctx, hl_program_reduce(run->train, run->reducer)), free_lists);
    /* A rank that waits in the library for a group cannot come to the sums of statistics for which those wait who have not heard of the group yet */
    if (hl_program_merges(run->train) && !hl_comm_place(run->ctx).threads && o.algorithm == HL_ALGORITHM_MPI && o.orchestration != HL_STATIC) {
        st = hl_fail(run->ctx, HALO_ERR_UNSUPPORTED,
                     "batch norm and 'reduce.algorithm: mpi' without MPI_THREAD_MULTIPLE need 'reduce.orchestration: static'");
        goto free_lists;
    }
    if (averages(run)) st = hl_program_average(run->train, run->set.reduce.average_steps);
    say_groups(run, &o);
    if (hl_program_merges(run->train) && hl_program_has_running(run->train) && run->grid.data > 1 && run->set.train.accumulate > 1)
        HL_WARN(run->ctx, "batch norm with 'train.accumulate': statistics are those of a part of the batch, and the parts on %d ranks hold other samples than on one",
                run->ctx->ranks);
free_lists:
    free(group);
    free(gradient);
    return st;
}
