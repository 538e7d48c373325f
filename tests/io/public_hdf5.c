/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public HDF5 files, written by others, against a manifest made by another reader
 * (HALO_TESTDATA/MANIFEST_hdf5.json): every numeric dataset reads to the manifest's sum, least, greatest,
 * first and last values, or ends in one error that names the file. Each file is read in a process of its own,
 * so that a crash in the middle of a broken file would be counted, not fatal; its address space is limited,
 * so that nothing is allocated because a file claims it.
 */
#include "tests/io/iotest.h"
#include "base/file.h"
#include "base/yaml.h"
#include "io/h5.h"

#include <sys/wait.h>

enum outcome { EQUAL = 0, EMPTY, REFUSED, EXPECTED_ERROR, WRONG, UNEXPECTED_ERROR, SILENT_ERROR, OUTCOMES };

static bool number(const hl_yaml *map, const char *key, double *out)
{
    const hl_yaml *n = hl_yaml_find(map, key);
    return n && hl_yaml_number(n, out);
}

static bool near(double a, double b, double scale)
{
    return a == b || fabs(a - b) <= 1e-12 * scale;
}

static bool ends_equal(const hl_yaml *list, const hl_h5_data *d, const void *raw, int64_t first)
{
    for (size_t i = 0; list && i < list->items; i++) {
        double want, have = hl_number_value(d->type, raw, first + (int64_t)i);
        if (hl_yaml_number(list->item[i], &want) && !near(have, want, fabs(want))) return false;
    }
    return true;
}

