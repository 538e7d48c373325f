/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c -- a forward pass over every sample of a split, once each: the last batch is filled up with weight 0. On several ranks every group of ranks takes
 * its share of each step. Predicted numbers go to all, so that metrics are those of one rank; of predicted volumes each rank scores the part that it makes, and
 * the scores are merged. Volumes of any extents are walked by windows.c.
 */
#include "base/clock.h"
#include "io/cells.h"
#include "train/check.h"
#include "train/deliver.h"
#include "train/tally.h"
#include "train/windows.h"

/* One evaluation under way. Gathered arrays are those of a whole step: groups x batch samples, in the order of the samples. */
typedef struct walk {
    hl_run *run;
    hl_source *source;
    hl_loader *loader;
    hl_tally all, *part;          /* of all samples, and of each part, [parts.n] */
    hl_parts parts;
    bool volumes;                 /* targets are */
    int logits;                   /* that make a prediction: the classes; 0: it comes as it is */
    float *logit;                 /* [batch, logits, values] */
    hl_delivery *delivery;        /* of volumes, where somebody visits them */
    hl_visit_prediction visit;
    void *user;
    int64_t batch;            /* of a rank */
    int64_t values;           /* T numbers, or those of this rank's part of T volumes */
    hl_cells box;             /* that part */
    bool counts;              /* whether its scores count: not where another rank has the same volumes */
    float *prediction;        /* [batch, values] */
    float *guesses, *truths;  /* numbers, gathered [groups, batch, values] */
    int64_t *ids;             /* gathered [groups, batch]; -1: padding */
    double sums[2];           /* losses and weights of this rank */
    int64_t any;              /* volumes of any extents that were walked; 0: none are */
} walk;

static hl_loader_options loader_options(const hl_run *run, const hl_source *source)
{
    hl_loader_options o = {.batch = hl_run_part(run) * run->grid.data, .seed = (uint64_t)run->set.seed, .prefetch = (int)run->set.data.prefetch};
    hl_run_cells(run, run->eval, &o);
    hl_run_transforms(&run->set, &o);
    hl_run_store(run, run->eval, source, &o);
    return o;
}

static halo_status begin_numbers(walk *w, size_t all)
{
    halo_context *ctx = w->run->ctx;
    w->values = w->source->info.targets;
    HL_TRY(hl_calloc(ctx, all * (size_t)w->values, sizeof(float), "predictions", &w->guesses));
    return hl_calloc(ctx, all * (size_t)w->values, sizeof(float), "predictions", &w->truths);
}

static void begin_volumes(walk *w)
{
    const hl_source_info *info = &w->source->info;
    w->counts = hl_delivers(w->run, &w->box, info->target_ext, hl_grid_number(&w->run->grid));
    w->values = info->targets * w->box.ext[0] * w->box.ext[1] * w->box.ext[2];
}

static halo_status make_tallies(walk *w)
{
    HL_TRY(hl_tally_create(w->run, w->source, w->volumes, w->logits, &w->all));
    HL_TRY(hl_calloc(w->run->ctx, (size_t)w->parts.n + 1, sizeof(*w->part), "metrics", &w->part));
    for (int k = 0; k < w->parts.n; k++) HL_TRY(hl_tally_create(w->run, w->source, w->volumes, w->logits, &w->part[k]));
    return HALO_OK;
}

static halo_status begin(walk *w)
{
    hl_run *run = w->run;
    hl_loader_options options = loader_options(run, w->source);
    bool any = hl_run_patches(&run->set); /* volumes of any extents */
    w->volumes = any || hl_target_volumes(&w->source->info);
    w->logits = hl_run_classes(run);
    HL_TRY(make_tallies(w));
    if (any) return HALO_OK;
    w->batch = options.batch / run->grid.data;
    w->box = options.y;
    HL_TRY(hl_loader_create(run->ctx, w->source, &options, &w->loader));
    if (w->volumes) begin_volumes(w);
    else HL_TRY(begin_numbers(w, (size_t)options.batch));
    HL_TRY(hl_calloc(run->ctx, (size_t)(w->batch * w->values), sizeof(float), "predictions", &w->prediction));
    if (w->logits) HL_TRY(hl_calloc(run->ctx, (size_t)(w->batch * w->values) * (size_t)w->logits, sizeof(float), "predictions", &w->logit));
    HL_TRY(hl_calloc(run->ctx, (size_t)options.batch, sizeof(int64_t), "predictions", &w->ids));
    return hl_loader_start(w->loader, 0, 0);
}

