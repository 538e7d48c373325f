/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cutter.c -- see cutter.h: boxes of samples, transformed, and moments of whole ones. What is drawn is patch.c's, what is changed at random vary.c's.
 *
 * Memory: one box as read and as floats, and a slab of 4 MiB while a whole sample is looked at.
 */
#include "io/cutting.h"
#include "io/convert.h"

#include <stdio.h>

#define SLAB_VALUES (INT64_C(1) << 20)

halo_status hl_cutter_create(hl_source *source, const hl_loader_options *options, hl_cutter **cutter)
{
    hl_cutter *c;
    HL_TRY(hl_known_create(source));
    HL_TRY(hl_calloc(source->ctx, 1, sizeof(*c), "a cutter", &c));
    c->source = source;
    c->o = *options;
    *cutter = c;
    return HALO_OK;
}

void hl_cutter_destroy(hl_cutter *c)
{
    if (!c) return;
    free(c->raw);
    free(c->plain);
    free(c->wide);
    free(c);
}

/* ------------------------------------------------------------------------------------------------------------- errors */

static halo_status bad_sample(const hl_cutter *c, int64_t sample, halo_status st, const char *what)
{
    char name[160];
    c->source->ops->id_of(c->source, sample, name, sizeof(name));
    return hl_fail(c->source->ctx, st, "sample '%s' (number %" PRId64 "): %s", name, sample, what);
}

/* Value number `at` of those of `cells`. */
static halo_status bad_value(const hl_cutter *c, int64_t sample, const hl_cells *cells, int64_t at, halo_status st, const char *what, double value)
{
    char text[256];
    int64_t n = hl_cells_count(cells), e[3] = {cells->ext[0], cells->ext[1], cells->ext[2]}, i = at % n;
    snprintf(text, sizeof(text), "%s %g in voxel [c %" PRId64 ", d %" PRId64 ", h %" PRId64 ", w %" PRId64 "]", what, value, at / n, cells->lo[0] + i / (e[1] * e[2]),
             cells->lo[1] + i / e[2] % e[1], cells->lo[2] + i % e[2]);
    return bad_sample(c, sample, st, text);
}

/* --------------------------------------------------------------------------------------------- cells inside a sample */

/* Transform number k on n values of the sample. */
static halo_status transform(hl_cutter *c, int64_t sample, int k, float *x, int64_t n)
{
    hl_transform kind = c->o.transform[k];
    hl_moments all;
    int64_t bad;
    if (!hl_transform_whole(kind)) return hl_transform_run(&c->o, kind, x, n, &bad) ? HALO_OK : bad_sample(c, sample, HALO_ERR_NONFINITE, "log1p is not defined for a value of at most -1 in it");
    HL_TRY(hl_cutter_moments(c, sample, k, &all));
    if (hl_transform_by(kind, all, x, n)) return HALO_OK;
    return bad_sample(c, sample, HALO_ERR_NONFINITE,
                      kind == HL_OVER_MEAN ? "its mean is 0 or not finite, so that it cannot be divided by it" : "its standard deviation is 0 or not finite, so that it has no z-score");
}

/* x [C, inside] after the first k transforms. */
halo_status hl_cutter_inside(hl_cutter *c, int64_t sample, const hl_cells *inside, int k, float *x)
{
    const hl_source_info *i = &c->source->info;
    int64_t n = i->ext[0] * hl_cells_count(inside);
    hl_cut cut = {.lo = {inside->lo[0], inside->lo[1], inside->lo[2]}, .ext = {inside->ext[0], inside->ext[1], inside->ext[2]}, .into = {inside->ext[0], inside->ext[1], inside->ext[2]}};
    HL_TRY(hl_scratch(c->source->ctx, &c->raw, &c->raw_room, (size_t)n * hl_dtype_size(i->dtype), "a part of a sample"));
    HL_TRY(c->source->ops->read(c->source, sample, &cut, c->raw));
    hl_to_float(i->dtype, c->raw, x, n);
    int64_t bad = hl_first_nonfinite(x, n);
    if (bad < n) return bad_value(c, sample, inside, bad, HALO_ERR_NONFINITE, "not a finite number:", (double)x[bad]);
    for (int t = 0; t < k; t++) HL_TRY(transform(c, sample, t, x, n));
    bad = k ? hl_first_nonfinite(x, n) : n;
    return bad < n ? bad_value(c, sample, inside, bad, HALO_ERR_NONFINITE, "after its transforms it holds", (double)x[bad]) : HALO_OK;
}

/* Class numbers become exact ones. */
static halo_status check_targets(const hl_cutter *c, int64_t sample, const hl_cells *inside, float *y, int64_t n)
{
    int64_t bad = hl_first_nonfinite(y, n);
    if (bad < n) return bad_value(c, sample, inside, bad, HALO_ERR_NONFINITE, "a target is not finite:", (double)y[bad]);
    bad = 0;
    while (bad < n && c->o.classes > 0 && hl_take_class(&c->o, &y[bad])) bad++;
    if (bad == n || c->o.classes == 0) return HALO_OK;
    char what[96];
    snprintf(what, sizeof(what), "no class number (the network's classes are 0 to %" PRId64 "):", c->o.classes - 1);
    return bad_value(c, sample, inside, bad, HALO_ERR_FORMAT, what, (double)y[bad]);
}

