/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loading.c -- a sample on its way into a batch: the cells that are asked for are read, checked, transformed and turned; or left as they are stored, with the numbers that say how.
 *
 * Cells of a turned and shifted sample are cells of the sample in the file (cells.h): these are read, and turned. Patches are read and transformed by a cutter (cutter.h). A transform that needs
 * cells which other ranks have is left until all have told of theirs (hl_loader_apply).
 */
#include "io/loading.h"
#include "base/context.h"
#include "io/convert.h"
#include "io/stored.h"

#include <stdio.h>

/* --------------------------------------------------------------------------------------------- one sample */

/* Value number `at` of those read of the sample; -1: the sample as a whole. */
static halo_status bad_value(hl_loader *l, int64_t id, int64_t at, const char *what, float value)
{
    char name[160];
    int64_t in[3], cells = hl_cells_count(&l->x.from);
    l->source->ops->id_of(l->source, id, name, sizeof(name));
    if (at < 0)
        return hl_fail(l->ctx, HALO_ERR_NONFINITE, "sample '%s' (number %" PRId64 "): %s", name, id, what);
    hl_cells_at(&l->x.from, l->source->info.ext + 1, at % cells, in);
    return hl_fail(l->ctx, HALO_ERR_NONFINITE,
                   "sample '%s' (number %" PRId64 "): %s %g in voxel [c %" PRId64 ", d %" PRId64
                   ", h %" PRId64 ", w %" PRId64 "]",
                   name, id, what, (double)value, at / cells, in[0], in[1], in[2]);
}

static halo_status bad_transform(hl_loader *l, int64_t id, hl_transform kind, int64_t at, float value)
{
    switch (kind) {
    case HL_LOG1P:
        if (at < 0) return bad_value(l, id, at, "log1p is not defined for what the transforms before it make", 0);
        return bad_value(l, id, at, "log1p is not defined for", value);
    case HL_OVER_MEAN:
        return bad_value(l, id, -1, "its mean is 0 or not finite, so that it cannot be divided by it", 0);
    default:
        return bad_value(l, id, -1, "its standard deviation is 0 or not finite, so that it has no z-score",
                         0);
    }
}

static float raw_value(const hl_loader *l, int64_t i)
{
    float v = 0;
    hl_to_float(l->source->info.dtype,
                (const char *)l->raw + (size_t)i * hl_dtype_size(l->source->info.dtype), &v, 1);
    return v;
}

/* Raw values to floats, finite, transformed. */
static halo_status prepare(hl_loader *l, int64_t id, float *x)
{
    int64_t bad = l->cells;
    int first = 0;
    if (l->log_table) {
        if (!hl_log1p_lookup(l->source->info.dtype, l->log_table, l->raw, x, l->cells, &bad))
            return bad_transform(l, id, HL_LOG1P, bad, raw_value(l, bad));
        first = 1;
    } else {
        hl_to_float(l->source->info.dtype, l->raw, x, l->cells);
        bad = hl_first_nonfinite(x, l->cells);
        if (bad < l->cells) return bad_value(l, id, bad, "not a finite number:", x[bad]);
    }
    for (int k = first; k < l->pending; k++)
        if (!hl_transform_run(&l->o, l->o.transform[k], x, l->cells, &bad)) return bad_transform(l, id, l->o.transform[k], bad, bad < 0 ? 0 : x[bad]);
    if (l->pending > first && (bad = hl_first_nonfinite(x, l->cells)) < l->cells)
        return bad_value(l, id, bad, "after its transforms it holds", x[bad]);
    return HALO_OK;
}

/* Draws the sample's symmetry, which is returned, and shift, and finds what to read. Target volumes share them. */
static hl_symmetry take_aim(hl_loader *l, int64_t epoch, int64_t id)
{
    const hl_source_info *info = &l->source->info;
    int64_t shift[3] = {0, 0, 0};
    int drawn = l->o.cube || l->o.flip ? hl_draw_symmetry(l->o.seed, epoch, id) : 0;
    hl_symmetry s = hl_symmetry_of(l->o.cube ? drawn : drawn % 8); /* the first 8 turn no axis into another */
    if (l->o.shift) hl_draw_shift(l->o.seed, epoch, id, info->ext + 1, shift);
    hl_cells_before(&l->x.cells, info->ext + 1, s, shift, &l->x.from, l->x.rest);
    if (hl_target_volumes(info)) hl_cells_before(&l->y.cells, info->target_ext, s, shift, &l->y.from, l->y.rest);
    return s;
}

