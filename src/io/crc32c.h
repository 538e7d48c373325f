/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.h -- the CRC of iSCSI (polynomial 0x1EDC6F41, reflected 0x82F63B78), RFC 3720 appendix B.4:
 * crc32c("123456789") = 0xe3069283. */
#ifndef HL_IO_CRC32C_H
#define HL_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

typedef struct hl_crc32c {
    uint32_t table[8][256];
} hl_crc32c; /* a few microseconds to fill; read-only afterwards */

void hl_crc32c_init(hl_crc32c *c);
/* Continues from `crc` (0 at the start) over n bytes. */
uint32_t hl_crc32c_of(const hl_crc32c *c, uint32_t crc, const void *data, size_t n);

#endif