halo_status hl_cutter_targets(hl_cutter *c, int64_t sample, const hl_cells *inside, float *y)
{
    hl_cut cut = {.lo = {inside->lo[0], inside->lo[1], inside->lo[2]}, .ext = {inside->ext[0], inside->ext[1], inside->ext[2]}, .into = {inside->ext[0], inside->ext[1], inside->ext[2]}};
    HL_TRY(c->source->ops->target(c->source, sample, &cut, y));
    return check_targets(c, sample, inside, y, c->source->info.targets * hl_cells_count(inside));
}

/* ------------------------------------------------------------------------------------------------------- any cells */

/* What of `cells` lies in the sample; false: nothing. */
static bool clip(const hl_cells *cells, const int64_t n[3], hl_cells *inside)
{
    for (int k = 0; k < 3; k++) {
        int64_t hi = hl_min64(n[k], cells->lo[k] + cells->ext[k]);
        inside->lo[k] = hl_max64(0, cells->lo[k]);
        inside->ext[k] = hi - inside->lo[k];
        if (inside->ext[k] <= 0) return false;
    }
    return true;
}

static void fill(float *to, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++) to[i] = value;
}

/* Channels of `inside` to their place among `cells`, the rest of which is `beyond`. */
static void spread(const float *from, const hl_cells *inside, const hl_cells *cells, int64_t channels, float beyond, float *to)
{
    const int64_t *e = cells->ext;
    fill(to, channels * hl_cells_count(cells), beyond);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t d = 0; d < inside->ext[0]; d++)
            for (int64_t h = 0; h < inside->ext[1]; h++, from += inside->ext[2]) {
                int64_t at = (c * e[0] + inside->lo[0] - cells->lo[0] + d) * e[1] + inside->lo[1] - cells->lo[1] + h;
                memcpy(to + at * e[2] + inside->lo[2] - cells->lo[2], from, (size_t)inside->ext[2] * sizeof(*to));
            }
}

halo_status hl_cutter_read(hl_cutter *c, int64_t sample, const hl_cells *cells, float *x, float *y)
{
    const hl_source_info *i = &c->source->info;
    int64_t n[3], count = hl_cells_count(cells), most = hl_max64(x ? i->ext[0] : 0, y ? i->targets : 0);
    const float beyond = c->o.classes > 0 && c->o.ignores ? (float)c->o.ignore : 0;
    hl_cells inside;
    hl_source_extents(c->source, sample, n);
    if (!clip(cells, n, &inside)) {
        if (x) fill(x, i->ext[0] * count, 0);
        if (y) fill(y, i->targets * count, beyond);
        return HALO_OK;
    }
    bool all = memcmp(&inside, cells, sizeof(inside)) == 0;
    if (!all) HL_TRY(hl_scratch(c->source->ctx, &c->plain, &c->plain_room, (size_t)(most * hl_cells_count(&inside)) * sizeof(float), "a part of a sample"));
    float *part = (float *)(void *)c->plain;
    if (x) {
        HL_TRY(hl_cutter_inside(c, sample, &inside, c->o.transforms, all ? x : part));
        if (!all) spread(part, &inside, cells, i->ext[0], 0, x);
    }
    if (!y) return HALO_OK;
    HL_TRY(hl_cutter_targets(c, sample, &inside, all ? y : part));
    if (!all) spread(part, &inside, cells, i->targets, beyond, y);
    return HALO_OK;
}

/* ---------------------------------------------------------------------------------------------------- whole samples */

/* The slab of extents n after one that may be empty, of at most SLAB_VALUES values or one plane; false: there is none. */
static bool next_slab(const int64_t n[3], int64_t channels, hl_cells *slab)
{
    int64_t at = slab->lo[0] + slab->ext[0], planes = hl_max64(1, SLAB_VALUES / (channels * n[1] * n[2]));
    *slab = (hl_cells){.lo = {at, 0, 0}, .ext = {hl_min64(planes, n[0] - at), n[1], n[2]}};
    return at < n[0];
}

halo_status hl_cutter_each_slab(hl_cutter *c, int64_t sample, int k, void (*take)(void *user, int64_t first, const float *v, int64_t n), void *user)
{
    hl_source *s = c->source;
    const int64_t channels = k == HL_SLABS_OF_TARGETS ? s->info.targets : s->info.ext[0];
    hl_cells slab = {{0}, {0}};
    int64_t n[3];
    float *v;
    hl_source_extents(s, sample, n);
    next_slab(n, channels, &slab); /* none is larger */
    HL_TRY(hl_aligned(s->ctx, (size_t)(channels * hl_cells_count(&slab)) * sizeof(*v), "a slab of a sample", &v));
    halo_status st;
    do {
        st = k == HL_SLABS_OF_TARGETS ? hl_cutter_targets(c, sample, &slab, v) : hl_cutter_inside(c, sample, &slab, k, v);
        if (st == HALO_OK) take(user, slab.lo[0] * n[1] * n[2], v, channels * hl_cells_count(&slab));
    } while (st == HALO_OK && next_slab(n, channels, &slab));
    free(v);
    return st;
}

static void add_moments(void *user, int64_t first, const float *v, int64_t n)
{
    hl_moments *m = user;
    (void)first;
    *m = hl_moments_merge(*m, hl_moments_of(v, n));
}

halo_status hl_cutter_moments(hl_cutter *c, int64_t sample, int k, hl_moments *moments)
{
    struct hl_known *known = c->source->known;
    hl_moments m = {0};
    if (k < HL_KNOWN_TRANSFORMS && hl_known_moments(known, sample, k, moments)) return HALO_OK;
    HL_TRY(hl_cutter_each_slab(c, sample, k, add_moments, &m));
    if (k < HL_KNOWN_TRANSFORMS) hl_known_put_moments(known, sample, k, m);
    *moments = m;
    return HALO_OK;
}
