/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phantom.h -- CT-like volumes made of ellipsoids, of which every voxel's class is known: background 0, organ 1, lesion 2.
 *
 * Lengths are millimetres from the middle of the volume, axes are D H W; values are Hounsfield units. A phantom is a function of (settings, number) alone.
 */
#ifndef HL_SYNTH_PHANTOM_H
#define HL_SYNTH_PHANTOM_H

#include "base/config.h"

typedef struct hl_phantom_settings {
    int64_t count, validation, test;
    char out[HL_TEXT_MAX];
    int format; /* hdf5 | nifti */
    int64_t seed;
    int64_t size[3];           /* voxels D H W */
    double vary;               /* extents are drawn within this part of `size` */
    double spacing, thickness; /* of H and W, and of D; thickness -1: as spacing */
    int64_t lesions;           /* most of them; each phantom has 0 to so many */
    double least, most;        /* mean radius of a lesion */
    double contrast, noise;    /* organ over lesion; deviation */
} hl_phantom_settings;

hl_keys hl_phantom_keys(void);

typedef struct hl_ellipsoid {
    double centre[3], radius[3];
    double axis[3][3]; /* unit vectors along the radii */
    double value;
    int label;
} hl_ellipsoid;

enum { HL_PHANTOM_SHAPES = 64 };

typedef struct hl_phantom {
    int64_t ext[3];
    double spacing[3];
    double outside; /* value where no shape is */
    int shapes;     /* of several that cover a point the last one counts; lesions come last, lie wholly in the organ, and never overlap */
    hl_ellipsoid shape[HL_PHANTOM_SHAPES];
    double noise;
    uint64_t seed, number;
} hl_phantom;

/* Parts: 0 training, 1 validation, 2 test; numbers in them from 0. */
void hl_phantom_draw(const hl_phantom_settings *settings, int part, int64_t number, hl_phantom *phantom);
/* value [D H W], rounded to whole units, and label [D H W], the class of the voxel's middle; either may be NULL. */
void hl_phantom_render(const hl_phantom *phantom, int16_t *value, uint8_t *label);
/* Volume of an ellipsoid, mm^3. */
double hl_ellipsoid_volume(const hl_ellipsoid *e);

/* HALO_ERR_USAGE where settings make no sense. */
halo_status hl_phantoms_check(halo_context *ctx, const hl_phantom_settings *settings);
/* Makes what the settings ask for; phantoms.yaml holds them, a directory made with others is refused. `stop`, which may be NULL, is asked between phantoms: HALO_ERR_STOPPED when it says so. Not collective. */
halo_status hl_phantoms_make(halo_context *ctx, const hl_phantom_settings *settings, bool (*stop)(void *user), void *user);

#endif
