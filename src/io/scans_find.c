/* SPDX-License-Identifier: Apache-2.0 */
/* scans_find.c -- which images and masks make a case: by the order of names, which must then agree in their numbers, or as nnU-Net names them. */
#include "io/array_files.h"
#include "io/nifti.h"
#include "io/scans.h"
#include "base/context.h"
#include "base/file.h"
#include "base/yaml.h"

#include <stdio.h>

void hl_scans_free(hl_scans *s)
{
    for (int64_t i = 0; i < s->count; i++) {
        for (int c = 0; c < s->channels && s->item[i].image; c++) free(s->item[i].image[c]);
        free(s->item[i].image);
        free(s->item[i].id);
        free(s->item[i].mask);
    }
    free(s->item);
    free(s->label);
    *s = (hl_scans){.ctx = s->ctx};
}

/* Files of a directory, pattern, list or alone, all of which are images. */
static halo_status find_images(halo_context *ctx, const char *path, hl_files *files)
{
    HL_TRY(hl_array_files_find(ctx, path, HL_ORDER_NAME, files));
    for (int64_t i = 0; i < files->count; i++) {
        if (hl_is_nifti(files->path[i])) continue;
        halo_status st = hl_fail(ctx, HALO_ERR_FORMAT, "'%s' is no NIfTI image: its name ends in none of .nii, .nii.gz, .hdr, .hdr.gz", files->path[i]);
        hl_files_free(files);
        return st;
    }
    return HALO_OK;
}

static halo_status add_case(hl_scans *s, const char *id, const char *mask)
{
    HL_TRY(hl_grow(s->ctx, &s->item, &s->room, (size_t)s->count + 1, sizeof(*s->item), "cases"));
    hl_scan_case *c = &s->item[s->count++];
    *c = (hl_scan_case){0};
    HL_TRY(hl_calloc(s->ctx, (size_t)s->channels, sizeof(*c->image), "images of a case", &c->image));
    HL_TRY(hl_strdup(s->ctx, id, &c->id));
    return mask ? hl_strdup(s->ctx, mask, &c->mask) : HALO_OK;
}

static halo_status pair_up(hl_scans *s, const hl_files *images, const hl_files *masks)
{
    char id[512];
    for (int64_t i = 0; i < images->count / s->channels; i++) {
        const char *first = images->path[i * s->channels], *mask = masks ? masks->path[i] : NULL;
        if (mask && !hl_nifti_same_case(first, mask))
            return hl_fail(s->ctx, HALO_ERR_SHAPE, "'%s' would be the mask of '%s': their numbers differ; is a file missing?", mask, hl_base_name(first));
        hl_nifti_case(hl_files_name(images, i * s->channels), id, sizeof(id));
        HL_TRY(add_case(s, id, mask));
        for (int c = 0; c < s->channels; c++) HL_TRY(hl_strdup(s->ctx, images->path[i * s->channels + c], &s->item[i].image[c]));
    }
    return HALO_OK;
}

int hl_scans_channels(char *const *path, int64_t count)
{
    char first[256], other[256], end[16];
    int n = 1;
    hl_nifti_case(path[0], first, sizeof(first));
    for (; n < count && n < 10000; n++) {
        snprintf(end, sizeof(end), "_%04d", n);
        hl_nifti_case(path[n], other, sizeof(other));
        size_t length = strlen(first);
        if (strncmp(first, other, length) != 0 || strcmp(other + length, end) != 0) break;
    }
    return n;
}

static halo_status find_both(hl_scans *s, const hl_files *images, const hl_files *masks)
{
    s->channels = 1;
    if (masks && masks->count != images->count) s->channels = hl_scans_channels(images->path, images->count);
    if (!masks || masks->count * s->channels == images->count) return pair_up(s, images, masks);
    hl_str lonely = {0};
    hl_files_add_unpaired(images, "mask", masks, &lonely);
    hl_files_add_unpaired(masks, "image", images, &lonely);
    halo_status st = hl_fail(s->ctx, HALO_ERR_SHAPE, "%" PRId64 " image%s from '%s' on and %" PRId64 " mask%s from '%s' on: each image, or each CASE_0000, CASE_0001 ..., needs one%s", images->count,
                             HL_S(images->count), images->path[0], masks->count, HL_S(masks->count), masks->path[0], lonely.s ? lonely.s : "");
    hl_str_free(&lonely);
    return st;
}

halo_status hl_scans_find(halo_context *ctx, const char *images, const char *masks, hl_scans *out)
{
    hl_scans s = {.ctx = ctx, .ignore = -1};
    hl_files of_images = {0}, of_masks = {0};
    halo_status st;
    HL_TRY(find_images(ctx, images, &of_images));
    HL_GOTO(st, hl_files_set_names(&of_images), free_images);
    if (masks) HL_GOTO(st, find_images(ctx, masks, &of_masks), free_images);
    st = find_both(&s, &of_images, masks ? &of_masks : NULL);
    if (st == HALO_OK) *out = s;
    else hl_scans_free(&s);
    hl_files_free(&of_masks);
free_images:
    hl_files_free(&of_images);
    return st;
}

/* ------------------------------------------------------------------------------------------------------------ nnU-Net */

