/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_calls.c -- see mpi_calls.h. */
#include "comm/mpi_calls.h"

#include <stdio.h>
/* Of the MPI that configure asked, which is not the simulated machine's */
#if defined(HAVE_MPIX_CUDA) && !defined(SMPI_H)
#define ASK_FOR_CUDA
#endif
#if defined(ASK_FOR_CUDA) && defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

halo_status hl_mpi_check(halo_context *ctx, int code, const char *call)
{
    if (code == MPI_SUCCESS) return HALO_OK;
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int n = 0;
    MPI_Error_string(code, text, &n);
    return hl_fail(ctx, HALO_ERR_COMM, "%.*s failed: %s", (int)strcspn(call, "("), call, text);
}

void hl_comm_library(char *out, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;
    MPI_Get_library_version(text, &n);
    snprintf(out, size, "%.*s", (int)strcspn(text, ",\n"), text);
}

int hl_comm_says_cuda(void)
{
#ifdef ASK_FOR_CUDA
    return MPIX_Query_cuda_support() == 1;
#else
    return -1;
#endif
}

/* `bytes` as one element of a type made of blocks of at most `limit`. */
static int big_type(size_t bytes, int64_t limit, MPI_Datatype *type)
{
    MPI_Datatype block, blocks[2];
    size_t whole = bytes / (size_t)limit, rest = bytes % (size_t)limit;
    if (whole > (size_t)limit) return MPI_ERR_COUNT;
    int lengths[2] = {(int)whole, (int)rest}, code = MPI_Type_contiguous((int)limit, MPI_BYTE, &block);
    MPI_Aint at[2] = {0, (MPI_Aint)(whole * (size_t)limit)};
    if (code != MPI_SUCCESS) return code;
    blocks[0] = block;
    blocks[1] = MPI_BYTE;
    code = MPI_Type_create_struct(rest > 0 ? 2 : 1, lengths, at, blocks, type);
    MPI_Type_free(&block);
    return code == MPI_SUCCESS ? MPI_Type_commit(type) : code;
}

/* The four calls that take a buffer, a count and a type alike. */
typedef enum p2p { SEND, RECV, SEND_INIT, RECV_INIT } p2p;

static int call(p2p kind, void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    switch (kind) {
    case SEND: return MPI_Isend(buffer, count, type, peer, tag, comm, request);
    case RECV: return MPI_Irecv(buffer, count, type, peer, tag, comm, request);
    case SEND_INIT: return MPI_Send_init(buffer, count, type, peer, tag, comm, request);
    default: return MPI_Recv_init(buffer, count, type, peer, tag, comm, request);
    }
}

static halo_status message(const struct halo_comm *c, p2p kind, void *buffer, size_t bytes, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    static const char *const names[] = {"MPI_Isend", "MPI_Irecv", "MPI_Send_init", "MPI_Recv_init"};
    if ((int64_t)bytes <= c->limit) return hl_mpi_check(c->ctx, call(kind, buffer, (int)bytes, MPI_BYTE, peer, tag, comm, request), names[kind]);
    MPI_Datatype type;
    HL_MPI(c->ctx, big_type(bytes, c->limit, &type));
    int code = call(kind, buffer, 1, type, peer, tag, comm, request);
    MPI_Type_free(&type);
    return hl_mpi_check(c->ctx, code, names[kind]);
}

halo_status hl_mpi_isend(const struct halo_comm *c, MPI_Comm comm, const void *buffer, size_t bytes, int peer, int tag, MPI_Request *request)
{
    return message(c, SEND, (void *)(uintptr_t)buffer, bytes, peer, tag, comm, request);
}

halo_status hl_mpi_irecv(const struct halo_comm *c, MPI_Comm comm, void *buffer, size_t bytes, int peer, int tag, MPI_Request *request)
{
    return message(c, RECV, buffer, bytes, peer, tag, comm, request);
}

halo_status hl_mpi_send_init(const struct halo_comm *c, MPI_Comm comm, const void *buffer, size_t bytes, int peer, int tag, MPI_Request *request)
{
    return message(c, SEND_INIT, (void *)(uintptr_t)buffer, bytes, peer, tag, comm, request);
}

halo_status hl_mpi_recv_init(const struct halo_comm *c, MPI_Comm comm, void *buffer, size_t bytes, int peer, int tag, MPI_Request *request)
{
    return message(c, RECV_INIT, buffer, bytes, peer, tag, comm, request);
}

halo_status hl_mpi_allreduce(const struct halo_comm *c, MPI_Comm comm, void *buffer, int64_t count, size_t size, MPI_Datatype type, MPI_Op op)
{
    for (int64_t at = 0; at < count; at += c->limit)
        HL_MPI(c->ctx, MPI_Allreduce(MPI_IN_PLACE, (char *)buffer + (size_t)at * size, (int)hl_min64(c->limit, count - at), type, op, comm));
    return HALO_OK;
}

halo_status hl_mpi_broadcast(const struct halo_comm *c, MPI_Comm comm, void *bytes, size_t size, int root)
{
    for (int64_t at = 0; at < (int64_t)size; at += c->limit)
        HL_MPI(c->ctx, MPI_Bcast((char *)bytes + at, (int)hl_min64(c->limit, (int64_t)size - at), MPI_BYTE, root, comm));
    return HALO_OK;
}
