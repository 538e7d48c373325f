/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5count.c -- the file driver under hl_h5: open, pread, and a count of the bytes. What a selection costs
 * depends on the layout, on chunks and their cache; here it is what was asked of the operating system,
 * whatever the reason. HDF5's sieve, which reads more than it is asked for, is not used: a part of a
 * contiguous volume costs its own bytes. There is no `cmp`: two opens of one file share nothing, so each
 * counts for its own owner.
 */
#include "io/h5count.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct counted_file {
    H5FD_t base; /* HDF5's part comes first */
    hl_read_count *count;
    int fd;
    haddr_t eoa, eof;
} counted_file;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl, haddr_t most)
{
    hl_read_count *const *count = H5Pget_driver_info(fapl);
    struct stat s;
    (void)flags; /* read-only, as all that comes here */
    (void)most;
    counted_file *f = count ? calloc(1, sizeof(*f)) : NULL;
    if (!f) return NULL;
    f->count = *count;
    f->fd = open(name, O_RDONLY | O_CLOEXEC);
    if (f->fd >= 0 && fstat(f->fd, &s) == 0) {
        f->eof = (haddr_t)s.st_size;
        return &f->base;
    }
    if (f->fd >= 0) close(f->fd);
    free(f);
    return NULL;
}

static herr_t driver_close(H5FD_t *file)
{
    close(((counted_file *)file)->fd);
    free(file);
    return 0;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_ACCUMULATE_METADATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const counted_file *)file)->eoa;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t eoa)
{
    (void)type;
    ((counted_file *)file)->eoa = eoa;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const counted_file *)file)->eof;
}

/* What lies beyond the end of the file, but inside what HDF5 takes for it, is 0. */
static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t bytes, void *buffer)
{
    counted_file *f = (counted_file *)file;
    char *to = buffer;
    _Atomic int64_t *count = type == H5FD_MEM_DRAW ? &f->count->data : &f->count->other;
    (void)dxpl;
    while (bytes > 0) {
        ssize_t got = pread(f->fd, to, bytes, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) {
            memset(to, 0, bytes);
            return 0;
        }
        atomic_fetch_add_explicit(count, got, memory_order_relaxed);
        to += got;
        at += (haddr_t)got;
        bytes -= (size_t)got;
    }
    return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t bytes,
                           const void *buffer)
{
    (void)file, (void)type, (void)dxpl, (void)at, (void)bytes, (void)buffer;
    return -1;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)(H5_VFD_RESERVED +
                                  162), /* among the values free for testing; never written to a file */
#endif
    .name = "halo-count",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(hl_read_count *),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t hl_h5_count(hid_t fapl, hl_read_count *count)
{
    hid_t id = H5FDregister(&driver);
    if (id >= 0 && H5Pset_driver(fapl, id, &count) >= 0) return id;
    if (id >= 0) H5FDunregister(id);
    return -1;
}
