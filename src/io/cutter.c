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
    char *wide;        /* the box that a turned one lies in */
    size_t raw_room, plain_room, wide_room;
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
        HL_TRY(read_inside(c, sample, &inside, c->o.transforms, all ? x : part));
        if (!all) spread(part, &inside, cells, i->ext[0], 0, x);
    }
    if (!y) return HALO_OK;
    HL_TRY(read_targets(c, sample, &inside, all ? y : part));
    if (!all) spread(part, &inside, cells, i->targets, beyond, y);
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

enum { WHICH_KIND = 0, WHICH_PLACE, WHICH_TURN, WHICH_GRAY, WHICHES = 8 };

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

/* ------------------------------------------------------------------------------------------------------------- varying */

/*
 * A cell at p of the patch, whose middle is m and lies at q in the sample, comes from q + R (p - m) / s: R turns about the axes, s makes larger. Values x between the least and the largest of the sample become
 * lo + (hi - lo) ((x - lo) / (hi - lo))^gamma. Noise is a function of what the patch was drawn by and of the cell's index in it.
 */
typedef struct change {
    bool moves;
    double m[3][3]; /* R / s */
    double gamma;   /* 0: none */
    double noise;
} change;

bool hl_varies(const hl_vary *v) { return v->share > 0 && (v->rotate > 0 || v->scale[0] > 0 || v->gamma[0] > 0 || v->noise > 0); }

static double unit(uint32_t r) { return ((double)r + 0.5) / 4294967296.0; }

static double between(const double range[2], uint32_t r) { return exp(log(range[0]) + unit(r) * (log(range[1]) - log(range[0]))); }

/* m <- m times the turn by `angle` in the plane of the axes a and b. */
static void turn(double m[3][3], int a, int b, double angle)
{
    double c = cos(angle), s = sin(angle);
    for (int k = 0; k < 3; k++) {
        double x = m[k][a], y = m[k][b];
        m[k][a] = c * x + s * y;
        m[k][b] = c * y - s * x;
    }
}

