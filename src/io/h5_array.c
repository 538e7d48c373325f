/* SPDX-License-Identifier: Apache-2.0 */
/* h5_array.c -- a dataset of an HDF5 file as an array (array.h). */
#include "io/array.h"
#include "io/h5.h"

#include <stdio.h>

typedef struct h5_array {
    hl_array base;
    hl_h5 *file;
    hl_h5_data *data;
} h5_array;

static halo_status read_box(hl_array *a, const int64_t *start, const int64_t *count, void *out)
{
    h5_array *h = (h5_array *)a;
    size_t bytes = (size_t)a->type.bytes;
    for (int i = 0; i < a->ndim; i++) bytes *= (size_t)count[i];
    return hl_h5_read(h->data, start, count, out, bytes);
}

static void close_array(hl_array *a)
{
    h5_array *h = (h5_array *)a;
    hl_h5_data_close(h->data);
    hl_h5_close(h->file);
    hl_array_free(a);
}

static const hl_array_ops ops = {.read = read_box, .close = close_array};

typedef struct finder { /* looks for the one dataset of numbers that has cells */
    hl_h5 *file;
    char name[512];
    int found;
    hl_str all;
} finder;

static halo_status look(void *user, const char *name)
{
    finder *f = user;
    char path[1024];
    snprintf(path, sizeof(path), "/%s", name);
    if (!hl_h5_is_numeric(f->file, path)) return HALO_OK;
    if (f->found++ == 0) snprintf(f->name, sizeof(f->name), "%.500s", path);
    if (f->found <= 8) hl_str_addf(&f->all, "%s%s", f->found > 1 ? ", " : "", path);
    return HALO_OK;
}

/* The name that is meant by none, or why there is none. */
static halo_status find_name(hl_h5 *file, const char *wanted, char *out, size_t size)
{
    finder f = {.file = file};
    halo_status st = hl_h5_list(file, look, &f);
    if (st == HALO_OK && *wanted)
        st = hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': no dataset '%s'; of numbers there %s %s%s", file->path, wanted, f.found == 1 ? "is" : "are",
                     f.found ? f.all.s : "none", f.found > 8 ? ", ..." : "");
    else if (st == HALO_OK && f.found != 1)
        st = hl_fail(file->ctx, HALO_ERR_FORMAT, f.found ? "'%s': which dataset? Set 'path' of 'data.x' (and of 'data.y') to one of %s%s" : "'%s': no dataset of numbers%s%s",
                     file->path, f.found ? f.all.s : "", f.found > 8 ? ", ..." : "");
    else if (st == HALO_OK) snprintf(out, size, "%s", f.name);
    hl_str_free(&f.all);
    return st;
}

static halo_status describe(h5_array *h, const char *name)
{
    const hl_h5_data *d = h->data;
    hl_array *a = &h->base;
    hl_str title = {0};
    hl_str_addf(&title, "dataset '%s'", name);
    if (title.failed) return hl_fail(a->ctx, HALO_ERR_NOMEM, "out of memory: the name of a dataset");
    a->name = title.s;
    a->type = d->type;
    a->swapped = d->swap;
    a->ndim = d->ndim;
    memcpy(a->dim, d->dim, sizeof(d->dim));
    memcpy(a->chunk, d->chunk, sizeof(d->chunk));
    a->elements = d->elements;
    a->bytes = d->bytes;
    return hl_h5_claim(d, d->bytes);
}

halo_status hl_h5_array_open(halo_context *ctx, const char *path, const char *name, hl_read_count *count, hl_array **out)
{
    h5_array *h;
    char only[512];
    halo_status st;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*h), "an array", &h));
    h->base.ops = &ops;
    h->base.ctx = ctx;
    HL_GOTO(st, hl_strdup(ctx, path, &h->base.path), close_array);
    HL_GOTO(st, hl_h5_open_counted(ctx, path, count, &h->file), close_array);
    if (!*name || !hl_h5_has(h->file, name)) {
        HL_GOTO(st, find_name(h->file, name, only, sizeof(only)), close_array);
        name = only;
    }
    HL_GOTO(st, hl_h5_data_open(h->file, name, 0, &h->data), close_array);
    HL_GOTO(st, describe(h, name), close_array);
    *out = &h->base;
    return HALO_OK;
close_array:
    close_array(&h->base);
    return st;
}
