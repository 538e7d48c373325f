/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scans.h -- medical images and their masks, found in directories and packed into one file of halo's own layout: `halo convert`.
 *
 * A case is one or more images of the same extents (its channels) and perhaps a mask of class numbers. Not collective.
 */
#ifndef HL_IO_SCANS_H
#define HL_IO_SCANS_H

#include "io/io.h"

typedef struct hl_scan_case {
    char *id;
    char **image; /* [channels] */
    char *mask;   /* NULL: none */
} hl_scan_case;

typedef struct hl_scan_label {
    char name[64];
    double value;
} hl_scan_label;

typedef struct hl_scans {
    halo_context *ctx;
    hl_scan_case *item; /* [count] */
    int64_t count;
    size_t room;
    int channels;
    hl_scan_label *label; /* [labels] what masks may hold; labels 0: any whole number from 0 on */
    size_t labels, label_room;
    double ignore;        /* the label that counts for nothing, -1: none */
} hl_scans;

/* One image per case, or CASE_0000, CASE_0001 ... where there is a mask for each CASE; masks NULL: none. */
halo_status hl_scans_find(halo_context *ctx, const char *images, const char *masks, hl_scans *scans);
/* A data set as nnU-Net has it: dataset.json, imagesTr/CASE_0000.nii.gz ..., labelsTr/CASE.nii.gz. */
halo_status hl_scans_find_nnunet(halo_context *ctx, const char *directory, hl_scans *scans);
void hl_scans_free(hl_scans *scans);
/* How many of these files, sorted by name, are the channels of the first case: their names end in _0000, _0001 ... and else are one. 1: it is an image for itself. */
int hl_scans_channels(char *const *path, int64_t count);

typedef struct hl_scan_packing {
    double spacing[3]; /* D H W, mm, to which all are resampled; 0: as it is */
    int64_t size[3];   /* D H W to which all are cut or padded about their middles; 0: all must have the same */
    double window[2];  /* clipped to these, which become 0 and 1; equal: values stay */
    int level;         /* of deflate, 0 to 9 */
} hl_scan_packing;

typedef struct hl_scans_packed {
    int64_t cases, ext[4]; /* C D H W */
    halo_dtype type;       /* of x */
    int64_t classes;       /* one more than the largest class met; 0: no masks */
} hl_scans_packed;

/*
 * x [case, C, D, H, W] in RAS, of the images' own type where all have one of at most 32 bits and nothing is changed, else float32; y [case, 1, D, H, W]; /id [case]. Images are interpolated
 * linearly, masks take the nearest voxel; padding is the least value of its image, and class 0. The file appears whole or not at all.
 */
halo_status hl_scans_pack(const hl_scans *scans, const hl_scan_packing *options, const char *path, hl_scans_packed *result);

#endif
