/* SPDX-License-Identifier: Apache-2.0 */
/*
 * margins.c -- the steps that write margins. A write into a value's box makes its margin stale; the first use
 * after that which reads the margin has them put in front of it, so a margin is written once however
 * many consumers there are: first a transfer for what neighbouring processes hold, then a MARGIN op for the rest, its
 * corners included. Where the margin holds nothing but zeros and nobody else uses its storage, `fit`
 * takes the op out again: ops write only inside their box, and the zeros stay.
 */
#include "net/compile/compile.h"

static bool reads_margin(const hl_step *s, halo_role role)
{
    if (s->kind != HL_STEP_OP || s->desc.kind == HALO_OP_MARGIN || !hl_step_reads(s, role)) return false;
    if (s->use[role].near) return true;
    for (int i = 0; i < 6; i++)
        if (s->use[role].margin[i / 2][i % 2]) return true;
    return false;
}

static halo_status send_margin(hl_program *p, hl_phase phase, int value)
{
    const hl_value *v = &p->value[value];
    const hl_transfer t = {.kind = HL_TRANSFER_MARGINS, .layer = v->layer, .from = value, .to = value};
    return v->kind == HL_VALUE_INPUT ? HALO_OK : hl_transfer_new(p, &t, phase); /* the input comes with its margin */
}

static bool has_local_margin(const hl_value *v)
{
    for (int a = 0; a < 3; a++)
        if (v->mode[a] != HALO_MARGIN_KEEP && (v->margin[a][0] || v->margin[a][1])) return true;
    return false;
}

static halo_status write_margin(hl_program *p, const hl_step *reader, halo_role role)
{
    hl_step *s;
    int value = reader->use[role].value;
    const hl_value *v = &p->value[value];
    hl_phase phase = reader->phase;
    if (v->near_any) HL_TRY(send_margin(p, phase, value));
    v = &p->value[value];
    if (!has_local_margin(v)) return HALO_OK;
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
        HL_TRY(write_margin(p, step, r));
        fresh[value] = true;
    }
    HL_TRY(hl_step_again(p, step));
    for (int r = 0; r < HALO_ROLES; r++)
        if (hl_step_writes(step, r)) fresh[step->use[r].value] = false;
    return HALO_OK;
}

halo_status hl_pass_margins(hl_program *p)
{
    bool *fresh;
    HL_TRY(hl_calloc(p->ctx, (size_t)p->values, sizeof(*fresh), "margin states", &fresh));
    int n;
    hl_step *old = hl_take_steps(p, &n);
    halo_status st = HALO_OK;
    for (int i = 0; i < n && st == HALO_OK; i++) st = append(p, &old[i], fresh);
    free(old);
    free(fresh);
    return st;
}
