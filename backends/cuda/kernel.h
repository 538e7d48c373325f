/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h -- the words that our CUDA kernels are written in. The first include of every .cu file, and nothing
 * that C sees.
 *
 * The same .cu file has two compilers: nvcc for the product, and the C++ compiler for the simulated device of
 * the tests (tests/cudasim), which puts its own header before this one and defines these macros itself. Both
 * see the toolkit's real headers. That needs rules:
 *
 *     HL_KERNEL(256) leaky(float *y, const float *x, float slope, int64_t n)
 *     {
 *         HL_SHARED(float, part, 32);
 *         HL_SHARED_DYNAMIC(float, line);
 *         for (int64_t i = HL_INDEX; i < n; i += HL_STRIDE) y[i] = x[i] > 0 ? x[i] : slope * x[i];
 *     }
 *     extern "C" cudaError_t hl_cuda_leaky(cudaStream_t stream, float *y, const float *x, float slope, int64_t n)
 *     {
 *         return HL_LAUNCH(leaky, grid, block, 0, stream, HL_SPAN(y, n), HL_SPAN(x, n), slope, n);
 *     }
 *
 * - HL_KERNEL(threads): a kernel and the most threads of its block; template <class T> may stand before it.
 * - HL_SHARED(type, name, n): shared memory of the block, one dimension, n known at compile time.
 *   HL_SHARED_DYNAMIC(type, name): shared memory whose bytes the launch names, at most one per kernel.
 * - HL_LAUNCH(kernel, grid, block, bytes of dynamic shared memory, stream, arguments...) is an expression: the
 *   cudaError_t of the launch. The stream is always named. A template with a comma is put in parentheses:
 *   HL_LAUNCH((cast<float, __half>), ...). At least one argument.
 * - Pointers to device memory are direct parameters of the kernel, never members of a struct and never read
 *   from memory: the simulator translates the arguments and sees nothing else. Structs of numbers are fine.
 *   `const T *` says "only read", `T *` "written".
 * - Which bytes: HL_SPAN(p, n), n elements from p on; HL_BOX(p, rank, extent, stride), a strided box from p on
 *   (int64_t arrays in elements, the order of dimensions does not matter); p alone means all that follows in
 *   its allocation. They are for the simulator, which compares what unordered streams touch and refuses what
 *   does not lie in one allocation; nvcc sees p. Two streams that write disjoint parts of one buffer need them.
 *   A null pointer is passed as it is: an operand that is not there.
 * - Threads meet through __syncthreads, __syncwarp, __shfl_sync, __shfl_down_sync, __shfl_up_sync,
 *   __shfl_xor_sync, __ballot_sync, __any_sync, __all_sync, with all of the block or of the mask, none having
 *   returned before. atomicAdd, atomicMax, atomicMin, atomicOr, atomicCAS, atomicExch on int, unsigned,
 *   unsigned long long (atomicAdd: also float, double). No cooperative groups, textures, wmma, __constant__ or
 *   __device__ variables.
 * - Arithmetic in float (or double): __half and __nv_bfloat16 are converted on load and store (__half2float,
 *   __float2half_rn, __bfloat162float, __float2bfloat16_rn). No half2 intrinsics, no operators on them. Vector
 *   loads through float4 and the like are fine where aligned.
 * - The mathematics of <math.h> by its C names (expf, fmaxf, fmaf ...), rsqrtf, __expf, __ldg, __fdividef. Not
 *   min and max: write fminf or ?:.
 * - Sizes and indices are int64_t. gridDim.x is at most 2^31 - 1, y and z 65535; a block at most 1024 threads.
 */
#ifndef HL_CUDA_KERNEL_H
#define HL_CUDA_KERNEL_H

#include <stdint.h>
#include <math.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

#ifndef HL_CUDASIM /* nvcc */
/* One block per multiprocessor at least: without the number ptxas counts on more blocks for some architectures, and spills registers for them. */
#define HL_KERNEL(threads) __global__ void __launch_bounds__(threads, 1)
#define HL_SHARED(type, name, n) __shared__ type name[n]
#define HL_SHARED_DYNAMIC(type, name)                                                                        \
    extern __shared__ __align__(16) unsigned char hl_dynamic_[];                                             \
    type *name = reinterpret_cast<type *>(hl_dynamic_)
#define HL_LAUNCH(kernel, grid, block, bytes, stream, ...)                                                   \
    (kernel<<<grid, block, bytes, stream>>>(__VA_ARGS__), cudaGetLastError())
#define HL_SPAN(p, n) (p)
#define HL_BOX(p, rank, extent, stride) (p)
#endif

/* One thread's first element and step in a loop over all elements by all threads of a one-dimensional grid. */
#define HL_INDEX  ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define HL_STRIDE ((int64_t)gridDim.x * blockDim.x)

#endif
