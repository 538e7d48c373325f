/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.h -- measured choices as they are kept: a list in memory, and its text. A line per operation: implementation, seconds, key, separated by tabs; the first
 * line says what it is, and lines that begin with # are for people. Keys are compared as strings.
 */
#ifndef HL_KEPT_H
#define HL_KEPT_H

#include "base/str.h"

typedef struct hl_kept_choice {
    char *key;
    char impl[48];
    double seconds;
} hl_kept_choice;

typedef struct hl_kept {
    hl_kept_choice *list;
    int n;
    size_t cap;
    bool changed; /* against what was read */
} hl_kept;

halo_status hl_kept_add(halo_context *ctx, hl_kept *kept, const char *key, const char *impl, double seconds);
bool hl_kept_has(const hl_kept *kept, const char *key);

/* Adds what the text holds, which it takes apart. What is no such text, or is damaged in a line, is an error that names `path`; nothing is added then. */
halo_status hl_kept_read(halo_context *ctx, hl_kept *kept, const char *path, char *text);
/* `about`: a line for people, or NULL. out->failed where memory ran out. */
void hl_kept_write(const hl_kept *kept, const char *about, hl_str *out);
void hl_kept_free(hl_kept *kept);

#endif
