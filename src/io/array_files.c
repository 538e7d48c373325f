/* SPDX-License-Identifier: Apache-2.0 */
/* array_files.c -- see array_files.h. */
#include "io/array_files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "io/nifti.h"
#include "io/scans.h"

/* ------------------------------------------------------------------------------------------------------------- files */

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Runs of digits compare as the numbers that they are, of any length. */
static int compare_numbers(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            while (*a == '0') a++;
            while (*b == '0') b++;
            size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
            int c = n == m ? strncmp(a, b, n) : n < m ? -1 : 1;
            if (c) return c;
            a += n;
            b += m;
        } else if (*a != *b) break;
        else a++, b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static int by_number(const void *a, const void *b)
{
    int c = compare_numbers(*(char *const *)a, *(char *const *)b);
    return c ? c : by_name(a, b);
}

static bool is_array_file(const char *name)
{
    static const char *const ends[] = {".h5", ".hdf5", ".he5", ".nc", ".npy", ".npz", ".nii", ".nii.gz", ".hdr", ".hdr.gz"};
    size_t n = strlen(name);
    for (size_t i = 0; i < HL_COUNT(ends); i++) {
        size_t m = strlen(ends[i]);
        if (n > m && strcmp(name + n - m, ends[i]) == 0) return name[0] != '.';
    }
    return false;
}

static halo_status add(hl_files *f, size_t *cap, const char *dir, const char *name)
{
    char *path;
    HL_TRY(dir ? hl_path_join(f->ctx, dir, name, &path) : hl_strdup(f->ctx, name, &path));
    halo_status st = hl_grow(f->ctx, &f->path, cap, (size_t)f->count + 1, sizeof(char *), "file names");
    if (st == HALO_OK) f->path[f->count++] = path;
    else free(path);
    return st;
}

static halo_status find_in_directory(const char *path, hl_files *f)
{
    DIR *dir = opendir(path);
    if (!dir) return hl_fail(f->ctx, HALO_ERR_IO, "cannot open directory '%s': %s", path, strerror(errno));
    halo_status st = HALO_OK;
    size_t cap = 0;
    for (struct dirent *e; st == HALO_OK && (e = readdir(dir));)
        if (is_array_file(e->d_name)) st = add(f, &cap, path, e->d_name);
    closedir(dir);
    if (st == HALO_OK && f->count == 0) st = hl_fail(f->ctx, HALO_ERR_IO, "no *.hdf5, *.h5, *.he5, *.nc, *.npy, *.npz, *.nii, *.nii.gz or *.hdr file in directory '%s'", path);
    return st;
}

static halo_status find_by_pattern(const char *pattern, hl_files *f)
{
    glob_t g;
    size_t cap = 0;
    int rc = glob(pattern, GLOB_NOSORT, NULL, &g);
    halo_status st = rc == 0             ? HALO_OK
                     : rc == GLOB_NOMATCH ? hl_fail(f->ctx, HALO_ERR_IO, "no file is called like '%s'", pattern)
                                          : hl_fail(f->ctx, HALO_ERR_IO, "cannot look for '%s'", pattern);
    for (size_t i = 0; rc == 0 && i < g.gl_pathc && st == HALO_OK; i++) st = add(f, &cap, NULL, g.gl_pathv[i]);
    if (rc == 0) globfree(&g);
    return st;
}

halo_status hl_array_files_find(halo_context *ctx, const char *path, hl_file_order order, hl_files *out)
{
    hl_files f = {.ctx = ctx};
    bool directory = hl_is_directory(path), pattern = !directory && strpbrk(path, "*?[") && !hl_file_exists(path);
    if (!directory && !pattern) return hl_files_find(ctx, path, out); /* a file, or a list in the order that it has */
    halo_status st = directory ? find_in_directory(path, &f) : find_by_pattern(path, &f);
    if (st != HALO_OK) {
        hl_files_free(&f);
        return st;
    }
    qsort(f.path, (size_t)f.count, sizeof(char *), order == HL_ORDER_NUMBER ? by_number : by_name);
    *out = f;
    return HALO_OK;
}

const char *hl_files_deciding(const hl_files *files)
{
    for (int64_t i = 0; i < files->count; i++)
        if (!hl_is_plain_array(files->path[i])) return files->path[i];
    return files->path[0];
}

bool hl_array_files_order_is_plain(const hl_files *f, const char **before, const char **after)
{
    for (int64_t i = 1; i < f->count; i++) {
        if (strcmp(f->path[i - 1], f->path[i]) > 0) return true; /* of a list, whose order somebody chose */
        *before = f->path[i - 1];
        *after = f->path[i];
        if (by_number(before, after) > 0) return false;
    }
    return true;
}

