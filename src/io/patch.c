/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patch.c -- where patches lie. Of samples n and patches p, along each axis:
 *
 *     plain       lo drawn evenly from 0 .. n - p
 *     foreground  a class is drawn evenly from those above 0 that the sample has, and one of its cells v; lo = v - p/2, moved as little as keeps the patch inside the sample
 *     n <= p      lo = -floor((p - n) / 2)
 *
 * The classes first, so that a lesion of ten voxels in an organ of a million is seen as often as the organ (Isensee et al., nnU-Net: a self-configuring method, 2021). Cells of classes are found once,
 * slab by slab, and up to HL_KNOWN_CELLS of each kept, spread evenly: those whose index times 2^32 / golden ratio, modulo 2^32, is below a limit, which is halved whenever there are too many.
 */
#include "io/cutting.h"

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

typedef struct look {
    const hl_loader_options *o;
    gather *of_class;
} look;

static void gather_labelled(void *user, int64_t first, const float *y, int64_t n)
{
    const look *l = user;
    for (int64_t i = 0; i < n; i++)
        if (y[i] > 0 && !(l->o->ignores && y[i] == (float)l->o->ignore)) take(&l->of_class[(int64_t)y[i]], first + i);
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

static halo_status find_labelled(hl_cutter *c, int64_t sample, const hl_labelled **out)
{
    gather *of_class;
    *out = hl_known_labelled(c->source->known, sample);
    if (*out) return HALO_OK;
    HL_TRY(hl_calloc(c->source->ctx, (size_t)c->o.classes, sizeof(*of_class), "labelled cells", &of_class));
    look l = {.o = &c->o, .of_class = of_class};
    halo_status st = hl_cutter_each_slab(c, sample, HL_SLABS_OF_TARGETS, gather_labelled, &l);
    if (st == HALO_OK) st = keep_labelled(c, sample, of_class);
    free(of_class);
    if (st == HALO_OK) *out = hl_known_labelled(c->source->known, sample);
    return st;
}

/* -------------------------------------------------------------------------------------------------------------- drawing */

hl_random hl_cutter_random(const hl_cutter *c, int64_t epoch, int64_t sample, int64_t number, int which)
{
    uint64_t patches = (uint64_t)hl_max64(1, c->o.patches);
    return hl_philox(c->o.seed, HL_STREAM_PATCH, (uint64_t)sample, ((uint64_t)epoch * patches + (uint64_t)number) * HL_WHICHES + (uint64_t)which);
}

static int64_t below(uint32_t r, int64_t n) { return (int64_t)((unsigned __int128)r * (uint64_t)n >> 32); }

/* Moves the patch about a labelled cell; where the sample has none it stays. */
static halo_status centre(hl_cutter *c, int64_t sample, const hl_random *r, const int64_t n[3], const int64_t ext[3], int64_t lo[3])
{
    const hl_labelled *l;
    HL_TRY(find_labelled(c, sample, &l));
    if (l->classes == 0) return HALO_OK;
    int64_t k = below(r->v[2], l->classes), cell = l->cell[l->first[k] + below(r->v[3], l->first[k + 1] - l->first[k])];
    const int64_t at[3] = {cell / (n[1] * n[2]), cell / n[2] % n[1], cell % n[2]};
    for (int a = 0; a < 3; a++)
        if (n[a] > ext[a]) lo[a] = hl_max64(0, hl_min64(n[a] - ext[a], at[a] - ext[a] / 2));
    return HALO_OK;
}

halo_status hl_cutter_draw(hl_cutter *c, int64_t epoch, int64_t sample, int64_t number, const int64_t ext[3], int64_t lo[3])
{
    hl_random kind = hl_cutter_random(c, epoch, sample, number, HL_WHICH_KIND), place = hl_cutter_random(c, epoch, sample, number, HL_WHICH_PLACE);
    int64_t n[3];
    hl_source_extents(c->source, sample, n);
    for (int k = 0; k < 3; k++) lo[k] = n[k] > ext[k] ? below(place.v[k], n[k] - ext[k] + 1) : -((ext[k] - n[k]) / 2);
    if (c->o.classes == 0 || !(hl_uniform53(kind.v[0], kind.v[1]) < c->o.foreground)) return HALO_OK;
    return centre(c, sample, &kind, n, ext, lo);
}
