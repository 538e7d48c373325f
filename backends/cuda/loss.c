/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.c -- weighted mean losses and their gradient in one go.
 *
 *   loss_n = 1/T sum_t f(x[n,t] - target[n,t]);  STAT[0] += sum_n sw[n] loss_n, STAT[1] += sum_n sw[n];  dx = sw[n]/T f' loss_scale / weight_sum
 *   classes: of a cell with logits x[c] and class t, m = max x[c], z = sum exp(x[c] - m):  loss = m - x[t] + log z,  d/dx[c] = exp(x[c] - m)/z - [c = t]
 */
#include "groups.h"

typedef struct loss_plan {
    hl_cuda_plan super;
    hl_groups g;
    hl_losing l;
} loss_plan;

static const halo_role roles[] = {HALO_X, HALO_T, HALO_DX};

/* Cells of one sample, all of them or (classes) those of one channel. */
static bool spatial_groups(const halo_op_desc *d, hl_groups *g)
{
    int64_t s[3][HALO_DIMS], ext[HALO_DIMS];
    const int64_t *stride[3];
    bool classes = d->loss == HALO_LOSS_CROSS_ENTROPY;
    memcpy(ext, d->t[HALO_X].ext, sizeof(ext));
    ext[HALO_N] = 1;
    if (classes) ext[HALO_C] = 1;
    for (int a = 0; a < 3; a++) {
        halo_role r = hl_has(d, roles[a]) ? roles[a] : HALO_X;
        if (memcmp(d->t[r].ext + HALO_D, ext + HALO_D, 3 * sizeof(int64_t)) != 0 || d->t[r].ext[HALO_C] != (classes && r == HALO_T ? 1 : d->t[HALO_X].ext[HALO_C])) return false;
        if (!hl_cuda_strides(&d->t[r], s[a])) return false;
        stride[a] = s[a];
        g->major_step[a] = s[a][HALO_N];
    }
    hl_cuda_cells(ext, stride, 3, &g->cells);
    return true;
}

/* The features of one sample, however they are stored. */
static bool feature_groups(const halo_op_desc *d, hl_groups *g)
{
    int64_t s[3][HALO_DIMS] = {{0}}, ext[HALO_DIMS] = {1, 1, 1, 1, 1}, count;
    const int64_t *stride[3];
    for (int a = 0; a < 3; a++) {
        halo_role r = hl_has(d, roles[a]) ? roles[a] : HALO_X;
        if (!hl_cuda_features(&d->t[r], &count, &s[a][HALO_W], &g->major_step[a])) return false;
        if (a > 0 && count != ext[HALO_W]) return false;
        ext[HALO_W] = count;
        stride[a] = s[a];
    }
    hl_cuda_cells(ext, stride, 3, &g->cells);
    return true;
}

static bool groups_of(const halo_op_desc *d, hl_groups *g)
{
    *g = (hl_groups){.groups = d->t[HALO_X].ext[HALO_N], .minor = 1};
    if (!spatial_groups(d, g) && (d->loss == HALO_LOSS_CROSS_ENTROPY || !feature_groups(d, g))) return false;
    hl_cuda_groups_part(g);
    return true;
}

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_groups g;
    (void)dev;
    if (d->loss > HALO_LOSS_CROSS_ENTROPY || d->ignores || hl_has(d, HALO_WT) || hl_has(d, HALO_X2) || hl_has(d, HALO_STAT2)) return 0;
    for (int a = 0; a < 3; a++) {
        if (roles[a] == HALO_DX && !hl_has(d, HALO_DX)) continue;
        if (!hl_cuda_activation(d, roles[a]) || d->t[roles[a]].dtype != d->t[HALO_X].dtype || d->t[roles[a]].ext[HALO_N] != d->t[HALO_X].ext[HALO_N]) return 0;
    }
    if (!hl_cuda_vector(d, HALO_STAT, HALO_F64, false) || !hl_cuda_vector(d, HALO_SW, HALO_F64, true) || !groups_of(d, &g)) return 0;
    return hl_cuda_offer("cuda", hl_cuda_groups_bytes(&g), out);
}

static double targets_of(const halo_op_desc *d)
{
    double n = 1;
    for (int k = HALO_C; k < HALO_DIMS; k++) n *= (double)d->global_ext[k];
    return n > 0 ? n : (double)(hl_operand_box_elements(&d->t[HALO_T]) / d->t[HALO_T].ext[HALO_N]);
}

static int64_t channel_step(const halo_op_desc *d, halo_role role)
{
    int64_t s[HALO_DIMS] = {0};
    if (hl_has(d, role)) HL_BUG_UNLESS(hl_cuda_strides(&d->t[role], s));
    return s[HALO_C];
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    loss_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    HL_BUG_UNLESS(groups_of(d, &p->g));
    p->l = (hl_losing){.loss = d->loss,
                       .delta = d->delta,
                       .targets = targets_of(d),
                       .classes = d->t[HALO_X].ext[HALO_C],
                       .x_step = channel_step(d, HALO_X),
                       .dx_step = channel_step(d, HALO_DX)};
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const loss_plan *p = (const loss_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    const halo_step_record *record;
    HL_TRY(hl_cuda_record(s->dev, args->record, &record));
    HL_CUDA(s->dev, hl_cuda_lose(s->dev->compute, s->d.t[HALO_X].dtype, &p->g, &p->l, hl_cuda_ptr(s, args, HALO_X), hl_cuda_ptr(s, args, HALO_T), hl_cuda_ptr(s, args, HALO_SW),
                                 hl_cuda_ptr(s, args, HALO_DX), args->scratch, hl_cuda_ptr(s, args, HALO_STAT), record));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_loss, HALO_OP_LOSS, candidates, make, run);
