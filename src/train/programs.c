/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c -- model and programs of a run: options of the compiler and the optimiser from settings; outlines first, so that what does not fit is told before memory is taken. */
#include "train/setup.h"
#include "base/file.h"
#include "cost/cache.h"

hl_compile_options hl_run_compile_options(const hl_settings *set, bool training)
{
    static const halo_layout layouts[] = {HALO_LAYOUTS, HALO_NCDHW, HALO_NDHWC, HALO_NCDHW8C, HALO_NCDHW16C};
    hl_compile_options o = {.batch = set->batch / set->train.accumulate, .training = training, .accumulate = set->train.accumulate > 1, .loss = (halo_loss)set->loss,
                            .huber_delta = set->huber_delta, .class_weights = &set->class_weights, .ignores = set->ignore_label >= 0, .ignore = set->ignore_label, .plan = set->plan == HL_SET_PLAN_FIXED ? HL_PLAN_FIXED : HL_PLAN_MEASURE,
                            .memory_limit = set->memory_limit > 0 ? (size_t)set->memory_limit : 0, .slabs = (int)hl_max64(0, set->memory_slabs), .layout = layouts[set->layout],
                            .split_until = set->parallel.spatial_until};
    return o;
}

static hl_scaling scaling_of(const hl_settings *set)
{
    static const hl_scaling_rule rules[] = {HL_SCALING_NONE, HL_SCALING_NONE, HL_SCALING_BACKOFF, HL_SCALING_LOGMAX};
    hl_scaling s = {.rule = rules[set->optimizer.loss_scale], .start = set->optimizer.loss_scale_start, .every = set->optimizer.loss_scale_every};
    if (set->optimizer.loss_scale == HL_LOSS_SCALE_AUTO && set->precision == HL_PRECISION_F16) s.rule = HL_SCALING_BACKOFF;
    return s;
}

hl_optim_spec hl_run_optim_spec(const hl_settings *set)
{
    hl_optim_spec o = {.weight_decay = set->optimizer.weight_decay, .dense_decay = set->optimizer.dense_decay,
                       .clip_norm = set->optimizer.clip_norm > 0 ? set->optimizer.clip_norm : 0, .freeze = &set->freeze,
                       .scaling = scaling_of(set)};
    o.update = (halo_update_params){.kind = (halo_optimizer)set->optimizer.name, .larc = (halo_larc)set->optimizer.larc,
                                    .momentum = set->optimizer.momentum, .beta1 = set->optimizer.beta1, .beta2 = set->optimizer.beta2,
                                    .eps = set->optimizer.epsilon, .lr_factor = 1, .trust = set->optimizer.trust,
                                    .larc_zero = 1.0 / 16000};
    return o;
}

static hl_compile_options options_of(hl_run *run, bool training)
{
    hl_compile_options o = hl_run_compile_options(&run->set, training);
    o.batch = hl_run_part(run);
    o.memory_limit = training ? run->program_limit[0] : run->program_limit[1];
    o.memory_beside = o.memory_limit > 0 && (size_t)run->set.memory_limit > o.memory_limit ? (size_t)run->set.memory_limit - o.memory_limit : 0;
    o.grid = run->grid;
    o.team = run->ctx->ranks > 1 ? run->team : NULL;
    o.links = run->links;
    o.mpi_reaches = run->mpi_reaches;
    o.stored = hl_run_stored(run, training);
    return o;
}

static bool kept(const hl_run *run) { return *run->set.output && !run->set.check; }

/* All ranks take the same measured choices, from one file and for one shape. */
static bool measures(const hl_run *run)
{
    return run->set.plan == HL_SET_PLAN_MEASURE && (run->ctx->ranks == 1 || (kept(run) && !hl_grid_split(&run->grid)));
}

/* What earlier runs measured is rank 0's to look at: the others take what it chose, from the run's directory. */
static halo_status find_cache(hl_run *run)
{
    if (run->ctx->rank != 0 || !measures(run) || run->set.check) return HALO_OK;
    HL_TRY(hl_cache_place(run->ctx, run->set.plan_cache, &run->plan_shared));
    if (run->plan_shared) hl_cache_make(run->ctx, run->plan_shared);
    return HALO_OK;
}

