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

static halo_status room(const hl_run *run, const hl_part *p, size_t bytes, void *out)
{
    void *memory;
    if (!p->device) return hl_calloc(run->ctx, bytes, 1, "a padded batch", out);
    HL_TRY(p->device->ops->pin(p->device, bytes, &memory));
    memset(memory, 0, bytes);
    memcpy(out, &memory, sizeof(memory));
    return HALO_OK;
}

halo_status hl_part_create(const hl_run *run, hl_part *p)
{
    const hl_source_info *info = &run->source[HL_TRAIN]->info;
    const hl_loader_options o = hl_run_training_loader(run);
    *p = (hl_part){.device = o.stored ? run->dev : NULL, .value = o.stored ? hl_dtype_size(hl_loader_stored_type(&o, info->dtype)) : sizeof(float), .samples = hl_run_part(run), .volume = (size_t)(info->ext[0] * o.x.ext[0] * o.x.ext[1] * o.x.ext[2]),
                   .targets = (size_t)(hl_target_volumes(info) ? info->targets * o.y.ext[0] * o.y.ext[1] * o.y.ext[2] : info->targets)};
    if (run->ctx->ranks == 1) return HALO_OK; /* its parts are whole */
    HL_TRY(room(run, p, (size_t)p->samples * p->volume * p->value, &p->x));
    HL_TRY(room(run, p, (size_t)p->samples * p->targets * sizeof(float), &p->y));
    if (p->device) HL_TRY(room(run, p, (size_t)(2 * p->samples * HALO_SAMPLE_NUMBERS) * sizeof(double), &p->numbers));
    return hl_calloc(run->ctx, (size_t)p->samples, sizeof(double), "a padded batch", &p->weight);
}

void hl_part_free(hl_part *p)
{
    void *const all[] = {p->x, p->y, p->numbers};
    for (size_t i = 0; i < HL_COUNT(all); i++)
        if (p->device) p->device->ops->unpin(p->device, all[i]);
        else free(all[i]);
    free(p->weight);
    *p = (hl_part){0};
}

static const char *x_of(const hl_part *p, const hl_loaded *b, int64_t first) { return (p->device ? (const char *)b->stored : (const char *)b->x) + (size_t)first * p->volume * p->value; }

/* In the rows of numbers that x and y have. */
static void copy_numbers(const hl_part *p, const hl_loaded *b, int64_t first, int64_t n)
{
    memset(p->numbers, 0, (size_t)(2 * p->samples * HALO_SAMPLE_NUMBERS) * sizeof(double));
    for (int half = 0; half < 2 && n > 0; half++)
        memcpy(p->numbers + half * p->samples * HALO_SAMPLE_NUMBERS, b->numbers + (half * b->samples + first) * HALO_SAMPLE_NUMBERS, (size_t)(n * HALO_SAMPLE_NUMBERS) * sizeof(double));
}

static hl_batch filled_up(const hl_part *p, const hl_loaded *b, int64_t first, int64_t n)
{
    memset(p->weight, 0, (size_t)p->samples * sizeof(*p->weight));
    if (n > 0) {
        memcpy(p->x, x_of(p, b, first), (size_t)n * p->volume * p->value);
        memcpy(p->y, b->y + (size_t)first * p->targets, (size_t)n * p->targets * sizeof(float));
        memcpy(p->weight, b->weight + first, (size_t)n * sizeof(double));
    }
    if (p->device) copy_numbers(p, b, first, n);
    return (hl_batch){.x = p->x, .y = p->y, .weight = p->weight, .numbers = p->numbers, .numbers_y = p->device ? p->numbers + p->samples * HALO_SAMPLE_NUMBERS : NULL};
}

static hl_batch within(const hl_part *p, const hl_loaded *b, int64_t first)
{
    hl_batch batch = {.x = x_of(p, b, first), .y = b->y + (size_t)first * p->targets, .weight = b->weight + first};
    if (!p->device) return batch;
    batch.numbers = b->numbers + first * HALO_SAMPLE_NUMBERS;
    batch.numbers_y = batch.numbers + b->samples * HALO_SAMPLE_NUMBERS;
    return batch;
}

hl_batch hl_part_of(const hl_part *p, const hl_loaded *b, int64_t number)
{
    const int64_t first = number * p->samples, n = hl_min64(p->samples, hl_max64(0, b->samples - first));
    hl_batch batch = n == p->samples ? within(p, b, first) : filled_up(p, b, first, n);
    batch.dtype = n > 0 && p->device ? b->stored_type : HALO_F32;
    batch.first_sample = b->first_sample + first;
    batch.weight_sum = b->weight_sum;
    batch.serial = b->serial;
    return batch;
}

bool hl_part_next(const hl_part *p, const hl_loaded *b, int64_t number, hl_batch *batch)
{
    if (!p->device || (number + 1) * p->samples > b->samples) return false;
    *batch = hl_part_of(p, b, number);
    return true;
}
