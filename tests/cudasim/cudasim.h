/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudasim.h -- what a test may ask of the simulated device, beyond the C API of cudart, cuDNN, cuBLAS and
 * NCCL that it stands in for.
 *
 * The simulator takes its settings from the environment, once, at the first call:
 *
 *     CUDASIM_DEVICES=n           devices of this process (default 1; 0: a driver and no device)
 *     CUDASIM_SM=70|75|80|90      compute capability (default 80): bf16 and TF32 need 80
 *     CUDASIM_IMAGES="70 80"      architectures that the kernels were "built" for (default: every one)
 *     CUDASIM_DRIVER=v            the driver's CUDA, as 12040 for 12.4; 0: no driver (default: the headers')
 *     CUDASIM_CUDNN=v             what cudnnGetVersion() answers (default: the headers'); also CUDASIM_NCCL
 *     CUDASIM_CUDNN_ELEMENTS=n    cuDNN refuses tensors of more elements (default 2^31 - 1)
 *     CUDASIM_MEMORY=bytes        memory of each device (default 8 GiB)
 *     CUDASIM_SEED=n              run streams, blocks and threads of a block in an order drawn from n;
 *                                 unset: as late as a synchronisation allows, in order
 *     CUDASIM_FAIL=what:n         the n-th call of that kind fails, such as malloc:3 or launch:1,cudnn:2
 *     CUDASIM_TIMEOUT=s           how long a collective may wait for other ranks (default 60)
 *     CUDASIM_STRICT=1            asynchronous copies of pageable memory are refused (CUDA makes them slow)
 *     CUDASIM_PROBLEMS=file       every convolution that cuDNN is asked about, a line each, is added to it
 *     CUDASIM_VERBOSE=1           every operation, as it is queued and as it runs, on stderr
 *
 * A defect of the program under test (a race, a host access to device memory, a barrier that not all threads
 * reach) ends the process by abort() with a line "cudasim: FATAL: ..." or "cudasim: RACE: ..." on stderr. A
 * call that CUDA would refuse is refused with its status, and the line "cudasim: refused: ..." says why.
 */
#ifndef CUDASIM_H
#define CUDASIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cudasim_fault {
    CUDASIM_MALLOC,     /* malloc: cudaMalloc answers cudaErrorMemoryAllocation */
    CUDASIM_HOST_ALLOC, /* hostalloc: cudaMallocHost, cudaHostAlloc likewise */
    CUDASIM_LAUNCH,     /* launch: a kernel launch answers cudaErrorLaunchOutOfResources */
    CUDASIM_COPY,       /* copy: a copy or fill answers cudaErrorInvalidValue */
    CUDASIM_EXECUTE,    /* execute: an operation fails as it runs: cudaErrorLaunchFailure from then on */
    CUDASIM_CUDNN,      /* cudnn: a cuDNN operation answers CUDNN_STATUS_EXECUTION_FAILED */
    CUDASIM_CUBLAS,     /* cublas: a cuBLAS operation answers CUBLAS_STATUS_EXECUTION_FAILED */
    CUDASIM_NCCL_FAULT, /* nccl: an NCCL operation answers ncclSystemError */
    CUDASIM_CREATE,     /* create: a stream, event, graph, handle or communicator is not made */
    CUDASIM_FAULTS
};

/* The nth call of a kind from now on fails, once (1: the next one; 0: none). */
void cudasim_fail(enum cudasim_fault what, int64_t nth);

/* How many calls of a kind there have been since the start. */
int64_t cudasim_count(enum cudasim_fault what);

/* Live device allocations and their bytes, over all devices: for tests of leaks. */
int64_t cudasim_live(int64_t *bytes);

/* A library of the host's that knows device memory, such as an MPI, reads (or writes) these bytes from now on.
 * Where it finds them; NULL: they are not device memory, and nothing was lent. An operation on them, writing or
 * written against, that the host has not waited for, or that is queued before they are given back, is a race.
 * cudasim_find only says where they are. */
void *cudasim_lend(const void *p, size_t bytes, int write, const char *who);
void cudasim_give_back(const void *p, const char *who);
void *cudasim_find(const void *p, size_t bytes);

/* What a preloaded library of that kind defines: it is called once, when the simulator begins, with these three. */
typedef struct cudasim_lender {
    void *(*lend)(const void *p, size_t bytes, int write, const char *who);
    void (*give_back)(const void *p, const char *who);
    void *(*find)(const void *p, size_t bytes);
} cudasim_lender;
void cudasim_borrower(const cudasim_lender *lender);

/* Operations that are queued and have not run. */
int64_t cudasim_pending(void);

#ifdef __cplusplus
}
#endif

#endif
