/* SPDX-License-Identifier: Apache-2.0 */
/* More than 2 GiB in one read: a uint8 volume of 2^31 + 1 cells in a sparse file, whose last cell is 77; the
 * borders below it with HALO_TEST_LONG set. */
#include "tests/io/iotest.h"
#include "base/topology.h"
#include "io/h5.h"

static void write_sparse(const char *path, int64_t n)
{
    const hsize_t dim = (hsize_t)n, last = dim - 1, one = 1;
    const uint8_t value = 77;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), p = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_time(p, H5D_FILL_TIME_NEVER);
    H5Pset_alloc_time(p, H5D_ALLOC_TIME_EARLY);
    hid_t space = H5Screate_simple(1, &dim, NULL), cell = H5Screate_simple(1, &one, NULL);
    hid_t set = H5Dcreate2(file, "v", H5T_STD_U8LE, space, H5P_DEFAULT, p, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &last, NULL, &one, NULL);
    if (set < 0 || H5Dwrite(set, H5T_NATIVE_UINT8, cell, space, H5P_DEFAULT, &value) < 0)
        tap_bail("HDF5 cannot write '%s'", path);
    H5Dclose(set);
    H5Sclose(cell);
    H5Sclose(space);
    H5Pclose(p);
    H5Fclose(file);
}

static void read_whole(halo_context *ctx, int64_t n, uint8_t *v)
{
    const char *path = in_dir("huge.h5");
    hl_h5 *file = NULL;
    hl_h5_data *d = NULL;
    write_sparse(path, n);
    MUST(hl_h5_open(ctx, path, &file));
    MUST(hl_h5_data_open(file, "/v", 0, &d));
    MUST(hl_h5_claim(d, d->bytes));
    v[n - 1] = 0;
    v[n / 2] = 1;
    MUST(hl_h5_read(d, (int64_t[]){0}, &n, v, (size_t)n));
    tap_ok(v[n - 1] == 77 && v[n / 2] == 0 && v[0] == 0, "%" PRId64 " bytes in one read", n);
    hl_h5_data_close(d);
    hl_h5_close(file);
    unlink(path);
}

int main(void)
{
    const int64_t two = INT64_C(1) << 31;
    size_t limit = hl_memory_limit();
    if (limit > 0 && limit < ((size_t)6 << 30)) tap_skip_all("needs 3 GiB of memory to spare");
    halo_context *ctx = iotest_begin("huge");
    uint8_t *v = NULL;
    MUST(hl_aligned(ctx, (size_t)two + 1, "2 GiB", &v));
    for (int k = getenv("HALO_TEST_LONG") ? -1 : 1; k <= 1; k++) read_whole(ctx, two + k, v);
    free(v);
    return iotest_end(ctx);
}
