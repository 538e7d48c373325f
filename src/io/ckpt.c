/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ckpt.c -- checkpoint files: tensors are datasets, integers and numbers are attributes of the group in their
 * name, strings are datasets.
 *
 * What protects the content: datasets carry the attribute crc32c of their little-endian bytes, checked by
 * every get; everything else in the file is HDF5 metadata in its 1.8 format, which has checksums itself. So a
 * flipped bit is either found or lies in bytes nobody reads. What protects the file: h5out.h.
 */
#include "io/crc32c.h"
#include "io/h5out.h"
#include "io/io.h"

#include <stdio.h>

#define CKPT_FORMAT  "halo checkpoint"
#define CKPT_VERSION 1

struct hl_ckpt {
    halo_context *ctx;
    hl_h5_out *out; /* being written, or */
    hl_h5 *in;      /* being read */
    hl_crc32c crc;
};

static const hl_number int64_number = {'i', 8}, uint32_number = {'u', 4}, float64_number = {'f', 8};

static halo_status absolute(hl_ckpt *c, const char *name, char *out, size_t size)
{
    if (name[0] == '\0' || (size_t)snprintf(out, size, "%s%s", name[0] == '/' ? "" : "/", name) >= size)
        return hl_fail(c->ctx, HALO_ERR_USAGE, "'%.80s' cannot name an entry of a checkpoint", name);
    return HALO_OK;
}

/* "/a/b/c" into object "/a/b" and attribute "c". */
static void split(char *path, const char **object, const char **attribute)
{
    char *slash = strrchr(path, '/');
    *slash = '\0';
    *attribute = slash + 1;
    *object = slash == path ? "/" : path;
}

/* ----------------------------------------------------------------------------------------- open and close */

halo_status hl_ckpt_create(halo_context *ctx, const char *path, hl_ckpt **file)
{
    hl_ckpt *c = NULL;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*c), "a checkpoint", &c));
    c->ctx = ctx;
    hl_crc32c_init(&c->crc);
    halo_status st = HALO_OK;
    const char *format = CKPT_FORMAT;
    HL_GOTO(st, hl_h5_create(ctx, path, &c->out), undo);
    HL_GOTO(st, hl_h5_put_attr_strings(c->out, "/", "halo_file", -1, &format), undo);
    HL_GOTO(st, hl_h5_put_attr(c->out, "/", "halo_file_version", int64_number, 0, &(int64_t){CKPT_VERSION}),
            undo);
    *file = c;
    return HALO_OK;
undo:
    hl_ckpt_close(c, false);
    return st;
}

static halo_status check_format(hl_ckpt *c)
{
    char **text = NULL;
    int64_t n = 0;
    double version = 0;
    HL_TRY(hl_h5_strings(c->in, "/", "halo_file", &text, &n));
    bool good = n == 1 && strcmp(text[0], CKPT_FORMAT) == 0;
    free(text);
    if (!good) return hl_fail(c->ctx, HALO_ERR_FORMAT, "'%s' is not a halo checkpoint", c->in->path);
    HL_TRY(hl_h5_attr_numbers(c->in, "/", "halo_file_version", 1, &version, &n));
    if (n != 1 || version != CKPT_VERSION)
        return hl_fail(c->ctx, HALO_ERR_FORMAT, "'%s' is a checkpoint of version %g, this halo reads %d",
                       c->in->path, version, CKPT_VERSION);
    return HALO_OK;
}

halo_status hl_ckpt_open(halo_context *ctx, const char *path, hl_ckpt **file)
{
    hl_ckpt *c = NULL;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*c), "a checkpoint", &c));
    c->ctx = ctx;
    hl_crc32c_init(&c->crc);
    halo_status st = HALO_OK;
    HL_GOTO(st, hl_h5_open(ctx, path, &c->in), undo);
    HL_GOTO(st, check_format(c), undo);
    *file = c;
    return HALO_OK;
undo:
    hl_ckpt_close(c, false);
    return st;
}

bool hl_ckpt_is(const char *path)
{
    hl_ckpt *c = NULL;
    if (hl_ckpt_open(NULL, path, &c) != HALO_OK) return false; /* no context: nothing is logged */
    hl_ckpt_close(c, false);
    return true;
}

halo_status hl_ckpt_close(hl_ckpt *c, bool commit)
{
    if (!c) return HALO_OK;
    halo_status st = HALO_OK;
    if (c->out) st = hl_h5_finish(c->out, commit);
    hl_h5_close(c->in);
    free(c);
    return st;
}

/* ------------------------------------------------------------------------------------------------ tensors */

