/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public NPY and NPZ files against a manifest made by another reader (HALO_TESTDATA/MANIFEST_npy.json), and every volume of the public HDF5 files (HDF5_3D_DATASETS.json)
 * as a sample: shape, type, sum and first values, or one error that names the file. Each file is read in a process of its own, with 2 GiB of address space, or with allocations of at most 2 GiB where a
 * sanitizer needs more.
 */
#include "tests/io/manifest.h"
#include "io/array_files.h"
#include "io/axes.h"

static bool number(const hl_yaml *map, const char *key, double *out)
{
    const hl_yaml *n = hl_yaml_find(map, key);
    char *end;
    if (!n || n->kind != HL_YAML_SCALAR) return false;
    *out = strtod(n->text, &end);
    return end != n->text && !*end;
}

static double truth(const char *text) { return strcmp(text, "True") == 0 ? 1 : strcmp(text, "False") == 0 ? 0 : strtod(text, NULL); }

static bool same_shape(const hl_yaml *shape, const hl_array *a)
{
    if (!shape || (int)shape->items != a->ndim) return false;
    for (int k = 0; k < a->ndim; k++) {
        int64_t n;
        if (!hl_yaml_int(shape->item[k], &n) || n != a->dim[a->reversed ? a->ndim - 1 - k : k]) return false;
    }
    return true;
}

/* "<f8" */
static bool same_type(const hl_yaml *type, const hl_array *a)
{
    if (!type) return false;
    char kind = type->text[1] == 'b' ? 'u' : type->text[1];
    return a->type.kind == kind && a->type.bytes == atoi(type->text + 2) && a->swapped == (type->text[0] == '>');
}

/* Element i as the writer counts. */
static double element(const hl_array *a, const void *raw, int64_t i)
{
    int64_t at = 0, along[HL_ARRAY_RANK], n = 1;
    for (int k = a->ndim - 1; k >= 0; k--) along[k] = n, n *= a->dim[k];
    for (int k = a->ndim - 1; k >= 0; k--) {
        int s = a->reversed ? a->ndim - 1 - k : k;
        at += i % a->dim[s] * along[s];
        i /= a->dim[s];
    }
    return hl_number_value(a->type, raw, at);
}

static bool same_values(const hl_yaml *entry, const hl_array *a, const void *raw)
{
    double sum = 0, want;
    const hl_yaml *first = hl_yaml_find(entry, "first");
    bool flags = first && first->items && strchr("TF", first->item[0]->text[0]);
    for (int64_t i = 0; i < a->elements; i++) sum += element(a, raw, i);
    for (size_t i = 0; first && i < first->items; i++) {
        double v = element(a, raw, (int64_t)i);
        if ((flags ? (double)(v != 0) : v) != truth(first->item[i]->text)) return false;
    }
    return number(entry, "sum", &want) && sum == want;
}

static enum outcome error_is(halo_context *ctx, const char *path, bool expected)
{
    if (!strstr(halo_error_message(ctx), path) || iotest_errors != 1) return SILENT;
    return expected ? REFUSED : WRONG;
}

static enum outcome read_numpy(halo_context *ctx, const char *path, const hl_yaml *entry)
{
    const hl_yaml *type = hl_yaml_find(entry, "dtype");
    bool numeric = type && strchr("biuf", type->text[1]);
    int64_t start[HL_ARRAY_RANK] = {0};
    hl_array *a;
    void *raw = NULL;
    enum outcome got = WRONG;
    iotest_errors = 0;
    if (hl_array_open(ctx, path, NULL, NULL, &a) != HALO_OK) return error_is(ctx, path, !numeric);
    if (!numeric || !same_shape(hl_yaml_find(entry, "shape"), a) || !same_type(type, a)) got = WRONG;
    else if (hl_aligned(ctx, (size_t)a->bytes, "an array", &raw) != HALO_OK) got = WRONG;
    else if (hl_array_read(a, start, a->dim, raw, (size_t)a->bytes) != HALO_OK) got = error_is(ctx, path, false);
    else got = same_values(entry, a, raw) ? EQUAL : WRONG;
    free(raw);
    hl_array_close(a);
    return got;
}

/* The last three axes are d h w, those before are channels; the samples are added up. */
static enum outcome read_volume(halo_context *ctx, const char *path, const hl_yaml *entry)
{
    double want = NAN, sum = 0, size = 0;
    bool has_sum = number(entry, "sum", &want);
    const hl_yaml *shape = hl_yaml_find(entry, "shape");
    hl_array_options o = {.x = hl_yaml_find(entry, "dataset")->text, .y = "", .y_from = "", .table = ""};
    int rank = shape && shape->kind == HL_YAML_LIST ? (int)shape->items : 3;
    for (int k = 0; k < rank && k < HL_WORDS_MAX; k++) snprintf(o.x_axes.word[o.x_axes.n++], HL_WORD_MAX, "%c", k < rank - 3 ? 'c' : "dhw"[k - rank + 3]);
    hl_source *s;
    float *x = NULL;
    void *raw = NULL;
    iotest_errors = 0;
    halo_status st = hl_source_open(ctx, &(hl_source_options){.path = path, .array = &o}, &s);
    if (st != HALO_OK) return error_is(ctx, path, !has_sum || strstr(halo_error_message(ctx), "no cells"));
    int64_t n = s->info.ext[0] * s->info.ext[1] * s->info.ext[2] * s->info.ext[3];
    MUST(hl_aligned(ctx, (size_t)n * hl_dtype_size(s->info.dtype), "a volume", &raw));
    MUST(hl_aligned(ctx, (size_t)n * sizeof(*x), "a volume", &x));
    st = hl_source_read(s, 0, NULL, raw, NULL, NULL);
    enum outcome got = st == HALO_OK ? WRONG : error_is(ctx, path, !has_sum);
    for (int64_t i = 0; i < n && st == HALO_OK; i++) {
        double v = hl_number_value(hl_dtype_number(s->info.dtype), raw, i);
        if (isfinite(v)) sum += v, size += fabs(v);
    }
    if (st == HALO_OK && has_sum && fabs(sum - want) <= 1e-12 * size) got = EQUAL;
    free(x);
    free(raw);
    hl_source_close(s);
    return got;
}

static void all(halo_context *ctx, const char *root, const char *manifest, reader read, int least, const char *what)
{
    hl_yaml *list = NULL;
    char path[1200];
    snprintf(path, sizeof(path), "%s/%s", root, manifest);
    MUST(hl_yaml_load(ctx, path, &list));
    all_files(ctx, root, list, read, least, what);
    hl_yaml_destroy(list);
}

int main(void)
{
    halo_context *ctx;
    char path[1200];
    const char *root = begin("MANIFEST_npy.json", path, &ctx);
    all(ctx, root, "MANIFEST_npy.json", read_numpy, 7, "NPY and NPZ files");
    all(ctx, root, "HDF5_3D_DATASETS.json", read_volume, 90, "volumes of HDF5 files");
    halo_context_destroy(ctx);
    return tap_done();
}
