/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5driver.c -- the file driver under hl_h5_out: pwrite and pread on a descriptor that hl_h5_out owns. A
 * write that fails is remembered in owner->error and reported to HDF5 as done (see h5out.h for why); reads
 * past the end give zeros.
 */
#include "io/h5driver.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <errno.h>
#include <unistd.h>

typedef struct out_file {
    H5FD_t base; /* HDF5's part comes first */
    hl_h5_out *owner;
    haddr_t eoa, eof; /* end of what is allocated, of what was written */
} out_file;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl, haddr_t most)
{
    (void)name;
    (void)flags;
    (void)most;
    hl_h5_out *const *owner = H5Pget_driver_info(fapl);
    out_file *f = owner ? calloc(1, sizeof(*f)) : NULL;
    if (f) f->owner = *owner;
    return (H5FD_t *)f;
}

static herr_t driver_close(H5FD_t *file)
{
    free(file);
    return 0;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const out_file *)file)->eoa;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t eoa)
{
    (void)type;
    ((out_file *)file)->eoa = eoa;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const out_file *)file)->eof;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t bytes, void *buffer)
{
    (void)type;
    (void)dxpl;
    char *to = buffer;
    while (bytes > 0) {
        ssize_t got = pread(((out_file *)file)->owner->fd, to, bytes, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            memset(to, 0, bytes);
            return got < 0 ? -1 : 0;
        }
        to += got;
        at += (haddr_t)got;
        bytes -= (size_t)got;
    }
    return 0;
}

static void remember(hl_h5_out *owner, int error)
{
    if (owner->error == 0) owner->error = error;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t bytes,
                           const void *buffer)
{
    (void)type;
    (void)dxpl;
    out_file *f = (out_file *)file;
    const char *from = buffer;
    if (at + bytes > f->eof) f->eof = at + bytes;
    while (bytes > 0 && f->owner->error == 0) {
        ssize_t put = pwrite(f->owner->fd, from, bytes, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            remember(f->owner, put < 0 ? errno : EIO);
            break;
        }
        from += put;
        at += (haddr_t)put;
        bytes -= (size_t)put;
    }
    return 0;
}

/* The file ends where the allocated space ends, so that readers do not find it truncated. */
static herr_t driver_truncate(H5FD_t *file, hid_t dxpl, hbool_t closing)
{
    (void)dxpl;
    (void)closing;
    out_file *f = (out_file *)file;
    if (f->eoa == f->eof || f->owner->error) return 0;
    if (ftruncate(f->owner->fd, (off_t)f->eoa) != 0) remember(f->owner, errno);
    f->eof = f->eoa;
    return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)(H5_VFD_RESERVED +
                                  161), /* among the values free for testing; never written to a file */
#endif
    .name = "halo",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(hl_h5_out *),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t hl_h5_driver_access(hl_h5_out *owner)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    owner->driver = H5FDregister(&driver);
    if (fapl < 0 || owner->driver < 0 || H5Pset_driver(fapl, owner->driver, &owner) < 0) {
        if (fapl >= 0) H5Pclose(fapl);
        return -1;
    }
    return fapl;
}
