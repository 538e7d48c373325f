/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c -- what a rank takes of each sample, and the sums over whole samples that nobody has.
 *
 * Where a sample is split, a transform such as x / mean(x) needs a mean of which each rank knows a part. The loader's thread, which must not talk to other ranks,
 * delivers the moments (n, mean, sum of squares) of this rank's own cells with each batch; here they are gathered from the ranks that hold the other parts,
 * merged in the order of ranks, so that all get the same bits, and the transform is done on the block and its margin. Gathers: one per such transform and batch,
 * 24 bytes a sample and rank.
 */
#include "train/run.h"
#include "train/windows.h"

void hl_run_cells(const hl_run *run, const hl_program *program, hl_loader_options *o)
{
    const int64_t *in = run->net->layer[0].out + 1;
    hl_program_input_box(program, o->x.lo, o->x.ext);
    hl_program_output_box(program, o->y.lo, o->y.ext);
    for (int k = 0; k < 3; k++) {
        hl_range own = hl_grid_range(&run->grid, k, in[k]);
        o->own.lo[k] = own.lo;
        o->own.ext[k] = hl_range_len(own);
    }
    o->rank = (int)run->grid.data_at;
    o->ranks = (int)run->grid.data;
    o->classes = hl_run_classes(run);
    o->ignores = run->set.ignore_label >= 0;
    o->ignore = run->set.ignore_label;
}

/* A rank that failed takes part once more, so that the others do not wait for it: its numbers of values are below 0. */
static halo_status gather(const hl_run *run, const hl_moments *mine, int64_t samples, hl_moments *all, bool *failed)
{
    int ranks = run->team->group->ranks;
    HL_TRY(hl_comm_gather(run->team->group, mine, (size_t)samples * sizeof(*mine), all));
    *failed = false;
    for (int64_t i = 0; i < samples * ranks; i++) *failed = *failed || all[i].n < 0;
    for (int64_t i = 0; i < samples; i++)
        for (int r = 1; r < ranks; r++) all[i] = hl_moments_merge(all[i], all[r * samples + i]);
    return HALO_OK;
}

/* b NULL: reading failed. */
static halo_status finish(const hl_run *run, hl_loader *loader, const hl_loaded *b, int first, int transforms, hl_moments *mine, hl_moments *all)
{
    int64_t samples = hl_loader_samples(loader);
    bool failed = false;
    halo_status st = HALO_OK;
    if (b) memcpy(mine, b->moments, (size_t)samples * sizeof(*mine));
    for (int k = first; k < transforms && !failed; k++) {
        bool needs = hl_loader_needs(loader, k);
        if (needs) {
            if (k > first && b) hl_loader_moments(loader, b, mine);
            for (int64_t i = 0; i < samples && (!b || st != HALO_OK); i++) mine[i].n = -1;
            HL_TRY(gather(run, mine, samples, all, &failed));
        }
        if (!failed && b && st == HALO_OK) st = hl_loader_apply(loader, b, k, all);
    }
    return st;
}

halo_status hl_run_next(hl_run *run, hl_loader *loader, const hl_loaded **b)
{
    int transforms, first = hl_loader_pending(loader, &transforms);
    *b = NULL;
    halo_status st = hl_loader_next(loader, b), finished;
    if (first == transforms || (st == HALO_OK && !*b)) return st;
    hl_moments *m;
    size_t samples = (size_t)hl_loader_samples(loader);
    HL_TRY(hl_calloc(run->ctx, samples * ((size_t)run->team->group->ranks + 1), sizeof(*m), "moments of samples", &m));
    finished = finish(run, loader, st == HALO_OK ? *b : NULL, first, transforms, m, m + samples);
    free(m);
    return st != HALO_OK && finished != HALO_ERR_COMM ? st : finished;
}