static bool has_pair(const char *path, const hl_files *with)
{
    if (!hl_is_nifti(path)) return true;
    for (int64_t i = 0; i < with->count; i++)
        if (!hl_is_nifti(with->path[i]) || hl_nifti_same_case(path, with->path[i])) return true;
    return false;
}

void hl_files_add_unpaired(const hl_files *files, const char *what, const hl_files *with, hl_str *text)
{
    const int64_t named = 3;
    int64_t n = 0;
    for (int64_t i = 0; i < files->count; i++) {
        if (has_pair(files->path[i], with) || ++n > named) continue;
        if (n == 1) hl_str_addf(text, "; no %s for ", what);
        hl_str_addf(text, "%s'%s'", n > 1 ? ", " : "", hl_base_name(files->path[i]));
    }
    if (n > named) hl_str_addf(text, " and %" PRId64 " other%s", n - named, HL_S(n - named));
}

/* ------------------------------------------------------------------------------------------------------- open arrays */

void hl_array_set_init(hl_array_set *s, halo_context *ctx, const char *name, hl_read_count *count)
{
    *s = (hl_array_set){.ctx = ctx, .count = count};
    snprintf(s->name, sizeof(s->name), "%s", name);
    s->parts = 1;
    for (const char *c = strchr(name, ','); c; c = strchr(c + 1, ',')) s->parts++;
    for (int i = 0; i < HL_OPEN_MOST; i++) s->slot[i].file = -1;
}

void hl_array_set_close(hl_array_set *s)
{
    for (int i = 0; i < HL_OPEN_MOST; i++)
        if (s->slot[i].file >= 0) hl_array_close(s->slot[i].array);
    hl_files_free(&s->files);
    hl_files_free(&s->more);
    free(s->first);
    free(s->ext);
    free(s->span);
    free(s->scratch);
}

static hl_array_slot *find_slot(hl_array_set *s, int64_t file)
{
    hl_array_slot *oldest = &s->slot[0];
    for (int i = 0; i < HL_OPEN_MOST; i++) {
        hl_array_slot *slot = &s->slot[i];
        if (slot->file == file) return slot;
        if (slot->file < 0 || (oldest->file >= 0 && slot->used < oldest->used)) oldest = slot;
    }
    return oldest;
}

static halo_status open_part(hl_array_set *s, int64_t file, int part, hl_array **array)
{
    char name[HL_TEXT_MAX];
    const char *from = s->name, *path = part > 0 && s->more.count ? s->more.path[file * (s->parts - 1) + part - 1] : s->files.path[file];
    for (int k = 0; k < part && strchr(from, ','); k++) from = strchr(from, ',') + 1;
    from += strspn(from, " ");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(from, ","), from);
    return hl_array_open(s->ctx, path, name, s->count, array);
}

static halo_status get_part(hl_array_set *s, int64_t file, int part, hl_array **array)
{
    int64_t index = file + part * s->files.count;
    hl_array_slot *slot = find_slot(s, index);
    for (int i = 0; i < HL_OPEN_MOST; i++)
        if (s->slot[i].file >= 0 && s->slot[i].file % s->files.count != file) hl_array_rest(s->slot[i].array);
    if (slot->file != index) {
        if (slot->file >= 0) hl_array_close(slot->array);
        slot->file = -1;
        HL_TRY(open_part(s, file, part, &slot->array));
        slot->file = index;
    }
    slot->used = ++s->clock;
    *array = slot->array;
    return HALO_OK;
}

halo_status hl_array_set_get(hl_array_set *s, int64_t file, hl_array **array) { return get_part(s, file, 0, array); }

static halo_status add_more(hl_array_set *s, size_t *cap, char *path)
{
    HL_TRY(hl_grow(s->ctx, &s->more.path, cap, (size_t)s->more.count + 1, sizeof(char *), "file names"));
    s->more.path[s->more.count++] = path;
    return HALO_OK;
}

halo_status hl_array_set_pair(hl_array_set *s, int parts)
{
    size_t cap = 0;
    char **path = s->files.path;
    int64_t cases = s->files.count / parts;
    for (int64_t i = 0; i < s->files.count; i += parts)
        if (hl_scans_channels(path + i, hl_min64(parts, s->files.count - i)) != parts)
            return hl_fail(s->ctx, HALO_ERR_SHAPE, "'%s' begins no case of %d channels _0000, _0001 ...: is a file missing?", path[i], parts);
    s->more.ctx = s->ctx;
    for (int64_t i = 0; i < s->files.count; i++) {
        char *one = path[i];
        path[i] = NULL;
        if (i % parts == 0) path[i / parts] = one;
        else HL_TRY(add_more(s, &cap, one));
    }
    s->files.count = cases;
    s->parts = parts;
    return HALO_OK;
}

static halo_status not_alike(const hl_array_set *s, const hl_array *a, const char *shape)
{
    char title[512], have[320];
    return hl_fail(s->ctx, HALO_ERR_SHAPE, "%s is %s, expected %s as in '%s'", hl_array_title(a, title, sizeof(title)), hl_array_describe(a, have, sizeof(have)), shape,
                   hl_base_name(s->files.path[0]));
}

