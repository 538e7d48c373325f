/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume.c -- out[c, d, h, w] = (T) file[...] for any order of the file's axes.
 *
 * HDF5 could place strided selections itself, element by element; reading runs of the file's own order and
 * converting them in one pass is several times faster for channels-last files. Channels that are not wanted
 * are therefore read too when c is the fastest axis. A part is read whole: its scratch memory is the larger
 * of 8 MiB and one layer of chunks.
 */
#include "io/volume.h"

#define PART_BYTES (INT64_C(8) << 20)

enum { N, C, D, H, W };

void hl_volume_set(hl_volume *v, hl_h5_data *data, const char *axes)
{
    static const char letter[] = "ncdhw";
    HL_BUG_UNLESS((int)strlen(axes) == data->ndim);
    v->data = data;
    for (int a = 0; a < 5; a++) {
        const char *at = strchr(axes, letter[a]);
        v->axis[a] = at ? (int)(at - axes) : -1;
        v->ext[a] = at ? data->dim[at - axes] : 1;
    }
}

typedef struct placer { /* one read, and where it goes */
    const hl_volume *v;
    halo_dtype to;
    size_t to_bytes;
    char *out;
    int64_t channels;
    const hl_cut *cut;
} placer;

static int64_t product(const int64_t *n, int count)
{
    int64_t p = 1;
    for (int i = 0; i < count; i++) p *= n[i];
    return p;
}

/* Converts the part at `start` with extents `count` (file order, dense in raw) row by row of w into its
 * place. */
static void place(const placer *p, const int64_t *start, const int64_t *count, const char *raw)
{
    const hl_volume *v = p->v;
    const hl_cut *b = p->cut;
    int64_t from[5], first[5], n[5], stride = 1, along[HL_H5_RANK];
    for (int i = v->data->ndim - 1; i >= 0; i--) {
        along[i] = stride;
        stride *= count[i];
    }
    for (int a = 0; a < 5; a++) {
        int f = v->axis[a];
        from[a] = f < 0 ? 0 : along[f];
        n[a] = f < 0 ? 1 : count[f];
        first[a] = f < 0 ? 0 : start[f];
    }
    if (n[C] > p->channels - first[C]) n[C] = p->channels - first[C];
    for (int64_t d = 0; d < n[D]; d++)
        for (int64_t h = 0; h < n[H]; h++)
            for (int64_t c = 0; c < n[C]; c++) {
                int64_t at = ((first[C] + c) * b->into[0] + first[D] - b->lo[0] + b->at[0] + d) * b->into[1] +
                             first[H] - b->lo[1] + b->at[1] + h;
                at = at * b->into[2] + first[W] - b->lo[2] + b->at[2];
                hl_convert(v->data->type,
                           raw + (d * from[D] + h * from[H] + c * from[C]) * v->data->type.bytes, from[W],
                           p->to, p->out + (size_t)at * p->to_bytes, n[W]);
            }
}

/* Whether the file's box is the output as it stands: same order, same type. */
static bool is_direct(const placer *p, const int64_t *count)
{
    const hl_volume *v = p->v;
    hl_number to = hl_dtype_number(p->to);
    if (to.kind != v->data->type.kind || to.bytes != v->data->type.bytes) return false;
    if (memcmp(p->cut->ext, p->cut->into, sizeof(p->cut->ext)) != 0) return false;
    if (v->axis[C] >= 0 && count[v->axis[C]] != p->channels) return false;
    int last = -1;
    for (int a = N; a <= W; a++) {
        if (v->axis[a] < 0) continue;
        if (v->axis[a] < last) return false;
        last = v->axis[a];
    }
    return true;
}

/* Length along the first long dimension of the next part: about PART_BYTES, up to a chunk border. */
static int64_t part_length(const hl_h5_data *d, int axis, int64_t at, int64_t left, int64_t layer_bytes)
{
    int64_t n = hl_max64(1, PART_BYTES / hl_max64(layer_bytes, 1)), chunk = d->chunk[axis];
    if (chunk > 1) n = hl_round_up(at + n, chunk) - at;
    return hl_min64(n, left);
}

static halo_status read_parts(const placer *p, const int64_t *start, const int64_t *count, char **scratch,
                              size_t *capacity)
{
    hl_h5_data *d = p->v->data;
    int64_t at[HL_H5_RANK], n[HL_H5_RANK];
    int axis = 0;
    while (axis < d->ndim - 1 && count[axis] == 1) axis++;
    memcpy(at, start, sizeof(at));
    memcpy(n, count, sizeof(n));
    int64_t layer = product(count + axis + 1, d->ndim - axis - 1) * d->type.bytes;
    for (int64_t done = 0; done < count[axis]; done += n[axis]) {
        at[axis] = start[axis] + done;
        n[axis] = part_length(d, axis, at[axis], count[axis] - done, layer);
        HL_TRY(hl_scratch(d->file->ctx, scratch, capacity, (size_t)(layer * n[axis]), "a part of a volume"));
        HL_TRY(hl_h5_read(d, at, n, *scratch, *capacity));
        place(p, at, n, *scratch);
    }
    return HALO_OK;
}

halo_status hl_volume_read(const hl_volume *v, int64_t n, int64_t channels, const hl_cut *cut, halo_dtype to,
                           void *out, char **scratch, size_t *capacity)
{
    placer p = {.v = v, .to = to, .to_bytes = hl_dtype_size(to), .out = out, .channels = channels, .cut = cut};
    int64_t start[HL_H5_RANK] = {0}, count[HL_H5_RANK] = {0};
    bool channels_last = v->axis[C] == v->data->ndim - 1;
    for (int a = D; a <= W; a++)
        if (v->axis[a] >= 0) {
            start[v->axis[a]] = cut->lo[a - D];
            count[v->axis[a]] = cut->ext[a - D];
        }
    if (v->axis[C] >= 0) count[v->axis[C]] = channels_last ? v->ext[C] : channels;
    if (v->axis[N] >= 0) {
        start[v->axis[N]] = n;
        count[v->axis[N]] = 1;
    }
    if (is_direct(&p, count))
        return hl_h5_read(v->data, start, count, out, (size_t)(channels * product(cut->ext, 3)) * p.to_bytes);
    return read_parts(&p, start, count, scratch, capacity);
}

double hl_volume_waste(const hl_volume *v, const int64_t lo[3], const int64_t ext[3])
{
    const hl_h5_data *d = v->data;
    double waste = 1;
    if (!d->filtered || d->ndim == 0 || d->chunk[0] == 0) return 0;
    for (int a = N; a <= W; a++) {
        int f = v->axis[a];
        if (f < 0) continue;
        int64_t first = a >= D ? lo[a - D] : 0,
                n = a >= D   ? ext[a - D]
                    : a == N ? 1
                             : v->ext[C],
                chunk = d->chunk[f];
        int64_t touched = (first + n - 1) / chunk * chunk + chunk - first / chunk * chunk;
        waste *= (double)touched / (double)n;
    }
    return waste;
}