/* Targets that are numbers were looked at when the source was opened. */
static halo_status check_target(hl_loader *l, int64_t id, const float *y)
{
    const hl_source_info *info = &l->source->info;
    int64_t in[3], at = hl_first_nonfinite(y, l->values), cells = hl_cells_count(&l->y.from);
    char name[160];
    if (at == l->values) return HALO_OK;
    hl_cells_at(&l->y.from, info->target_ext, at % cells, in);
    l->source->ops->id_of(l->source, id, name, sizeof(name));
    return hl_fail(l->ctx, HALO_ERR_NONFINITE,
                   "sample '%s' (number %" PRId64 "): target '%s' is not finite in voxel [d %" PRId64 ", h %" PRId64
                   ", w %" PRId64 "]",
                   name, id, info->target[at / cells].name, in[0], in[1], in[2]);
}

static halo_status check_labels(hl_loader *l, int64_t id, float *y)
{
    const hl_source_info *info = &l->source->info;
    int64_t in[3], at = 0, cells = hl_cells_count(&l->y.from);
    char name[160], where[80] = "";
    while (at < l->values && hl_take_class(&l->o, &y[at])) at++;
    if (at == l->values) return HALO_OK;
    l->source->ops->id_of(l->source, id, name, sizeof(name));
    if (hl_target_volumes(info)) {
        hl_cells_at(&l->y.from, info->target_ext, at % cells, in);
        snprintf(where, sizeof(where), " in voxel [d %" PRId64 ", h %" PRId64 ", w %" PRId64 "]", in[0], in[1], in[2]);
    }
    return hl_fail(l->ctx, HALO_ERR_FORMAT, "sample '%s' (number %" PRId64 "): target '%s' is %g%s, no class number: the network's classes are 0 to %" PRId64,
                   name, id, info->target[hl_target_volumes(info) ? at / cells : at].name, (double)y[at], where, l->o.classes - 1);
}

/* What the device needs to know of the sample that was loaded. Where it could not be prepared, the loader's own transforms say why. */
static halo_status describe(hl_loader *l, int64_t id, hl_symmetry s, double *number)
{
    float *x;
    hl_stored_turn(s, l->x.rest, number);
    hl_stored_turn(s, l->y.rest, number + (l->share.hi - l->share.lo) * HALO_SAMPLE_NUMBERS);
    if (l->cutter || hl_stored_constants(&l->o, l->source->info.dtype, l->raw, l->cells, number)) return HALO_OK;
    HL_TRY(hl_aligned(l->ctx, (size_t)l->cells * sizeof(float), "a sample", &x));
    halo_status st = prepare(l, id, x);
    free(x);
    return st != HALO_OK ? st : bad_value(l, id, -1, "its transforms are not defined", 0);
}

/* Turns what was loaded before that. */
static void turn(hl_loader *l, hl_symmetry s, float *x, float *y)
{
    const hl_source_info *info = &l->source->info;
    if (l->plain) hl_augment(l->plain, x, info->ext[0], l->x.cells.ext, s, l->x.rest);
    if (l->plain_y) hl_augment(l->plain_y, y, info->targets, l->y.cells.ext, s, l->y.rest);
}

hl_seat hl_loading_seat(const hl_loader *l, const hl_loaded *b, int64_t i)
{
    if (!l->stored) return (hl_seat){.x = b->x + i * l->cells, .y = b->y + i * l->values};
    return (hl_seat){.stored = (char *)b->stored + (size_t)(i * l->cells) * hl_dtype_size(b->stored_type), .y = b->y + i * l->values, .number = b->numbers + i * HALO_SAMPLE_NUMBERS};
}

