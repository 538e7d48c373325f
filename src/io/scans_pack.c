/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scans_pack.c -- cases to one file of halo's own layout, one after the other. Of each image, D H W in RAS:
 *
 *     resampled:  u(i) = trilinear interpolation at (i + 1/2) new/old - 1/2, held at the border; n' = round(n old/new)     masks: the nearest voxel
 *     windowed:   (clip(u, lo, hi) - lo) / (hi - lo)
 *     placed:     its middle on the middle of the size that is asked for; what is beyond is cut, what is missing is the image's least value
 */
#include "io/array.h"
#include "io/nifti.h"
#include "io/resample.h"
#include "io/scans.h"
#include "io/writer.h"
#include "base/context.h"

#include <stdio.h>

typedef struct packer {
    halo_context *ctx;
    const hl_scans *scans;
    const hl_scan_packing *o;
    int64_t ext[3], voxels; /* of the result */
    halo_dtype type;
    char *x; /* [C, voxels] of `type` */
    float *y;
    int64_t classes;
} packer;

typedef struct volume {
    int64_t ext[3];
    double spacing[3];
    float *v;
} volume;

static const char text_of_ext[] = "[%" PRId64 ", %" PRId64 ", %" PRId64 "]";

/* ------------------------------------------------------------------------------------------------------------- volumes */

static halo_status read_volume(halo_context *ctx, const char *path, volume *out)
{
    hl_array *a;
    char *raw = NULL;
    int64_t start[HL_ARRAY_RANK] = {0};
    HL_TRY(hl_array_open(ctx, path, "", NULL, &a));
    hl_nifti_extents(a->image, out->ext);
    hl_nifti_spacings(a->image, out->spacing);
    halo_status st = hl_aligned(ctx, (size_t)a->bytes, "an image", &raw);
    if (st == HALO_OK) st = hl_array_read(a, start, a->dim, raw, (size_t)a->bytes);
    if (st == HALO_OK) st = hl_calloc(ctx, (size_t)a->elements, sizeof(float), "an image", &out->v);
    if (st == HALO_OK) hl_convert(a->type, raw, 1, HALO_F32, out->v, a->elements);
    free(raw);
    hl_array_close(a);
    return st;
}

/* Of one axis: where each new voxel comes from. */
static halo_status make_line(halo_context *ctx, int64_t from, int64_t to, double ratio, bool nearest, hl_spot **line)
{
    HL_TRY(hl_calloc(ctx, (size_t)to, sizeof(**line), "places of voxels", line));
    hl_resample_line(0, to, ratio, from, 0, from, nearest, *line);
    return HALO_OK;
}

static void resample_into(const volume *v, hl_spot *const line[3], const int64_t ext[3], float *out)
{
    for (int64_t d = 0; d < ext[0]; d++)
        for (int64_t h = 0; h < ext[1]; h++, out += ext[2]) hl_resample_row(v->v, v->ext, line[0][d], line[1][h], line[2], ext[2], out);
}

/* Extents after resampling. */
static void resampled(const hl_scan_packing *o, const int64_t ext[3], const double spacing[3], int64_t out[3])
{
    for (int k = 0; k < 3; k++) out[k] = o->spacing[k] > 0 ? hl_resample_extent(ext[k], spacing[k], o->spacing[k]) : ext[k];
}

static halo_status resample(const packer *p, volume *v, bool nearest)
{
    int64_t ext[3];
    hl_spot *line[3] = {NULL};
    float *out = NULL;
    halo_status st = HALO_OK;
    if (p->o->spacing[0] <= 0) return HALO_OK;
    resampled(p->o, v->ext, v->spacing, ext);
    for (int k = 0; k < 3 && st == HALO_OK; k++) st = make_line(p->ctx, v->ext[k], ext[k], p->o->spacing[k] / v->spacing[k], nearest, &line[k]);
    if (st == HALO_OK) st = hl_calloc(p->ctx, (size_t)(ext[0] * ext[1] * ext[2]), sizeof(*out), "a resampled image", &out);
    if (st == HALO_OK) {
        resample_into(v, line, ext, out);
        free(v->v);
        v->v = out;
        memcpy(v->ext, ext, sizeof(v->ext));
    }
    for (int k = 0; k < 3; k++) free(line[k]);
    return st;
}

static void window(const packer *p, volume *v)
{
    float lo = (float)p->o->window[0], hi = (float)p->o->window[1];
    if (!(hi > lo)) return;
    for (int64_t i = 0; i < v->ext[0] * v->ext[1] * v->ext[2]; i++) v->v[i] = (fminf(fmaxf(v->v[i], lo), hi) - lo) / (hi - lo);
}

static float least_of(const volume *v)
{
    float least = v->v[0];
    for (int64_t i = 1; i < v->ext[0] * v->ext[1] * v->ext[2]; i++) least = fminf(least, v->v[i]);
    return least;
}

