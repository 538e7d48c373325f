/* SPDX-License-Identifier: Apache-2.0 */
/* choices.c -- the memory of measured choices: those of the run, and behind them those of all runs. */
#include "cost/choices.h"

#include "base/file.h"
#include "cost/cache.h"
#include "cost/measure.h"

#include <stdio.h>

struct hl_choices {
    halo_device *dev;
    char *path, *shared_path; /* of the run and of all runs; NULL: none */
    char prefix[160];         /* device and threads */
    hl_kept run, shared;
    int measured, taken; /* anew, from other runs */
};

/* --------------------------------------------------------------------------------------------------- keys */

static void add_operand(hl_str *out, const halo_operand *o)
{
    hl_str_addf(out, "%s:%s", hl_dtype_name(o->dtype), hl_layout_name(o->layout));
    for (int i = 0; i < HALO_DIMS; i++) {
        hl_str_addf(out, "%c%" PRId64, "ncdhw"[i], o -> ext[i]);
        if (o->alloc[i] != o->ext[i]) hl_str_addf(out, "/%" PRId64 "+%" PRId64, o->alloc[i], o->lo[i]);
    }
    for (int i = 0; i < 6; i++)
        if (o->margin[i / 2][i % 2]) hl_str_addf(out, "m%d:%" PRId64, i, o->margin[i / 2][i % 2]);
}

static void add_triple(hl_str *out, const char *name, const int64_t v[3])
{
    hl_str_addf(out, " %s%" PRId64 "x%" PRId64 "x%" PRId64, name, v[0], v[1], v[2]);
}

void hl_op_key(const halo_op_desc *d, hl_str *out)
{
    hl_str_add(out, hl_op_kind_name(d->kind));
    for (int r = 0; r < HALO_ROLES; r++) {
        if (d->t[r].dtype == HALO_NONE) continue;
        hl_str_addf(out, " %s=", hl_role_name((halo_role)r));
        add_operand(out, &d->t[r]);
    }
    if (d->window.kernel[0] > 0) {
        add_triple(out, "k", d->window.kernel);
        add_triple(out, "s", d->window.stride);
        add_triple(out, "l", d->window.dilation);
        add_triple(out, "p", d->window.pad_lo);
    }
    if (d->pool_side[0] > 0) add_triple(out, "w", d->pool_side);
    hl_str_addf(
        out, " act%d pool%d%d acc%d inf%d last%d rev%d img%d grp%" PRId64 " per%d loss%d opt%d larc%d",
        (int)d->act, (int)d->pool, d->count_pad, d->accumulate, d->inference, d->channels_last, d->reverse,
        d->image, d->groups, d->per_sample, (int)d->loss, (int)d->update.kind, (int)d->update.larc);
    for (int i = 0; i < 6; i++) hl_str_addf(out, "%c", "zwk"[d->margin_mode[i / 2][i % 2]]);
}

/* --------------------------------------------------------------------------------------------------- file */

static halo_status read_file(hl_choices *c)
{
    char *text;
    size_t bytes;
    if (!c->path || !hl_file_exists(c->path)) return HALO_OK;
    HL_TRY(hl_file_read(c->dev->ctx, c->path, (size_t)64 << 20, &text, &bytes));
    halo_status st = hl_kept_read(c->dev->ctx, &c->run, c->path, text);
    free(text);
    return st;
}

static halo_status read_shared(hl_choices *c, const char *cache)
{
    if (!cache) return HALO_OK;
    HL_TRY(hl_cache_file(c->dev, cache, &c->shared_path));
    hl_cache_read(c->dev, c->shared_path, &c->shared);
    return HALO_OK;
}

halo_status hl_choices_open(halo_device *dev, const char *path, const char *cache, hl_choices **choices)
{
    hl_choices *c;
    halo_device_info info = {.name = ""};
    HL_TRY(hl_calloc(dev->ctx, 1, sizeof(*c), "measured choices", &c));
    c->dev = dev;
    dev->ops->describe(dev, &info);
    snprintf(c->prefix, sizeof(c->prefix), "%s, %d threads: ", info.name, info.threads);
    halo_status st = path ? hl_strdup(dev->ctx, path, &c->path) : HALO_OK;
    if (st == HALO_OK) st = read_file(c);
    if (st == HALO_OK) st = read_shared(c, cache);
    if (st == HALO_OK)
        *choices = c;
    else
        hl_choices_close(c);
    return st;
}

