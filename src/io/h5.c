/* SPDX-License-Identifier: Apache-2.0 */
/* h5.c -- files, attributes, lists; datasets are in h5data.c. See h5.h. */
#include "io/h5count.h"
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* -------------------------------------------------------------------------------------- around every call */

static pthread_mutex_t h5_lock = PTHREAD_MUTEX_INITIALIZER; /* HDF5's state is process-wide, so is its lock */

static bool library_locks(void)
{
    hbool_t safe = 0;
    return H5is_library_threadsafe(&safe) >= 0 && safe; /* answers from a constant, needs no lock itself */
}

void hl_h5_enter(hl_h5_guard *g)
{
    if (!library_locks()) pthread_mutex_lock(&h5_lock);
    g->cause[0] = '\0';
    g->report = NULL;
    g->report_data = NULL;
    H5Eget_auto2(H5E_DEFAULT, &g->report, &g->report_data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void hl_h5_leave(hl_h5_guard *g)
{
    H5Eset_auto2(H5E_DEFAULT, g->report, g->report_data);
    if (!library_locks()) pthread_mutex_unlock(&h5_lock);
}

static herr_t take_innermost(unsigned n, const H5E_error2_t *error, void *user)
{
    hl_h5_guard *g = user;
    if (n == 0 && error->desc) snprintf(g->cause, sizeof(g->cause), "%s", error->desc);
    return 0;
}

const char *hl_h5_cause(hl_h5_guard *g)
{
    g->cause[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, g);
    if (!g->cause[0]) snprintf(g->cause, sizeof(g->cause), "HDF5 gives no cause");
    for (char *c = g->cause; *c; c++)
        if ((unsigned char)*c < 32) *c = ' ';
    if (strstr(g->cause, "unable to lock file"))
        snprintf(g->cause + strlen(g->cause), sizeof(g->cause) - strlen(g->cause),
                 " (set HDF5_USE_FILE_LOCKING=FALSE)");
    return g->cause;
}

void hl_io_own_process(void)
{
    H5dont_atexit();
}

/* ----------------------------------------------------------------------------------------- opening a file */

static hid_t read_access(void)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    if (fapl < 0) return fapl;
    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERS_MINOR == 10 && H5_VERS_RELEASE >= 7)
    H5Pset_file_locking(fapl, 0, 1);
#endif
    return fapl;
}

/* The operating system's own words come first: HDF5's for a missing file are long and for a directory wrong.
 */
static halo_status look_at_file(halo_context *ctx, const char *path, int64_t *bytes)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    int rc = fstat(fd, &s);
    close(fd);
    if (rc != 0) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode)) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': is a directory", path);
    if (s.st_size == 0) return hl_fail(ctx, HALO_ERR_FORMAT, "cannot open '%s': the file is empty", path);
    *bytes = (int64_t)s.st_size;
    return HALO_OK;
}

static halo_status open_id(halo_context *ctx, const char *path, hl_read_count *count, hid_t *id, hid_t *driver)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    htri_t is = H5Fis_hdf5(path);
    hid_t fapl = read_access();
    *driver = fapl >= 0 && count ? hl_h5_count(fapl, count) : -1;
    *id = is == 0 || (count && *driver < 0) ? -1 : H5Fopen(path, H5F_ACC_RDONLY, fapl);
    if (*id < 0 && is != 0) hl_h5_cause(&g);
    if (fapl >= 0) H5Pclose(fapl);
    if (*id < 0 && *driver >= 0) H5FDunregister(*driver);
    hl_h5_leave(&g);
    if (*id >= 0) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_FORMAT, "cannot open '%s': %s", path,
                   is == 0 ? "not an HDF5 file" : g.cause);
}

static void close_id(hid_t id, hid_t driver)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    H5Fclose(id);
    if (driver >= 0) H5FDunregister(driver);
    hl_h5_leave(&g);
}

