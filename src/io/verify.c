/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c -- what would end a run, or spoil it without a word, found before it starts. Of each file:
 *
 *   it opens (not truncated); its datasets have the filters that they need, are written as a whole, and read to the end;
 *   no value is NaN, infinite or beyond f32; no volume of `x` and `full` is one value everywhere;
 *   targets with a range lie in it: unitPar, and y with `low` and `high`, in -1 .. 1; physPar where unitPar and the range put it;
 *   it is a data set of halo's whose samples have the shape, type and targets of those of the first good file;
 *   none of its volumes is one that was seen before (two 64-bit hashes of its content).
 *
 * NPY and NPZ files are read likewise: an array of three axes or more is a volume, one of five a volume for each entry along the first (unless the last runs slowest), and those of
 * one name must be alike. Checksums of NPZ members are compared.
 *
 * A checkpoint's checksums are compared instead. Everything wrong with a file is one line; the next file is read whatever was wrong with this one.
 */
#include "io/verify.h"

#include "base/context.h"
#include "io/array_files.h"
#include "io/nifti.h"
#include "io/scan.h"
#include "io/source.h"

#include <stdarg.h>
#include <stdio.h>

enum { TOLD = 3 }; /* duplicates of a file that are named */

typedef struct volume {
    uint64_t hash[2];
    int64_t file, sample;
    int64_t twin_file, twin_sample; /* the first of the same content; file -1: none */
} volume;

typedef struct verifier {
    halo_context *ctx;
    hl_files files;
    hl_str *problem; /* [files] */
    volume *seen;
    size_t volumes, cap;
    hl_verified sum;
    int64_t model; /* the file that others must look like, -1: none yet */
    int64_t ext[4];
    halo_dtype dtype;
    int targets;
    /* the file and the dataset at hand */
    int64_t file;
    hl_h5 *h5;
    hl_h5_data *data;
    const char *name;
    char title[256]; /* "'NAME'", or what stands for an array without a name */
    int ndim;         /* and extents of what is scanned, as hl_scan_where wants them */
    const int64_t *dim;
    bool reversed, is_volume, items;
    int told;
    hl_str note; /* what is no fault */
    hl_str alike; /* what NumPy's arrays must be, a line for each name: "NAME\tDESCRIPTION\tFILE" */
} verifier;

/* -------------------------------------------------------------------------------------------------------- what is wrong */

static void wrong(verifier *v, const char *format, ...) HALO_PRINTF(2, 3);

static void wrong(verifier *v, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    hl_str *p = &v->problem[v->file];
    hl_str_addf(p, "%s%s", p->len ? "; " : "", line);
}

/* An error of the layers below, without the file's name, which the line begins with. */
static void wrong_because(verifier *v)
{
    char named[1100];
    const char *message = halo_error_message(v->ctx), *path = v->files.path[v->file];
    snprintf(named, sizeof(named), "'%.1000s': ", path);
    const char *at = strstr(message, named);
    wrong(v, "%s", at ? at + strlen(named) : message);
}

/* --------------------------------------------------------------------------------------------------------------- values */

static bool is_constant(const hl_scan *s) { return s->bad == 0 && s->values > 1 && s->low == s->high; }

/* Volumes of one value are told already. */
static halo_status keep_volume(verifier *v, const hl_scan *s)
{
    v->sum.samples++;
    if (is_constant(s)) return HALO_OK;
    HL_TRY(hl_grow(v->ctx, &v->seen, &v->cap, v->volumes + 1, sizeof(*v->seen), "hashes of volumes"));
    v->seen[v->volumes++] = (volume){.hash = {s->hash[0], s->hash[1]}, .file = v->file, .sample = s->item, .twin_file = -1};
    return HALO_OK;
}

