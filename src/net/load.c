/* SPDX-License-Identifier: Apache-2.0 */
/* load.c -- the data of a run goes up to the device: input, targets, weights of samples, and the numbers that the run adds to. */
#include "net/ir.h"

static halo_status upload(hl_program *p, int value, halo_dtype host_dtype, const void *host)
{
    return p->dev->ops->upload(p->dev, &p->value[value].operand, hl_storage_of(p, value), host_dtype, host);
}

static halo_status load_input(hl_program *p, const hl_batch *batch)
{
    const halo_operand input = hl_input_operand(p);
    return p->dev->ops->upload(p->dev, &input, hl_storage_of(p, p->y[0]), batch->dtype, batch->x);
}

/* Targets; where samples are cut into rows, once per row. */
static halo_status load_targets(hl_program *p, const float *y)
{
    const int64_t rows = hl_rows(p);
    halo_operand o = p->value[p->target].operand;
    if (rows == 1) return upload(p, p->target, HALO_F32, y);
    size_t size = (size_t)(o.ext[HALO_C] * o.ext[HALO_D] * o.ext[HALO_H] * o.ext[HALO_W]);
    o.ext[HALO_N] = 1;
    for (int64_t n = 0; n < p->opt.batch * rows; n++) {
        o.lo[HALO_N] = n;
        HL_TRY(p->dev->ops->upload(p->dev, &o, hl_storage_of(p, p->target), HALO_F32, y + (size_t)(n / rows) * size));
    }
    return HALO_OK;
}

/* No loss yet; and gradients are taken as they are, where nobody decides otherwise. */
static halo_status load_numbers(hl_program *p)
{
    double *v = p->number;
    for (int i = 0; i < HALO_NUMBERS; i++)
        if (i < HALO_NUM_VOTE || i >= HALO_NUM_VOTE + HALO_NUM_VOTES) v[i] = i == HALO_NUM_FACTOR;
    return upload(p, p->numbers, HALO_F64, v);
}

halo_status hl_load(hl_program *p, const hl_batch *batch)
{
    HL_TRY(hl_arena_take(p));
    const int64_t rows = hl_rows(p);
    double sum = 0;
    int64_t last = -1;
    for (int64_t n = 0; n < p->opt.batch * rows; n++) {
        p->host[n] = batch->weight ? batch->weight[n / rows] : 1;
        sum += p->host[n];
        if (p->host[n] != 0) last = n / rows;
    }
    p->record.batch = p->opt.batch;
    p->record.padding = p->opt.batch - 1 - last;
    if (!batch->numbers) HL_TRY(load_input(p, batch));
    if (batch->y && !(batch->numbers && p->opt.stored.targets)) HL_TRY(load_targets(p, batch->y));
    if (batch->y) HL_TRY(hl_weigh_labels(p, batch->y, p->host));
    HL_TRY(upload(p, p->weight, HALO_F64, p->host));
    HL_TRY(load_numbers(p));
    if (batch->numbers) HL_TRY(hl_landing_take(p, batch)); /* last: what is uploaded behind it would wait for it */
    p->record.first_sample = batch->first_sample;
    p->record.weight_sum = batch->weight_sum != 0 && p->average == 0 ? batch->weight_sum * (double)rows : sum != 0 ? sum : 1;
    p->record.loss_scale = p->opt.training ? p->model->scaler.scale : 1;
    return HALO_OK;
}