halo_status hl_h5_open(halo_context *ctx, const char *path, hl_h5 **out)
{
    return hl_h5_open_counted(ctx, path, NULL, out);
}

halo_status hl_h5_open_counted(halo_context *ctx, const char *path, hl_read_count *count, hl_h5 **out)
{
    int64_t bytes = 0;
    hid_t id = -1, driver = -1;
    HL_TRY(look_at_file(ctx, path, &bytes));
    HL_TRY(open_id(ctx, path, count, &id, &driver));
    hl_h5 *f = NULL;
    halo_status st = HALO_OK;
    HL_GOTO(st, hl_calloc(ctx, 1, sizeof(*f), "an HDF5 file", &f), close_file);
    HL_GOTO(st, hl_strdup(ctx, path, &f->path), close_file);
    f->ctx = ctx;
    f->id = id;
    f->driver = driver;
    f->bytes = bytes;
    *out = f;
    return HALO_OK;
close_file:
    free(f);
    close_id(id, driver);
    return st;
}

void hl_h5_close(hl_h5 *f)
{
    if (!f) return;
    close_id(f->id, f->driver);
    free(f->path);
    free(f);
}

/* Each component in turn, because HDF5 fails, rather than says no, where a parent is missing. */
static bool has_name(hid_t file, const char *name)
{
    char part[1024];
    size_t n = strlen(name);
    if (n >= sizeof(part)) return false;
    if (strcmp(name, "/") == 0) return true;
    for (size_t i = 1; i <= n; i++) {
        if (name[i] != '/' && name[i] != '\0') continue;
        memcpy(part, name, i);
        part[i] = '\0';
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0) return false;
    }
    return H5Oexists_by_name(file, name, H5P_DEFAULT) > 0;
}

bool hl_h5_has(hl_h5 *f, const char *name)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    bool has = has_name(f->id, name);
    hl_h5_leave(&g);
    return has;
}

/* --------------------------------------------------------------------------------------------- attributes */

static hid_t open_attr(hid_t file, const char *object, const char *name)
{
    if (!has_name(file, object) || H5Aexists_by_name(file, object, name, H5P_DEFAULT) <= 0) return -1;
    return H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
}

static bool is_numeric(hid_t type)
{
    H5T_class_t class = H5Tget_class(type);
    return class == H5T_INTEGER || class == H5T_FLOAT || hl_h5_is_truth(type);
}

halo_status hl_h5_attr_numbers(hl_h5 *f, const char *object, const char *name, int64_t most, double *out,
                               int64_t *n)
{
    hl_h5_guard g;
    *n = 0;
    const char *wrong = NULL;
    hl_h5_enter(&g);
    hid_t attr = open_attr(f->id, object, name);
    if (attr >= 0) {
        hid_t space = H5Aget_space(attr), type = H5Aget_type(attr);
        int64_t count = H5Sget_simple_extent_npoints(space);
        if (!is_numeric(type))
            wrong = "does not hold numbers";
        else if (count < 0 || count > most)
            wrong = "has more values than expected";
        else if (count > 0 && H5Aread(attr, H5T_NATIVE_DOUBLE, out) < 0)
            wrong = hl_h5_cause(&g);
        else
            *n = count;
        H5Tclose(type);
        H5Sclose(space);
        H5Aclose(attr);
    }
    hl_h5_leave(&g);
    if (!wrong) return HALO_OK;
    return hl_fail(f->ctx, HALO_ERR_FORMAT, "'%s': attribute '%s' of '%s': %s", f->path, name, object, wrong);
}

bool hl_h5_has_attr(hl_h5 *f, const char *object, const char *name)
{
    hl_h5_guard g;
    hl_h5_enter(&g);
    bool has = has_name(f->id, object) && H5Aexists_by_name(f->id, object, name, H5P_DEFAULT) > 0;
    hl_h5_leave(&g);
    return has;
}

