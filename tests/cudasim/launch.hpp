/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.hpp -- a launch as the kernel's file makes it: the kernel's own type says which arguments are
 * pointers and which of them it only reads. Pointers are checked and turned into the simulator's;
 * one that hides in a structure is not, and following it faults.
 */
#pragma once
#include <cuda_runtime_api.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>

namespace sim {

template <class T> struct Span {
    T *p;
    int64_t n;
};

template <class T> struct Boxed {
    T *p;
    int rank;
    const int64_t *extent, *stride;
};

template <class T> Span<T> make_span(T *p, int64_t n)
{
    return {p, n};
}

template <class T> Boxed<T> make_box(T *p, int rank, const int64_t *extent, const int64_t *stride)
{
    return {p, rank, extent, stride};
}

class Launch {
  public:
    Launch(const char *name, const void *kernel, dim3 grid, dim3 block, size_t bytes, cudaStream_t stream);
    ~Launch();
    cudaError_t submit(std::function<void()> body);

    template <class P, class A> P argument(const A &a)
    {
        if constexpr (std::is_pointer_v<P>) {
            using T = std::remove_pointer_t<P>;
            static_assert(
                !std::is_pointer_v<T>,
                "a kernel gets no pointers to pointers: the simulator cannot translate those behind");
            return static_cast<P>(operand<T>(a));
        } else {
            return static_cast<P>(a);
        }
    }

  private:
    template <class T> static constexpr int64_t item()
    {
        if constexpr (std::is_void_v<T>)
            return 1;
        else
            return sizeof(T);
    }
    template <class T> T *operand(std::nullptr_t) { return nullptr; }
    template <class T, class U> T *operand(U *p)
    {
        T *same = p;
        return static_cast<T *>(const_cast<void *>(rest(same, !std::is_const_v<T>)));
    }
    template <class T, class U> T *operand(const Span<U> &s)
    {
        const int64_t one = 1;
        T *same = s.p;
        return static_cast<T *>(const_cast<void *>(box(same, 1, &s.n, &one, item<U>(), !std::is_const_v<T>)));
    }
    template <class T, class U> T *operand(const Boxed<U> &b)
    {
        T *same = b.p;
        return static_cast<T *>(
            const_cast<void *>(box(same, b.rank, b.extent, b.stride, item<U>(), !std::is_const_v<T>)));
    }
    const void *rest(const void *p, bool write);
    const void *box(const void *p, int rank, const int64_t *extent, const int64_t *stride, int64_t item,
                    bool write);
    struct State;
    std::unique_ptr<State> state;
};

template <class... P, class... A>
cudaError_t launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t bytes,
                   cudaStream_t stream, const A &...a)
{
    static_assert(sizeof...(P) == sizeof...(A),
                  "the launch gives another number of arguments than the kernel takes");
    Launch l(name, (const void *)kernel, grid, block, bytes, stream);
    std::tuple<std::decay_t<P>...> values{l.template argument<std::decay_t<P>>(a)...};
    return l.submit([kernel, values] { std::apply(kernel, values); });
}

} // namespace sim
