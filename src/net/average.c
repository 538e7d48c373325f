/* SPDX-License-Identifier: Apache-2.0 */
/*
 * average.c -- instead of gradients every step, parameters every n steps: each rank trains on its share alone, and then w = (1/P) sum of the ranks' w, and the
 * same of the optimiser's state and of running statistics (McMahan et al., "Communication-efficient learning of deep networks from decentralized data",
 * 2017; Stich, "Local SGD converges fast and communicates little", 2019). After an average all ranks have equal bits.
 */
#include "net/ir.h"

static halo_status average(hl_program *p, void *base, int64_t n, halo_dtype type)
{
    HL_TRY(hl_comm_sum_buffer(p->ctx, base, n, type));
    double *x = base;
    float *y = base;
    for (int64_t i = 0; i < n && type == HALO_F64; i++) x[i] /= p->ctx->ranks;
    for (int64_t i = 0; i < n && type == HALO_F32; i++) y[i] /= (float)p->ctx->ranks;
    return HALO_OK;
}

/* Of memory that MPI cannot reach, by way of the host. */
static halo_status average_copy(hl_program *p, void *base, int64_t n, halo_dtype type)
{
    const halo_operand all = hl_operand_flat(type, n);
    void *copy;
    HL_TRY(hl_calloc(p->ctx, (size_t)n, hl_dtype_size(type), "parameters on their way between device and ranks", &copy));
    halo_status st = p->dev->ops->download(p->dev, &all, base, type, copy);
    st = hl_agree(p->ctx, st);
    if (st == HALO_OK) st = average(p, copy, n, type);
    if (st == HALO_OK) st = p->dev->ops->upload(p->dev, &all, base, type, copy);
    free(copy);
    return st;
}

halo_status hl_average_buffer(hl_program *p, void *base, int64_t n, halo_dtype type)
{
    if (!base || n == 0) return HALO_OK;
    return (p->dev->ops->mpi_pointer ? average : average_copy)(p, base, n, type);
}

halo_status hl_program_average_now(hl_program *p)
{
    hl_model *m = p->model;
    if (p->average == 0 || p->averaged == m->steps) return HALO_OK;
    HL_TRY(p->dev->ops->wait(p->dev, NULL));
    for (int a = 0; a < HL_ARRAYS; a++)
        if (a != HL_GRADIENT) HL_TRY(hl_average_buffer(p, m->base[a], m->trained, m->dev->master));
    HL_TRY(hl_average_buffer(p, m->running, m->moving, HALO_F32));
    p->averaged = m->steps;
    m->version++; /* images and norms of weights follow in the next run */
    return HALO_OK;
}

halo_status hl_program_average(hl_program *p, int64_t steps)
{
    HL_BUG_UNLESS(p->reducer && steps > 0);
    p->average = steps;
    p->averaged = p->model->steps;
    return HALO_OK;
}
