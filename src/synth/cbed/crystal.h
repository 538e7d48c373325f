/* SPDX-License-Identifier: Apache-2.0 */
/* crystal.h -- crystals: what repeats, how it lies in the beam, and the atoms of the part that the beam meets. Lengths are A; vectors are h, w across the beam and z along it. */
#ifndef HL_SYNTH_CBED_CRYSTAL_H
#define HL_SYNTH_CBED_CRYSTAL_H

#include "base/base.h"

/* Whether to stop; asked by several threads. ask may be NULL. */
typedef struct hl_stop { bool (*ask)(void *user); void *user; } hl_stop;
static inline bool hl_stop_asked(const hl_stop *stop) { return stop && stop->ask && stop->ask(stop->user); }

typedef struct hl_site {
    int z;             /* atomic number */
    double at[3];      /* in parts of the cell's edges */
    double b;          /* of the Debye-Waller factor exp(-b q^2 / 4), A^2 */
    double occupancy;  /* part of the cells in which an atom is there */
} hl_site;

typedef struct hl_crystal {
    char name[64];
    double cell[3][3]; /* edges a, b, c */
    int64_t sites;
    hl_site *site;     /* owned */
    size_t room;
} hl_crystal;

void hl_crystal_free(hl_crystal *crystal);
halo_status hl_crystal_add(halo_context *ctx, hl_crystal *crystal, const hl_site *site);

/* Edges of a cell of these lengths and angles (alpha, beta, gamma in degrees): a along the first axis, b in the plane of the first two. False where there is no such cell, or none that a crystal has: edges below 0.5 A or above 10^4, or nearly in a plane. */
bool hl_cell_set(const double length[3], const double angle[3], double (*cell)[3]);
double hl_cell_volume(const double (*cell)[3]);

/*
 * The turn that takes the direction zone[0] a + zone[1] b + zone[2] c to the beam, and then turns by `spin` around it and tilts by `tilt` (rad, around h and w):
 * x' = turn x. Before the spin the edge a (where it lies in the beam: b) has no part along w.
 */
void hl_crystal_turn(const double (*cell)[3], const double zone[3], double spin, const double tilt[2], double (*turn)[3]);

typedef struct hl_atom {
    int z;
    double b, weight; /* weight: the site's occupancy */
    double at[3];
} hl_atom;

/* The atoms in [0, box) x [0, box) x [0, thickness) of the crystal, turned and with its cell's corner at `origin`; *atoms is freed by the caller. */
halo_status hl_crystal_cut(halo_context *ctx, const hl_crystal *crystal, const double (*turn)[3], const double origin[3], double box, double thickness, hl_atom **atoms, int64_t *n);

/*
 * Crystals of a file: CIF where a line begins with "data_" or "loop_" (hl_cif_read), else a table (crystal_table.c). Several are added to (*crystals)[*n]; freed by the caller, each with hl_crystal_free.
 */
halo_status hl_crystals_read(halo_context *ctx, const char *path, hl_crystal **crystals, int64_t *n);
halo_status hl_cif_read(halo_context *ctx, const char *path, char *text, hl_crystal **crystals, int64_t *n);
/* One more crystal, empty. */
halo_status hl_crystals_grow(halo_context *ctx, hl_crystal **crystals, int64_t *n, hl_crystal **added);

#endif
