/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forms.c -- the two forms of a value, blocks and whole, and who counts once.
 *
 *            forward                                             backward
 *   gather   every process gets the blocks of all                each takes its block of the gradient, which all have alike
 *   cut      each takes its block of what all have alike         the gradient's blocks are gathered
 *
 * Layers on whole tensors are computed by all processes of a group alike, bit for bit. The gradients of their parameters would be counted once per process
 * in the sum over ranks: the first process of a group forms them, the others put zeros, which changes no bit of the sum.
 */
#include "net/compile/compile.h"

halo_status hl_add_copy(hl_program *p, hl_phase phase, int layer, int from, int to, bool accumulate)
{
    hl_step *s;
    HL_TRY(hl_op_new(p, HALO_OP_COPY, phase, layer, &s));
    s->use[HALO_X] = hl_use_of(from);
    s->use[HALO_Y] = hl_use_of(to);
    s->desc.accumulate = accumulate;
    return HALO_OK;
}

/* The cells of this process's block in a whole value. */
static void use_block(const hl_program *p, hl_use *of_whole, int block)
{
    memcpy(of_whole->lo, p->value[block].lo, sizeof(of_whole->lo));
    memcpy(of_whole->ext, p->value[block].ext + HALO_D, sizeof(of_whole->ext));
}

static halo_status gather(hl_program *p, hl_phase phase, int layer, int block, int whole, bool add)
{
    const hl_transfer t = {.kind = HL_TRANSFER_GATHER, .layer = layer, .from = block, .to = whole, .add = add};
    HL_TRY(hl_add_copy(p, phase, layer, block, whole, add));
    use_block(p, &p->step[p->steps - 1].use[HALO_Y], block);
    return hl_transfer_new(p, &t, phase);
}

static halo_status take_block(hl_program *p, hl_phase phase, int layer, int whole, int block, bool add)
{
    HL_TRY(hl_add_copy(p, phase, layer, whole, block, add));
    use_block(p, &p->step[p->steps - 1].use[HALO_X], block);
    return HALO_OK;
}

halo_status hl_convert_output(hl_program *p, int layer)
{
    if (p->other[layer] < 0) return HALO_OK;
    return (p->split[layer] ? gather : take_block)(p, HL_PHASE_FORWARD, layer, p->y[layer], p->other[layer], false);
}

halo_status hl_convert_gradient(hl_program *p, int layer)
{
    if (p->g_other[layer] < 0) return HALO_OK;
    bool add = p->g_first[layer];
    return (p->split[layer] ? take_block : gather)(p, HL_PHASE_BACKWARD, layer, p->g_other[layer], p->g[layer], add);
}

bool hl_forms_gradients(const hl_program *p, int layer)
{
    return hl_model_trains(p->model, layer) && (p->split[layer] || hl_grid_number(&p->grid) == 0);
}

halo_status hl_no_gradients(hl_program *p, int layer)
{
    const halo_role roles[] = {HALO_WT, HALO_B};
    if (!hl_model_trains(p->model, layer)) return HALO_OK; /* nobody reads them */
    for (size_t i = 0; i < HL_COUNT(roles); i++) {
        int param = hl_layer_param(p, layer, roles[i]), value;
        hl_step *s;
        if (param < 0) continue;
        HL_TRY(hl_param_value(p, param, HL_GRADIENT, &value));
        HL_TRY(hl_step_new(p, HL_STEP_CLEAR, HL_PHASE_BACKWARD, layer, &s));
        s->use[HALO_Y] = hl_use_of(value);
    }
    return HALO_OK;
}
