/* SPDX-License-Identifier: Apache-2.0 */
/* prior_table.c -- reads parameters of universes from a text table, such as the manifest of an earlier run.
 * */
#include "base/file.h"
#include "synth/prior.h"

#define SEPARATORS ", \t\r;"

enum { COLUMNS_MAX = 32, UNUSED = -1 };

typedef struct table_reader {
    halo_context *ctx;
    const hl_prior *prior;
    const char *path;
    int line, columns;
    int parameter[COLUMNS_MAX]; /* which one a column holds, or UNUSED */
    size_t cap;
    hl_prior_table *table;
} table_reader;

static bool is_known_other(const char *word)
{
    static const char *const other[] = {"file", "seed", "index", "box"};
    for (size_t i = 0; i < HL_COUNT(other); i++)
        if (strcmp(word, other[i]) == 0) return true;
    return false;
}

static int find_parameter(const hl_prior *prior, const char *word)
{
    for (int i = 0; i < prior->n; i++)
        if (strcmp(word, prior->parameter[i].name) == 0) return i;
    return UNUSED;
}

static halo_status read_heading(table_reader *r, char *line)
{
    bool have[HL_PRIOR_MAX] = {false};
    char *rest = NULL;

    for (char *word = strtok_r(line, SEPARATORS, &rest); word; word = strtok_r(NULL, SEPARATORS, &rest)) {
        int p = find_parameter(r->prior, word);
        if (p == UNUSED && !is_known_other(word))
            return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': '%s' is no parameter of this prior", r->path,
                           word);
        if (r->columns == COLUMNS_MAX)
            return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': more than %d columns", r->path, COLUMNS_MAX);
        r->parameter[r->columns++] = p;
        if (p != UNUSED) have[p] = true;
    }
    for (int i = 0; i < r->prior->n; i++)
        if (!have[i])
            return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': no column '%s'", r->path,
                           r->prior->parameter[i].name);
    return HALO_OK;
}

static halo_status read_row(table_reader *r, char *line)
{
    char *rest = NULL, *end;
    int column = 0, n = r->prior->n;

    HL_TRY(hl_grow(r->ctx, &r->table->value, &r->cap, (size_t)((r->table->rows + 1) * n), sizeof(double),
                   "a parameter table"));
    for (char *word = strtok_r(line, SEPARATORS, &rest); word;
         word = strtok_r(NULL, SEPARATORS, &rest), column++) {
        if (column >= r->columns)
            return hl_fail(r->ctx, HALO_ERR_FORMAT, "%s:%d: more values than columns", r->path, r->line);
        if (r->parameter[column] == UNUSED) continue;
        double x = strtod(word, &end);
        if (*end != '\0' || !isfinite(x))
            return hl_fail(r->ctx, HALO_ERR_FORMAT, "%s:%d: '%s' is no number", r->path, r->line, word);
        if (!(x > 0.0))
            return hl_fail(r->ctx, HALO_ERR_FORMAT, "%s:%d: %s must be positive, not %s", r->path, r->line,
                           r->prior->parameter[r->parameter[column]].name, word);
        r->table->value[r->table->rows * n + r->parameter[column]] = x;
    }
    if (column != r->columns)
        return hl_fail(r->ctx, HALO_ERR_FORMAT, "%s:%d: %d values instead of %d", r->path, r->line, column,
                       r->columns);
    r->table->rows++;
    return HALO_OK;
}

static halo_status read_lines(table_reader *r, char *text)
{
    for (char *next; text; text = next) {
        next = strchr(text, '\n');
        if (next) *next++ = '\0';
        r->line++;
        text += strspn(text, SEPARATORS);
        if (*text == '\0' || *text == '#') continue;
        HL_TRY(r->columns == 0 ? read_heading(r, text) : read_row(r, text));
    }
    if (r->table->rows == 0) return hl_fail(r->ctx, HALO_ERR_FORMAT, "'%s': no rows", r->path);
    return HALO_OK;
}

halo_status hl_prior_read_table(halo_context *ctx, const hl_prior *prior, const char *path,
                                hl_prior_table *out)
{
    hl_prior_table table = {0};
    table_reader r = {.ctx = ctx, .prior = prior, .path = path, .table = &table};
    char *text;
    size_t bytes;

    HL_TRY(hl_file_read(ctx, path, (size_t)64 << 20, &text, &bytes));
    halo_status st = read_lines(&r, text);
    free(text);
    if (st == HALO_OK)
        *out = table;
    else
        free(table.value);
    return st;
}
