/* SPDX-License-Identifier: Apache-2.0 */
/* isa.h -- the instruction sets. Apart from cpu.h, so that the convolution kernels, which take minutes to compile, depend on little. */
#ifndef HL_ISA_H
#define HL_ISA_H

#include "base/base.h"

/* What a kernel is compiled for. AVX512F is the foundation alone (no BW, DQ, VL): what every AVX-512 machine has, Knights Landing included. */
typedef enum hl_isa { HL_ISA_GENERIC = 0, HL_ISA_AVX2, HL_ISA_AVX512F, HL_ISAS } hl_isa;

const char *hl_isa_name(hl_isa isa); /* "generic", "avx2", "avx512f" */
/* This machine (processor and operating system) and this build have it. */
bool hl_isa_usable(hl_isa isa);
/* `name` NULL or "": the best usable one; else that one, or an error that says what is lacking. */
halo_status hl_isa_choose(halo_context *ctx, const char *name, hl_isa *isa);

#endif