halo_status hl_h5_attr_scalar(hl_h5 *f, const char *object, const char *name, hl_number number, void *value)
{
    hl_h5_guard g;
    bool good = false;
    hl_h5_enter(&g);
    hid_t attr = open_attr(f->id, object, name);
    if (attr >= 0) {
        hid_t space = H5Aget_space(attr), type = H5Aget_type(attr);
        good = H5Tget_class(type) == (number.kind == 'f' ? H5T_FLOAT : H5T_INTEGER) &&
               H5Sget_simple_extent_npoints(space) == 1 &&
               H5Aread(attr, number.kind == 'f' ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, value) >= 0;
        H5Tclose(type);
        H5Sclose(space);
        H5Aclose(attr);
    }
    hl_h5_leave(&g);
    if (good) return HALO_OK;
    return hl_fail(f->ctx, HALO_ERR_FORMAT, "'%s': no %s '%s' in '%s'", f->path,
                   number.kind == 'f' ? "number" : "integer", name, object);
}

bool hl_h5_is_numeric(hl_h5 *f, const char *name)
{
    hl_h5_guard g;
    bool numeric = false;
    hl_h5_enter(&g);
    hid_t id = has_name(f->id, name) ? H5Dopen2(f->id, name, H5P_DEFAULT) : -1;
    if (id >= 0) {
        hid_t type = H5Dget_type(id);
        numeric = type >= 0 && is_numeric(type);
        if (type >= 0) H5Tclose(type);
        H5Dclose(id);
    }
    hl_h5_leave(&g);
    return numeric;
}

/* ------------------------------------------------------------------------------------------------ strings */

#define STRINGS_MOST 4096
#define TEXT_MOST    ((size_t)16 << 20) /* of all strings together */

typedef struct string_reader { /* an attribute or a dataset, read alike */
    hid_t id, type, space;
    bool attribute;
} string_reader;

