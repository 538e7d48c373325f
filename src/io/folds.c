/* SPDX-License-Identifier: Apache-2.0 */
/* folds.c -- see folds.h. The hash is FNV-1a of 64 bits, mixed once more; names with equal ones stand in the order of their bytes. */
#include "io/folds.h"
#include "io/nifti.h"

#include <stdio.h>

/* -------------------------------------------------------------------------------------------------------- some samples */

typedef struct subset {
    hl_source base;
    hl_source *all; /* owned */
    int64_t *sample;
} subset;

static void count(subset *s)
{
    s->base.count.data = s->all->count.data;
    s->base.count.other = s->all->count.other;
}

static halo_status read_cut(hl_source *base, int64_t sample, const hl_cut *cut, void *x)
{
    subset *s = (subset *)base;
    halo_status st = s->all->ops->read(s->all, s->sample[sample], cut, x);
    count(s);
    return st;
}

static halo_status read_target(hl_source *base, int64_t sample, const hl_cut *cut, float *y)
{
    subset *s = (subset *)base;
    halo_status st = s->all->ops->target(s->all, s->sample[sample], cut, y);
    count(s);
    return st;
}

static int64_t group_of(hl_source *base, int64_t sample)
{
    subset *s = (subset *)base;
    return s->all->ops->group_of(s->all, s->sample[sample]);
}

static void id_of(hl_source *base, int64_t sample, char *out, size_t size)
{
    subset *s = (subset *)base;
    s->all->ops->id_of(s->all, s->sample[sample], out, size);
}

static const char *image_of(hl_source *base, int64_t sample)
{
    subset *s = (subset *)base;
    return s->all->ops->image_of ? s->all->ops->image_of(s->all, s->sample[sample]) : NULL;
}

static void extents(hl_source *base, int64_t sample, int64_t ext[3])
{
    subset *s = (subset *)base;
    hl_source_extents(s->all, s->sample[sample], ext);
}

static void place_of(hl_source *base, int64_t sample, hl_window_place *place)
{
    subset *s = (subset *)base;
    s->all->ops->place_of(s->all, s->sample[sample], place);
}

static halo_status column(hl_source *base, const char *name, double *out)
{
    subset *s = (subset *)base;
    double *of_all;
    if (!s->all->ops->column) return hl_fail(base->ctx, HALO_ERR_FORMAT, "data of the format '%s' have no numbers called '%s'", s->all->ops->name, name);
    HL_TRY(hl_calloc(base->ctx, (size_t)s->all->info.samples, sizeof(*of_all), "numbers of samples", &of_all));
    halo_status st = s->all->ops->column(s->all, name, of_all);
    for (int64_t i = 0; i < base->info.samples && st == HALO_OK; i++) out[i] = of_all[s->sample[i]];
    free(of_all);
    return st;
}

static void close_both(hl_source *base)
{
    subset *s = (subset *)base;
    hl_source_close(s->all);
    free(s->sample);
    free(s->base.info.target);
    free(s);
}

static const hl_source_ops ops = {.name = "subset", .read = read_cut, .target = read_target, .group_of = group_of, .id_of = id_of, .close = close_both, .image_of = image_of, .extents = extents, .column = column};
static const hl_source_ops scan_ops = {.name = "subset of a scan", .read = read_cut, .target = read_target, .group_of = group_of, .id_of = id_of, .close = close_both, .extents = extents, .place_of = place_of,
                                       .column = column};

static halo_status copy(subset *s, const int64_t *sample, int64_t n)
{
    const hl_source_info *i = &s->all->info;
    HL_TRY(hl_calloc(s->base.ctx, (size_t)hl_max64(1, i->targets), sizeof(*i->target), "targets", &s->base.info.target));
    if (i->targets) memcpy(s->base.info.target, i->target, (size_t)i->targets * sizeof(*i->target));
    HL_TRY(hl_calloc(s->base.ctx, (size_t)hl_max64(1, n), sizeof(*sample), "samples", &s->sample));
    memcpy(s->sample, sample, (size_t)n * sizeof(*sample));
    return HALO_OK;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static halo_status count_groups(subset *s, int64_t n)
{
    int64_t *group;
    HL_TRY(hl_calloc(s->base.ctx, (size_t)hl_max64(1, n), sizeof(*group), "groups", &group));
    for (int64_t i = 0; i < n; i++) group[i] = group_of(&s->base, i);
    qsort(group, (size_t)n, sizeof(*group), by_number);
    s->base.info.groups = 0;
    for (int64_t i = 0; i < n; i++) s->base.info.groups += i == 0 || group[i] != group[i - 1];
    free(group);
    return HALO_OK;
}

halo_status hl_subset_open(hl_source *all, const int64_t *sample, int64_t n, const char *description, hl_source **source)
{
    subset *s;
    HL_TRY(hl_calloc(all->ctx, 1, sizeof(*s), "a data set", &s));
    s->base.ops = all->ops->place_of ? &scan_ops : &ops;
    s->base.ctx = all->ctx;
    s->base.info = all->info;
    s->base.info.target = NULL;
    s->base.info.samples = n;
    memcpy(s->base.box, all->box, sizeof(all->box));
    s->all = all;
    snprintf(s->base.info.description, sizeof(s->base.info.description), "%s", description);
    halo_status st = copy(s, sample, n);
    if (st == HALO_OK) st = count_groups(s, n);
    if (st == HALO_OK) {
        *source = &s->base;
        return HALO_OK;
    }
    free(s->sample);
    free(s->base.info.target);
    free(s);
    return st;
}

/* --------------------------------------------------------------------------------------------------------------- folds */

typedef struct patient {
    char name[512];
    uint64_t hash;
    int64_t sample;
} patient;

static uint64_t hash_of(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *name; name++) h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ h >> 33;
}

