/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c -- batches of an epoch, read ahead by a thread of its own.
 *
 * Step b of an epoch is the samples order[b B .. (b + 1) B) of the permutation; a rank takes the block of
 * them that is its own by the block algebra. So every rank makes the same number of steps whatever the sizes.
 * Evaluation fills the last batch with samples of weight 0.
 *
 * What is done to each of them is loading.c's. The list that is shuffled has each sample as often as it gives patches.
 *
 * The ring has prefetch + 1 slots: one that the consumer holds, one being filled, the rest ready. A slot is
 * in one state at a time:
 *
 *     free -> filling (the thread, without the lock) -> ready -> held (the consumer) -> free
 *
 * hl_loader_start raises `generation`: what is ready is freed at once, what is being filled is thrown away
 * when its thread comes back. Where samples leave as they are stored they are read into the slot itself, whose memory the device can reach. An error ends the epoch: it is kept with its message and handed to the consumer
 * at the step where it arose, after the good batches before it.
 */
#include "base/clock.h"
#include "base/context.h"
#include "base/topology.h"
#include "base/trace.h"
#include "io/convert.h"
#include "io/loading.h"

#include <stdio.h>

typedef enum slot_state { SLOT_FREE = 0, SLOT_FILLING, SLOT_READY, SLOT_HELD } slot_state;

typedef struct hl_slot {
    slot_state state;
    int64_t step;
    hl_loaded batch;
} hl_slot;

/* ---------------------------------------------------------------------------------------------- one batch */

static void load_padding(hl_loader *l, hl_loaded *b, int64_t i)
{
    const hl_seat s = hl_loading_seat(l, b, i);
    if (s.x) memset(s.x, 0, (size_t)l->cells * sizeof(float));
    memset(s.y, 0, (size_t)l->values * sizeof(float));
    if (s.number) s.number[HALO_SAMPLE_THERE] = s.number[b->samples * HALO_SAMPLE_NUMBERS + HALO_SAMPLE_THERE] = 0;
    b->id[i] = -1;
    b->weight[i] = 0;
    b->moments[i] = (hl_moments){0};
}

static bool cancelled(hl_loader *l, uint64_t generation)
{
    pthread_mutex_lock(&l->lock);
    bool yes = l->quit || l->generation != generation;
    pthread_mutex_unlock(&l->lock);
    return yes;
}

/* Fills a slot that nobody else touches. Stops between samples when the epoch was given up. */
static halo_status load_batch(hl_loader *l, uint64_t generation, int64_t epoch, int64_t step, hl_loaded *b)
{
    int64_t at = step * l->o.batch, real = hl_min64(l->o.batch, l->samples - at);
    if (l->order_epoch != epoch && l->o.shuffle) hl_permutation(l->o.seed, epoch, l->samples, l->order);
    l->order_epoch = epoch;
    b->samples = l->share.hi - l->share.lo;
    b->first_sample = l->share.lo;
    b->weight_sum = (double)real;
    b->last = step == l->steps - 1;
    b->serial = ++l->serial;
    for (int64_t i = 0; i < b->samples; i++) {
        int64_t k = l->share.lo + i;
        if (k >= real) {
            load_padding(l, b, i);
            continue;
        }
        if (cancelled(l, generation)) return HALO_OK;
        int64_t number = l->o.shuffle ? l->order[at + k] : at + k;
        b->id[i] = l->o.first + number / l->patches;
        b->weight[i] = 1;
        HL_TRY(hl_load_entry(l, epoch, number, hl_loading_seat(l, b, i)));
        if (l->pending < l->o.transforms) b->moments[i] = hl_loading_moments(l, b->x + i * l->cells);
    }
    return HALO_OK;
}

/* --------------------------------------------------------------------------------------------- the thread */

static hl_slot *find_slot(hl_loader *l, slot_state state, int64_t step)
{
    for (int i = 0; i < l->slots; i++)
        if (l->ring[i].state == state && (step < 0 || l->ring[i].step == step)) return &l->ring[i];
    return NULL;
}

/* The context's message is copied while it is surely ours: the consumer may fail for other reasons before it
 * comes here. */
static void keep_failure(hl_loader *l, halo_status status, int64_t step)
{
    pthread_mutex_lock(&l->ctx->lock);
    snprintf(l->message, sizeof(l->message), "%s", l->ctx->message);
    pthread_mutex_unlock(&l->ctx->lock);
    l->failed = status;
    l->failed_step = step;
    l->next_fill = l->steps;
}

