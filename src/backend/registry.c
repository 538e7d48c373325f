/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c -- which backends there are, and the context's device.
 *
 * The builtin ones come in configure's order, then those that come as modules (modules.h), the reference backend last, because it is nobody's
 * preference. Both lists are made once per process and never change; modules are opened only when somebody asks for them or when nothing builtin
 * runs: opening a vendor's libraries takes seconds.
 */
#include "backend/backend.h"
#include "backend/builtin.h"
#include "backend/modules.h"
#include "base/context.h"
#include "base/str.h"

#include <pthread.h>

enum { MAX_BACKENDS = 8, MAX_MODULES = 4 };

/* Constant once made; entries that speak another version of the contract are left out. */
static struct {
    const halo_backend *list[MAX_BACKENDS + 1];
    size_t n, builtin; /* builtin: those before the modules */
    hl_module module[MAX_MODULES];
    halo_backend closed[MAX_MODULES]; /* in the list in place of modules that do not open */
    size_t modules;
} known;

static void accept(const halo_backend *b)
{
    if (b->abi == HALO_BACKEND_ABI && known.n < MAX_BACKENDS) known.list[known.n++] = b;
}

static void find_builtin(void)
{
#define ENTRY(name) hl_backend_##name,
    static const halo_backend_entry_fn entries[] = {HL_BACKEND_LIST(ENTRY)};
#undef ENTRY
    for (size_t i = 0; i < HL_COUNT(entries); i++)
        if (entries[i] != hl_backend_ref) accept(entries[i]());
    known.builtin = known.n;
}

static void need_builtin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_builtin);
}

static halo_status open_closed(halo_context *ctx, const halo_device_options *options, halo_device **dev)
{
    (void)options, (void)dev;
    return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "the module of this backend does not open");
}

static const halo_backend *builtin_named(const char *name)
{
    for (size_t i = 0; i < known.builtin; i++)
        if (strcmp(known.list[i]->name, name) == 0) return known.list[i];
    return NULL;
}

static void find_modules(void)
{
    need_builtin();
    known.modules = hl_modules_open(hl_modules_directory(), known.module, MAX_MODULES);
    for (size_t i = 0; i < known.modules; i++) {
        const hl_module *m = &known.module[i];
        if (builtin_named(m->name)) continue;
        known.closed[i] = (halo_backend){.abi = HALO_BACKEND_ABI, .name = m->name, .summary = "a module that does not open", .open = open_closed};
        accept(m->backend ? m->backend : &known.closed[i]);
    }
    accept(hl_backend_ref());
}

const halo_backend *const *hl_backends(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_modules);
    return known.list;
}

static halo_status unknown_backend(halo_context *ctx, const char *name)
{
    const char *names[MAX_BACKENDS];
    size_t n = 0;
    hl_str list = {0};
    for (const halo_backend *const *b = hl_backends(); *b; b++) {
        hl_str_addf(&list, "%s%s", n ? ", " : "", (*b)->name);
        names[n++] = (*b)->name;
    }
    const char *near = hl_nearest(name, names, n);
    halo_status st = near ? hl_fail(ctx, HALO_ERR_USAGE, "unknown backend '%s', did you mean '%s'?", name, near)
                          : hl_fail(ctx, HALO_ERR_USAGE, "unknown backend '%s'; this build has %s", name,
                                    list.s ? list.s : "none");
    hl_str_free(&list);
    return st;
}

/* The reason for a backend that stands for a module which does not open; NULL for all others. */
static const char *closed_because(const halo_backend *b)
{
    for (size_t i = 0; i < known.modules; i++)
        if (b == &known.closed[i]) return known.module[i].why;
    return NULL;
}

static halo_status open_backend(const halo_backend *b, halo_context *ctx, const halo_device_options *options, halo_device **dev)
{
    const char *why = closed_because(b);
    return why ? hl_fail(ctx, HALO_ERR_UNSUPPORTED, "backend '%s': %s", b->name, why) : b->open(ctx, options, dev);
}

halo_status hl_device_open(halo_context *ctx, const char *backend, const halo_device_options *options,
                           halo_device **dev)
{
    need_builtin();
    const halo_backend *builtin = strcmp(backend, "ref") == 0 ? hl_backend_ref() : builtin_named(backend);
    if (builtin) return builtin->open(ctx, options, dev);
    for (const halo_backend *const *b = hl_backends(); *b; b++)
        if (strcmp((*b)->name, backend) == 0) return open_backend(*b, ctx, options, dev);
    return unknown_backend(ctx, backend);
}

/* The first that this machine can run. One that is asked for something (an instruction set) and cannot do it is an error, not a reason to take another;
 * double precision is what the reference backend is for. */
static halo_status open_any(halo_context *ctx, const halo_device_options *options, halo_device **dev)
{
    halo_status st = HALO_ERR_UNSUPPORTED;
    if (options->compute == HALO_F64) return hl_device_open(ctx, "ref", options, dev);
    need_builtin();
    for (size_t i = 0; i < known.builtin; i++) {
        st = known.list[i]->open(ctx, options, dev);
        if (st != HALO_ERR_UNSUPPORTED || options->isa) return st;
    }
    for (const halo_backend *const *b = hl_backends() + known.builtin; *b; b++) {
        st = open_backend(*b, ctx, options, dev);
        if (st == HALO_OK && b != hl_backends() && *b == hl_backend_ref())
            HL_WARN(ctx, "no other backend runs here: computing with 'ref', which is there to be right, not fast");
        if (st != HALO_ERR_UNSUPPORTED || options->isa) return st;
    }
    return st;
}

halo_status hl_context_device(halo_context *ctx, halo_device **dev)
{
    if (!ctx->device) {
        halo_device_options options = {.threads = ctx->threads, .isa = ctx->isa[0] ? ctx->isa : NULL, .compute = ctx->compute, .winograd = ctx->winograd};
        options.tf32 = ctx->tf32;
        options.any_order = ctx->any_order;
        HL_TRY(ctx->backend[0] ? hl_device_open(ctx, ctx->backend, &options, &ctx->device)
                               : open_any(ctx, &options, &ctx->device));
    }
    *dev = ctx->device;
    return HALO_OK;
}
