/* SPDX-License-Identifier: Apache-2.0 */
/* context.c -- making a context. */
#include "base/context.h"
#include "base/topology.h"
#include "base/trace.h"
#include "halo/backend.h"

static halo_status copy_name(halo_context *ctx, const char *what, const char *name, char *out, size_t size)
{
    if (!name) return HALO_OK;
    if (strlen(name) >= size) return hl_fail(NULL, HALO_ERR_USAGE, "unknown %s '%s'", what, name);
    memcpy(out, name, strlen(name) + 1);
    (void)ctx;
    return HALO_OK;
}

halo_status halo_context_create(const halo_context_options *options, halo_context **out)
{
    halo_context_options defaults = HALO_CONTEXT_OPTIONS_INIT;
    HL_TRY(hl_not_null(NULL, out, "ctx"));
    if (!options) options = &defaults;
    if (options->size != sizeof(*options))
        return hl_fail(NULL, HALO_ERR_USAGE, "halo_context_options has size %zu, this library expects %zu", options->size,
                       sizeof(*options));
    if (options->threads < 0) return hl_fail(NULL, HALO_ERR_USAGE, "threads is %d, must be 0 or more", options->threads);
    if (options->compute > HALO_BF16)
        return hl_fail(NULL, HALO_ERR_USAGE, "halo_context_options: 'compute' is %d, must be HALO_F32, HALO_F16, HALO_BF16 or HALO_F64", (int)options->compute);
    halo_context *ctx;
    HL_TRY(hl_calloc(NULL, 1, sizeof(*ctx), "a context", &ctx));
    ctx->log_level = options->log_level;
    ctx->log = options->log;
    ctx->log_user = options->log_user;
    ctx->seed = options->seed;
    ctx->threads = options->threads > 0 ? options->threads : hl_default_threads();
    ctx->ranks = 1;
    ctx->compute = options->compute;
    halo_status st = HALO_OK;
    HL_GOTO(st, copy_name(ctx, "backend", options->backend, ctx->backend, sizeof(ctx->backend)), free_ctx);
    HL_GOTO(st, copy_name(ctx, "isa", options->isa, ctx->isa, sizeof(ctx->isa)), free_ctx);
    if (pthread_mutex_init(&ctx->lock, NULL) != 0) {
        st = hl_fail(NULL, HALO_ERR_SYSTEM, "cannot make a mutex");
        goto free_ctx;
    }
    *out = ctx;
    return HALO_OK;
free_ctx:
    free(ctx);
    return st;
}

void halo_context_destroy(halo_context *ctx)
{
    if (!ctx) return;
    if (ctx->device) ctx->device->ops->close(ctx->device);
    if (ctx->comm && ctx->comm_destroy) ctx->comm_destroy(ctx->comm);
    hl_trace_end(ctx);
    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}
