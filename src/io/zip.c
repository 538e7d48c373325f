/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.c -- an archive ends in a table of its members (PKWARE, "APPNOTE.TXT - .ZIP File Format Specification", 6.3): the last record tells where the table
 * is, an entry of it where a member's local header is, behind which its bytes lie. Sizes of 32 bits that are all ones stand in a ZIP64 field instead.
 *
 * Every number comes from the file and is compared with the file's size before it is used; deflate cannot pack more than 1032 bytes into one, so that a member which
 * claims more is refused before anything is allocated for it.
 */
#include "io/zip.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

enum { END = 22, LOCATOR = 20, END64 = 56, ENTRY = 46, LOCAL = 30 }; /* bytes of the records */
#define TABLE_MOST    (INT64_C(64) << 20)
#define DEFLATE_RATIO 1032

halo_status hl_bytes_read(const hl_bytes *f, int64_t at, void *out, size_t n, bool data)
{
    char *to = out;
    for (size_t done = 0; done < n;) {
        size_t part = n - done < (size_t)1 << 30 ? n - done : (size_t)1 << 30; /* one call reads less than 2 GiB on Linux */
        ssize_t got = pread(f->fd, to + done, part, (off_t)(at + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return hl_fail(f->ctx, HALO_ERR_IO, "cannot read '%s': %s", f->path, strerror(errno));
        if (got == 0) return hl_fail(f->ctx, HALO_ERR_FORMAT, "cannot read '%s': it ends at byte %" PRId64 ", which was not so when it was opened", f->path, at + (int64_t)done);
        done += (size_t)got;
    }
    if (f->count) *(data ? &f->count->data : &f->count->other) += (int64_t)n;
    return HALO_OK;
}

static uint64_t number(const unsigned char *b, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | b[i];
    return v;
}

static halo_status damaged(const hl_bytes *f, const char *what) { return hl_fail(f->ctx, HALO_ERR_FORMAT, "'%s': damaged or truncated: %s", f->path, what); }

typedef struct table { uint64_t entries, bytes, at; } table;

/* From the ZIP64 records before the last one, at `end`. */
static halo_status find_table64(const hl_bytes *f, int64_t end, table *t)
{
    unsigned char b[END64];
    if (end < LOCATOR) return damaged(f, "no ZIP64 record");
    HL_TRY(hl_bytes_read(f, end - LOCATOR, b, LOCATOR, false));
    uint64_t at = number(b + 8, 8);
    if (number(b, 4) != 0x07064b50 || at > (uint64_t)f->size || (uint64_t)f->size - at < END64) return damaged(f, "no ZIP64 record");
    HL_TRY(hl_bytes_read(f, (int64_t)at, b, END64, false));
    if (number(b, 4) != 0x06064b50) return damaged(f, "no ZIP64 record");
    *t = (table){number(b + 32, 8), number(b + 40, 8), number(b + 48, 8)};
    return HALO_OK;
}

/* The last record is found by its signature, from the end backwards: a comment of up to 64 KiB may follow it. */
static halo_status find_table(const hl_bytes *f, table *t)
{
    int64_t most = hl_min64(f->size, END + 65535), at = -1;
    *t = (table){0, 0, 0};
    unsigned char *tail = NULL;
    if (most < END) return damaged(f, "too short for an archive");
    HL_TRY(hl_aligned(f->ctx, (size_t)most, "the end of an archive", &tail));
    halo_status st = hl_bytes_read(f, f->size - most, tail, (size_t)most, false);
    for (int64_t i = most - END; i >= 0 && at < 0 && st == HALO_OK; i--)
        if (number(tail + i, 4) == 0x06054b50) at = i;
    if (st == HALO_OK && at < 0) st = damaged(f, "no table of members at its end");
    if (st == HALO_OK) {
        const unsigned char *e = tail + at;
        *t = (table){number(e + 10, 2), number(e + 12, 4), number(e + 16, 4)};
        if (t->entries == 0xffff || t->bytes == 0xffffffff || t->at == 0xffffffff) st = find_table64(f, f->size - most + at, t);
    }
    free(tail);
    if (st != HALO_OK) return st;
    if (t->bytes > (uint64_t)f->size || t->at > (uint64_t)f->size - t->bytes || t->bytes > TABLE_MOST) return damaged(f, "its table of members lies beyond its end");
    return HALO_OK;
}

/* Sizes and place from the ZIP64 field, where those of 32 bits are all ones. */
static bool widen(const unsigned char *extra, size_t bytes, uint64_t *v[3])
{
    bool wanted = false;
    for (int i = 0; i < 3; i++) wanted = wanted || *v[i] == 0xffffffff;
    while (wanted && bytes >= 4) {
        size_t id = (size_t)number(extra, 2), n = (size_t)number(extra + 2, 2), at = 0;
        if (n > bytes - 4) return false;
        for (int i = 0; i < 3 && id == 1; i++) {
            if (*v[i] != 0xffffffff) continue;
            if (n - at < 8) return false;
            *v[i] = number(extra + 4 + at, 8);
            at += 8;
        }
        if (id == 1) return true;
        extra += 4 + n;
        bytes -= 4 + n;
    }
    return !wanted;
}

static halo_status add_member(const hl_bytes *f, const unsigned char *e, size_t names, size_t extras, hl_zip *z)
{
    uint64_t stored = number(e + 20, 4), size = number(e + 24, 4), at = number(e + 42, 4);
    uint64_t *wide[3] = {&size, &stored, &at};
    if (!widen(e + ENTRY + names, extras, wide)) return damaged(f, "an entry of its table makes no sense");
    if (stored > (uint64_t)f->size || at > (uint64_t)f->size || size > INT64_MAX) return damaged(f, "a member lies beyond its end");
    HL_TRY(hl_grow(f->ctx, &z->member, &z->cap, z->n + 1, sizeof(*z->member), "members of an archive"));
    hl_zip_member *m = &z->member[z->n];
    *m = (hl_zip_member){.header = (int64_t)at, .stored = (int64_t)stored, .size = (int64_t)size, .crc = (uint32_t)number(e + 16, 4), .method = (int)number(e + 10, 2),
                         .encrypted = e[8] & 1};
    HL_TRY(hl_calloc(f->ctx, names + 1, 1, "the name of a member", &m->name));
    memcpy(m->name, e + ENTRY, names);
    for (char *c = m->name; *c; c++)
        if ((unsigned char)*c < 32) *c = '?'; /* messages have one line */
    z->n++;
    return HALO_OK;
}

static halo_status read_entries(const hl_bytes *f, const unsigned char *b, const table *t, hl_zip *z)
{
    size_t at = 0, bytes = (size_t)t->bytes;
    for (uint64_t i = 0; i < t->entries; i++) {
        if (bytes - at < ENTRY || number(b + at, 4) != 0x02014b50) return damaged(f, "its table of members ends early");
        size_t names = (size_t)number(b + at + 28, 2), extras = (size_t)number(b + at + 30, 2), all = ENTRY + names + extras + (size_t)number(b + at + 32, 2);
        if (bytes - at < all) return damaged(f, "its table of members ends early");
        HL_TRY(add_member(f, b + at, names, extras, z));
        at += all;
    }
    return HALO_OK;
}

halo_status hl_zip_list(const hl_bytes *f, hl_zip *zip)
{
    table t;
    unsigned char *b = NULL;
    *zip = (hl_zip){0};
    HL_TRY(find_table(f, &t));
    HL_TRY(hl_aligned(f->ctx, (size_t)t.bytes + 1, "the table of an archive", &b));
    halo_status st = hl_bytes_read(f, (int64_t)t.at, b, (size_t)t.bytes, false);
    if (st == HALO_OK) st = read_entries(f, b, &t, zip);
    free(b);
    if (st != HALO_OK) hl_zip_free(zip);
    return st;
}

void hl_zip_free(hl_zip *z)
{
    for (size_t i = 0; i < z->n; i++) free(z->member[i].name);
    free(z->member);
    *z = (hl_zip){0};
}

halo_status hl_zip_find(const hl_bytes *f, const hl_zip_member *m, int64_t *at)
{
    unsigned char b[LOCAL];
    if (m->encrypted) return hl_fail(f->ctx, HALO_ERR_UNSUPPORTED, "'%s': member '%s' is encrypted", f->path, m->name);
    if (m->method != 0 && m->method != 8)
        return hl_fail(f->ctx, HALO_ERR_UNSUPPORTED, "'%s': member '%s' is compressed by method %d; only stored (0) and deflated (8) ones can be read", f->path, m->name, m->method);
#ifndef HAVE_ZLIB
    if (m->method == 8)
        return hl_fail(f->ctx, HALO_ERR_UNSUPPORTED, "'%s': member '%s' is deflated, and this build has no zlib; numpy.savez writes members as they are", f->path, m->name);
#endif
    if (f->size - m->header < LOCAL) return damaged(f, "a member lies beyond its end");
    HL_TRY(hl_bytes_read(f, m->header, b, LOCAL, false));
    *at = m->header + LOCAL + (int64_t)number(b + 26, 2) + (int64_t)number(b + 28, 2);
    if (number(b, 4) != 0x04034b50) return damaged(f, "a member is not where its table says");
    if (*at > f->size - m->stored)
        return hl_fail(f->ctx, HALO_ERR_FORMAT, "'%s': truncated: member '%s' lies beyond its end", f->path, m->name);
    if (m->method == 0 ? m->size != m->stored : m->size / DEFLATE_RATIO > m->stored)
        return hl_fail(f->ctx, HALO_ERR_FORMAT, "'%s': member '%s' claims %" PRId64 " bytes, but only %" PRId64 " of it are stored", f->path, m->name, m->size, m->stored);
    return HALO_OK;
}

/* -------------------------------------------------------------------------------------------------------- inflating */

#ifdef HAVE_ZLIB

enum { PART = 1 << 18 };

typedef struct inflater {
    z_stream z;
    const hl_bytes *file;
    int64_t at, left; /* of the member in the file */
    unsigned char *in;
} inflater;

static halo_status refill(inflater *f)
{
    size_t n = (size_t)hl_min64(f->left, PART);
    HL_TRY(hl_bytes_read(f->file, f->at, f->in, n, true));
    f->at += (int64_t)n;
    f->left -= (int64_t)n;
    f->z.next_in = f->in;
    f->z.avail_in = (uInt)n;
    return HALO_OK;
}

/* `n` bytes into `out`; false in *good where the stream is damaged or ends before. */
static halo_status unpack(inflater *f, unsigned char *out, size_t n, bool *good)
{
    size_t done = 0;
    int rc = Z_OK;
    *good = false;
    while (done < n) {
        if (f->z.avail_in == 0 && f->left > 0) HL_TRY(refill(f));
        uInt room = (uInt)(n - done < (size_t)1 << 30 ? n - done : (size_t)1 << 30);
        f->z.next_out = out + done;
        f->z.avail_out = room;
        rc = inflate(&f->z, Z_NO_FLUSH);
        size_t made = room - f->z.avail_out;
        done += made;
        if (rc == Z_STREAM_END) break;
        if ((rc != Z_OK && rc != Z_BUF_ERROR) || (made == 0 && f->z.avail_in == 0 && f->left == 0)) return HALO_OK;
    }
    *good = done == n;
    return HALO_OK;
}

static uint32_t checksum(const unsigned char *data, size_t n)
{
    uLong crc = crc32(0, NULL, 0);
    for (size_t done = 0; done < n;) {
        size_t part = n - done < (size_t)1 << 30 ? n - done : (size_t)1 << 30;
        crc = crc32(crc, data + done, (uInt)part);
        done += part;
    }
    return (uint32_t)crc;
}

halo_status hl_zip_inflate(const hl_bytes *file, const hl_zip_member *m, int64_t at, void *out, size_t n)
{
    inflater f = {.file = file, .at = at, .left = m->stored};
    bool good = false;
    HL_TRY(hl_aligned(file->ctx, PART, "a part of an archive", &f.in));
    halo_status st = inflateInit2(&f.z, -MAX_WBITS) == Z_OK ? HALO_OK : hl_fail(file->ctx, HALO_ERR_NOMEM, "out of memory: inflating '%s'", file->path);
    if (st == HALO_OK) {
        st = unpack(&f, out, n, &good);
        inflateEnd(&f.z);
    }
    free(f.in);
    if (st == HALO_OK && good && n == (size_t)m->size) good = checksum(out, n) == m->crc;
    if (st != HALO_OK || good) return st;
    return hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': member '%s' is damaged: it cannot be inflated to what it was", file->path, m->name);
}

halo_status hl_zip_check(const hl_bytes *file, const hl_zip_member *m, int64_t at)
{
    unsigned char *part;
    uLong crc = crc32(0, NULL, 0);
    halo_status st = HALO_OK;
    if (m->method != 0) return HALO_OK;
    HL_TRY(hl_aligned(file->ctx, PART, "a part of an archive", &part));
    for (int64_t done = 0; done < m->size && st == HALO_OK; done += PART) {
        int64_t n = hl_min64(PART, m->size - done);
        st = hl_bytes_read(file, at + done, part, (size_t)n, true);
        if (st == HALO_OK) crc = crc32(crc, part, (uInt)n);
    }
    free(part);
    if (st != HALO_OK || (uint32_t)crc == m->crc) return st;
    return hl_fail(file->ctx, HALO_ERR_FORMAT, "'%s': member '%s' is damaged: its checksum is %08x, its content gives %08x", file->path, m->name, (unsigned)m->crc, (unsigned)crc);
}

#else

halo_status hl_zip_check(const hl_bytes *file, const hl_zip_member *m, int64_t at)
{
    (void)file, (void)m, (void)at;
    return HALO_OK;
}

halo_status hl_zip_inflate(const hl_bytes *file, const hl_zip_member *m, int64_t at, void *out, size_t n)
{
    (void)at, (void)out, (void)n;
    return hl_fail(file->ctx, HALO_ERR_UNSUPPORTED, "'%s': member '%s' is deflated, and this build has no zlib", file->path, m->name);
}

#endif
