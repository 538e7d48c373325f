/* SPDX-License-Identifier: Apache-2.0 */
/* The convolution kernels for 8 channel lanes; HL_KERN (generic, avx2, avx512f) comes from the build. */
#define HL_LANES 8
#define HL_PASTE(isa) hl_conv_kern_##isa##_8
#define HL_NAMED(isa) HL_PASTE(isa)
#define HL_TABLE HL_NAMED(HL_KERN)
extern const struct hl_conv_kern HL_TABLE;
#include "conv_body.h"
