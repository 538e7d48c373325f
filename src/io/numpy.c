/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numpy.c -- NPY files and the members of NPZ files as arrays (array.h).
 *
 * An array that is stored as it is, is read run by run: of a box, the longest runs of bytes that lie together. Runs below 1 KiB whose neighbours begin within
 * a page are read together with what is between them, since the system reads pages anyway. A deflated member can only be read from its beginning: it is inflated once, as a whole, and kept
 * until the array rests.
 */
#include "io/array.h"
#include "io/npy.h"
#include "io/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MOST ((size_t)1 << 20)
enum { RUN_SHORT = 1024, PAGE = 4096 };

typedef struct numpy_array {
    hl_array base;
    hl_bytes file;
    hl_zip_member member; /* of an archive: its name is owned */
    int64_t at, size;     /* of the NPY content in the file, and its bytes; deflated: of the packed bytes, and unpacked */
    int64_t header;       /* data begin so far behind that */
    bool truth;           /* bytes stand for true and false */
    char *unpacked;       /* [size], of a deflated member; NULL: at rest */
} numpy_array;

/* ------------------------------------------------------------------------------------------------------------- boxes */

/* n bytes of data, `from` bytes behind its beginning. */
static halo_status fetch(numpy_array *a, int64_t from, void *out, size_t n)
{
    if (!a->base.whole) return hl_bytes_read(&a->file, a->at + a->header + from, out, n, true);
    memcpy(out, a->unpacked + a->header + from, n);
    return HALO_OK;
}

typedef struct box { /* n lines of runs: `run` bytes each, `stride` bytes apart */
    int64_t run, stride, n;
} box;

static halo_status fetch_sieved(numpy_array *a, int64_t from, const box *b, char *out)
{
    char sieve[PAGE * 4];
    int64_t at_once = (int64_t)sizeof(sieve) / b->stride; /* at least 4, as stride is a page at most */
    for (int64_t i = 0; i < b->n; i += at_once) {
        int64_t n = hl_min64(at_once, b->n - i);
        HL_TRY(fetch(a, from + i * b->stride, sieve, (size_t)((n - 1) * b->stride + b->run)));
        for (int64_t k = 0; k < n; k++) memcpy(out + (i + k) * b->run, sieve + k * b->stride, (size_t)b->run);
    }
    return HALO_OK;
}

static halo_status fetch_lines(numpy_array *a, int64_t from, const box *b, char *out)
{
    if (!a->base.whole && b->n > 1 && b->run < RUN_SHORT && b->stride <= PAGE) return fetch_sieved(a, from, b, out);
    for (int64_t i = 0; i < b->n; i++) HL_TRY(fetch(a, from + i * b->stride, out + i * b->run, (size_t)b->run));
    return HALO_OK;
}

/* Next position of axes 0 .. n - 1 in the box; false after the last. */
static bool next(int n, const int64_t *count, int64_t *at)
{
    for (int i = n - 1; i >= 0; i--) {
        if (++at[i] < count[i]) return true;
        at[i] = 0;
    }
    return false;
}

static halo_status read_runs(numpy_array *a, const int64_t *start, const int64_t *count, char *out)
{
    const hl_array *base = &a->base;
    int64_t along[HL_ARRAY_RANK], at[HL_ARRAY_RANK] = {0}, stride = base->type.bytes;
    int k = base->ndim - 1; /* axes after k are whole: the run is along k */
    for (int i = base->ndim - 1; i >= 0; i--) {
        along[i] = stride;
        stride *= base->dim[i];
    }
    while (k > 0 && count[k] == base->dim[k]) k--;
    if (base->ndim == 0) return fetch(a, 0, out, (size_t)base->type.bytes);
    box b = {.run = count[k] * along[k], .stride = k > 0 ? along[k - 1] : 0, .n = k > 0 ? count[k - 1] : 1};
    do {
        int64_t from = 0;
        for (int i = 0; i < base->ndim; i++) from += (start[i] + at[i]) * along[i];
        HL_TRY(fetch_lines(a, from, &b, out));
        out += b.n * b.run;
    } while (next(k - 1, count, at));
    return HALO_OK;
}