/* A patch of one plane is turned in that. */
static change draw_change(const hl_cutter *c, int64_t epoch, int64_t sample, int64_t number, const int64_t ext[3])
{
    const hl_vary *v = &c->o.vary;
    hl_random t = draw(c, epoch, sample, number, WHICH_TURN), g = draw(c, epoch, sample, number, WHICH_GRAY), s = draw(c, epoch, sample, number, WHICH_GRAY + 1);
    change h = {.m = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    if (v->rotate > 0 && unit(t.v[0]) < v->share) {
        const double most = v->rotate * 3.14159265358979324 / 180;
        turn(h.m, 1, 2, (2 * unit(t.v[1]) - 1) * most);
        if (ext[0] > 1) turn(h.m, 0, 2, (2 * unit(t.v[2]) - 1) * most);
        if (ext[0] > 1) turn(h.m, 0, 1, (2 * unit(t.v[3]) - 1) * most);
        h.moves = true;
    }
    if (v->scale[0] > 0 && unit(s.v[0]) < v->share) {
        double factor = between(v->scale, s.v[1]);
        for (int k = 0; k < 9; k++) h.m[k / 3][k % 3] /= factor;
        if (ext[0] == 1) h.m[0][0] = 1;
        h.moves = true;
    }
    if (v->gamma[0] > 0 && unit(g.v[0]) < v->share) h.gamma = between(v->gamma, g.v[1]);
    if (v->noise > 0 && unit(g.v[2]) < v->share) h.noise = v->noise * unit(g.v[3]);
    return h;
}

typedef struct mapping { /* of cells of a patch to places in the sample */
    double m[3][3], from[3]; /* place of cell p: from + m p */
} mapping;

static mapping mapping_of(const change *h, const int64_t lo[3], const int64_t ext[3])
{
    mapping a;
    memcpy(a.m, h->m, sizeof(a.m));
    for (int k = 0; k < 3; k++) {
        a.from[k] = (double)lo[k] + (double)(ext[k] - 1) / 2;
        for (int j = 0; j < 3; j++) a.from[k] -= h->m[k][j] * (double)(ext[j] - 1) / 2;
    }
    return a;
}

static double place(const mapping *a, int k, int64_t d, int64_t h, int64_t w) { return a->from[k] + a->m[k][0] * (double)d + a->m[k][1] * (double)h + a->m[k][2] * (double)w; }

/* The box of the sample that the places of these cells, and their neighbours above, lie in. */
static hl_cells around(const mapping *a, const hl_cells *cells)
{
    hl_cells box;
    for (int k = 0; k < 3; k++) {
        double lo = INFINITY, hi = -INFINITY;
        for (int corner = 0; corner < 8; corner++) {
            int64_t at[3];
            for (int j = 0; j < 3; j++) at[j] = cells->lo[j] + (corner >> j & 1 ? cells->ext[j] - 1 : 0);
            double p = place(a, k, at[0], at[1], at[2]);
            lo = fmin(lo, p), hi = fmax(hi, p);
        }
        box.lo[k] = (int64_t)floor(lo - 1e-6);
        box.ext[k] = (int64_t)floor(hi + 1e-6) + 2 - box.lo[k];
    }
    return box;
}

static float at_place(const float *v, const hl_cells *box, const double p[3], bool nearest)
{
    int64_t lo[3];
    double high[3], sum = 0;
    for (int k = 0; k < 3; k++) {
        double x = p[k] - (double)box->lo[k];
        lo[k] = (int64_t)floor(x);
        high[k] = nearest ? x - (double)lo[k] >= 0.5 : x - (double)lo[k];
    }
    for (int corner = 0; corner < 8; corner++) {
        double weight = 1;
        int64_t cell = 0;
        for (int k = 0; k < 3; k++) {
            weight *= corner >> k & 1 ? high[k] : 1 - high[k];
            cell = cell * box->ext[k] + lo[k] + (corner >> k & 1);
        }
        if (weight != 0) sum += weight * (double)v[cell];
    }
    return (float)sum;
}

static void move(const float *wide, const hl_cells *box, const mapping *a, const hl_cells *cells, int64_t channels, bool nearest, float *out)
{
    for (int64_t c = 0; c < channels; c++, wide += hl_cells_count(box))
        for (int64_t d = 0; d < cells->ext[0]; d++)
            for (int64_t h = 0; h < cells->ext[1]; h++)
                for (int64_t w = 0; w < cells->ext[2]; w++) {
                    double p[3];
                    for (int k = 0; k < 3; k++) p[k] = place(a, k, cells->lo[0] + d, cells->lo[1] + h, cells->lo[2] + w);
                    *out++ = at_place(wide, box, p, nearest);
                }
}

/* Of x, or of y. */
static halo_status take_moved(hl_cutter *c, int64_t sample, const mapping *a, const hl_cells *cells, float *x, float *y)
{
    hl_cells box = around(a, cells);
    int64_t channels = x ? c->source->info.ext[0] : c->source->info.targets;
    HL_TRY(hl_scratch(c->source->ctx, &c->wide, &c->wide_room, (size_t)(channels * hl_cells_count(&box)) * sizeof(float), "a part of a sample"));
    float *wide = (float *)(void *)c->wide;
    HL_TRY(hl_cutter_read(c, sample, &box, x ? wide : NULL, x ? NULL : wide));
    move(wide, &box, a, cells, channels, !x && c->o.classes > 0, x ? x : y);
    return HALO_OK;
}

static halo_status take_plain(hl_cutter *c, int64_t sample, const int64_t lo[3], const hl_cells *cells, float *x, float *y)
{
    hl_cells box = *cells;
    for (int k = 0; k < 3; k++) box.lo[k] += lo[k];
    return hl_cutter_read(c, sample, &box, x, y);
}

/* Range of the whole sample. */
static halo_status range_of(hl_cutter *c, int64_t sample, float range[2])
{
    hl_source *s = c->source;
    hl_cells slab = {{0}, {0}};
    int64_t n[3];
    float *x, lo = INFINITY, hi = -INFINITY;
    if (hl_known_range(s->known, sample, range)) return HALO_OK;
    hl_source_extents(s, sample, n);
    next_slab(n, s->info.ext[0], &slab);
    HL_TRY(hl_aligned(s->ctx, (size_t)(s->info.ext[0] * hl_cells_count(&slab)) * sizeof(*x), "a slab of a sample", &x));
    halo_status st;
    do {
        st = read_inside(c, sample, &slab, c->o.transforms, x);
        for (int64_t i = 0; i < s->info.ext[0] * hl_cells_count(&slab) && st == HALO_OK; i++) lo = fminf(lo, x[i]), hi = fmaxf(hi, x[i]);
    } while (st == HALO_OK && next_slab(n, s->info.ext[0], &slab));
    free(x);
    range[0] = lo, range[1] = hi;
    if (st == HALO_OK) hl_known_put_range(s->known, sample, range);
    return st;
}

static halo_status change_values(hl_cutter *c, int64_t sample, double gamma, float *x, int64_t n)
{
    float range[2];
    if (gamma == 0) return HALO_OK;
    HL_TRY(range_of(c, sample, range));
    double lo = (double)range[0], span = (double)range[1] - lo;
    for (int64_t i = 0; i < n && span > 0; i++) x[i] = (float)(lo + span * pow(fmin(1, fmax(0, ((double)x[i] - lo) / span)), gamma));
    return HALO_OK;
}

/* Normal numbers come in pairs: cells 2 i and 2 i + 1 of the patch share one. */
static void add_noise(const hl_cutter *c, double noise, int64_t sample, uint64_t draw_number, const int64_t ext[3], const hl_cells *cells, float *x)
{
    for (int64_t ch = 0; ch < c->source->info.ext[0] && noise > 0; ch++)
        for (int64_t d = 0; d < cells->ext[0]; d++)
            for (int64_t h = 0; h < cells->ext[1]; h++) {
                int64_t row = ((ch * ext[0] + cells->lo[0] + d) * ext[1] + cells->lo[1] + h) * ext[2] + cells->lo[2], pair = -1;
                double z[2] = {0, 0};
                for (int64_t w = 0; w < cells->ext[2]; w++) {
                    if ((row + w) >> 1 != pair) hl_rng_normal2(c->o.seed, HL_STREAM_INTENSITY, (uint64_t)sample, draw_number << 36 | (uint64_t)(pair = (row + w) >> 1), z);
                    *x++ += (float)(noise * z[(row + w) & 1]);
                }
            }
}

halo_status hl_cutter_take(hl_cutter *c, int64_t epoch, int64_t sample, int64_t number, const int64_t ext[3], const hl_cells *x_cells, float *x, const hl_cells *y_cells, float *y)
{
    int64_t lo[3], n = c->source->info.ext[0] * hl_cells_count(x_cells);
    change h = draw_change(c, epoch, sample, number, ext);
    bool volumes = hl_target_volumes(&c->source->info), targets = c->source->info.targets > 0;
    HL_TRY(hl_cutter_draw(c, epoch, sample, number, ext, lo));
    mapping a = mapping_of(&h, lo, ext);
    HL_TRY(h.moves ? take_moved(c, sample, &a, x_cells, x, NULL) : take_plain(c, sample, lo, x_cells, x, NULL));
    if (targets && !volumes) HL_TRY(hl_cutter_read(c, sample, y_cells, NULL, y));
    else if (targets) HL_TRY(h.moves ? take_moved(c, sample, &a, y_cells, NULL, y) : take_plain(c, sample, lo, y_cells, NULL, y));
    HL_TRY(change_values(c, sample, h.gamma, x, n));
    add_noise(c, h.noise, sample, (uint64_t)epoch * (uint64_t)hl_max64(1, c->o.patches) + (uint64_t)number, ext, x_cells, x);
    return HALO_OK;
}
