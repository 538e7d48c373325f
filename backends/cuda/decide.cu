/* SPDX-License-Identifier: Apache-2.0 */
/* decide.cu -- what becomes of a step's gradients, from their square sums and the loss: one block, so that nobody has to come back to the host for it. */
#include "words.cuh"

HL_KERNEL(HL_BLOCK) decide(int64_t tensors, double clip, const double *norms, double *number, const halo_step_record *record)
{
    HL_SHARED(double, shared, HL_BLOCK * 2);
    double v[2] = {0, 0}, largest = 0;
    for (int64_t i = threadIdx.x; i < tensors; i += HL_BLOCK) {
        v[0] += norms[3 * i];
        v[1] += norms[3 * i + 1];
        largest = fmax(largest, norms[3 * i + 2]);
    }
    hl_block_sum<2>(v, shared);
    shared[threadIdx.x] = largest;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < HL_BLOCK; i++) largest = fmax(largest, shared[i]);
    double norm = sqrt(v[0]) * fabs(record->grad_scale);
    number[HALO_NUM_FACTOR] = clip > 0 && norm > clip ? clip / norm : 1;
    number[HALO_NUM_SKIP] = !isfinite(number[HALO_NUM_LOSS]) || !isfinite(v[0]) || v[1] != 0;
    number[HALO_NUM_SQUARES] = v[0];
    number[HALO_NUM_BAD] = v[1];
    number[HALO_NUM_LARGEST] = largest;
}

extern "C" cudaError_t hl_cuda_decide_step(cudaStream_t stream, int64_t tensors, double clip, const double *norms, double *number, const halo_step_record *record)
{
    return HL_LAUNCH(decide, 1, HL_BLOCK, 0, stream, tensors, clip, HL_SPAN(norms, 3 * tensors), HL_SPAN(number, HALO_NUMBERS), HL_SPAN(record, 1));
}
