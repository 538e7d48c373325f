/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cutter.c -- see cutter.h. Of samples n and patches p, along each axis:
 *
 *     plain       lo drawn evenly from 0 .. n - p
 *     foreground  a class is drawn evenly from those above 0 that the sample has, and one of its cells v; lo = v - p/2, moved as little as keeps the patch inside the sample
 *     n <= p      lo = -floor((p - n) / 2)
 *
 * The classes first, so that a lesion of ten voxels in an organ of a million is seen as often as the organ (Isensee et al., nnU-Net: a self-configuring method, 2021).
 * Memory: one box as read and as floats, and a slab of 4 MiB while a whole sample is looked at.
 */
#include "io/cutter.h"
#include "base/context.h"
#include "base/rng.h"
#include "io/cells.h"
#include "io/convert.h"

#include <stdio.h>

#define SLAB_VALUES (INT64_C(1) << 20)

struct hl_cutter {
    hl_source *source;
    hl_loader_options o;
    char *raw, *plain; /* the part of a box that lies in the sample: as read, as floats */
    size_t raw_room, plain_room;
};

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
    if (kind == HL_STANDARD) hl_standardise(x, n, c->o.mean, c->o.std);
    else if (kind == HL_CLIP) hl_clip(x, n, c->o.window[0], c->o.window[1]);
    else if (!hl_transform_whole(kind)) return hl_transform_apply(kind, x, n, &bad) ? HALO_OK : bad_sample(c, sample, HALO_ERR_NONFINITE, "log1p is not defined for a value of at most -1 in it");
    else {
        HL_TRY(hl_cutter_moments(c, sample, k, &all));
        if (!hl_transform_by(kind, all, x, n))
            return bad_sample(c, sample, HALO_ERR_NONFINITE,
                              kind == HL_OVER_MEAN ? "its mean is 0 or not finite, so that it cannot be divided by it" : "its standard deviation is 0 or not finite, so that it has no z-score");
    }
    return HALO_OK;
}

/* x [C, inside] after the first k transforms. */
static halo_status read_inside(hl_cutter *c, int64_t sample, const hl_cells *inside, int k, float *x)
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

/* Class numbers as exact ones; what interpolation left a thousandth beside one is that one. */
static halo_status check_targets(const hl_cutter *c, int64_t sample, const hl_cells *inside, float *y, int64_t n)
{
    int64_t bad = hl_first_nonfinite(y, n);
    if (bad < n) return bad_value(c, sample, inside, bad, HALO_ERR_NONFINITE, "a target is not finite:", (double)y[bad]);
    for (int64_t i = 0; i < n && c->o.classes > 0; i++) {
        float whole = rintf(y[i]) + 0.0f; /* -0 is 0 */
        bool known = (whole >= 0 && whole < (float)c->o.classes) || (c->o.ignores && whole == (float)c->o.ignore);
        if (!known || !(fabsf(y[i] - whole) <= 1e-3f)) {
            char what[96];
            snprintf(what, sizeof(what), "no class number (the network's classes are 0 to %" PRId64 "):", c->o.classes - 1);
            return bad_value(c, sample, inside, i, HALO_ERR_FORMAT, what, (double)y[i]);
        }
        y[i] = whole;
    }
    return HALO_OK;
}

static halo_status read_targets(hl_cutter *c, int64_t sample, const hl_cells *inside, float *y)
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

/* Channels of `inside` to their place among `cells`, the rest of which is 0. */
static void spread(const float *from, const hl_cells *inside, const hl_cells *cells, int64_t channels, float *to)
{
    const int64_t *e = cells->ext;
    memset(to, 0, (size_t)(channels * hl_cells_count(cells)) * sizeof(*to));
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
    hl_cells inside;
    hl_source_extents(c->source, sample, n);
    if (!clip(cells, n, &inside)) {
        if (x) memset(x, 0, (size_t)(i->ext[0] * count) * sizeof(*x));
        if (y) memset(y, 0, (size_t)(i->targets * count) * sizeof(*y));
        return HALO_OK;
    }
    bool all = memcmp(&inside, cells, sizeof(inside)) == 0;
    if (!all) HL_TRY(hl_scratch(c->source->ctx, &c->plain, &c->plain_room, (size_t)(most * hl_cells_count(&inside)) * sizeof(float), "a part of a sample"));
    float *part = (float *)(void *)c->plain;
    if (x) {
        HL_TRY(read_inside(c, sample, &inside, c->o.transforms, all ? x : part));
        if (!all) spread(part, &inside, cells, i->ext[0], x);
    }
    if (!y) return HALO_OK;
    HL_TRY(read_targets(c, sample, &inside, all ? y : part));
    if (!all) spread(part, &inside, cells, i->targets, y);
    return HALO_OK;
}

