/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.c -- predicted volumes: `prediction` [sample, C, D, H, W] goes to the file as it comes, box by box; ids and groups are small and wait in memory. */
#include "io/h5out.h"
#include "io/io.h"

struct hl_volumes {
    halo_context *ctx;
    hl_h5_out *out;
    hid_t rows;
    int64_t samples;
    char **id;
    int64_t *group;
    size_t id_cap, group_cap;
};

static const hl_number float32_number = {'f', 4}, int64_number = {'i', 8};

static halo_status put_names(hl_volumes *v, int64_t channels, const hl_target *target)
{
    const char **name = NULL;
    HL_TRY(hl_calloc(v->ctx, (size_t)channels, sizeof(*name), "target names", &name));
    for (int64_t c = 0; c < channels; c++) name[c] = target[c].name;
    halo_status st = hl_h5_put_attr_strings(v->out, "/prediction", "names", channels, name);
    free(name);
    return st;
}

halo_status hl_volumes_create(halo_context *ctx, const char *path, const int64_t ext[4], const hl_target *target, hl_volumes **volumes)
{
    hl_volumes *v;
    halo_status st;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*v), "predicted volumes", &v));
    v->ctx = ctx;
    v->rows = -1;
    HL_GOTO(st, hl_h5_create(ctx, path, &v->out), undo);
    HL_GOTO(st, hl_h5_rows(v->out, "/prediction", float32_number, 4, ext, 0, &v->rows), undo);
    HL_GOTO(st, put_names(v, ext[0], target), undo);
    *volumes = v;
    return HALO_OK;
undo:
    (void)hl_volumes_close(v, false);
    return st;
}

halo_status hl_volumes_add(hl_volumes *v, const char *id, int64_t group)
{
    size_t n = (size_t)v->samples;
    HL_TRY(hl_grow(v->ctx, &v->id, &v->id_cap, n + 1, sizeof(*v->id), "sample ids"));
    HL_TRY(hl_grow(v->ctx, &v->group, &v->group_cap, n + 1, sizeof(*v->group), "groups"));
    HL_TRY(hl_h5_begin_row(v->out, v->rows));
    HL_TRY(hl_strdup(v->ctx, id, &v->id[n]));
    v->group[n] = group;
    v->samples++;
    return HALO_OK;
}

halo_status hl_volumes_put(hl_volumes *v, const int64_t lo[4], const int64_t ext[4], const float *prediction)
{
    return hl_h5_put_box(v->out, v->rows, float32_number, lo, ext, prediction);
}

static halo_status finish(hl_volumes *v)
{
    HL_TRY(hl_h5_put_strings(v->out, "/id", v->samples, (const char *const *)v->id));
    return hl_h5_put(v->out, "/group", int64_number, 1, &v->samples, v->group);
}

halo_status hl_volumes_close(hl_volumes *v, bool commit)
{
    if (!v) return HALO_OK;
    halo_status st = commit ? finish(v) : HALO_OK, finished = HALO_OK;
    if (v->rows >= 0) {
        halo_status closed = hl_h5_rows_close(v->out, v->rows);
        if (st == HALO_OK && commit) st = closed;
    }
    if (v->out) finished = hl_h5_finish(v->out, commit && st == HALO_OK);
    for (int64_t i = 0; i < v->samples; i++) free(v->id[i]);
    free(v->id);
    free(v->group);
    free(v);
    return st != HALO_OK ? st : finished;
}