/* The volume to the middle of out [ext]. */
static void put_middle(const packer *p, const volume *v, float outside, float *out)
{
    int64_t shift[3]; /* from a place in the result to one in the volume */
    for (int k = 0; k < 3; k++) shift[k] = (v->ext[k] - p->ext[k]) / 2;
    for (int64_t d = 0; d < p->ext[0]; d++)
        for (int64_t h = 0; h < p->ext[1]; h++)
            for (int64_t w = 0; w < p->ext[2]; w++) {
                int64_t at[3] = {d + shift[0], h + shift[1], w + shift[2]};
                bool within = true;
                for (int k = 0; k < 3; k++) within = within && at[k] >= 0 && at[k] < v->ext[k];
                *out++ = within ? v->v[(at[0] * v->ext[1] + at[1]) * v->ext[2] + at[2]] : outside;
            }
}

/* --------------------------------------------------------------------------------------------------------------- cases */

/* The least type for all images that are not changed; float holds 24 bits, so wider ones are float32. */
static halo_dtype type_of(const hl_nifti *n, const hl_scan_packing *o)
{
    bool plain = n->slope == 0 && o->spacing[0] <= 0 && !(o->window[1] > o->window[0]);
    halo_dtype type = plain ? hl_number_dtype(n->type) : HALO_F32;
    return type == HALO_U8 || type == HALO_I16 ? type : HALO_F32;
}

static halo_status check_extents(packer *p, const char *path, const int64_t ext[3])
{
    static const int64_t none[3] = {0, 0, 0};
    char have[96], want[96];
    if (p->o->size[0] > 0) memcpy(p->ext, p->o->size, sizeof(p->ext));
    else if (memcmp(p->ext, none, sizeof(none)) == 0) memcpy(p->ext, ext, sizeof(p->ext));
    else if (memcmp(p->ext, ext, sizeof(p->ext)) != 0) {
        snprintf(have, sizeof(have), text_of_ext, ext[0], ext[1], ext[2]);
        snprintf(want, sizeof(want), text_of_ext, p->ext[0], p->ext[1], p->ext[2]);
        return hl_fail(p->ctx, HALO_ERR_SHAPE, "'%s' has %s voxels%s, those before it %s; --size cuts and pads all to one", path, have, p->o->spacing[0] > 0 ? " after resampling" : "", want);
    }
    return HALO_OK;
}

/* Training would end at it. */
static halo_status check_finite(const packer *p, const char *path, const volume *v)
{
    const int64_t plane = v->ext[1] * v->ext[2], n = v->ext[0] * plane;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(v->v[i]))
            return hl_fail(p->ctx, HALO_ERR_NONFINITE, "'%s' holds %g in voxel [d %" PRId64 ", h %" PRId64 ", w %" PRId64 "], which cannot be trained on", path, (double)v->v[i], i / plane, i / v->ext[2] % v->ext[1], i % v->ext[2]);
    return HALO_OK;
}

static double apart(const hl_nifti *a, const hl_nifti *b)
{
    const hl_nifti_span of_a = hl_nifti_span_of(a), of_b = hl_nifti_span_of(b);
    return hl_nifti_apart(&of_a, &of_b);
}

/* One header: what is checked before anything is written. `first` is that of the case's first image, or itself. */
static halo_status check_image(packer *p, const char *path, hl_nifti *first, bool is_first, bool is_mask)
{
    hl_nifti n;
    int64_t ext[3], of_first[3];
    double spacing[3];
    HL_TRY(hl_nifti_open(p->ctx, path, &n));
    hl_nifti_extents(&n, ext);
    hl_nifti_spacings(&n, spacing);
    halo_status st = n.elements == ext[0] * ext[1] * ext[2] ? HALO_OK : hl_fail(p->ctx, HALO_ERR_SHAPE, "'%s' has %" PRId64 " volumes; a channel is one", path, n.elements / (ext[0] * ext[1] * ext[2]));
    if (st == HALO_OK && !is_first) {
        hl_nifti_extents(first, of_first);
        if (memcmp(ext, of_first, sizeof(ext)) != 0)
            st = hl_fail(p->ctx, HALO_ERR_SHAPE, "'%s' has [%" PRId64 ", %" PRId64 ", %" PRId64 "] voxels (D, H, W in RAS), '%s' [%" PRId64 ", %" PRId64 ", %" PRId64 "]", path, ext[0], ext[1], ext[2],
                         first->header, of_first[0], of_first[1], of_first[2]);
        else if (apart(first, &n) > 0.5) HL_WARN(p->ctx, "'%s' says that it lies elsewhere than '%s', by %.3g voxels", path, first->header, apart(first, &n));
    }
    if (st == HALO_OK && !is_mask && type_of(&n, p->o) != p->type) p->type = p->type == HALO_NONE ? type_of(&n, p->o) : HALO_F32;
    resampled(p->o, ext, spacing, of_first);
    if (st == HALO_OK && is_first) st = check_extents(p, path, of_first);
    if (is_first && st == HALO_OK) *first = n;
    else hl_nifti_free(&n);
    return st;
}

static halo_status check_case(packer *p, const hl_scan_case *c)
{
    hl_nifti first;
    HL_TRY(check_image(p, c->image[0], &first, true, false));
    halo_status st = HALO_OK;
    for (int k = 1; k < p->scans->channels && st == HALO_OK; k++) st = check_image(p, c->image[k], &first, false, false);
    if (st == HALO_OK && c->mask) st = check_image(p, c->mask, &first, false, true);
    hl_nifti_free(&first);
    return st;
}

