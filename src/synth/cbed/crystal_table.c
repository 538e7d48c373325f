/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crystal_table.c -- crystals as a small text table, several in a file; what follows # is a remark:
 *
 *     crystal NAME
 *     cell a b c [alpha beta gamma]        A and degrees; angles are 90 where they are not given
 *     ELEMENT x y z [B [occupancy]]        in parts of the cell's edges; B in A^2
 */
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "synth/cbed/crystal.h"
#include "synth/cbed/kirkland.h"

enum { TABLE_MOST = 64 << 20 };

typedef struct reader {
    halo_context *ctx;
    const char *path;
    int64_t line;
    hl_crystal **crystals, *last;
    int64_t *n;
} reader;

static halo_status wrong(const reader *r, const char *what, const char *line) { return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s', line %" PRId64 ": %s: '%.100s'", r->path, r->line, what, line); }

static halo_status take_cell(reader *r, const char *line)
{
    double length[3], angle[3] = {90, 90, 90};
    int n = sscanf(line, "cell %lf %lf %lf %lf %lf %lf", &length[0], &length[1], &length[2], &angle[0], &angle[1], &angle[2]);
    if (n != 3 && n != 6) return wrong(r, "a cell is 'cell a b c' or 'cell a b c alpha beta gamma'", line);
    return hl_cell_set(length, angle, r->last->cell) ? HALO_OK : wrong(r, "there is no such cell", line);
}

static halo_status take_site(reader *r, const char *line)
{
    char symbol[16];
    hl_site s = {.b = -1, .occupancy = 1};
    int n = sscanf(line, "%15s %lf %lf %lf %lf %lf", symbol, &s.at[0], &s.at[1], &s.at[2], &s.b, &s.occupancy);
    if (n < 4) return wrong(r, "an atom is 'ELEMENT x y z [B [occupancy]]'", line);
    s.z = hl_element_number(symbol);
    if (s.z == 0) return wrong(r, "no such element", symbol);
    for (int k = 0; k < 3; k++) {
        if (!isfinite(s.at[k])) return wrong(r, "a place must be a number", line);
        s.at[k] -= floor(s.at[k]);
    }
    if (!(s.occupancy > 0 && s.occupancy <= 1)) return wrong(r, "an occupancy is above 0 and at most 1", line);
    if (hl_cell_volume(r->last->cell) <= 0) return wrong(r, "the cell must come before the atoms", line);
    return hl_crystal_add(r->ctx, r->last, &s);
}

static halo_status end_crystal(const reader *r)
{
    if (!r->last || r->last->sites > 0) return HALO_OK;
    return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': crystal '%s' has no atoms", r->path, r->last->name);
}

static halo_status take_line(reader *r, char *line)
{
    char name[64];
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    if (!*line) return HALO_OK;
    if (sscanf(line, "crystal %63s", name) == 1) {
        HL_TRY(end_crystal(r));
        HL_TRY(hl_crystals_grow(r->ctx, r->crystals, r->n, &r->last));
        snprintf(r->last->name, sizeof(r->last->name), "%s", name);
        return HALO_OK;
    }
    if (!r->last) return wrong(r, "a table begins with 'crystal NAME', a CIF file with 'data_NAME'", line);
    return strncmp(line, "cell", 4) == 0 ? take_cell(r, line) : take_site(r, line);
}

static bool is_cif(const char *text)
{
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        text += strspn(text, " \t\r");
        if (*text != '#' && *text != '\n' && *text) return strncmp(text, "data_", 5) == 0 || strncmp(text, "loop_", 5) == 0;
    }
    return false;
}

static halo_status read_table(reader *r, char *text)
{
    while (*text) {
        char *end = text + strcspn(text, "\n"), *next = *end ? end + 1 : end;
        *end = '\0';
        r->line++;
        HL_TRY(take_line(r, text));
        text = next;
    }
    if (!r->last) return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s' has no crystals", r->path);
    return end_crystal(r);
}

halo_status hl_crystals_read(halo_context *ctx, const char *path, hl_crystal **crystals, int64_t *n)
{
    char *text;
    size_t bytes;
    reader r = {.ctx = ctx, .path = path, .crystals = crystals, .n = n};
    HL_TRY(hl_file_read(ctx, path, TABLE_MOST, &text, &bytes));
    halo_status st = strlen(text) != bytes ? hl_fail(ctx, HALO_ERR_FORMAT, "'%s' is no text", path) : is_cif(text) ? hl_cif_read(ctx, path, text, crystals, n) : read_table(&r, text);
    free(text);
    return st;
}
