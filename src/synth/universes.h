/* SPDX-License-Identifier: Apache-2.0 */
/* universes.h -- a directory of universes from one configuration: `halo synth universe`. */
#ifndef HL_SYNTH_UNIVERSES_H
#define HL_SYNTH_UNIVERSES_H

#include "base/config.h"
#include "synth/prior.h"
#include "synth/simulate.h"

typedef struct hl_universes_settings {
    int64_t count, validation,
        test; /* universes in out/train, out/val, out/test; all in out itself when the last two are 0 */
    char out[HL_TEXT_MAX];
    int64_t seed;
    int64_t grid, particles, mesh; /* the last two 0: as grid, as particles */
    double box;                    /* Mpc/h */
    int box_scaled;                /* auto | no | yes: int(box H_0 / 70), the rule of the 2019 set */
    int64_t steps;
    double start;
    hl_words redshifts;
    int assignment; /* ngp | cic | tsc */
    bool rsd, wiggles;
    int prior;    /* sc18 | 2019 */
    int hubble;   /* auto | no | yes: H_0 varies too */
    int sampling; /* uniform | latin */
    char table[HL_TEXT_MAX];
    int together;          /* auto | no | yes: all ranks make each universe */
    int64_t jobs, threads; /* universes at a time and threads for all of them; 0: chosen */
} hl_universes_settings;

/* The table of keys of the settings, for configuration files, the command line and help. */
hl_keys hl_universes_keys(void);

typedef struct hl_universes_progress {
    int64_t total, done, skipped; /* skipped: complete files of an earlier run; counted in done */
    double seconds;               /* since the start */
    double simulated, fft;        /* seconds in simulations and in their transforms, over all jobs */
} hl_universes_progress;

typedef struct hl_universes_hooks {
    void *user;
    void (*progress)(void *user, const hl_universes_progress *progress); /* NULL: none; one call at a time */
    bool (*stop)(void *user); /* NULL: never; asked between universes */
} hl_universes_hooks;

/* The simulation that the settings ask for, with all their threads. HALO_ERR_USAGE where they make no sense.
 * */
halo_status hl_universes_simulation(halo_context *ctx, const hl_universes_settings *settings,
                                    hl_simulation_options *options);

/* What a run will take. */
typedef struct hl_universes_estimate {
    int64_t bytes;  /* of memory, all jobs together */
    double seconds; /* per universe and job, from a small run made for it */
    int jobs, threads;
    int64_t file_bytes; /* upper bound of a file, uncompressed */
} hl_universes_estimate;

halo_status hl_universes_estimate_run(halo_context *ctx, const hl_universes_settings *settings,
                                      hl_universes_estimate *estimate);

/*
 * Makes what is missing of the directory. Files appear complete or not at all. A directory made with other
 * settings is refused, naming the first that differs. On several ranks each makes its share of the universes,
 * or all make each together. HALO_ERR_STOPPED when stopped. ctx must not be NULL. Collective.
 */
halo_status hl_universes_make(halo_context *ctx, const hl_universes_settings *settings,
                              const hl_universes_hooks *hooks, hl_universes_progress *result);

#endif
