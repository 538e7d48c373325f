/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c -- the end of a training step: |dw|^2 and the count of values that are not finite, per parameter; then what follows from all of them together (is there to be an update, clipping); then one
 * optimiser step per parameter. The device does all of it without the host. Parameters come in the order of their storage, which is that of backward. |w|^2 is kept by the updates
 * themselves; it is measured when the weights were changed from outside.
 */
#include "net/compile/compile.h"

static halo_status square_sum(hl_program *p, hl_phase phase, int param, int array, int norm)
{
    hl_step *s;
    int x, stat;
    HL_TRY(hl_param_value(p, param, array, &x));
    HL_TRY(hl_param_value(p, param, norm, &stat));
    HL_TRY(hl_op_new(p, HALO_OP_SUMSQ, phase, p->model->param[param].layer, &s));
    s->param = param;
    s->use[HALO_X] = hl_use_flat(x);
    s->use[HALO_STAT] = hl_use_of(stat);
    return HALO_OK;
}

static double decay_of(const hl_program *p, const hl_param_info *info)
{
    const hl_optim_spec *o = &p->model->optim;
    bool dense = hl_layer_of(p, info->layer)->kind == HL_LAYER_DENSE;
    if (!info->decay) return 0;
    return dense && o->dense_decay >= 0 ? o->dense_decay : o->weight_decay;
}

static halo_status use_array(hl_program *p, int param, int array, bool flat, halo_role role)
{
    int value;
    hl_step *s = &p->step[p->steps - 1];
    HL_TRY(hl_param_value(p, param, array, &value));
    s->use[role] = flat ? hl_use_flat(value) : hl_use_of(value);
    return HALO_OK;
}

static halo_status update(hl_program *p, int param)
{
    const hl_model *m = p->model;
    hl_step *s;
    HL_TRY(hl_op_new(p, HALO_OP_UPDATE, HL_PHASE_UPDATE, m->param[param].layer, &s));
    s->param = param;
    s->desc.update = m->optim.update;
    s->desc.update.weight_decay = decay_of(p, &m->param[param]);
    HL_TRY(use_array(p, param, HL_MASTER, true, HALO_WT));
    HL_TRY(use_array(p, param, HL_GRADIENT, true, HALO_DW));
    p->step[p->steps - 1].use[HALO_NUM] = hl_use_of(p->numbers);
    if (m->has_state[0]) HL_TRY(use_array(p, param, HL_STATE1, true, HALO_M1));
    if (m->has_state[1]) HL_TRY(use_array(p, param, HL_STATE2, true, HALO_M2));
    if (m->optim.update.larc == HALO_LARC_OFF) return HALO_OK;
    HL_TRY(use_array(p, param, HL_MODEL_GRADIENT_NORM, false, HALO_STAT));
    return use_array(p, param, HL_MODEL_WEIGHT_NORM, false, HALO_STAT2);
}

static halo_status decide(hl_program *p)
{
    hl_step *s;
    int norms;
    if (p->model->params == 0) return HALO_OK;
    HL_TRY(hl_norms_value(p, &norms));
    HL_TRY(hl_op_new(p, HALO_OP_DECIDE, HL_PHASE_DECIDE, -1, &s));
    s->desc.clip_norm = p->model->optim.clip_norm;
    s->use[HALO_X] = hl_use_of(norms);
    s->use[HALO_NUM] = hl_use_of(p->numbers);
    return HALO_OK;
}

halo_status hl_lower_update(hl_program *p)
{
    const hl_model *m = p->model;
    for (int layer = p->net->layers - 1; layer >= 0; layer--) {
        for (int i = 0; i < m->params; i++) {
            if (m->param[i].layer != layer || !m->param[i].trainable || !p->live[layer]) continue;
            if (m->optim.update.larc != HALO_LARC_OFF)
                HL_TRY(square_sum(p, HL_PHASE_WEIGHT_NORMS, i, HL_MASTER, HL_MODEL_WEIGHT_NORM));
            HL_TRY(square_sum(p, HL_PHASE_GRADIENT_NORMS, i, HL_GRADIENT, HL_MODEL_GRADIENT_NORM));
            HL_TRY(update(p, i));
        }
    }
    return decide(p);
}
