/* SPDX-License-Identifier: Apache-2.0 */
/*
 * margins.c -- the ops that write margins. A write into a value's box makes its margin stale; the first use
 * after that which reads the margin has a MARGIN op put in front of it, so a margin is written once however
 * many consumers there are. Where the margin holds nothing but zeros and nobody else uses its storage, `fit`
 * takes the op out again: ops write only inside their box, and the zeros stay.
 */
#include "net/compile/compile.h"

static bool reads_margin(const hl_step *s, halo_role role)
{
    if (s->desc.kind == HALO_OP_MARGIN || !hl_step_reads(s, role)) return false;
    for (int i = 0; i < 6; i++)
        if (s->use[role].margin[i / 2][i % 2]) return true;
    return false;
}

static halo_status write_margin(hl_program *p, const hl_step *reader, int value)
{
    hl_step *s;
    const hl_value *v = &p->value[value];
    hl_phase phase = reader->phase;
    HL_TRY(hl_op_new(p, HALO_OP_MARGIN, phase, v->layer, &s));
    s->use[HALO_Y] = hl_use_of(value);
    memcpy(s->use[HALO_Y].margin, v->margin, sizeof(v->margin));
    for (int i = 0; i < 6; i++) s->desc.margin_mode[i / 2][i % 2] = v->mode[i / 2];
    return HALO_OK;
}

static halo_status append(hl_program *p, const hl_step *step, bool *fresh)
{
    for (int r = 0; r < HALO_ROLES; r++) {
        int value = step->use[r].value;
        if (value < 0 || !reads_margin(step, r) || fresh[value]) continue;
        HL_TRY(write_margin(p, step, value));
        fresh[value] = true;
    }
    hl_step *s;
    HL_TRY(hl_step_new(p, step->kind, step->phase, step->layer, &s));
    *s = *step;
    for (int r = 0; r < HALO_ROLES; r++)
        if (hl_step_writes(step, r)) fresh[step->use[r].value] = false;
    return HALO_OK;
}

halo_status hl_pass_margins(hl_program *p)
{
    bool *fresh;
    HL_TRY(hl_calloc(p->ctx, (size_t)p->values, sizeof(*fresh), "margin states", &fresh));
    hl_step *old = p->step;
    int n = p->steps;
    p->step = NULL;
    p->steps = 0;
    p->step_cap = 0;
    halo_status st = HALO_OK;
    for (int i = 0; i < n && st == HALO_OK; i++) st = append(p, &old[i], fresh);
    free(old);
    free(fresh);
    return st;
}