/* The case without ending and /sub-volume; where samples have groups, of halo's own files for one, and no rule is given the group. */
static void name_of(hl_source *s, int64_t sample, const char *until, bool *cut, patient *p)
{
    char id[512];
    s->ops->id_of(s, sample, id, sizeof(id));
    if (!*until && (s->info.groups < s->info.samples || strcmp(s->ops->name, "halo") == 0)) snprintf(id, sizeof(id), "group %" PRId64, s->ops->group_of(s, sample));
    char *slash = strrchr(id, '/'), *text = NULL;
    if (slash) *slash = '\0';
    if (hl_is_nifti(id)) hl_nifti_case(id, p->name, sizeof(p->name));
    else snprintf(p->name, sizeof(p->name), "%s", id);
    if (*until && (text = strstr(p->name, until)) && text > p->name) *text = '\0';
    *cut = *cut || text;
    p->hash = hash_of(p->name);
    p->sample = sample;
}

static int by_hash(const void *a, const void *b)
{
    const patient *x = a, *y = b;
    if (x->hash != y->hash) return x->hash > y->hash ? 1 : -1;
    int c = strcmp(x->name, y->name);
    return c ? c : (x->sample > y->sample) - (x->sample < y->sample);
}

/* sample [*n], sorted: those that are wanted. */
static halo_status deal(hl_source *all, const hl_folds *f, bool held_out, patient *p, int64_t *sample, int64_t *n, int64_t *patients)
{
    bool cut = false;
    int64_t samples = all->info.samples, number = -1;
    for (int64_t i = 0; i < samples; i++) name_of(all, i, f->patient, &cut, &p[i]);
    if (*f->patient && !cut) return hl_fail(all->ctx, HALO_ERR_USAGE, "'data.folds.patient' is '%s', which is in no name such as '%s'", f->patient, p[0].name);
    qsort(p, (size_t)samples, sizeof(*p), by_hash);
    *n = 0;
    for (int64_t i = 0; i < samples; i++) {
        number += i == 0 || strcmp(p[i].name, p[i - 1].name) != 0;
        if ((number % f->count == f->use) == held_out) sample[(*n)++] = p[i].sample;
    }
    *patients = number + 1;
    if (f->count > *patients)
        return hl_fail(all->ctx, HALO_ERR_USAGE, "'data.folds.count' is %" PRId64 ", but there %s %" PRId64 " patient%s such as '%s': %s", f->count, *patients == 1 ? "is" : "are", *patients, HL_S(*patients),
                       p[0].name, all->info.description);
    qsort(sample, (size_t)*n, sizeof(*sample), by_number);
    return HALO_OK;
}

halo_status hl_fold_open(hl_source *all, const hl_folds *f, bool held_out, hl_source **source)
{
    patient *p;
    int64_t *sample = NULL, n = 0, patients = 0;
    char text[sizeof(all->info.description)];
    HL_TRY(hl_calloc(all->ctx, (size_t)hl_max64(1, all->info.samples), sizeof(*p), "patients", &p));
    halo_status st = hl_calloc(all->ctx, (size_t)hl_max64(1, all->info.samples), sizeof(*sample), "samples", &sample);
    if (st == HALO_OK) st = deal(all, f, held_out, p, sample, &n, &patients);
    if (st == HALO_OK) {
        snprintf(text, sizeof(text), "%" PRId64 " of %.160s; %s fold %" PRId64 " of %" PRId64 ", %" PRId64 " patients in all", n, all->info.description, held_out ? "in" : "not in", f->use, f->count, patients);
        st = hl_subset_open(all, sample, n, text, source);
    }
    free(sample);
    free(p);
    return st;
}
