/* SPDX-License-Identifier: Apache-2.0 */
/*
 * running.c -- before an evaluation in training, the running statistics of batch norms are measured anew over `train.norm_samples` samples of the training
 * data, augmented as in training, with the weights as they are (src/net/running.c). The samples are the first of the epoch to come, so that a resumed run
 * takes the same ones.
 */
#include "train/run.h"

static halo_status measure(hl_run *run, hl_loader *loader, int64_t passes)
{
    bool collective = run->reducer && (hl_program_merges(run->train) || run->set.reduce.average == HL_AVERAGE_PARAMETERS);
    HL_AGREE(run->ctx, hl_loader_start(loader, run->at.epoch, 0));
    for (int64_t i = 0; i < passes; i++) {
        const hl_loaded *b = NULL;
        HL_AGREE(run->ctx, hl_loader_next(loader, &b));
        if (!b) break;
        hl_batch batch = {.dtype = HALO_F32, .x = b->x, .weight = b->weight, .first_sample = b->first_sample};
        halo_status st = hl_program_measure_running(run->train, &batch, i);
        run->lost = run->lost || (collective && st != HALO_OK);
        if (run->lost) return st;
        HL_AGREE(run->ctx, st);
    }
    return HALO_OK;
}

halo_status hl_run_measure_running(hl_run *run)
{
    int64_t samples = run->set.train.norm_samples;
    if (samples == 0 || !hl_program_has_running(run->train)) return HALO_OK;
    hl_loader_options options = hl_run_training_loader(run);
    options.batch = hl_run_part(run->ctx, &run->set) * run->ctx->ranks; /* whole runs of the program on every rank */
    options.drop_last = false;
    hl_loader *loader = NULL;
    halo_status st = hl_agree(run->ctx, hl_loader_create(run->ctx, run->source[HL_TRAIN], &options, &loader));
    if (st == HALO_OK) st = measure(run, loader, hl_div_up(samples, options.batch));
    hl_loader_destroy(loader);
    return st;
}
