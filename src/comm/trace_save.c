/* SPDX-License-Identifier: Apache-2.0 */
/* trace_save.c -- the traces of all ranks in one file, written by rank 0, which holds one rank's text at a time. */
#include "base/clock.h"
#include "base/file.h"
#include "base/trace.h"
#include "comm/comm.h"

#include <errno.h>
#include <stdio.h>

halo_status hl_trace_start(halo_context *ctx)
{
    HL_TRY(hl_comm_barrier(ctx)); /* clocks of nodes have nothing in common: all begin about now */
    return hl_agree(ctx, hl_trace_begin(ctx, 0));
}

/* The text of rank r on rank 0; the bytes of r go to all, which is what small collectives there are can do. */
static halo_status fetch(halo_context *ctx, int r, const hl_str *mine, char **text, size_t *size)
{
    int64_t bytes = r == ctx->rank ? (int64_t)mine->len : 0;
    HL_TRY(hl_comm_broadcast(ctx, &bytes, sizeof(bytes), r));
    *size = (size_t)bytes;
    halo_status st = hl_calloc(ctx, (size_t)bytes + 1, 1, "a trace", text);
    HL_AGREE(ctx, st);
    if (r == ctx->rank) memcpy(*text, mine->s, *size);
    return hl_comm_broadcast(ctx, *text, *size, r);
}

static halo_status write_all(halo_context *ctx, const char *path, FILE *file, const hl_str *mine)
{
    halo_status st = HALO_OK;
    for (int r = 0; r < ctx->ranks && st == HALO_OK; r++) {
        char *text = NULL;
        size_t size;
        st = fetch(ctx, r, mine, &text, &size);
        if (st == HALO_OK && file && (fputs(r > 0 ? ",\n" : "", file) == EOF || fwrite(text, 1, size, file) != size))
            st = hl_fail(ctx, HALO_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
        free(text);
        st = hl_agree(ctx, st);
    }
    return st;
}

static halo_status open_file(halo_context *ctx, const char *path, char **temporary, FILE **file)
{
    if (ctx->rank != 0) return HALO_OK;
    HL_TRY(hl_temporary_name(ctx, path, temporary));
    *file = fopen(*temporary, "w");
    if (!*file) return hl_fail(ctx, HALO_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n", *file);
    return HALO_OK;
}

static halo_status try_file(halo_context *ctx, const char *path)
{
    char *temporary = NULL;
    FILE *file = NULL;
    if (ctx->rank != 0) return HALO_OK;
    if (hl_is_directory(path)) return hl_fail(ctx, HALO_ERR_IO, "cannot write '%s': %s", path, strerror(EISDIR));
    halo_status st = open_file(ctx, path, &temporary, &file);
    if (file) {
        (void)fclose(file);
        remove(temporary);
    }
    free(temporary);
    return st;
}

halo_status hl_trace_try(halo_context *ctx, const char *path) { return hl_agree(ctx, try_file(ctx, path)); }

static halo_status close_file(halo_context *ctx, const char *path, const char *temporary, FILE *file, halo_status st)
{
    if (!file) return st;
    fputs("\n]}\n", file);
    if (fclose(file) != 0 && st == HALO_OK) st = hl_fail(ctx, HALO_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (st == HALO_OK) return hl_file_commit(ctx, temporary, path);
    remove(temporary);
    return st;
}

halo_status hl_trace_save(halo_context *ctx, const char *path)
{
    hl_json j = {0};
    char *temporary = NULL;
    FILE *file = NULL;
    hl_trace_json(ctx, &j);
    halo_status st = j.out.failed ? hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: the trace's text") : open_file(ctx, path, &temporary, &file);
    st = hl_agree(ctx, st);
    if (st == HALO_OK) st = write_all(ctx, path, file, &j.out);
    st = hl_agree(ctx, close_file(ctx, path, temporary, file, st));
    if (st == HALO_OK && hl_trace_lost(ctx) > 0)
        HL_WARN(ctx, "the trace holds the last events only: %" PRId64 " earlier ones of rank %d did not fit", hl_trace_lost(ctx), ctx->rank);
    hl_trace_end(ctx);
    hl_json_free(&j);
    free(temporary);
    return st;
}