static halo_status bytes_of(hl_ckpt *c, const char *name, halo_dtype type, int ndim, const int64_t *dim,
                            size_t *bytes)
{
    int64_t n = (int64_t)hl_dtype_size(type);
    if (!hl_dtype_number(type).kind || type == HALO_F16)
        return hl_fail(c->ctx, HALO_ERR_UNSUPPORTED, "'%s': checkpoints do not hold %s", name,
                       hl_dtype_name(type));
    for (int i = 0; i < ndim; i++)
        if (dim[i] < 0 || !hl_mul64(n, dim[i], &n))
            return hl_fail(c->ctx, HALO_ERR_SHAPE, "'%s': its extents make no sense", name);
    *bytes = (size_t)n;
    return HALO_OK;
}

static halo_status put_crc(hl_ckpt *c, const char *path, const void *data, size_t bytes)
{
    uint32_t crc = hl_crc32c_of(&c->crc, 0, data, bytes);
    return hl_h5_put_attr(c->out, path, "crc32c", uint32_number, 0, &crc);
}

halo_status hl_ckpt_put(hl_ckpt *c, const char *name, halo_dtype type, int ndim, const int64_t *dim,
                        const void *data)
{
    HL_BUG_UNLESS(c->out && ndim >= 0 && ndim <= HL_H5_RANK);
    char path[1024];
    size_t bytes = 0;
    HL_TRY(absolute(c, name, path, sizeof(path)));
    HL_TRY(bytes_of(c, name, type, ndim, dim, &bytes));
    HL_TRY(hl_h5_put(c->out, path, hl_dtype_number(type), ndim, dim, data));
    return put_crc(c, path, data, bytes);
}

static void write_shape(int ndim, const int64_t *dim, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "[");
    for (int i = 0; i < ndim && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? ", " : "", dim[i]);
    if (at < size) snprintf(out + at, size - at, "]");
}

static halo_status check_shape(hl_ckpt *c, const hl_h5_data *d, halo_dtype type, int ndim, const int64_t *dim)
{
    hl_number want = hl_dtype_number(type);
    if (d->type.kind == want.kind && d->type.bytes == want.bytes && d->ndim == ndim &&
        (ndim == 0 || memcmp(d->dim, dim, (size_t)ndim * sizeof(*dim)) == 0))
        return HALO_OK;
    char have[320], need[256];
    write_shape(ndim, dim, need, sizeof(need));
    return hl_fail(c->ctx, HALO_ERR_SHAPE, "'%s': '%s' is %s, expected %s %s", c->in->path, d->name,
                   hl_h5_describe(d, have, sizeof(have)), need, hl_number_name(hl_dtype_number(type)));
}

/* Parameters that another program wrote (doc/from-pytorch.md): what halo makes of a run has the attribute `format`, and checksums everywhere. */
static bool is_foreign(hl_ckpt *c)
{
    return !hl_h5_has_attr(c->in, "/", "format");
}

static halo_status check_crc(hl_ckpt *c, const char *path, const void *data, size_t bytes)
{
    double stored = -1;
    int64_t n = 0;
    HL_TRY(hl_h5_attr_numbers(c->in, path, "crc32c", 1, &stored, &n));
    if (n == 0 && is_foreign(c)) return HALO_OK;
    if (n != 1) return hl_fail(c->ctx, HALO_ERR_FORMAT, "'%s': '%s' has no checksum", c->in->path, path);
    uint32_t crc = hl_crc32c_of(&c->crc, 0, data, bytes);
    if ((double)crc == stored) return HALO_OK;
    return hl_fail(c->ctx, HALO_ERR_FORMAT,
                   "'%s': '%s' is damaged: its checksum is %08x, its content gives %08x", c->in->path, path,
                   (unsigned)stored, crc);
}

halo_status hl_ckpt_get(hl_ckpt *c, const char *name, halo_dtype type, int ndim, const int64_t *dim,
                        void *data)
{
    HL_BUG_UNLESS(c->in && ndim >= 0 && ndim <= HL_H5_RANK);
    char path[1024];
    size_t bytes = 0;
    int64_t start[HL_H5_RANK] = {0};
    hl_h5_data *d = NULL;
    HL_TRY(absolute(c, name, path, sizeof(path)));
    HL_TRY(bytes_of(c, name, type, ndim, dim, &bytes));
    HL_TRY(hl_h5_data_open(c->in, path, 0, &d));
    halo_status st = check_shape(c, d, type, ndim, dim);
    if (st == HALO_OK) st = hl_h5_read(d, start, dim, data, bytes);
    if (st == HALO_OK) st = check_crc(c, path, data, bytes);
    hl_h5_data_close(d);
    return st;
}

/* ------------------------------------------------------------------------------------------------ scalars */

static halo_status put_scalar(hl_ckpt *c, const char *name, hl_number type, const void *value)
{
    HL_BUG_UNLESS(c->out);
    char path[1024];
    const char *object, *attribute;
    HL_TRY(absolute(c, name, path, sizeof(path)));
    split(path, &object, &attribute);
    return hl_h5_put_attr(c->out, object, attribute, type, 0, value);
}

