/* SPDX-License-Identifier: Apache-2.0 */
/* making.h -- a run of universes.c: what is to be made, and where. Inside synth. */
#ifndef HL_SYNTH_MAKING_H
#define HL_SYNTH_MAKING_H

#include "synth/universes.h"

enum { HL_PARTS = 3 };

typedef struct hl_making {
    halo_context *ctx;
    const hl_universes_settings *settings;
    const hl_universes_hooks *hooks;
    hl_simulation_options simulation;
    hl_prior prior;
    hl_prior_table table;
    int64_t parts[HL_PARTS]; /* universes of train, val, test */
    bool box_scaled;
    bool together; /* all ranks make each universe, not each rank its own */
    int jobs;
    int lock; /* of the directory; -1: none */
    double begin;
    hl_universes_progress progress;
    halo_status status; /* the first failure; ends the others */
} hl_making;

typedef struct hl_task {
    int part;
    int64_t index;
    uint64_t number;
} hl_task;

/* Resolves the settings. The caller frees table.value, also after a failure. */
halo_status hl_making_prepare(halo_context *ctx, const hl_universes_settings *settings, hl_making *m);

/* "train", "val", "test", and whether they have directories of their own. */
const char *hl_making_part(int part);
bool hl_making_has_parts(const hl_making *m);

hl_task hl_making_task(const hl_making *m, int64_t i);
/* Its file below the directory. */
void hl_making_file(const hl_making *m, hl_task t, char *out, size_t size);
hl_draw hl_making_draw(const hl_making *m, hl_task t);
/* Side of its box, Mpc/h. */
double hl_making_box(const hl_making *m, const hl_draw *d);

/* Makes the directory and its parts, or refuses one that was made with other settings or holds universes that this run does not make; writes the manifest.
 * For one rank. */
halo_status hl_making_claim(hl_making *m);

/* How the settings of an earlier run are read so that they can be compared: NULL: as they stand in the file. */
typedef halo_status (*hl_making_read)(halo_context *ctx, const char *path, hl_str *settings);

/*
 * Makes a generator's directory, where `file` holds the settings that must not change between runs into it, in the words of a file: only equal ones write to it again. HALO_ERR_USAGE names the first line
 * that differs, or the process that is making it. It is this one's until *lock, which is -1 after a failure, is closed. What killed runs left in it is removed. For one rank, the lock until all ranks are
 * done.
 */
halo_status hl_making_take_directory(halo_context *ctx, const char *directory, const char *file, const hl_str *settings, hl_making_read read, int *lock);
void hl_making_leave_directory(int lock);

#endif
