/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.cpp -- runs a kernel's threads on the CPU: one block after another, and the threads of a block one
 * after another on one fibre until one has to wait for others; only then further fibres are made. A barrier
 * that not all threads reach, a warp function whose mask names lanes that are gone, too much shared memory:
 * all end the process with the name of the kernel. With a seed blocks and threads start in random order.
 * Under the thread sanitizer each CUDA thread is a fibre of its own, so that a missing __syncthreads() is a
 * data race that it reports.
 */
#undef _FORTIFY_SOURCE /* its longjmp refuses to change stacks */
#include "grid.hpp"
#include "sanitize.hpp"
#include "sim.hpp"
#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <numeric>
#include <ucontext.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wclobbered" /* nothing is used after a second return */
#endif

#if SIM_ASAN || SIM_TSAN
#define SIM_FAST_SWITCH 0
#else
#define SIM_FAST_SWITCH 1 /* swapcontext() calls the kernel each time, a jump does not */
#endif

namespace sim {

size_t shared_limit();
Thread *thread_now;

struct Barrier {
    unsigned generation = 0, arrived = 0;
};

struct WarpGroup { /* the lanes of one mask; values of two generations, as a fast lane may be one ahead */
    unsigned mask;
    Barrier barrier;
    unsigned long long value[2][32];
};

struct Warp {
    std::vector<WarpGroup> groups;
    unsigned gone = 0; /* lanes that have returned */
};

struct Fibre {
    ucontext_t context;
    jmp_buf jump;
    std::unique_ptr<char[]> stack;
    Thread thread;
    bool started = false;
    bool parked = true;             /* has no thread to run */
    const unsigned *gate = nullptr; /* waits until this generation changes */
    unsigned gate_was = 0;
    void *tsan = nullptr, *asan = nullptr;
};

static const size_t stack_bytes = (SIM_ASAN || SIM_TSAN ? 256 : 64) << 10;

/* The block that is running */
static struct Running {
    const char *kernel;
    const std::function<void()> *body;
    dim3 grid, block;
    uint3 at;
    unsigned threads, next, gone;
    std::vector<unsigned> order;
    Barrier barrier;
    std::vector<Warp> warps;
    size_t static_bytes, dynamic_bytes;
    std::unique_ptr<char[]> dynamic;
    std::vector<std::pair<const void *, std::unique_ptr<char[]>>> arrays;
} &run = *new Running; /* never destroyed: a thread may outlive static objects */

/* --- switching between the scheduler and fibres */
static std::vector<Fibre *> &idle() /* never destroyed, as they end in the middle of a function */
{
    static auto *list = new std::vector<Fibre *>;
    return *list;
}
static Fibre *fibre_now;
#if SIM_FAST_SWITCH
static jmp_buf scheduler_jump;
#else
static ucontext_t scheduler;
#endif
#if SIM_ASAN
static const void *scheduler_stack;
static size_t scheduler_bytes;
#endif
#if SIM_TSAN
static void *scheduler_tsan;
static char block_begins, thread_ends; /* what happens before what */
#endif

/* Not inlined: what their callers keep in registers is not at the mercy of the jumps */
__attribute__((noinline)) static void leave(Fibre *f)
{
#if SIM_FAST_SWITCH
    if (!_setjmp(f->jump)) _longjmp(scheduler_jump, 1);
#else
#if SIM_ASAN
    __sanitizer_start_switch_fiber(&f->asan, scheduler_stack, scheduler_bytes);
#endif
    SIM_TSAN_CODE(__tsan_switch_to_fiber(scheduler_tsan, 1);)
    swapcontext(&f->context, &scheduler);
#if SIM_ASAN
    __sanitizer_finish_switch_fiber(f->asan, &scheduler_stack, &scheduler_bytes);
#endif
#endif
}

__attribute__((noinline)) static void enter(Fibre *f)
{
    fibre_now = f;
    thread_now = &f->thread;
#if SIM_FAST_SWITCH
    if (_setjmp(scheduler_jump)) return;
    if (f->started) _longjmp(f->jump, 1);
    f->started = true;
    setcontext(&f->context);
#else
    SIM_TSAN_CODE(scheduler_tsan = __tsan_get_current_fiber(); if (!f->tsan) f->tsan = __tsan_create_fiber(0);
                  __tsan_switch_to_fiber(f->tsan, 1);)
#if SIM_ASAN
    void *fake;
    __sanitizer_start_switch_fiber(&fake, f->stack.get(), stack_bytes);
#endif
    swapcontext(&scheduler, &f->context);
#if SIM_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
#endif
}

/* What a fibre does: threads that nobody has begun, then it is parked for the next block. To the thread
 * sanitizer a fibre is a thread, and a stack that two of them used would be a race: there it does one. */
SIM_TSAN_NOT_INSIDE static void work()
{
#if SIM_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_bytes);
#endif
    SimUnseen::begin();
    for (;;) {
        while (run.next < run.threads) {
            Fibre *f = fibre_now;
            unsigned n = run.order[run.next++];
            dim3 b = run.block;
            f->thread = {{n % b.x, n / b.x % b.y, n / (b.x * b.y)}, run.at, b, run.grid, n};
            thread_now = &f->thread;
            SIM_TSAN_CODE(__tsan_acquire(&block_begins);)
            SimUnseen::end();
            (*run.body)();
            SimUnseen::begin();
            SIM_TSAN_CODE(__tsan_release(&thread_ends);)
            run.gone++;
            run.warps[n / 32].gone |= 1u << n % 32;
            if (SIM_TSAN) break;
        }
        fibre_now->parked = true;
        if (!SIM_TSAN) idle().push_back(fibre_now);
        leave(fibre_now);
    }
}

static Fibre *free_fibre()
{
    if (!idle().empty()) {
        Fibre *f = idle().back();
        idle().pop_back();
        f->parked = false;
        return f;
    }
    Fibre *f = new Fibre;
    f->parked = false;
    f->stack.reset(new char[stack_bytes]);
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack.get();
    f->context.uc_stack.ss_size = stack_bytes;
    f->context.uc_link = nullptr;
    makecontext(&f->context, work, 0);
    return f;
}

/* --- meeting */

static void meet(Barrier &b, unsigned all)
{
    SIM_TSAN_CODE(__tsan_release(&b);)
    Fibre *self = fibre_now;
    unsigned was = b.generation;
    if (++b.arrived == all) {
        b.arrived = 0;
        b.generation++;
    } else {
        self->gate = &b.generation;
        self->gate_was = was;
        while (b.generation == was) leave(self);
        self->gate = nullptr;
    }
    SIM_TSAN_CODE(__tsan_acquire(&b);)
}

void block_barrier()
{
    SimUnseen unseen;
    if (run.gone)
        die("FATAL", "kernel '%s': __syncthreads() after %u of the block's %u threads have returned",
            run.kernel, run.gone, run.threads);
    meet(run.barrier, run.threads);
}

static WarpGroup &group_of(unsigned mask)
{
    unsigned n = thread_now->linear, lane = n % 32, first = n - lane;
    unsigned exist = run.threads - first >= 32 ? ~0u : (1u << (run.threads - first)) - 1;
    Warp &w = run.warps[n / 32];
    if (!(mask >> lane & 1))
        die("FATAL", "kernel '%s': lane %u calls a warp function and is not in its mask", run.kernel, lane);
    if (mask == ~0u && exist != ~0u)
        die("FATAL", "kernel '%s': a warp function of all lanes in a warp of %u", run.kernel,
            run.threads - first);
    if (mask & ~exist)
        die("FATAL", "kernel '%s': the mask %#x names lanes that do not exist", run.kernel, mask);
    if (mask & w.gone)
        die("FATAL", "kernel '%s': a warp function waits for lanes that have returned", run.kernel);
    for (auto &g : w.groups)
        if (g.mask == mask) return g;
    if (w.groups.empty()) w.groups.reserve(32); /* references must last */
    if (w.groups.size() == 32) die("FATAL", "kernel '%s': more than 32 masks in a warp", run.kernel);
    w.groups.push_back({mask, {}, {}});
    return w.groups.back();
}

unsigned long long warp_exchange(unsigned mask, unsigned long long value, int source)
{
    SimUnseen unseen;
    WarpGroup &g = group_of(mask);
    unsigned turn = g.barrier.generation & 1;
    g.value[turn][thread_now->linear % 32] = value;
    meet(g.barrier, (unsigned)__builtin_popcount(mask));
    return source >= 0 && source < 32 && (mask >> source & 1) ? g.value[turn][source] : value;
}

unsigned warp_ballot(unsigned mask, bool vote)
{
    SimUnseen unseen;
    WarpGroup &g = group_of(mask);
    unsigned turn = g.barrier.generation & 1, votes = 0;
    g.value[turn][thread_now->linear % 32] = vote;
    meet(g.barrier, (unsigned)__builtin_popcount(mask));
    for (unsigned i = 0; i < 32; i++)
        if ((mask >> i & 1) && g.value[turn][i]) votes |= 1u << i;
    return votes;
}

/* --- shared memory */

void *shared_array(const void *key, size_t bytes)
{
    SimUnseen unseen;
    for (auto &a : run.arrays)
        if (a.first == key) return a.second.get();
    run.static_bytes += bytes;
    if (run.static_bytes > 48 << 10 || run.static_bytes + run.dynamic_bytes > shared_limit())
        die("FATAL", "kernel '%s': %zu bytes of shared memory, and %zu from the launch, are too many",
            run.kernel, run.static_bytes, run.dynamic_bytes);
    run.arrays.emplace_back(key, std::unique_ptr<char[]>(new char[bytes]));
    memset(run.arrays.back().second.get(), 0xff, bytes);
    return run.arrays.back().second.get();
}

void *shared_dynamic()
{
    SimUnseen unseen;
    if (!run.dynamic_bytes)
        die("FATAL", "kernel '%s' uses dynamic shared memory and was launched without", run.kernel);
    return run.dynamic.get();
}

/* --- blocks */

static void run_block()
{
    std::vector<Fibre *> active;
    run.next = run.gone = run.static_bytes = 0;
    run.barrier = Barrier();
    run.warps.assign((run.threads + 31) / 32, Warp());
    run.arrays.clear();
    run.dynamic.reset(run.dynamic_bytes ? new char[run.dynamic_bytes] : nullptr);
    if (run.dynamic_bytes) memset(run.dynamic.get(), 0xff, run.dynamic_bytes);
    for (unsigned i = run.threads; i > 1; i--)
        std::swap(run.order[i - 1], run.order[settings().lazy ? i - 1 : draw(i)]);
    SIM_TSAN_CODE(__tsan_acquire(&thread_ends); __tsan_release(&block_begins);)
    while (run.gone < run.threads) {
        if (run.next < run.threads) {
            active.push_back(free_fibre());
            enter(active.back());
            continue;
        }
        bool moved = false;
        for (Fibre *f : active) {
            if (f->parked || !f->gate || *f->gate == f->gate_was) continue;
            enter(f);
            moved = true;
        }
        if (!moved && run.gone < run.threads)
            die("FATAL",
                "kernel '%s': block (%u,%u,%u) cannot go on: %u threads wait at a barrier that the others "
                "never reach",
                run.kernel, run.at.x, run.at.y, run.at.z, run.threads - run.gone);
    }
    SIM_TSAN_CODE(__tsan_acquire(&thread_ends);)
    if (SIM_TSAN) /* not before: no two threads of a block are one fibre */
        idle().insert(idle().end(), active.begin(), active.end());
    run.arrays.clear();
}

void run_grid(const char *kernel, dim3 grid, dim3 block, size_t dynamic_bytes,
              const std::function<void()> &body)
{
    SimUnseen unseen;
    uint64_t n = (uint64_t)grid.x * grid.y * grid.z, step = 1, start = draw(n);
    if (!settings().lazy)
        for (step = draw(n) | 1; std::gcd(step, n) != 1;) step++;
    run.kernel = kernel;
    run.body = &body;
    run.grid = grid;
    run.block = block;
    run.threads = block.x * block.y * block.z;
    run.dynamic_bytes = dynamic_bytes;
    run.order.resize(run.threads);
    std::iota(run.order.begin(), run.order.end(), 0u);
    for (uint64_t i = 0, at = start; i < n; i++, at = (at + step) % n) {
        run.at = {(unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y),
                  (unsigned)(at / ((uint64_t)grid.x * grid.y))};
        run_block();
    }
    run.dynamic.reset();
    thread_now = nullptr;
}

} // namespace sim
