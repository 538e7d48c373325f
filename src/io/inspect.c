/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c -- what is in a data file or directory: as a source, if it is one of ours (samples, targets with
 * their ranges), and as HDF5 (every dataset of the first file with type, shape, chunks, filters, and what it
 * takes on disk).
 */
#include "base/str.h"
#include "io/inspect_nifti.h"
#include "io/inspect_numpy.h"
#include "io/nifti.h"
#include "io/source.h"

#include <stdio.h>

typedef struct inspector {
    hl_str *text;
    hl_json *json;
    hl_h5 *file;
    int64_t in_use; /* bytes of all datasets */
} inspector;

static void shape_json(hl_json *j, const char *key, int n, const int64_t *dim)
{
    hl_json_array(j, key);
    for (int i = 0; i < n; i++) hl_json_int(j, NULL, dim[i]);
    hl_json_end_array(j);
}

static void list_of(hl_str *s, int n, const int64_t *dim)
{
    for (int i = 0; i < n; i++) hl_str_addf(s, "%s%" PRId64, i ? ", " : "[", dim[i]);
    hl_str_add(s, n ? "]" : "scalar");
}

static halo_status numeric(inspector *in, const char *name, const char *path)
{
    hl_h5_data *d = NULL;
    hl_str shape = {0}, filters = {0};
    HL_TRY(hl_h5_data_open(in->file, path, 0, &d));
    halo_status st = hl_h5_filters(d, &filters);
    bool chunked = d->ndim > 0 && d->chunk[0] > 0;
    list_of(&shape, d->ndim, d->dim);
    bool more = chunked || d->swap || filters.len; /* of columns behind the type */
    hl_str_addf(in->text, "  %-20s %-28s %-*s", name, shape.s ? shape.s : "", more ? 10 : 0, hl_number_name(d->type));
    if (chunked) {
        hl_str_add(in->text, " chunks ");
        list_of(in->text, d->ndim, d->chunk);
    }
    hl_str_addf(in->text, "%s%s%s", d->swap ? " big-endian" : "", filters.len ? " " : "",
                filters.s ? filters.s : "");
    if (d->stored > 0)
        hl_str_addf(in->text, ", on disk %.2f of its size",
                    (double)d->stored / (double)hl_max64(d->bytes, 1));
    hl_str_add(in->text, d->elsewhere ? ", its data is in other files\n" : "\n");
    hl_json_string(in->json, "type", hl_number_name(d->type));
    shape_json(in->json, "shape", d->ndim, d->dim);
    if (chunked) shape_json(in->json, "chunks", d->ndim, d->chunk);
    hl_json_string(in->json, "filters", filters.s ? filters.s : "");
    hl_json_int(in->json, "bytes", d->bytes);
    hl_json_int(in->json, "stored_bytes", d->stored);
    in->in_use += d->stored;
    hl_str_free(&shape);
    hl_str_free(&filters);
    hl_h5_data_close(d);
    return st;
}

static halo_status one_dataset(void *user, const char *name)
{
    inspector *in = user;
    char path[1024];
    snprintf(path, sizeof(path), "/%s", name);
    hl_json_object(in->json, NULL);
    hl_json_string(in->json, "name", name);
    halo_status st = HALO_OK;
    if (hl_h5_is_numeric(in->file, path))
        st = numeric(in, name, path);
    else
        hl_str_addf(in->text, "  %-20s not numbers\n", name);
    hl_json_end_object(in->json);
    return st;
}

static void range_json(hl_json *j, const hl_target *t)
{
    hl_json_object(j, NULL);
    hl_json_string(j, "name", t->name);
    hl_json_number(j, "low", t->low);
    hl_json_number(j, "high", t->high);
    hl_json_number(j, "mean", t->mean);
    hl_json_number(j, "std", t->std);
    hl_json_end_object(j);
}

static void as_source(inspector *in, const hl_source *s)
{
    const hl_source_info *i = &s->info;
    hl_str_addf(in->text, "%s\n", i->description);
    hl_json_string(in->json, "format", s->ops->name);
    hl_json_string(in->json, "description", i->description);
    hl_json_int(in->json, "samples", i->samples);
    hl_json_int(in->json, "groups", i->groups);
    shape_json(in->json, "sample_shape", 4, i->ext);
    hl_json_string(in->json, "type", hl_number_name(hl_dtype_number(i->dtype)));
    hl_json_bool(in->json, "whole_periodic", i->whole_periodic);
    hl_json_array(in->json, "targets");
    for (int t = 0; t < i->targets; t++) {
        const hl_target *x = &i->target[t];
        hl_str_addf(in->text, "  target %-16s", x->name);
        if (isfinite(x->low)) hl_str_addf(in->text, " %.6g .. %.6g", x->low, x->high);
        if (isfinite(x->std)) hl_str_addf(in->text, " %.6g +- %.6g", x->mean, x->std);
        hl_str_add(in->text, isfinite(x->low) || isfinite(x->std) ? "\n" : " range unknown\n");
        range_json(in->json, x);
    }
    hl_json_end_array(in->json);
}

/* A source only where the first file looks like one: that it is none is no error here. */
static halo_status try_source(halo_context *ctx, const char *path, inspector *in)
{
    hl_source *s = NULL;
    if (!hl_h5_has(in->file, "full") && !hl_h5_has(in->file, "x")) {
        bool predicted = hl_h5_has(in->file, "prediction");
        hl_str_addf(in->text, predicted ? "predicted volumes in '%s'\n" : "HDF5 file '%s', not in one of halo's data formats\n", in->file->path);
        hl_json_string(in->json, "format", predicted ? "predictions" : "hdf5");
        return HALO_OK;
    }
    HL_TRY(hl_source_open(ctx, &(hl_source_options){.path = path}, &s));
    as_source(in, s);
    hl_source_close(s);
    return HALO_OK;
}

halo_status hl_data_inspect(halo_context *ctx, const char *path, hl_str *text, hl_json *json)
{
    hl_files files = {0};
    inspector in = {.text = text, .json = json};
    halo_status st = HALO_OK;
    HL_TRY(hl_array_files_find(ctx, path, HL_ORDER_NAME, &files));
    if (hl_is_nifti(hl_files_deciding(&files))) {
        st = hl_nifti_inspect(ctx, path, &files, text, json);
        goto free_files;
    }
    if (hl_is_numpy(hl_files_deciding(&files))) {
        st = hl_numpy_inspect(ctx, path, &files, text, json);
        goto free_files;
    }
    HL_GOTO(st, hl_h5_open(ctx, hl_files_deciding(&files), &in.file), free_files);
    hl_json_string(json, "kind", "data");
    hl_json_string(json, "path", path);
    HL_GOTO(st, try_source(ctx, path, &in), close_file);
    hl_str_addf(text, "%s '%s', %" PRId64 " bytes:\n", files.count > 1 ? "first file" : "file", in.file->path,
                in.file->bytes);
    hl_json_int(json, "files", files.count);
    hl_json_array(json, "datasets");
    st = hl_h5_list(in.file, one_dataset, &in);
    hl_json_end_array(json);
    if (text->failed || json->out.failed)
        st = hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: the description of '%s'", path);
close_file:
    hl_h5_close(in.file);
free_files:
    hl_files_free(&files);
    return st;
}