static halo_status load_sample(hl_loader *l, int64_t epoch, int64_t id, hl_seat to)
{
    float *target = l->plain_y ? l->plain_y : to.y;
    hl_symmetry s = take_aim(l, epoch, id);
    if (l->stored) l->raw = to.stored;
    HL_TRY(hl_source_read(l->source, id, &l->x.from, l->raw, &l->y.from, target));
    HL_TRY(l->stored ? describe(l, id, s, to.number) : prepare(l, id, l->plain ? l->plain : to.x));
    if (hl_target_volumes(&l->source->info)) HL_TRY(check_target(l, id, target));
    if (l->o.classes > 0) HL_TRY(check_labels(l, id, target));
    turn(l, s, to.x, to.y);
    return HALO_OK;
}

/* Number `number` of the list. */
halo_status hl_load_entry(hl_loader *l, int64_t epoch, int64_t number, hl_seat to)
{
    int64_t id = l->o.first + number / l->patches;
    if (!l->cutter) return load_sample(l, epoch, id, to);
    hl_symmetry s = take_aim(l, epoch, l->o.first * l->patches + number); /* which the patch's number is for what is drawn here */
    float *x = l->stored ? to.stored : l->plain ? l->plain : to.x, *y = l->plain_y ? l->plain_y : to.y;
    HL_TRY(hl_cutter_take(l->cutter, epoch, id, number % l->patches, l->source->info.ext + 1, &l->x.from, x, &l->y.from, y));
    if (l->stored) return describe(l, id, s, to.number);
    turn(l, s, to.x, to.y);
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------- transforms that are left */

/* Sum over the own cells of a sample of x - about, or of its square. */
static double own_sum(const hl_loader *l, const float *x, double about, bool squared)
{
    const hl_cells *all = &l->x.cells, *own = &l->o.own;
    double sum = 0;
    for (int64_t c = 0; c < l->source->info.ext[0]; c++)
        for (int64_t d = 0; d < own->ext[0]; d++)
            for (int64_t h = 0; h < own->ext[1]; h++) {
                const float *row = x + ((c * all->ext[0] + own->lo[0] - all->lo[0] + d) * all->ext[1] + own->lo[1] - all->lo[1] + h) * all->ext[2] +
                                   own->lo[2] - all->lo[2];
                for (int64_t w = 0; w < own->ext[2]; w++) {
                    double v = (double)row[w] - about;
                    sum += squared ? v * v : v;
                }
            }
    return sum;
}

hl_moments hl_loading_moments(const hl_loader *l, const float *x)
{
    hl_moments m = {.n = (double)(l->source->info.ext[0] * hl_cells_count(&l->o.own))};
    m.mean = own_sum(l, x, 0, false) / m.n;
    m.sum = own_sum(l, x, m.mean, true);
    return m;
}

int hl_loader_pending(const hl_loader *l, int *transforms)
{
    *transforms = l->o.transforms;
    return l->pending;
}

bool hl_loader_needs(const hl_loader *l, int transform)
{
    return hl_transform_whole(l->o.transform[transform]);
}

void hl_loader_moments(const hl_loader *l, const hl_loaded *b, hl_moments *moments)
{
    for (int64_t i = 0; i < b->samples; i++)
        moments[i] = b->id[i] < 0 ? (hl_moments){0} : hl_loading_moments(l, b->x + i * l->cells);
}

halo_status hl_loader_apply(hl_loader *l, const hl_loaded *b, int transform, const hl_moments *all)
{
    hl_transform kind = l->o.transform[transform];
    int64_t bad;
    for (int64_t i = 0; i < b->samples; i++) {
        float *x = b->x + i * l->cells;
        if (b->id[i] < 0) continue;
        if (!(hl_transform_whole(kind) ? hl_transform_by(kind, all[i], x, l->cells) : hl_transform_run(&l->o, kind, x, l->cells, &bad))) return bad_transform(l, b->id[i], kind, -1, 0);
        if (hl_first_nonfinite(x, l->cells) < l->cells) return bad_value(l, b->id[i], -1, "after its transforms it holds what is not finite", 0);
    }
    return HALO_OK;
}
