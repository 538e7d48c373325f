/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public NIfTI files against a manifest made by another reader (HALO_TESTDATA/MANIFEST_nifti.json): shape, type, byte order, orientation, sum, range and values at both ends and in the
 * middle as stored, found again in RAS; or one error that names the file. Each file is read in a process of its own, with 2 GiB of address space, or with allocations of at most 2 GiB where a
 * sanitizer needs more.
 */
#include "tests/io/manifest.h"
#include "base/file.h"
#include "io/array.h"
#include "io/nifti.h"

static double number(const hl_yaml *n) { return n && n->kind == HL_YAML_SCALAR ? strtod(n->text, NULL) : NAN; }
static const char *text(const hl_yaml *map, const char *key)
{
    const hl_yaml *n = hl_yaml_find(map, key);
    return n && n->kind == HL_YAML_SCALAR ? n->text : "";
}

/* "int16", ">i2" */
static bool same_type(const char *want, const char *endian, const hl_nifti *n)
{
    char plain[8];
    snprintf(plain, sizeof(plain), ">%c%d", n->type.kind, n->type.bytes);
    bool order = n->type.bytes == 1 || *endian == '?' || n->swapped == (*endian == '>');
    return order && (strcmp(want, hl_number_name(n->type)) == 0 || strcmp(want, plain) == 0);
}

static bool same_shape(const hl_yaml *shape, const hl_nifti *n)
{
    int skip = n->ndim > 4 && shape->items == 2 ? 4 : 0; /* a matrix of CIFTI begins at the fifth axis */
    if ((int)shape->items != n->ndim - skip) return false;
    for (size_t k = 0; k < shape->items; k++)
        if (number(shape->item[k]) != (double)n->dim[k + (size_t)skip]) return false;
    return true;
}

/* Element i as stored, where x runs fastest, in the array. */
static double element(const hl_array *a, const hl_nifti *n, const void *raw, int64_t i)
{
    int64_t at[3], index = i / (n->dim[0] * n->dim[1] * n->dim[2]);
    for (int s = 0; s < 3; s++) {
        at[s] = i % n->dim[s];
        i /= n->dim[s];
    }
    for (int k = 2; k >= 0; k--) {
        int s = n->axis[k];
        index = index * n->dim[s] + (n->flip[k] ? n->dim[s] - 1 - at[s] : at[s]);
    }
    return hl_number_value(a->type, raw, index);
}

/* Scaled values are float32; what is no number must be none. */
static bool near(double a, double b) { return isnan(b) ? isnan(a) : fabs(a - b) <= 2e-7 * fabs(b); }

static bool same_list(const hl_array *a, const hl_nifti *n, const void *raw, const hl_yaml *list, int64_t first)
{
    for (size_t i = 0; list && i < list->items; i++)
        if (!near(element(a, n, raw, first + (int64_t)i), number(list->item[i]))) return false;
    return true;
}

static bool same_values(const hl_yaml *entry, const hl_array *a, const hl_nifti *n, const void *raw)
{
    const hl_yaml *scaled = hl_yaml_find(entry, "scaled"), *mid = hl_yaml_find(entry, "mid_Forder"), *last = hl_yaml_find(entry, "last4_Forder");
    double sum = 0, size = 0, least = INFINITY, most = -INFINITY;
    if (number(hl_yaml_find(entry, "n")) != (double)a->elements) return false;
    for (int64_t i = 0; i < a->elements; i++) {
        double v = hl_number_value(a->type, raw, i);
        if (!isfinite(v)) continue;
        sum += v;
        size += fabs(v);
        least = fmin(least, v);
        most = fmax(most, v);
    }
    if (!(fabs(sum - number(hl_yaml_find(scaled, "sum"))) <= 1e-7 * size)) return false;
    if (!near(least, number(hl_yaml_find(scaled, "min"))) || !near(most, number(hl_yaml_find(scaled, "max")))) return false;
    if (strcmp(text(entry, "class"), "Cifti2Image") == 0) return true; /* which counts its matrix the other way round */
    return same_list(a, n, raw, hl_yaml_find(entry, "first8_Forder"), 0) && same_list(a, n, raw, last, a->elements - (int64_t)last->items) &&
           near(element(a, n, raw, (int64_t)number(mid->item[0])), number(mid->item[1]));
}

/* The orientation, where the header has one at all: other readers assume one where it has none. */
static bool same_place(const hl_yaml *entry, const hl_nifti *n)
{
    const hl_yaml *affine = hl_yaml_find(entry, "affine");
    char codes[4];
    if (!*n->place) return true;
    if (strcmp(hl_nifti_codes(n, codes), text(entry, "axcodes")) != 0) return false;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            if (!(fabs(n->affine[i][j] - number(affine->item[i]->item[j])) <= 1e-4)) return false;
    return true;
}

static enum outcome error_is(halo_context *ctx, const char *path, bool expected)
{
    char stem[1200];
    snprintf(stem, sizeof(stem), "%s", path);
    if (!strstr(halo_error_message(ctx), stem) || iotest_errors != 1) return SILENT;
    return expected ? REFUSED : WRONG;
}

static enum outcome read_one(halo_context *ctx, const char *path, const hl_yaml *entry)
{
    /* A header whose image that reader did not find may have one, which is gzipped, for us. */
    bool readable = hl_yaml_find(entry, "scaled") || hl_yaml_find(entry, "data_error");
    int64_t start[HL_ARRAY_RANK] = {0};
    hl_array *a;
    hl_nifti n;
    void *raw = NULL;
    iotest_errors = 0;
    if (hl_array_open(ctx, path, NULL, NULL, &a) != HALO_OK) return error_is(ctx, path, !hl_yaml_find(entry, "scaled"));
    enum outcome got = WRONG;
    if (!readable || hl_nifti_open(ctx, path, &n) != HALO_OK) goto close_array;
    bool alike = same_shape(hl_yaml_find(entry, "shape"), &n) && same_type(text(entry, "file_dtype"), text(entry, "endian"), &n) && same_place(entry, &n);
    if (alike && hl_aligned(ctx, (size_t)a->bytes, "an array", &raw) == HALO_OK) {
        if (hl_array_read(a, start, a->dim, raw, (size_t)a->bytes) != HALO_OK) got = error_is(ctx, path, !hl_yaml_find(entry, "scaled"));
        else if (!hl_yaml_find(entry, "scaled") || same_values(entry, a, &n, raw)) got = EQUAL;
    }
    free(raw);
    hl_nifti_free(&n);
close_array:
    hl_array_close(a);
    return got;
}

/* Magics end with a zero byte, "n+1\u0000", which is no text: taken away. */
static void load(halo_context *ctx, const char *path, hl_yaml **list)
{
    char *json;
    size_t bytes;
    MUST(hl_file_read(ctx, path, (size_t)16 << 20, &json, &bytes));
    for (char *at; (at = strstr(json, "\\u0000"));) memmove(at, at + 6, strlen(at + 6) + 1);
    MUST(hl_yaml_parse(ctx, path, json, strlen(json), list));
    free(json);
}

int main(void)
{
#ifndef HAVE_NIFTI
    tap_skip_all("built without nifticlib");
#endif
    halo_context *ctx;
    hl_yaml *list = NULL;
    char path[1200];
    const char *root = begin("MANIFEST_nifti.json", path, &ctx);
    load(ctx, path, &list);
    all_files(ctx, root, list, read_one, 30, "NIfTI files");
    hl_yaml_destroy(list);
    halo_context_destroy(ctx);
    return tap_done();
}
