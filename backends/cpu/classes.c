/* SPDX-License-Identifier: Apache-2.0 */
/* classes.c -- which operations this build of the cpu backend has. */
#include "classes.h"

#include <stdio.h>

const halo_op_class *const hl_cpu_classes[HALO_OP_KINDS] = {NULL};

const struct hl_kern *hl_cpu_kern(hl_isa isa)
{
    (void)isa;
    return NULL;
}

void hl_cpu_libraries(char *out, size_t size) { snprintf(out, size, "CBLAS"); }

void hl_cpu_candidate(const hl_cpu_device *dev, const char *algorithm, double items, halo_candidate *out)
{
    *out = (halo_candidate){.items = items};
    snprintf(out->impl, sizeof(out->impl), "%s:%s", algorithm, hl_isa_name(dev->isa));
}