static void end(walk *w)
{
    hl_delivery_destroy(w->delivery);
    free(w->ids);
    free(w->truths);
    free(w->guesses);
    free(w->prediction);
    free(w->logit);
    hl_tally_destroy(&w->all);
    for (int k = 0; w->part && k < w->parts.n; k++) hl_tally_destroy(&w->part[k]);
    free(w->part);
    if (w->loader) hl_program_forget_next(w->run->eval);
    hl_loader_destroy(w->loader);
}

/* Where ranks hold samples together, all of them are in this or none. */
static halo_status forward(walk *w, const hl_loaded *b)
{
    hl_step_result result;
    hl_batch batch = hl_batch_of(b), next;
    const hl_loaded *then = batch.numbers ? hl_loader_peek(w->loader) : NULL;
    if (then) next = hl_batch_of(then), batch.next = &next;
    HL_TRY(hl_program_evaluate(w->run->eval, &batch, w->logits ? w->logit : w->prediction, &result));
    if (w->logits) hl_classes_of(w->logit, w->batch, w->logits, w->values, w->prediction);
    w->sums[0] += result.loss_sum;
    w->sums[1] += result.weight_sum;
    return HALO_OK;
}

/* From the ranks at this one's place in all groups. */
static halo_status gather(walk *w, const hl_loaded *b)
{
    halo_context *peers = w->run->team->peers;
    size_t bytes = (size_t)(w->batch * w->values) * sizeof(float);
    HL_TRY(hl_comm_gather(peers, b->id, (size_t)w->batch * sizeof(int64_t), w->ids));
    if (w->volumes) return HALO_OK;
    HL_TRY(hl_comm_gather(peers, w->prediction, bytes, w->guesses));
    return hl_comm_gather(peers, b->y, bytes, w->truths);
}

static halo_status count(walk *w, int64_t sample, const hl_cells *box, const float *truth, const float *prediction)
{
    if (w->parts.n > 0) HL_TRY(hl_tally_add(&w->part[w->parts.of_sample[sample]], w->source, sample, box, truth, prediction));
    return hl_tally_add(&w->all, w->source, sample, box, truth, prediction);
}

/* The real samples of a step to the metrics, and on rank 0 to the visitor. */
static halo_status count_numbers(walk *w)
{
    for (int64_t i = 0; i < w->batch * w->run->grid.data; i++) {
        hl_prediction p = {.sample = w->ids[i], .ext = {w->values, 1, 1, 1}, .value = w->guesses + i * w->values, .truth = w->truths + i * w->values};
        if (p.sample < 0) continue;
        if (!w->logits || w->run->ctx->rank == 0) HL_TRY(count(w, p.sample, NULL, p.truth, p.value)); /* counts of classes the others then get */
        if (w->visit && w->run->ctx->rank == 0) HL_TRY(w->visit(w->user, w->source, &p));
    }
    return HALO_OK;
}

/* A part of a volume, which no other rank has. */
static halo_status count_part(void *user, int64_t sample, const hl_cells *box, const float *truth, const float *guess)
{
    return count(user, sample, box, truth, guess);
}

static halo_status count_volumes(walk *w, const hl_loaded *b)
{
    for (int64_t i = 0; i < w->batch; i++)
        if (b->id[i] >= 0 && w->counts) HL_TRY(count_part(w, b->id[i], &w->box, b->y + i * w->values, w->prediction + i * w->values));
    return w->delivery ? hl_deliver(w->delivery, w->batch, w->ids, w->prediction, w->visit, w->user) : HALO_OK;
}

