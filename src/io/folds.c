/* SPDX-License-Identifier: Apache-2.0 */
/* folds.c -- see folds.h. The hash is FNV-1a of 64 bits, mixed once more; names with equal ones stand in the order of their bytes. */
#include "io/folds.h"
#include "io/nifti.h"
#include "io/wrapped.h"

#include <stdio.h>

/* -------------------------------------------------------------------------------------------------------- some samples */

static halo_status column(hl_source *s, const char *name, double *out)
{
    hl_source *all = ((hl_wrapped *)s)->inner;
    double *of_all;
    if (!all->ops->column) return hl_fail(s->ctx, HALO_ERR_FORMAT, "data of the format '%s' have no numbers called '%s'", all->ops->name, name);
    HL_TRY(hl_calloc(s->ctx, (size_t)all->info.samples, sizeof(*of_all), "numbers of samples", &of_all));
    halo_status st = all->ops->column(all, name, of_all);
    for (int64_t i = 0; i < s->info.samples && st == HALO_OK; i++) out[i] = of_all[hl_wrapped_sample(s, i)];
    free(of_all);
    return st;
}

static const hl_source_ops ops = {.name = "subset", .read = hl_wrapped_read, .target = hl_wrapped_target, .group_of = hl_wrapped_group_of, .id_of = hl_wrapped_id_of, .close = hl_wrapped_close,
                                  .image_of = hl_wrapped_image_of, .extents = hl_wrapped_extents, .place_of = hl_wrapped_place_of, .column = column};

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static halo_status count_groups(hl_source *s)
{
    int64_t *group, n = s->info.samples;
    HL_TRY(hl_calloc(s->ctx, (size_t)hl_max64(1, n), sizeof(*group), "groups", &group));
    for (int64_t i = 0; i < n; i++) group[i] = hl_wrapped_group_of(s, i);
    qsort(group, (size_t)n, sizeof(*group), by_number);
    s->info.groups = 0;
    for (int64_t i = 0; i < n; i++) s->info.groups += i == 0 || group[i] != group[i - 1];
    free(group);
    return HALO_OK;
}

halo_status hl_subset_open(hl_source *all, const int64_t *sample, int64_t n, const char *description, hl_source **source)
{
    hl_wrapped *w;
    HL_TRY(hl_wrapped_new(all, &ops, sizeof(*w), &w));
    hl_source *s = &w->base;
    s->info.samples = n;
    snprintf(s->info.description, sizeof(s->info.description), "%s", description);
    halo_status st = hl_calloc(s->ctx, (size_t)hl_max64(1, n), sizeof(*sample), "samples", &w->sample);
    if (st == HALO_OK) memcpy(w->sample, sample, (size_t)n * sizeof(*sample));
    w->inner = all;
    if (st == HALO_OK) st = count_groups(s);
    if (st == HALO_OK) {
        *source = s;
        return HALO_OK;
    }
    w->inner = NULL; /* the caller's still */
    hl_wrapped_close(s);
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

/* "sub-07" of data/sub-07/ses-b/ct.nii.gz or sub-07_ses-b_ct.nii.gz, as the brain imaging data structure (BIDS) names patients; false: no such part. */
static bool bids_patient(const char *path, char *out, size_t size)
{
    const char *at = path;
    while (strncmp(at, "sub-", 4) != 0 || strcspn(at + 4, "/_.") == 0) {
        at = strchr(at, '/');
        if (!at) return false;
        at++;
    }
    snprintf(out, size, "%.*s", (int)(4 + strcspn(at + 4, "/_.")), at);
    return true;
}

/* The case without ending and /sub-volume. Without a rule: the patient that its path names, or, where samples have groups, as those of halo's own files, the group. */
static void name_of(hl_source *s, int64_t sample, const char *until, bool *cut, patient *p)
{
    char id[512];
    s->ops->id_of(s, sample, id, sizeof(id));
    if (!*until && (s->info.groups < s->info.samples || strcmp(s->ops->name, "halo") == 0)) snprintf(id, sizeof(id), "group %" PRId64, s->ops->group_of(s, sample));
    const char *path = s->ops->image_of ? s->ops->image_of(s, sample) : NULL;
    char *slash = strrchr(id, '/'), *text = NULL;
    bool bids = !*until && bids_patient(path ? path : id, p->name, sizeof(p->name));
    if (slash) *slash = '\0';
    if (!bids && hl_is_nifti(id)) hl_nifti_case(id, p->name, sizeof(p->name));
    else if (!bids) snprintf(p->name, sizeof(p->name), "%s", id);
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
