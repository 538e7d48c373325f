/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isa.c -- which instruction set to use. The compiler's cpuid support also asks the operating system (XGETBV) whether it saves the wide registers.
 * A set that configure did not find the compiler to know (HAVE_KERN_*) is not usable.
 */
#include "classes.h"

const char *hl_isa_name(hl_isa isa)
{
    static const char *const names[HL_ISAS] = {"generic", "avx2", "avx512f"};
    return (unsigned)isa < HL_ISAS ? names[isa] : "?";
}

bool hl_isa_usable(hl_isa isa)
{
    if (isa == HL_ISA_GENERIC) return true;
#ifdef HAVE_KERN_AVX2
    if (isa == HL_ISA_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
#ifdef HAVE_KERN_AVX512F
    if (isa == HL_ISA_AVX512F)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd");
#endif
    return false;
}

halo_status hl_isa_choose(halo_context *ctx, const char *name, hl_isa *isa)
{
    if (!name || !*name) {
        int best = HL_ISAS - 1;
        while (best > HL_ISA_GENERIC && !hl_isa_usable((hl_isa)best)) best--;
        *isa = (hl_isa)best;
        return HALO_OK;
    }
    for (int i = 0; i < HL_ISAS; i++) {
        if (strcmp(name, hl_isa_name((hl_isa)i)) != 0) continue;
        if (!hl_isa_usable((hl_isa)i))
            return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "cannot use instruction set '%s': this processor or this build lacks it", name);
        *isa = (hl_isa)i;
        return HALO_OK;
    }
    return hl_fail(ctx, HALO_ERR_USAGE, "unknown instruction set '%s' (known: generic, avx2, avx512f)", name);
}