halo_status hl_run_look_for_stop(const hl_run *run)
{
    double votes[HL_VOTES];
    if (!run->train || !run->stop_requested) return HALO_OK;
    hl_run_vote(run, votes);
    HL_TRY(hl_comm_sum(run->ctx, votes, HL_VOTES));
    return votes[HL_VOTE_SIGNAL] > 0 || votes[HL_VOTE_TIME] > 0 ? HALO_ERR_STOPPED : HALO_OK;
}

/* The first `most` volumes of each group of ranks, 0: all. */
static halo_status walk_any(walk *w, int64_t most)
{
    hl_windows_sums sums;
    hl_loader_options options = loader_options(w->run, w->source);
    HL_TRY(hl_run_windows(w->run, w->source, &options, most, count_part, w, w->visit, w->user, &sums));
    w->sums[0] = sums.loss;
    w->sums[1] = sums.weight;
    w->any = sums.volumes;
    return HALO_OK;
}

static halo_status walk_steps(walk *w)
{
    halo_context *ctx = w->run->ctx;
    if (w->visit && w->volumes) HL_TRY(hl_delivery_create(w->run, w->source, &w->box, &w->delivery));
    for (;;) {
        const hl_loaded *b;
        HL_AGREE(ctx, hl_run_next(w->run, w->loader, &b));
        if (!b) break; /* the same step everywhere */
        HL_AGREE(ctx, forward(w, b));
        HL_TRY(hl_run_look_for_stop(w->run));
        HL_TRY(gather(w, b));
        HL_AGREE(ctx, w->volumes ? count_volumes(w, b) : count_numbers(w));
    }
    return HALO_OK;
}

static halo_status walk_all(walk *w)
{
    halo_context *ctx = w->run->ctx;
    HL_TRY(hl_run_patches(&w->run->set) ? walk_any(w, 0) : walk_steps(w));
    HL_TRY(hl_tally_merge(&w->all, ctx));
    for (int k = 0; k < w->parts.n; k++) HL_TRY(hl_tally_merge(&w->part[k], ctx));
    return hl_comm_sum(ctx, w->sums, 2);
}

static void fill_classes(walk *w, double cells, hl_evaluation *e)
{
    e->classes = w->logits;
    e->counted = w->all.classes; /* no longer this one's */
    e->cases = w->volumes ? w->source->info.samples : 0;
    e->source = w->source;
    w->all.classes = NULL;
    e->items = (int64_t)(cells / (double)e->voxels + 0.5);
}

static halo_status fill_scores(walk *w, hl_evaluation *e)
{
    double items;
    HL_TRY(hl_tally_score(w->run, &w->all, e->score, &e->of_class, &items));
    e->items = (int64_t)items;
    if (w->logits) fill_classes(w, items, e);
    if (w->all.numbers) return hl_metrics_score(w->all.numbers, true, e->group_score, &e->groups);
    memcpy(e->group_score, e->score, (size_t)e->targets * sizeof(*e->score));
    e->groups = e->items;
    return HALO_OK;
}

/* A part whose cells are all ignored has no scores. */
static halo_status fill_parts(walk *w, hl_evaluation *e)
{
    double items;
    HL_TRY(hl_calloc(w->run->ctx, (size_t)w->parts.n + 1, sizeof(*e->part), "scores", &e->part));
    e->parts = w->parts.n;
    for (int k = 0; k < w->parts.n; k++) {
        hl_part_scores *p = &e->part[k];
        HL_TRY(hl_calloc(w->run->ctx, (size_t)e->targets, sizeof(*p->score), "scores", &p->score));
        if (hl_tally_counts(&w->part[k])) HL_TRY(hl_tally_score(w->run, &w->part[k], p->score, &p->of_class, &items));
        else for (int t = 0; t < e->targets; t++) p->score[t] = (hl_score){NAN, NAN, NAN};
    }
    return HALO_OK;
}

static int64_t voxels_of(hl_source *source, int64_t sample)
{
    int64_t n[3];
    hl_source_extents(source, sample, n);
    return n[0] * n[1] * n[2];
}