/* ---------------------------------------------------------------------------------------------------- whole samples */

/* Slabs of the sample one after the other, of at most SLAB_VALUES values or one plane. */
static bool next_slab(const int64_t n[3], int64_t channels, hl_cells *slab)
{
    int64_t at = slab->lo[0] + slab->ext[0], planes = hl_max64(1, SLAB_VALUES / (channels * n[1] * n[2]));
    *slab = (hl_cells){.lo = {at, 0, 0}, .ext = {hl_min64(planes, n[0] - at), n[1], n[2]}};
    return at < n[0];
}

halo_status hl_cutter_moments(hl_cutter *c, int64_t sample, int k, hl_moments *moments)
{
    hl_source *s = c->source;
    hl_cells slab = {{0}, {0}};
    hl_moments m = {0};
    int64_t n[3];
    float *x = NULL;
    halo_status st = HALO_OK;
    if (k < HL_KNOWN_TRANSFORMS && hl_known_moments(s->known, sample, k, moments)) return HALO_OK;
    hl_source_extents(s, sample, n);
    next_slab(n, s->info.ext[0], &slab);
    HL_TRY(hl_aligned(s->ctx, (size_t)(s->info.ext[0] * hl_cells_count(&slab)) * sizeof(*x), "a slab of a sample", &x));
    do {
        st = read_inside(c, sample, &slab, k, x);
        if (st == HALO_OK) m = hl_moments_merge(m, hl_moments_of(x, s->info.ext[0] * hl_cells_count(&slab)));
    } while (st == HALO_OK && next_slab(n, s->info.ext[0], &slab));
    free(x);
    HL_TRY(st);
    if (k < HL_KNOWN_TRANSFORMS) hl_known_put_moments(s->known, sample, k, m);
    *moments = m;
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------- foreground */

/* Cells of one class: those whose keys are below 2^(32 - level), halved whenever there are too many. */
typedef struct gather {
    int64_t count;
    int level;
    uint32_t key[HL_KNOWN_CELLS];
    int64_t cell[HL_KNOWN_CELLS];
} gather;

static void thin_out(gather *g)
{
    int64_t n = 0;
    g->level++;
    for (int64_t i = 0; i < g->count; i++)
        if (g->key[i] < UINT64_C(1) << 32 >> g->level) {
            g->key[n] = g->key[i];
            g->cell[n++] = g->cell[i];
        }
    g->count = n;
}

static void take(gather *g, int64_t cell)
{
    uint32_t key = (uint32_t)((uint64_t)cell * UINT64_C(0x9E3779B97F4A7C15) >> 32);
    while (key < UINT64_C(1) << 32 >> g->level) {
        if (g->count < HL_KNOWN_CELLS) {
            g->key[g->count] = key;
            g->cell[g->count++] = cell;
            return;
        }
        thin_out(g);
    }
}

static halo_status look_at_slabs(hl_cutter *c, int64_t sample, const int64_t n[3], gather *of_class)
{
    hl_cells slab = {{0}, {0}};
    float *y;
    halo_status st = HALO_OK;
    next_slab(n, c->source->info.targets, &slab);
    HL_TRY(hl_aligned(c->source->ctx, (size_t)(c->source->info.targets * hl_cells_count(&slab)) * sizeof(*y), "a slab of targets", &y));
    do {
        int64_t first = slab.lo[0] * n[1] * n[2];
        st = read_targets(c, sample, &slab, y);
        for (int64_t i = 0; i < hl_cells_count(&slab) && st == HALO_OK; i++)
            if (y[i] > 0 && !(c->o.ignores && y[i] == (float)c->o.ignore)) take(&of_class[(int64_t)y[i]], first + i);
    } while (st == HALO_OK && next_slab(n, c->source->info.targets, &slab));
    free(y);
    return st;
}

static halo_status keep_labelled(hl_cutter *c, int64_t sample, const gather *of_class)
{
    halo_context *ctx = c->source->ctx;
    int64_t total = 0;
    hl_labelled *l = NULL;
    for (int64_t k = 1; k < c->o.classes; k++) total += of_class[k].count;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*l), "labelled cells", &l));
    halo_status st = hl_calloc(ctx, (size_t)c->o.classes + 1, sizeof(*l->first), "labelled cells", &l->first);
    if (st == HALO_OK) st = hl_calloc(ctx, (size_t)total + 1, sizeof(*l->cell), "labelled cells", &l->cell);
    for (int64_t k = 1; k < c->o.classes && st == HALO_OK; k++) {
        const gather *g = &of_class[k];
        if (g->count == 0) continue;
        memcpy(l->cell + l->first[l->classes], g->cell, (size_t)g->count * sizeof(*g->cell));
        l->first[l->classes + 1] = l->first[l->classes] + g->count;
        l->classes++;
    }
    if (st == HALO_OK) {
        hl_known_put_labelled(c->source->known, sample, l);
        return HALO_OK;
    }
    free(l->first);
    free(l->cell);
    free(l);
    return st;
}

