/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c -- which backends there are, and the context's device.
 *
 * The list is made once per process and never changes: the builtin ones in configure's order, the reference backend last, because it is nobody's
 * preference. A backend that comes as a module (a shared object with the one symbol halo_backend_entry) joins in make_list, through the same
 * `accept`.
 */
#include "backend/backend.h"
#include "backend/builtin.h"
#include "base/context.h"
#include "base/str.h"

#include <pthread.h>

enum { MAX_BACKENDS = 8 };

/* Constant once made; entries that speak another version of the contract are left out. */
static struct {
    const halo_backend *list[MAX_BACKENDS + 1];
    size_t n;
} known;

static void accept(halo_backend_entry_fn entry)
{
    const halo_backend *b = entry();
    if (b->abi == HALO_BACKEND_ABI && known.n < MAX_BACKENDS) known.list[known.n++] = b;
}

static void make_list(void)
{
#define ENTRY(name) hl_backend_##name,
    static const halo_backend_entry_fn entries[] = {HL_BACKEND_LIST(ENTRY)};
#undef ENTRY
    for (size_t i = 0; i < HL_COUNT(entries); i++)
        if (entries[i] != hl_backend_ref) accept(entries[i]);
    accept(hl_backend_ref);
}

const halo_backend *const *hl_backends(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_list);
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

halo_status hl_device_open(halo_context *ctx, const char *backend, const halo_device_options *options,
                           halo_device **dev)
{
    for (const halo_backend *const *b = hl_backends(); *b; b++)
        if (strcmp((*b)->name, backend) == 0) return (*b)->open(ctx, options, dev);
    return unknown_backend(ctx, backend);
}

/* The first that this machine can run. One that is asked for something (an instruction set) and cannot do it is an error, not a reason to take another;
 * double precision is what the reference backend is for. */
static halo_status open_any(halo_context *ctx, const halo_device_options *options, halo_device **dev)
{
    halo_status st = HALO_ERR_UNSUPPORTED;
    if (options->f64) return hl_device_open(ctx, "ref", options, dev);
    for (const halo_backend *const *b = hl_backends(); *b; b++) {
        st = (*b)->open(ctx, options, dev);
        if (st == HALO_OK && b != hl_backends() && strcmp((*b)->name, "ref") == 0)
            HL_WARN(ctx, "no other backend runs here: computing with 'ref', which is there to be right, not fast");
        if (st != HALO_ERR_UNSUPPORTED || options->isa) return st;
    }
    return st;
}

halo_status hl_context_device(halo_context *ctx, halo_device **dev)
{
    if (!ctx->device) {
        halo_device_options options = {.threads = ctx->threads, .isa = ctx->isa[0] ? ctx->isa : NULL, .f64 = ctx->f64, .winograd = ctx->winograd};
        HL_TRY(ctx->backend[0] ? hl_device_open(ctx, ctx->backend, &options, &ctx->device)
                               : open_any(ctx, &options, &ctx->device));
    }
    *dev = ctx->device;
    return HALO_OK;
}