/* {"background": 0, "liver": 1} as version 2 writes it, {"0": "background"} as version 1 does. */
static halo_status add_label(hl_scans *s, const char *file, const hl_yaml *entry)
{
    const char *key = entry->key, *text = entry->kind == HL_YAML_SCALAR ? entry->text : NULL;
    char *end = NULL, *end_of_key = NULL;
    double value = text ? strtod(text, &end) : NAN, as_key = strtod(key, &end_of_key);
    bool second = text && end != text && !*end, first = text && !second && end_of_key != key && !*end_of_key;
    if (!first && !second)
        return hl_fail(s->ctx, HALO_ERR_UNSUPPORTED, "'%s': label '%s' is no number but %s, which halo does not train", file, key, text ? "a word" : "a list of numbers (a region)");
    HL_TRY(hl_grow(s->ctx, &s->label, &s->label_room, s->labels + 1, sizeof(*s->label), "labels"));
    hl_scan_label *l = &s->label[s->labels++];
    l->value = first ? as_key : value;
    snprintf(l->name, sizeof(l->name), "%s", first ? text : key);
    if (strcmp(l->name, "ignore") == 0) s->ignore = l->value;
    return HALO_OK;
}

static halo_status take_description(hl_scans *s, const char *file, const hl_yaml *json, char *ending, size_t size)
{
    const hl_yaml *labels = hl_yaml_find(json, "labels"), *channels = hl_yaml_find(json, "channel_names"), *end = hl_yaml_find(json, "file_ending");
    if (!channels) channels = hl_yaml_find(json, "modality");
    if (!labels || labels->kind != HL_YAML_MAP || !channels || channels->kind != HL_YAML_MAP || channels->items == 0)
        return hl_fail(s->ctx, HALO_ERR_FORMAT, "'%s': no nnU-Net data set: it needs 'labels' and 'channel_names' (or 'modality')", file);
    s->channels = (int)channels->items;
    for (size_t i = 0; i < labels->items; i++) HL_TRY(add_label(s, file, labels->item[i]));
    snprintf(ending, size, "%s", end && end->kind == HL_YAML_SCALAR ? end->text : ".nii.gz");
    if (hl_is_nifti(strcmp(ending, ".nii") == 0 ? "x.nii" : strcmp(ending, ".nii.gz") == 0 ? "x.nii.gz" : "")) return HALO_OK;
    return hl_fail(s->ctx, HALO_ERR_UNSUPPORTED, "'%s': its images end in '%s', halo reads .nii and .nii.gz", file, ending);
}

static halo_status channel_path(const hl_scans *s, const char *directory, const char *id, int channel, const char *ending, char **path)
{
    hl_str text = {0};
    hl_str_addf(&text, "%s/imagesTr/%s_%04d%s", directory, id, channel, ending);
    if (text.failed) return hl_fail(s->ctx, HALO_ERR_NOMEM, "out of memory: a file name");
    *path = text.s;
    return HALO_OK;
}

/* A channel that dataset.json does not name would be left out without a word. */
static halo_status check_more(const hl_scans *s, const char *directory, const char *id, const char *ending)
{
    char *path = NULL;
    HL_TRY(channel_path(s, directory, id, s->channels, ending, &path));
    halo_status st = hl_file_exists(path) ? hl_fail(s->ctx, HALO_ERR_FORMAT, "'%s' is channel %d, but 'channel_names' of dataset.json has %d", path, s->channels, s->channels) : HALO_OK;
    free(path);
    return st;
}

static halo_status add_labelled(hl_scans *s, const char *directory, const char *mask, const char *ending)
{
    char id[256];
    hl_nifti_case(mask, id, sizeof(id));
    HL_TRY(add_case(s, id, mask));
    for (int c = 0; c < s->channels; c++) {
        char **path = &s->item[s->count - 1].image[c];
        HL_TRY(channel_path(s, directory, id, c, ending, path));
        if (!hl_file_exists(*path)) return hl_fail(s->ctx, HALO_ERR_IO, "'%s' is missing: '%s' is its mask", *path, mask);
    }
    return check_more(s, directory, id, ending);
}

static halo_status describe(hl_scans *s, const char *directory, char *ending, size_t size)
{
    char *file;
    hl_yaml *json = NULL;
    HL_TRY(hl_path_join(s->ctx, directory, "dataset.json", &file));
    halo_status st = hl_yaml_load(s->ctx, file, &json);
    if (st == HALO_OK) {
        st = take_description(s, file, json, ending, size);
        hl_yaml_destroy(json);
    }
    free(file);
    return st;
}

static halo_status find_labelled(hl_scans *s, const char *directory, const char *ending)
{
    char *path;
    hl_files masks = {0};
    HL_TRY(hl_path_join(s->ctx, directory, "labelsTr", &path));
    halo_status st = find_images(s->ctx, path, &masks);
    for (int64_t i = 0; i < masks.count && st == HALO_OK; i++) st = add_labelled(s, directory, masks.path[i], ending);
    hl_files_free(&masks);
    free(path);
    return st;
}

halo_status hl_scans_find_nnunet(halo_context *ctx, const char *directory, hl_scans *out)
{
    hl_scans s = {.ctx = ctx, .ignore = -1};
    char ending[32];
    halo_status st = describe(&s, directory, ending, sizeof(ending));
    if (st == HALO_OK) st = find_labelled(&s, directory, ending);
    if (st == HALO_OK) *out = s;
    else hl_scans_free(&s);
    return st;
}
