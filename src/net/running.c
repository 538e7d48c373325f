/* SPDX-License-Identifier: Apache-2.0 */
/*
 * running.c -- the statistics that batch norms use in evaluation, measured with the weights as they are instead of averaged over the steps of training:
 *
 *   running = (1/n) sum_i s_i      s_i: mean and variance of batch i in a forward pass
 *
 * The moving average of training is that of weights long gone. With adaptive optimisers a few steps move a layer's mean by its own deviation, and the network
 * that is evaluated is then one that never was. Wu & Johnson, "Rethinking 'Batch' in BatchNorm", 2021, section 3.
 *
 * A pass of the training program leaves momentum * running + (1 - momentum) * s; with running set to 0 before, s follows by division.
 */
#include "net/ir.h"

bool hl_program_has_running(const hl_program *p) { return p->model->moving > 0; }

/* mean = the mean of i batches before, new = what the pass left: the mean of i + 1 batches, in mean. */
static void add_batch(const hl_model *m, int64_t i, float *mean, const float *new)
{
    for (int param = 0; param < m->params; param++) {
        const hl_param_info *p = &m->param[param];
        if (p->role != HALO_RUN || p->frozen) continue;
        double share = 1 / (1 - m->net->layer[p->layer].momentum);
        for (int64_t k = m->offset[param]; k < m->offset[param] + p->count; k++)
            mean[k] = (float)((double)mean[k] + ((double)new[k] * share - (double)mean[k]) / (double)(i + 1));
    }
}

static halo_status pass(hl_program *p, const hl_batch *batch)
{
    const halo_device_ops *ops = p->dev->ops;
    if (ops->enter) ops->enter(p->dev);
    halo_status st = hl_run_forward(p, batch);
    if (st == HALO_OK) st = ops->wait(p->dev, NULL);
    if (ops->leave) ops->leave(p->dev);
    return st;
}

static halo_status measure(hl_program *p, const hl_batch *batch, int64_t number, float *mean, float *new)
{
    hl_model *m = p->model;
    const halo_device_ops *ops = p->dev->ops;
    const halo_operand all = hl_operand_flat(HALO_F32, m->moving);
    HL_TRY(ops->wait(p->dev, NULL));
    HL_TRY(ops->download(p->dev, &all, m->running, HALO_F32, mean));
    HL_TRY(ops->fill(p->dev, m->running, 0, (size_t)m->moving * sizeof(float), NULL));
    HL_TRY(pass(p, batch));
    HL_TRY(ops->download(p->dev, &all, m->running, HALO_F32, new));
    add_batch(m, number, mean, new);
    HL_TRY(ops->upload(p->dev, &all, m->running, HALO_F32, mean));
    return p->average > 0 ? hl_average_buffer(p, m->running, m->moving, HALO_F32) : HALO_OK;
}

halo_status hl_program_measure_running(hl_program *p, const hl_batch *batch, int64_t number)
{
    HL_BUG_UNLESS(p->opt.training && p->arena && batch->x);
    size_t n = (size_t)p->model->moving;
    float *mean;
    if (n == 0) return HALO_OK;
    HL_TRY(hl_calloc(p->ctx, 2 * n, sizeof(*mean), "running statistics", &mean));
    halo_status st = measure(p, batch, number, mean, mean + n);
    free(mean);
    return st;
}
