/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.cpp -- NCCL's calls: communicators, collectives, messages, groups. What a group holds for one
 * communicator and stream becomes one operation when the outermost group ends.
 */
#include "nccl.hpp"
#include <algorithm>

namespace sim {

void set_current_device(int d);

struct Call {
    ncclComm_t comm;
    cudaStream_t stream;
    Part part;
    std::vector<Touch> touches;
};

static thread_local int depth;
static thread_local std::vector<Call> calls;
static thread_local std::vector<Comm *> joining;
static thread_local ncclResult_t group_error = ncclSuccess;

static ncclResult_t nccl_refused(ncclResult_t result, const std::string &why)
{
    refused("NCCL: %s", why.c_str());
    if (depth > 0 && group_error == ncclSuccess) group_error = result;
    return result;
}

static Kind kind_of(ncclDataType_t t)
{
    switch (t) {
    case ncclInt8:
        return Kind::i8;
    case ncclUint8:
        return Kind::u8;
    case ncclInt32:
        return Kind::i32;
    case ncclUint32:
        return Kind::u32;
    case ncclInt64:
        return Kind::i64;
    case ncclUint64:
        return Kind::u64;
    case ncclFloat16:
        return Kind::f16;
    case ncclFloat32:
        return Kind::f32;
    case ncclFloat64:
        return Kind::f64;
    case ncclBfloat16:
        return Kind::bf16;
    default:
        return Kind::none;
    }
}

/* The calls of one communicator and stream, in their order, become one task */
static ncclResult_t submit(std::vector<Call> &&list)
{
    while (!list.empty()) {
        ncclComm_t comm = list.front().comm;
        cudaStream_t stream = list.front().stream;
        std::vector<Part> parts;
        Task task{"NCCL", {}, nullptr, nullptr, nullptr};
        std::vector<Call> rest;
        for (auto &c : list) {
            if (c.comm != comm || c.stream != stream) {
                rest.push_back(std::move(c));
                continue;
            }
            parts.push_back(c.part);
            task.touches.insert(task.touches.end(), c.touches.begin(), c.touches.end());
        }
        task.start = [comm, parts] { return begin(comm, parts); };
        int before = current_device();
        set_current_device(comm->device);
        cudaError_t e = enqueue(stream, std::move(task));
        set_current_device(before);
        if (e) return nccl_refused(ncclUnhandledCudaError, "the operation could not be queued");
        list = std::move(rest);
    }
    return ncclSuccess;
}

static ncclResult_t call(const Part &given, size_t in_count, size_t out_count, ncclComm_t comm,
                         cudaStream_t stream)
{
    Lock lock;
    Part p = given;
    if (!comm) return nccl_refused(ncclInvalidArgument, "no communicator");
    if (usable()) return nccl_refused(ncclUnhandledCudaError, "the device failed");
    if (comm->aborted) return nccl_refused(ncclInvalidUsage, "the communicator was aborted");
    if (p.type == Kind::none) return nccl_refused(ncclInvalidArgument, "a type that is not simulated");
    if (p.peer < 0 || p.peer >= comm->ranks)
        return nccl_refused(ncclInvalidArgument, text("rank %d of %d", p.peer, comm->ranks));
    if (planted(CUDASIM_NCCL_FAULT)) return nccl_refused(ncclSystemError, "a planted fault");
    size_t item = size_of(p.type);
    Call c{comm, stream, p, {}};
    if (in_count) {
        Touch t = span(p.in, in_count * item, false);
        if (!(c.part.in = translate(t.p, t.bytes, true)))
            return nccl_refused(ncclInvalidArgument, "send: " + why_not(t.p, t.bytes));
        c.touches.push_back(t);
    }
    if (out_count) {
        Touch t = span(p.out, out_count * item, true);
        if (!(c.part.out = translate(t.p, t.bytes, true)))
            return nccl_refused(ncclInvalidArgument, "receive: " + why_not(t.p, t.bytes));
        c.touches.push_back(t);
    }
    std::vector<Call> one;
    (depth > 0 ? calls : one).push_back(std::move(c));
    return depth > 0 ? ncclSuccess : submit(std::move(one));
}

} // namespace sim

