/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c -- see writer.h. Samples go to the file as they come; targets and groups are small and wait in
 * memory. */
#include "io/writer.h"
#include "io/h5out.h"

#include <stdio.h>

enum { COLUMNS = 8 };

typedef struct column { /* numbers of samples */
    char name[64];
    double *value;
    size_t room;
    int64_t n;
} column;

struct hl_writer {
    halo_context *ctx;
    hl_writer_options o;
    hl_target *target; /* own copy, NULL: none */
    hl_h5_out *out;
    hid_t x, volumes; /* volumes: y where targets are volumes, else -1 */
    float *y;
    int64_t *group;
    char **name;
    size_t y_cap, group_cap, name_cap, names;
    int64_t samples;
    bool grouped;
    column column[COLUMNS];
    int columns;
};

static const hl_number float32_number = {'f', 4}, float64_number = {'f', 8}, int64_number = {'i', 8},
                       int32_number = {'i', 4};

static hl_number number_of(const hl_writer_options *o) { return o->number.kind ? o->number : hl_dtype_number(o->dtype); }

static halo_status begin(hl_writer *w, const char *path)
{
    HL_TRY(hl_h5_create(w->ctx, path, &w->out));
    const int64_t *e = w->o.target_ext, y[4] = {w->o.targets, e[0], e[1], e[2]};
    HL_TRY(hl_h5_rows(w->out, "/x", number_of(&w->o), 4, w->o.ext, w->o.level, &w->x));
    if (w->o.targets && e[0] > 0) HL_TRY(hl_h5_rows(w->out, "/y", float32_number, 4, y, w->o.level, &w->volumes));
    return hl_h5_put_attr(w->out, "/x", "periodic", int32_number, 0, &(int32_t){w->o.periodic});
}

halo_status hl_writer_create(halo_context *ctx, const char *path, const hl_writer_options *o,
                             hl_writer **writer)
{
    hl_number type = number_of(o);
    if (!type.kind || (type.kind == 'f' && type.bytes == 2))
        return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "'%s': files do not hold %s", path,
                       hl_dtype_name(o->dtype));
    for (int k = 0; k < 4; k++)
        if (o->ext[k] < 1) return hl_fail(ctx, HALO_ERR_SHAPE, "'%s': samples have no cells", path);
    hl_writer *w = NULL;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*w), "a writer", &w));
    w->ctx = ctx;
    w->o = *o;
    w->x = w->volumes = -1;
    halo_status st = HALO_OK;
    if (o->target) {
        HL_GOTO(st, hl_calloc(ctx, (size_t)o->targets, sizeof(*w->target), "targets", &w->target), undo);
        if (o->targets) memcpy(w->target, o->target, (size_t)o->targets * sizeof(*w->target));
    }
    HL_GOTO(st, begin(w, path), undo);
    *writer = w;
    return HALO_OK;
undo:
    hl_writer_close(w, false);
    return st;
}

halo_status hl_writer_add(hl_writer *w, const void *x, const float *y, int64_t group)
{
    size_t n = (size_t)w->samples, t = (size_t)w->o.targets;
    if (n == 0) w->grouped = group >= 0;
    if (w->volumes < 0) HL_TRY(hl_grow(w->ctx, &w->y, &w->y_cap, (n + 1) * t, sizeof(float), "targets"));
    HL_TRY(hl_grow(w->ctx, &w->group, &w->group_cap, n + 1, sizeof(int64_t), "groups"));
    HL_TRY(hl_h5_add_row(w->out, w->x, number_of(&w->o), x));
    if (w->volumes >= 0) HL_TRY(hl_h5_add_row(w->out, w->volumes, float32_number, y));
    else if (t) memcpy(w->y + n * t, y, t * sizeof(float));
    w->group[n] = group;
    w->samples++;
    return HALO_OK;
}

halo_status hl_writer_name(hl_writer *w, const char *name)
{
    HL_TRY(hl_grow(w->ctx, &w->name, &w->name_cap, w->names + 1, sizeof(*w->name), "names"));
    HL_TRY(hl_strdup(w->ctx, name, &w->name[w->names]));
    w->names++;
    return HALO_OK;
}

