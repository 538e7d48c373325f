/* SPDX-License-Identifier: Apache-2.0 */
/* universes_keys.c -- every setting of `halo synth universe`, in one table. */
#include "synth/universes.h"

#define AT(field) offsetof(hl_universes_settings, field)

static const hl_key keys[] = {
    {"count", HL_SETTING_INT, AT(count), "100", 0, 1e9, NULL, NULL, "universes for training"},
    {"validation", HL_SETTING_INT, AT(validation), "0", 0, 1e9, NULL, NULL,
     "universes for validation, in val/"},
    {"test", HL_SETTING_INT, AT(test), "0", 0, 1e9, NULL, NULL, "universes for the test, in test/"},
    {"out", HL_SETTING_TEXT, AT(out), "universes", 0, 0, NULL, NULL,
     "directory to write; with validation or test, training is in train/"},
    {"seed", HL_SETTING_INT, AT(seed), "1", 0, 0, NULL, NULL, "root of all random numbers"},
    {"grid", HL_SETTING_INT, AT(grid), "64", 4, 16384, NULL, NULL, "cells per side of the result"},
    {"particles", HL_SETTING_INT, AT(particles), "auto", 4, 16384, NULL, "auto",
     "particles per side; auto: as grid, one per cell"},
    {"mesh", HL_SETTING_INT, AT(mesh), "auto", 4, 16384, NULL, "auto",
     "cells per side of the force; auto: as particles"},
    {"box", HL_SETTING_NUMBER, AT(box), "512", 1, 1e6, NULL, NULL, "side of the box, Mpc/h"},
    {"box_scaled", HL_SETTING_CHOICE, AT(box_scaled), "auto", 0, 0, "auto|no|yes", NULL,
     "side is int(box H_0 / 70), the rule of the 2019 set; auto: for that prior when H_0 varies"},
    {"steps", HL_SETTING_INT, AT(steps), "10", 0, 10000, NULL, NULL,
     "time steps; 0: second order perturbation theory alone"},
    {"start", HL_SETTING_NUMBER, AT(start), "9", 0.1, 1000, NULL, NULL, "redshift of the first step"},
    {"redshifts", HL_SETTING_WORDS, AT(redshifts), "[0]", 0, 0, NULL, NULL,
     "one channel each: [0, 0.5, 1.5, 3]"},
    {"assignment", HL_SETTING_CHOICE, AT(assignment), "ngp", 0, 0, "ngp|cic|tsc", NULL,
     "particles to cells; ngp gives whole counts (int16)"},
    {"rsd", HL_SETTING_BOOL, AT(rsd), "false", 0, 0, NULL, NULL,
     "redshift-space distortion along the last axis"},
    {"wiggles", HL_SETTING_BOOL, AT(wiggles), "true", 0, 0, NULL, NULL,
     "baryon wiggles in the linear spectrum"},
    {"prior", HL_SETTING_CHOICE, AT(prior), "sc18", 0, 0, "sc18|2019", NULL,
     "published ranges of the parameters"},
    {"hubble", HL_SETTING_CHOICE, AT(hubble), "auto", 0, 0, "auto|no|yes", NULL,
     "H_0 varies too; auto: for the 2019 prior"},
    {"sampling", HL_SETTING_CHOICE, AT(sampling), "uniform", 0, 0, "uniform|latin", NULL,
     "draw of the parameters: independent, or a Latin hypercube"},
    {"table", HL_SETTING_TEXT, AT(table), "none", 0, 0, NULL, "none",
     "file with a row of parameters per universe instead of a draw"},
    {"together", HL_SETTING_CHOICE, AT(together), "auto", 0, 0, "auto|no|yes", NULL,
     "all ranks make each universe in slabs; auto: above 256^3 particles or force cells"},
    {"jobs", HL_SETTING_INT, AT(jobs), "auto", 1, 4096, NULL, "auto",
     "universes at a time; auto: one per thread while they are small"},
    {"threads", HL_SETTING_INT, AT(threads), "auto", 1, 4096, NULL, "auto",
     "threads in all; auto: as many as cores"},
};

hl_keys hl_universes_keys(void)
{
    return (hl_keys){.key = keys, .n = HL_COUNT(keys), .page = "halo synth keys"};
}
