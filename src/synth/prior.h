/* SPDX-License-Identifier: Apache-2.0 */
/* prior.h -- which cosmological parameters vary, over what ranges, and how they are drawn. Pure functions
 * apart from the table. */
#ifndef HL_SYNTH_PRIOR_H
#define HL_SYNTH_PRIOR_H

#include "base/base.h"
#include "synth/cosmology.h"

enum { HL_PRIOR_MAX = 4 };

typedef enum hl_prior_set { HL_PRIOR_SC18 = 0, HL_PRIOR_2019 } hl_prior_set;

typedef struct hl_prior_parameter {
    const char *name; /* as in the published files */
    size_t offset;    /* in hl_cosmology */
    double factor;    /* published unit -> that of hl_cosmology */
    double low, high;
} hl_prior_parameter;

typedef struct hl_prior {
    int n;
    hl_prior_parameter parameter[HL_PRIOR_MAX];
    hl_cosmology fixed; /* what does not vary */
} hl_prior;

/* The published sets: Omega_m, sigma_8, N_spec; hubble adds H_0. */
hl_prior hl_prior_published(hl_prior_set set, bool hubble);

typedef struct hl_draw {
    double unit[HL_PRIOR_MAX]; /* -1 at low, 1 at high */
    double physical[HL_PRIOR_MAX];
    hl_cosmology cosmology;
} hl_draw;

/* The universe with these parameters in published units. */
hl_draw hl_prior_at(const hl_prior *prior, const double *physical);

/* Universe `universe` of `seed`, uniform and independent. */
hl_draw hl_prior_uniform(const hl_prior *prior, uint64_t seed, uint64_t universe);

/* Sample i of n of a Latin hypercube: in each parameter exactly one of the n samples falls in each n-th of
 * the range. `key` tells several hypercubes of one seed apart. */
hl_draw hl_prior_latin(const hl_prior *prior, uint64_t seed, uint64_t key, int64_t i, int64_t n);

/* A table of parameters: one row per universe. */
typedef struct hl_prior_table {
    int64_t rows;
    double *value; /* [rows, prior.n] published units */
} hl_prior_table;

/* Reads a text file: a heading of names separated by commas or blanks, then numbers. Every parameter of the
 * prior must have a column; other columns are an error unless they are 'file', 'seed', 'index' or 'box'. The
 * caller frees table->value. */
halo_status hl_prior_read_table(halo_context *ctx, const hl_prior *prior, const char *path,
                                hl_prior_table *table);

#endif
