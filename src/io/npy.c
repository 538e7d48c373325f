/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c -- \x93NUMPY, a version (1.0, 2.0 or 3.0), the length of what follows (16 bits in version 1, 32 later), and a dictionary as Python writes it:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (64, 64, 64), }
 *
 * (NumPy Enhancement Proposal 1, "A simple file format for NumPy arrays", 2007.) Its three keys stand in any order; nothing else may.
 */
#include "io/npy.h"

#include <stdio.h>

size_t hl_npy_length(const void *start, size_t bytes)
{
    const unsigned char *b = start;
    if (bytes < HL_NPY_START || memcmp(b, "\x93NUMPY", 6) != 0) return 0;
    size_t low = (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] == 1) return 10 + low;
    if (b[6] == 2 || b[6] == 3) return 12 + (low | (size_t)b[10] << 16 | (size_t)b[11] << 24);
    return 0;
}

typedef struct cursor {
    const char *at, *end;
    char *wrong;
    size_t size;
} cursor;

static bool fail(cursor *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(cursor *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->wrong, c->size, format, ap);
    va_end(ap);
    return false;
}

static void skip(cursor *c)
{
    while (c->at < c->end && strchr(" \t\r\n", *c->at) && *c->at) c->at++;
}

static bool accept(cursor *c, char want)
{
    skip(c);
    if (c->at == c->end || *c->at != want) return false;
    c->at++;
    return true;
}

/* A quoted word, shorter than `size`. */
static bool word(cursor *c, char *out, size_t size)
{
    skip(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    char quote = *c->at++;
    size_t n = 0;
    for (; c->at < c->end && *c->at != quote; c->at++) {
        unsigned char byte = (unsigned char)*c->at;
        if (n + 1 >= size || byte < 32 || byte > 126) return false;
        out[n++] = *c->at;
    }
    out[n] = '\0';
    if (c->at == c->end) return false;
    c->at++;
    return true;
}

/* What cannot be a number, in words. */
static const char *not_a_number(char kind)
{
    switch (kind) {
    case 'O': return "Python objects (pickled)";
    case 'c': return "complex numbers";
    case 'S':
    case 'a':
    case 'U': return "strings";
    case 'M': return "dates";
    case 'm': return "time differences";
    default: return "records or raw bytes";
    }
}

static bool parse_type(cursor *c, hl_npy *n)
{
    char text[32];
    skip(c);
    if (c->at < c->end && *c->at == '[') return fail(c, "holds records (a structured type), not numbers");
    if (!word(c, text, sizeof(text))) return fail(c, "its header has no type");
    bool order = *text && strchr("<>|=", *text);
    const char *type = text + order;
    char *end;
    long bytes = *type ? strtol(type + 1, &end, 10) : 0;
    if (*type == '?' && !type[1]) type = "b1", bytes = 1, end = NULL;
    else if (*type && strchr("OcSaUMmV", *type)) return fail(c, "holds %s ('%s'), not real numbers", not_a_number(*type), text);
    else if (!*type || end == type + 1 || *end) return fail(c, "its type '%s' is not known", text);
    n->type = (hl_number){*type == 'b' ? 'u' : *type, bytes > 0 && bytes <= 16 ? (int)bytes : 0};
    if (*type == 'b' && bytes != 1) return fail(c, "its type '%s' is not known", text);
    if (!strchr("biuf", *type)) return fail(c, "its type '%s' is not known", text);
    if (hl_number_dtype(n->type) == HALO_NONE) return fail(c, "its numbers have %ld bytes ('%s'): there are no such numbers in halo", bytes, text);
    n->truth = *type == 'b';
    n->swap = bytes > 1 && *text == '>';
    return true;
}

static bool parse_extent(cursor *c, int64_t *out)
{
    int64_t value = 0;
    skip(c);
    if (c->at < c->end && *c->at == '-') return fail(c, "its shape has a negative extent");
    if (c->at == c->end || *c->at < '0' || *c->at > '9') return fail(c, "its shape cannot be read");
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (!hl_mul64(value, 10, &value) || !hl_add64(value, *c->at - '0', &value)) return fail(c, "its shape has an extent beyond 2^63");
    if (c->at < c->end && *c->at == 'L') c->at++; /* as Python 2 wrote them */
    *out = value;
    return true;
}

static bool parse_shape(cursor *c, hl_npy *n)
{
    if (!accept(c, '(')) return fail(c, "its header has no shape");
    while (!accept(c, ')')) {
        if (n->ndim == HL_NPY_RANK) return fail(c, "it has more than %d axes", HL_NPY_RANK);
        if (!parse_extent(c, &n->dim[n->ndim])) return false;
        n->ndim++;
        if (accept(c, ',')) continue;
        if (!accept(c, ')')) return fail(c, "its shape cannot be read");
        break;
    }
    return true;
}

static bool parse_order(cursor *c, hl_npy *n)
{
    skip(c);
    size_t left = (size_t)(c->end - c->at);
    bool yes = left >= 4 && memcmp(c->at, "True", 4) == 0, no = left >= 5 && memcmp(c->at, "False", 5) == 0;
    if (!yes && !no) return fail(c, "'fortran_order' is neither True nor False");
    n->fortran = yes;
    c->at += yes ? 4 : 5;
    return true;
}

static bool parse_member(cursor *c, hl_npy *n, unsigned *seen)
{
    static const struct {
        const char *key;
        bool (*parse)(cursor *c, hl_npy *n);
    } member[] = {{"descr", parse_type}, {"fortran_order", parse_order}, {"shape", parse_shape}};
    char key[32];
    if (!word(c, key, sizeof(key)) || !accept(c, ':')) return fail(c, "its header is no dictionary as NumPy writes them");
    for (size_t i = 0; i < HL_COUNT(member); i++)
        if (strcmp(key, member[i].key) == 0) {
            if (*seen & 1u << i) return fail(c, "its header has '%s' twice", key);
            *seen |= 1u << i;
            return member[i].parse(c, n);
        }
    return fail(c, "its header has an unknown key '%s'", key);
}

static bool parse_dictionary(cursor *c, hl_npy *n)
{
    unsigned seen = 0;
    if (!accept(c, '{')) return fail(c, "its header is no dictionary as NumPy writes them");
    while (!accept(c, '}')) {
        if (!parse_member(c, n, &seen)) return false;
        if (accept(c, ',')) continue;
        if (!accept(c, '}')) return fail(c, "its header is no dictionary as NumPy writes them");
        break;
    }
    if (seen != 7) return fail(c, "its header lacks '%s'", !(seen & 1) ? "descr" : !(seen & 2) ? "fortran_order" : "shape");
    return true;
}

bool hl_npy_parse(const void *header, size_t bytes, hl_npy *out, char *wrong, size_t size)
{
    hl_npy n = {.header = hl_npy_length(header, bytes), .elements = 1};
    const char *text = header;
    cursor c = {.end = text + bytes, .wrong = wrong, .size = size};
    if (n.header == 0) return fail(&c, "no NPY file of version 1, 2 or 3");
    if (n.header > bytes) return fail(&c, "truncated: its header does not end");
    c.end = text + n.header;
    c.at = text + (text[6] == 1 ? 10 : 12);
    if (!parse_dictionary(&c, &n)) return false;
    for (int i = 0; i < n.ndim; i++)
        if (!hl_mul64(n.elements, n.dim[i], &n.elements)) return fail(&c, "its shape has more than 2^63 elements");
    if (!hl_mul64(n.elements, n.type.bytes, &n.bytes)) return fail(&c, "its shape has more than 2^63 bytes");
    *out = n;
    return true;
}
