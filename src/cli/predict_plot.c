/* SPDX-License-Identifier: Apache-2.0 */
/* predict_plot.c -- see predict_plot.h. A cell becomes a square of pixels, so that the longer side of a panel has about 256; colours run from black over violet and orange to yellow between the least and the largest value. */
#include "cli/predict_plot.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "io/convert.h"
#include "io/png.h"

enum { PANELS = 3, GAP = 8, SIDE = 256, RAMP = 240, WHITE = 255 };

typedef struct panel {
    int64_t ext[2];
    float *value; /* [H, W]; NULL: left out */
    int scale;    /* pixels of a cell */
} panel;

struct hl_plotter {
    halo_context *ctx;
    char *directory;
    hl_source *source;
    int64_t most, made, sample;
    int64_t middle; /* the plane of the targets that is shown */
    panel prediction;
    size_t room;
};

halo_status hl_plotter_open(halo_context *ctx, const char *directory, int64_t most, hl_source *source, hl_plotter **plotter)
{
    hl_plotter *p;
    HL_TRY(hl_make_dirs(ctx, directory));
    HL_TRY(hl_calloc(ctx, 1, sizeof(*p), "a picture", &p));
    *p = (hl_plotter){.ctx = ctx, .source = source, .most = most, .sample = -1};
    halo_status st = hl_strdup(ctx, directory, &p->directory);
    if (st == HALO_OK) *plotter = p;
    else (void)hl_plotter_close(p, false);
    return st;
}

/* -------------------------------------------------------------------------------------------------------------- drawing */

static void range_of(const panel *p, double range[2])
{
    for (int64_t i = 0; p->value && i < p->ext[0] * p->ext[1]; i++) {
        if (!isfinite(p->value[i])) continue;
        range[0] = fmin(range[0], (double)p->value[i]);
        range[1] = fmax(range[1], (double)p->value[i]);
    }
}

static void draw(const panel *p, const double range[2], uint8_t *pixel, int64_t width, int64_t left)
{
    double span = range[1] > range[0] ? range[1] - range[0] : 1;
    for (int64_t y = 0; y < p->ext[0] * p->scale; y++)
        for (int64_t x = 0; x < p->ext[1] * p->scale; x++) {
            double v = ((double)p->value[y / p->scale * p->ext[1] + x / p->scale] - range[0]) / span;
            pixel[(y + GAP) * width + left + x] = isfinite(v) ? (uint8_t)((RAMP - 1) * fmin(fmax(v, 0), 1)) : WHITE;
        }
}

/* Input, truth, prediction. */
static halo_status write_panels(hl_plotter *o, panel p[PANELS])
{
    int64_t width = GAP, height = 0;
    double own[2] = {INFINITY, -INFINITY}, shared[2] = {INFINITY, -INFINITY};
    uint8_t palette[256][3], *pixel;
    char path[1024];
    for (int i = 0; i < PANELS; i++) {
        p[i].scale = (int)hl_max64(1, SIDE / hl_max64(p[i].ext[0], p[i].ext[1]));
        if (!p[i].value) continue;
        width += p[i].ext[1] * p[i].scale + GAP;
        height = hl_max64(height, p[i].ext[0] * p[i].scale + 2 * GAP);
        range_of(&p[i], i == 0 ? own : shared);
    }
    HL_TRY(hl_calloc(o->ctx, (size_t)(width * height), 1, "a picture", &pixel));
    memset(pixel, WHITE, (size_t)(width * height));
    for (int64_t i = 0, left = GAP; i < PANELS; i++) {
        if (!p[i].value) continue;
        draw(&p[i], i == 0 ? own : shared, pixel, width, left);
        left += p[i].ext[1] * p[i].scale + GAP;
    }
    memset(palette, 255, sizeof(palette));
    hl_png_ramp(palette, RAMP);
    snprintf(path, sizeof(path), "%.900s/%06" PRId64 ".png", o->directory, o->sample);
    halo_status st = hl_png_write(o->ctx, path, (int)width, (int)height, pixel, palette);
    free(pixel);
    return st;
}

/* -------------------------------------------------------------------------------------------------------------- samples */

/* D H W of what is predicted: with patches those of the sample. */
static void target_extents(hl_plotter *o, int64_t sample, int64_t ext[3])
{
    const hl_source_info *i = &o->source->info;
    if (memcmp(i->target_ext, i->ext + 1, sizeof(i->target_ext)) == 0) hl_source_extents(o->source, sample, ext);
    else memcpy(ext, i->target_ext, sizeof(i->target_ext));
}