static halo_status find_labelled(hl_cutter *c, int64_t sample, const int64_t n[3], const hl_labelled **out)
{
    gather *of_class;
    *out = hl_known_labelled(c->source->known, sample);
    if (*out) return HALO_OK;
    HL_TRY(hl_calloc(c->source->ctx, (size_t)c->o.classes, sizeof(*of_class), "labelled cells", &of_class));
    halo_status st = look_at_slabs(c, sample, n, of_class);
    if (st == HALO_OK) st = keep_labelled(c, sample, of_class);
    free(of_class);
    if (st == HALO_OK) *out = hl_known_labelled(c->source->known, sample);
    return st;
}

/* -------------------------------------------------------------------------------------------------------------- drawing */

enum { WHICH_KIND = 0, WHICH_PLACE, WHICHES };

static hl_random draw(const hl_cutter *c, int64_t epoch, int64_t sample, int64_t number, int which)
{
    uint64_t patches = (uint64_t)hl_max64(1, c->o.patches);
    return hl_philox(c->o.seed, HL_STREAM_PATCH, (uint64_t)sample, ((uint64_t)epoch * patches + (uint64_t)number) * WHICHES + (uint64_t)which);
}

static int64_t below(uint32_t r, int64_t n) { return (int64_t)((unsigned __int128)r * (uint64_t)n >> 32); }

/* Moves the patch about a labelled cell; where the sample has none it stays. */
static halo_status centre(hl_cutter *c, int64_t sample, const hl_random *r, const int64_t n[3], const int64_t ext[3], int64_t lo[3])
{
    const hl_labelled *l;
    HL_TRY(find_labelled(c, sample, n, &l));
    if (l->classes == 0) return HALO_OK;
    int64_t k = below(r->v[2], l->classes), cell = l->cell[l->first[k] + below(r->v[3], l->first[k + 1] - l->first[k])];
    const int64_t at[3] = {cell / (n[1] * n[2]), cell / n[2] % n[1], cell % n[2]};
    for (int a = 0; a < 3; a++)
        if (n[a] > ext[a]) lo[a] = hl_max64(0, hl_min64(n[a] - ext[a], at[a] - ext[a] / 2));
    return HALO_OK;
}

halo_status hl_cutter_draw(hl_cutter *c, int64_t epoch, int64_t sample, int64_t number, const int64_t ext[3], int64_t lo[3])
{
    hl_random kind = draw(c, epoch, sample, number, WHICH_KIND), place = draw(c, epoch, sample, number, WHICH_PLACE);
    int64_t n[3];
    hl_source_extents(c->source, sample, n);
    for (int k = 0; k < 3; k++) lo[k] = n[k] > ext[k] ? below(place.v[k], n[k] - ext[k] + 1) : -((ext[k] - n[k]) / 2);
    if (c->o.classes == 0 || !(hl_uniform53(kind.v[0], kind.v[1]) < c->o.foreground)) return HALO_OK;
    return centre(c, sample, &kind, n, ext, lo);
}
