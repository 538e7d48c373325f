/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.hpp -- what the simulated NCCL's files share. The ranks of a communicator, in one process or several,
 * meet in a segment of shared memory whose name is in the unique id. All zeros is its first state, so that
 * nobody has to make it ready for the others.
 */
#pragma once
#include <nccl.h>
#include <atomic>
#include "number.hpp"
#include "sim.hpp"

namespace sim {

enum class Action { all_reduce, reduce_scatter, all_gather, broadcast, reduce, send, receive };

struct Part { /* one call */
    Action action;
    const void *in;
    void *out;
    int64_t count; /* as the call gives it, in elements */
    Kind type;
    ncclRedOp_t op;
    int peer; /* or root */
};

const int most_ranks = 64;
const size_t chunk_bytes = 64 << 10, letter_bytes = 16 << 10;

struct Offer {                         /* one rank's side of the collective that is under way */
    std::atomic<uint64_t> wrote, read; /* chunks since the start */
    int32_t action, type, op, root;
    int64_t count;
    alignas(64) char data[chunk_bytes];
};

struct Letter { /* the way from one rank to another */
    std::atomic<uint64_t> wrote, read;
    int64_t bytes; /* of the whole message */
    alignas(64) char data[letter_bytes];
};

struct Segment {
    std::atomic<int> ranks, attached, aborted;
    std::atomic<int> pid[most_ranks];
    Offer offer[most_ranks];
    Letter letter[]; /* ranks x ranks: from, to */
};

struct Comm {
    Segment *segment;
    size_t bytes;
    std::string name;
    int rank, ranks, device;
    uint64_t chunk = 0;                /* of collectives, since the start */
    uint64_t tickets = 0, serving = 0; /* operations of a communicator run in the order of their calls */
    bool aborted = false;
    ncclResult_t async = ncclSuccess;
};

/* nccl_segment.cpp */
ncclResult_t attach(Comm *c, const ncclUniqueId &id);
void await_ranks(Comm *c); /* until all have attached */
void detach(Comm *c);
bool peer_lost(Comm *c); /* whether a process of another rank is gone */

/* nccl_run.cpp: an operation of one or more parts, as a task of the communicator */
Poll begin(Comm *c, const std::vector<Part> &parts);

} // namespace sim

struct ncclComm : sim::Comm {};