/* Of a dataset's items the first few that are bad are told. */
static void judge_values(verifier *v, const hl_scan *s)
{
    hl_str place = {0};
    bool constant = v->is_volume && is_constant(s);
    if ((s->bad == 0 && !constant) || v->told++ >= TOLD) return;
    hl_scan_where(v->ndim, v->dim, v->reversed, v->items, s->item, s->first_bad, &place);
    if (s->bad > 0)
        wrong(v, "%s has %" PRId64 " value%s that %s not finite, the first at %s", v->title, s->bad, HL_S(s->bad), s->bad == 1 ? "is" : "are",
              place.s ? place.s : "");
    else if (v->items)
        wrong(v, "all values of sample %" PRId64 " of %s are %g", s->item, v->title, s->low);
    else
        wrong(v, "all values of %s are %g", v->title, s->low);
    hl_str_free(&place);
}

/* unitPar is in -1 .. 1 by definition, y where it has a range. */
static halo_status judge_range(verifier *v, const hl_scan *s)
{
    const double slack = 1e-3;
    bool unit = strcmp(v->name, "unitPar") == 0, ranged = v->h5 && strcmp(v->name, "y") == 0 && hl_h5_has_attr(v->h5, "y", "low");
    double worst = -s->low > s->high ? s->low : s->high;
    if ((!unit && !ranged) || s->low > s->high || fabs(worst) <= 1 + slack) return HALO_OK;
    wrong(v, "'%s' reaches %g, outside -1 .. 1%s", v->name, worst, ranged ? ", which its 'low' and 'high' stand for" : "");
    return HALO_OK;
}

static halo_status judge(void *user, const hl_scan *s)
{
    verifier *v = user;
    judge_values(v, s);
    return v->is_volume ? keep_volume(v, s) : judge_range(v, s);
}

/* ------------------------------------------------------------------------------------------------------------- datasets */

/* Failures are the file's, but for a lack of memory. */
static halo_status scan_dataset(verifier *v)
{
    hl_h5_data *d = v->data;
    if (v->is_volume && !hl_scan_written(d)) wrong(v, "'%s' was not written as a whole", v->name);
    halo_status st = hl_h5_claim(d, d->bytes);
    v->ndim = d->ndim;
    v->dim = d->dim;
    v->reversed = false;
    if (st == HALO_OK) st = hl_scan_dataset(d, v->items, judge, v);
    if (st == HALO_OK) v->sum.bytes += d->bytes;
    if (v->told > TOLD) wrong(v, "and so %d more of its samples", v->told - TOLD);
    return st;
}

static halo_status verify_dataset(void *user, const char *name)
{
    verifier *v = user;
    char path[1024];
    snprintf(path, sizeof(path), "/%s", name);
    if (!hl_h5_is_numeric(v->h5, path)) return HALO_OK;
    v->name = name;
    snprintf(v->title, sizeof(v->title), "'%s'", name);
    v->items = strcmp(name, "x") == 0;
    v->is_volume = v->items || strcmp(name, "full") == 0;
    v->told = 0;
    halo_status st = hl_h5_data_open(v->h5, path, INT64_C(128) << 20, &v->data);
    if (st == HALO_OK) st = scan_dataset(v);
    hl_h5_data_close(v->data);
    v->data = NULL;
    if (st == HALO_ERR_NOMEM) return st;
    if (st != HALO_OK) wrong_because(v);
    return HALO_OK;
}

/* ---------------------------------------------------------------------------------------------------------- as a data set */

enum { PARAMETERS = 64 };

static halo_status numbers(verifier *v, const char *name, double out[PARAMETERS], int64_t *n)
{
    static const int64_t start = 0;
    hl_h5_data *d;
    char raw[PARAMETERS * 8];
    *n = 0;
    if (!hl_h5_has(v->h5, name)) return HALO_OK;
    HL_TRY(hl_h5_data_open(v->h5, name, 0, &d));
    halo_status st = HALO_OK;
    if (d->ndim == 1 && d->dim[0] <= PARAMETERS) {
        st = hl_h5_read(d, &start, d->dim, raw, sizeof(raw));
        for (int64_t i = 0; i < d->dim[0] && st == HALO_OK; i++) out[i] = hl_number_value(d->type, raw, i);
        *n = d->dim[0];
    }
    hl_h5_data_close(d);
    return st;
}