static halo_status load(const packer *p, const char *path, bool mask, volume *v)
{
    HL_TRY(read_volume(p->ctx, path, v));
    HL_TRY(check_finite(p, path, v));
    return resample(p, v, mask);
}

static halo_status pack_image(packer *p, const char *path, char *out)
{
    volume v = {.v = NULL};
    float *placed = NULL;
    halo_status st = load(p, path, false, &v);
    if (st == HALO_OK) st = p->type == HALO_F32 ? HALO_OK : hl_calloc(p->ctx, (size_t)p->voxels, sizeof(float), "an image", &placed);
    if (st == HALO_OK) {
        window(p, &v);
        put_middle(p, &v, least_of(&v), placed ? placed : (float *)(void *)out);
        for (int64_t i = 0; i < p->voxels && p->type == HALO_U8; i++) ((uint8_t *)out)[i] = (uint8_t)placed[i];
        for (int64_t i = 0; i < p->voxels && p->type == HALO_I16; i++) ((int16_t *)(void *)out)[i] = (int16_t)placed[i];
    }
    free(placed);
    free(v.v);
    return st;
}

static bool is_label(const hl_scans *s, float v)
{
    bool known = s->labels == 0 && v >= 0 && v < 65536 && v == floorf(v);
    for (size_t i = 0; i < s->labels; i++) known = known || (double)v == s->label[i].value;
    return known;
}

static halo_status pack_mask(packer *p, const char *path)
{
    volume v = {.v = NULL};
    halo_status st = load(p, path, true, &v);
    for (int64_t i = 0; st == HALO_OK && i < v.ext[0] * v.ext[1] * v.ext[2]; i++) {
        if (fabsf(v.v[i] - rintf(v.v[i])) <= 1e-3f) v.v[i] = rintf(v.v[i]) + 0.0f; /* what interpolation left beside it */
        if (!is_label(p->scans, v.v[i])) st = hl_fail(p->ctx, HALO_ERR_FORMAT, "'%s' holds %g, which is no %s", path, (double)v.v[i], p->scans->labels ? "label of dataset.json" : "class number");
        else if ((double)v.v[i] != p->scans->ignore) p->classes = hl_max64(p->classes, (int64_t)v.v[i] + 1);
    }
    if (st == HALO_OK) put_middle(p, &v, 0, p->y);
    free(v.v);
    return st;
}

static halo_status pack_case(packer *p, const hl_scan_case *c, hl_writer *w)
{
    size_t bytes = (size_t)p->voxels * hl_dtype_size(p->type);
    for (int k = 0; k < p->scans->channels; k++) HL_TRY(pack_image(p, c->image[k], p->x + (size_t)k * bytes));
    if (c->mask) HL_TRY(pack_mask(p, c->mask));
    return hl_writer_add(w, p->x, c->mask ? p->y : NULL, -1);
}

static halo_status write_all(packer *p, const char *path)
{
    const hl_target target = {.name = "class", .low = NAN, .high = NAN, .mean = NAN, .std = NAN};
    bool masks = p->scans->item[0].mask;
    hl_writer_options o = {.ext = {p->scans->channels, p->ext[0], p->ext[1], p->ext[2]}, .dtype = p->type, .targets = masks, .target = masks ? &target : NULL, .level = p->o->level};
    hl_writer *w;
    if (masks) memcpy(o.target_ext, p->ext, sizeof(p->ext));
    HL_TRY(hl_writer_create(p->ctx, path, &o, &w));
    halo_status st = HALO_OK;
    for (int64_t i = 0; i < p->scans->count && st == HALO_OK; i++) st = pack_case(p, &p->scans->item[i], w);
    for (int64_t i = 0; i < p->scans->count && st == HALO_OK; i++) st = hl_writer_name(w, p->scans->item[i].id);
    halo_status closed = hl_writer_close(w, st == HALO_OK);
    return st != HALO_OK ? st : closed;
}

halo_status hl_scans_pack(const hl_scans *scans, const hl_scan_packing *o, const char *path, hl_scans_packed *result)
{
    packer p = {.ctx = scans->ctx, .scans = scans, .o = o, .type = HALO_NONE};
    halo_status st = HALO_OK;
    for (int64_t i = 0; i < scans->count; i++) HL_TRY(check_case(&p, &scans->item[i]));
    p.voxels = p.ext[0] * p.ext[1] * p.ext[2];
    HL_GOTO(st, hl_calloc(p.ctx, (size_t)(p.voxels * scans->channels), hl_dtype_size(p.type), "a case", &p.x), release);
    HL_GOTO(st, hl_calloc(p.ctx, (size_t)p.voxels, sizeof(*p.y), "a mask", &p.y), release);
    HL_GOTO(st, write_all(&p, path), release);
    *result = (hl_scans_packed){.cases = scans->count, .ext = {scans->channels, p.ext[0], p.ext[1], p.ext[2]}, .type = p.type, .classes = p.classes};
release:
    free(p.x);
    free(p.y);
    return st;
}
