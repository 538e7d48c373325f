/* SPDX-License-Identifier: Apache-2.0 */
/* classes.h -- the operations of the cpu backend, and the libraries under it. */
#ifndef HL_CPU_CLASSES_H
#define HL_CPU_CLASSES_H

#include "cpu.h"

extern const halo_op_class *const hl_cpu_classes[HALO_OP_KINDS];

/* The pointwise kernels compiled for `isa` (usable ones only). */
const struct hl_kern *hl_cpu_kern(hl_isa isa);

/* "OpenBLAS 0.3.21, oneDNN 2.6.3" into out. */
void hl_cpu_libraries(char *out, size_t size);

#endif