/* physPar is where unitPar lies between `low` and `high`, to a thousandth of that. */
static halo_status judge_physical(verifier *v)
{
    double unit[PARAMETERS], physical[PARAMETERS], low[PARAMETERS], high[PARAMETERS];
    int64_t n[4];
    HL_TRY(numbers(v, "unitPar", unit, &n[0]));
    HL_TRY(numbers(v, "physPar", physical, &n[1]));
    HL_TRY(hl_h5_attr_numbers(v->h5, "unitPar", "low", PARAMETERS, low, &n[2]));
    HL_TRY(hl_h5_attr_numbers(v->h5, "unitPar", "high", PARAMETERS, high, &n[3]));
    for (int64_t t = 0; t < n[0] && t < n[1] && t < n[2] && t < n[3]; t++) {
        double expected = (low[t] + high[t]) / 2 + unit[t] * (high[t] - low[t]) / 2;
        if (fabs(physical[t] - expected) <= 1e-3 * fabs(high[t] - low[t]) || !isfinite(unit[t]) || !isfinite(physical[t])) continue;
        wrong(v, "physPar[%" PRId64 "] is %g, but unitPar %g of %g .. %g is %g", t, physical[t], unit[t], low[t], high[t], expected);
        return HALO_OK;
    }
    return HALO_OK;
}

typedef struct shape_text { char s[128]; } shape_text;

/* "4 x 64 x 64 x 64 int16" */
static shape_text shape_of(const int64_t ext[4], halo_dtype type)
{
    shape_text t;
    snprintf(t.s, sizeof(t.s), "%" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " %s", ext[0], ext[1], ext[2], ext[3], hl_number_name(hl_dtype_number(type)));
    return t;
}

static void compare(verifier *v, const hl_source_info *i, int targets)
{
    if (v->model < 0) {
        v->model = v->file;
        memcpy(v->ext, i->ext, sizeof(v->ext));
        v->dtype = i->dtype;
        v->targets = targets;
    }
    if (memcmp(v->ext, i->ext, sizeof(v->ext)) != 0 || v->dtype != i->dtype)
        wrong(v, "its samples are %s, those of '%s' %s", shape_of(i->ext, i->dtype).s, v->files.path[v->model], shape_of(v->ext, v->dtype).s);
    if (v->targets != targets) wrong(v, "it has %d target%s, '%s' has %d", targets, HL_S(targets), v->files.path[v->model], v->targets);
}

static halo_status verify_source(verifier *v)
{
    static const hl_target none = {.name = "", .low = NAN, .high = NAN, .mean = NAN, .std = NAN};
    bool universe = hl_h5_has(v->h5, "full"), own = hl_h5_has(v->h5, "x");
    if (!universe && !own) {
        if (v->model >= 0) wrong(v, "it has neither 'full' nor 'x'");
        return HALO_OK;
    }
    bool labelled = hl_h5_has(v->h5, universe ? "unitPar" : "y");
    hl_source *s = NULL;
    HL_TRY(hl_source_open(v->ctx, &(hl_source_options){.path = v->files.path[v->file], .label = labelled ? NULL : &none, .labels = !labelled}, &s));
    compare(v, &s->info, labelled ? s->info.targets : 0);
    hl_source_close(s);
    return universe ? judge_physical(v) : HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------- of NumPy and NIfTI */

/* Of "[4, 16, 16] int16". */
static int count_axes(const char *shape)
{
    int n = *shape == '[';
    for (; *shape && *shape != ']'; shape++) n += *shape == ',';
    return n;
}

/* Scans differ in their extents by nature: the first that does is named. */
static void note_difference(verifier *v, const char *have, const char *want, const char *first)
{
    if (v->note.len) return;
    hl_str_addf(&v->note, "images differ in their extents or type: '%s' is %s, '%.*s' %.*s", v->files.path[v->file], have, (int)strcspn(first, "\n"), first, (int)strcspn(want, "\t"), want);
}

/* Volumes of one name have the shape and type of the first. */
static halo_status compare_array(verifier *v, const hl_array *a)
{
    char have[320], key[300];
    snprintf(key, sizeof(key), "%s\t", v->name);
    hl_array plain = *a; /* the order of bytes is each file's own matter */
    plain.swapped = false;
    hl_array_describe(&plain, have, sizeof(have));
    for (const char *line = v->alike.s; line && *line; line = strchr(line, '\n') + 1) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *want = line + strlen(key), *file = strchr(want, '\t');
        bool same = strlen(have) == (size_t)(file - want) && strncmp(have, want, strlen(have)) == 0;
        if (!same && hl_is_nifti(a->path) && a->ndim == count_axes(want)) note_difference(v, have, want, file + 1);
        else if (!same)
            wrong(v, "%s is %s, that of '%.*s' %.*s", v->title, have, (int)strcspn(file + 1, "\n"), file + 1, (int)(file - want), want);
        return HALO_OK;
    }
    hl_str_addf(&v->alike, "%s%s\t%s\n", key, have, v->files.path[v->file]);
    return v->alike.failed ? HALO_ERR_NOMEM : HALO_OK;
}

