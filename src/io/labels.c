/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c -- targets from columns of numbers. The range of a target is that of the training rows (auto), given, or none:
 *
 *     y = (value - (low + high) / 2) / ((high - low) / 2)     -1 at low, +1 at high
 *
 * Validation and test sets take the ranges of the training set, whatever values they have.
 */
#include "io/labels.h"
#include "base/str.h"
#include "base/yaml.h"

#include <stdio.h>

typedef struct taker {
    hl_source *s;
    const hl_array_options *a;
    const hl_labels *l;
    int64_t targets;
    int64_t *column; /* [targets] of the table */
} taker;

static bool whole_number(const char *word, int64_t *n)
{
    hl_yaml node = {.kind = HL_YAML_SCALAR, .text = (char *)word};
    return hl_yaml_int(&node, n);
}

static bool number(const char *word, double *x)
{
    hl_yaml node = {.kind = HL_YAML_SCALAR, .text = (char *)word};
    return hl_yaml_number(&node, x) && isfinite(*x);
}

/* ----------------------------------------------------------------------------------------------------------- columns */

static halo_status no_column(const taker *k, const char *word)
{
    const hl_table *t = k->l->table;
    hl_str list = {0};
    for (int64_t c = 0; t->name && c < t->columns && c < 24; c++) hl_str_addf(&list, "%s%s", c ? ", " : ": ", t->name[c]);
    const char *near = t->name ? hl_nearest(word, (const char *const *)t->name, (size_t)t->columns) : NULL;
    halo_status st = hl_fail(k->s->ctx, HALO_ERR_USAGE, "'%s': no column '%s'%s%s%s; it has %" PRId64 " column%s, from 0%s%s", k->l->path, word, near ? " (did you mean '" : "",
                             near ? near : "", near ? "'?)" : "", t->columns, HL_S(t->columns), t->name ? "" : ", without names", list.s ? list.s : "");
    hl_str_free(&list);
    return st;
}

/* By the name in the header, else by number from 0. */
static halo_status find_column(const taker *k, const char *word, int64_t *column)
{
    const hl_table *t = k->l->table;
    for (int64_t c = 0; t->name && c < t->columns; c++)
        if (strcmp(t->name[c], word) == 0) {
            *column = c;
            return HALO_OK;
        }
    if (whole_number(word, column) && *column >= 0 && *column < t->columns) return HALO_OK;
    return no_column(k, word);
}

static halo_status choose_columns(taker *k)
{
    const hl_map *m = &k->a->columns;
    k->targets = m->n ? m->n : k->l->table->columns;
    HL_TRY(hl_calloc(k->s->ctx, (size_t)k->targets, sizeof(*k->column), "columns", &k->column));
    for (int64_t i = 0; i < k->targets; i++) {
        const struct hl_map_item *e = m->n ? &m->item[i] : NULL;
        if (e && e->values > 1) return hl_fail(k->s->ctx, HALO_ERR_USAGE, "'data.targets.columns': '%s' must be one column", e->word);
        if (!e) k->column[i] = i;
        else HL_TRY(find_column(k, e->values ? e->value[0] : e->word, &k->column[i]));
    }
    return HALO_OK;
}

static halo_status check_name(const taker *k, int64_t i)
{
    const hl_target *x = k->s->info.target;
    for (const char *c = x[i].name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) return hl_fail(k->s->ctx, HALO_ERR_FORMAT, "'%s': the name of target %" PRId64 " has a control character", k->l->path, i);
    for (int64_t j = 0; j < i; j++)
        if (strcmp(x[j].name, x[i].name) == 0) return hl_fail(k->s->ctx, HALO_ERR_FORMAT, "'%s': targets %" PRId64 " and %" PRId64 " are both called '%s'", k->l->path, j, i, x[i].name);
    return HALO_OK;
}