static hl_cut plane_of(const int64_t ext[3])
{
    return (hl_cut){.lo = {ext[0] / 2, 0, 0}, .ext = {1, ext[1], ext[2]}, .into = {1, ext[1], ext[2]}};
}

static halo_status read_input(hl_plotter *o, panel *p)
{
    const hl_source_info *i = &o->source->info;
    const hl_number type = hl_dtype_number(i->dtype);
    int64_t ext[3];
    char *raw;
    hl_source_extents(o->source, o->sample, ext);
    const int64_t plane = ext[1] * ext[2];
    const hl_cut cut = plane_of(ext);
    *p = (panel){.ext = {ext[1], ext[2]}};
    HL_TRY(hl_calloc(o->ctx, (size_t)(i->ext[0] * plane), hl_dtype_size(i->dtype), "a sample", &raw));
    halo_status st = o->source->ops->read(o->source, o->sample, &cut, raw);
    if (st == HALO_OK) st = hl_calloc(o->ctx, (size_t)plane, sizeof(float), "a picture", &p->value);
    int64_t channel = i->ext[0] / 2, side = (int64_t)sqrt((double)i->ext[0]);
    if (side > 1 && side % 2 == 0 && side * side == i->ext[0]) channel += side / 2; /* of a scan, row by row */
    if (st == HALO_OK) hl_convert(type, raw + (size_t)(channel * plane) * (size_t)type.bytes, 1, HALO_F32, p->value, plane);
    free(raw);
    return st;
}

static halo_status read_truth(hl_plotter *o, panel *p)
{
    const hl_source_info *i = &o->source->info;
    int64_t ext[3];
    target_extents(o, o->sample, ext);
    const hl_cut cut = plane_of(ext);
    *p = (panel){.ext = {ext[1], ext[2]}};
    if (i->unlabelled) return HALO_OK;
    HL_TRY(hl_calloc(o->ctx, (size_t)(i->targets * ext[1] * ext[2]), sizeof(float), "a picture", &p->value));
    return o->source->ops->target(o->source, o->sample, &cut, p->value); /* of several the first is drawn */
}

static halo_status write_sample(hl_plotter *o)
{
    panel p[PANELS] = {{{0}, NULL, 1}};
    if (o->sample < 0) return HALO_OK;
    halo_status st = read_input(o, &p[0]);
    if (st == HALO_OK) st = read_truth(o, &p[1]);
    p[2] = o->prediction;
    if (st == HALO_OK) st = write_panels(o, p);
    free(p[0].value);
    free(p[1].value);
    o->made++;
    o->sample = -1;
    return st;
}

static halo_status begin_sample(hl_plotter *o, int64_t sample)
{
    int64_t ext[3];
    target_extents(o, sample, ext);
    HL_TRY(hl_grow(o->ctx, &o->prediction.value, &o->room, (size_t)(ext[1] * ext[2]), sizeof(float), "a picture"));
    memset(o->prediction.value, 0, (size_t)(ext[1] * ext[2]) * sizeof(float));
    memcpy(o->prediction.ext, ext + 1, sizeof(o->prediction.ext));
    o->middle = ext[0] / 2;
    o->sample = sample;
    return HALO_OK;
}

halo_status hl_plotter_box(hl_plotter *o, const hl_prediction *p)
{
    if (p->sample != o->sample) {
        HL_TRY(write_sample(o));
        if (o->made >= o->most) return HALO_OK;
        HL_TRY(begin_sample(o, p->sample));
    }
    int64_t middle = o->middle - p->lo[1];
    if (p->lo[0] > 0 || middle < 0 || middle >= p->ext[1]) return HALO_OK;
    for (int64_t h = 0; h < p->ext[2]; h++)
        memcpy(o->prediction.value + (p->lo[2] + h) * o->prediction.ext[1] + p->lo[3], p->value + (middle * p->ext[2] + h) * p->ext[3], (size_t)p->ext[3] * sizeof(float));
    return HALO_OK;
}

halo_status hl_plotter_close(hl_plotter *o, bool write)
{
    if (!o) return HALO_OK;
    halo_status st = write ? write_sample(o) : HALO_OK;
    free(o->directory);
    free(o->prediction.value);
    free(o);
    return st;
}
