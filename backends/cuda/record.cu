/* SPDX-License-Identifier: Apache-2.0 */
/* record.cu -- writes the step record, which comes as the kernel's own argument. */
#include "words.cuh"

HL_KERNEL(1) put_record(halo_step_record *to, halo_step_record record) { *to = record; }

extern "C" cudaError_t hl_cuda_put_record(cudaStream_t stream, halo_step_record *to, const halo_step_record *record)
{
    return HL_LAUNCH(put_record, 1, 1, 0, stream, HL_SPAN(to, 1), *record);
}
