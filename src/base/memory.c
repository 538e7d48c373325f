/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c -- checked allocation. Every failure says what was wanted and how many bytes. */
#include "base/base.h"

halo_status hl_calloc(halo_context *ctx, size_t n, size_t size, const char *what, void *out)
{
    void *p = NULL;
    if (n > 0) {
        p = calloc(n, size); /* checks the product itself */
        if (!p) return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: %zu items of %zu bytes for %s", n, size, what);
    }
    memcpy(out, &p, sizeof(p));
    return HALO_OK;
}

halo_status hl_grow(halo_context *ctx, void *array, size_t *cap, size_t n, size_t size, const char *what)
{
    if (n <= *cap) return HALO_OK;
    size_t want = *cap ? *cap : 8, bytes;
    while (want < n)
        if (__builtin_mul_overflow(want, (size_t)2, &want)) return hl_fail(ctx, HALO_ERR_NOMEM, "too many items: %s", what);
    if (__builtin_mul_overflow(want, size, &bytes)) return hl_fail(ctx, HALO_ERR_NOMEM, "too many items: %s", what);
    void *old, *p;
    memcpy(&old, array, sizeof(old));
    p = realloc(old, bytes);
    if (!p) return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: %zu bytes for %s", bytes, what);
    memset((char *)p + *cap * size, 0, bytes - *cap * size);
    memcpy(array, &p, sizeof(p));
    *cap = want;
    return HALO_OK;
}

halo_status hl_aligned(halo_context *ctx, size_t bytes, const char *what, void *out)
{
    void *p = NULL;
    if (bytes > SIZE_MAX - 64) return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: %zu bytes for %s", bytes, what);
    if (posix_memalign(&p, 64, bytes ? bytes : 64) != 0)
        return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: %zu bytes for %s", bytes, what);
    memcpy(out, &p, sizeof(p));
    return HALO_OK;
}

halo_status hl_scratch(halo_context *ctx, char **scratch, size_t *capacity, size_t bytes, const char *what)
{
    if (bytes <= *capacity) return HALO_OK;
    free(*scratch);
    *scratch = NULL;
    *capacity = 0;
    HL_TRY(hl_aligned(ctx, bytes, what, scratch));
    *capacity = bytes;
    return HALO_OK;
}

halo_status hl_strdup(halo_context *ctx, const char *s, char **out)
{
    char *p = NULL;
    HL_TRY(hl_calloc(ctx, strlen(s) + 1, 1, "a string", &p));
    memcpy(p, s, strlen(s));
    *out = p;
    return HALO_OK;
}
