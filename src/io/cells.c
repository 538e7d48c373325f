/* SPDX-License-Identifier: Apache-2.0 */
/* cells.c -- see cells.h. An axis is cut where it wraps, so that [lo, lo + ext) of an axis of n cells becomes
 * at most ext / n + 2 segments. */
#include "io/cells.h"

hl_cells hl_cells_whole(const int64_t n[3])
{
    return (hl_cells){.ext = {n[0], n[1], n[2]}};
}

bool hl_cells_are_whole(const hl_cells *c, const int64_t n[3])
{
    for (int k = 0; k < 3; k++)
        if (c->lo[k] != 0 || c->ext[k] != n[k]) return false;
    return true;
}

static int64_t wrap(int64_t i, int64_t n)
{
    int64_t r = i % n;
    return r < 0 ? r + n : r;
}

/* The segment of axis k that begins `done` cells after lo. */
static void segment(const hl_cells *c, const int64_t n[3], int k, int64_t done, hl_cut *p)
{
    p->at[k] = done;
    p->lo[k] = wrap(c->lo[k] + done, n[k]);
    p->ext[k] = hl_min64(c->ext[k] - done, n[k] - p->lo[k]);
}

halo_status hl_cells_split(const hl_cells *c, const int64_t n[3],
                           halo_status (*visit)(void *user, const hl_cut *cut), void *user)
{
    hl_cut p = {.into = {c->ext[0], c->ext[1], c->ext[2]}};
    for (int64_t d = 0; d < c->ext[0]; d += p.ext[0]) {
        segment(c, n, 0, d, &p);
        for (int64_t h = 0; h < c->ext[1]; h += p.ext[1]) {
            segment(c, n, 1, h, &p);
            for (int64_t w = 0; w < c->ext[2]; w += p.ext[2]) {
                segment(c, n, 2, w, &p);
                HL_TRY(visit(user, &p));
            }
        }
    }
    return HALO_OK;
}

void hl_cells_before(const hl_cells *c, const int64_t n[3], hl_symmetry s, const int64_t shift[3],
                     hl_cells *from, int64_t rest[3])
{
    for (int k = 0; k < 3; k++) {
        int a = s.axis[k];
        bool all = c->lo[k] == 0 && c->ext[k] == n[k];
        from->ext[a] = c->ext[k];
        from->lo[a] = all ? 0 : (s.flip[k] ? n[a] - c->lo[k] - c->ext[k] : c->lo[k]) + shift[a];
        rest[a] = all ? shift[a] : 0;
    }
}

void hl_cells_at(const hl_cells *c, const int64_t n[3], int64_t i, int64_t at[3])
{
    const int64_t *e = c->ext;
    const int64_t local[3] = {i / (e[1] * e[2]), i / e[2] % e[1], i % e[2]};
    for (int k = 0; k < 3; k++) at[k] = wrap(c->lo[k] + local[k], n[k]);
}
