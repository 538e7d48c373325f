/* SPDX-License-Identifier: Apache-2.0 */
/* halo convert: data of other formats into one file of halo's own layout. */
#include "cli/commands.h"
#include "base/context.h"
#include "io/convert.h"
#include "io/scans.h"

#include <stdio.h>

static const hl_option options[] = {
    {.name = "spacing", .type = HL_OPT_TEXT, .arg = "S | D,H,W", .help = "resample to this spacing in mm: images linearly, masks to the nearest voxel"},
    {.name = "size", .type = HL_OPT_TEXT, .arg = "N | D,H,W", .help = "cut or pad all volumes about their middles to this many voxels"},
    {.name = "window", .type = HL_OPT_TEXT, .arg = "LO:HI", .help = "clip intensities and scale them from 0 to 1, such as -100:240 for a liver in CT"},
    {.name = "level", .type = HL_OPT_INT, .arg = "0-9", .help = "how hard to compress, 0: not at all; default 4", .high = 9},
};

/* One number for all three, or three between commas, each above 0. */
static bool three(const char *text, double out[3])
{
    char *end = NULL;
    int n = 0;
    for (; n < 3; n++) {
        out[n] = strtod(text, &end);
        if (end == text || !isfinite(out[n]) || out[n] <= 0 || (*end && *end != ',')) return false;
        if (!*end) break;
        text = end + 1;
    }
    if (n == 0) out[1] = out[2] = out[0];
    return (n == 0 || n == 2) && !*end;
}

static halo_status wrong_option(hl_invocation *inv, const char *name, const char *expected)
{
    return hl_fail(inv->ctx, HALO_ERR_USAGE, "'--%s %s': expected %s", name, hl_option_text(inv, name), expected);
}

static halo_status read_options(hl_invocation *inv, hl_scan_packing *o)
{
    const char *size = hl_option_text(inv, "size"), *spacing = hl_option_text(inv, "spacing"), *window = hl_option_text(inv, "window");
    double n[3];
    int used = 0;
    *o = (hl_scan_packing){.level = hl_given(inv, "level") ? (int)inv->number[hl_option_index(inv->command, "level")] : 4};
    if (o->level < 0 || o->level > 9) return hl_fail(inv->ctx, HALO_ERR_USAGE, "'--level' is 0 to 9");
    if (spacing && !three(spacing, o->spacing)) return wrong_option(inv, "spacing", "millimetres above 0, one number or D,H,W");
    if (size && !three(size, n)) return wrong_option(inv, "size", "voxels, one number or D,H,W");
    for (int k = 0; k < 3 && size; k++) {
        o->size[k] = (int64_t)n[k];
        if ((double)o->size[k] != n[k] || o->size[k] > 1 << 20) return wrong_option(inv, "size", "whole numbers up to 1048576");
    }
    if (window && (sscanf(window, "%lf:%lf%n", &o->window[0], &o->window[1], &used) != 2 || window[used] || !(o->window[1] > o->window[0])))
        return wrong_option(inv, "window", "LO:HI with LO below HI");
    return HALO_OK;
}

static int print_result(hl_invocation *inv, const hl_scans *scans, const char *path, const hl_scans_packed *r)
{
    hl_json j = {0};
    const char *type = hl_number_name(hl_dtype_number(r->type));
    HL_INFO(inv->ctx, "%" PRId64 " case%s of %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " %s in '%s'", r->cases, HL_S(r->cases), r->ext[0], r->ext[1], r->ext[2], r->ext[3], type, path);
    if (r->classes) HL_INFO(inv->ctx, "masks hold classes 0 to %" PRId64, r->classes - 1);
    if (scans->ignore >= 0) HL_INFO(inv->ctx, "label %g, 'ignore', stays in the masks as it is", scans->ignore);
    if (!inv->json) return HL_EXIT_OK;
    hl_json_object(&j, NULL);
    hl_json_string(&j, "path", path);
    hl_json_int(&j, "cases", r->cases);
    hl_json_array(&j, "shape");
    for (int k = 0; k < 4; k++) hl_json_int(&j, NULL, r->ext[k]);
    hl_json_end_array(&j);
    hl_json_string(&j, "type", type);
    hl_json_int(&j, "classes", r->classes);
    hl_json_object(&j, "labels");
    for (size_t i = 0; i < scans->labels; i++) hl_json_number(&j, scans->label[i].name, scans->label[i].value);
    hl_json_end_object(&j);
    hl_json_end_object(&j);
    return hl_print_json(inv, &j);
}

static halo_status find(hl_invocation *inv, hl_scans *scans)
{
    char **arg = inv->arg;
    bool nnunet = strcmp(arg[0], "nnunet") == 0;
    const char *const kinds[] = {"nifti", "nnunet"};
    if (nnunet && inv->args == 3) return hl_scans_find_nnunet(inv->ctx, arg[1], scans);
    if (nnunet) return hl_fail(inv->ctx, HALO_ERR_USAGE, "'halo convert nnunet' needs a data set's directory and a file to write");
    if (strcmp(arg[0], "nifti") == 0) return hl_scans_find(inv->ctx, arg[1], inv->args == 4 ? arg[2] : NULL, scans);
    const char *near = hl_nearest(arg[0], kinds, HL_COUNT(kinds));
    return hl_fail(inv->ctx, HALO_ERR_USAGE, "nothing to convert is called '%s'%s%s%s; there are nifti and nnunet", arg[0], near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int convert(hl_invocation *inv)
{
    hl_scan_packing o;
    hl_scans scans;
    hl_scans_packed result;
    const char *out = inv->arg[inv->args - 1];
    halo_status st = read_options(inv, &o);
    if (st == HALO_OK) st = find(inv, &scans);
    if (st != HALO_OK) return hl_exit_code(st);
    st = hl_scans_pack(&scans, &o, out, &result);
    int rc = st == HALO_OK ? print_result(inv, &scans, out, &result) : hl_exit_code(st);
    hl_scans_free(&scans);
    return rc;
}

const hl_command hl_command_convert = {
    .name = "convert",
    .synopsis = "nifti SCANS [MASKS] OUT.h5 | nnunet DIR OUT.h5",
    .summary = "pack medical images into one file that is read in parts",
    .details = "SCANS and MASKS are directories, patterns, lists or files of NIfTI images. Names in their order make pairs, and must agree in their numbers (volume-7 and segmentation-7). Where there is "
               "one mask for CASE_0000, CASE_0001 ..., these are its channels. All are turned to RAS first, so that a mask lies over its scan whatever the orientation of either.\n\n"
               "DIR is a data set as nnU-Net has it: dataset.json, imagesTr/CASE_0000.nii.gz, labelsTr/CASE.nii.gz. Masks may hold the labels of dataset.json only.\n\n"
               "Order of work: --spacing, --window, --size. Padding is the least value of the image, and class 0.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 3,
    .most = 4,
    .json = true,
    .run = convert,
};
