/* SPDX-License-Identifier: Apache-2.0 */
/*
 * axes.c -- out[c, d, h, w] = (T) array[...] for any order of axes, several of which may be c:
 *
 *     c = sum over the c axes of (index along it) (product of the extents of the c axes that the writer lists behind it)
 *
 * Like volume.c it reads runs of the file's own order and converts them row by row of w; channels that are not wanted are read too where c is not one axis of its own before the others.
 */
#include "io/axes.h"

#include <stdio.h>

#define PART_BYTES (INT64_C(8) << 20)

enum { N, C, D, H, W };
static const char letters[] = "ncdhw";

/* ------------------------------------------------------------------------------------------------------------- words */

halo_status hl_axes_parse(halo_context *ctx, const char *key, const hl_words *w, hl_axes *axes)
{
    hl_axes a = {0};
    for (int i = 0; i < w->n; i++) {
        const char *word = w->word[i];
        if (strlen(word) != 1 || !strchr(letters, *word))
            return hl_fail(ctx, HALO_ERR_USAGE, "'%s' has '%s'; axes are n (sample), c (channel), d, h, w, such as [d, h, w, c]", key, word);
        if (*word != 'c' && memchr(a.letter, *word, (size_t)a.n)) return hl_fail(ctx, HALO_ERR_USAGE, "'%s' has '%s' twice; only c may be repeated", key, word);
        a.letter[a.n++] = *word;
    }
    *axes = a;
    return HALO_OK;
}

const char *hl_axes_text(const hl_axes *a, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < a->n && at < size; i++) at += (size_t)snprintf(out + at, size - at, "%s%c", i ? ", " : "[", a->letter[i]);
    if (at < size) snprintf(out + at, size - at, a->n ? "]" : "[]");
    return out;
}

/* -------------------------------------------------------------------------------------------------------------- view */

void hl_view_set(hl_view *v, const hl_array *array, const hl_axes *axes)
{
    HL_BUG_UNLESS(axes->n == array->ndim);
    *v = (hl_view){.ndim = array->ndim, .ext = {1, 1, 1, 1, 1}};
    for (int k = axes->n - 1; k >= 0; k--) { /* as the writer numbers them, the last first */
        int i = array->reversed ? axes->n - 1 - k : k, a = (int)(strchr(letters, axes->letter[k]) - letters);
        v->letter[i] = axes->letter[k];
        if (a == C) v->channel[i] = v->ext[C];
        v->ext[a] *= array->dim[i]; /* below the array's elements, which fit */
    }
}

typedef struct placer { /* one read, and where it goes */
    hl_array *array;
    const hl_view *v;
    halo_dtype to;
    size_t to_bytes;
    char *out;
    int64_t channels;
    const hl_cut *cut;
} placer;

typedef struct part { /* of the array: where it is, and dense in storage order */
    int64_t start[HL_ARRAY_RANK], count[HL_ARRAY_RANK], along[HL_ARRAY_RANK];
} part;

static int axis_of(const hl_view *v, char letter)
{
    const char *at = memchr(v->letter, letter, (size_t)v->ndim);
    return at ? (int)(at - v->letter) : -1;
}

/* The row of w at position `at` of the other axes to its place, unless its channel is not wanted. */
static void place_row(const placer *p, const part *b, const int64_t *at, int w, const char *raw)
{
    const hl_cut *cut = p->cut;
    int64_t from = 0, to[3] = {cut->at[0], cut->at[1], cut->at[2]}, channel = 0;
    for (int i = 0; i < p->v->ndim; i++) {
        from += at[i] * b->along[i];
        switch (p->v->letter[i]) {
        case 'c': channel += (b->start[i] + at[i]) * p->v->channel[i]; break;
        case 'd': to[0] += b->start[i] + at[i] - cut->lo[0]; break;
        case 'h': to[1] += b->start[i] + at[i] - cut->lo[1]; break;
        case 'w': to[2] += b->start[i] - cut->lo[2]; break;
        default: break;
        }
    }
    if (channel >= p->channels) return;
    int64_t element = ((channel * cut->into[0] + to[0]) * cut->into[1] + to[1]) * cut->into[2] + to[2];
    hl_convert(p->array->type, raw + from * p->array->type.bytes, w < 0 ? 1 : b->along[w], p->to, p->out + (size_t)element * p->to_bytes, w < 0 ? 1 : b->count[w]);
}

static void place(const placer *p, part *b, const char *raw)
{
    int64_t at[HL_ARRAY_RANK] = {0}, stride = 1;
    int w = axis_of(p->v, 'w'), i;
    for (i = p->v->ndim - 1; i >= 0; i--) {
        b->along[i] = stride;
        stride *= b->count[i];
    }
    do {
        place_row(p, b, at, w, raw);
        for (i = p->v->ndim - 1; i >= 0; i--) {
            if (i == w) continue;
            if (++at[i] < b->count[i]) break;
            at[i] = 0;
        }
    } while (i >= 0);
}

/* Whether the box is the output as it stands: same order, same type. */
static bool is_direct(const placer *p, const part *b)
{
    hl_number to = hl_dtype_number(p->to);
    const char *order = letters;
    int cs = 0;
    if (to.kind != p->array->type.kind || to.bytes != p->array->type.bytes) return false;
    if (memcmp(p->cut->ext, p->cut->into, sizeof(p->cut->ext)) != 0) return false;
    for (int i = 0; i < p->v->ndim; i++) {
        const char *at = strchr(order, p->v->letter[i]);
        if (p->v->letter[i] == 'c' && (++cs > 1 || b->count[i] != p->channels)) return false;
        if (p->v->letter[i] == 'n') continue;
        if (!at) return false;
        order = at;
    }
    return true;
}

