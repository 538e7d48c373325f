/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate_by.c -- see evaluate_by.h. Each number has metrics of its own, which get the boxes of its samples as they come; the truth of a box is read again, as predictions come without. */
#include "cli/evaluate_by.h"

#include <stdio.h>

enum { VALUES_MOST = 64 };

typedef struct group { /* samples of one number */
    double value;
    int64_t samples, last; /* last: the sample that was counted last */
    hl_voxel_metrics *volumes;
    hl_metrics *numbers;
} group;

struct hl_by {
    halo_context *ctx;
    hl_source *source;
    char column[64];
    double *of_sample;
    int groups;
    group group[VALUES_MOST];
    hl_score *score; /* [targets] */
    float *truth;
    size_t room;
};

static int by_value(const void *a, const void *b)
{
    const group *p = a, *q = b;
    return (p->value > q->value) - (p->value < q->value);
}

static group *find(hl_by *b, double value)
{
    for (int i = 0; i < b->groups; i++)
        if (b->group[i].value == value) return &b->group[i];
    return NULL;
}

static halo_status collect(hl_by *b)
{
    for (int64_t i = 0; i < b->source->info.samples; i++) {
        if (find(b, b->of_sample[i])) continue;
        if (b->groups == VALUES_MOST) return hl_fail(b->ctx, HALO_ERR_USAGE, "'%s' has more than %d different numbers", b->column, VALUES_MOST);
        b->group[b->groups++] = (group){.value = b->of_sample[i], .last = -1};
    }
    qsort(b->group, (size_t)b->groups, sizeof(*b->group), by_value);
    return HALO_OK;
}

static halo_status make_metrics(hl_by *b)
{
    const hl_source_info *i = &b->source->info;
    for (int k = 0; k < b->groups; k++) {
        group *g = &b->group[k];
        if (hl_target_volumes(i)) HL_TRY(hl_voxel_metrics_create(b->ctx, i->targets, i->target, i->target_ext, &g->volumes));
        else HL_TRY(hl_metrics_create(b->ctx, i->targets, i->target, &g->numbers));
    }
    return HALO_OK;
}

halo_status hl_by_open(halo_context *ctx, hl_source *source, const char *column, hl_by **by)
{
    hl_by *b;
    halo_status st;
    if (!source->ops->column) return hl_fail(ctx, HALO_ERR_USAGE, "'--by %s': data of the format '%s' have no such numbers, only halo's own layout", column, source->ops->name);
    HL_TRY(hl_calloc(ctx, 1, sizeof(*b), "scores", &b));
    b->ctx = ctx;
    b->source = source;
    snprintf(b->column, sizeof(b->column), "%s", column);
    HL_GOTO(st, hl_calloc(ctx, (size_t)source->info.samples, sizeof(*b->of_sample), "numbers of samples", &b->of_sample), undo);
    HL_GOTO(st, hl_calloc(ctx, (size_t)source->info.targets, sizeof(*b->score), "scores", &b->score), undo);
    HL_GOTO(st, source->ops->column(source, column, b->of_sample), undo);
    HL_GOTO(st, collect(b), undo);
    HL_GOTO(st, make_metrics(b), undo);
    *by = b;
    return HALO_OK;
undo:
    hl_by_close(b);
    return st;
}

void hl_by_close(hl_by *b)
{
    if (!b) return;
    for (int k = 0; k < b->groups; k++) {
        hl_voxel_metrics_destroy(b->group[k].volumes);
        hl_metrics_destroy(b->group[k].numbers);
    }
    free(b->of_sample);
    free(b->score);
    free(b->truth);
    free(b);
}

halo_status hl_by_visit(void *user, hl_source *source, const hl_prediction *p)
{
    hl_by *b = user;
    group *g = find(b, b->of_sample[p->sample]);
    if (g->last != p->sample) g->samples++;
    g->last = p->sample;
    if (g->numbers) return hl_metrics_add(g->numbers, source->ops->group_of(source, p->sample), p->truth, p->value);
    hl_cells box;
    HL_BUG_UNLESS(p->lo[0] == 0 && p->ext[0] == source->info.targets);
    for (int k = 0; k < 3; k++) box.lo[k] = p->lo[k + 1], box.ext[k] = p->ext[k + 1];
    HL_TRY(hl_grow(b->ctx, &b->truth, &b->room, (size_t)(p->ext[0] * p->ext[1] * p->ext[2] * p->ext[3]), sizeof(float), "targets"));
    HL_TRY(hl_source_read(source, p->sample, NULL, NULL, &box, b->truth));
    hl_voxel_metrics_add(g->volumes, p->sample, &box, b->truth, p->value);
    return HALO_OK;
}

static halo_status score(hl_by *b, group *g)
{
    int64_t n;
    return g->volumes ? hl_voxel_metrics_score(g->volumes, b->score, &n) : hl_metrics_score(g->numbers, false, b->score, &n);
}

halo_status hl_by_table(hl_by *b, hl_str *out)
{
    hl_str_addf(out, "\n%-12s %8s %-16s %12s %12s %14s %12s\n", b->column, "samples", "target", "error", "constant", "error/constant", "correlation");
    for (int k = 0; k < b->groups; k++) {
        group *g = &b->group[k];
        if (g->samples == 0) continue;
        HL_TRY(score(b, g));
        for (int t = 0; t < b->source->info.targets; t++)
            hl_str_addf(out, "%-12.6g %8" PRId64 " %-16s %12.5g %12.5g %14.3f %12.3f\n", g->value, g->samples, b->source->info.target[t].name, b->score[t].error, b->score[t].constant_error,
                        b->score[t].error / b->score[t].constant_error, b->score[t].correlation);
    }
    return HALO_OK;
}

halo_status hl_by_json(hl_by *b, hl_json *j)
{
    hl_json_string(j, "by", b->column);
    hl_json_array(j, "parts");
    for (int k = 0; k < b->groups; k++) {
        group *g = &b->group[k];
        if (g->samples == 0) continue;
        HL_TRY(score(b, g));
        for (int t = 0; t < b->source->info.targets; t++) {
            hl_json_object(j, NULL);
            hl_json_number(j, "value", g->value);
            hl_json_int(j, "samples", g->samples);
            hl_json_string(j, "target", b->source->info.target[t].name);
            hl_json_number(j, "error", b->score[t].error);
            hl_json_number(j, "constant_error", b->score[t].constant_error);
            hl_json_number(j, "correlation", b->score[t].correlation);
            hl_json_end_object(j);
        }
    }
    hl_json_end_array(j);
    return HALO_OK;
}
