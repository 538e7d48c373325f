/* SPDX-License-Identifier: Apache-2.0 */
/* log.c -- the one way in which errors and messages leave the library; a backend's module has its own copy of it. */
#include "base/context.h"

#include <stdio.h>

static _Thread_local char thread_message[1024]; /* errors before a context exists */

const char *halo_error_message(const halo_context *ctx) { return ctx ? hl_outermost(ctx)->message : thread_message; }

void hl_set_error(halo_context *ctx, const char *message)
{
    if (!ctx) {
        snprintf(thread_message, sizeof(thread_message), "%s", message);
        return;
    }
    ctx = hl_outermost(ctx);
    pthread_mutex_lock(&ctx->lock);
    snprintf(ctx->message, sizeof(ctx->message), "%s", message);
    pthread_mutex_unlock(&ctx->lock);
}

halo_status hl_fail(halo_context *ctx, halo_status status, const char *format, ...)
{
    char text[sizeof(ctx->message)];
    const halo_context *of = hl_outermost(ctx);
    va_list ap;
    int n = 0;
    if (of && of->doer == hl_thread_id()) n = snprintf(text, sizeof(text) / 2, *of->doing[0] ? "%.100s of '%.200s': " : "%.100s: ", of->doing[1], of->doing[0]);
    va_start(ap, format);
    vsnprintf(text + n, sizeof(text) - (size_t)n, format, ap);
    va_end(ap);
    hl_set_error(ctx, text);
    if (ctx) hl_log(ctx, HALO_LOG_ERROR, "%s", text);
    return status;
}

halo_status hl_not_null(halo_context *ctx, const void *argument, const char *name)
{
    return argument ? HALO_OK : hl_fail(ctx, HALO_ERR_USAGE, "'%s' must not be NULL", name);
}

bool hl_logs(const halo_context *ctx, halo_log_level level)
{
    ctx = hl_outermost(ctx);
    return ctx && ctx->log && level <= ctx->log_level;
}

void hl_context_log_level(halo_context *ctx, halo_log_level level) { ctx->log_level = level; }

void hl_log(halo_context *ctx, halo_log_level level, const char *format, ...)
{
    ctx = hl_outermost(ctx);
    if (!hl_logs(ctx, level)) return;
    char text[2048];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    pthread_mutex_lock(&ctx->lock);
    ctx->log(ctx->log_user, level, text);
    pthread_mutex_unlock(&ctx->lock);
}

void hl_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "halo: BUG: %s:%d: %s does not hold\n", file, line, what);
    abort();
}