/* Measured choices of implementations are kept in the run directory, so that a resumed run is the same run. */
static halo_status compile_with_cache(hl_run *run, bool training, const char *after, hl_program **program)
{
    hl_compile_options o = options_of(run, training);
    if (!measures(run)) o.plan = HL_PLAN_FIXED;
    char *cache = NULL;
    if (kept(run) && o.plan == HL_PLAN_MEASURE) {
        HL_TRY(hl_make_dirs(run->ctx, run->set.output));
        HL_TRY(hl_path_join(run->ctx, run->set.output, "plan.json", &cache));
    }
    o.plan_cache = cache;
    o.plan_shared = run->plan_shared;
    o.after = after;
    halo_status st = hl_compile(run->model, &o, program);
    free(cache);
    return st == HALO_ERR_NOMEM && o.memory_limit > 0 ? HALO_ERR_USAGE : st; /* a limit was asked for */
}

static halo_status outline(hl_run *run, bool training, hl_program **program)
{
    hl_compile_options o = options_of(run, training);
    o.only_ask = run->only_ask;
    o.least = &run->least;
    o.plan = HL_PLAN_FIXED;
    o.team = NULL;
    o.after = "fit";
    return hl_compile(run->model, &o, program);
}

halo_status hl_run_outline(hl_run *run, hl_program **program) { return outline(run, true, program); }

static void forget_programs(hl_run *run)
{
    hl_program_destroy(run->train);
    hl_program_destroy(run->eval);
    run->train = run->eval = NULL;
}

static void forget_outlines(hl_run *run)
{
    forget_programs(run);
    hl_model_destroy(run->model);
    run->model = NULL;
}

/* Evaluation is to lie in the memory of training's activations; what it has beside is counted already (hl_run_memory). */
static size_t evaluation_limit(const hl_run *run)
{
    hl_program_info i;
    hl_program_info_get(run->train, &i);
    return i.peak_bytes - i.scratch_bytes - i.image_bytes + run->eval_beside;
}

/* Programs that take no memory, within the limits. */
static halo_status make_outline_programs(hl_run *run)
{
    HL_TRY(outline(run, true, &run->train));
    if (run->program_limit[0] > 0) run->program_limit[1] = evaluation_limit(run);
    return run->source[HL_VALIDATION] ? outline(run, false, &run->eval) : HALO_OK;
}

/* Images, workspace and steps of evaluation's program. */
static size_t beside_of(const hl_program *eval)
{
    hl_program_info i = {.image_bytes = 0};
    if (eval) hl_program_info_get(eval, &i);
    return i.image_bytes + i.scratch_bytes + i.record_bytes;
}

static halo_status less_than_nothing(const hl_run *run, size_t limit, size_t beside)
{
    if (run->only_ask) return HALO_ERR_NOMEM;
    return hl_fail(run->ctx, HALO_ERR_USAGE, "I/O, messages and the process alone need %.1f MiB, without any network; 'memory.limit' is %.1f MiB", (double)beside / 1048576,
                   (double)limit / 1048576);
}

/* A rank may use `limit`: what is left of it for a program's weights, values and workspace. All ranks keep to what the one has that has least, so that they
 * compile the same programs. Collective unless `alone`. */
static halo_status set_program_limit(hl_run *run, size_t limit, bool alone)
{
    hl_memory m;
    hl_program_info i;
    hl_run_memory(run, &m);
    hl_program_info_get(run->train, &i);
    run->eval_beside = beside_of(run->eval);
    const size_t total = hl_memory_total(&m);
    double x[2] = {(double)total - (double)(i.peak_bytes + i.record_bytes), total > limit}; /* beside the program; too much */
    if (!alone) HL_TRY(hl_comm_max(run->ctx, x, 2));
    if (x[1] == 0) return HALO_OK;
    if (x[0] >= (double)limit) return less_than_nothing(run, limit, (size_t)x[0]);
    run->program_limit[0] = limit - (size_t)fmax(0, x[0]);
    return HALO_OK;
}

/* Once more with the limit, where without one it is exceeded. Collective unless `alone`. */
static halo_status make_outlines(hl_run *run, size_t limit, bool alone)
{
    hl_optim_spec optim = hl_run_optim_spec(&run->set);
    if (run->resident == 0) run->resident = hl_rss_bytes();
    run->program_limit[0] = run->program_limit[1] = 0;
    halo_status st = hl_model_outline(run->ctx, run->dev, run->net, &optim, &run->model);
    if (st == HALO_OK) st = make_outline_programs(run);
    if (!alone) st = hl_agree(run->ctx, st);
    if (st == HALO_OK && limit > 0) st = set_program_limit(run, limit, alone);
    if (st != HALO_OK || run->program_limit[0] == 0) return st;
    forget_programs(run);
    return make_outline_programs(run);
}

