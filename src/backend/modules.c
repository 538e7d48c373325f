/* SPDX-License-Identifier: Apache-2.0 */
/* modules.c -- see modules.h. A module that cannot be opened is remembered with the loader's own words: they name the library that is missing. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "backend/modules.h"
#include "base/base.h"
#include "base/str.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>

static const char prefix[] = "halo_", suffix[] = ".so";

const char *hl_modules_directory(void)
{
    extern const char hl_installed_modules[]; /* written by make */
    const char *said = getenv("HALO_MODULES");
    return said && *said ? said : hl_installed_modules;
}

/* halo_NAME.so: the length of NAME; 0 for other files. */
static size_t name_length(const char *file)
{
    size_t n = strlen(file), around = strlen(prefix) + strlen(suffix);
    if (n <= around || n - around >= sizeof(((hl_module *)0)->name)) return 0;
    return strncmp(file, prefix, strlen(prefix)) == 0 && strcmp(file + n - strlen(suffix), suffix) == 0 ? n - around : 0;
}

static int is_module(const struct dirent *e) { return name_length(e->d_name) > 0; }

static void open_module(const char *path, hl_module *m)
{
    halo_backend_entry_fn entry;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = handle ? dlsym(handle, "halo_backend_entry") : NULL;
    if (!symbol) {
        const char *said = dlerror();
        snprintf(m->why, sizeof(m->why), "module '%s' does not open: %s", path, said ? said : "it has no halo_backend_entry");
        return;
    }
    memcpy(&entry, &symbol, sizeof(entry)); /* ISO C knows no cast from object to function */
    const halo_backend *b = entry();
    if (b->abi != HALO_BACKEND_ABI)
        snprintf(m->why, sizeof(m->why), "module '%s' is of another release: it speaks version %d of the contract, this halo %d", path, b->abi, HALO_BACKEND_ABI);
    else if (strcmp(b->name, m->name) != 0)
        snprintf(m->why, sizeof(m->why), "module '%s' holds backend '%.15s'", path, b->name);
    else
        m->backend = b;
}

size_t hl_modules_open(const char *directory, hl_module *list, size_t most)
{
    struct dirent **files;
    size_t n = 0;
    int found = scandir(directory, &files, is_module, alphasort);
    for (int i = 0; i < found; i++) {
        hl_str path = {0};
        if (n < most) {
            list[n] = (hl_module){.backend = NULL};
            memcpy(list[n].name, files[i]->d_name + strlen(prefix), name_length(files[i]->d_name));
            hl_str_addf(&path, "%s/%s", directory, files[i]->d_name);
            if (path.s) open_module(path.s, &list[n++]);
        }
        hl_str_free(&path);
        free(files[i]);
    }
    if (found >= 0) free(files);
    return n;
}