using namespace sim;

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
    Lock lock;
    if (usable()) return nccl_refused(ncclUnhandledCudaError, "no usable device");
    if (ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks)
        return nccl_refused(ncclInvalidArgument,
                            text("rank %d of %d (at most %d are simulated)", rank, ranks, most_ranks));
    if (planted(CUDASIM_CREATE)) return nccl_refused(ncclSystemError, "a planted fault");
    ncclComm_t c = new ncclComm;
    c->rank = rank;
    c->ranks = ranks;
    c->device = current_device();
    if (ncclResult_t r = attach(c, id)) {
        delete c;
        return r;
    }
    if (depth > 0)
        joining.push_back(c);
    else
        await_ranks(c);
    *out = c;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank, ncclConfig_t *)
{
    return ncclCommInitRank(out, ranks, id, rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t *out, int ranks, const int *devices)
{
    ncclUniqueId id;
    ncclResult_t result = ncclGetUniqueId(&id);
    int before = 0;
    cudaGetDevice(&before);
    ncclGroupStart();
    for (int i = 0; i < ranks && !result; i++) {
        cudaSetDevice(devices ? devices[i] : i);
        result = ncclCommInitRank(&out[i], ranks, id, i);
    }
    cudaSetDevice(before);
    ncclResult_t ended = ncclGroupEnd();
    return result ? result : ended;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    Lock lock;
    if (!c) return ncclInvalidArgument;
    while (c->serving < c->tickets && !c->aborted && !usable())
        pause(); /* the thread that watches collectives ends them */
    detach(c);
    delete c;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    Lock lock;
    while (c->serving < c->tickets && !c->aborted && !usable()) pause();
    return ncclSuccess;
}

/* Operations of every rank end without a result; the segment stays mapped, as queued operations still look at
 * it */
ncclResult_t ncclCommAbort(ncclComm_t c)
{
    Lock lock;
    if (!c) return ncclInvalidArgument;
    c->segment->aborted = 1;
    c->aborted = true;
    while (c->serving < c->tickets && !usable()) pause();
    detach(c);
    delete c;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *error)
{
    Lock lock;
    *error = c->async;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t c, int *count)
{
    *count = c->ranks;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t c, int *rank)
{
    *rank = c->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t c, int *device)
{
    *device = c->device;
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = settings().nccl;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const names[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return (unsigned)result < sizeof(names) / sizeof(names[0]) ? names[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t)
{
    return "";
}

ncclResult_t ncclGroupStart()
{
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd()
{
    Lock lock;
    if (depth == 0) return nccl_refused(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--depth > 0) return ncclSuccess;
    std::vector<Call> list = std::move(calls);
    std::vector<Comm *> comms = std::move(joining);
    ncclResult_t error = group_error;
    calls.clear();
    joining.clear();
    group_error = ncclSuccess;
    if (error) return error;
    for (auto *c : comms) await_ranks(c);
    return submit(std::move(list));
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t t, ncclRedOp_t op,
                           ncclComm_t c, cudaStream_t s)
{
    return call({Action::all_reduce, in, out, (int64_t)count, kind_of(t), op, 0}, count, count, c, s);
}

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t t, ncclRedOp_t op, int root,
                        ncclComm_t c, cudaStream_t s)
{
    return call({Action::reduce, in, out, (int64_t)count, kind_of(t), op, root}, count,
                c && c->rank == root ? count : 0, c, s);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t t, ncclRedOp_t op,
                               ncclComm_t c, cudaStream_t s)
{
    return call({Action::reduce_scatter, in, out, (int64_t)count, kind_of(t), op, 0},
                c ? count * (size_t)c->ranks : 0, count, c, s);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t t, ncclComm_t c,
                           cudaStream_t s)
{
    return call({Action::all_gather, in, out, (int64_t)count, kind_of(t), ncclSum, 0}, count,
                c ? count * (size_t)c->ranks : 0, c, s);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t t, int root, ncclComm_t c,
                           cudaStream_t s)
{
    return call({Action::broadcast, in, out, (int64_t)count, kind_of(t), ncclSum, root},
                c && c->rank == root ? count : 0, count, c, s);
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s)
{
    return call({Action::send, in, nullptr, (int64_t)count, kind_of(t), ncclSum, peer}, count, 0, c, s);
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s)
{
    return call({Action::receive, nullptr, out, (int64_t)count, kind_of(t), ncclSum, peer}, 0, count, c, s);
}
