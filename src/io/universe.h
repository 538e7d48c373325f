/* SPDX-License-Identifier: Apache-2.0 */
/*
 * universe.h -- one CosmoUniverse file: `full` [D, H, W, C] with a channel per redshift, `unitPar` [T] in
 * -1..1, `physPar` [T], `namePar` [T], `redshifts` [C]. Root attributes (the notes) say how it was made, and
 * unitPar's attributes `low` and `high` what -1 and +1 stand for.
 */
#ifndef HL_IO_UNIVERSE_H
#define HL_IO_UNIVERSE_H

#include "base/base.h"

enum { HL_UNIVERSE_PARAMETERS_MAX = 16, HL_UNIVERSE_CHANNELS_MAX = 64, HL_UNIVERSE_NAME_MAX = 32 };

typedef struct hl_universe_parameter {
    char name[HL_UNIVERSE_NAME_MAX];
    double physical, unit, low, high; /* NaN where the file does not say */
} hl_universe_parameter;

typedef struct hl_universe_note {
    const char *name;
    double number;
    const char *text; /* not NULL: a text instead of a number */
} hl_universe_note;

typedef struct hl_universe_file {
    int64_t ext[4]; /* D H W C */
    bool integer;   /* int16 in the file (values beyond are clipped), otherwise float32 */
    float *full;    /* [D, H, W, C]; counts of particles are exact in float up to 2^24 */
    int parameters;
    hl_universe_parameter parameter[HL_UNIVERSE_PARAMETERS_MAX];
    int redshifts; /* = C, or 0 where the file does not say */
    double redshift[HL_UNIVERSE_CHANNELS_MAX];
    int notes;
    const hl_universe_note *note; /* only written */
    /* Only read, from notes of these names; NaN or "" where the file does not say. */
    double box;           /* Mpc/h */
    double particles;     /* per side */
    double omega_b, h;    /* what the parameters may not hold */
    bool rsd, no_wiggles; /* false where the file does not say */
    char assignment[8];   /* ngp, cic, tsc */
} hl_universe_file;

/* Writes the file under a temporary name, fsyncs and renames. Chunks of up to 64^3 cells, shuffled and
 * deflated. Not collective. */
halo_status hl_universe_write(halo_context *ctx, const char *path, const hl_universe_file *u);

/* Reads one into *u, whose `full` the caller frees with free(). Everything but full and unitPar may be
 * absent. Not collective. */
halo_status hl_universe_read(halo_context *ctx, const char *path, hl_universe_file *u);

/* True if the file at `path` is an HDF5 file with `unitPar` and `full` of these extents (NULL: any four): a
 * universe that need not be made again. */
bool hl_universe_is_complete(const char *path, const int64_t ext[4]);

#endif
