/* SPDX-License-Identifier: Apache-2.0 */
/* files.h -- the files of a data set, and a bounded number of them open. */
#ifndef HL_IO_FILES_H
#define HL_IO_FILES_H

#include "io/volume.h"

typedef struct hl_files {
    halo_context *ctx;
    char **path; /* [count], sorted by name, or in the order of a list file */
    int64_t count;
    char **name; /* [count], hl_files_set_names; NULL: not set */
} hl_files;

/*
 * A directory: its *.hdf5 and *.h5, sorted by name; a file ending in .txt or .list: one path per line,
 * relative to its own directory, '#' comments; anything else: that file. HALO_ERR_IO when there is nothing.
 */
halo_status hl_files_find(halo_context *ctx, const char *path, hl_files *files);
/* Keeps the files first .. first + count - 1; count 0: to the end. */
void hl_files_keep(hl_files *files, int64_t first, int64_t count);
void hl_files_free(hl_files *files);
const char *hl_base_name(const char *path);
/*
 * Names of files for people and for files that are made of them: base names where these tell all apart, else so many of the last parts of all paths, '_' between them, as do. Images of one case
 * (x.nii, x.nii.gz) are told apart too, as predictions are called by cases. A path that is there twice has one name.
 */
halo_status hl_files_set_names(hl_files *files);
const char *hl_files_name(const hl_files *files, int64_t file);

/*
 * Volumes of one dataset name in many files: the most recently used stay open, so that walking a file's
 * samples does not reopen it, and walking ten thousand files does not hold ten thousand descriptors. Not
 * thread-safe: the owner locks.
 */
typedef struct hl_open_volume {
    int64_t file; /* index, -1: free */
    uint64_t used;
    hl_h5 *h5;
    hl_volume volume;
} hl_open_volume;

enum { HL_OPEN_MOST = 16 };

typedef struct hl_open_files {
    const hl_files *files;
    const char *dataset, *axes;
    hl_read_count *count; /* of what is read of them */
    int64_t cache_bytes;
    uint64_t clock;
    hl_open_volume slot[HL_OPEN_MOST];
} hl_open_files;

void hl_open_files_init(hl_open_files *o, const hl_files *files, const char *dataset, const char *axes, hl_read_count *count);
/* The dataset's rank is checked against axes ("[64, 64] int16, expected a dataset of rank 4: d h w c"). Valid
 * until the next get. */
halo_status hl_open_files_get(hl_open_files *o, int64_t file, hl_volume **volume);
void hl_open_files_close(hl_open_files *o);

#endif
