/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.cpp -- that kernels compiled by the C++ compiler compute what they should, in any order of blocks
 * and threads, and that defects in them show. */
#include "check.hpp"
#include "example.hpp"
#include "sanitize.hpp"
#include <cmath>
#include <cuda_fp16.h>

static std::vector<float> ramp(size_t n)
{
    std::vector<float> v(n);
    for (size_t i = 0; i < n; i++) v[i] = 0.25f * (float)(i % 97) - 3;
    return v;
}

static void scales()
{
    std::vector<float> x = ramp(1000), y;
    float *dx = upload(x), *dy = device_floats(1000);
    GOOD(example_scale(nullptr, dy, dx, 2, 1000));
    y = download(dy, 1000);
    for (size_t i = 0; i < 1000; i++) HOLDS(y[i] == 2 * x[i]);
}

static void casts()
{
    std::vector<float> x = ramp(300);
    float *dx = upload(x);
    void *dh;
    std::vector<__half> h(300);
    GOOD(cudaMalloc(&dh, 600));
    GOOD(example_cast(nullptr, dh, dx, 300));
    GOOD(cudaMemcpy(h.data(), dh, 600, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < 300; i++) HOLDS(__half2float(h[i]) == x[i]); /* quarters are exact */
}

static void sums()
{
    std::vector<float> x = ramp(5000);
    double want = 0;
    for (float v : x) want += v;
    float *dx = upload(x), *out = device_floats(1);
    GOOD(cudaMemset(out, 0, sizeof(float)));
    GOOD(example_sum(nullptr, out, dx, 5000));
    HOLDS(std::fabs(download(out, 1)[0] - want) <= 1e-5 * std::fabs(want) + 1e-2);
}

static void transposes()
{
    std::vector<float> x = ramp(35 * 50), y;
    float *dx = upload(x), *dy = device_floats(35 * 50);
    GOOD(example_transpose(nullptr, dy, dx, 35, 50));
    y = download(dy, 35 * 50);
    for (size_t r = 0; r < 35; r++)
        for (size_t c = 0; c < 50; c++) HOLDS(y[c * 35 + r] == x[r * 50 + c]);
}

static void fills_box()
{
    const int64_t extent[3] = {2, 3, 4}, stride[3] = {100, 10, 1};
    float *y = upload(std::vector<float>(200, 0.0f));
    GOOD(example_fill_box(nullptr, y + 11, extent, stride, 5));
    std::vector<float> v = download(y, 200);
    for (int i = 0; i < 200; i++) {
        int d = (i - 11) / 100, h = (i - 11) % 100 / 10, w = (i - 11) % 10;
        HOLDS(v[(size_t)i] == (i >= 11 && d < 2 && h < 3 && w < 4 ? 5.0f : 0.0f));
    }
}

static void votes()
{
    float *y = device_floats(64);
    GOOD(example_votes(nullptr, y));
    std::vector<float> v = download(y, 64);
    for (int i = 0; i < 64; i++) {
        float up = (float)(i % 32 ? i - 1 : i);
        HOLDS(v[(size_t)i] == 1000000.f + (i >= 32 ? 100000.f : 10000.f) + 100 * up + (float)(i / 32 * 32));
    }
}

static void past_end(int64_t by)
{
    float *y = device_floats(63);
    GOOD(example_past_end(nullptr, y, 63, by));
    GOOD(cudaDeviceSynchronize());
    GOOD(cudaFree(y));
}

int main(void)
{
    for (const char *settings : {"CUDASIM_VERBOSE=0", "CUDASIM_SEED=1", "CUDASIM_SEED=5"}) {
        clean("an element-wise kernel", settings, scales);
        clean("a template's instance that converts to half", settings, casts);
        clean("a sum through lanes, shared memory and an atomic", settings, sums);
        clean("a transpose through dynamic shared memory, two-dimensional blocks", settings, transposes);
        clean("a strided box", settings, fills_box);
        clean("votes and shuffles of whole warps", settings, votes);
    }
    caught(
        "a kernel that writes just past its buffer is found when that is freed", "",
        "past the end of allocation #1 (252 bytes), at offset 252", [] { past_end(1); }, "AddressSanitizer");
    caught(
        "one that writes far past it faults, with its name", "", "'past_end' touched device memory outside",
        [] { past_end(100000); }, "AddressSanitizer");
    caught("a barrier after some threads returned", "",
           "'early_return': __syncthreads() after 7 of the block's 64 threads", [] {
               GOOD(example_early_return(nullptr, device_floats(64)));
               GOOD(cudaDeviceSynchronize());
           });
    caught("a barrier that not all threads reach", "", "kernel 'divergent'", [] {
        GOOD(example_divergent(nullptr, device_floats(64)));
        GOOD(cudaDeviceSynchronize());
    });
    caught("a warp function of all lanes in half a warp", "", "a warp function of all lanes in a warp of 16",
           [] {
               GOOD(example_lonely_shuffle(nullptr, device_floats(64)));
               GOOD(cudaDeviceSynchronize());
           });
    caught("a device pointer hidden in a structure", "",
           "kernel 'hidden_pointer' followed a device pointer that was no argument", [] {
               GOOD(example_hidden_pointer(nullptr, device_floats(1)));
               GOOD(cudaDeviceSynchronize());
           });
    clean("shared memory that nobody set is NaN in every block", "", [] {
        float *y = device_floats(2);
        GOOD(example_fresh_shared(nullptr, y));
        for (float v : download(y, 2)) HOLDS(std::isnan(v));
    });
#if SIM_TSAN
    caught("a missing __syncthreads() is a data race to the thread sanitizer", "TSAN_OPTIONS=exitcode=66",
           "data race", [] {
               GOOD(example_no_barrier(nullptr, device_floats(64)));
               GOOD(cudaDeviceSynchronize());
               exit(0);
           });
#else
    clean("a missing __syncthreads() reads NaN where the writer comes later", "", [] {
        float *y = device_floats(64);
        GOOD(example_no_barrier(nullptr, y));
        HOLDS(std::isnan(download(y, 1)[0]));
    });
#endif
#if SIM_ASAN
    caught("a write past shared memory is named by the address sanitizer", "", "example.cu", [] {
        GOOD(example_past_shared(nullptr, device_floats(64)));
        GOOD(cudaDeviceSynchronize());
    });
#else
    tap_skip("a write past shared memory: the address sanitizer sees it");
#endif
    told("a block of 1025 threads is refused", "", "blocks (1025,1,1)",
         [] { HOLDS(example_too_many_threads(nullptr, device_floats(1)) == cudaErrorInvalidConfiguration); });
    told("more than 48 KiB of dynamic shared memory want an opt-in", "",
         "65536 bytes of dynamic shared memory, 49152 allowed", [] {
             float *y = device_floats(1);
             HOLDS(example_too_much_shared(nullptr, y, 65536) == cudaErrorInvalidValue);
             GOOD(cudaFuncSetAttribute(example_kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
             GOOD(example_too_much_shared(nullptr, y, 65536));
             GOOD(cudaDeviceSynchronize());
         });
    told("a host pointer is refused by a kernel", "", "is a host pointer", [] {
        std::vector<float> x(10);
        HOLDS(example_scale(nullptr, device_floats(10), x.data(), 1, 10) == cudaErrorIllegalAddress);
        HOLDS(cudaGetLastError() == cudaErrorIllegalAddress && cudaGetLastError() == cudaSuccess);
    });
    told("a span that leaves its allocation is refused before the kernel runs", "",
         "run past allocation #1 of 40 bytes", [] {
             float *y = device_floats(10);
             HOLDS(example_scale(nullptr, y, y + 1, 1, 10) == cudaErrorIllegalAddress);
         });
    clean("a kernel without an image for the device does not start, and is recognised before",
          "CUDASIM_SM=70 CUDASIM_IMAGES=75,80", [] {
              cudaFuncAttributes a;
              HOLDS(cudaFuncGetAttributes(&a, example_kernel()) == cudaErrorNoKernelImageForDevice);
              float *y = device_floats(10);
              HOLDS(example_scale(nullptr, y, y, 1, 10) == cudaErrorNoKernelImageForDevice);
          });
    return tap_done();
}
