/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.c -- every layer step becomes the ops of the backend contract: forward.c, backward.c and update.c
 * emit them, fuse.c says which activations their producers compute too.
 */
#include "net/compile/compile.h"

static halo_status lower_layer(hl_program *p, const hl_step *s)
{
    if (s->phase == HL_PHASE_LOSS) return hl_lower_loss(p);
    hl_layer_kind kind = hl_layer_of(p, s->layer)->kind;
    if (s->phase == HL_PHASE_FORWARD) {
        HL_TRY(hl_lower_forward[kind](p, s->layer));
        return hl_convert_output(p, s->layer);
    }
    HL_TRY(hl_convert_gradient(p, s->layer));
    return hl_lower_backward[kind](p, s->layer);
}

/* What a fused layer's activation makes useless: the producer's own output. */
static void drop_unused(hl_program *p)
{
    for (int i = 0; i < p->net->layers; i++) {
        if (p->fused[i] >= 0 || p->pooled[i] >= 0) p->value[p->y[i]].dead = true;
        if (p->fused[i] >= 0 && p->pooled[i] >= 0) p->value[p->y[p->fused[i]]].dead = true;
    }
}

halo_status hl_pass_lower(hl_program *p)
{
    HL_TRY(hl_fuse(p));
    int n;
    hl_step *layers = hl_take_steps(p, &n);
    halo_status st = hl_convert_output(p, 0);
    for (int i = 0; i < n && st == HALO_OK; i++) st = lower_layer(p, &layers[i]);
    free(layers);
    HL_TRY(st);
    drop_unused(p);
    if (p->opt.training) HL_TRY(hl_lower_update(p));
    return hl_sort_steps(p);
}
