/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_segment.cpp -- how ranks find each other: a unique id names a segment of shared memory, and is
 * unlinked as soon as all have it. */
#include "nccl.hpp"
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {

static double seconds()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

ncclResult_t attach(Comm *c, const ncclUniqueId &id)
{
    c->name = std::string(id.internal, strnlen(id.internal, sizeof(id.internal)));
    if (c->name.compare(0, 9, "/cudasim-")) {
        refused("NCCL: the unique id was not made by ncclGetUniqueId");
        return ncclInvalidArgument;
    }
    c->bytes = sizeof(Segment) + (size_t)c->ranks * (size_t)c->ranks * sizeof(Letter);
    int fd = shm_open(c->name.c_str(), O_CREAT | O_RDWR, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)c->bytes)) {
        if (fd >= 0) close(fd);
        refused("NCCL: no shared memory '%s'", c->name.c_str());
        return ncclSystemError;
    }
    c->segment = (Segment *)mmap(nullptr, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->segment == MAP_FAILED) return ncclSystemError;
    int zero = 0;
    if (!c->segment->ranks.compare_exchange_strong(zero, c->ranks) && zero != c->ranks)
        die("FATAL", "NCCL: ranks disagree on the size of a communicator: %d and %d", zero, c->ranks);
    if (c->segment->pid[c->rank].exchange((int)getpid()))
        die("FATAL", "NCCL: rank %d is in a communicator twice", c->rank);
    c->segment->attached++;
    return ncclSuccess;
}

void await_ranks(Comm *c)
{
    double began = seconds();
    while (c->segment->attached < c->ranks) {
        if (seconds() - began > settings().timeout)
            die("FATAL", "NCCL: rank %d waits for the other %d of %d ranks to make the communicator", c->rank,
                c->ranks - c->segment->attached.load(), c->ranks);
        pause();
    }
    shm_unlink(c->name.c_str()); /* the first to get here succeeds */
}

void detach(Comm *c)
{
    munmap(c->segment, c->bytes);
}

bool peer_lost(Comm *c)
{
    for (int q = 0; q < c->ranks; q++)
        if (kill(c->segment->pid[q], 0) && errno == ESRCH) return true;
    return false;
}

} // namespace sim

using namespace sim;

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static std::atomic<unsigned> number;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    memset(id, 0, sizeof(*id));
    std::string name = text("/cudasim-%d-%u-%llx", (int)getpid(), number++,
                            (unsigned long long)t.tv_nsec + ((unsigned long long)t.tv_sec << 30));
    memcpy(id->internal, name.c_str(), name.size());
    return ncclSuccess;
}
