/* SPDX-License-Identifier: Apache-2.0 */
/* zip.h -- the members of a ZIP archive, as far as NPZ files need them: stored or deflated, ZIP64 or not, not encrypted, in one part. */
#ifndef HL_IO_ZIP_H
#define HL_IO_ZIP_H

#include "io/io.h"

typedef struct hl_bytes { /* a file that is open for reading */
    halo_context *ctx;
    const char *path;
    int fd;
    int64_t size;
    hl_read_count *count; /* may be NULL */
} hl_bytes;

/* n bytes at `at`, which the file has. As data, or as what is needed to find them. */
halo_status hl_bytes_read(const hl_bytes *file, int64_t at, void *out, size_t n, bool data);

typedef struct hl_zip_member {
    char *name;
    int64_t header;       /* where its local header is */
    int64_t stored, size; /* bytes in the file, and unpacked */
    uint32_t crc;
    int method; /* 0 stored, 8 deflated, others cannot be read */
    bool encrypted;
} hl_zip_member;

typedef struct hl_zip {
    hl_zip_member *member;
    size_t n, cap;
} hl_zip;

/* The archive's own table of contents. HALO_ERR_FORMAT where it is none, or damaged. */
halo_status hl_zip_list(const hl_bytes *file, hl_zip *zip);
void hl_zip_free(hl_zip *zip);
/* Where the bytes of a member are, all of which the file has. Refused: methods that are not known, sizes that cannot be true. */
halo_status hl_zip_find(const hl_bytes *file, const hl_zip_member *member, int64_t *at);
/* The first n bytes of a deflated member whose bytes are `at`; of all of them the checksum is compared. */
halo_status hl_zip_inflate(const hl_bytes *file, const hl_zip_member *member, int64_t at, void *out, size_t n);
/* Reads a stored member, whose bytes are `at`, for its checksum alone; HALO_OK of others, and in builds without zlib. */
halo_status hl_zip_check(const hl_bytes *file, const hl_zip_member *member, int64_t at);

#endif
