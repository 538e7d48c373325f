/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cbed.h -- convergent-beam electron diffraction of crystals, and the potential that made it: `halo synth cbed`.
 *
 * A sample is x [scan, H, W], the diffraction pattern at each position of a scan (row by row; pixel (H/2, W/2) is the beam), and y [1, H, W], the projected potential around the middle of the scan. Lengths are A where nothing
 * else is said. A sample is a function of (settings, part, number) alone, whatever else is made and by however many ranks and threads.
 */
#ifndef HL_SYNTH_CBED_H
#define HL_SYNTH_CBED_H

#include "base/config.h"
#include "synth/cbed/crystal.h"
#include "synth/cbed/optics.h"
#include "synth/cbed/potential.h"

typedef struct hl_cbed_settings {
    int64_t count, validation, test; /* crystals */
    char out[HL_TEXT_MAX];
    int64_t seed;
    hl_words crystals;       /* files; none: prototypes.h */
    hl_words zones;          /* directions that may lie in the beam, "011", "1-10"; none: any direction */
    double spin, tilt;       /* the most: degrees around the beam, mrad off it */
    double strain;           /* lattice parameters are drawn within this part */
    double b;                /* Debye-Waller B of sites that have none, A^2 */
    char thickness[HL_TEXT_MAX]; /* LO:HI */
    int64_t size, scan;      /* pixels of patterns and of the image a side, positions a side */
    double step;
    double kv, aperture, defocus, cs; /* kV, mrad, A, mm */
    double box, slice;
    int64_t grid;            /* of the box */
    double pixel, blur;      /* of the image; pixel -1: as the shadow's */
    int reference;           /* mean | vacuum */
    hl_words dose;           /* electrons a pattern, one sample each; none: no noise */
    int64_t per_file, compress, threads;
} hl_cbed_settings;

hl_keys hl_cbed_keys(void);

/* The settings resolved. */
typedef struct hl_cbed {
    halo_context *ctx;
    const hl_cbed_settings *s;
    double thickness[2];
    double zone[HL_WORDS_MAX][3];
    int zones, doses, threads;
    double dose[HL_WORDS_MAX];
    double pixel;
    hl_lens lens;
    hl_stop stop;          /* asked within crystals; all 0: never */
    hl_crystal *crystal;   /* owned; those of training first, then of validation, then of the test */
    int64_t crystals, first[4]; /* of each part, and the end */
} hl_cbed;

enum { HL_CBED_TRAIN = 0, HL_CBED_VALIDATION, HL_CBED_TEST, HL_CBED_PARTS };

/* HALO_ERR_USAGE where settings make no sense; also errors of the files of crystals. Close also after a failure. */
halo_status hl_cbed_open(halo_context *ctx, const hl_cbed_settings *settings, hl_cbed *cbed);
void hl_cbed_close(hl_cbed *cbed);

/* One crystal as it lies in the beam. */
typedef struct hl_specimen {
    const hl_crystal *crystal;
    double cell[3][3]; /* strained */
    double zone[3], spin, tilt[2], turn[3][3], origin[3], thickness;
} hl_specimen;

void hl_cbed_draw(const hl_cbed *cbed, int part, int64_t number, hl_specimen *specimen);
halo_status hl_cbed_potential(const hl_cbed *cbed, const hl_specimen *specimen, hl_potential **potential);
/* Patterns [scan scan, size, size]: the part of the beam in each pixel, times size^2, so that a beam spread evenly over the detector is 1 everywhere. HALO_ERR_STOPPED, without a message, when stopped, as of hl_cbed_potential. */
halo_status hl_cbed_patterns(const hl_cbed *cbed, const hl_potential *potential, float *patterns);
/* Electrons counted when `dose` of them fall on the crystal at each position; number: of the crystal, index: of the dose. HALO_ERR_USAGE where a pixel counts more than 65535. */
halo_status hl_cbed_count(const hl_cbed *cbed, int part, int64_t number, int index, const float *patterns, uint16_t *counts);
/* A number with the Poisson distribution of this mean, from the numbers that (seed, stream, counter, ...) begin. */
int64_t hl_poisson(double mean, uint64_t seed, uint64_t counter0, uint64_t counter1);

typedef struct hl_cbed_hooks {
    void *user;
    void (*progress)(void *user, int64_t done, int64_t total, double seconds); /* of this rank's crystals; NULL: none */
    bool (*stop)(void *user);                                                  /* NULL: never */
} hl_cbed_hooks;

typedef struct hl_cbed_result { int64_t crystals, samples, skipped, files; double seconds; } hl_cbed_result; /* skipped: crystals of files that were there */

/*
 * Makes what is missing below the directory: train/cbed-00000.h5 ..., val/, test/, and crystals.csv. Files appear whole or not at all; a directory made with other settings is refused. Each rank makes its share of the files.
 * HALO_ERR_STOPPED when stopped. ctx must not be NULL. Collective.
 */
halo_status hl_cbeds_make(halo_context *ctx, const hl_cbed_settings *settings, const hl_cbed_hooks *hooks, hl_cbed_result *result);

#endif
