/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h -- lets the C++ compiler build the kernels of a .cu file for the simulated device: c++ -x c++
 * -include device.h file.cu. Defines the words of backends/cuda/kernel.h and what nvcc has built in. The
 * toolkit's headers come first: they use names such as gridDim themselves.
 */
#ifndef CUDASIM_DEVICE_H
#define CUDASIM_DEVICE_H

#define HL_CUDASIM 1
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include "grid.hpp"
#include "launch.hpp"

/* --- the words of kernel.h */
#define HL_KERNEL(threads) void
#define HL_SHARED(type, name, n)                                                                             \
    static char name##_key_;                                                                                 \
    type *const name = static_cast<type *>(::sim::shared_array(&name##_key_, sizeof(type) * (n)))
#define HL_SHARED_DYNAMIC(type, name) type *const name = static_cast<type *>(::sim::shared_dynamic())
#define HL_LAUNCH(kernel, grid, block, bytes, stream, ...)                                                   \
    ::sim::launch(#kernel, kernel, grid, block, bytes, stream, __VA_ARGS__)
#define HL_SPAN(p, n)                   ::sim::make_span(p, n)
#define HL_BOX(p, rank, extent, stride) ::sim::make_box(p, rank, extent, stride)

/* --- what a kernel finds around it */
#define threadIdx (::sim::thread_now->index)
#define blockIdx  (::sim::thread_now->block)
#define blockDim  (::sim::thread_now->block_size)
#define gridDim   (::sim::thread_now->grid_size)
#define warpSize  32
#undef __global__
#undef __shared__
#undef __constant__
#define __global__   this_is_written_HL_KERNEL
#define __shared__   this_is_written_HL_SHARED
#define __constant__ constant_memory_is_not_simulated

/* --- how threads meet */
static inline void __syncthreads()
{
    ::sim::block_barrier();
}

static inline void __syncwarp(unsigned mask = ~0u)
{
    ::sim::warp_exchange(mask, 0, 0);
}

static inline void __threadfence() {}
static inline void __threadfence_block() {}

namespace sim {
template <class T> T shuffle(unsigned mask, T value, int source)
{
    static_assert(sizeof(T) <= 8, "a shuffle moves at most eight bytes");
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = warp_exchange(mask, bits, source);
    memcpy(&value, &bits, sizeof(T));
    return value;
}
static inline int lane()
{
    return (int)(thread_now->linear % 32);
}
} // namespace sim

template <class T> static inline T __shfl_sync(unsigned mask, T value, int source)
{
    return ::sim::shuffle(mask, value, source & 31);
}

template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta)
{
    return ::sim::shuffle(mask, value, ::sim::lane() + (int)delta);
}

template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta)
{
    return ::sim::shuffle(mask, value, ::sim::lane() - (int)delta);
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int bits)
{
    return ::sim::shuffle(mask, value, ::sim::lane() ^ bits);
}

static inline unsigned __ballot_sync(unsigned mask, int vote)
{
    return ::sim::warp_ballot(mask, vote != 0);
}

static inline int __any_sync(unsigned mask, int vote)
{
    return ::sim::warp_ballot(mask, vote != 0) != 0;
}

static inline int __all_sync(unsigned mask, int vote)
{
    return ::sim::warp_ballot(mask, vote != 0) == mask;
}

/* --- atomics: true ones, so that the thread sanitizer knows */
namespace sim {
template <class T, class F> T atomically(T *p, F change)
{
    T old, next;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do next = change(old);
    while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
template <class T> struct Same { /* an argument that does not take part in deduction */
    using type = T;
};
} // namespace sim

#define SIM_ATOMIC(name, result)                                                                             \
    template <class T> static inline T name(T *p, typename ::sim::Same<T>::type v)                           \
    {                                                                                                        \
        return ::sim::atomically(p, [=](T old) -> T { return result; });                                     \
    }
SIM_ATOMIC(atomicAdd, old + v)
SIM_ATOMIC(atomicSub, old - v)
SIM_ATOMIC(atomicMax, old < v ? v : old)
SIM_ATOMIC(atomicMin, v < old ? v : old)
SIM_ATOMIC(atomicOr, old | v)
SIM_ATOMIC(atomicAnd, old &v)
SIM_ATOMIC(atomicExch, ((void)old, v))
SIM_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
#undef SIM_ATOMIC
template <class T>
static inline T atomicCAS(T *p, typename ::sim::Same<T>::type expected, typename ::sim::Same<T>::type v)
{
    return ::sim::atomically(p, [=](T old) -> T { return old == expected ? v : old; });
}

/* --- mathematics that is built in; glibc has the names with two underscores for itself */
namespace sim {
static inline float fast_exp(float x)
{
    return std::exp(x);
}
static inline float fast_log(float x)
{
    return std::log(x);
}
static inline float fast_pow(float x, float y)
{
    return std::pow(x, y);
}
} // namespace sim
#define __expf(x)    ::sim::fast_exp(x)
#define __logf(x)    ::sim::fast_log(x)
#define __powf(x, y) ::sim::fast_pow(x, y)
static inline float rsqrtf(float x)
{
    return 1.0f / std::sqrt(x);
}
static inline double rsqrt(double x)
{
    return 1.0 / std::sqrt(x);
}
static inline float __fdividef(float x, float y)
{
    return x / y;
}
static inline float __saturatef(float x)
{
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __float_as_int(float x)
{
    int i;
    memcpy(&i, &x, sizeof(i));
    return i;
}
static inline unsigned __float_as_uint(float x)
{
    unsigned i;
    memcpy(&i, &x, sizeof(i));
    return i;
}
static inline float __int_as_float(int i)
{
    float x;
    memcpy(&x, &i, sizeof(x));
    return x;
}
static inline float __uint_as_float(unsigned i)
{
    float x;
    memcpy(&x, &i, sizeof(x));
    return x;
}

#endif
