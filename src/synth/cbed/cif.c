/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cif.c -- crystals of a CIF file (S. R. Hall, F. H. Allen and I. D. Brown, "The Crystallographic Information File", 1991): of each data block that has a cell, its edges and angles, symmetry operations and atoms,
 *
 *     _cell_length_a ... _cell_angle_gamma                                                   numbers with their error in brackets, 5.4310(2)
 *     _symmetry_equiv_pos_as_xyz, _space_group_symop_operation_xyz                           'x, 1/2-y, z+1/2'; without any the atoms are all that there are (P1)
 *     _atom_site_label, _type_symbol, _fract_x, _y, _z, _occupancy, _B_iso_or_equiv, _U_iso_or_equiv
 *
 * Each operation is applied to each atom; what comes to lie within 0.05 A of an equal one that is there is the same atom. Names of space groups are not looked up: a file that has more than P1 must list the operations, as those of
 * the databases do.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "synth/cbed/crystal.h"
#include "synth/cbed/kirkland.h"

enum { COLUMNS = 64, OPERATIONS = 512, SITES_MOST = 100000 };

typedef struct operation { double m[3][3], t[3]; } operation;

typedef struct block {
    char name[64], group[64];
    double length[3], angle[3];
    int cell;             /* bits: which of the six are known */
    operation op[OPERATIONS];
    int ops;
    hl_crystal asymmetric; /* atoms as they are listed */
} block;

typedef struct reader {
    halo_context *ctx;
    const char *path;
    char *at;
    int64_t line;
    char *token;       /* the one that was read; NULL: the end */
    bool quoted, ended; /* ended: by a newline that is not counted yet */
    block *b;
} reader;