static halo_status set_names(const taker *k)
{
    const hl_map *m = &k->a->columns;
    for (int64_t i = 0; i < k->targets; i++) {
        hl_target *x = &k->s->info.target[i];
        const char *header = k->l->table->name ? k->l->table->name[k->column[i]] : NULL;
        int64_t ignored;
        bool numbered = m->n && !m->item[i].values && whole_number(m->item[i].word, &ignored); /* [0, 1]: the header's names, if there are */
        if (m->n && !numbered) snprintf(x->name, sizeof(x->name), "%s", m->item[i].word);
        else if (header && *header) snprintf(x->name, sizeof(x->name), "%.60s", header);
        HL_TRY(check_name(k, i));
    }
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------ ranges */

static double value(const taker *k, int64_t row, int64_t target)
{
    const hl_table *t = k->l->table;
    return t->value[(k->l->row ? k->l->row[row] : row) * t->columns + k->column[target]];
}

static halo_status measure(const taker *k, int64_t i)
{
    hl_target *x = &k->s->info.target[i];
    for (int j = 0; j < k->a->likes; j++)
        if (strcmp(k->a->like[j].name, x->name) == 0) {
            x->low = k->a->like[j].low;
            x->high = k->a->like[j].high;
            return HALO_OK;
        }
    x->low = INFINITY, x->high = -INFINITY;
    for (int64_t r = k->l->first; r < k->l->first + k->l->count; r++) {
        x->low = fmin(x->low, value(k, r, i));
        x->high = fmax(x->high, value(k, r, i));
    }
    if (x->low < x->high) return HALO_OK;
    return hl_fail(k->s->ctx, HALO_ERR_FORMAT, "'%s': target '%s' is %g in every row, so that it has no range: leave it out, or say 'data.targets.range: none'", k->l->path, x->name, x->low);
}

static halo_status give(const taker *k, int64_t i, const char *low, const char *high)
{
    hl_target *x = &k->s->info.target[i];
    if (!number(low, &x->low) || !number(high, &x->high) || !(x->low < x->high))
        return hl_fail(k->s->ctx, HALO_ERR_USAGE, "'data.targets.range' of '%s' is [%s, %s], must be [low, high]", x->name, low, high);
    return HALO_OK;
}

/* auto, none or nothing. */
static halo_status by_word(const taker *k, int64_t i, const char *word)
{
    if (strcmp(word, "auto") == 0) return measure(k, i);
    if (strcmp(word, "none") == 0) return HALO_OK; /* unknown, as it is */
    return hl_fail(k->s->ctx, HALO_ERR_USAGE, "'data.targets.range' cannot be '%s'; auto, none, [low, high], or a map of these such as {Omega_m: [0.1, 0.5]}", word);
}

static halo_status set_range(const taker *k, int64_t i)
{
    const hl_map *m = &k->a->range;
    const hl_target *x = &k->s->info.target[i];
    if (k->a->classes) return HALO_OK;
    if (m->n == 0) return k->l->measure ? measure(k, i) : HALO_OK;
    if (m->item[0].values == 0) return m->n == 2 ? give(k, i, m->item[0].word, m->item[1].word) : by_word(k, i, m->n == 1 ? m->item[0].word : "a list");
    for (int e = 0; e < m->n; e++) {
        if (strcmp(m->item[e].word, x->name) != 0) continue;
        return m->item[e].values == 2 ? give(k, i, m->item[e].value[0], m->item[e].value[1]) : by_word(k, i, m->item[e].value[0]);
    }
    return measure(k, i);
}

static halo_status check_range_names(const taker *k)
{
    const hl_map *m = &k->a->range;
    for (int e = 0; e < m->n && m->item[0].values; e++) {
        bool known = false;
        for (int64_t i = 0; i < k->targets; i++) known = known || strcmp(m->item[e].word, k->s->info.target[i].name) == 0;
        if (!known) return hl_fail(k->s->ctx, HALO_ERR_USAGE, "'data.targets.range' has '%s', which is no target of '%s'", m->item[e].word, k->l->path);
    }
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------ values */

static halo_status check_values(const taker *k)
{
    for (int64_t r = 0; r < k->l->rows; r++)
        for (int64_t i = 0; i < k->targets; i++) {
            if (isfinite(value(k, r, i))) continue;
            const hl_table *t = k->l->table;
            char place[64];
            if (t->line) snprintf(place, sizeof(place), "line %" PRId64, t->line[k->l->row ? k->l->row[r] : r]);
            else snprintf(place, sizeof(place), "sample %" PRId64, r);
            return hl_fail(k->s->ctx, HALO_ERR_NONFINITE, "'%s': %s: column %" PRId64 " ('%s') is no finite number%s", k->l->path, place, k->column[i], k->s->info.target[i].name,
                           k->a->columns.n ? "" : "; 'data.targets.columns' chooses columns");
        }
    return HALO_OK;
}

static halo_status take_values(const taker *k, float **out)
{
    float *y;
    HL_TRY(hl_calloc(k->s->ctx, (size_t)(k->l->rows * k->targets), sizeof(*y), "targets", &y));
    for (int64_t i = 0; i < k->targets; i++) {
        const hl_target *x = &k->s->info.target[i];
        bool ranged = isfinite(x->low) && isfinite(x->high);
        double centre = ranged ? (x->low + x->high) / 2 : 0, half = ranged ? (x->high - x->low) / 2 : 1;
        for (int64_t r = 0; r < k->l->rows; r++) y[r * k->targets + i] = (float)((value(k, r, i) - centre) / half);
    }
    *out = y;
    return HALO_OK;
}

halo_status hl_labels_take(hl_source *s, const hl_source_options *o, const hl_labels *l, float **y)
{
    taker k = {.s = s, .a = o->array, .l = l};
    halo_status st;
    HL_GOTO(st, choose_columns(&k), free_columns);
    if (o->outputs && o->outputs != k.targets) {
        st = hl_fail(s->ctx, HALO_ERR_SHAPE, "'%s' gives %" PRId64 " target%s, the network has %" PRId64 " output%s: 'data.targets.columns' chooses columns", l->path, k.targets, HL_S(k.targets),
                     o->outputs, HL_S(o->outputs));
        goto free_columns;
    }
    HL_GOTO(st, hl_source_targets(s, o, l->path, "targets", k.targets), free_columns);
    HL_GOTO(st, set_names(&k), free_columns);
    HL_GOTO(st, check_values(&k), free_columns);
    HL_GOTO(st, check_range_names(&k), free_columns);
    for (int64_t i = 0; i < k.targets; i++) HL_GOTO(st, set_range(&k, i), free_columns);
    st = take_values(&k, y);
free_columns:
    free(k.column);
    return st;
}