/* Along the first axis with more than one entry, about PART_BYTES at a time, up to a chunk border. */
static halo_status read_parts(const placer *p, const part *box, char **scratch, size_t *capacity)
{
    const hl_array *a = p->array;
    part b = *box;
    int axis = 0;
    int64_t layer = a->type.bytes, at_once = 1, n = 1;
    while (axis < a->ndim - 1 && b.count[axis] == 1) axis++;
    for (int i = axis + 1; i < a->ndim; i++) layer *= b.count[i];
    if (a->ndim > 0) n = box->count[axis], at_once = hl_max64(1, PART_BYTES / hl_max64(layer, 1));
    for (int64_t done = 0, m; done < n; done += m) {
        int64_t at = box->start[axis] + done;
        m = at_once;
        if (a->chunk[axis] > 1) m = hl_round_up(at + m, a->chunk[axis]) - at;
        m = hl_min64(m, n - done);
        b.start[axis] = at;
        b.count[axis] = m;
        HL_TRY(hl_scratch(a->ctx, scratch, capacity, (size_t)(layer * m), "a part of an array"));
        HL_TRY(hl_array_read(p->array, b.start, b.count, *scratch, *capacity));
        place(p, &b, *scratch);
    }
    return HALO_OK;
}

halo_status hl_view_read(hl_array *array, const hl_view *v, int64_t n, int64_t channels, const hl_cut *cut, halo_dtype to, void *out, char **scratch, size_t *capacity)
{
    placer p = {.array = array, .v = v, .to = to, .to_bytes = hl_dtype_size(to), .out = out, .channels = channels, .cut = cut};
    part b = {.start = {0}};
    for (int i = 0; i < v->ndim; i++) {
        const char *spatial = strchr("dhw", v->letter[i]);
        bool alone = v->letter[i] == 'c' && array->dim[i] == v->ext[C] && i < v->ndim - 1;
        b.start[i] = v->letter[i] == 'n' ? n : spatial ? cut->lo[spatial - "dhw"] : 0;
        b.count[i] = v->letter[i] == 'n' ? 1 : spatial ? cut->ext[spatial - "dhw"] : alone ? channels : array->dim[i];
    }
    if (!is_direct(&p, &b)) return read_parts(&p, &b, scratch, capacity);
    return hl_array_read(array, b.start, b.count, out, (size_t)(channels * cut->ext[0] * cut->ext[1] * cut->ext[2]) * p.to_bytes);
}

/* -------------------------------------------------------------------------------------------------------- suggestion */

typedef struct search {
    const int64_t *dim, *want;
    int ndim;
    bool larger, ordered;
    char letter[HL_ARRAY_RANK];
} search;

static bool fits(const search *s)
{
    int64_t ext[5] = {1, 1, 1, 1, 1};
    for (int i = 0; i < s->ndim; i++) {
        int64_t *e = &ext[strchr(letters, s->letter[i]) - letters];
        if (!hl_mul64(*e, s->dim[i], e)) return false;
    }
    for (int k = 0; k < 4; k++) {
        if (s->want[k] == 0) continue;
        if (ext[C + k] != s->want[k] && !(s->larger && k > 0 && ext[C + k] > s->want[k])) return false;
    }
    return true;
}

/* Letters for axis i and those behind it. */
static bool try_axis(search *s, int i)
{
    static const char order[] = "cndhw";
    if (i == s->ndim) return fits(s);
    for (const char *l = order; *l; l++) {
        bool again = *l != 'c' && memchr(s->letter, *l, (size_t)i), behind = false;
        for (int k = 0; k < i && s->ordered; k++) behind = behind || (strchr("dhw", *l) && strchr("dhw", s->letter[k]) && s->letter[k] > *l);
        if (again || behind) continue;
        s->letter[i] = *l;
        if (try_axis(s, i + 1)) return true;
    }
    return false;
}

/* Where nothing is wanted: three axes, or more of which the first or the last is the shortest. */
static bool guess(const int64_t *dim, int ndim, hl_axes *axes)
{
    static const char *const plain[] = {"", "", "hw", "dhw"};
    const char *order = ndim >= 2 && ndim <= 3 ? plain[ndim] : NULL;
    if (ndim == 4 && dim[0] != dim[3]) order = dim[0] < dim[3] ? "cdhw" : "dhwc";
    if (ndim == 5 && dim[1] != dim[4]) order = dim[1] < dim[4] ? "ncdhw" : "ndhwc";
    if (!order) return false;
    axes->n = ndim;
    memcpy(axes->letter, order, (size_t)ndim);
    return true;
}

bool hl_axes_suggest(const hl_array *array, const int64_t want[4], bool larger, hl_axes *axes)
{
    int64_t dim[HL_ARRAY_RANK];
    search s = {.dim = dim, .want = want, .ndim = array->ndim, .larger = larger, .ordered = true};
    for (int i = 0; i < array->ndim; i++) dim[i] = array->dim[array->reversed ? array->ndim - 1 - i : i];
    if (want[1] == 0 || want[2] == 0 || want[3] == 0) return guess(dim, array->ndim, axes);
    if (array->ndim > 7) return false;
    bool found = try_axis(&s, 0);
    if (!found) {
        s.ordered = false;
        found = try_axis(&s, 0);
    }
    if (!found) return false;
    axes->n = s.ndim;
    memcpy(axes->letter, s.letter, sizeof(axes->letter));
    return true;
}