/* Of whole volumes, which may have extents of their own. */
static void count_voxels(hl_evaluation *e, hl_source *source)
{
    e->own_extents = true;
    e->voxels = voxels_of(source, 0);
    for (int64_t i = 1; i < source->info.samples && !e->voxels_differ; i++) e->voxels_differ = voxels_of(source, i) != e->voxels;
}

static halo_status score(walk *w, hl_evaluation *e)
{
    halo_status st;
    hl_source *source = w->source;
    e->targets = source->info.targets;
    e->target = source->info.target;
    e->voxels = hl_target_values(&source->info) / e->targets;
    HL_TRY(hl_calloc(source->ctx, (size_t)e->targets, sizeof(hl_score), "scores", &e->score));
    HL_GOTO(st, hl_calloc(source->ctx, (size_t)e->targets, sizeof(hl_score), "scores", &e->group_score), free_scores);
    HL_GOTO(st, fill_scores(w, e), free_scores);
    HL_GOTO(st, fill_parts(w, e), free_scores);
    if (w->any) {
        e->items = e->groups = w->any;
        count_voxels(e, source);
    }
    return HALO_OK;
free_scores:
    hl_evaluation_free(e);
    return st;
}

halo_status hl_run_evaluate(hl_run *run, hl_split split, const hl_parts *parts, hl_visit_prediction visit, void *user, hl_evaluation *out)
{
    walk w = {.run = run, .source = run->source[split], .visit = visit, .user = user};
    if (parts) w.parts = *parts;
    HL_BUG_UNLESS(w.source && run->eval);
    double start = hl_now();
    hl_evaluation e = {0};
    halo_status st;
    HL_GOTO(st, hl_agree(run->ctx, begin(&w)), end_walk);
    HL_GOTO(st, walk_all(&w), end_walk);
    HL_GOTO(st, hl_agree(run->ctx, score(&w, &e)), end_walk);
    e.loss = w.sums[0] / w.sums[1];
    e.seconds = hl_now() - start;
    e.samples_per_second = (double)e.items / e.seconds;
    *out = e;
end_walk:
    end(&w);
    return st;
}

/* A volume of each group. */
static halo_status rehearse_any(walk *w, double *step, int64_t *steps)
{
    double began = hl_now();
    *steps = hl_div_up(w->source->info.samples, w->run->grid.data);
    HL_TRY(walk_any(w, 1));
    *step = hl_now() - began;
    return HALO_OK;
}

/* The second batch of two, or of one taken twice. */
halo_status hl_run_rehearse_validation(hl_run *run, double *step, int64_t *steps)
{
    walk w = {.run = run, .source = run->source[HL_VALIDATION]};
    halo_status st;
    HL_GOTO(st, hl_agree(run->ctx, begin(&w)), end_walk);
    if (hl_run_patches(&run->set)) {
        st = rehearse_any(&w, step, steps);
        goto end_walk;
    }
    *steps = hl_loader_steps(w.loader);
    for (int i = 0; i < 2; i++) {
        const hl_loaded *b;
        double began = hl_now();
        HL_GOTO(st, hl_agree(run->ctx, hl_run_next(run, w.loader, &b)), end_walk);
        if (!b) HL_GOTO(st, hl_agree(run->ctx, hl_loader_start(w.loader, 0, 0)), end_walk);
        if (!b) HL_GOTO(st, hl_agree(run->ctx, hl_run_next(run, w.loader, &b)), end_walk);
        HL_GOTO(st, hl_agree(run->ctx, forward(&w, b)), end_walk);
        *step = hl_now() - began;
    }
end_walk:
    end(&w);
    return st;
}

void hl_evaluation_free(hl_evaluation *e)
{
    free(e->score);
    free(e->group_score);
    free(e->of_class);
    hl_class_metrics_destroy(e->counted);
    for (int k = 0; k < e->parts; k++) {
        free(e->part[k].score);
        free(e->part[k].of_class);
    }
    free(e->part);
    e->part = NULL;
    e->parts = 0;
    e->score = e->group_score = NULL;
    e->of_class = NULL;
    e->counted = NULL;
}

