/* SPDX-License-Identifier: Apache-2.0 */
/* npytest.h -- writes NPY and NPZ files as NumPy does, in any type, byte order, memory order and version. Element i (as the writer counts, the last axis fastest) is i, or i modulo 100. */
#ifndef HL_TESTS_NPYTEST_H
#define HL_TESTS_NPYTEST_H

#include "tests/io/iotest.h"
#include "base/str.h"
#include "io/convert.h"

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

typedef struct npy_form {
    const char *descr; /* "<f4" */
    bool fortran;
    int version, ndim;
    int64_t dim[8];
    int64_t offset; /* added to the values */
} npy_form;

static inline uint16_t npy_half(double v) /* of whole numbers from 0 to 2047 */
{
    int e = 0;
    if (v == 0) return 0;
    while (v >= 2) v /= 2, e++;
    return (uint16_t)((e + 15) << 10 | (int)((v - 1) * 1024));
}

static inline double npy_value(const npy_form *f, int64_t i)
{
    char kind = f->descr[1];
    if (kind == 'b') return (double)((i + f->offset) % 3 == 0);
    return (double)((i + f->offset) % (f->descr[2] == '1' ? 100 : f->descr[2] == '2' ? 2000 : 1000000));
}

static inline void npy_put(const npy_form *f, double v, hl_str *out)
{
    union { int8_t b; int16_t s; int32_t l; int64_t q; uint16_t h; float f; double d; char c[8]; } u;
    int bytes = atoi(f->descr + 2);
    memset(&u, 0, sizeof(u));
    if (f->descr[1] != 'f') u.q = (int64_t)v; /* little endian: the low bytes */
    else if (bytes == 2) u.h = npy_half(v);
    else if (bytes == 4) u.f = (float)v;
    else u.d = v;
    if (f->descr[0] == '>') hl_swap_bytes(u.c, bytes, 1);
    hl_str_addn(out, u.c, (size_t)bytes);
}

/* The content of the file. */
static inline hl_str npy_text(const npy_form *f)
{
    hl_str header = {0}, out = {0};
    int64_t elements = 1;
    hl_str_addf(&header, "{'descr': '%s', 'fortran_order': %s, 'shape': (", f->descr, f->fortran ? "True" : "False");
    for (int k = 0; k < f->ndim; k++) {
        hl_str_addf(&header, "%" PRId64 "%s", f->dim[k], k + 1 < f->ndim ? ", " : f->ndim == 1 ? "," : "");
        elements *= f->dim[k];
    }
    hl_str_add(&header, "), }");
    size_t start = f->version == 1 ? 10 : 12;
    while ((start + header.len + 1) % 64) hl_str_add(&header, " ");
    hl_str_add(&header, "\n");
    char head[12] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y', (char)f->version, 0, (char)(header.len & 255), (char)(header.len >> 8), 0, 0};
    hl_str_addn(&out, head, start);
    hl_str_addn(&out, header.s, header.len);
    hl_str_free(&header);
    for (int64_t m = 0; m < elements; m++) { /* m: in memory order */
        int64_t i = m, rest = m;
        if (f->fortran) {
            int64_t at[8], along = 1;
            for (int k = 0; k < f->ndim; k++) at[k] = rest % f->dim[k], rest /= f->dim[k];
            i = 0;
            for (int k = f->ndim - 1; k >= 0; k--) i += at[k] * along, along *= f->dim[k];
        }
        npy_put(f, npy_value(f, i), &out);
    }
    return out;
}

static inline void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) tap_bail("cannot write '%s'", path);
}

static inline void write_npy(const char *path, const npy_form *f)
{
    hl_str s = npy_text(f);
    put_file(path, s.s, s.len);
    hl_str_free(&s);
}

static inline void zip_number(hl_str *s, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8) hl_str_addn(s, (const char[]){(char)(v & 255)}, 1);
}

static inline uint32_t zip_crc(const hl_str *s)
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < s->len; i++) {
        c ^= (unsigned char)s->s[i];
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

static inline hl_str zip_deflated(const hl_str *s)
{
    hl_str out = {0};
#ifdef HAVE_ZLIB
    z_stream z = {0};
    size_t room = s->len + s->len / 100 + 100;
    char *to = malloc(room);
    if (!to || deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) tap_bail("zlib");
    z.next_in = (unsigned char *)s->s, z.avail_in = (uInt)s->len;
    z.next_out = (unsigned char *)to, z.avail_out = (uInt)room;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) tap_bail("zlib");
    hl_str_addn(&out, to, room - z.avail_out);
    deflateEnd(&z);
    free(to);
#else
    (void)s;
#endif
    return out;
}

/* What numpy.savez (or savez_compressed) makes of arrays of these names; zip64: as for large ones. */
static inline hl_str npz_text(int n, const char *const *name, const npy_form *form, bool deflated, bool zip64)
{
    hl_str out = {0}, table = {0};
    for (int i = 0; i < n; i++) {
        hl_str raw = npy_text(&form[i]), packed = deflated ? zip_deflated(&raw) : (hl_str){0}, extra = {0};
        const hl_str *body = deflated ? &packed : &raw;
        size_t at = out.len, length = strlen(name[i]) + 4;
        uint32_t crc = zip_crc(&raw);
        if (zip64) zip_number(&extra, 1, 2), zip_number(&extra, 16, 2), zip_number(&extra, raw.len, 8), zip_number(&extra, body->len, 8);
        for (int local = 1; local >= 0; local--) {
            hl_str *to = local ? &out : &table;
            zip_number(to, local ? 0x04034b50 : 0x02014b50, 4);
            if (!local) zip_number(to, 45, 2);
            zip_number(to, 45, 2), zip_number(to, 0, 2), zip_number(to, deflated ? 8 : 0, 2), zip_number(to, 0, 4), zip_number(to, crc, 4);
            zip_number(to, zip64 ? 0xffffffff : body->len, 4), zip_number(to, zip64 ? 0xffffffff : raw.len, 4);
            zip_number(to, length, 2), zip_number(to, extra.len, 2);
            if (!local) zip_number(to, 0, 2), zip_number(to, 0, 2), zip_number(to, 0, 2), zip_number(to, 0, 4), zip_number(to, at, 4);
            hl_str_addf(to, "%s.npy", name[i]);
            if (extra.len) hl_str_addn(to, extra.s, extra.len);
        }
        hl_str_addn(&out, body->s, body->len);
        hl_str_free(&raw), hl_str_free(&packed), hl_str_free(&extra);
    }
    size_t at = out.len;
    hl_str_addn(&out, table.s, table.len);
    zip_number(&out, 0x06054b50, 4), zip_number(&out, 0, 4), zip_number(&out, (uint64_t)n, 2), zip_number(&out, (uint64_t)n, 2);
    zip_number(&out, table.len, 4), zip_number(&out, at, 4), zip_number(&out, 0, 2);
    hl_str_free(&table);
    return out;
}

#endif