static halo_status unpack(numpy_array *a)
{
    if (!a->base.whole || a->unpacked) return HALO_OK;
    HL_TRY(hl_aligned(a->base.ctx, (size_t)a->size, "an inflated array", &a->unpacked));
    halo_status st = hl_zip_inflate(&a->file, &a->member, a->at, a->unpacked, (size_t)a->size);
    if (st == HALO_OK) return HALO_OK;
    free(a->unpacked);
    a->unpacked = NULL;
    return st;
}

static halo_status read_box(hl_array *base, const int64_t *start, const int64_t *count, void *out)
{
    numpy_array *a = (numpy_array *)base;
    int64_t n = 1;
    for (int i = 0; i < base->ndim; i++) n *= count[i];
    HL_TRY(unpack(a));
    HL_TRY(read_runs(a, start, count, out));
    if (base->swapped) hl_swap_bytes(out, base->type.bytes, n);
    for (int64_t i = 0; i < n && a->truth; i++) ((char *)out)[i] = ((char *)out)[i] != 0;
    return HALO_OK;
}

static void rest(hl_array *base)
{
    numpy_array *a = (numpy_array *)base;
    free(a->unpacked);
    a->unpacked = NULL;
}

static void close_array(hl_array *base)
{
    numpy_array *a = (numpy_array *)base;
    rest(base);
    if (a->file.fd >= 0) close(a->file.fd);
    free(a->member.name);
    hl_array_free(base);
}

static const hl_array_ops ops = {.read = read_box, .rest = rest, .close = close_array};

/* ----------------------------------------------------------------------------------------------------------- opening */

static halo_status wrong(const numpy_array *a, const char *what)
{
    char title[512];
    return hl_fail(a->base.ctx, HALO_ERR_FORMAT, "cannot read %s: %s", hl_array_title(&a->base, title, sizeof(title)), what);
}

/* The first n bytes of the NPY content. */
static halo_status peek(const numpy_array *a, void *out, size_t n)
{
    if (a->base.whole) return hl_zip_inflate(&a->file, &a->member, a->at, out, n);
    return hl_bytes_read(&a->file, a->at, out, n, false);
}

static halo_status take_header(numpy_array *a, const hl_npy *n)
{
    hl_array *base = &a->base;
    char text[512], shape[320];
    base->type = n->type;
    base->swapped = n->swap;
    base->reversed = n->fortran && n->ndim > 1;
    base->ndim = n->ndim;
    for (int i = 0; i < n->ndim; i++) base->dim[i] = n->dim[base->reversed ? n->ndim - 1 - i : i];
    base->elements = n->elements;
    base->bytes = n->bytes;
    a->header = (int64_t)n->header;
    a->truth = n->truth;
    if (n->bytes <= a->size - a->header) return HALO_OK;
    snprintf(text, sizeof(text), "truncated: %s takes %" PRId64 " bytes, there are %" PRId64, hl_array_describe(base, shape, sizeof(shape)), n->bytes, a->size - a->header);
    return wrong(a, text);
}

static halo_status read_header(numpy_array *a)
{
    char start[HL_NPY_START], text[256];
    hl_npy n;
    void *header = NULL;
    if (a->size < HL_NPY_START) return wrong(a, "too short for an NPY file");
    HL_TRY(peek(a, start, sizeof(start)));
    size_t length = hl_npy_length(start, sizeof(start));
    if (length == 0) return wrong(a, "no NPY file of version 1, 2 or 3");
    if (length > HEADER_MOST || length < HL_NPY_START || (int64_t)length > a->size) return wrong(a, "truncated: its header does not end");
    HL_TRY(hl_aligned(a->base.ctx, length, "a header", &header));
    halo_status st = peek(a, header, length);
    if (st == HALO_OK) st = hl_npy_parse(header, length, &n, text, sizeof(text)) ? take_header(a, &n) : wrong(a, text);
    free(header);
    return st;
}

static halo_status open_file(halo_context *ctx, const char *path, hl_read_count *count, hl_bytes *f)
{
    struct stat s;
    *f = (hl_bytes){.ctx = ctx, .path = path, .count = count, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (f->fd < 0 || fstat(f->fd, &s) != 0) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode)) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': no ordinary file", path);
    if (s.st_size == 0) return hl_fail(ctx, HALO_ERR_FORMAT, "cannot open '%s': the file is empty", path);
    f->size = (int64_t)s.st_size;
    return HALO_OK;
}