/* The limit with which it would fit goes to the head of what would help. */
static halo_status offer_limit(hl_run *run)
{
    hl_forecast f = run->forecast;
    const size_t share = f.bound.bytes / (size_t)f.locals, round = share > (size_t)1 << 33 ? (size_t)1 << 27 : (size_t)1 << 20, limit = share / round * round;
    hl_memory m;
    if (f.fits || run->set.memory_limit > 0 || limit == 0) return HALO_OK;
    run->only_ask = true;
    const bool can = make_outlines(run, limit, true) == HALO_OK;
    run->only_ask = false;
    if (can) hl_run_memory(run, &m);
    if (can && hl_memory_total(&m) <= limit) hl_forecast_help(&run->forecast, limit);
    forget_outlines(run);
    run->program_limit[0] = run->program_limit[1] = 0;
    return HALO_OK;
}

/* What training will need, before anything large is allocated. */
static halo_status forecast(hl_run *run)
{
    const size_t limit = run->set.memory_limit > 0 ? (size_t)run->set.memory_limit : 0;
    halo_status mine = make_outlines(run, limit, false), st = hl_agree(run->ctx, limit > 0 && mine == HALO_ERR_NOMEM ? HALO_ERR_USAGE : mine); /* a limit was asked for */
    if (st == HALO_OK) st = hl_run_forecast(run, &run->forecast);
    forget_outlines(run);
    if (st == HALO_OK) st = offer_limit(run);
    return st == HALO_OK && !run->set.check ? hl_agree(run->ctx, hl_run_refuse(run, &run->forecast)) : st;
}

static void tell_anew(const hl_run *run)
{
    hl_program_info i;
    hl_str names = {0};
    hl_program_info_get(run->train, &i);
    if (i.slabs == 0 || run->ctx->rank != 0) return;
    hl_program_anew(run->train, 6, &names);
    HL_INFO(run->ctx, "memory limit: %s %s made anew in %d slab%s, not stored: %.0f MiB instead of %.0f, %.1f %% more operations", names.s ? names.s : "",
            strchr(names.s ? names.s : "", ',') ? "are" : "is", i.slabs, HL_S(i.slabs), (double)i.peak_bytes / 1048576, (double)i.plain_bytes / 1048576,
            100 * (i.flops_step / i.plain_flops - 1));
    hl_str_free(&names);
}

static halo_status make_programs(hl_run *run, hl_need need, const char *after)
{
    hl_optim_spec optim = hl_run_optim_spec(&run->set);
    bool look = after && strcmp(after, "bind") != 0;
    HL_TRY((look ? hl_model_outline : hl_model_create)(run->ctx, run->dev, run->net, need == HL_NEED_TRAINING ? &optim : NULL, &run->model));
    if (need == HL_NEED_TRAINING) HL_TRY(compile_with_cache(run, true, after ? after : "fit", &run->train));
    if (need == HL_NEED_EVALUATION || run->source[HL_VALIDATION]) HL_TRY(compile_with_cache(run, false, after ? after : "fit", &run->eval));
    hl_give_back(); /* what measuring used */
    if (run->train && !after) tell_anew(run);
    if (run->train && !after) HL_TRY(hl_program_bind(run->train, NULL));
    return run->eval && !after ? hl_program_bind(run->eval, run->train) : HALO_OK;
}

/* Rank 0 measures and keeps its choices in the run directory first, so that all ranks make the same. Ranks that hold samples together compile together, since
 * their exchanges are made by all of them. */
halo_status hl_run_make_programs(hl_run *run, hl_need need, const char *after)
{
    bool together = hl_grid_split(&run->grid);
    if (need == HL_NEED_NETWORK) return HALO_OK;
    if (need == HL_NEED_TRAINING && !after && run->source[HL_TRAIN]) {
        HL_TRY(forecast(run));
        if (!run->forecast.fits && run->set.check) return HALO_OK;
    }
    HL_AGREE(run->ctx, find_cache(run));
    HL_AGREE(run->ctx, together || run->ctx->rank == 0 ? make_programs(run, need, after) : HALO_OK);
    HL_AGREE(run->ctx, !together && run->ctx->rank != 0 ? make_programs(run, need, after) : HALO_OK);
    return need == HL_NEED_TRAINING && !after ? hl_run_make_reducer(run) : HALO_OK;
}