static halo_status verify_array(void *user, const char *name)
{
    verifier *v = user;
    hl_array *a = NULL;
    v->name = name;
    v->told = 0;
    snprintf(v->title, sizeof(v->title), *name ? "'%s'" : "the array", name);
    halo_status st = hl_array_open(v->ctx, v->files.path[v->file], name, NULL, &a);
    if (st == HALO_OK) {
        v->ndim = a->ndim;
        v->dim = a->dim;
        v->reversed = a->reversed;
        v->is_volume = a->ndim >= 3;
        v->items = a->ndim == 5 && !a->reversed;
        st = hl_is_nifti(a->path) ? HALO_OK : hl_numpy_check(a);
        if (st == HALO_OK) st = hl_scan_array(a, v->items, judge, v);
        if (v->told > TOLD) wrong(v, "and so %d more of its samples", v->told - TOLD);
        if (st == HALO_OK) v->sum.bytes += a->bytes;
        if (st == HALO_OK && v->is_volume) st = compare_array(v, a);
        hl_array_close(a);
    }
    if (st == HALO_ERR_NOMEM) return st;
    if (st != HALO_OK) wrong_because(v);
    return HALO_OK;
}

/* ---------------------------------------------------------------------------------------------------------------- files */

static halo_status verify_checkpoint(verifier *v)
{
    hl_ckpt *file;
    HL_TRY(hl_ckpt_open(v->ctx, v->files.path[v->file], &file));
    halo_status st = hl_ckpt_verify(file);
    (void)hl_ckpt_close(file, false);
    return st;
}

static halo_status verify_data(verifier *v)
{
    HL_TRY(hl_h5_open(v->ctx, v->files.path[v->file], &v->h5));
    halo_status st = hl_h5_list(v->h5, verify_dataset, v);
    if (st == HALO_OK && v->problem[v->file].len == 0) st = verify_source(v);
    hl_h5_close(v->h5);
    v->h5 = NULL;
    return st;
}

static halo_status verify_files(verifier *v)
{
    for (v->file = 0; v->file < v->files.count; v->file++) {
        const char *path = v->files.path[v->file];
        halo_status st = hl_is_nifti(path) ? verify_array(v, "") : hl_is_numpy(path) ? hl_numpy_list(v->ctx, path, verify_array, v) : hl_ckpt_is(path) ? verify_checkpoint(v) : verify_data(v);
        if (st == HALO_ERR_NOMEM) return st;
        if (st != HALO_OK) wrong_because(v);
    }
    return HALO_OK;
}

/* ----------------------------------------------------------------------------------------------------------- duplicates */

static int by_place(const void *a, const void *b)
{
    const volume *x = a, *y = b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

static int by_content(const void *a, const void *b)
{
    const volume *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->hash[i] != y->hash[i]) return x->hash[i] < y->hash[i] ? -1 : 1;
    return by_place(x, y);
}

