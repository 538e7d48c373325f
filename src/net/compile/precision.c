/* SPDX-License-Identifier: Apache-2.0 */
/*
 * precision.c -- a dtype per value: activations, their gradients and the targets have the device's type;
 * statistics and sample weights are f64 (contract). Masters have the model's type. Casts come with the types
 * below f32.
 */
#include "net/compile/compile.h"

halo_status hl_pass_precision(hl_program *p)
{
    for (int i = 0; i < p->values; i++) {
        hl_value *v = &p->value[i];
        if (v->kind == HL_VALUE_STATISTICS || i == p->weight)
            v->dtype = HALO_F64;
        else if (v->dtype == HALO_NONE)
            v->dtype = p->dev->compute;
    }
    return HALO_OK;
}