static bool same_type(const hl_array_set *s, const hl_array *a) { return a->type.kind == s->type.kind && a->type.bytes == s->type.bytes; }

static bool alike(const hl_array_set *s, const hl_array *a, bool reversed, const hl_array *first_dims)
{
    if (a->ndim != s->axes.n || (!s->varied && s->parts == 1 && !same_type(s, a))) return false;
    for (int k = 0; k < a->ndim; k++) { /* as their writers number them */
        int64_t n = a->dim[a->reversed ? a->ndim - 1 - k : k], m = first_dims->dim[reversed ? a->ndim - 1 - k : k];
        bool any = s->axes.letter[k] == 'n' || (s->varied && s->axes.letter[k] != 'c');
        if (!any && n != m) return false;
    }
    return true;
}

/* The others of a file have its extents. */
static halo_status scan_parts(hl_array_set *s, int64_t file, const hl_view *first)
{
    for (int k = 1; k < s->parts; k++) {
        hl_array *a;
        hl_view v;
        char title[512], have[320];
        HL_TRY(get_part(s, file, k, &a));
        bool fits = a->ndim == s->axes.n;
        if (fits) hl_view_set(&v, a, &s->axes);
        if (!fits || memcmp(v.ext, first->ext, sizeof(v.ext)) != 0)
            return hl_fail(s->ctx, HALO_ERR_SHAPE, "%s is %s, and cannot be a channel of '%s', which has [%" PRId64 ", %" PRId64 ", %" PRId64 "] (D, H, W)", hl_array_title(a, title, sizeof(title)),
                           hl_array_describe(a, have, sizeof(have)), hl_base_name(s->files.path[file]), first->ext[2], first->ext[3], first->ext[4]);
        s->mixed = s->mixed || !same_type(s, a);
    }
    return HALO_OK;
}

halo_status hl_array_set_scan(hl_array_set *s)
{
    hl_array *a, first;
    char shape[320];
    HL_TRY(hl_calloc(s->ctx, (size_t)s->files.count + 1, sizeof(*s->first), "files", &s->first));
    HL_TRY(hl_calloc(s->ctx, (size_t)s->files.count, sizeof(*s->ext), "extents of files", &s->ext));
    HL_TRY(hl_calloc(s->ctx, (size_t)s->files.count, sizeof(*s->span), "places of files", &s->span));
    HL_TRY(hl_array_set_get(s, 0, &a));
    s->type = a->type;
    hl_view_set(&s->view, a, &s->axes);
    hl_array_describe(a, shape, sizeof(shape));
    first = *a; /* its extents */
    for (int64_t f = 0; f < s->files.count; f++) {
        hl_view v;
        HL_TRY(hl_array_set_get(s, f, &a));
        if (!alike(s, a, first.reversed, &first)) return not_alike(s, a, shape);
        hl_view_set(&v, a, &s->axes);
        s->mixed = s->mixed || !same_type(s, a);
        if (a->image) s->span[f] = hl_nifti_span_of(a->image);
        memcpy(s->ext[f], v.ext + 2, sizeof(s->ext[f]));
        if (!hl_add64(s->first[f], v.ext[0], &s->first[f + 1])) return hl_fail(s->ctx, HALO_ERR_SHAPE, "'%s': more than 2^63 samples", a->path);
        HL_TRY(scan_parts(s, f, &v));
    }
    s->view.ext[1] *= s->parts;
    return HALO_OK;
}

int64_t hl_array_set_file(const hl_array_set *s, int64_t sample)
{
    int64_t lo = 0, hi = s->files.count; /* first[lo] <= sample < first[hi] */
    while (hi - lo > 1) {
        int64_t mid = (lo + hi) / 2;
        if (s->first[mid] <= sample) lo = mid;
        else hi = mid;
    }
    return lo;
}

halo_status hl_array_set_read(hl_array_set *s, int64_t sample, int64_t channels, const hl_cut *cut, halo_dtype to, void *out)
{
    int64_t file = hl_array_set_file(s, sample), each = s->view.ext[1] / s->parts, cells = cut->into[0] * cut->into[1] * cut->into[2];
    for (int k = 0; k < s->parts && k * each < channels; k++) {
        hl_array *a;
        hl_view v;
        char *at = (char *)out + (size_t)(k * each * cells) * hl_dtype_size(to);
        HL_TRY(get_part(s, file, k, &a));
        hl_view_set(&v, a, &s->axes); /* files may differ in their memory order */
        HL_TRY(hl_view_read(a, &v, sample - s->first[file], hl_min64(each, channels - k * each), cut, to, at, &s->scratch, &s->capacity));
    }
    return HALO_OK;
}
