/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/kept.h"

#include <stdio.h>

static const char first_line[] = "halo choices 1\n";

halo_status hl_kept_add(halo_context *ctx, hl_kept *kept, const char *key, const char *impl, double seconds)
{
    HL_TRY(hl_grow(ctx, &kept->list, &kept->cap, (size_t)kept->n + 1, sizeof(*kept->list), "measured choices"));
    hl_kept_choice *k = &kept->list[kept->n];
    HL_TRY(hl_strdup(ctx, key, &k->key));
    snprintf(k->impl, sizeof(k->impl), "%s", impl);
    k->seconds = seconds;
    kept->n++;
    return HALO_OK;
}

bool hl_kept_has(const hl_kept *kept, const char *key)
{
    for (int i = 0; i < kept->n; i++)
        if (strcmp(kept->list[i].key, key) == 0) return true;
    return false;
}

static halo_status read_line(halo_context *ctx, hl_kept *kept, const char *path, int number, char *line)
{
    char *tab = strchr(line, '\t'), *end = NULL;
    double seconds = tab ? strtod(tab + 1, &end) : 0;
    if (*line == '#' || !*line) return HALO_OK;
    if (!tab || !end || *end != '\t' || !end[1] || !(seconds >= 0)) return hl_fail(ctx, HALO_ERR_FORMAT, "'%s' line %d: not a measured choice", path, number);
    *tab = '\0';
    return hl_kept_add(ctx, kept, end + 1, line, seconds);
}

halo_status hl_kept_read(halo_context *ctx, hl_kept *kept, const char *path, char *text)
{
    const int before = kept->n;
    halo_status st = HALO_OK;
    if (strncmp(text, first_line, sizeof(first_line) - 1) != 0) return hl_fail(ctx, HALO_ERR_FORMAT, "'%s' is not a file of measured choices", path);
    int number = 2;
    for (char *line = text + sizeof(first_line) - 1; *line && st == HALO_OK; number++) {
        char *end = strchr(line, '\n'), *next = end ? end + 1 : line + strlen(line);
        if (end) *end = '\0';
        st = read_line(ctx, kept, path, number, line);
        line = next;
    }
    while (st != HALO_OK && kept->n > before) free(kept->list[--kept->n].key);
    return st;
}

void hl_kept_write(const hl_kept *kept, const char *about, hl_str *out)
{
    hl_str_add(out, first_line);
    if (about) hl_str_addf(out, "# %s\n", about);
    for (int i = 0; i < kept->n; i++) hl_str_addf(out, "%s\t%.6g\t%s\n", kept->list[i].impl, kept->list[i].seconds, kept->list[i].key);
}

void hl_kept_free(hl_kept *kept)
{
    for (int i = 0; i < kept->n; i++) free(kept->list[i].key);
    free(kept->list);
    *kept = (hl_kept){.n = 0};
}