/* Equal volumes stand together after sorting, the first in the order of files first. */
static void find_twins(verifier *v)
{
    qsort(v->seen, v->volumes, sizeof(*v->seen), by_content);
    for (size_t i = 1, first = 0; i < v->volumes; i++) {
        if (memcmp(v->seen[i].hash, v->seen[first].hash, sizeof(v->seen[i].hash)) == 0) {
            v->seen[i].twin_file = v->seen[first].file;
            v->seen[i].twin_sample = v->seen[first].sample;
        } else {
            first = i;
        }
    }
    qsort(v->seen, v->volumes, sizeof(*v->seen), by_place);
}

static void tell_twin(verifier *v, const volume *a)
{
    if (a->file == a->twin_file) wrong(v, "sample %" PRId64 " has the volume of sample %" PRId64, a->sample, a->twin_sample);
    else wrong(v, "sample %" PRId64 " has the volume of sample %" PRId64 " of '%s'", a->sample, a->twin_sample, v->files.path[a->twin_file]);
}

static void tell_twins(verifier *v)
{
    if (v->volumes < 2) return;
    find_twins(v);
    for (size_t i = 0, next; i < v->volumes; i = next) {
        int64_t told = 0;
        v->file = v->seen[i].file;
        for (next = i; next < v->volumes && v->seen[next].file == v->file; next++)
            if (v->seen[next].twin_file >= 0 && told++ < TOLD) tell_twin(v, &v->seen[next]);
        if (told > TOLD) wrong(v, "and so %" PRId64 " more that were there before", told - TOLD);
    }
}

/* ------------------------------------------------------------------------------------------------------------- the report */

static void report(verifier *v, hl_str *text, hl_json *json)
{
    hl_json_array(json, "bad");
    for (int64_t i = 0; i < v->files.count; i++) {
        if (v->problem[i].len == 0) continue;
        v->sum.bad++;
        hl_str_addf(text, "%s: %s\n", v->files.path[i], v->problem[i].s);
        hl_json_object(json, NULL);
        hl_json_string(json, "file", v->files.path[i]);
        hl_json_string(json, "problem", v->problem[i].s);
        hl_json_end_object(json);
    }
    hl_json_end_array(json);
    if (v->note.len) hl_str_addf(text, "note: %s\n", v->note.s);
    if (v->note.len) hl_json_string(json, "note", v->note.s);
    hl_json_int(json, "files", v->sum.files);
    hl_json_int(json, "bad_files", v->sum.bad);
    hl_json_int(json, "samples", v->sum.samples);
    hl_json_int(json, "bytes", v->sum.bytes);
}

static halo_status verify_all(verifier *v, hl_str *text, hl_json *json)
{
    v->sum.files = v->files.count;
    HL_TRY(hl_calloc(v->ctx, (size_t)v->files.count + 1, sizeof(*v->problem), "problems", &v->problem));
    HL_TRY(verify_files(v));
    tell_twins(v);
    report(v, text, json);
    return HALO_OK;
}

halo_status hl_data_verify(halo_context *ctx, const char *path, hl_str *text, hl_json *json, hl_verified *out)
{
    verifier v = {.ctx = ctx, .model = -1};
    HL_TRY(hl_array_files_find(ctx, path, HL_ORDER_NAME, &v.files));
    void (*log)(void *, halo_log_level, const char *) = ctx->log;
    ctx->log = NULL; /* what is wrong with a file goes into its line */
    halo_status st = verify_all(&v, text, json);
    ctx->log = log;
    if (st == HALO_OK) *out = v.sum;
    else hl_log(ctx, HALO_LOG_ERROR, "%s", halo_error_message(ctx));
    for (int64_t i = 0; i < v.files.count && v.problem; i++) hl_str_free(&v.problem[i]);
    free(v.problem);
    free(v.seen);
    hl_str_free(&v.alike);
    hl_str_free(&v.note);
    hl_files_free(&v.files);
    return st;
}
