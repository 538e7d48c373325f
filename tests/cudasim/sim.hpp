/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.hpp -- the inside of the simulated device: what its files share. One lock, held by every call of the C
 * APIs (class Lock) and by whoever runs a queued operation; functions here expect it held.
 *
 * Words: *block* a live allocation, of device or pinned host memory; *touch* the bytes that one operation
 * reads or writes; *task* an operation before it has a place in a stream; *clock* how far each stream had
 * come, as one knows.
 */
#pragma once
#include <cuda_runtime_api.h>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>
#include "cudasim.h"

#define SIM_PRINTF(f, a) __attribute__((format(printf, f, a)))

namespace sim {

/* --- settings.cpp: what the environment asked for */
struct Settings {
    int devices, sm, driver, cudnn, nccl;
    std::vector<int> images;
    int64_t elements;
    size_t memory;
    bool lazy, strict, verbose;
    uint64_t seed;
    double timeout;
};
const Settings &settings();
uint64_t draw(uint64_t n); /* uniform in 0..n-1, from the seed; 0 without one */

/* --- report.cpp: what is said to whom */
[[noreturn]] void die(const char *kind, const char *fmt, ...)
    SIM_PRINTF(2, 3);                                /* a defect of the program under test */
void refused(const char *fmt, ...) SIM_PRINTF(1, 2); /* why a call is answered with an error */
void note(const char *fmt, ...) SIM_PRINTF(1, 2);    /* CUDASIM_VERBOSE only */
cudaError_t fail(cudaError_t e, const char *fmt, ...)
    SIM_PRINTF(2, 3);                  /* refused, and the thread's last error */
cudaError_t failed(cudaError_t e);     /* the thread's last error, silently */
cudaError_t usable();                  /* no driver, no device, or the sticky error of a failed operation */
void break_device(const char *what);   /* an operation failed as it ran: sticky from now on */
bool planted(enum cudasim_fault what); /* counts a call; whether it is the one to fail */
std::string text(const char *fmt, ...) SIM_PRINTF(1, 2);

/* --- lock.cpp */
class Lock {
  public:
    Lock();
    ~Lock();
};
void unlocked(const std::function<void()> &body); /* gives the lock up meanwhile */
void pause();                                     /* and for a moment: other threads and processes go on */

/* --- touch.cpp: the bytes an operation touches: all of [p, p + bytes), or only the rows of a strided box in
 * them */
struct Touch {
    const void *p;
    size_t bytes; /* from the first to the last byte */
    bool write;
    std::vector<std::pair<int64_t, int64_t>>
        box;          /* (extent, stride in bytes) of each dimension; empty: everything */
    int64_t item = 1; /* bytes of the innermost run */
};
Touch span(const void *p, size_t bytes, bool write);
Touch strided(const void *p, int rank, const int64_t *extent, const int64_t *stride, int64_t item,
              bool write);
bool overlap(const Touch &a, const Touch &b);

/* --- memory.cpp, pinned.cpp: blocks */
using Clock = std::vector<uint64_t>;
struct Access {
    Touch touch;
    int stream;
    uint64_t seq;
    std::string what;
};
struct Block {
    char *address, *work; /* as the program knows it; where the simulator finds the same bytes */
    size_t bytes, span;   /* asked for; mapped, with slack of canaries */
    int device, id;
    bool pinned;
    std::vector<uint8_t> shield; /* pinned: the host's access to each page now, PROT_READ | PROT_WRITE */
    std::vector<Access> history;
};
Block *find_block(const void *p); /* the live block that holds p, or nullptr */
bool is_device(const void *p);    /* whether the address lies in the range of device pointers */
std::string why_not(const void *p, size_t bytes); /* why translate() refused, as a sentence */
/* Where the simulator finds [p, p + bytes), or nullptr when it is not within one live block of the kind */
void *translate(const void *p, size_t bytes, bool pinned_too);
size_t room(const void *p); /* bytes from p to the end of its block */
extern std::map<char *, Block> &blocks;
cudaError_t device_alloc(void **p, size_t bytes);
cudaError_t device_release(void *p);
cudaError_t pinned_alloc(void **p, size_t bytes);
cudaError_t pinned_release(void *p);
void shield_pinned(); /* sets what the host may touch, after its clock or a history changed */
std::string explain_address(const char *address); /* for the trap: what a faulting address is, or "" */
void install_trap();
extern const char *running_kernel; /* for messages */

/* --- clock.cpp: who has seen what */
void join(Clock &into, const Clock &from);
bool seen(const Clock &clock, int stream, uint64_t seq);
extern Clock &host_clock;
/* Reports a race if an unordered operation touches the same bytes, then remembers this one */
void check_race(int stream, uint64_t seq, const Clock &clock, const std::string &what, const Touch &t);

/* --- lend.cpp: device memory in the hands of a library of the host's */
void check_lent(const std::string &what, const Touch &t); /* reports an operation on what is lent */
void attach_borrower();                                   /* at the first call */

/* --- stream.cpp: tasks wait in streams */
struct Stream;
struct Dep {
    Stream *stream;
    uint64_t seq;
};
using Poll = std::function<bool()>; /* whether the operation has ended; called until it has */
struct Task {
    std::string what;
    std::vector<Touch> touches;
    std::function<void()> run;     /* one of these: it runs at once, */
    std::function<Poll()> start;   /* or it is begun when queued and asked until it has ended, */
    std::function<void()> on_host; /* or it is the program's own function, called without the lock */
};
struct Op {
    uint64_t seq;
    std::string what;
    std::function<void()> run;
    Poll poll;
    std::function<void()> on_host;
    std::vector<Dep> deps;
};
struct Capture;
struct Stream {
    int index, device, priority = 0;
    bool nonblocking, hidden = false, running = false, dead = false;
    std::deque<Op> queue;
    uint64_t next = 1, ran = 0;
    int polls = 0; /* queued operations that wait for other processes */
    Clock clock;
    std::shared_ptr<Capture> capture; /* the graph that is being recorded, or null */
    std::vector<int> heads;           /* the last nodes recorded here */
    int lane = 0;
};
Stream *resolve(cudaStream_t s); /* the stream behind a handle, or nullptr, reported */
Stream *make_stream(int device, bool nonblocking, bool hidden);
cudaError_t enqueue(cudaStream_t s, Task task);
uint64_t push(Stream *s, const Task &task,
              std::vector<Dep> deps);   /* queues, with the race check; the number it got */
void wait_for(Stream *s, uint64_t seq); /* runs what must run; then the host has seen it */
void wait_device(int device);
void host_saw(const Clock &clock);
bool advance(Stream *s, uint64_t seq); /* one step towards it; false when it waits for others */
std::vector<std::unique_ptr<Stream>> &streams();
extern uint64_t ticks; /* operations run so far: the simulator's only time */
int current_device();
void watch_collectives(); /* starts the thread that keeps collectives going while the host does something else
                           */

/* --- graph.cpp: while a stream records, its tasks become nodes of a graph */
struct Mark { /* what an event stands for */
    Stream *stream = nullptr;
    uint64_t seq = 0;
    std::shared_ptr<uint64_t> tick; /* the time at which it was reached, 0 before */
    Clock clock;
    std::shared_ptr<Capture> capture;
    std::vector<int> heads;
};
cudaError_t record(Stream *s, Task task);
cudaError_t capture_wait(Stream *s, const Mark &mark);
cudaError_t capture_forbids(const char *call); /* a call that must not happen while a stream records: refused,
                                                  the recording is spoilt */
bool recording(bool blocking_only); /* whether any stream of the current device (that waits for the default
                                       one) records */

} // namespace sim
