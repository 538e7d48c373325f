/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_nifti.c -- what NIfTI images are: of each its extents, type, spacing, orientation and scale; of a directory the first few, and how many there are. */
#include "io/inspect_nifti.h"
#include "io/nifti.h"

#include <stdio.h>

enum { SHOWN = 16 };

static const char *title(const hl_nifti *n) { return n->version == 2 ? "NIfTI-2" : n->version == 1 ? "NIfTI-1" : "Analyze 7.5"; }

static void write_text(const hl_nifti *n, hl_str *text)
{
    char codes[4];
    int64_t ext[3];
    double spacing[3];
    hl_nifti_extents(n, ext);
    hl_nifti_spacings(n, spacing);
    hl_str_addf(text, "  %s '%s'%s\n    shape        ", title(n), n->header, n->packed ? ", gzipped" : "");
    for (int i = 0; i < n->ndim; i++) hl_str_addf(text, "%s%" PRId64, i ? ", " : "[", n->dim[i]);
    hl_str_addf(text, "] as stored (x, y, z ...)\n    type         %s%s", hl_number_name(n->type), n->swapped ? " big-endian" : "");
    if (n->slope != 0) hl_str_addf(text, ", value = %.9g stored %c %.9g", n->slope, n->inter < 0 ? '-' : '+', fabs(n->inter));
    hl_str_addf(text, "\n    spacing      %.6g x %.6g x %.6g mm as stored\n    orientation  %s%s%s\n", n->spacing[0], n->spacing[1], n->spacing[2],
                *n->place ? hl_nifti_codes(n, codes) : "unknown: axes are taken as stored", *n->place ? ", by its " : "", n->place);
    hl_str_addf(text, "    read as      [%" PRId64 ", %" PRId64 ", %" PRId64 "] (d, h, w)%s, spacing %.6g x %.6g x %.6g mm", ext[0], ext[1], ext[2], *n->place ? " in RAS" : "", spacing[0],
                spacing[1], spacing[2]);
    int64_t channels = n->elements / (ext[0] * ext[1] * ext[2]);
    if (channels > 1) hl_str_addf(text, ", %" PRId64 " channels", channels);
    hl_str_add(text, "\n");
}

static void write_numbers(hl_json *j, const char *key, int n, const double *value)
{
    hl_json_array(j, key);
    for (int i = 0; i < n; i++) hl_json_number(j, NULL, value[i]);
    hl_json_end_array(j);
}

static void write_json(const hl_nifti *n, hl_json *j)
{
    char codes[4];
    int64_t ext[3];
    hl_nifti_extents(n, ext);
    hl_json_string(j, "format", title(n));
    hl_json_array(j, "shape");
    for (int i = 0; i < n->ndim; i++) hl_json_int(j, NULL, n->dim[i]);
    hl_json_end_array(j);
    hl_json_string(j, "type", hl_number_name(n->type));
    hl_json_bool(j, "big_endian", n->swapped);
    hl_json_bool(j, "gzipped", n->packed);
    hl_json_number(j, "slope", n->slope != 0 ? n->slope : 1);
    hl_json_number(j, "inter", n->inter);
    write_numbers(j, "spacing", 3, n->spacing);
    hl_json_string(j, "orientation", *n->place ? hl_nifti_codes(n, codes) : "");
    hl_json_string(j, "orientation_from", n->place);
    hl_json_array(j, "affine");
    for (int i = 0; i < 3; i++) write_numbers(j, NULL, 4, n->affine[i]);
    hl_json_end_array(j);
    hl_json_array(j, "read_as");
    for (int k = 0; k < 3; k++) hl_json_int(j, NULL, ext[k]);
    hl_json_end_array(j);
}

static halo_status one_image(halo_context *ctx, const char *path, hl_str *text, hl_json *json)
{
    hl_nifti n;
    HL_TRY(hl_nifti_open(ctx, path, &n));
    write_text(&n, text);
    hl_json_object(json, NULL);
    hl_json_string(json, "name", n.header);
    write_json(&n, json);
    hl_json_end_object(json);
    hl_nifti_free(&n);
    return HALO_OK;
}

halo_status hl_nifti_inspect(halo_context *ctx, const char *path, const hl_files *files, hl_str *text, hl_json *json)
{
    halo_status st = HALO_OK;
    hl_json_string(json, "kind", "data");
    hl_json_string(json, "path", path);
    hl_json_string(json, "format", "nifti");
    hl_json_int(json, "files", files->count);
    if (files->count > 1) hl_str_addf(text, "%" PRId64 " images in '%s'%s:\n", files->count, path, files->count > SHOWN ? ", of which the first are" : "");
    hl_json_array(json, "images");
    for (int64_t i = 0; i < files->count && i < SHOWN && st == HALO_OK; i++) st = one_image(ctx, files->path[i], text, json);
    hl_json_end_array(json);
    if (st == HALO_OK && (text->failed || json->out.failed)) st = hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: the description of '%s'", path);
    return st;
}
