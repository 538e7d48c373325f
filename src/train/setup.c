/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c -- from settings to a run: the context here; data, network, programs in files of their own (setup.h). */
#include "train/setup.h"
#include "train/shapes.h"

#include <unistd.h>

/* The largest m of F(m, 3). What is measured may be another algorithm where that is as exact; F(4) is for those who ask. A fixed plan is for results
 * that are to be the same, or to be compared, so nothing but the direct kernels unless asked: then Winograd's come first. */
static int winograd_of(const hl_settings *set)
{
    static const int m[] = {0, 0, 2, 4};
    if (set->winograd > 0) return m[set->winograd];
    return set->plan == HL_SET_PLAN_MEASURE && set->parallel.spatial[0] * set->parallel.spatial[1] * set->parallel.spatial[2] == 1 ? 2 : 0;
}

static halo_status apply_to_context(halo_context *ctx, const hl_settings *set)
{
    static const char *const isas[] = {"", "generic", "avx2", "avx512f"}, *const binds[] = {"", "none", "cores"};
    static const halo_dtype types[] = {HALO_F32, HALO_F64, HALO_F16, HALO_BF16};
    if (ctx->device) return HALO_OK; /* chosen already */
    if (*set->backend) {
        if (strlen(set->backend) >= sizeof(ctx->backend)) return hl_fail(ctx, HALO_ERR_USAGE, "unknown backend '%s'", set->backend);
        memcpy(ctx->backend, set->backend, strlen(set->backend) + 1);
    }
    ctx->compute = types[set->precision];
    if (ctx->compute == HALO_F64) {
        if (*ctx->backend && strcmp(ctx->backend, "ref") != 0)
            return hl_fail(ctx, HALO_ERR_USAGE, "'precision: f64' needs 'backend: ref': backend '%s' computes in f32", ctx->backend);
        memcpy(ctx->backend, "ref", sizeof("ref"));
    }
    memcpy(ctx->isa, isas[set->cpu_isa], strlen(isas[set->cpu_isa]) + 1);
    ctx->winograd = winograd_of(set);
    ctx->tf32 = set->cuda.tf32;
    ctx->any_order = !set->cuda.deterministic;
    ctx->step_by_step = !set->cuda.graphs;
    memcpy(ctx->bind, binds[set->cpu_bind], strlen(binds[set->cpu_bind]) + 1);
    ctx->threads = set->threads > 0 ? (int)set->threads : hl_run_threads(ctx);
    ctx->seed = (uint64_t)set->seed;
    return HALO_OK;
}

static hl_schedule make_schedule(const hl_settings *set)
{
    hl_schedule s = {.shape = (hl_schedule_shape)set->schedule.name, .peak = hl_scaled_rate((hl_rate_rule)set->schedule.scale, set->optimizer.lr, (double)set->batch, (double)set->schedule.base_batch), .end = set->schedule.end,
                     .power = set->schedule.power, .factor = set->schedule.factor, .warmup = set->schedule.warmup,
                     .warmup_start = set->schedule.warmup_start,
                     .length = set->schedule.epochs > 0 ? set->schedule.epochs : (double)set->train.epochs};
    for (int i = 0; i < set->schedule.at.n && i < HL_BOUNDARIES_MAX; i++) s.boundary[s.boundaries++] = strtod(set->schedule.at.word[i], NULL);
    return s;
}

/* What each rank does by itself: data, network, device. */
static halo_status open_all(hl_run *run, hl_need need, unsigned splits)
{
    HL_TRY(apply_to_context(run->ctx, &run->set));
    HL_TRY(hl_run_open_sources(run, splits));
    HL_TRY(hl_run_make_network(run));
    if (need == HL_NEED_TRAINING) HL_TRY(hl_run_check_norms(run));
    if (need == HL_NEED_NETWORK) return HALO_OK;
    HL_TRY(hl_context_device(run->ctx, &run->dev));
    return need == HL_NEED_TRAINING ? hl_run_check_ranks(run) : HALO_OK;
}

/* How ranks' devices exchange data: among themselves, by MPI from their memory, by way of the host. */
static halo_status connect(hl_run *run)
{
    static const hl_link_way ways[] = {HL_LINK_AUTO, HL_LINK_ALL, HL_LINK_NODE, HL_LINK_NONE, HL_LINK_AUTO, HL_LINK_NONE};
    static const int wishes[] = {0, 1, -1};
    bool takes;
    if (run->team && run->set.reduce.average != HL_AVERAGE_PARAMETERS) HL_TRY(hl_links_open(run->team, run->dev, ways[run->set.cuda.nccl], &run->links));
    HL_TRY(hl_comm_takes_cuda(run->ctx, run->dev->cuda ? wishes[run->set.cuda.mpi] : -1, &takes));
    run->mpi_reaches = takes && run->dev->ops->queue;
    if (run->mpi_reaches && run->set.cuda.mpi == 1 && run->ctx->rank == 0 && hl_comm_says_cuda() == 0)
        HL_WARN(run->ctx, "'cuda.mpi: device': this MPI says that it takes no addresses of device memory; where that is so the first margins end the run, and 'cuda.mpi: auto' takes the way by the host");
    return HALO_OK;
}

static halo_status create(halo_context *ctx, const hl_settings *set, hl_need need, unsigned splits, const char *after, hl_run **out)
{
    hl_run *run;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*run), "a run", &run));
    run->ctx = ctx;
    run->set = *set;
    run->at.best = INFINITY;
    run->schedule = make_schedule(set);
    run->program_limit[0] = run->program_limit[1] = set->memory_limit > 0 ? (size_t)set->memory_limit : 0;
    halo_status st;
    HL_GOTO(st, hl_run_make_grid(run, after != NULL), destroy);
    HL_GOTO(st, hl_agree(ctx, open_all(run, need, splits)), destroy);
    if (!after && run->dev) HL_GOTO(st, connect(run), destroy);
    if (splits) HL_GOTO(st, hl_run_standardise(run), destroy);
    HL_GOTO(st, hl_run_make_programs(run, need, after), destroy);
    *out = run;
    return HALO_OK;
destroy:
    hl_run_destroy(run);
    return st;
}

halo_status hl_run_create(halo_context *ctx, const hl_settings *set, hl_need need, unsigned splits, hl_run **run)
{
    return create(ctx, set, need, splits, NULL, run);
}

halo_status hl_run_explain(halo_context *ctx, const hl_settings *set, const char *after, hl_run **run)
{
    return create(ctx, set, HL_NEED_TRAINING, 0, after, run);
}

void hl_run_destroy(hl_run *run)
{
    if (!run) return;
    hl_reducer_destroy(run->reducer);
    hl_shapes_free(run->shapes);
    hl_program_destroy(run->train);
    hl_program_destroy(run->eval);
    hl_model_destroy(run->model);
    halo_network_destroy(run->net);
    for (int split = 0; split < HL_SPLITS; split++) hl_source_close(run->source[split]);
    hl_links_close(run->dev, run->links);
    hl_team_destroy(run->team);
    if (run->lock > 0) close(run->lock);
    free(run->seat);
    free(run->counted);
    free(run->plan_shared);
    free(run);
}

halo_status hl_run_observe(hl_run *run, hl_observer call, void *user)
{
    HL_BUG_UNLESS(run->observers < HL_OBSERVERS_MAX);
    run->observer[run->observers].call = call;
    run->observer[run->observers].user = user;
    run->observers++;
    return HALO_OK;
}

void hl_run_tell(hl_run *run, const hl_event *event)
{
    for (int i = 0; i < run->observers && run->ctx->rank == 0; i++) run->observer[i].call(run->observer[i].user, event);
}
