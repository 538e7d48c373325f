/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c -- the step record on the device. It is written by a kernel whose argument is the record itself, so there is no host memory to keep until
 * the device comes to it, and it is written only when it changed. Kernels that read it then need no argument that changes per step.
 */
#include "cuda.h"
#include "kernels.h"

halo_status hl_cuda_record(hl_cuda_device *dev, const halo_step_record *record, const halo_step_record **out)
{
    static const halo_step_record none;
    const halo_step_record *r = record ? record : &none;
    *out = dev->record;
    if (dev->capturing) return HALO_OK; /* it is there before the graph is launched */
    if (!dev->recorded || memcmp(r, &dev->seen, sizeof(*r)) != 0) {
        HL_CUDA(dev, hl_cuda_put_record(dev->compute, dev->record, r));
        dev->seen = *r;
        dev->recorded = true;
    }
    return HALO_OK;
}