static bool is_zip(const hl_bytes *f)
{
    char b[2];
    return pread(f->fd, b, sizeof(b), 0) == 2 && memcmp(b, "PK", 2) == 0;
}

/* Length of a member's name without ".npy", which NumPy appends. */
static size_t length_of(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".npy") == 0 ? n - 4 : n;
}

static halo_status no_member(const numpy_array *a, const hl_zip *z, const char *name)
{
    hl_str list = {0};
    for (size_t i = 0; i < z->n && i < 8; i++) hl_str_addf(&list, "%s%.*s", i ? ", " : "", (int)length_of(z->member[i].name), z->member[i].name);
    if (z->n > 8) hl_str_add(&list, ", ...");
    halo_status st = *name ? hl_fail(a->base.ctx, HALO_ERR_FORMAT, "'%s': no member '%s'; there %s %s", a->base.path, name, z->n == 1 ? "is" : "are", z->n ? list.s : "none")
                           : hl_fail(a->base.ctx, HALO_ERR_FORMAT, z->n ? "'%s': which member? Set 'path' of 'data.x' (and of 'data.y') to one of %s" : "'%s' has no members%s", a->base.path,
                                     z->n ? list.s : "");
    hl_str_free(&list);
    return st;
}

static halo_status choose(numpy_array *a, hl_zip *z, const char *name)
{
    hl_zip_member *found = NULL;
    hl_str title = {0};
    for (size_t i = 0; i < z->n; i++) {
        const char *member = z->member[i].name;
        size_t n = length_of(member);
        if (strcmp(member, name) == 0 || (strlen(name) == n && memcmp(member, name, n) == 0) || (!*name && z->n == 1)) found = &z->member[i];
    }
    if (!found) return no_member(a, z, name);
    hl_str_addf(&title, "member '%.*s'", (int)length_of(found->name), found->name);
    if (title.failed) return hl_fail(a->base.ctx, HALO_ERR_NOMEM, "out of memory: the name of a member");
    free(a->base.name);
    a->base.name = title.s;
    a->member = *found;
    found->name = NULL; /* ours now */
    a->size = a->member.size;
    a->base.whole = a->member.method == 8;
    return hl_zip_find(&a->file, &a->member, &a->at);
}

static halo_status open_member(numpy_array *a, const char *name)
{
    hl_zip z;
    HL_TRY(hl_zip_list(&a->file, &z));
    halo_status st = choose(a, &z, name);
    hl_zip_free(&z);
    return st;
}

halo_status hl_numpy_check(hl_array *array)
{
    numpy_array *a = (numpy_array *)array;
    return a->member.name ? hl_zip_check(&a->file, &a->member, a->at) : HALO_OK;
}

halo_status hl_numpy_open(halo_context *ctx, const char *path, const char *name, hl_read_count *count, hl_array **out)
{
    numpy_array *a;
    halo_status st;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*a), "an array", &a));
    a->base.ops = &ops;
    a->base.ctx = ctx;
    a->file.fd = -1;
    HL_GOTO(st, hl_strdup(ctx, path, &a->base.path), close_array);
    HL_GOTO(st, hl_strdup(ctx, "", &a->base.name), close_array);
    HL_GOTO(st, open_file(ctx, a->base.path, count, &a->file), close_array);
    a->size = a->file.size;
    if (is_zip(&a->file)) HL_GOTO(st, open_member(a, name), close_array);
    HL_GOTO(st, read_header(a), close_array);
    *out = &a->base;
    return HALO_OK;
close_array:
    close_array(&a->base);
    return st;
}

halo_status hl_numpy_list(halo_context *ctx, const char *path, halo_status (*visit)(void *user, const char *name), void *user)
{
    hl_bytes f;
    hl_zip z = {0};
    halo_status st = open_file(ctx, path, NULL, &f);
    if (st == HALO_OK && !is_zip(&f)) st = visit(user, "");
    else if (st == HALO_OK) st = hl_zip_list(&f, &z);
    for (size_t i = 0; i < z.n && st == HALO_OK; i++) {
        z.member[i].name[length_of(z.member[i].name)] = '\0';
        st = visit(user, z.member[i].name);
    }
    hl_zip_free(&z);
    if (f.fd >= 0) close(f.fd);
    return st;
}