static halo_status get_scalar(hl_ckpt *c, const char *name, hl_number type, void *value)
{
    HL_BUG_UNLESS(c->in);
    char path[1024];
    const char *object, *attribute;
    HL_TRY(absolute(c, name, path, sizeof(path)));
    split(path, &object, &attribute);
    return hl_h5_attr_scalar(c->in, object, attribute, type, value);
}

halo_status hl_ckpt_put_int(hl_ckpt *c, const char *name, int64_t value)
{
    return put_scalar(c, name, int64_number, &value);
}
halo_status hl_ckpt_get_int(hl_ckpt *c, const char *name, int64_t *value)
{
    return get_scalar(c, name, int64_number, value);
}
halo_status hl_ckpt_put_number(hl_ckpt *c, const char *name, double value)
{
    return put_scalar(c, name, float64_number, &value);
}
halo_status hl_ckpt_get_number(hl_ckpt *c, const char *name, double *value)
{
    return get_scalar(c, name, float64_number, value);
}

halo_status hl_ckpt_put_string(hl_ckpt *c, const char *name, const char *value)
{
    HL_BUG_UNLESS(c->out);
    char path[1024];
    HL_TRY(absolute(c, name, path, sizeof(path)));
    HL_TRY(hl_h5_put_string(c->out, path, value));
    return put_crc(c, path, value, strlen(value));
}

halo_status hl_ckpt_get_string(hl_ckpt *c, const char *name, char **value)
{
    HL_BUG_UNLESS(c->in);
    char path[1024], **text = NULL;
    int64_t n = 0;
    HL_TRY(absolute(c, name, path, sizeof(path)));
    HL_TRY(hl_h5_strings(c->in, path, NULL, &text, &n));
    halo_status st = HALO_OK;
    if (n != 1) st = hl_fail(c->ctx, HALO_ERR_FORMAT, "'%s': no text '%s'", c->in->path, name);
    if (st == HALO_OK) st = check_crc(c, path, text[0], strlen(text[0]));
    if (st == HALO_OK) st = hl_strdup(c->ctx, text[0], value);
    free(text);
    return st;
}

bool hl_ckpt_has(hl_ckpt *c, const char *name)
{
    char path[1024];
    const char *object, *attribute;
    if (!c->in ||
        (size_t)snprintf(path, sizeof(path), "%s%s", name[0] == '/' ? "" : "/", name) >= sizeof(path))
        return false;
    if (hl_h5_has(c->in, path)) return true;
    split(path, &object, &attribute);
    return hl_h5_has_attr(c->in, object, attribute);
}

/* -------------------------------------------------------------------------------------------------- lists */

typedef struct lister {
    hl_ckpt *c;
    halo_status (*visit)(void *user, const char *name, halo_dtype type, int ndim, const int64_t *dim);
    void *user;
} lister;

static halo_status list_one(void *user, const char *name)
{
    lister *l = user;
    char path[1024];
    HL_TRY(absolute(l->c, name, path, sizeof(path)));
    if (!hl_h5_is_numeric(l->c->in, path)) return HALO_OK; /* a string */
    hl_h5_data *d = NULL;
    HL_TRY(hl_h5_data_open(l->c->in, path, 0, &d));
    halo_status st = l->visit(l->user, name, hl_number_dtype(d->type), d->ndim, d->dim);
    hl_h5_data_close(d);
    return st;
}

halo_status hl_ckpt_list(hl_ckpt *c,
                         halo_status (*visit)(void *user, const char *name, halo_dtype type, int ndim,
                                              const int64_t *dim),
                         void *user)
{
    HL_BUG_UNLESS(c->in);
    lister l = {c, visit, user};
    return hl_h5_list(c->in, list_one, &l);
}

/* Reads one dataset only for its checksum. */
static halo_status verify_one(void *user, const char *name, halo_dtype type, int ndim, const int64_t *dim)
{
    hl_ckpt *c = user;
    size_t bytes = 0;
    void *data = NULL;
    HL_TRY(bytes_of(c, name, type, ndim, dim, &bytes));
    HL_TRY(hl_aligned(c->ctx, bytes, name, &data));
    halo_status st = hl_ckpt_get(c, name, type, ndim, dim, data);
    free(data);
    return st;
}

static halo_status verify_string(void *user, const char *name)
{
    hl_ckpt *c = user;
    char path[1024], *text = NULL;
    HL_TRY(absolute(c, name, path, sizeof(path)));
    if (hl_h5_is_numeric(c->in, path)) return HALO_OK;
    HL_TRY(hl_ckpt_get_string(c, name, &text));
    free(text);
    return HALO_OK;
}

halo_status hl_ckpt_verify(hl_ckpt *c)
{
    HL_TRY(hl_ckpt_list(c, verify_one, c));
    return hl_h5_list(c->in, verify_string, c);
}
