/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h -- nothing is lost: a file is written under a temporary name in the same directory, fsynced, renamed, and the directory fsynced.
 */
#ifndef HL_FILE_H
#define HL_FILE_H

#include "base/base.h"

/* mkdir -p; an existing directory is fine. */
halo_status hl_make_dirs(halo_context *ctx, const char *path);

/* ".NAME.HOST-PID.tmp" beside `path`, HOST a hash of 8 hexadecimal digits; *out is freed by the caller. */
halo_status hl_temporary_name(halo_context *ctx, const char *path, char **out);
/* Removes such files of this host's processes that are no more, in a directory and `depth` levels of those below it. */
void hl_remove_stale(const char *directory, int depth);

/* fsync temporary, rename to path, fsync the directory. On failure the temporary file is removed. */
halo_status hl_file_commit(halo_context *ctx, const char *temporary, const char *path);

/* Writes a whole file that way. */
halo_status hl_file_write(halo_context *ctx, const char *path, const void *data, size_t bytes);

/* Reads a whole file, NUL appended; larger than `most` bytes is an error. *data is freed by the caller. */
halo_status hl_file_read(halo_context *ctx, const char *path, size_t most, char **data, size_t *bytes);

/* "a" + "/" + "b"; *out is freed by the caller. */
halo_status hl_path_join(halo_context *ctx, const char *a, const char *b, char **out);

/* One process at a time in a directory: an exclusive lock on DIR/.lock, which goes with *lock, to be closed, or with the process, however that ends. HALO_ERR_USAGE names the one that has it. Where the
 * file system has no locks, nothing is locked. *lock is -1 after a failure. */
halo_status hl_directory_lock(halo_context *ctx, const char *directory, int *lock);

bool hl_file_exists(const char *path);
/* A pipe, terminal or device: something that a rename must not replace. */
bool hl_is_special(const char *path);
bool hl_is_directory(const char *path);

#endif
