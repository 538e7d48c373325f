/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aware_mpi.c -- makes the real MPI one that takes addresses of simulated device memory, as a CUDA-aware one takes those of a GPU: preloaded, it says so, and
 * stands before the calls with which messages are sent and received. A device address is exchanged for the place where the simulator keeps these bytes, and the
 * bytes are lent to the message from its beginning to the test that says it is over: so the simulator sees a buffer that is sent before the device has filled it, or filled anew too early.
 *
 *     LD_PRELOAD=libaware_mpi.so      CUDASIM_AWARE=0: it says that it takes none
 */
#include "cudasim.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

static const cudasim_lender *lender;

SHOWN void cudasim_borrower(const cudasim_lender *l) { lender = l; }

SHOWN int MPIX_Query_cuda_support(void);
int MPIX_Query_cuda_support(void)
{
    const char *text = getenv("CUDASIM_AWARE");
    return !text || strcmp(text, "0") != 0;
}

/* A message on device memory */
typedef struct message {
    MPI_Request request;
    const void *p;
    size_t bytes;
    int send, lasting, under_way;
} message;

enum { MOST = 4096 };
static message list[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *who(int send) { return send ? "MPI_Isend" : "MPI_Irecv"; }

static message *find(MPI_Request request)
{
    for (int i = 0; i < MOST; i++)
        if (list[i].p && list[i].request == request) return &list[i];
    return NULL;
}

static void keep(message m)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++)
        if (!list[i].p) {
            list[i] = m;
            pthread_mutex_unlock(&lock);
            return;
        }
    fprintf(stderr, "aware_mpi: more than %d messages\n", MOST);
    abort();
}

static size_t bytes_of(int count, MPI_Datatype type)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    return (size_t)count * (size_t)size;
}

/* Where the bytes are; NULL: not on the device. */
static void *place(const void *p, size_t bytes, int begins, int send)
{
    if (!lender) return NULL;
    return begins ? lender->lend(p, bytes, !send, who(send)) : lender->find(p, bytes);
}

typedef int begin_fn(void *p, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request);

static int begin(begin_fn *call, void *p, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request, int send, int lasting)
{
    size_t bytes = bytes_of(count, type);
    void *at = place(p, bytes, !lasting, send);
    int code = call(at ? at : p, count, type, peer, tag, comm, request);
    if (at && code == MPI_SUCCESS) keep((message){*request, p, bytes, send, lasting, !lasting});
    return code;
}

static int isend(void *p, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return PMPI_Isend(p, count, type, peer, tag, comm, request);
}

static int send_init(void *p, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return PMPI_Send_init(p, count, type, peer, tag, comm, request);
}

int MPI_Isend(const void *p, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return begin(isend, (void *)(uintptr_t)p, count, type, peer, tag, comm, request, 1, 0);
}

int MPI_Irecv(void *p, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return begin(PMPI_Irecv, p, count, type, peer, tag, comm, request, 0, 0);
}

int MPI_Send_init(const void *p, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return begin(send_init, (void *)(uintptr_t)p, count, type, peer, tag, comm, request, 1, 1);
}

int MPI_Recv_init(void *p, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return begin(PMPI_Recv_init, p, count, type, peer, tag, comm, request, 0, 1);
}

int MPI_Start(MPI_Request *request)
{
    pthread_mutex_lock(&lock);
    message *m = find(*request);
    if (m) {
        m->under_way = 1;
        lender->lend(m->p, m->bytes, !m->send, who(m->send));
    }
    pthread_mutex_unlock(&lock);
    return PMPI_Start(request);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    pthread_mutex_lock(&lock);
    message *m = find(*request);
    int code = PMPI_Test(request, flag, status);
    if (m && *flag) {
        if (m->under_way) lender->give_back(m->p, who(m->send));
        m->under_way = 0;
        if (!m->lasting) m->p = NULL;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

int MPI_Request_free(MPI_Request *request)
{
    pthread_mutex_lock(&lock);
    message *m = find(*request);
    if (m) m->p = NULL;
    pthread_mutex_unlock(&lock);
    return PMPI_Request_free(request);
}