static halo_status wrong(const reader *r, const char *what, const char *text) { return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s', line %" PRId64 ": %s: '%.100s'", r->path, r->line, what, text); }

/* --------------------------------------------------------------------------------------------------------------- tokens */

/* Ends the token; a newline that is overwritten is counted when the next one is read. */
static void cut(reader *r, char *end)
{
    r->ended = *end == '\n';
    r->at = *end ? end + 1 : end;
    *end = '\0';
}

/* A text between lines that begin with a semicolon. */
static void next_text(reader *r)
{
    char *end = strstr(r->at, "\n;");
    r->token = r->at + 1;
    r->quoted = true;
    if (!end) end = r->at + strlen(r->at);
    for (const char *c = r->at; c < end; c++) r->line += *c == '\n';
    cut(r, end);
    if (r->ended) r->at++;
}

static void next_quoted(reader *r)
{
    char quote = *r->at, *end = r->at + 1;
    r->token = end;
    r->quoted = true;
    while (*end && *end != '\n' && !(*end == quote && (end[1] == '\0' || isspace((unsigned char)end[1])))) end++;
    cut(r, end);
}

static void next(reader *r)
{
    bool fresh = r->ended || r->line == 0; /* at the beginning of a line */
    r->line += fresh;
    r->ended = r->quoted = false;
    r->token = NULL;
    for (; isspace((unsigned char)*r->at) || *r->at == '#'; r->at++) {
        if (*r->at == '#') r->at += strcspn(r->at, "\n");
        if (!*r->at) return;
        fresh = *r->at == '\n';
        r->line += fresh;
    }
    if (!*r->at) return;
    if (*r->at == ';' && fresh) next_text(r);
    else if (*r->at == '\'' || *r->at == '"') next_quoted(r);
    else {
        r->token = r->at;
        cut(r, r->at + strcspn(r->at, " \t\r\n"));
    }
}

static bool is_word(const reader *r, const char *word) { return r->token && !r->quoted && strcasecmp(r->token, word) == 0; }
static bool is_tag(const reader *r) { return r->token && !r->quoted && r->token[0] == '_'; }
static bool is_value(const reader *r) { return r->token && (r->quoted || (r->token[0] != '_' && !is_word(r, "loop_") && strncasecmp(r->token, "data_", 5) != 0)); }

/* "5.4310(2)"; "?" and "." are no numbers. */
static bool number(const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || !isfinite(v) || (*end && *end != '(')) return false;
    *out = v;
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- operations */

/* One of "x", "1/2-y", "z+0.5": sums of axes and numbers. */
static bool read_row(const char *text, size_t n, double m[3], double *t)
{
    double sign = 1;
    m[0] = m[1] = m[2] = *t = 0;
    for (const char *c = text, *end = text + n; c < end;) {
        int axis = tolower((unsigned char)*c) - 'x';
        if (isspace((unsigned char)*c)) c++;
        else if (*c == '+' || *c == '-') sign = *c++ == '-' ? -1 : 1;
        else if (axis >= 0 && axis < 3) m[axis] += sign, sign = 1, c++;
        else {
            char *after;
            double v = strtod(c, &after);
            if (after == c || after > end) return false;
            c = after;
            if (c < end && *c == '/') {
                double below = strtod(c + 1, &after);
                if (after == c + 1 || after > end || below == 0) return false;
                v /= below;
                c = after;
            }
            *t += sign * v;
            sign = 1;
        }
    }
    return true;
}

static halo_status add_operation(reader *r, const char *text)
{
    operation o;
    const char *at = text;
    if (r->b->ops == OPERATIONS) return wrong(r, "more than 512 symmetry operations", text);
    for (int k = 0; k < 3; k++) {
        size_t n = strcspn(at, ",");
        if ((k < 2) != (at[n] == ',') || n == 0 || !read_row(at, n, o.m[k], &o.t[k])) return wrong(r, "no symmetry operation such as 'x, 1/2-y, z'", text);
        at += n + (k < 2);
    }
    r->b->op[r->b->ops++] = o;
    return HALO_OK;
}

/* ---------------------------------------------------------------------------------------------------------------- loops */

enum column { OTHER, LABEL, SYMBOL, X, Y, Z, OCCUPANCY, B_ISO, U_ISO, XYZ };

static enum column column_of(const char *tag)
{
    static const struct { const char *tag; enum column column; } known[] = {
        {"_atom_site_label", LABEL}, {"_atom_site_type_symbol", SYMBOL}, {"_atom_site_fract_x", X}, {"_atom_site_fract_y", Y}, {"_atom_site_fract_z", Z}, {"_atom_site_occupancy", OCCUPANCY},
        {"_atom_site_b_iso_or_equiv", B_ISO}, {"_atom_site_u_iso_or_equiv", U_ISO}, {"_symmetry_equiv_pos_as_xyz", XYZ}, {"_space_group_symop_operation_xyz", XYZ}};
    for (size_t i = 0; i < HL_COUNT(known); i++)
        if (strcasecmp(tag, known[i].tag) == 0) return known[i].column;
    return OTHER;
}

typedef struct row { const char *symbol, *label; double at[3], occupancy, b; int places; } row;

static halo_status take_value(reader *r, enum column c, row *w)
{
    double v;
    switch (c) {
    case LABEL: w->label = r->token; return HALO_OK;
    case SYMBOL: w->symbol = r->token; return HALO_OK;
    case XYZ: return add_operation(r, r->token);
    case X: case Y: case Z:
        if (!number(r->token, &w->at[c - X])) return wrong(r, "no number for an atom's place", r->token);
        w->places |= 1 << (c - X);
        return HALO_OK;
    case OCCUPANCY: (void)number(r->token, &w->occupancy); return HALO_OK;
    case B_ISO: (void)number(r->token, &w->b); return HALO_OK;
    case U_ISO:
        if (number(r->token, &v)) w->b = 8 * M_PI * M_PI * v;
        return HALO_OK;
    case OTHER: default: return HALO_OK;
    }
}

static halo_status take_atom(reader *r, const row *w)
{
    hl_site s = {.b = w->b, .occupancy = w->occupancy};
    const char *symbol = w->symbol ? w->symbol : w->label;
    if (w->places == 0) return HALO_OK; /* of another loop */
    if (w->places != 7 || !symbol) return wrong(r, "an atom needs a label or symbol and three coordinates", symbol ? symbol : "");
    s.z = hl_element_number(symbol);
    if (s.z == 0) return wrong(r, "no such element", symbol);
    if (!(s.occupancy > 0 && s.occupancy <= 1)) return wrong(r, "an occupancy is above 0 and at most 1", symbol);
    memcpy(s.at, w->at, sizeof(s.at));
    return hl_crystal_add(r->ctx, &r->b->asymmetric, &s);
}

static halo_status take_loop(reader *r)
{
    enum column column[COLUMNS];
    int n = 0;
    for (next(r); is_tag(r); next(r)) {
        if (n == COLUMNS) return wrong(r, "a loop of more than 64 columns", r->token);
        column[n++] = column_of(r->token);
    }
    while (n > 0 && is_value(r)) {
        row w = {.occupancy = 1, .b = -1};
        for (int i = 0; i < n; i++, next(r)) {
            if (!is_value(r)) return wrong(r, "a row of a loop ends too early", r->token ? r->token : "end of the file");
            HL_TRY(take_value(r, column[i], &w));
        }
        HL_TRY(take_atom(r, &w));
    }
    return HALO_OK;
}

/* --------------------------------------------------------------------------------------------------------------- blocks */

static halo_status take_item(reader *r)
{
    static const char *const cell[6] = {"_cell_length_a", "_cell_length_b", "_cell_length_c", "_cell_angle_alpha", "_cell_angle_beta", "_cell_angle_gamma"};
    const char *tag = r->token;
    next(r);
    if (!is_value(r)) return wrong(r, "no value", tag);
    for (int i = 0; i < 6; i++) {
        if (strcasecmp(tag, cell[i]) != 0) continue;
        if (!number(r->token, i < 3 ? &r->b->length[i] : &r->b->angle[i - 3])) return wrong(r, "no number for the cell", r->token);
        r->b->cell |= 1 << i;
    }
    if (strcasecmp(tag, "_symmetry_space_group_name_h-m") == 0 || strcasecmp(tag, "_space_group_name_h-m_alt") == 0) snprintf(r->b->group, sizeof(r->b->group), "%s", r->token);
    if (column_of(tag) == XYZ) HL_TRY(add_operation(r, r->token));
    next(r);
    return HALO_OK;
}

static bool is_there(const hl_crystal *c, const hl_site *s)
{
    for (int64_t i = 0; i < c->sites; i++) {
        double d2 = 0;
        double part[3];
        if (c->site[i].z != s->z) continue;
        for (int k = 0; k < 3; k++) {
            part[k] = c->site[i].at[k] - s->at[k];
            part[k] -= round(part[k]);
        }
        for (int k = 0; k < 3; k++) {
            double x = part[0] * c->cell[0][k] + part[1] * c->cell[1][k] + part[2] * c->cell[2][k];
            d2 += x * x;
        }
        if (d2 < 0.05 * 0.05) return true;
    }
    return false;
}

static halo_status expand(reader *r, hl_crystal *c)
{
    static const operation same = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, {0}};
    const block *b = r->b;
    for (int64_t i = 0; i < b->asymmetric.sites; i++)
        for (int o = 0; o < (b->ops ? b->ops : 1); o++) {
            const operation *op = b->ops ? &b->op[o] : &same;
            const hl_site *from = &b->asymmetric.site[i];
            hl_site s = *from;
            for (int k = 0; k < 3; k++) {
                s.at[k] = op->m[k][0] * from->at[0] + op->m[k][1] * from->at[1] + op->m[k][2] * from->at[2] + op->t[k];
                s.at[k] -= floor(s.at[k]);
            }
            if (c->sites >= SITES_MOST) return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': crystal '%s' has more than %d atoms in a cell", r->path, b->name, SITES_MOST);
            if (!is_there(c, &s)) HL_TRY(hl_crystal_add(r->ctx, c, &s));
        }
    return HALO_OK;
}

