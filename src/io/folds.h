/* SPDX-License-Identifier: Apache-2.0 */
/* folds.h -- some samples of a source, and cross-validation: patients dealt into folds. Not collective; the same on all ranks. */
#ifndef HL_IO_FOLDS_H
#define HL_IO_FOLDS_H

#include "io/io.h"

/* The samples `sample` [n] of `all`, in that order, renumbered from 0. Owns `all` when it succeeds. */
halo_status hl_subset_open(hl_source *all, const int64_t *sample, int64_t n, const char *description, hl_source **source);

typedef struct hl_folds {
    int64_t count, use;  /* patients are dealt into `count` folds; the samples of fold `use` are held out */
    const char *patient; /* a patient is a case's name up to this text; empty: the sub-NAME of its path, else every case is one of its own, or each group of a file that has groups */
} hl_folds;

/*
 * Held out, or the others. Who is in which fold follows from the names alone: patients are put in the order of a hash of theirs, and number i goes to fold i mod count, so that folds differ by one patient at
 * most, and nobody is in two. Owns `all` when it succeeds. HALO_ERR_USAGE: fewer patients than folds, or a text that is in no name.
 */
halo_status hl_fold_open(hl_source *all, const hl_folds *folds, bool held_out, hl_source **source);

#endif