/* With the lock held, which is given up while reading. Returns whether there was something to do. */
static bool fill_one(hl_loader *l)
{
    hl_slot *s = l->next_fill < l->steps ? find_slot(l, SLOT_FREE, -1) : NULL;
    if (!s) return false;
    uint64_t generation = l->generation;
    int64_t epoch = l->epoch, step = l->next_fill++;
    s->state = SLOT_FILLING;
    s->step = step;
    pthread_mutex_unlock(&l->lock);
    double start = hl_now();
    halo_status st = load_batch(l, generation, epoch, step, &s->batch);
    if (hl_traced(l->ctx)) hl_trace_add(l->ctx, HL_LANE_PREFETCH, "io", "batch", NULL, start, hl_now(), 0);
    pthread_mutex_lock(&l->lock);
    bool stale = generation != l->generation;
    s->state = st == HALO_OK && !stale ? SLOT_READY : SLOT_FREE;
    if (st != HALO_OK && !stale) keep_failure(l, st, step);
    pthread_cond_broadcast(&l->arrived);
    return true;
}

static void *run(void *user)
{
    hl_loader *l = user;
    hl_roam();
    pthread_mutex_lock(&l->lock);
    while (!l->quit)
        if (!fill_one(l)) pthread_cond_wait(&l->room, &l->lock);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ------------------------------------------------------------------------------------------- the consumer */

int64_t hl_loader_steps(const hl_loader *l)
{
    return l->steps;
}

int64_t hl_loader_samples(const hl_loader *l)
{
    return hl_range_len(l->share);
}

halo_status hl_loader_start(hl_loader *l, int64_t epoch, int64_t step)
{
    if (epoch < 0 || step < 0 || step > l->steps)
        return hl_fail(l->ctx, HALO_ERR_USAGE,
                       "cannot start at epoch %" PRId64 ", step %" PRId64 ": an epoch has %" PRId64 " steps",
                       epoch, step, l->steps);
    pthread_mutex_lock(&l->lock);
    l->generation++;
    for (int i = 0; i < l->slots; i++)
        if (l->ring[i].state != SLOT_FILLING) l->ring[i].state = SLOT_FREE;
    l->epoch = epoch;
    l->next_fill = l->next_take = step;
    l->failed = HALO_OK;
    pthread_cond_broadcast(&l->room);
    pthread_mutex_unlock(&l->lock);
    return HALO_OK;
}

static void release_held(hl_loader *l)
{
    hl_slot *held = find_slot(l, SLOT_HELD, -1);
    if (!held) return;
    held->state = SLOT_FREE;
    pthread_cond_broadcast(&l->room);
}

/* Waits for the slot of the step to take, or a failure at that step. */
static hl_slot *await(hl_loader *l)
{
    for (;;) {
        hl_slot *s = find_slot(l, SLOT_READY, l->next_take);
        if (s || (l->failed != HALO_OK && l->failed_step == l->next_take)) return s;
        if (!l->threaded)
            fill_one(l);
        else
            pthread_cond_wait(&l->arrived, &l->lock);
    }
}

halo_status hl_loader_next(hl_loader *l, const hl_loaded **batch)
{
    double began = hl_now();
    halo_status st = HALO_OK;
    hl_slot *s = NULL;
    pthread_mutex_lock(&l->lock);
    release_held(l);
    if (l->next_take < l->steps) {
        s = await(l);
        if (s) {
            s->state = SLOT_HELD;
            s->batch.seconds_waited = hl_now() - began;
            l->next_take++;
        } else {
            st = l->failed;
        }
    }
    pthread_mutex_unlock(&l->lock);
    if (st != HALO_OK)
        hl_set_error(l->ctx, l->message);
    else
        *batch = s ? &s->batch : NULL;
    return st;
}

const hl_loaded *hl_loader_peek(hl_loader *l)
{
    pthread_mutex_lock(&l->lock);
    const hl_slot *s = l->threaded && l->next_take < l->steps ? find_slot(l, SLOT_READY, l->next_take) : NULL;
    pthread_mutex_unlock(&l->lock);
    return s ? &s->batch : NULL;
}

/* ------------------------------------------------------------------------------------- create and destroy */

static halo_status check_options(hl_loader *l)
{
    const hl_source_info *info = &l->source->info;
    const hl_loader_options *o = &l->o;
    if (o->batch < 1 || o->ranks < 1 || o->rank < 0 || o->rank >= o->ranks || o->prefetch < 0 ||
        o->transforms < 0 || o->transforms > 4)
        return hl_fail(l->ctx, HALO_ERR_USAGE, "batch %" PRId64 ", rank %d of %d, prefetch %d make no sense",
                       o->batch, o->rank, o->ranks, o->prefetch);
    if (o->first < 0 || o->count < 0 || o->first + o->count > info->samples || o->first >= info->samples)
        return hl_fail(l->ctx, HALO_ERR_USAGE,
                       "samples %" PRId64 " + %" PRId64 " are asked for, there are %" PRId64, o->first,
                       o->count, info->samples);
    for (int k = 0; k < o->transforms; k++)
        if ((int)o->transform[k] < 0 || o->transform[k] >= HL_TRANSFORMS)
            return hl_fail(l->ctx, HALO_ERR_USAGE, "unknown transform");
        else if (o->transform[k] == HL_STANDARD && !(o->std > 0))
            return hl_fail(l->ctx, HALO_ERR_USAGE, "the standard deviation of the set is %g, must be above 0", o->std);
        else if (o->transform[k] == HL_CLIP && !(o->window[1] > o->window[0]))
            return hl_fail(l->ctx, HALO_ERR_USAGE, "the window is %g to %g, must rise", o->window[0], o->window[1]);
    if (o->cube && (info->ext[1] != info->ext[2] || info->ext[2] != info->ext[3]))
        return hl_fail(l->ctx, HALO_ERR_SHAPE,
                       "the symmetries of the cube need equal extents, samples are [%" PRId64 ", %" PRId64
                       ", %" PRId64 "]",
                       info->ext[1], info->ext[2], info->ext[3]);
    if ((o->cube || o->flip || o->shift || hl_varies(&o->vary)) && hl_target_volumes(info) &&
        memcmp(info->target_ext, info->ext + 1, sizeof(info->target_ext)) != 0)
        return hl_fail(l->ctx, HALO_ERR_SHAPE,
                       "augmentation needs target volumes of the samples' extents [%" PRId64 ", %" PRId64 ", %" PRId64
                       "], they are [%" PRId64 ", %" PRId64 ", %" PRId64 "]",
                       info->ext[1], info->ext[2], info->ext[3], info->target_ext[0], info->target_ext[1],
                       info->target_ext[2]);
    if (o->shift && hl_varies(&o->vary))
        return hl_fail(l->ctx, HALO_ERR_USAGE, "'data.augment: shift' is of whole periodic boxes, which 'data.vary' makes others of");
    if (o->shift && !info->whole_periodic)
        return hl_fail(l->ctx, HALO_ERR_USAGE,
                       "random shifts need samples that are whole periodic boxes, and these are not known to be: %s",
                       info->description);
    return HALO_OK;
}

/* What of a patch is asked for: a network that goes around its faces would ask for more. */
static halo_status check_patch(const hl_loader *l)
{
    const int64_t *ext = l->source->info.ext + 1;
    for (int k = 0; k < 3; k++)
        if (l->x.cells.lo[k] < 0 || l->x.cells.lo[k] + l->x.cells.ext[k] > ext[k])
            return hl_fail(l->ctx, HALO_ERR_UNSUPPORTED, "'data.patch' and 'data.vary': the network goes around the faces of its input, and what they make is no periodic box");
    return HALO_OK;
}

/* Options without cells ask for all of them. */
static halo_status set_cells(hl_loader *l)
{
    const hl_source_info *info = &l->source->info;
    const hl_cells *own = &l->o.own;
    l->x.cells = hl_cells_count(&l->o.x) > 0 ? l->o.x : hl_cells_whole(info->ext + 1);
    l->y.cells = hl_target_volumes(info) && hl_cells_count(&l->o.y) > 0 ? l->o.y : hl_cells_whole(info->target_ext);
    l->x.from = l->x.cells;
    l->y.from = l->y.cells;
    l->pending = l->o.transforms;
    if (l->cutter) return check_patch(l);
    if (hl_cells_are_whole(&l->x.cells, info->ext + 1)) return HALO_OK;
    for (int k = l->o.transforms - 1; k >= 0; k--)
        if (hl_transform_whole(l->o.transform[k])) l->pending = k;
    for (int k = 0; k < 3 && l->pending < l->o.transforms; k++)
        if (own->ext[k] < 1 || own->lo[k] < l->x.cells.lo[k] || own->lo[k] + own->ext[k] > l->x.cells.lo[k] + l->x.cells.ext[k])
            return hl_fail(l->ctx, HALO_ERR_USAGE, "cells %" PRId64 " + %" PRId64 " of axis %d are not among those taken, %" PRId64 " + %" PRId64, own->lo[k],
                           own->ext[k], k, l->x.cells.lo[k], l->x.cells.ext[k]);
    return HALO_OK;
}

static halo_status count_steps(hl_loader *l)
{
    l->samples = l->patches * (l->o.count ? l->o.count : l->source->info.samples - l->o.first);
    l->steps = l->o.drop_last ? l->samples / l->o.batch : hl_div_up(l->samples, l->o.batch);
    if (l->steps > 0) return HALO_OK;
    return hl_fail(l->ctx, HALO_ERR_USAGE,
                   "a batch of %" PRId64 " needs as many samples, there are %" PRId64 " (%s)", l->o.batch,
                   l->samples, l->source->info.description);
}

halo_dtype hl_loader_stored_type(const hl_loader_options *o, halo_dtype source) { return o->patch || hl_varies(&o->vary) ? HALO_F32 : source; }

static halo_status pin(hl_loader *l, size_t bytes, void *out)
{
    void *p;
    HL_TRY(l->o.device->ops->pin(l->o.device, bytes, &p));
    memset(p, 0, bytes);
    memcpy(out, &p, sizeof(p));
    return HALO_OK;
}

static halo_status pin_slot(hl_loader *l, hl_loaded *b, int64_t samples, int64_t values, int64_t targets)
{
    b->stored_type = hl_loader_stored_type(&l->o, l->source->info.dtype);
    HL_TRY(pin(l, (size_t)values * hl_dtype_size(b->stored_type), &b->stored));
    HL_TRY(pin(l, (size_t)targets * sizeof(float), &b->y));
    return pin(l, (size_t)(2 * samples * HALO_SAMPLE_NUMBERS) * sizeof(double), &b->numbers);
}

static void free_slot(hl_loader *l, hl_slot *s)
{
    hl_loaded *b = &s->batch;
    if (l->stored) {
        const halo_device_ops *ops = l->o.device->ops;
        ops->unpin(l->o.device, b->stored);
        ops->unpin(l->o.device, b->y);
        ops->unpin(l->o.device, b->numbers);
    } else {
        free(b->x);
        free(b->y);
    }
    free(b->weight);
    free(b->moments);
    free(b->id);
}

static halo_status allocate_slot(hl_loader *l, hl_slot *s)
{
    int64_t n = l->share.hi - l->share.lo, values, targets;
    if (!hl_mul64(hl_max64(n, 1), l->cells, &values) || values > INT64_MAX / 8 ||
        !hl_mul64(hl_max64(n, 1), hl_max64(l->values, 1), &targets) || targets > INT64_MAX / 8)
        return hl_fail(l->ctx, HALO_ERR_NOMEM, "a batch of %" PRId64 " samples is too large", n);
    HL_TRY(l->stored ? pin_slot(l, &s->batch, hl_max64(n, 1), values, targets) : hl_aligned(l->ctx, (size_t)values * sizeof(float), "a batch", &s->batch.x));
    if (!l->stored) HL_TRY(hl_calloc(l->ctx, (size_t)targets, sizeof(float), "targets of a batch", &s->batch.y));
    HL_TRY(hl_calloc(l->ctx, (size_t)hl_max64(n, 1), sizeof(double), "weights of a batch", &s->batch.weight));
    HL_TRY(hl_calloc(l->ctx, (size_t)hl_max64(n, 1), sizeof(hl_moments), "moments of a batch", &s->batch.moments));
    return hl_calloc(l->ctx, (size_t)hl_max64(n, 1), sizeof(int64_t), "numbers of a batch", &s->batch.id);
}

/* What the memory was for, behind what the backend said of it. */
static halo_status no_pinned(hl_loader *l, int had)
{
    const int64_t n = hl_max64(1, l->share.hi - l->share.lo), x = n * l->cells * (int64_t)hl_dtype_size(hl_loader_stored_type(&l->o, l->source->info.dtype));
    const int64_t bytes = x + n * l->values * (int64_t)sizeof(float) + 2 * n * HALO_SAMPLE_NUMBERS * (int64_t)sizeof(double);
    return hl_fail(l->ctx, HALO_ERR_NOMEM, "%d batches of %" PRId64 " bytes as they are stored were to wait in pinned memory of the host, %d had room: a smaller 'data.prefetch' or 'batch' needs less, 'cuda.prepare=false' none",
                   l->slots, bytes, had);
}

static halo_status allocate(hl_loader *l)
{
    halo_dtype type = l->source->info.dtype;
    l->cells = l->source->info.ext[0] * hl_cells_count(&l->x.cells);
    l->values = l->source->info.targets * hl_cells_count(&l->y.cells);
    l->share = hl_block_range(l->o.batch, l->o.ranks, l->o.rank);
    l->slots = l->o.prefetch + 1;
    l->stored = l->o.stored && l->pending == l->o.transforms;
    HL_TRY(hl_calloc(l->ctx, (size_t)l->slots, sizeof(hl_slot), "the batches read ahead", &l->ring));
    for (int i = 0; i < l->slots; i++) {
        halo_status st = allocate_slot(l, &l->ring[i]);
        if (st != HALO_OK) return st == HALO_ERR_NOMEM && l->stored ? no_pinned(l, i) : st;
    }
    if (!l->cutter && !l->stored) HL_TRY(hl_aligned(l->ctx, (size_t)l->cells * hl_dtype_size(type), "a sample", &l->raw));
    if (!l->stored && (l->o.cube || l->o.flip || l->o.shift))
        HL_TRY(hl_aligned(l->ctx, (size_t)l->cells * sizeof(float), "a sample", &l->plain));
    if (l->plain && hl_target_volumes(&l->source->info))
        HL_TRY(hl_aligned(l->ctx, (size_t)l->values * sizeof(float), "a sample's targets", &l->plain_y));
    if (l->o.shuffle)
        HL_TRY(hl_calloc(l->ctx, (size_t)l->samples, sizeof(int64_t), "the order of samples", &l->order));
    if (l->cutter || l->stored || l->o.transforms == 0 || l->o.transform[0] != HL_LOG1P || (type != HALO_U8 && type != HALO_I16))
        return HALO_OK;
    HL_TRY(hl_calloc(l->ctx, 65536, sizeof(float), "a table of logarithms", &l->log_table));
    hl_log1p_table(type, l->log_table);
    return HALO_OK;
}

halo_status hl_loader_create(halo_context *ctx, hl_source *source, const hl_loader_options *options,
                             hl_loader **loader)
{
    hl_loader *l = NULL;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*l), "a loader", &l));
    l->ctx = ctx;
    l->source = source;
    l->o = *options;
    l->order_epoch = -1;
    l->patches = options->patch ? hl_max64(1, options->patches) : 1;
    pthread_mutex_init(&l->lock, NULL); /* the default kinds cannot fail on Linux */
    pthread_cond_init(&l->room, NULL);
    pthread_cond_init(&l->arrived, NULL);
    halo_status st = HALO_OK;
    HL_GOTO(st, check_options(l), undo);
    if (l->o.patch || hl_varies(&l->o.vary)) HL_GOTO(st, hl_cutter_create(source, &l->o, &l->cutter), undo);
    HL_GOTO(st, set_cells(l), undo);
    HL_GOTO(st, count_steps(l), undo);
    HL_GOTO(st, allocate(l), undo);
    l->next_fill = l->next_take = l->steps; /* nothing until start */
    if (l->o.prefetch) {
        l->threaded = pthread_create(&l->thread, NULL, run, l) == 0;
        if (!l->threaded) {
            st = hl_fail(ctx, HALO_ERR_SYSTEM, "cannot make a thread for reading");
            goto undo;
        }
    }
    *loader = l;
    return HALO_OK;
undo:
    hl_loader_destroy(l);
    return st;
}

static void stop_thread(hl_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->quit = true;
    pthread_cond_broadcast(&l->room);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
}

void hl_loader_destroy(hl_loader *l)
{
    if (!l) return;
    if (l->threaded) stop_thread(l);
    for (int i = 0; l->ring && i < l->slots; i++) free_slot(l, &l->ring[i]);
    hl_cutter_destroy(l->cutter);
    free(l->ring);
    if (!l->stored) free(l->raw);
    free(l->plain);
    free(l->plain_y);
    free(l->order);
    free(l->log_table);
    pthread_cond_destroy(&l->arrived);
    pthread_cond_destroy(&l->room);
    pthread_mutex_destroy(&l->lock);
    free(l);
}
