/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c -- see tally.h. */
#include "train/tally.h"
#include "io/cells.h"

halo_status hl_tally_create(const hl_run *run, const hl_source *source, bool volumes, int classes, hl_tally *tally)
{
    const hl_source_info *i = &source->info;
    *tally = (hl_tally){NULL, NULL, NULL};
    if (classes) return hl_class_metrics_create(run->ctx, classes, volumes ? i->samples : 0, run->set.ignore_label, &tally->classes); /* volumes are scored one by one, too */
    if (volumes) return hl_voxel_metrics_create(run->ctx, i->targets, i->target, i->target_ext, &tally->voxels);
    return hl_metrics_create(run->ctx, i->targets, i->target, &tally->numbers);
}

void hl_tally_destroy(hl_tally *t)
{
    hl_class_metrics_destroy(t->classes);
    hl_voxel_metrics_destroy(t->voxels);
    hl_metrics_destroy(t->numbers);
    *t = (hl_tally){NULL, NULL, NULL};
}

halo_status hl_tally_add(hl_tally *t, hl_source *source, int64_t sample, const hl_cells *box, const float *truth, const float *prediction)
{
    if (t->numbers) return hl_metrics_add(t->numbers, source->ops->group_of(source, sample), truth, prediction);
    if (t->classes) hl_class_metrics_add(t->classes, sample, box ? hl_cells_count(box) : 1, truth, prediction);
    else hl_voxel_metrics_add(t->voxels, sample, box, truth, prediction);
    return HALO_OK;
}

halo_status hl_tally_merge(hl_tally *t, halo_context *ctx)
{
    if (t->classes) HL_TRY(hl_class_metrics_merge(t->classes, ctx));
    return t->voxels ? hl_voxel_metrics_merge(t->voxels, ctx) : HALO_OK;
}

bool hl_tally_counts(const hl_tally *t)
{
    return t->classes ? hl_class_metrics_counts(t->classes) : t->voxels ? hl_voxel_metrics_counts(t->voxels) : hl_metrics_samples(t->numbers) > 0;
}

/* A class number is the one target. */
static halo_status score_classes(const hl_run *run, const hl_tally *t, hl_score *score, hl_class_score **of_class, double *cells)
{
    hl_class_score *s;
    int classes = hl_run_classes(run);
    HL_TRY(hl_calloc(run->ctx, (size_t)classes, sizeof(*s), "scores", &s));
    halo_status st = hl_class_metrics_score(t->classes, score, s, cells);
    for (int k = 0; k < classes; k++) hl_class_name(&run->set, k, s[k].name, sizeof(s[k].name));
    if (st == HALO_OK) *of_class = s;
    else free(s);
    return st;
}

halo_status hl_tally_score(const hl_run *run, hl_tally *t, hl_score *score, hl_class_score **of_class, double *items)
{
    int64_t n;
    *of_class = NULL;
    if (t->classes) return score_classes(run, t, score, of_class, items);
    HL_TRY(t->voxels ? hl_voxel_metrics_score(t->voxels, score, &n) : hl_metrics_score(t->numbers, false, score, &n));
    *items = (double)n;
    return HALO_OK;
}
