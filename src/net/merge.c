/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c -- what statistics.c does, on the devices: where these are linked, statistics of norms become sums, are added up over the ranks and become statistics again, without the host, as
 * steps of the program. The formulas stand there; with r = 0 for those of a sample, which have no running mean: in f64 that costs digits only where the mean is beyond 1e5 deviations.
 */
#include "net/ir.h"

/* Between the ranks of the same scope; NULL: there is nobody else. */
static struct halo_link *link_of(const hl_program *p, const halo_context *scope)
{
    const hl_links *l = p->opt.links;
    if (!scope || scope->ranks == 1) return NULL;
    return scope->ranks == p->ctx->ranks ? l->order : scope == p->opt.team->group ? l->group : l->peers;
}

static halo_status add_up(hl_program *p, const hl_step *of, halo_role role, struct halo_link *link)
{
    hl_step *s;
    HL_TRY(hl_step_new(p, HL_STEP_ADD, of->phase, of->layer, &s));
    s->link = link;
    s->n = hl_operand_box_elements(&of->desc.t[role]);
    s->args.ptr[HALO_X] = of->args.ptr[role];
    return HALO_OK;
}

/* To sums, or back. The running mean is near the mean, and the same everywhere. */
static halo_status convert(hl_program *p, const hl_step *of, bool back)
{
    halo_candidate c[HALO_MAX_CANDIDATES];
    const int run = of->desc.per_sample ? -1 : hl_layer_param(p, of->layer, HALO_RUN);
    hl_step *s;
    HL_TRY(hl_op_new(p, HALO_OP_NORM_MERGE, of->phase, of->layer, &s));
    s->desc.reverse = back;
    s->desc.t[HALO_STAT] = of->desc.t[HALO_STAT];
    s->args = of->args;
    if (run >= 0) {
        s->desc.t[HALO_RUN] = hl_operand_flat(HALO_F32, of->desc.t[HALO_X].ext[HALO_C]);
        s->args.ptr[HALO_RUN] = hl_model_address(p->model, run, HL_MASTER);
    }
    if (hl_op_candidates(p->dev, &s->desc, c) == 0) return hl_fail(p->ctx, HALO_ERR_UNSUPPORTED, "layer '%s': this device cannot merge statistics of norms", hl_step_name(p, of));
    s->choice = c[0];
    return hl_op_class(p->dev, s->desc.kind, &s->choice)->plan(p->dev, &s->desc, &s->choice, &s->plan);
}

/* Of gradients that several ranks have alike one is counted. */
static halo_status keep_once(hl_program *p, const hl_step *of)
{
    static const halo_role roles[] = {HALO_DW, HALO_DB};
    for (size_t i = 0; i < HL_COUNT(roles) && !hl_statistics_count(p, of); i++) {
        hl_step *s;
        if (of->use[roles[i]].value < 0) continue;
        HL_TRY(hl_step_new(p, HL_STEP_CLEAR, of->phase, of->layer, &s));
        s->use[HALO_Y] = hl_use_of(of->use[roles[i]].value);
        s->args.ptr[HALO_Y] = of->args.ptr[roles[i]];
    }
    return HALO_OK;
}

halo_status hl_merge_place(hl_program *p, const hl_step *of)
{
    if (of->desc.kind == HALO_OP_NORM_BWD_APPLY) return keep_once(p, of);
    struct halo_link *link = link_of(p, hl_statistics_scope(p, of));
    if (!link) return HALO_OK;
    if (of->desc.kind != HALO_OP_NORM_STATS) return add_up(p, of, HALO_STAT2, link);
    HL_TRY(convert(p, of, false));
    HL_TRY(add_up(p, of, HALO_STAT, link));
    return convert(p, of, true);
}