static void overlap_json(const hl_overlap *o, hl_json *j)
{
    hl_json_number(j, "dice", o->dice);
    hl_json_number(j, "iou", o->iou);
    hl_json_number(j, "volume_error", o->volume_error);
}

void hl_class_scores_json(int classes, const hl_class_score *of_class, hl_json *j)
{
    hl_json_array(j, "classes");
    for (int k = 0; k < classes; k++) {
        const hl_class_score *s = &of_class[k];
        hl_json_object(j, NULL);
        hl_json_string(j, "name", s->name);
        overlap_json(&s->global, j);
        hl_json_object(j, "per_case");
        overlap_json(&s->per_case, j);
        hl_json_int(j, "cases", s->cases);
        hl_json_end_object(j);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
    hl_json_object(j, "foreground");
    hl_json_number(j, "dice", hl_foreground_dice(of_class, classes, false));
    hl_json_number(j, "dice_per_case", hl_foreground_dice(of_class, classes, true));
    hl_json_end_object(j);
}

static void confusion_json(const hl_evaluation *e, hl_json *j)
{
    hl_json_array(j, "confusion");
    for (int t = 0; t < e->classes; t++) {
        hl_json_array(j, NULL);
        for (int p = 0; p < e->classes; p++) hl_json_int(j, NULL, (int64_t)hl_class_metrics_confused(e->counted, t, p));
        hl_json_end_array(j);
    }
    hl_json_end_array(j);
}

void hl_cases_json(const hl_evaluation *e, hl_json *j)
{
    char name[512];
    if (e->cases == 0) return;
    hl_json_array(j, "cases");
    for (int64_t i = 0; i < e->cases; i++) {
        e->source->ops->id_of(e->source, i, name, sizeof(name));
        hl_json_object(j, NULL);
        hl_json_string(j, "name", name);
        hl_json_array(j, "dice");
        for (int k = 0; k < e->classes; k++) hl_json_number(j, NULL, hl_class_metrics_case(e->counted, i, k).dice);
        hl_json_end_array(j);
        hl_json_array(j, "volume_error");
        for (int k = 0; k < e->classes; k++) hl_json_number(j, NULL, hl_class_metrics_case(e->counted, i, k).volume_error);
        hl_json_end_array(j);
        hl_json_int(j, "voxels", e->own_extents ? voxels_of(e->source, i) : e->voxels);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
}

static void classes_json(const hl_evaluation *e, hl_json *j)
{
    hl_json_number(j, "accuracy", 1 - e->score[0].error);
    hl_json_array(j, "dice");
    for (int k = 0; k < e->classes; k++) hl_json_number(j, NULL, e->of_class[k].global.dice);
    hl_json_end_array(j);
    hl_class_scores_json(e->classes, e->of_class, j);
    confusion_json(e, j);
}

static void targets_json(const hl_evaluation *e, const hl_score *score, hl_json *j)
{
    hl_json_array(j, "targets");
    for (int i = 0; i < e->targets; i++) {
        hl_json_object(j, NULL);
        hl_json_string(j, "name", e->target[i].name);
        hl_json_number(j, "error", score[i].error);
        hl_json_number(j, "constant_error", score[i].constant_error);
        hl_json_number(j, "correlation", score[i].correlation);
        hl_json_bool(j, "constrained", !hl_unconstrained(&score[i]));
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
}

void hl_evaluation_json(const hl_evaluation *e, hl_json *j)
{
    hl_json_number(j, "loss", e->loss);
    hl_json_int(j, "samples", e->items);
    targets_json(e, e->score, j);
    if (e->classes > 0) classes_json(e, j);
    if (e->voxels > 1) {
        if (e->voxels_differ) hl_json_number(j, "voxels", NAN);
        else hl_json_int(j, "voxels", e->voxels);
        return;
    }
    hl_json_object(j, "universes");
    hl_json_int(j, "count", e->groups);
    targets_json(e, e->group_score, j);
    hl_json_end_object(j);
}
