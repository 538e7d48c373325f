/* SPDX-License-Identifier: Apache-2.0 */
/* example.hpp -- the launches of example.cu, as a backend's C would see them. */
#pragma once
#include <cstdint>
#include <cuda_runtime_api.h>

extern "C" {
cudaError_t example_scale(cudaStream_t s, float *y, const float *x, float a, int64_t n);
cudaError_t example_scale_rest(cudaStream_t s, float *y, const float *x, float a,
                               int64_t n); /* names no bytes */
cudaError_t example_fill_box(cudaStream_t s, float *y, const int64_t *extent, const int64_t *stride, float v);
cudaError_t example_cast(cudaStream_t s, void *y, const float *x, int64_t n);
cudaError_t example_sum(cudaStream_t s, float *out, const float *x, int64_t n);
cudaError_t example_transpose(cudaStream_t s, float *y, const float *x, int rows, int columns);
cudaError_t example_past_end(cudaStream_t s, float *y, int64_t n, int64_t by);
cudaError_t example_early_return(cudaStream_t s, float *y);
cudaError_t example_divergent(cudaStream_t s, float *y);
cudaError_t example_lonely_shuffle(cudaStream_t s, float *y);
cudaError_t example_hidden_pointer(cudaStream_t s, float *y);
cudaError_t example_fresh_shared(cudaStream_t s, float *y);
cudaError_t example_no_barrier(cudaStream_t s, float *y);
cudaError_t example_past_shared(cudaStream_t s, float *y);
cudaError_t example_too_many_threads(cudaStream_t s, float *y);
cudaError_t example_too_much_shared(cudaStream_t s, float *y, size_t bytes);
cudaError_t example_votes(cudaStream_t s, float *y);
const void *example_kernel(void);
}