static bool equal(const hl_yaml *entry, const hl_h5_data *d, const void *raw)
{
    double sum = 0, size = 0, least = INFINITY, most = -INFINITY, want;
    for (int64_t i = 0; i < d->elements; i++) {
        double v = hl_number_value(d->type, raw, i);
        if (!isfinite(v)) continue;
        sum += v;
        size += fabs(v);
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    const hl_yaml *last = hl_yaml_find(entry, "last4_C");
    return (!number(entry, "sum", &want) || near(sum, want, size)) &&
           (!number(entry, "min", &want) || near(least, want, fabs(want))) &&
           (!number(entry, "max", &want) || near(most, want, fabs(want))) &&
           ends_equal(hl_yaml_find(entry, "first8_C"), d, raw, 0) &&
           ends_equal(last, d, raw, last ? d->elements - (int64_t)last->items : 0);
}

static bool shape_equal(const hl_yaml *shape, const hl_h5_data *d)
{
    if (!shape || shape->kind != HL_YAML_LIST || (int)shape->items != d->ndim) return false;
    for (int i = 0; i < d->ndim; i++) {
        int64_t n;
        if (!hl_yaml_int(shape->item[i], &n) || n != d->dim[i]) return false;
    }
    return true;
}

/* An error must name the file; whether one is right here, the manifest says. */
static enum outcome error_is(halo_context *ctx, const char *path, bool expected)
{
    if (!strstr(halo_error_message(ctx), path)) return SILENT_ERROR;
    return expected ? EXPECTED_ERROR : UNEXPECTED_ERROR;
}

static enum outcome read_one(halo_context *ctx, hl_h5 *file, const hl_yaml *entry, const char *name)
{
    const hl_yaml *class = hl_yaml_find(entry, "class"), *shape = hl_yaml_find(entry, "shape");
    bool numeric = class && (strcmp(class->text, "integer") == 0 || strcmp(class->text, "float") == 0),
         values = hl_yaml_find(entry, "sum") != NULL;
    bool zero = shape && shape->kind == HL_YAML_SCALAR; /* null: no extents */
    int64_t start[HL_H5_RANK] = {0};
    hl_h5_data *d = NULL;
    void *raw = NULL;
    if (hl_h5_data_open(file, name, 0, &d) != HALO_OK)
        return error_is(ctx, file->path, !numeric || zero || !values);
    const hl_yaml *type = hl_yaml_find(entry, "dtype");
    enum outcome got = WRONG;
    /* h5py's booleans have a shape, and no values, in the manifest */
    if (!(numeric || (type && strcmp(type->text, "bool") == 0)) || !shape_equal(shape, d))
        got = WRONG;
    else if (d->elements == 0)
        got = EMPTY;
    else if (hl_h5_claim(d, d->bytes) != HALO_OK)
        got = values ? UNEXPECTED_ERROR : REFUSED;
    else if (d->bytes > INT64_C(256) << 20)
        got = REFUSED; /* backed by the file, but too large for a test */
    else if (hl_aligned(ctx, (size_t)d->bytes, name, &raw) != HALO_OK)
        got = UNEXPECTED_ERROR;
    else if (hl_h5_read(d, start, d->dim, raw, (size_t)d->bytes) != HALO_OK)
        got = error_is(ctx, file->path, !values);
    else
        got = equal(entry, d, raw) ? EQUAL : WRONG;
    free(raw);
    hl_h5_data_close(d);
    return got;
}

typedef struct tally {
    int count[OUTCOMES], unlisted;
} tally;

static const hl_yaml *datasets; /* of the file that the child looks at */
static halo_status is_listed(void *user, const char *name)
{
    char path[1024];
    snprintf(path, sizeof(path), "/%s", name);
    if (!hl_yaml_find(datasets, path)) ++*(int *)user;
    return HALO_OK;
}

/* In the child. */
static void read_file(halo_context *ctx, const char *path, const hl_yaml *entry, tally *t)
{
    hl_h5 *file = NULL;
    bool broken = hl_yaml_find(entry, "open_error") != NULL;
    datasets = hl_yaml_find(entry, "datasets");
    if (hl_h5_open(ctx, path, &file) != HALO_OK) {
        enum outcome o = error_is(ctx, path, broken);
        t->count[o]++;
        if (o != EXPECTED_ERROR) tap_note("%s: %s", path, halo_error_message(ctx));
        return;
    }
    if (broken) tap_note("%s opens, the manifest says it does not", path);
    for (size_t i = 0; datasets && i < datasets->items; i++) {
        enum outcome o = read_one(ctx, file, datasets->item[i], datasets->item[i]->key);
        t->count[o]++;
        if (o >= WRONG)
            tap_note("%s %s: %s", path, datasets->item[i]->key,
                     o == WRONG ? "other values or shape than in the manifest" : halo_error_message(ctx));
    }
    (void)hl_h5_list(file, is_listed, &t->unlisted); /* broken groups end it early */
    hl_h5_close(file);
}

/* Returns how the child ended: 0, or its signal or status. */
static int in_a_child(halo_context *ctx, const char *path, const hl_yaml *entry, tally *total)
{
    tally t = {{0}, 0};
    int pipes[2], status = 0;
    if (pipe(pipes) != 0) tap_bail("no pipe");
    pid_t child = fork();
    if (child == 0) {
        io_confine();
        read_file(ctx, path, entry, &t);
        ssize_t put = write(pipes[1], &t, sizeof(t));
        _exit(put == (ssize_t)sizeof(t) ? 0 : 1);
    }
    close(pipes[1]);
    bool whole = read(pipes[0], &t, sizeof(t)) == (ssize_t)sizeof(t);
    close(pipes[0]);
    waitpid(child, &status, 0);
    for (int o = 0; whole && o < OUTCOMES; o++) total->count[o] += t.count[o];
    total->unlisted += t.unlisted;
    return status;
}

static void volumes(halo_context *ctx, const char *root)
{
    hl_yaml *list = NULL;
    char path[1200];
    int good = 0, refused = 0, bad = 0;
    snprintf(path, sizeof(path), "%s/HDF5_3D_DATASETS.json", root);
    MUST(hl_yaml_load(ctx, path, &list));
    for (size_t i = 0; i < list->items; i++) {
        const hl_yaml *e = list->item[i];
        hl_h5 *file = NULL;
        snprintf(path, sizeof(path), "%s/%s", root, hl_yaml_find(e, "file")->text);
        double sum = 0, want = NAN;
        bool has_sum = number(e, "sum", &want);
        hl_h5_data *d = NULL;
        void *raw = NULL;
        int64_t start[HL_H5_RANK] = {0};
        halo_status st = hl_h5_open(ctx, path, &file);
        if (st == HALO_OK) st = hl_h5_data_open(file, hl_yaml_find(e, "dataset")->text, 0, &d);
        if (st == HALO_OK) st = hl_h5_claim(d, d->bytes);
        if (st == HALO_OK) st = hl_aligned(ctx, (size_t)d->bytes, "a volume", &raw);
        if (st == HALO_OK) st = hl_h5_read(d, start, d->dim, raw, (size_t)d->bytes);
        for (int64_t k = 0; st == HALO_OK && k < d->elements; k++) sum += hl_number_value(d->type, raw, k);
        if (st == HALO_OK && has_sum && near(sum, want, fabs(want)))
            good++;
        else if (st != HALO_OK && !has_sum && strstr(halo_error_message(ctx), path))
            refused++;
        else {
            bad++;
            tap_note("%s %s: sum %.17g, expected %.17g", path, hl_yaml_find(e, "dataset")->text, sum, want);
        }
        free(raw);
        hl_h5_data_close(d);
        hl_h5_close(file);
    }
    tap_ok(bad == 0 && good > 90,
           "%d of %zu public volumes read to the manifest's sum, %d end in an error as they should", good,
           list->items, refused);
    hl_yaml_destroy(list);
}

/* JSON is YAML but for names of more than 1024 bytes, which libyaml refuses; the manifest has some among
 * links, which nobody needs here. */
static hl_yaml *load_manifest(halo_context *ctx, const char *path)
{
    char *text = NULL, *to, *end;
    size_t n = 0;
    hl_yaml *root = NULL;
    MUST(hl_file_read(ctx, path, (size_t)16 << 20, &text, &n));
    to = text;
    for (char *line = text; line < text + n; line = end) {
        end = memchr(line, '\n', (size_t)(text + n - line));
        end = end ? end + 1 : text + n;
        if (end - line > 1000) continue;
        memmove(to, line, (size_t)(end - line));
        to += end - line;
    }
    MUST(hl_yaml_parse(ctx, path, text, (size_t)(to - text), &root));
    free(text);
    return root;
}

static void everything(halo_context *ctx, const char *root)
{
    char path[1200];
    tally t = {{0}, 0};
    int crashed = 0;
    snprintf(path, sizeof(path), "%s/MANIFEST_hdf5.json", root);
    hl_yaml *manifest = load_manifest(ctx, path);
    for (size_t i = 0; i < manifest->items; i++) {
        snprintf(path, sizeof(path), "%s/%s", root, manifest->item[i]->key);
        fflush(stdout);
        int status = in_a_child(ctx, path, manifest->item[i], &t);
        if (status == 0) continue;
        crashed++;
        tap_note("%s: status %d", path, status);
    }
    tap_note("%d equal, %d empty, %d not read for their size, %d errors that the manifest expects, %d wrong, "
             "%d errors that it does not",
             t.count[EQUAL], t.count[EMPTY], t.count[REFUSED], t.count[EXPECTED_ERROR], t.count[WRONG],
             t.count[UNEXPECTED_ERROR]);
    tap_ok(crashed == 0, "none of %zu public files crashes or hangs", manifest->items);
    tap_ok(t.count[WRONG] == 0 && t.count[EQUAL] > 1200,
           "%d datasets read to the manifest's values, none to others", t.count[EQUAL]);
    tap_ok(t.count[UNEXPECTED_ERROR] == 0 && t.count[SILENT_ERROR] == 0,
           "%d errors, each where the manifest has one, each naming its file", t.count[EXPECTED_ERROR]);
    hl_yaml_destroy(manifest);
}

static void ignore(void *user, halo_log_level level, const char *message)
{
    (void)user, (void)level, (void)message;
}

int main(void)
{
    const char *root = getenv("HALO_TESTDATA");
    char manifest[1200];
    if (!root || !*root) tap_skip_all("HALO_TESTDATA is not set");
    snprintf(manifest, sizeof(manifest), "%s/MANIFEST_hdf5.json", root);
    if (access(manifest, R_OK) != 0) tap_skip_all("no MANIFEST_hdf5.json in HALO_TESTDATA");
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    halo_context *ctx;
    hl_io_own_process();
    o.log = ignore;
    o.threads = 1;
    if (halo_context_create(&o, &ctx) != HALO_OK) tap_bail("no context");
    volumes(ctx, root);
    everything(ctx, root);
    halo_context_destroy(ctx);
    return tap_done();
}
