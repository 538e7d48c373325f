/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.c -- a run on several ranks: who takes what, how gradients are summed, and what is refused.
 *
 * A step's batch of B samples is cut into P blocks by the block algebra, the first ones larger by one sample where P does not divide B. Programs are compiled
 * for the largest block and smaller ones are filled up with samples of weight 0. Every rank divides by the weights of all ranks, so that gradients are
 * only added: the sum is that of one rank with B samples, whatever P is.
 */
#include "tensor/block.h"
#include "train/run.h"

#include <unistd.h>

int hl_run_threads(const halo_context *ctx)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int locals = hl_comm_place(ctx).locals;
    if (locals == 1 || cores < 1 || (int64_t)ctx->threads * locals <= cores) return ctx->threads;
    return (int)hl_max64(1, cores / locals);
}

halo_status hl_run_check_ranks(const hl_run *run)
{
    const hl_settings *s = &run->set;
    const int64_t *cut = s->parallel.spatial;
    halo_device_info device = {0};
    if (cut[0] > 1 || cut[1] > 1 || cut[2] > 1)
        return hl_fail(run->ctx, HALO_ERR_UNSUPPORTED, "'parallel.spatial' is not supported in training yet; leave it at 1");
    if (run->ctx->ranks == 1) return HALO_OK;
    run->dev->ops->describe(run->dev, &device);
    if (s->batch < run->ctx->ranks)
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'batch' is %" PRId64 ", but there are %d ranks: each needs a sample of every step", s->batch, run->ctx->ranks);
    if (strncmp(device.name, "cpu", 3) != 0 && strncmp(device.name, "ref", 3) != 0)
        return hl_fail(run->ctx, HALO_ERR_UNSUPPORTED, "the gradients of device '%s' cannot be summed over ranks yet; use backend=cpu", device.name);
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

static void say_groups(const hl_run *run, const hl_reducer_options *o)
{
    hl_str text = {0};
    if (averages(run)) {
        HL_INFO(run->ctx, "%d ranks; parameters are averaged every %" PRId64 " step%s", run->ctx->ranks, run->set.reduce.average_steps, HL_S(run->set.reduce.average_steps));
        return;
    }
    hl_group_text(o->gradient, o->group, o->groups, &text);
    HL_INFO(run->ctx, "%d ranks; gradients are summed in %d group%s by %s%s%s", run->ctx->ranks, o->groups, HL_S(o->groups),
            hl_algorithm_name(o->algorithm), text.len ? ", ending at " : "", text.len ? text.s : "");
    hl_str_free(&text);
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
    HL_GOTO(st, hl_reducer_create(run->ctx, &o, &run->reducer), free_lists);
    HL_GOTO(st, hl_agree(run->ctx, hl_program_reduce(run->train, run->reducer)), free_lists);
    /* A rank that waits in the library for a group cannot come to the sums of statistics for which those wait who have not heard of the group yet */
    if (hl_program_merges(run->train) && !hl_comm_place(run->ctx).threads && o.algorithm == HL_ALGORITHM_MPI && o.orchestration != HL_STATIC) {
        st = hl_fail(run->ctx, HALO_ERR_UNSUPPORTED,
                     "batch norm and 'reduce.algorithm: mpi' without MPI_THREAD_MULTIPLE need 'reduce.orchestration: static'");
        goto free_lists;
    }
    if (averages(run)) st = hl_program_average(run->train, run->set.reduce.average_steps);
    say_groups(run, &o);
    if (hl_program_merges(run->train) && run->set.train.accumulate > 1)
        HL_WARN(run->ctx, "batch norm with 'train.accumulate': statistics are those of a part of the batch, and the parts on %d ranks hold other samples than on one",
                run->ctx->ranks);
free_lists:
    free(group);
    free(gradient);
    return st;
}
