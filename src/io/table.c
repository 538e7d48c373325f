/* SPDX-License-Identifier: Apache-2.0 */
/* table.c -- see table.h. One pass over the text, which is kept for the names. */
#include "io/table.h"
#include "base/file.h"

#include <ctype.h>
#include <locale.h>
#include <stdio.h>

#define BYTES_MOST ((size_t)256 << 20)
enum { COLUMNS_MOST = 4096 };

typedef struct reader {
    halo_context *ctx;
    const char *path;
    hl_table *t;
    char *comment; /* the last one before the first row */
    char *header;  /* a first line of words */
    size_t values, lines;
} reader;

static bool separates(char c) { return c == ',' || c == ';' || isspace((unsigned char)c); }

/* The next cell of *at, cut off where it ends; NULL where there is none. One comma separates like any number of blanks; an empty cell between two commas is "". */
static char *next_cell(char **at)
{
    char *c = *at;
    while (isspace((unsigned char)*c)) c++;
    if (!*c) return NULL;
    char *cell = c;
    if (*c == '"')
        for (cell = ++c; *c && *c != '"';) c++;
    else
        while (*c && !separates(*c)) c++;
    char *end = c;
    if (*c == '"') c++;
    while (isspace((unsigned char)*c)) c++;
    if (*c == ',' || *c == ';') c++;
    *at = c;
    if (end < c) *end = '\0';
    return cell;
}

static int64_t count_cells(const char *line)
{
    int64_t n = 0;
    const char *c = line;
    while (isspace((unsigned char)*c)) c++;
    while (*c) {
        if (*c == '"') {
            for (c++; *c && *c != '"';) c++;
            if (*c) c++;
        } else
            while (*c && !separates(*c)) c++;
        while (isspace((unsigned char)*c)) c++;
        if (*c == ',' || *c == ';') c++;
        while (isspace((unsigned char)*c)) c++;
        n++;
    }
    return n;
}

static bool to_number(const char *cell, double *x)
{
    char *end;
    *x = strtod(cell, &end);
    return end != cell && !*end;
}

/* Whether no cell of the line is a number. */
static bool is_words(const char *line, char *copy)
{
    double x;
    memcpy(copy, line, strlen(line) + 1);
    for (char *at = copy, *cell; (cell = next_cell(&at));)
        if (to_number(cell, &x)) return false;
    return true;
}

static halo_status add_row(reader *r, char *line, int64_t number)
{
    hl_table *t = r->t;
    int64_t cells = count_cells(line);
    if (t->rows == 0) t->columns = cells;
    if (cells > COLUMNS_MOST) return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': line %" PRId64 " has %" PRId64 " columns, %d are the most", r->path, number, cells, COLUMNS_MOST);
    if (cells != t->columns)
        return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': line %" PRId64 " has %" PRId64 " column%s, those before have %" PRId64, r->path, number, cells, cells == 1 ? "" : "s", t->columns);
    HL_TRY(hl_grow(r->ctx, &t->value, &r->values, (size_t)((t->rows + 1) * t->columns), sizeof(double), "a table"));
    HL_TRY(hl_grow(r->ctx, &t->line, &r->lines, (size_t)t->rows + 1, sizeof(int64_t), "a table"));
    char *at = line;
    for (int64_t c = 0; c < cells; c++) {
        double x;
        const char *cell = next_cell(&at);
        t->value[t->rows * t->columns + c] = cell && to_number(cell, &x) ? x : NAN;
    }
    t->line[t->rows++] = number;
    return HALO_OK;
}

static halo_status add_line(reader *r, char *line, char *copy, int64_t number)
{
    line[strcspn(line, "\r")] = '\0';
    char *mark = strpbrk(line, "#%"), *c = line;
    while (isspace((unsigned char)*c)) c++;
    if (mark == c && *c) {
        if (r->t->rows == 0) r->comment = mark + 1 + strspn(mark + 1, "#%");
        return HALO_OK;
    }
    if (mark) *mark = '\0';
    if (!*c) return HALO_OK;
    if (r->t->rows == 0 && !r->header && is_words(c, copy)) {
        r->header = c;
        return HALO_OK;
    }
    return add_row(r, c, number);
}

/* The header's words, if they are as many as the columns. */
static halo_status take_names(reader *r)
{
    hl_table *t = r->t;
    char *line = r->header ? r->header : r->comment;
    if (!line || count_cells(line) != t->columns) {
        if (!r->header) return HALO_OK;
        return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': the header has %" PRId64 " names for %" PRId64 " columns", r->path, count_cells(line), t->columns);
    }
    HL_TRY(hl_calloc(r->ctx, (size_t)t->columns, sizeof(char *), "a header", &t->name));
    for (int64_t c = 0; c < t->columns; c++) t->name[c] = next_cell(&line);
    return HALO_OK;
}

static halo_status read_table(halo_context *ctx, const char *path, hl_table *table)
{
    hl_table t = {0};
    reader r = {.ctx = ctx, .path = path, .t = &t};
    char *copy = NULL;
    size_t bytes = 0;
    halo_status st;
    HL_TRY(hl_file_read(ctx, path, BYTES_MOST, &t.text, &bytes));
    HL_GOTO(st, hl_calloc(ctx, bytes + 1, 1, "a line", &copy), done);
    if (strlen(t.text) != bytes) st = hl_fail(ctx, HALO_ERR_FORMAT, "'%s' is no text: it has a byte 0", path);
    int64_t number = 0;
    for (char *line = t.text, *next; line && st == HALO_OK; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        st = add_line(&r, line, copy, ++number);
    }
    if (st == HALO_OK && t.rows == 0) st = hl_fail(ctx, HALO_ERR_FORMAT, "'%s': no row of numbers", path);
    if (st == HALO_OK) st = take_names(&r);
done:
    free(copy);
    if (st == HALO_OK) *table = t;
    else hl_table_free(&t);
    return st;
}

/* Numbers have a decimal point, whatever the caller's locale. */
halo_status hl_table_read(halo_context *ctx, const char *path, hl_table *table)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), old = c ? uselocale(c) : (locale_t)0;
    halo_status st = read_table(ctx, path, table);
    if (!c) return st;
    uselocale(old);
    freelocale(c);
    return st;
}

void hl_table_free(hl_table *t)
{
    free(t->value);
    free(t->line);
    free(t->name);
    free(t->text);
    *t = (hl_table){0};
}
