/* SPDX-License-Identifier: Apache-2.0 */
/*
 * running.c -- before an evaluation in training, the running statistics of batch norms are measured anew over `train.norm_samples` samples of the training
 * data, augmented as in training, with the weights as they are (src/net/running.c). They are the first batches of the epoch to come, in the parts in which
 * it will run them: a resumed run measures the same, and several ranks what one does.
 */
#include "train/run.h"

/* One forward pass. After a failure that other ranks cannot see the run is lost. */
static halo_status pass(hl_run *run, const hl_batch *batch, int64_t number)
{
    bool collective = run->reducer && (hl_program_merges(run->train) || hl_grid_split(&run->grid) || run->set.reduce.average == HL_AVERAGE_PARAMETERS);
    halo_status st = hl_program_measure_running(run->train, batch, number);
    run->lost = run->lost || (collective && st != HALO_OK);
    return run->lost ? st : hl_agree(run->ctx, st);
}

static halo_status measure(hl_run *run, hl_loader *loader, const hl_part *part, int64_t samples)
{
    int64_t parts = hl_run_parts(run), done = 0;
    HL_AGREE(run->ctx, hl_loader_start(loader, run->at.epoch, 0));
    for (int64_t step = 0; step * run->set.batch < samples; step++) {
        const hl_loaded *b = NULL;
        HL_AGREE(run->ctx, hl_run_next(run, loader, &b));
        if (!b) break;
        for (int64_t i = 0; i < parts; i++) {
            hl_batch batch = hl_part_of(part, b, i);
            HL_TRY(pass(run, &batch, done++));
        }
    }
    return HALO_OK;
}

halo_status hl_run_measure_running(hl_run *run)
{
    int64_t samples = run->set.train.norm_samples;
    if (samples == 0 || !hl_program_has_running(run->train)) return HALO_OK;
    hl_loader_options options = hl_run_training_loader(run);
    hl_loader *loader = NULL;
    hl_part part = {0};
    halo_status st = hl_agree(run->ctx, hl_part_create(run, &part));
    if (st == HALO_OK) st = hl_agree(run->ctx, hl_loader_create(run->ctx, run->source[HL_TRAIN], &options, &loader));
    if (st == HALO_OK) st = measure(run, loader, &part, samples);
    hl_loader_destroy(loader);
    hl_part_free(&part);
    return st;
}
