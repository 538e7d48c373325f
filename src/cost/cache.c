/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/cache.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/topology.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const size_t most_bytes = (size_t)16 << 20;

/* ----------------------------------------------------------------------------------------------------------- directory */

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* The XDG base directory specification: "If an implementation encounters a relative path in any of these variables it should consider the path invalid and ignore it." */
static const char *absolute(const char *name)
{
    const char *path = variable(name);
    return path && *path == '/' ? path : NULL;
}

halo_status hl_cache_place(halo_context *ctx, const char *said, char **dir)
{
    const char *home;
    *dir = NULL;
    if (!said || !*said) said = variable("HALO_CACHE");
    if (said) return strcmp(said, "no") == 0 ? HALO_OK : hl_strdup(ctx, said, dir);
    if ((home = absolute("XDG_CACHE_HOME"))) return hl_path_join(ctx, home, "halo", dir);
    return (home = variable("HOME")) ? hl_path_join(ctx, home, ".cache/halo", dir) : HALO_OK;
}

void hl_cache_make(halo_context *ctx, const char *dir)
{
    if (hl_make_dirs(NULL, dir) != HALO_OK)
        HL_INFO(ctx, "measured choices are not kept for other runs: %s", halo_error_message(NULL));
    else if (access(dir, W_OK | X_OK) != 0)
        HL_INFO(ctx, "measured choices are not kept for other runs: cannot write into '%s': %s", dir, strerror(errno));
}

/* ---------------------------------------------------------------------------------------------------------------- file */

/* All that a measured time depends on beside the operation's key. */
static void identity(halo_device *dev, hl_str *out)
{
    halo_device_info info = {.name = ""};
    char processor[96];
    dev->ops->describe(dev, &info);
    hl_processor_name(processor, sizeof(processor));
    hl_str_addf(out, "%s; %s; on %s; halo %s", info.name, info.details, processor, halo_version());
}

/* choices-cuda-NVIDIA-H200-sm_90-0123456789abcdef.txt: the head of the identity for people, the number for all of it. */
halo_status hl_cache_file(halo_device *dev, const char *dir, char **path)
{
    hl_str text = {0}, name = {0};
    identity(dev, &text);
    hl_str_add(&name, "choices-");
    for (const char *s = text.s; s && *s && *s != ';' && name.len < 80; s++) {
        const bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_' || *s == '.';
        if (plain || name.s[name.len - 1] != '-') hl_str_addn(&name, plain ? s : "-", 1);
    }
    hl_str_addf(&name, "-%016" PRIx64 ".txt", hl_hash(HL_HASH_START, text.s, text.len));
    halo_status st = text.failed || name.failed ? hl_fail(dev->ctx, HALO_ERR_NOMEM, "out of memory for the name of a file") : hl_path_join(dev->ctx, dir, name.s, path);
    hl_str_free(&text);
    hl_str_free(&name);
    return st;
}

/* Errors go to the thread's message: nobody but us looks there. */
static halo_status read_quietly(const char *path, hl_kept *kept)
{
    char *text;
    size_t bytes;
    if (!hl_file_exists(path)) return HALO_OK;
    HL_TRY(hl_file_read(NULL, path, most_bytes, &text, &bytes));
    halo_status st = strlen(text) == bytes ? hl_kept_read(NULL, kept, path, text) : hl_fail(NULL, HALO_ERR_FORMAT, "'%s' is not text", path);
    free(text);
    return st;
}

void hl_cache_read(halo_device *dev, const char *path, hl_kept *kept)
{
    if (read_quietly(path, kept) == HALO_OK) return;
    HL_WARN(dev->ctx, "choices measured by earlier runs are left out: %s", halo_error_message(NULL));
    kept->changed = true; /* a whole file takes its place */
}

static halo_status write_both(halo_device *dev, const char *path, const hl_kept *kept, hl_kept *all)
{
    hl_str about = {0}, text = {0};
    for (int i = 0; i < kept->n; i++)
        if (!hl_kept_has(all, kept->list[i].key)) HL_TRY(hl_kept_add(NULL, all, kept->list[i].key, kept->list[i].impl, kept->list[i].seconds));
    identity(dev, &about);
    hl_kept_write(all, about.s, &text);
    halo_status st = about.failed || text.failed ? hl_fail(NULL, HALO_ERR_NOMEM, "out of memory for '%s'", path) : hl_file_write(NULL, path, text.s, text.len);
    hl_str_free(&about);
    hl_str_free(&text);
    return st;
}

void hl_cache_write(halo_device *dev, const char *path, const hl_kept *kept)
{
    hl_kept all = {.n = 0};
    (void)read_quietly(path, &all); /* damage was told of, and ends now */
    if (write_both(dev, path, kept, &all) != HALO_OK) HL_DEBUG(dev->ctx, "measured choices are not kept for other runs: %s", halo_error_message(NULL));
    hl_kept_free(&all);
}
