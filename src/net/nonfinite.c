/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nonfinite.c -- where a value that is not finite began. Storage is shared, so that after a step most values
 * are gone: the step is run again from its input, which is still there, and every op's outputs are looked at
 * on the way. Running statistics are moved once more by that; a run that comes here goes on from its last
 * checkpoint.
 */
#include "net/nonfinite.h"

typedef struct place {
    const hl_step *step; /* NULL: the input itself */
    bool found;
    bool gradient; /* of the step's outputs */
} place;

static bool is_bad(halo_dtype type, const void *host, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(type == HALO_F64 ? ((const double *)host)[i] : (double)((const float *)host)[i]))
            return true;
    return false;
}

/* A sample at a time, so that the host needs little. */
static halo_status look_at(hl_program *p, const halo_operand *whole, const void *ptr, bool *bad)
{
    halo_operand one = *whole;
    halo_dtype type = whole->dtype == HALO_F64 ? HALO_F64 : HALO_F32;
    void *host;
    one.ext[HALO_N] = 1;
    int64_t n = hl_operand_box_elements(&one);
    HL_TRY(hl_calloc(p->ctx, (size_t)n, hl_dtype_size(type), "values to look at", &host));
    halo_status st = HALO_OK;
    for (int64_t i = 0; i < whole->ext[HALO_N] && st == HALO_OK && !*bad; i++) {
        one.lo[HALO_N] = whole->lo[HALO_N] + i;
        st = p->dev->ops->download(p->dev, &one, ptr, type, host);
        if (st == HALO_OK) *bad = is_bad(type, host, n);
    }
    free(host);
    return st;
}

static bool worth_looking(const hl_program *p, const hl_step *s, halo_role role)
{
    if (s->kind != HL_STEP_OP || !hl_step_writes(s, role)) return false;
    hl_value_kind kind = p->value[s->use[role].value].kind;
    return kind == HL_VALUE_ACTIVATION || kind == HL_VALUE_GRADIENT ||
           (kind == HL_VALUE_PARAMETER && role != HALO_RUN);
}

static halo_status look_after(hl_program *p, const hl_step *s, place *where)
{
    bool bad = false;
    HL_TRY(p->dev->ops->wait(p->dev, NULL));
    for (int r = 0; r < HALO_ROLES && !bad; r++) {
        if (worth_looking(p, s, r)) HL_TRY(look_at(p, &s->desc.t[r], s->args.ptr[r], &bad));
        if (bad) *where = (place){s, true, s->phase == HL_PHASE_BACKWARD || r == HALO_DX};
    }
    return HALO_OK;
}

static halo_status look_at_input(hl_program *p, place *where)
{
    const hl_value *x = &p->value[p->y[0]];
    bool bad = false;
    HL_TRY(look_at(p, &x->operand, (char *)p->arena + x->offset, &bad));
    if (bad) *where = (place){NULL, true, false};
    return HALO_OK;
}

/* Processes that hold a sample together go on together. */
static halo_status anybody(hl_program *p, const place *where, bool *found)
{
    double x = where->found;
    if (p->opt.team && hl_grid_split(&p->grid)) HL_TRY(hl_comm_max(p->opt.team->group, &x, 1));
    *found = x > 0;
    return HALO_OK;
}

static halo_status find(hl_program *p, place *where)
{
    HL_TRY(look_at_input(p, where));
    int end = p->phase[p->opt.training ? HL_PHASE_BACKWARD + 1 : HL_PHASE_FORWARD + 1];
    bool found = where->found;
    HL_TRY(anybody(p, where, &found));
    for (int i = p->phase[HL_PHASE_FORWARD]; i < end && !found; i++) {
        hl_step *s = &p->step[i];
        if (s->kind >= HL_STEP_SUM) continue; /* each rank by itself */
        HL_TRY(hl_execute(p, s));
        HL_TRY(look_after(p, s, where));
        HL_TRY(anybody(p, where, &found));
    }
    return HALO_OK;
}

static halo_status find_entered(hl_program *p, place *where)
{
    if (p->dev->ops->enter) p->dev->ops->enter(p->dev);
    halo_status st = find(p, where);
    if (p->dev->ops->leave) p->dev->ops->leave(p->dev);
    return st;
}

static const char *name_of(const hl_program *p, const place *where)
{
    return where->step ? hl_step_name(p, where->step) : hl_layer_of(p, 0)->name;
}

const char *hl_program_find_nonfinite(hl_program *p)
{
    place where = {NULL, false, false};
    return find_entered(p, &where) == HALO_OK && where.found ? name_of(p, &where) : NULL;
}

static halo_status describe(hl_program *p, const place *where)
{
    const bool in_f16 = p->dev->compute == HALO_F16;
    if (!where->found)
        return hl_fail(p->ctx, HALO_ERR_NONFINITE,
                       "the loss or the sum of squares of the gradients is not finite");
    if (!where->step)
        return hl_fail(p->ctx, HALO_ERR_NONFINITE, "the input has a value that is not finite%s", in_f16 ? ", or beyond 65504, which is all that f16 holds: transform the data, or use bf16" : "");
    if (where->step->phase == HL_PHASE_LOSS && hl_loss_of_classes(p->opt.loss))
        return hl_fail(p->ctx, HALO_ERR_NONFINITE, "the loss is not finite: a target is no class number from 0 to %" PRId64 "%s",
                       p->value[p->y[p->net->layers - 1]].ext[HALO_C] - 1, p->updated ? "" : "; the weights were not changed");
    const char *what = where->gradient ? "a gradient" : "the output";
    return hl_fail(p->ctx, HALO_ERR_NONFINITE,
                   "layer '%s': %s is not finite (%s)%s%s", name_of(p, where), what, hl_op_kind_name(where->step->desc.kind),
                   p->updated ? "" : "; the weights were not changed", in_f16 ? "; f16 holds values up to 65504, bf16 as many as f32" : "");
}

/* The first rank that found the place, or rank 0 where none did. */
static halo_status choose_speaker(hl_program *p, bool found, bool *mine)
{
    double first = found ? -p->ctx->rank : -p->ctx->ranks;
    HL_TRY(hl_comm_max(p->ctx, &first, 1));
    int rank = first > -p->ctx->ranks ? (int)-first : 0;
    *mine = p->ctx->rank == rank;
    return HALO_OK;
}

halo_status hl_report_nonfinite(hl_program *p, bool collective)
{
    place where = {NULL, false, false};
    halo_status st = find_entered(p, &where);
    if (!collective) return st == HALO_OK ? describe(p, &where) : st;
    HL_TRY(hl_agree(p->ctx, st));
    bool mine;
    HL_TRY(choose_speaker(p, where.found, &mine));
    return hl_agree(p->ctx, mine ? describe(p, &where) : HALO_OK);
}
