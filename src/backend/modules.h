/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules.h -- backends that come as modules: shared objects with the one symbol halo_backend_entry, opened at run time, so that a program with
 * one for a vendor's devices also starts where that vendor's libraries are not installed.
 */
#ifndef HL_MODULES_H
#define HL_MODULES_H

#include <halo/backend.h>

#include <stddef.h>

/* A module, or the reason why it could not be opened; a name either way. */
typedef struct hl_module {
    const halo_backend *backend; /* NULL: not opened */
    char name[16];
    char why[384]; /* one sentence */
} hl_module;

/* All files halo_NAME.so of a directory, in the order of their names. Returns how many of at most `most` were written. They stay open. */
size_t hl_modules_open(const char *directory, hl_module *list, size_t most);

/* Where modules are installed; HALO_MODULES in the environment names another directory. */
const char *hl_modules_directory(void);

#endif
