/* SPDX-License-Identifier: Apache-2.0 */
#include "perf/bench.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/topology.h"
#include "base/trace.h"

enum { GEMM = 2048, GEMM_REPETITIONS = 10 };

typedef struct feed { float *x, *y; } feed;

static halo_status make_feed(hl_run *run, feed *f)
{
    const int64_t *in = run->net->layer[0].out, *out = run->net->layer[run->net->layers - 1].out, batch = hl_run_part(run);
    hl_loader_options o = {0};
    hl_run_cells(run, run->train, &o);
    size_t nx = (size_t)(batch * in[0] * o.x.ext[0] * o.x.ext[1] * o.x.ext[2]), ny = (size_t)(batch * out[0] * o.y.ext[0] * o.y.ext[1] * o.y.ext[2]);
    HL_TRY(hl_aligned(run->ctx, nx * sizeof(float), "bench input", &f->x));
    halo_status st = hl_aligned(run->ctx, ny * sizeof(float), "bench targets", &f->y);
    if (st != HALO_OK) {
        free(f->x);
        return st;
    }
    for (size_t i = 0; i < nx; i += 2) {
        double z[2];
        hl_rng_normal2((uint64_t)run->set.seed, HL_STREAM_SYNTHETIC, i, 0, z);
        f->x[i] = (float)z[0];
        if (i + 1 < nx) f->x[i + 1] = (float)z[1];
    }
    for (size_t i = 0; i < ny; i++) {
        double u = hl_rng_uniform((uint64_t)run->set.seed, HL_STREAM_SYNTHETIC, i, 1);
        f->y[i] = (float)(o.classes > 0 ? floor(u * (double)o.classes) : 2 * u - 1);
    }
    return HALO_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static halo_status one_step(hl_run *run, const feed *f, double *seconds)
{
    int64_t part = hl_run_part(run);
    hl_batch batch = {.dtype = HALO_F32, .x = f->x, .y = f->y, .first_sample = part * run->grid.data_at, .weight_sum = (double)(part * run->grid.data)};
    hl_step_options o = {.lr = 1e-6, .seed = (uint64_t)run->set.seed, .step = (uint64_t)run->at.step++, .update = true, .grad_scale = 1};
    hl_step_result r;
    double begin = hl_now();
    HL_TRY(hl_program_train(run->train, &batch, &o, &r));
    *seconds = hl_now() - begin;
    if (hl_traced(run->ctx)) hl_trace_add(run->ctx, HL_LANE_COMPUTE, "step", "step", NULL, begin, begin + *seconds, 0);
    return HALO_OK;
}

static halo_status steps_of(hl_run *run, const feed *f, int n, double *seconds)
{
    double ignored;
    for (int i = 0; i < n; i++) HL_TRY(one_step(run, f, seconds ? &seconds[i] : &ignored));
    return HALO_OK;
}

static halo_status time_operations(hl_run *run, const feed *f, const hl_bench_options *o, double *seconds)
{
    HL_TRY(hl_program_time(run->train, true));
    halo_status st = steps_of(run, f, o->steps, seconds);
    hl_program_time(run->train, false);
    return st;
}

/* A device that works on its own and replays recordings of steps does neither while it is asked for the time of each operation: these steps are others than those
 * whose time counts. The first of them makes no recording, the second one does. */
static halo_status time_steps(hl_run *run, const feed *f, const hl_bench_options *o, double *seconds)
{
    const bool apart = run->dev->ops->record && !o->trace;
    HL_TRY(steps_of(run, f, o->warmup, NULL));
    if (apart) HL_TRY(time_operations(run, f, o, NULL));
    if (apart) HL_TRY(steps_of(run, f, 2, NULL));
    if (run->reducer) hl_reducer_stats_reset(run->reducer);
    hl_program_merge_seconds(run->train, true);
    if (o->trace) HL_TRY(hl_trace_start(run->ctx));
    return apart ? steps_of(run, f, o->steps, seconds) : time_operations(run, f, o, seconds);
}

static halo_status limits(hl_run *run, hl_bench *b)
{
    double gemm, stream;
    if (!run->dev->ops->limits) return HALO_OK;
    HL_TRY(run->dev->ops->limits(run->dev, GEMM, GEMM_REPETITIONS, &gemm, &stream));
    if (!(b->sgemm_gflops >= gemm)) b->sgemm_gflops = gemm;
    if (!(b->stream_gbs >= stream)) b->stream_gbs = stream;
    return HALO_OK;
}

/* Steps take no memory, so what is taken after them was taken at most. */
static size_t memory_of_device(const hl_run *run)
{
    halo_device_info info = {.name = ""};
    if (run->dev->ops->mpi_pointer) return 0; /* it is the host's */
    run->dev->ops->describe(run->dev, &info);
    return info.memory_total - info.memory_free;
}

/* Of a step, on the slowest rank. */
static halo_status communication(hl_run *run, const hl_bench_options *o, hl_bench *b)
{
    hl_reducer_stats stats = {0};
    if (run->reducer) hl_reducer_stats_get(run->reducer, &stats, NULL);
    double x[4] = {b->step_seconds, b->step_least, stats.seconds / o->steps, (stats.seconds_exposed + hl_program_merge_seconds(run->train, false)) / o->steps};
    HL_TRY(hl_comm_max(run->ctx, x, 4));
    b->step_seconds = x[0];
    b->step_least = x[1];
    b->comm_seconds = x[2];
    b->comm_exposed_seconds = x[3];
    b->samples_per_second = (double)(hl_run_part(run) * run->grid.data) / b->step_seconds;
    return HALO_OK;
}

halo_status hl_bench_step(hl_run *run, const hl_bench_options *options, hl_bench *out)
{
    hl_bench b = {.sgemm_gflops = NAN, .stream_gbs = NAN};
    hl_program_info info;
    feed f;
    double *seconds;
    halo_status st;
    HL_TRY(make_feed(run, &f));
    HL_GOTO(st, hl_calloc(run->ctx, (size_t)options->steps, sizeof(double), "timings", &seconds), free_feed);
    if (!options->steps_only) HL_GOTO(st, limits(run, &b), free_seconds);
    hl_reset_peak_rss(); /* the step's own peak, not that of measuring the machine */
    HL_GOTO(st, time_steps(run, &f, options, seconds), free_seconds);
    b.peak_rss_bytes = hl_peak_rss_bytes();
    b.device_bytes = memory_of_device(run);
    if (!options->steps_only) HL_GOTO(st, limits(run, &b), free_seconds);
    qsort(seconds, (size_t)options->steps, sizeof(double), by_value);
    hl_program_info_get(run->train, &info);
    b.step_least = seconds[0];
    b.step_seconds = seconds[options->steps / 2];
    HL_GOTO(st, communication(run, options, &b), free_seconds);
    b.flops_step = info.flops_step;
    b.gflops = info.flops_step / b.step_seconds * 1e-9;
    b.fraction_of_sgemm = b.gflops / b.sgemm_gflops;
    *out = b;
free_seconds:
    free(seconds);
free_feed:
    free(f.x);
    free(f.y);
    return st;
}