static halo_status save_run(hl_choices *c)
{
    hl_str text = {0};
    hl_kept_write(&c->run, NULL, &text);
    halo_status st = text.failed ? hl_fail(c->dev->ctx, HALO_ERR_NOMEM, "out of memory for '%s'", c->path)
                                 : hl_file_write(c->dev->ctx, c->path, text.s, text.len);
    hl_str_free(&text);
    if (st == HALO_OK) c->run.changed = false;
    return st;
}

halo_status hl_choices_save(hl_choices *c)
{
    if (c->measured + c->taken > 0)
        HL_DEBUG(c->dev->ctx, "implementations: %d measured, %d as other runs measured them", c->measured, c->taken);
    if (c->path && c->run.changed) HL_TRY(save_run(c));
    if (c->shared_path && c->shared.changed) hl_cache_write(c->dev, c->shared_path, &c->shared);
    c->shared.changed = false;
    return HALO_OK;
}

void hl_choices_close(hl_choices *c)
{
    if (!c) return;
    hl_kept_free(&c->run);
    hl_kept_free(&c->shared);
    free(c->path);
    free(c->shared_path);
    free(c);
}

/* --------------------------------------------------------------------------------------------------- pick */

/* The remembered candidate, if the device still offers it. */
static const halo_candidate *remembered(const hl_kept *kept, const char *key, const halo_candidate *list, int n,
                                        double *seconds)
{
    for (int i = 0; i < kept->n; i++) {
        if (strcmp(kept->list[i].key, key) != 0) continue;
        for (int k = 0; k < n; k++) {
            if (list[k].reference || strcmp(list[k].impl, kept->list[i].impl) != 0) continue;
            *seconds = kept->list[i].seconds;
            return &list[k];
        }
    }
    return NULL;
}

static halo_status remember(hl_choices *c, hl_kept *kept, const char *key, const char *impl, double seconds)
{
    kept->changed = true;
    return hl_kept_add(c->dev->ctx, kept, key, impl, seconds);
}

static halo_status measure_all(hl_choices *c, const halo_op_desc *desc, const halo_candidate *list, int n,
                               halo_candidate *choice, double *seconds)
{
    *seconds = INFINITY;
    for (int i = 0; i < n; i++) {
        double t;
        if (list[i].reference) continue;
        HL_TRY(hl_measure(c->dev, desc, &list[i], &t));
        if (!(t < *seconds)) continue;
        *seconds = t;
        *choice = list[i];
    }
    c->measured++;
    return HALO_OK;
}

static halo_status fastest(hl_choices *c, const halo_op_desc *desc, const char *key,
                           const halo_candidate *list, int n, halo_candidate *choice, double *seconds)
{
    const halo_candidate *known = remembered(&c->run, key, list, n, seconds);
    if (known) {
        *choice = *known;
        return HALO_OK;
    }
    known = remembered(&c->shared, key, list, n, seconds);
    if (known) {
        *choice = *known;
        c->taken++;
    } else {
        HL_TRY(measure_all(c, desc, list, n, choice, seconds));
        if (c->shared_path) HL_TRY(remember(c, &c->shared, key, choice->impl, *seconds));
    }
    return remember(c, &c->run, key, choice->impl, *seconds);
}

halo_status hl_choices_pick(hl_choices *c, const halo_op_desc *desc, bool measure, halo_candidate *choice,
                            double *seconds)
{
    halo_candidate list[HALO_MAX_CANDIDATES];
    int n = hl_op_candidates(c->dev, desc, list), first = 0;
    HL_BUG_UNLESS(n > 0);
    while (first < n - 1 && list[first].reference) first++;
    *choice = list[list[first].reference ? 0 : first];
    *seconds = 0;
    if (!measure || choice->reference) return HALO_OK;
    hl_str key = {0};
    hl_str_add(&key, c->prefix);
    hl_op_key(desc, &key);
    halo_status st = key.failed ? hl_fail(c->dev->ctx, HALO_ERR_NOMEM, "out of memory for the key of an op")
                                : fastest(c, desc, key.s, list, n, choice, seconds);
    hl_str_free(&key);
    return st;
}
