/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prototypes.c -- ten common structure types, and elements that may fill them.
 *
 * The lattice parameter is that at which nearest neighbours touch: a = scale (r_A + r_B), with metallic radii (12 neighbours) in fcc, bcc and hcp, tetrahedral covalent ones in diamond, zincblende and wurtzite (Pauling), and
 * Shannon's of ions in the others. That is within a few percent of the true one for most (Si 5.40 A beside 5.43, MgO 4.24 beside 4.21, SrTiO3 4.01 beside 3.905), which is all that training data need.
 */
#include "synth/cbed/prototypes.h"

#include <math.h>
#include <stdio.h>

#include "synth/cbed/kirkland.h"

enum { KINDS = 3, SITES = 12 };

typedef struct prototype {
    const char *name;
    double scale;       /* a over the sum of the radii of kinds 0 and 1; of one kind, over twice its radius */
    double ratio;       /* c / a */
    double gamma;       /* degrees */
    int touch[2];       /* the kinds whose radii are added */
    const char *fill[KINDS]; /* "Na 1.02 K 1.38": elements and their radii, A */
    int sites;
    struct { int kind; double at[3]; } site[SITES];
} prototype;

#define FCC(k, x, y, z) {k, {x, y, z}}, {k, {x, y + 0.5, z + 0.5}}, {k, {x + 0.5, y, z + 0.5}}, {k, {x + 0.5, y + 0.5, z}}

static const prototype prototypes[] = {
    {"fcc", 1.41421356, 1, 90, {0, 0}, {"Al 1.43 Ni 1.25 Cu 1.28 Pd 1.37 Ag 1.44 Pt 1.39 Au 1.44"}, 4, {FCC(0, 0, 0, 0)}},
    {"bcc", 1.15470054, 1, 90, {0, 0}, {"V 1.31 Cr 1.25 Fe 1.24 Nb 1.43 Mo 1.36 Ta 1.43 W 1.37"}, 2, {{0, {0, 0, 0}}, {0, {0.5, 0.5, 0.5}}}},
    {"hcp", 1, 1.6, 120, {0, 0}, {"Mg 1.60 Ti 1.46 Co 1.25 Zn 1.33 Zr 1.60 Ru 1.34"}, 2, {{0, {1 / 3.0, 2 / 3.0, 0.25}}, {0, {2 / 3.0, 1 / 3.0, 0.75}}}},
    {"diamond", 2.30940108, 1, 90, {0, 0}, {"C 0.77 Si 1.17 Ge 1.22"}, 8, {FCC(0, 0, 0, 0), FCC(0, 0.25, 0.25, 0.25)}},
    {"zincblende", 2.30940108, 1, 90, {0, 1}, {"Al 1.26 Ga 1.26 In 1.44 Zn 1.31 Cd 1.48", "P 1.10 As 1.18 Sb 1.36 S 1.04 Se 1.14 Te 1.32"}, 8, {FCC(0, 0, 0, 0), FCC(1, 0.25, 0.25, 0.25)}},
    {"wurtzite", 1.63299316, 1.63299316, 120, {0, 1}, {"Al 1.26 Ga 1.26 In 1.44 Zn 1.31 Cd 1.48", "N 0.70 O 0.66 S 1.04 Se 1.14"}, 4,
     {{0, {1 / 3.0, 2 / 3.0, 0}}, {0, {2 / 3.0, 1 / 3.0, 0.5}}, {1, {1 / 3.0, 2 / 3.0, 0.375}}, {1, {2 / 3.0, 1 / 3.0, 0.875}}}},
    {"rocksalt", 2, 1, 90, {0, 1}, {"Na 1.02 K 1.38 Mg 0.72 Ca 1.00 Sr 1.18 Mn 0.83 Ni 0.69 Pb 1.19", "O 1.40 S 1.84 F 1.33 Cl 1.81 Se 1.98"}, 8, {FCC(0, 0, 0, 0), FCC(1, 0.5, 0, 0)}},
    {"cscl", 1.15470054, 1, 90, {0, 1}, {"Cs 1.74 Rb 1.61 Tl 1.59", "Cl 1.81 Br 1.96 I 2.20"}, 2, {{0, {0, 0, 0}}, {1, {0.5, 0.5, 0.5}}}},
    {"perovskite", 2, 1, 90, {1, 2}, {"Ca 1.34 Sr 1.44 Ba 1.61 La 1.36", "Ti 0.605 Zr 0.72 Mn 0.645 Fe 0.645 Nb 0.64", "O 1.40"}, 5,
     {{0, {0, 0, 0}}, {1, {0.5, 0.5, 0.5}}, {2, {0, 0.5, 0.5}}, {2, {0.5, 0, 0.5}}, {2, {0.5, 0.5, 0}}}},
    {"fluorite", 2.30940108, 1, 90, {0, 1}, {"Ca 1.12 Sr 1.26 Ba 1.42 Ce 0.97 Zr 0.84", "F 1.31 O 1.38"}, 12, {FCC(0, 0, 0, 0), FCC(1, 0.25, 0.25, 0.25), FCC(1, 0.75, 0.25, 0.25)}},
};

typedef struct filling { int z; double radius; } filling;

/* Element `i` of a list, or how many there are. */
static int64_t read_fill(const char *text, int64_t i, filling *out)
{
    char symbol[8];
    double radius;
    int64_t n = 0;
    int used = 0;
    for (; text && sscanf(text, " %7s %lf%n", symbol, &radius, &used) == 2; text += used, n++)
        if (n == i) *out = (filling){hl_element_number(symbol), radius};
    return n;
}

static int64_t fillings(const prototype *p)
{
    int64_t n = 1;
    for (int k = 0; k < KINDS && p->fill[k]; k++) n *= read_fill(p->fill[k], -1, NULL);
    return n;
}

int64_t hl_prototype_compounds(void)
{
    int64_t n = 0;
    for (size_t i = 0; i < HL_COUNT(prototypes); i++) n += fillings(&prototypes[i]);
    return n;
}

static void fill(const prototype *p, int64_t i, filling kind[KINDS], hl_crystal *c)
{
    int at = snprintf(c->name, sizeof(c->name), "%s-", p->name);
    for (int k = 0; k < KINDS && p->fill[k]; k++) {
        int64_t n = read_fill(p->fill[k], -1, NULL);
        read_fill(p->fill[k], i % n, &kind[k]);
        i /= n;
        at += snprintf(c->name + at, sizeof(c->name) - (size_t)at, "%s", hl_element_symbol(kind[k].z));
    }
}

halo_status hl_prototype_compound(halo_context *ctx, int64_t i, double b, hl_crystal *c)
{
    const prototype *p = prototypes;
    filling kind[KINDS] = {{0}};
    *c = (hl_crystal){.name = ""};
    for (; i >= fillings(p); p++) i -= fillings(p);
    fill(p, i, kind, c);
    double a = p->scale * (kind[p->touch[0]].radius + kind[p->touch[1]].radius);
    const double length[3] = {a, a, a * p->ratio}, angle[3] = {90, 90, p->gamma};
    HL_BUG_UNLESS(hl_cell_set(length, angle, c->cell));
    for (int s = 0; s < p->sites; s++) {
        hl_site site = {.z = kind[p->site[s].kind].z, .b = b, .occupancy = 1};
        for (int k = 0; k < 3; k++) site.at[k] = p->site[s].at[k] - floor(p->site[s].at[k]);
        HL_TRY(hl_crystal_add(ctx, c, &site));
    }
    return HALO_OK;
}
