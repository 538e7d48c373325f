/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h -- measured choices of all of a user's runs: a directory with a file for each device together with its libraries, this version of halo and this
 * processor, so that another run on such a machine measures nothing anew. Losing it costs time alone, so nothing about it ever fails a run.
 */
#ifndef HL_CACHE_H
#define HL_CACHE_H

#include "backend/backend.h"
#include "cost/kept.h"

/* Where it is: `said` ("" or NULL: not said), else $HALO_CACHE, else $XDG_CACHE_HOME/halo, else $HOME/.cache/halo. *dir is NULL where none of these is, or it
 * says "no"; freed by the caller. */
halo_status hl_cache_place(halo_context *ctx, const char *said, char **dir);
/* Makes the directory where it is not there. Where nothing can be written into it, one line says so; what is in it can still be read. */
void hl_cache_make(halo_context *ctx, const char *dir);

/* The device's file in `dir`; freed by the caller. */
halo_status hl_cache_file(halo_device *dev, const char *dir, char **path);
/* What is kept in that file, as far as it can be read; a damaged one is as good as none: one warning names it. */
void hl_cache_read(halo_device *dev, const char *path, hl_kept *kept);
/* Adds what is in `kept` to what the file holds by now. A reader sees the file as it was or as it is, and of several writers at once each a whole one: what
 * the first of two has added in between is lost, and measured again some time. */
void hl_cache_write(halo_device *dev, const char *path, const hl_kept *kept);

#endif