/* The type of x in the first file of the training data, for a run that opens none; of what cannot be looked at, the network's. */
static size_t bytes_of_value(hl_run *run)
{
    if (run->source[HL_TRAIN]) return hl_dtype_size(run->source[HL_TRAIN]->info.dtype);
    hl_source *source = hl_run_look(run);
    if (!source) return sizeof(float);
    size_t bytes = hl_dtype_size(source->info.dtype);
    hl_source_close(source);
    return bytes;
}

/* Values that a rank takes of a sample, and of its targets where these are volumes, for a program. */
static void count_values(const hl_run *run, const hl_program *program, int64_t *x, int64_t *y)
{
    const int64_t *in = run->net->layer[0].out, *out = run->net->layer[run->net->layers - 1].out;
    hl_loader_options o = {0};
    hl_run_cells(run, program, &o);
    *x = in[0] * o.x.ext[0] * o.x.ext[1] * o.x.ext[2];
    *y = out[1] * out[2] * out[3] > 1 ? (o.classes ? 1 : out[0]) * o.y.ext[0] * o.y.ext[1] * o.y.ext[2] : 0;
}

int64_t hl_run_read_bytes(hl_run *run)
{
    int64_t x, y;
    count_values(run, run->train ? run->train : run->eval, &x, &y);
    return x * (int64_t)bytes_of_value(run) + y * (int64_t)sizeof(float);
}

/* A loader that gives `share` samples a step: as many batches as it reads ahead and there are, and a sample as it is read and before it is turned, unless it leaves as it is stored. */
static int64_t loader_bytes(hl_run *run, const hl_program *program, int64_t share, int64_t steps, bool turned)
{
    int64_t x, y, f = (int64_t)sizeof(float);
    const halo_dtype stored = hl_program_stored(program)->type;
    count_values(run, program, &x, &y);
    if (stored != HALO_NONE) return hl_min64(run->set.data.prefetch + 1, steps) * share * (x * (int64_t)hl_dtype_size(stored) + y * f + 2 * HALO_SAMPLE_NUMBERS * (int64_t)sizeof(double));
    return hl_min64(run->set.data.prefetch + 1, steps) * share * (x + y) * f + x * (int64_t)bytes_of_value(run) + (turned ? (x + y) * f : 0);
}

static int64_t steps_of(const hl_run *run, hl_split split, int64_t batch)
{
    if (!run->source[split]) return INT64_MAX;
    int64_t samples = run->source[split]->info.samples * (split == HL_TRAIN && hl_run_patches(&run->set) ? run->set.data.patches : 1);
    return split == HL_TRAIN ? hl_max64(1, samples / batch) : hl_div_up(samples, batch);
}

int64_t hl_run_loader_bytes(hl_run *run)
{
    return loader_bytes(run, run->train ? run->train : run->eval, hl_run_part(run) * hl_run_parts(run), steps_of(run, HL_TRAIN, run->set.batch),
                        run->set.data.augment != HL_AUGMENT_NONE);
}

int64_t hl_run_batch_bytes(hl_run *run)
{
    int64_t x, y;
    count_values(run, run->train, &x, &y);
    return hl_run_part(run) * (x + y) * (int64_t)sizeof(float);
}

/* While a validation is made the batches of training that were read ahead stay, but for those of the epoch that is over. */
int64_t hl_run_io_bytes(hl_run *run)
{
    int64_t part = hl_run_part(run), training = hl_run_loader_bytes(run), x, y, measured = 0, validated = 0;
    count_values(run, run->train, &x, &y);
    if (run->train && hl_program_has_running(run->train) && run->set.train.norm_samples > 0) measured = training;
    if (run->eval && hl_run_patches(&run->set) && run->source[HL_VALIDATION]) validated = hl_windows_bytes(run, run->source[HL_VALIDATION]);
    else if (run->eval) {
        count_values(run, run->eval, &x, &y);
        validated = loader_bytes(run, run->eval, part, steps_of(run, HL_VALIDATION, part * run->grid.data), false) + part * y * (int64_t)sizeof(float);
    }
    return training + hl_max64(measured, validated);
}
