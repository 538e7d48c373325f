/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.c -- a rank's share of a global batch (its group's, where several ranks hold a sample together), cut into the runs of a program: run i takes samples [i m, (i+1) m) of the share. A program has one size, so
 * what lies beyond the end of a share that m does not divide has weight 0.
 */
#include "tensor/block.h"
#include "train/run.h"

static int64_t share(const hl_run *run) { return hl_range_len(hl_block_range(run->set.batch, run->grid.data, 0)); }

int64_t hl_run_part(const hl_run *run) { return hl_div_up(share(run), run->set.train.accumulate); }

int64_t hl_run_parts(const hl_run *run) { return hl_div_up(share(run), hl_run_part(run)); }

halo_status hl_part_create(const hl_run *run, hl_part *p)
{
    const hl_source_info *info = &run->source[HL_TRAIN]->info;
    hl_loader_options o = {0};
    hl_run_cells(run, run->train, &o);
    *p = (hl_part){.samples = hl_run_part(run), .volume = (size_t)(info->ext[0] * o.x.ext[0] * o.x.ext[1] * o.x.ext[2]),
                   .targets = (size_t)(hl_target_volumes(info) ? info->targets * o.y.ext[0] * o.y.ext[1] * o.y.ext[2] : info->targets)};
    if (run->ctx->ranks == 1) return HALO_OK; /* its parts are whole */
    HL_TRY(hl_calloc(run->ctx, (size_t)p->samples * p->volume, sizeof(float), "a padded batch", &p->x));
    HL_TRY(hl_calloc(run->ctx, (size_t)p->samples * p->targets, sizeof(float), "a padded batch", &p->y));
    return hl_calloc(run->ctx, (size_t)p->samples, sizeof(double), "a padded batch", &p->weight);
}

void hl_part_free(hl_part *p)
{
    free(p->x);
    free(p->y);
    free(p->weight);
    *p = (hl_part){0};
}

hl_batch hl_part_of(const hl_part *p, const hl_loaded *b, int64_t number)
{
    int64_t first = number * p->samples, n = hl_min64(p->samples, hl_max64(0, b->samples - first));
    hl_batch batch = {.dtype = HALO_F32, .first_sample = b->first_sample + first, .weight_sum = b->weight_sum};
    if (n == p->samples) {
        batch.x = b->x + (size_t)first * p->volume;
        batch.y = b->y + (size_t)first * p->targets;
        batch.weight = b->weight + first;
        return batch;
    }
    memset(p->weight, 0, (size_t)p->samples * sizeof(*p->weight));
    if (n > 0) {
        memcpy(p->x, b->x + (size_t)first * p->volume, (size_t)n * p->volume * sizeof(float));
        memcpy(p->y, b->y + (size_t)first * p->targets, (size_t)n * p->targets * sizeof(float));
        memcpy(p->weight, b->weight + first, (size_t)n * sizeof(double));
    }
    batch.x = p->x;
    batch.y = p->y;
    batch.weight = p->weight;
    return batch;
}
