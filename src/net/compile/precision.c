/* SPDX-License-Identifier: Apache-2.0 */
/*
 * precision.c -- a dtype per value: activations and their gradients have the device's type, and so have targets unless that has 16 bits, which hold neither class
 * numbers nor large values exactly: then they are f32. Statistics and sample weights are f64 (contract). Parameters, their gradients and the optimiser's state have the
 * model's type, f32 with 16-bit activations; images of weights are what the implementations want. An operation that the device lacks for 16 bits is done in f32
 * between conversions of its own (backend/widen.c), so no step is added here.
 */
#include "net/compile/compile.h"

halo_status hl_pass_precision(hl_program *p)
{
    for (int i = 0; i < p->values; i++) {
        hl_value *v = &p->value[i];
        if (v->kind == HL_VALUE_STATISTICS || i == p->weight)
            v->dtype = HALO_F64;
        else if (v->dtype == HALO_NONE)
            v->dtype = v->kind == HL_VALUE_TARGET && hl_dtype_size(p->dev->compute) < 4 ? HALO_F32 : p->dev->compute;
    }
    return HALO_OK;
}