halo_status hl_writer_column(hl_writer *w, const char *name, double value)
{
    int i = 0;
    while (i < w->columns && strcmp(w->column[i].name, name) != 0) i++;
    column *c = &w->column[i];
    if (i == w->columns) {
        HL_BUG_UNLESS(w->columns < COLUMNS && w->samples == 1);
        snprintf(c->name, sizeof(c->name), "%s", name);
        w->columns++;
    }
    HL_TRY(hl_grow(w->ctx, &c->value, &c->room, (size_t)c->n + 1, sizeof(*c->value), "numbers of samples"));
    c->value[c->n++] = value;
    return HALO_OK;
}

halo_status hl_writer_note(hl_writer *w, const char *object, const char *name, double value)
{
    return hl_h5_put_attr(w->out, object, name, float64_number, 0, &value);
}

static halo_status put_columns(hl_writer *w)
{
    char name[80];
    for (int i = 0; i < w->columns; i++) {
        HL_BUG_UNLESS(w->column[i].n == w->samples);
        snprintf(name, sizeof(name), "/%s", w->column[i].name);
        HL_TRY(hl_h5_put(w->out, name, float64_number, 1, &w->samples, w->column[i].value));
    }
    return HALO_OK;
}

static halo_status put_range(hl_writer *w, const char *name, size_t at)
{
    double *v = NULL;
    bool known = true;
    HL_TRY(hl_calloc(w->ctx, (size_t)w->o.targets, sizeof(*v), "target ranges", &v));
    for (int t = 0; t < w->o.targets; t++) {
        memcpy(&v[t], (const char *)&w->target[t] + at, sizeof(*v));
        known = known && isfinite(v[t]);
    }
    halo_status st = known ? hl_h5_put_attr(w->out, "/y", name, float64_number, w->o.targets, v) : HALO_OK;
    free(v);
    return st;
}

static halo_status put_names(hl_writer *w)
{
    const char **name = NULL;
    HL_TRY(hl_calloc(w->ctx, (size_t)w->o.targets, sizeof(*name), "target names", &name));
    for (int t = 0; t < w->o.targets; t++) name[t] = w->target[t].name;
    halo_status st = hl_h5_put_attr_strings(w->out, "/y", "names", w->o.targets, name);
    free(name);
    return st;
}

static halo_status put_y(hl_writer *w)
{
    int64_t dim[2] = {w->samples, w->o.targets};
    if (w->volumes < 0) HL_TRY(hl_h5_put(w->out, "/y", float32_number, 2, dim, w->y));
    if (!w->target) return HALO_OK;
    HL_TRY(put_names(w));
    HL_TRY(put_range(w, "low", offsetof(hl_target, low)));
    HL_TRY(put_range(w, "high", offsetof(hl_target, high)));
    HL_TRY(put_range(w, "mean", offsetof(hl_target, mean)));
    return put_range(w, "std", offsetof(hl_target, std));
}

static halo_status finish(hl_writer *w)
{
    if (w->o.targets) HL_TRY(put_y(w));
    HL_TRY(put_columns(w));
    HL_BUG_UNLESS(w->names == 0 || w->names == (size_t)w->samples);
    if (w->names) HL_TRY(hl_h5_put_strings(w->out, "/id", w->samples, (const char *const *)w->name));
    if (w->grouped) HL_TRY(hl_h5_put(w->out, "/group", int64_number, 1, &w->samples, w->group));
    return HALO_OK;
}

halo_status hl_writer_close(hl_writer *w, bool commit)
{
    if (!w) return HALO_OK;
    halo_status st = commit ? finish(w) : HALO_OK, st2 = HALO_OK;
    for (int k = 0; k < 2; k++) {
        hid_t rows = k ? w->volumes : w->x;
        halo_status closed = rows >= 0 ? hl_h5_rows_close(w->out, rows) : HALO_OK;
        if (st == HALO_OK && commit) st = closed;
    }
    if (w->out) st2 = hl_h5_finish(w->out, commit && st == HALO_OK);
    for (size_t i = 0; i < w->names; i++) free(w->name[i]);
    free(w->name);
    for (int i = 0; i < w->columns; i++) free(w->column[i].value);
    free(w->target);
    free(w->y);
    free(w->group);
    free(w);
    return st != HALO_OK ? st : st2;
}
