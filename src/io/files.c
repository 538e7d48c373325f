/* SPDX-License-Identifier: Apache-2.0 */
/* files.c -- see files.h. */
#include "io/files.h"
#include "base/file.h"
#include "base/str.h"
#include "io/nifti.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

const char *hl_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

static halo_status add(hl_files *f, size_t *cap, char *path)
{
    halo_status st = hl_grow(f->ctx, &f->path, cap, (size_t)f->count + 1, sizeof(char *), "file names");
    if (st == HALO_OK)
        f->path[f->count++] = path;
    else
        free(path);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static halo_status find_in_directory(const char *path, hl_files *f)
{
    DIR *dir = opendir(path);
    if (!dir) return hl_fail(f->ctx, HALO_ERR_IO, "cannot open directory '%s': %s", path, strerror(errno));
    halo_status st = HALO_OK;
    size_t cap = 0;
    for (struct dirent *e; st == HALO_OK && (e = readdir(dir));) {
        char *joined;
        if (e->d_name[0] == '.' || !(ends_in(e->d_name, ".hdf5") || ends_in(e->d_name, ".h5"))) continue;
        st = hl_path_join(f->ctx, path, e->d_name, &joined);
        if (st == HALO_OK) st = add(f, &cap, joined);
    }
    closedir(dir);
    if (st == HALO_OK && f->count == 0)
        st = hl_fail(f->ctx, HALO_ERR_IO, "no *.hdf5 or *.h5 file in directory '%s'", path);
    if (f->count > 1) qsort(f->path, (size_t)f->count, sizeof(char *), by_name);
    return st;
}

/* One line of a list: absolute, or relative to the list's directory of `dir` characters. */
static halo_status add_line(hl_files *f, size_t *cap, const char *list, size_t dir, const char *line)
{
    hl_str s = {0};
    if (line[0] != '/') hl_str_addn(&s, list, dir);
    hl_str_add(&s, line);
    if (!s.failed) return add(f, cap, s.s);
    hl_str_free(&s);
    return hl_fail(f->ctx, HALO_ERR_NOMEM, "out of memory: file names");
}

static halo_status find_in_list(const char *path, hl_files *f)
{
    char *text = NULL, *rest = NULL;
    size_t bytes = 0, cap = 0, dir = (size_t)(hl_base_name(path) - path);
    HL_TRY(hl_file_read(f->ctx, path, (size_t)64 << 20, &text, &bytes));
    halo_status st = HALO_OK;
    for (char *line = strtok_r(text, "\r\n", &rest); line && st == HALO_OK;
         line = strtok_r(NULL, "\r\n", &rest)) {
        while (isspace((unsigned char)*line)) line++;
        for (size_t n = strlen(line); n > 0 && isspace((unsigned char)line[n - 1]); n--) line[n - 1] = '\0';
        if (*line && *line != '#') st = add_line(f, &cap, path, dir, line);
    }
    free(text);
    if (st == HALO_OK && f->count == 0) st = hl_fail(f->ctx, HALO_ERR_IO, "no file is named in '%s'", path);
    return st;
}

halo_status hl_files_find(halo_context *ctx, const char *path, hl_files *out)
{
    hl_files f = {.ctx = ctx};
    halo_status st;
    char *copy = NULL;
    size_t cap = 0;
    if (hl_is_directory(path))
        st = find_in_directory(path, &f);
    else if (ends_in(path, ".txt") || ends_in(path, ".list"))
        st = find_in_list(path, &f);
    else if ((st = hl_strdup(ctx, path, &copy)) == HALO_OK)
        st = add(&f, &cap, copy);
    if (st == HALO_OK)
        *out = f;
    else
        hl_files_free(&f);
    return st;
}

void hl_files_keep(hl_files *f, int64_t first, int64_t count)
{
    int64_t kept = 0;
    if (count == 0) count = f->count;
    for (int64_t i = 0; i < f->count; i++)
        if (i >= first && i - first < count) {
            if (f->name) f->name[kept] = f->name[i];
            f->path[kept++] = f->path[i];
        } else {
            free(f->path[i]);
            if (f->name) free(f->name[i]);
        }
    f->count = kept;
}

static void free_names(hl_files *f)
{
    for (int64_t i = 0; i < f->count && f->name; i++) free(f->name[i]);
    free(f->name);
    f->name = NULL;
}

void hl_files_free(hl_files *f)
{
    free_names(f);
    for (int64_t i = 0; i < f->count; i++) free(f->path[i]);
    free(f->path);
    *f = (hl_files){0};
}

/* -------------------------------------------------------------------------------------------------- names */

typedef struct named { /* a file while names are compared */
    char *key;
    const char *path;
    int64_t file;
} named;

/* Its last `parts` parts, '_' between them. *more: there are others. */
static halo_status tail_of(halo_context *ctx, const char *path, int parts, bool *more, char **out)
{
    const char *at = path + strlen(path);
    for (int n = 0; n < parts && at > path; n++) {
        while (at > path && at[-1] == '/') at--;
        while (at > path && at[-1] != '/') at--;
    }
    *more = *more || at > path;
    at += strspn(at, "/");
    HL_TRY(hl_strdup(ctx, at, out));
    for (char *c = *out; *c; c++)
        if (*c == '/') *c = '_';
    return HALO_OK;
}

static int by_key(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int c = strcmp(x->key, y->key);
    return c ? c : strcmp(x->path, y->path);
}

static halo_status sort_names(const hl_files *f, named *all)
{
    for (int64_t i = 0; i < f->count; i++) {
        size_t room = strlen(f->name[i]) + 1;
        all[i] = (named){.path = f->path[i], .file = i};
        HL_TRY(hl_calloc(f->ctx, room, 1, "file names", &all[i].key));
        if (hl_is_nifti(f->path[i])) hl_nifti_case(f->name[i], all[i].key, room);
        else memcpy(all[i].key, f->name[i], room);
    }
    qsort(all, (size_t)f->count, sizeof(*all), by_key);
    return HALO_OK;
}

static bool told_apart(const named *all, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        if (strcmp(all[i].key, all[i - 1].key) == 0 && strcmp(all[i].path, all[i - 1].path) != 0) return false;
    return true;
}

/* Nothing else tells them apart: the number of the file before its name. */
static halo_status number_names(hl_files *f, const named *all)
{
    int64_t number = 0;
    for (int64_t i = 0; i < f->count; i++) {
        hl_str s = {0};
        if (i == 0 || strcmp(all[i].path, all[i - 1].path) != 0) number = all[i].file;
        hl_str_addf(&s, "%" PRId64 "_%s", number, hl_base_name(all[i].path));
        if (s.failed) {
            hl_str_free(&s);
            return hl_fail(f->ctx, HALO_ERR_NOMEM, "out of memory: file names");
        }
        free(f->name[all[i].file]);
        f->name[all[i].file] = s.s;
    }
    return HALO_OK;
}

/* Names of so many parts; *done: they do, or there is no more that could. */
static halo_status try_names(hl_files *f, int parts, bool *done)
{
    bool more = false;
    named *all;
    HL_TRY(hl_calloc(f->ctx, (size_t)f->count, sizeof(*all), "file names", &all));
    halo_status st = hl_calloc(f->ctx, (size_t)f->count, sizeof(*f->name), "file names", &f->name);
    for (int64_t i = 0; i < f->count && st == HALO_OK; i++) st = tail_of(f->ctx, f->path[i], parts, &more, &f->name[i]);
    if (st == HALO_OK) st = sort_names(f, all);
    bool apart = st == HALO_OK && told_apart(all, f->count);
    if (st == HALO_OK && !apart && !more) st = number_names(f, all);
    *done = apart || !more;
    for (int64_t i = 0; i < f->count; i++) free(all[i].key);
    free(all);
    return st;
}

halo_status hl_files_set_names(hl_files *f)
{
    bool done = f->count == 0;
    for (int parts = 1; !done; parts++) {
        free_names(f);
        HL_TRY(try_names(f, parts, &done));
    }
    return HALO_OK;
}

const char *hl_files_name(const hl_files *f, int64_t file) { return f->name ? f->name[file] : hl_base_name(f->path[file]); }

/* ------------------------------------------------------------------------------------------- open volumes */

void hl_open_files_init(hl_open_files *o, const hl_files *files, const char *dataset, const char *axes, hl_read_count *count)
{
    *o = (hl_open_files){.files = files, .dataset = dataset, .axes = axes, .count = count};
    for (int i = 0; i < HL_OPEN_MOST; i++) o->slot[i].file = -1;
}

static void close_slot(hl_open_volume *s)
{
    hl_h5_data_close(s->volume.data);
    hl_h5_close(s->h5);
    *s = (hl_open_volume){.file = -1};
}

static halo_status check_rank(const hl_h5_data *d, const char *axes)
{
    char shape[320], letters[32] = "";
    int want = (int)strlen(axes);
    if (d->ndim == want) return HALO_OK;
    for (int i = 0; i < want; i++)
        snprintf(letters + strlen(letters), sizeof(letters) - strlen(letters), "%s%c", i ? ", " : "",
                 axes[i]);
    return hl_fail(d->file->ctx, HALO_ERR_SHAPE, "'%s': dataset '%s' is %s, expected %d dimensions [%s]",
                   d->file->path, d->name, hl_h5_describe(d, shape, sizeof(shape)), want, letters);
}

static halo_status open_slot(const hl_open_files *o, int64_t file, hl_open_volume *s)
{
    hl_h5_data *d = NULL;
    HL_TRY(hl_h5_open_counted(o->files->ctx, o->files->path[file], o->count, &s->h5));
    halo_status st = hl_h5_data_open(s->h5, o->dataset, o->cache_bytes, &d);
    if (st == HALO_OK) st = check_rank(d, o->axes);
    if (st == HALO_OK) {
        hl_volume_set(&s->volume, d, o->axes);
        s->file = file;
        return HALO_OK;
    }
    hl_h5_data_close(d);
    hl_h5_close(s->h5);
    *s = (hl_open_volume){.file = -1};
    return st;
}

halo_status hl_open_files_get(hl_open_files *o, int64_t file, hl_volume **volume)
{
    hl_open_volume *oldest = &o->slot[0];
    for (int i = 0; i < HL_OPEN_MOST; i++) {
        hl_open_volume *s = &o->slot[i];
        if (s->file == file) {
            s->used = ++o->clock;
            *volume = &s->volume;
            return HALO_OK;
        }
        if (s->file < 0 || (oldest->file >= 0 && s->used < oldest->used)) oldest = s;
    }
    if (oldest->file >= 0) close_slot(oldest);
    HL_TRY(open_slot(o, file, oldest));
    oldest->used = ++o->clock;
    *volume = &oldest->volume;
    return HALO_OK;
}

void hl_open_files_close(hl_open_files *o)
{
    for (int i = 0; i < HL_OPEN_MOST; i++)
        if (o->slot[i].file >= 0) close_slot(&o->slot[i]);
}
