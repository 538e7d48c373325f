/* SPDX-License-Identifier: Apache-2.0 */
/* array.c -- see array.h: what the kinds of files share. */
#include "io/array.h"
#include "io/nifti.h"

#include <stdio.h>

bool hl_is_numpy(const char *path)
{
    unsigned char b[6] = {0};
    FILE *f = fopen(path, "rbe");
    if (!f) return false;
    size_t n = fread(b, 1, sizeof(b), f);
    fclose(f);
    return n >= 4 && (memcmp(b, "\x93NUM", 4) == 0 || memcmp(b, "PK\3\4", 4) == 0 || memcmp(b, "PK\5\6", 4) == 0);
}

bool hl_is_plain_array(const char *path) { return hl_is_nifti(path) || hl_is_numpy(path); }

halo_status hl_array_open(halo_context *ctx, const char *path, const char *name, hl_read_count *count, hl_array **array)
{
    if (hl_is_nifti(path)) return hl_nifti_array_open(ctx, path, name ? name : "", count, array);
    if (hl_is_numpy(path)) return hl_numpy_open(ctx, path, name ? name : "", count, array);
    return hl_h5_array_open(ctx, path, name ? name : "", count, array);
}

void hl_array_free(hl_array *a)
{
    free(a->path);
    free(a->name);
    free(a);
}

void hl_array_close(hl_array *a)
{
    if (a) a->ops->close(a);
}

void hl_array_rest(hl_array *a)
{
    if (a->ops->rest) a->ops->rest(a);
}

halo_status hl_array_read(hl_array *a, const int64_t *start, const int64_t *count, void *out, size_t capacity)
{
    int64_t n = a->type.bytes;
    for (int i = 0; i < a->ndim; i++) {
        if (start[i] < 0 || count[i] < 0 || count[i] > a->dim[i] || start[i] > a->dim[i] - count[i])
            return hl_fail(a->ctx, HALO_ERR_SHAPE, "'%s': %s: %" PRId64 " + %" PRId64 " is outside axis %d of %" PRId64, a->path, a->name, start[i], count[i], i,
                           a->dim[i]);
        n *= count[i]; /* below the array's bytes, which fit */
    }
    HL_BUG_UNLESS((size_t)n <= capacity);
    return n == 0 ? HALO_OK : a->ops->read(a, start, count, out);
}

const char *hl_array_describe(const hl_array *a, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < a->ndim && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? ", " : "[", a->dim[a->reversed ? a->ndim - 1 - i : i]);
    if (at < size) snprintf(out + at, size - at, "%s %s%s", a->ndim ? "]" : "scalar", hl_number_name(a->type), a->swapped ? " big-endian" : "");
    return out;
}

const char *hl_array_title(const hl_array *a, char *out, size_t size)
{
    snprintf(out, size, "'%s'%s%s", a->path, *a->name ? ": " : "", a->name);
    return out;
}
