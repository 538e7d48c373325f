/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h -- FNV-1a of 64 bits (Fowler, Noll & Vo), the same everywhere and for ever: for names of files, and names as counters. */
#ifndef HL_HASH_H
#define HL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HL_HASH_START UINT64_C(0xcbf29ce484222325)

/* That of what came before, HL_HASH_START of nothing, and these bytes. */
static inline uint64_t hl_hash(uint64_t before, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) before = (before ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return before;
}

#endif
