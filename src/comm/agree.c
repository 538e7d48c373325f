/* SPDX-License-Identifier: Apache-2.0 */
/* agree.c -- the small blocking collectives; "did any rank fail" is the one that is called most. */
#include "comm/mpi_calls.h"

#include "tensor/operand.h"

#include <limits.h>
#include <stdio.h>

enum { FEW = 1024 };

typedef struct failure {
    int status;
    char message[1024];
} failure;

/* The message of `rank` on a rank that did not fail itself. */
static halo_status adopt(halo_context *ctx, int rank, const failure *f)
{
    char text[sizeof(f->message) + 32];
    snprintf(text, sizeof(text), "rank %d: %s", rank, f->message);
    hl_set_error(ctx, text);
    if (ctx->rank == 0) hl_log(ctx, HALO_LOG_ERROR, "%s", text);
    return (halo_status)f->status;
}

halo_status hl_agree(halo_context *ctx, halo_status mine)
{
    struct halo_comm *c = ctx->comm;
    if (!c) return mine;
    int first = mine == HALO_OK ? INT_MAX : ctx->rank;
    HL_TRY(hl_watched_allreduce(c, &first, 1, MPI_INT, MPI_MIN));
    if (first == INT_MAX) return HALO_OK;
    failure f = {.status = mine};
    if (mine != HALO_OK) snprintf(f.message, sizeof(f.message), "%s", halo_error_message(ctx));
    HL_TRY(hl_mpi_broadcast(c, c->world, &f, sizeof(f), first));
    return mine != HALO_OK ? mine : adopt(ctx, first, &f);
}

/* The first line in which two texts differ. */
static halo_status differ(halo_context *ctx, const char *what, const char *first, const char *mine)
{
    while (*first && *mine) {
        size_t a = strcspn(first, "\n"), b = strcspn(mine, "\n");
        if (a != b || memcmp(first, mine, a) != 0) break;
        first += a + (first[a] != 0);
        mine += b + (mine[b] != 0);
    }
    first += strspn(first, " ");
    mine += strspn(mine, " ");
    return hl_fail(ctx, HALO_ERR_USAGE, "%s of rank 0 and of rank %d differ: '%.*s' and '%.*s'", what, ctx->rank, (int)strcspn(first, "\n"), first, (int)strcspn(mine, "\n"), mine);
}

halo_status hl_agree_text(halo_context *ctx, const char *what, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *first = NULL;
    if (!ctx->comm) return HALO_OK;
    HL_TRY(hl_comm_broadcast(ctx, &bytes, sizeof(bytes), 0));
    halo_status st = hl_agree(ctx, hl_calloc(ctx, bytes, 1, "a text", &first));
    if (st == HALO_OK && ctx->rank == 0) memcpy(first, text, bytes);
    if (st == HALO_OK) st = hl_comm_broadcast(ctx, first, bytes, 0);
    if (st == HALO_OK) st = hl_agree(ctx, strcmp(first, text) == 0 ? HALO_OK : differ(ctx, what, first, text));
    free(first);
    return st;
}

halo_status hl_comm_broadcast(halo_context *ctx, void *bytes, size_t size, int root)
{
    if (!ctx->comm) return HALO_OK;
    HL_TRY(hl_comm_gate(ctx->comm));
    return hl_mpi_broadcast(ctx->comm, ctx->comm->world, bytes, size, root);
}

halo_status hl_comm_gather(halo_context *ctx, const void *mine, size_t size, void *all)
{
    struct halo_comm *c = ctx->comm;
    if (!c) {
        memcpy(all, mine, size);
        return HALO_OK;
    }
    if (hl_comm_stall_limit(c) > 0 && size <= FEW * sizeof(double) && (int64_t)size <= c->limit) {
        /* polled itself: a rank that stops between a barrier and what follows it would leave the others in that */
        MPI_Request r;
        HL_MPI(ctx, MPI_Iallgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, c->world, &r));
        return hl_watch(c, &r);
    }
    HL_TRY(hl_comm_gate(c));
    if ((int64_t)size <= c->limit) {
        HL_MPI(ctx, MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, c->world));
        return HALO_OK;
    }
    memcpy((char *)all + (size_t)ctx->rank * size, mine, size);
    for (int r = 0; r < ctx->ranks; r++) HL_TRY(hl_mpi_broadcast(c, c->world, (char *)all + (size_t)r * size, size, r));
    return HALO_OK;
}

/* Above FEW numbers the library's own algorithm for blocking calls is worth a barrier. */
static halo_status allreduce(struct halo_comm *c, void *buffer, int64_t count, size_t size, MPI_Datatype type, MPI_Op op)
{
    if (count <= hl_min64(FEW, c->limit)) return hl_watched_allreduce(c, buffer, (int)count, type, op);
    HL_TRY(hl_comm_gate(c));
    return hl_mpi_allreduce(c, c->world, buffer, count, size, type, op);
}

halo_status hl_comm_sum(halo_context *ctx, double *x, int64_t n) { return hl_comm_sum_buffer(ctx, x, n, HALO_F64); }

halo_status hl_comm_max(halo_context *ctx, double *x, int64_t n)
{
    if (!ctx->comm) return HALO_OK;
    return allreduce(ctx->comm, x, n, sizeof(*x), MPI_DOUBLE, MPI_MAX);
}

halo_status hl_comm_sum_buffer(halo_context *ctx, void *buffer, int64_t count, halo_dtype type)
{
    if (!ctx->comm) return HALO_OK;
    HL_BUG_UNLESS(type == HALO_F32 || type == HALO_F64);
    return allreduce(ctx->comm, buffer, count, hl_dtype_size(type), type == HALO_F64 ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM);
}

halo_status hl_comm_barrier(halo_context *ctx)
{
    if (!ctx->comm) return HALO_OK;
    if (hl_comm_stall_limit(ctx->comm) > 0) return hl_comm_gate(ctx->comm); /* a barrier itself */
    HL_MPI(ctx, MPI_Barrier(ctx->comm->world));
    return HALO_OK;
}
