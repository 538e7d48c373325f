/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.c -- weighted mean losses and their gradient in one go.
 *
 *   loss_n = 1/T sum_t f(x[n,t] - target[n,t]);  STAT[0] += sum_n sw[n] loss_n, STAT[1] += sum_n sw[n];  dx = sw[n]/T f' loss_scale / weight_sum
 *   relative mse: loss_n times 1 / mean of the sample's target^2
 *   classes: of a cell with logits x[c] and class t, m = max x[c], z = sum exp(x[c] - m):  loss = m - x[t] + log z,  d/dx[c] = exp(x[c] - m)/z - [c = t]
 *   dice: over the cells of a sample, I_c = sum p_c [t = c], S_c = sum p_c + sum [t = c], dice_c = (2 I_c + 1)/(S_c + 1), loss = 1 - sum a_c dice_c, a_c of classes
 *   from 1 on; g_c = -a_c (2 [t = c] - dice_c)/(S_c + 1), d/dx[k] = p_k (g_k - sum_c p_c g_c)
 */
#include "groups.h"

typedef struct loss_plan {
    hl_cuda_plan super;
    hl_groups g;
    hl_losing l;
} loss_plan;

static const halo_role roles[] = {HALO_X, HALO_T, HALO_DX};

static bool is_classes(const halo_op_desc *d) { return d->kind == HALO_OP_LOSS_SUMS || hl_loss_of_classes(d->loss); }

/* Cells of one sample, all of them or (classes) those of one channel. */
static bool spatial_groups(const halo_op_desc *d, hl_groups *g)
{
    int64_t s[3][HALO_DIMS], ext[HALO_DIMS];
    const int64_t *stride[3];
    bool classes = is_classes(d);
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
    if (!spatial_groups(d, g) && (is_classes(d) || !feature_groups(d, g))) return false;
    hl_cuda_groups_part(g, 3);
    return true;
}

static double targets_of(const halo_op_desc *d)
{
    double n = 1;
    for (int k = HALO_C; k < HALO_DIMS; k++) n *= (double)d->global_ext[k];
    return n > 0 ? n : (double)(hl_operand_box_elements(&d->t[HALO_T]) / d->t[HALO_T].ext[HALO_N]);
}

static double part_of(const halo_op_desc *d) { return (double)(hl_operand_box_elements(&d->t[HALO_T]) / d->t[HALO_T].ext[HALO_N]) / targets_of(d); }

static int64_t channel_step(const halo_op_desc *d, halo_role role)
{
    int64_t s[HALO_DIMS] = {0};
    if (hl_has(d, role)) HL_BUG_UNLESS(hl_cuda_strides(&d->t[role], s));
    return s[HALO_C];
}

static hl_losing losing_of(const halo_op_desc *d)
{
    const bool dice = d->kind == HALO_OP_LOSS_SUMS || d->loss == HALO_LOSS_DICE || d->loss == HALO_LOSS_DICE_CE;
    return (hl_losing){.loss = d->loss,
                       .delta = d->delta,
                       .targets = targets_of(d),
                       .part = part_of(d),
                       .least = HL_LEAST_SQUARE,
                       .of_classes = is_classes(d),
                       .dice = dice,
                       .entropy = !dice || d->loss == HALO_LOSS_DICE_CE,
                       .ignores = d->ignores,
                       .ignore = (float)d->ignore,
                       .classes = d->t[HALO_X].ext[HALO_C],
                       .x_step = channel_step(d, HALO_X),
                       .dx_step = channel_step(d, HALO_DX)};
}

/* Targets are f32, or of x's type; what follows from a whole sample needs all of it, or its sums. */
static bool fits(const halo_op_desc *d, hl_groups *g)
{
    const halo_operand *x = &d->t[HALO_X], *t = &d->t[HALO_T];
    if (!hl_cuda_activation(d, HALO_X) || !hl_cuda_activation(d, HALO_T) || (t->dtype != x->dtype && t->dtype != HALO_F32)) return false;
    if (t->ext[HALO_N] != x->ext[HALO_N] || !hl_cuda_like(d, HALO_DX, HALO_X, true) || !groups_of(d, g)) return false;
    return hl_cuda_vector(d, HALO_SW, HALO_F64, true) && hl_cuda_vector(d, HALO_WT, HALO_F64, true) && hl_cuda_vector(d, HALO_X2, HALO_F64, true);
}

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_groups g;
    (void)dev;
    if (!fits(d, &g) || !hl_cuda_vector(d, HALO_STAT, HALO_F64, false) || !hl_cuda_vector(d, HALO_STAT2, HALO_F64, true)) return 0;
    const hl_losing l = losing_of(d);
    if (l.part != 1 && ((l.dice && !hl_has(d, HALO_STAT2)) || d->loss == HALO_LOSS_RELATIVE_MSE)) return 0;
    return hl_cuda_offer("cuda", hl_cuda_loss_bytes(&g, &l), out);
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    loss_plan *p;
    (void)choice;
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    HL_BUG_UNLESS(groups_of(d, &p->g));
    p->l = losing_of(d);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static hl_loss_memory memory_of(const loss_plan *p, const halo_op_args *args, halo_role stat)
{
    const hl_cuda_plan *s = &p->super;
    return (hl_loss_memory){.x = hl_cuda_ptr(s, args, HALO_X),
                            .t = hl_cuda_ptr(s, args, HALO_T),
                            .weight = hl_cuda_ptr(s, args, HALO_SW),
                            .of_class = hl_cuda_ptr(s, args, HALO_WT),
                            .divisor = hl_cuda_ptr(s, args, HALO_X2),
                            .given = stat == HALO_STAT ? hl_cuda_ptr(s, args, HALO_STAT2) : NULL,
                            .dx = hl_cuda_ptr(s, args, HALO_DX),
                            .scratch = args->scratch,
                            .stat = hl_cuda_ptr(s, args, stat)};
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const loss_plan *p = (const loss_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    const hl_loss_memory m = memory_of(p, args, HALO_STAT);
    const halo_step_record *record;
    HL_TRY(hl_cuda_record(s->dev, args->record, &record));
    HL_CUDA(s->dev, hl_cuda_lose(s->dev->compute, s->d.t[HALO_X].dtype, s->d.t[HALO_T].dtype, &p->g, &p->l, &m, record));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_loss, HALO_OP_LOSS, candidates, make, run);

/* ------------------------------------------------------------------------------------------------ sums of parts of samples */

static int sums_candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    hl_groups g;
    (void)dev;
    if (!fits(d, &g) || !hl_cuda_vector(d, HALO_STAT2, HALO_F64, false)) return 0;
    const hl_losing l = losing_of(d);
    return hl_cuda_offer("cuda", hl_cuda_loss_bytes(&g, &l), out);
}

static halo_status sums_run(halo_plan *plan, const halo_op_args *args)
{
    const loss_plan *p = (const loss_plan *)plan;
    const hl_cuda_plan *s = &p->super;
    const hl_loss_memory m = memory_of(p, args, HALO_STAT2);
    HL_CUDA(s->dev, hl_cuda_loss_sums(s->dev->compute, s->d.t[HALO_X].dtype, s->d.t[HALO_T].dtype, &p->g, &p->l, &m));
    return HALO_OK;
}

HL_CUDA_CLASS(hl_cuda_loss_sums_class, HALO_OP_LOSS_SUMS, sums_candidates, make, sums_run);
