/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.h -- files of both data layouts for the tests of sources: universes as others published them, by HDF5's own calls, and halo's own. */
#ifndef HL_TESTS_LAYOUTS_H
#define HL_TESTS_LAYOUTS_H

#include "tests/io/iotest.h"
#include "io/h5out.h"
#include "io/io.h"
#include "io/writer.h"

static inline hl_source *open_source(halo_context *ctx, hl_source_options o)
{
    hl_source *s = NULL;
    MUST(hl_source_open(ctx, &o, &s));
    return s;
}

static inline halo_status refused(halo_context *ctx, hl_source_options o)
{
    hl_source *s = NULL;
    halo_status st = hl_source_open(ctx, &o, &s);
    if (st == HALO_OK) hl_source_close(s);
    return st;
}

/* ------------------------------------------------------------------------------------------ CosmoUniverse */

enum { U = 4, N = 8, C = 4 }; /* universes, cells a side, redshifts */

static inline int count_at(int u, int d, int h, int w, int c)
{
    return (((u * N + d) * N + h) * N + w) * C + c;
}

typedef struct universe_form { /* what a file has beside full and unitPar */
    hid_t type;
    bool chunked, names, physical, limits;
    int targets;
} universe_form;

static inline void put_array(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dim, hid_t p,
                      hid_t memory, const void *data)
{
    hid_t space = H5Screate_simple(rank, dim, NULL),
          set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, p, H5P_DEFAULT);
    if (set < 0 || H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        tap_bail("HDF5 cannot write '%s'", name);
    H5Dclose(set);
    H5Sclose(space);
}

static inline void put_attr(hid_t file, const char *object, const char *name, hsize_t n, const double *v)
{
    hid_t space = H5Screate_simple(1, &n, NULL),
          a = H5Acreate_by_name(file, object, name, H5T_IEEE_F64BE, space, H5P_DEFAULT, H5P_DEFAULT,
                                H5P_DEFAULT);
    H5Awrite(a, H5T_NATIVE_DOUBLE, v);
    H5Aclose(a);
    H5Sclose(space);
}

static inline float unit_of(int u, int t)
{
    return (float)(u - 1.5) / 2 * (t % 2 ? -1.0f : 1.0f);
}

/* By HDF5's own calls, as the published files were made by others. */
static inline void write_universe(const char *path, int u, const universe_form *f)
{
    static int v[N * N * N * C];
    float unit[8];
    double physical[8], low[8], high[8];
    const char *name[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    for (int i = 0; i < N * N * N * C; i++) v[i] = count_at(u, 0, 0, 0, 0) + i;
    for (int t = 0; t < f->targets; t++) {
        unit[t] = unit_of(u, t);
        low[t] = 10 * t;
        high[t] = 10 * t + 4;
        physical[t] = 10 * t + 2 + 2 * (double)unit[t];
    }
    hsize_t dim[4] = {N, N, N, C}, targets = (hsize_t)f->targets;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), p = H5Pcreate(H5P_DATASET_CREATE),
          text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, H5T_VARIABLE);
    if (f->chunked) {
        H5Pset_chunk(p, 4, (hsize_t[]){4, 3, 8, 4});
        H5Pset_deflate(p, 1);
    }
    put_array(file, "full", f->type, 4, dim, p, H5T_NATIVE_INT, v);
    put_array(file, "unitPar", H5T_IEEE_F32LE, 1, &targets, H5P_DEFAULT, H5T_NATIVE_FLOAT, unit);
    if (f->names) put_array(file, "namePar", text, 1, &targets, H5P_DEFAULT, text, name);
    if (f->physical)
        put_array(file, "physPar", H5T_IEEE_F64LE, 1, &targets, H5P_DEFAULT, H5T_NATIVE_DOUBLE, physical);
    if (f->limits)
        put_attr(file, "unitPar", "low", targets, low), put_attr(file, "unitPar", "high", targets, high);
    H5Tclose(text), H5Pclose(p), H5Fclose(file);
}

static inline const char *write_universes(const char *dir, const universe_form *f)
{
    static char path[1024];
    snprintf(path, sizeof(path), "%s", in_dir(dir));
    mkdir(path, 0777);
    for (int u = 0; u < U; u++) {
        char file[1100];
        snprintf(file, sizeof(file), "%s/ics_%d.hdf5", path, u);
        write_universe(file, u, f);
    }
    return path;
}

/* ------------------------------------------------------------------------------------------ halo's layout */

static inline void fill(void *x, halo_dtype type, int sample, int cells)
{
    for (int i = 0; i < cells; i++) {
        int v = (sample * 31 + i * 7) % 251;
        if (type == HALO_U8)
            ((uint8_t *)x)[i] = (uint8_t)v;
        else if (type == HALO_I16)
            ((int16_t *)x)[i] = (int16_t)(v - 100);
        else if (type == HALO_I32)
            ((int32_t *)x)[i] = v * 100000;
        else if (type == HALO_F32)
            ((float *)x)[i] = (float)v / 3;
        else
            ((double *)x)[i] = (double)v / 3;
    }
}

static inline void write_halo(halo_context *ctx, const char *path, halo_dtype type, int samples, int first,
                       int level, const hl_target *target, bool grouped)
{
    hl_writer *w = NULL;
    char x[2 * 60 * 8];
    MUST(hl_writer_create(ctx, path,
                          &(hl_writer_options){.ext = {2, 3, 4, 5},
                                               .dtype = type,
                                               .targets = 2,
                                               .target = target,
                                               .periodic = true,
                                               .level = level},
                          &w));
    for (int i = 0; i < samples; i++) {
        fill(x, type, first + i, 120);
        MUST(hl_writer_add(w, x, (float[]){(float)(first + i), (float)-i},
                           grouped ? 1000 - (first + i) / 2 * 10 : -1));
    }
    MUST(hl_writer_close(w, true));
}

static const hl_target two_targets[2] = {
    {.name = "mass", .low = 1, .high = 2, .mean = NAN, .std = NAN},
    {.name = "radius of it", .low = -5, .high = 5, .mean = NAN, .std = NAN}};

#endif
