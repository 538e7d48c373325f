/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/str.h"
#include "base/topology.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool hl_file_exists(const char *path) { return access(path, F_OK) == 0; }

bool hl_is_directory(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

halo_status hl_path_join(halo_context *ctx, const char *a, const char *b, char **out)
{
    hl_str s = {0};
    hl_str_addf(&s, "%s%s%s", a, *a && a[strlen(a) - 1] != '/' ? "/" : "", b);
    if (s.failed) return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: a path");
    *out = s.s;
    return HALO_OK;
}

halo_status hl_make_dirs(halo_context *ctx, const char *path)
{
    char *copy;
    HL_TRY(hl_strdup(ctx, path, &copy));
    halo_status st = HALO_OK;
    for (char *p = copy + 1; st == HALO_OK; p++) {
        if (*p != '/' && *p != '\0') continue;
        char kept = *p;
        *p = '\0';
        if (mkdir(copy, 0777) != 0 && !(errno == EEXIST && hl_is_directory(copy)))
            st = hl_fail(ctx, HALO_ERR_IO, "cannot make directory '%s': %s", copy, strerror(errno));
        *p = kept;
        if (kept == '\0') break;
    }
    free(copy);
    return st;
}

/* FNV-1a. Process numbers say nothing of the processes of other hosts, which may share the directory. */
static uint32_t hash_of_host(void)
{
    char name[256] = "";
    uint32_t hash = UINT32_C(2166136261);
    (void)gethostname(name, sizeof(name) - 1);
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT32_C(16777619);
    return hash;
}

halo_status hl_temporary_name(halo_context *ctx, const char *path, char **out)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    hl_str s = {0};
    hl_str_addn(&s, path, (size_t)(name - path));
    hl_str_addf(&s, ".%s.%08" PRIx32 "-%ld.tmp", name, hash_of_host(), (long)getpid());
    if (s.failed) return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: a path");
    *out = s.s;
    return HALO_OK;
}

/* ".NAME.HOST-PID.tmp" of this host, whose process is no more. */
static bool is_stale(const char *name)
{
    size_t n = strlen(name);
    uint32_t host;
    long pid;
    int used = 0;
    if (*name != '.' || n < 5 || strcmp(name + n - 4, ".tmp") != 0) return false;
    for (n -= 4; n > 0 && name[n - 1] != '.';) n--;
    if (sscanf(name + n, "%8" SCNx32 "-%ld.tmp%n", &host, &pid, &used) != 2 || used == 0 || name[n + (size_t)used] || pid < 1) return false;
    return host == hash_of_host() && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

void hl_remove_stale(const char *directory, int depth)
{
    DIR *dir = opendir(directory);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *path;
        if (is_stale(e->d_name)) (void)unlinkat(dirfd(dir), e->d_name, 0);
        if (depth == 0 || *e->d_name == '.' || hl_path_join(NULL, directory, e->d_name, &path) != HALO_OK) continue;
        if (hl_is_directory(path)) hl_remove_stale(path, depth - 1);
        free(path);
    }
    if (dir) closedir(dir);
}

/* Who holds a lock says so in its file, on the server, too, where other hosts look for it. */
static void sign_lock(int lock)
{
    char host[256], text[320];
    hl_host_name(host, sizeof(host));
    int n = snprintf(text, sizeof(text), "process %ld on %s\n", (long)getpid(), host);
    if (ftruncate(lock, 0) != 0 || pwrite(lock, text, (size_t)n, 0) != n) return; /* a message the less */
    (void)fsync(lock);
}

static halo_status refuse_lock(halo_context *ctx, const char *directory, int lock)
{
    char holder[320];
    ssize_t n = pread(lock, holder, sizeof(holder) - 1, 0);
    holder[n > 0 ? n : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    return hl_fail(ctx, HALO_ERR_USAGE, "'%s' is in use by another run%s%s", directory, *holder ? ": " : "", holder);
}

halo_status hl_directory_lock(halo_context *ctx, const char *directory, int *lock)
{
    char *path;
    halo_status st = HALO_OK;
    *lock = -1;
    HL_TRY(hl_path_join(ctx, directory, ".lock", &path));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) st = hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB) == 0) sign_lock(fd);
    else if (errno == EWOULDBLOCK) st = refuse_lock(ctx, directory, fd);
    if (st == HALO_OK) *lock = fd;
    else if (fd >= 0) close(fd);
    free(path);
    return st;
}

static int sync_path(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0) return -1;
    int rc = fsync(fd), saved = errno;
    close(fd);
    errno = saved;
    return rc;
}

static void sync_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char dir[4096];
    if (!slash) snprintf(dir, sizeof(dir), ".");
    else snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    (void)sync_path(dir, O_RDONLY | O_DIRECTORY); /* some file systems cannot; the rename itself is done */
}

halo_status hl_file_commit(halo_context *ctx, const char *temporary, const char *path)
{
    if (sync_path(temporary, O_RDONLY) != 0 || rename(temporary, path) != 0) {
        int saved = errno;
        unlink(temporary);
        return hl_fail(ctx, HALO_ERR_IO, "cannot write '%s': %s", path, strerror(saved));
    }
    sync_directory_of(path);
    return HALO_OK;
}

/* A pipe, terminal or device is written as it is: a rename would replace it. */
static halo_status write_special(halo_context *ctx, const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(data, 1, bytes, f) == bytes;
    if (f && fclose(f) != 0) good = false;
    return good ? HALO_OK : hl_fail(ctx, HALO_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
}

bool hl_is_special(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

halo_status hl_file_write(halo_context *ctx, const char *path, const void *data, size_t bytes)
{
    char *temporary;
    if (hl_is_special(path)) return write_special(ctx, path, data, bytes);
    HL_TRY(hl_temporary_name(ctx, path, &temporary));
    halo_status st = HALO_OK;
    FILE *f = fopen(temporary, "wb");
    bool good = f != NULL && fwrite(data, 1, bytes, f) == bytes;
    int saved = errno;
    if (f && fclose(f) != 0 && good) {
        saved = errno;
        good = false;
    }
    if (good) st = hl_file_commit(ctx, temporary, path);
    else {
        unlink(temporary);
        st = hl_fail(ctx, HALO_ERR_IO, "cannot write '%s': %s", path, strerror(saved));
    }
    free(temporary);
    return st;
}

static halo_status read_open(halo_context *ctx, FILE *f, const char *path, size_t most, char **data, size_t *bytes)
{
    char *buffer = NULL;
    size_t cap = 0, len = 0;
    for (;;) {
        halo_status st = len + 1 > most + 1 ? hl_fail(ctx, HALO_ERR_FORMAT, "'%s' is larger than %zu bytes", path, most)
                                            : hl_grow(ctx, &buffer, &cap, len + 4096, 1, path);
        if (st != HALO_OK) {
            free(buffer);
            return st;
        }
        size_t got = fread(buffer + len, 1, cap - len - 1, f);
        len += got;
        if (got == 0) break;
    }
    if (ferror(f)) {
        free(buffer);
        return hl_fail(ctx, HALO_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    }
    buffer[len] = '\0';
    *data = buffer;
    *bytes = len;
    return HALO_OK;
}

halo_status hl_file_read(halo_context *ctx, const char *path, size_t most, char **data, size_t *bytes)
{
    if (hl_is_directory(path)) return hl_fail(ctx, HALO_ERR_IO, "cannot read '%s': is a directory", path);
    FILE *f = fopen(path, "rb");
    if (!f) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    halo_status st = read_open(ctx, f, path, most, data, bytes);
    fclose(f);
    return st;
}
