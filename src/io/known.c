/* SPDX-License-Identifier: Apache-2.0 */
/* known.c -- see known.h: 4 moments and a list of cells for each sample, guarded by one lock, which is never held while a sample is read. */
#include "io/known.h"

#include <pthread.h>

typedef struct of_sample {
    unsigned has; /* bit k: moment[k]; bit HL_KNOWN_TRANSFORMS: range */
    float range[2];
    hl_moments moment[HL_KNOWN_TRANSFORMS];
    hl_labelled *labelled;
} of_sample;

struct hl_known {
    pthread_mutex_t lock;
    int64_t samples;
    of_sample *sample;
};

halo_status hl_known_create(hl_source *source)
{
    hl_known *k;
    if (source->known) return HALO_OK;
    HL_TRY(hl_calloc(source->ctx, 1, sizeof(*k), "what is known of samples", &k));
    k->samples = source->info.samples;
    pthread_mutex_init(&k->lock, NULL); /* the default kind cannot fail on Linux */
    halo_status st = hl_calloc(source->ctx, (size_t)hl_max64(1, k->samples), sizeof(*k->sample), "what is known of samples", &k->sample);
    if (st == HALO_OK) source->known = k;
    else hl_known_free(k);
    return st;
}

static void free_labelled(hl_labelled *l)
{
    if (!l) return;
    free(l->first);
    free(l->cell);
    free(l);
}

void hl_known_free(hl_known *k)
{
    if (!k) return;
    for (int64_t i = 0; i < k->samples && k->sample; i++) free_labelled(k->sample[i].labelled);
    free(k->sample);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

bool hl_known_moments(hl_known *k, int64_t sample, int number, hl_moments *moments)
{
    pthread_mutex_lock(&k->lock);
    bool has = k->sample[sample].has >> number & 1;
    if (has) *moments = k->sample[sample].moment[number];
    pthread_mutex_unlock(&k->lock);
    return has;
}

void hl_known_put_moments(hl_known *k, int64_t sample, int number, hl_moments moments)
{
    pthread_mutex_lock(&k->lock);
    k->sample[sample].moment[number] = moments;
    k->sample[sample].has |= 1u << number;
    pthread_mutex_unlock(&k->lock);
}

bool hl_known_range(hl_known *k, int64_t sample, float range[2])
{
    pthread_mutex_lock(&k->lock);
    bool has = k->sample[sample].has >> HL_KNOWN_TRANSFORMS & 1;
    if (has) memcpy(range, k->sample[sample].range, 2 * sizeof(*range));
    pthread_mutex_unlock(&k->lock);
    return has;
}

void hl_known_put_range(hl_known *k, int64_t sample, const float range[2])
{
    pthread_mutex_lock(&k->lock);
    memcpy(k->sample[sample].range, range, 2 * sizeof(*range));
    k->sample[sample].has |= 1u << HL_KNOWN_TRANSFORMS;
    pthread_mutex_unlock(&k->lock);
}

const hl_labelled *hl_known_labelled(hl_known *k, int64_t sample)
{
    pthread_mutex_lock(&k->lock);
    const hl_labelled *l = k->sample[sample].labelled;
    pthread_mutex_unlock(&k->lock);
    return l;
}

void hl_known_put_labelled(hl_known *k, int64_t sample, hl_labelled *l)
{
    pthread_mutex_lock(&k->lock);
    bool late = k->sample[sample].labelled != NULL;
    if (!late) k->sample[sample].labelled = l;
    pthread_mutex_unlock(&k->lock);
    if (late) free_labelled(l);
}
