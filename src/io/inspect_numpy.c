/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_numpy.c -- what is in NPY and NPZ files: every array of the first one, and what its axes look like. */
#include "io/axes.h"
#include "io/inspect_numpy.h"

#include <stdio.h>

typedef struct inspector {
    halo_context *ctx;
    const char *path;
    hl_str *text;
    hl_json *json;
} inspector;

static void describe_json(hl_json *j, const hl_array *a)
{
    hl_json_string(j, "type", hl_number_name(a->type));
    hl_json_bool(j, "big_endian", a->swapped);
    hl_json_bool(j, "fortran_order", a->reversed);
    hl_json_array(j, "shape");
    for (int i = 0; i < a->ndim; i++) hl_json_int(j, NULL, a->dim[a->reversed ? a->ndim - 1 - i : i]);
    hl_json_end_array(j);
    hl_json_bool(j, "deflated", a->whole);
    hl_json_int(j, "bytes", a->bytes);
}

static void look_at(const inspector *in, const hl_array *a)
{
    static const int64_t any[4] = {0, 0, 0, 0};
    char shape[320], text[128];
    hl_axes axes;
    hl_array_describe(a, shape, sizeof(shape));
    hl_str_addf(in->text, "%s%s%s", shape, a->reversed ? ", first axis fastest" : "", a->whole ? ", deflated" : "");
    if (a->ndim >= 2 && hl_axes_suggest(a, any, false, &axes)) hl_str_addf(in->text, "  perhaps 'data.x.axes: %s'", hl_axes_text(&axes, text, sizeof(text)));
    describe_json(in->json, a);
}

/* An array of another kind than numbers is told of, and no error. */
static halo_status one_array(void *user, const char *name)
{
    const inspector *in = user;
    halo_context *ctx = in->ctx;
    hl_array *a;
    halo_log_fn log = ctx->log;
    hl_json_object(in->json, NULL);
    hl_json_string(in->json, "name", name);
    hl_str_addf(in->text, "  %-20s ", *name ? name : "(the array)");
    ctx->log = NULL;
    halo_status st = hl_array_open(ctx, in->path, name, NULL, &a);
    ctx->log = log;
    if (st == HALO_OK) {
        look_at(in, a);
        hl_array_close(a);
    } else {
        hl_str_add(in->text, halo_error_message(ctx));
        hl_json_string(in->json, "error", halo_error_message(ctx));
    }
    hl_str_add(in->text, "\n");
    hl_json_end_object(in->json);
    return HALO_OK;
}

halo_status hl_numpy_inspect(halo_context *ctx, const char *path, const hl_files *files, hl_str *text, hl_json *json)
{
    inspector in = {.ctx = ctx, .path = files->path[0], .text = text, .json = json};
    hl_json_string(json, "kind", "data");
    hl_json_string(json, "path", path);
    hl_json_string(json, "format", "arrays");
    hl_json_int(json, "files", files->count);
    hl_str_addf(text, "%" PRId64 " file%s of arrays in '%s'; %s '%s':\n", files->count, HL_S(files->count), path, files->count > 1 ? "the first is" : "it is", in.path);
    hl_json_array(json, "datasets");
    halo_status st = hl_numpy_list(ctx, in.path, one_array, &in);
    hl_json_end_array(json);
    if (st == HALO_OK && (text->failed || json->out.failed)) st = hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: the description of '%s'", path);
    return st;
}