static herr_t read_strings(const string_reader *r, hid_t memory_type, void *out)
{
    return r->attribute ? H5Aread(r->id, memory_type, out)
                        : H5Dread(r->id, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
}

/* One block: the pointers, then the characters. width: room for each string. */
static char **string_block(int64_t n, size_t width)
{
    char **block = calloc((size_t)n, sizeof(char *) + width);
    if (!block) return NULL;
    char *text = (char *)(block + n);
    for (int64_t i = 0; i < n; i++) block[i] = text + (size_t)i * width;
    return block;
}

static char **fixed_strings(const string_reader *r, int64_t n)
{
    size_t width = H5Tget_size(r->type);
    if (width == 0 || width > TEXT_MOST / (size_t)n) return NULL;
    char *raw = calloc((size_t)n, width), **block = string_block(n, width + 1);
    if (!raw || !block || read_strings(r, r->type, raw) < 0) {
        free(raw);
        free(block);
        return NULL;
    }
    bool spaces = H5Tget_strpad(r->type) == H5T_STR_SPACEPAD;
    for (int64_t i = 0; i < n; i++) {
        memcpy(block[i], raw + (size_t)i * width, width);
        for (size_t k = strlen(block[i]); spaces && k > 0 && block[i][k - 1] == ' '; k--)
            block[i][k - 1] = '\0';
    }
    free(raw);
    return block;
}

static char **variable_strings(const string_reader *r, int64_t n)
{
    char **raw = calloc((size_t)n, sizeof(char *)), **block = NULL;
    if (!raw) return NULL;
    if (read_strings(r, r->type, raw) >= 0) {
        size_t width = 1;
        for (int64_t i = 0; i < n; i++) {
            size_t len = raw[i] ? strlen(raw[i]) : 0;
            if (len + 1 > width) width = len + 1;
        }
        if (width <= TEXT_MOST / (size_t)n) block = string_block(n, width);
        for (int64_t i = 0; block && i < n; i++)
            if (raw[i]) memcpy(block[i], raw[i], strlen(raw[i]));
        H5Dvlen_reclaim(r->type, r->space, H5P_DEFAULT, raw);
    }
    free(raw);
    return block;
}

static string_reader open_strings(hid_t file, const char *object, const char *attr)
{
    string_reader r = {.id = -1, .attribute = attr != NULL};
    if (attr)
        r.id = open_attr(file, object, attr);
    else if (has_name(file, object))
        r.id = H5Dopen2(file, object, H5P_DEFAULT);
    if (r.id < 0) return r;
    r.type = attr ? H5Aget_type(r.id) : H5Dget_type(r.id);
    r.space = attr ? H5Aget_space(r.id) : H5Dget_space(r.id);
    return r;
}

halo_status hl_h5_strings(hl_h5 *f, const char *object, const char *attr, char ***out, int64_t *n)
{
    hl_h5_guard g;
    const char *wrong = NULL;
    *out = NULL;
    *n = 0;
    hl_h5_enter(&g);
    string_reader r = open_strings(f->id, object, attr);
    if (r.id >= 0) {
        int64_t count = H5Sget_simple_extent_npoints(r.space);
        if (H5Tget_class(r.type) == H5T_STRING && count > 0) {
            if (count > STRINGS_MOST)
                wrong = "too many strings";
            else
                *out =
                    H5Tis_variable_str(r.type) > 0 ? variable_strings(&r, count) : fixed_strings(&r, count);
            if (*out)
                *n = count;
            else if (!wrong)
                wrong = "strings that cannot be read";
        }
        H5Tclose(r.type);
        H5Sclose(r.space);
        if (r.attribute)
            H5Aclose(r.id);
        else
            H5Dclose(r.id);
    }
    hl_h5_leave(&g);
    if (!wrong) return HALO_OK;
    return hl_fail(f->ctx, HALO_ERR_FORMAT, "'%s': '%s'%s%s holds %s", f->path, object,
                   attr ? " attribute " : "", attr ? attr : "", wrong);
}

/* --------------------------------------------------------------------------------------------------- list */

typedef struct name_list {
    char **name;
    size_t n, cap;
    bool failed;
} name_list;

static herr_t collect(hid_t group, const char *name, const H5O_info_t *info, void *user)
{
    name_list *list = user;
    (void)group;
    if (info->type != H5O_TYPE_DATASET || list->failed) return 0;
    char *copy = strdup(name);
    if (!copy || hl_grow(NULL, &list->name, &list->cap, list->n + 1, sizeof(char *), "names") != HALO_OK) {
        free(copy);
        list->failed = true;
        return 1;
    }
    list->name[list->n++] = copy;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

halo_status hl_h5_list(hl_h5 *f, halo_status (*visit)(void *user, const char *name), void *user)
{
    hl_h5_guard g;
    name_list list = {0};
    hl_h5_enter(&g);
#if H5_VERSION_GE(1, 10, 3)
    herr_t rc = H5Ovisit2(f->id, H5_INDEX_NAME, H5_ITER_INC, collect, &list, H5O_INFO_BASIC);
#else
    herr_t rc = H5Ovisit(f->id, H5_INDEX_NAME, H5_ITER_INC, collect, &list);
#endif
    if (rc < 0) hl_h5_cause(&g);
    hl_h5_leave(&g);
    halo_status st = HALO_OK;
    if (list.failed)
        st = hl_fail(f->ctx, HALO_ERR_NOMEM, "out of memory: the names in '%s'", f->path);
    else if (rc < 0)
        st = hl_fail(f->ctx, HALO_ERR_FORMAT, "cannot list '%s': %s", f->path, g.cause);
    if (list.n > 1) qsort(list.name, list.n, sizeof(char *), by_name);
    for (size_t i = 0; i < list.n; i++) {
        if (st == HALO_OK) st = visit(user, list.name[i]);
        free(list.name[i]);
    }
    free(list.name);
    return st;
}
