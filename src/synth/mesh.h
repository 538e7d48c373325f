/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mesh.h -- a periodic cube of n^3 cells, laid out in slabs along the first axis, and its Fourier transform.
 *
 * A *field* on a mesh is an array of `values` doubles. In real space it holds `planes` planes [n][pitch] of
 * this rank, of which the first n entries of each row are cells, then two margin planes (the neighbours'
 * planes first + planes and first - 1). In Fourier space the same memory holds the modes [kx n][ky
 * kplanes][kz n/2 + 1], complex: a rank has all kx and kz of its own ky. One rank is the case of one slab:
 * then there are no margin planes, because the first plane follows the last.
 */
#ifndef HL_SYNTH_MESH_H
#define HL_SYNTH_MESH_H

#include "base/base.h"
#include "synth/slabs.h"

typedef struct hl_mesh {
    int64_t n;       /* cells per side; even */
    int64_t pitch;   /* doubles per row, 2 (n/2 + 1) */
    int64_t first;   /* first plane of this rank */
    int64_t planes;  /* planes of this rank */
    int64_t kfirst;  /* first ky index of this rank */
    int64_t kplanes; /* how many */
    bool whole;      /* this rank owns all planes */
    size_t values;   /* doubles of a field */
    int threads;
    double fft_seconds; /* spent in transforms so far, exchanges included */
    hl_slabs *slabs;    /* NULL: one rank; not owned */
    double *scratch;    /* a second field, for exchanges; NULL for one rank */
    void *plan[4];      /* over planes and along kx, forward and backward */
} hl_mesh;

/* Plans for fields of n^3 cells with this many threads. n must be even, at least 4 and a multiple of the
 * ranks. Collective. */
halo_status hl_mesh_create(halo_context *ctx, int64_t n, int threads, hl_slabs *slabs, hl_mesh **out);
void hl_mesh_destroy(hl_mesh *mesh);

/* The geometry alone, without padding and plans: for fields that are never transformed. */
hl_mesh hl_mesh_plain(int64_t n, int threads, hl_slabs *slabs);

/* A field, aligned for the transform, not cleared; freed with free(). */
halo_status hl_mesh_field(halo_context *ctx, const hl_mesh *mesh, double **out);

/* In place: f_k = sum_x f(x) exp(-i k x), and f(x) = sum_k f_k exp(i k x). Unnormalised: backward(forward(f))
 * = n^3 f. Collective. */
halo_status hl_mesh_forward(hl_mesh *mesh, double *field);
halo_status hl_mesh_backward(hl_mesh *mesh, double *field);

/* Margins of a field of int64_t masses are added to the planes they belong to, or margins of a field are
 * filled from them; `plane` is room for two planes. Nothing for one rank. Collective. */
halo_status hl_mesh_add_margins(const hl_mesh *mesh, int64_t *masses, int64_t *plane);
halo_status hl_mesh_fill_margins(const hl_mesh *mesh, double *field);

/* Calls row(arg, kx, ky, modes) for every row of modes of this rank, in parallel; modes[kz], kz = 0 .. n/2.
 * The integer wave numbers kx, ky lie in -n/2 < k <= n/2. */
typedef void (*hl_mesh_row)(void *arg, int64_t kx, int64_t ky, double _Complex *modes);
void hl_mesh_modes(const hl_mesh *mesh, double *field, hl_mesh_row row, void *arg);

/* Where plane i (first - 1 <= i <= first + planes) of a field begins, in doubles; margins and the periodic
 * wrap included. */
static inline int64_t hl_mesh_plane(const hl_mesh *m, int64_t i)
{
    int64_t local = i - m->first;
    if (m->whole)
        local = local < 0 ? local + m->n : local >= m->n ? local - m->n : local;
    else if (local < 0)
        local = m->planes + 1;
    return local * m->n * m->pitch;
}

#endif
