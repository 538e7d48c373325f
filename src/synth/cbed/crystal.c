/* SPDX-License-Identifier: Apache-2.0 */
/* crystal.c -- see crystal.h. The cells that can reach into the box are those between the extremes of its corners in the cell's own coordinates; every atom of these is looked at. */
#include "synth/cbed/crystal.h"

#include <math.h>

void hl_crystal_free(hl_crystal *c)
{
    free(c->site);
    c->site = NULL;
}

halo_status hl_crystal_add(halo_context *ctx, hl_crystal *c, const hl_site *site)
{
    HL_TRY(hl_grow(ctx, &c->site, &c->room, (size_t)c->sites + 1, sizeof(*c->site), "atoms of a cell"));
    c->site[c->sites++] = *site;
    return HALO_OK;
}

halo_status hl_crystals_grow(halo_context *ctx, hl_crystal **crystals, int64_t *n, hl_crystal **added)
{
    size_t room = (size_t)*n; /* grown by one each: they are few */
    HL_TRY(hl_grow(ctx, crystals, &room, (size_t)*n + 1, sizeof(**crystals), "crystals"));
    *added = &(*crystals)[(*n)++];
    **added = (hl_crystal){.name = ""};
    return HALO_OK;
}

/* -------------------------------------------------------------------------------------------------------------- vectors */

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void cross(const double a[3], const double b[3], double out[3])
{
    for (int i = 0; i < 3; i++) out[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

static void unit(double a[3])
{
    double n = sqrt(dot(a, a));
    for (int i = 0; i < 3; i++) a[i] /= n;
}

static void apply(const double m[3][3], const double x[3], double out[3])
{
    double y[3];
    for (int i = 0; i < 3; i++) y[i] = dot(m[i], x);
    memcpy(out, y, sizeof(y));
}

static void multiply(const double a[3][3], const double b[3][3], double out[3][3])
{
    double m[3][3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) m[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
    memcpy(out, m, sizeof(m));
}

/* ----------------------------------------------------------------------------------------------------------------- cell */

double hl_cell_volume(const double (*cell)[3])
{
    double c[3];
    cross(cell[0], cell[1], c);
    return dot(c, cell[2]);
}

bool hl_cell_set(const double length[3], const double angle[3], double (*cell)[3])
{
    double c[3], s = sin(angle[2] * M_PI / 180);
    for (int i = 0; i < 3; i++) c[i] = cos(angle[i] * M_PI / 180);
    double h = (c[0] - c[1] * c[2]) / s, rest = 1 - c[1] * c[1] - h * h;
    for (int i = 0; i < 3; i++)
        if (!(length[i] >= 0.5 && length[i] <= 1e4)) return false;
    if (!(s > 1e-2 && rest > 1e-4)) return false;
    const double edges[3][3] = {{length[0], 0, 0}, {length[1] * c[2], length[1] * s, 0}, {length[2] * c[1], length[2] * h, length[2] * sqrt(rest)}};
    memcpy(cell, edges, sizeof(edges));
    return true;
}

static void combine(const double (*cell)[3], const double part[3], double out[3])
{
    for (int k = 0; k < 3; k++) out[k] = part[0] * cell[0][k] + part[1] * cell[1][k] + part[2] * cell[2][k];
}

void hl_crystal_turn(const double (*cell)[3], const double zone[3], double spin, const double tilt[2], double (*turn)[3])
{
    double m[3][3], c = cos(spin), s = sin(spin);
    combine(cell, zone, m[2]);
    unit(m[2]);
    cross(m[2], cell[0], m[1]);
    if (dot(m[1], m[1]) < 1e-12 * dot(cell[0], cell[0])) cross(m[2], cell[1], m[1]);
    unit(m[1]);
    cross(m[1], m[2], m[0]);
    const double around[3][3] = {{c, -s, 0}, {s, c, 0}, {0, 0, 1}};
    const double a[3][3] = {{1, 0, 0}, {0, cos(tilt[0]), -sin(tilt[0])}, {0, sin(tilt[0]), cos(tilt[0])}};
    const double b[3][3] = {{cos(tilt[1]), 0, sin(tilt[1])}, {0, 1, 0}, {-sin(tilt[1]), 0, cos(tilt[1])}};
    multiply(around, m, turn);
    multiply(a, turn, turn);
    multiply(b, turn, turn);
}

/* ------------------------------------------------------------------------------------------------------------------ cut */

typedef struct cutter {
    halo_context *ctx;
    const hl_crystal *crystal;
    double edge[3][3]; /* turned */
    const double *origin;
    double end[3];
    int64_t low[3], high[3];
    hl_atom *atom;
    size_t room;
    int64_t n;
} cutter;

/* Rows give the parts of the edges that a vector has. */
static void invert(const double (*edge)[3], double out[3][3])
{
    double volume = hl_cell_volume(edge);
    for (int i = 0; i < 3; i++) {
        cross(edge[(i + 1) % 3], edge[(i + 2) % 3], out[i]);
        for (int k = 0; k < 3; k++) out[i][k] /= volume;
    }
}

/* Sites lie in [0, 1) of their cell or a little beside. */
static void find_cells(cutter *c)
{
    double inverse[3][3], low[3] = {1e300, 1e300, 1e300}, high[3] = {-1e300, -1e300, -1e300};
    invert(c->edge, inverse);
    for (int corner = 0; corner < 8; corner++) {
        double at[3], part[3];
        for (int k = 0; k < 3; k++) at[k] = (corner >> k & 1 ? c->end[k] : 0) - c->origin[k];
        apply(inverse, at, part);
        for (int k = 0; k < 3; k++) low[k] = fmin(low[k], part[k]), high[k] = fmax(high[k], part[k]);
    }
    for (int k = 0; k < 3; k++) c->low[k] = (int64_t)floor(low[k]) - 1, c->high[k] = (int64_t)ceil(high[k]) + 1;
}

static halo_status cut_cell(cutter *c, const int64_t cell[3])
{
    for (int64_t s = 0; s < c->crystal->sites; s++) {
        const hl_site *site = &c->crystal->site[s];
        hl_atom a = {.z = site->z, .b = site->b, .weight = site->occupancy};
        double part[3];
        bool in = true;
        for (int k = 0; k < 3; k++) part[k] = site->at[k] + (double)cell[k];
        combine(c->edge, part, a.at);
        for (int k = 0; k < 3; k++) {
            a.at[k] += c->origin[k];
            in = in && a.at[k] >= 0 && a.at[k] < c->end[k];
        }
        if (!in) continue;
        HL_TRY(hl_grow(c->ctx, &c->atom, &c->room, (size_t)c->n + 1, sizeof(*c->atom), "atoms"));
        c->atom[c->n++] = a;
    }
    return HALO_OK;
}

halo_status hl_crystal_cut(halo_context *ctx, const hl_crystal *crystal, const double (*turn)[3], const double origin[3], double box, double thickness, hl_atom **atoms, int64_t *n)
{
    cutter c = {.ctx = ctx, .crystal = crystal, .origin = origin, .end = {box, box, thickness}};
    halo_status st = HALO_OK;
    for (int k = 0; k < 3; k++) apply(turn, crystal->cell[k], c.edge[k]);
    find_cells(&c);
    int64_t i[3];
    for (i[0] = c.low[0]; i[0] <= c.high[0] && st == HALO_OK; i[0]++)
        for (i[1] = c.low[1]; i[1] <= c.high[1] && st == HALO_OK; i[1]++)
            for (i[2] = c.low[2]; i[2] <= c.high[2] && st == HALO_OK; i[2]++) st = cut_cell(&c, i);
    if (st != HALO_OK) {
        free(c.atom);
        return st;
    }
    *atoms = c.atom;
    *n = c.n;
    return HALO_OK;
}