static bool is_p1(const char *group)
{
    char plain[8] = "";
    for (int n = 0; *group && n < 7; group++)
        if (!isspace((unsigned char)*group)) plain[n++] = *group, plain[n] = '\0';
    return plain[0] == '\0' || strcmp(plain, "P1") == 0 || plain[0] == '?' || plain[0] == '.';
}

/* The block that was read; one without a cell and atoms is left out. */
static halo_status end_block(reader *r, hl_crystal **crystals, int64_t *n)
{
    block *b = r->b;
    hl_crystal *c;
    if (b->cell == 0 && b->asymmetric.sites == 0) return HALO_OK;
    if (b->cell != 63) return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': block '%s' lacks edges or angles of its cell", r->path, b->name);
    if (b->asymmetric.sites == 0) return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': block '%s' has no atoms with coordinates", r->path, b->name);
    if (b->ops == 0 && !is_p1(b->group)) return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': block '%s' has the space group '%s' and does not list its symmetry operations", r->path, b->name, b->group);
    HL_TRY(hl_crystals_grow(r->ctx, crystals, n, &c));
    snprintf(c->name, sizeof(c->name), "%s", b->name);
    if (!hl_cell_set(b->length, b->angle, c->cell)) return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': block '%s': there is no cell with these edges and angles", r->path, b->name);
    return expand(r, c);
}

static void begin_block(reader *r, const char *name)
{
    hl_crystal_free(&r->b->asymmetric);
    *r->b = (block){.cell = 0};
    snprintf(r->b->name, sizeof(r->b->name), "%s", name);
}

static halo_status read_blocks(reader *r, hl_crystal **crystals, int64_t *n)
{
    next(r);
    while (r->token) {
        if (is_word(r, "loop_")) HL_TRY(take_loop(r));
        else if (is_tag(r)) HL_TRY(take_item(r));
        else if (!r->quoted && strncasecmp(r->token, "data_", 5) == 0) {
            HL_TRY(end_block(r, crystals, n));
            begin_block(r, r->token + 5);
            next(r);
        } else return wrong(r, "a value without a name", r->token);
    }
    return end_block(r, crystals, n);
}

halo_status hl_cif_read(halo_context *ctx, const char *path, char *text, hl_crystal **crystals, int64_t *n)
{
    reader r = {.ctx = ctx, .path = path, .at = text};
    int64_t before = *n;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*r.b), "a CIF file", &r.b));
    halo_status st = read_blocks(&r, crystals, n);
    if (st == HALO_OK && *n == before) st = hl_fail(ctx, HALO_ERR_FORMAT, "'%s' has no crystals", path);
    hl_crystal_free(&r.b->asymmetric);
    free(r.b);
    return st;
}
