/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c -- see shapes.h. Whether a whole volume fits is asked of its outline, which allocates nothing; the answer is that of the rank with the least memory. */
#include "train/shapes.h"
#include "base/limits.h"
#include "net/graph.h"

struct hl_shapes {
    hl_shape patch; /* the run's own program */
    hl_shape whole[HL_SHAPES_MOST];
    int64_t refused[HL_SHAPES_MOST][3]; /* the last ones that did not fit, in turn */
    int refusals;
    uint64_t clock;
};

void hl_network_unit(const struct halo_network *net, int64_t unit[3])
{
    const int64_t *in = net->layer[0].out + 1;
    for (int k = 0; k < 3; k++) {
        unit[k] = 1;
        for (int i = 0; i < net->layers; i++) unit[k] = hl_max64(unit[k], hl_div_up(in[k], hl_max64(1, net->layer[i].out[k + 1])));
    }
}

/* ------------------------------------------------------------------------------------------------------------ programs */

static halo_status copy_weights(hl_run *run, hl_model *to)
{
    const hl_param_info *list;
    int n = hl_model_params(run->model, &list);
    int64_t most = 1;
    void *host;
    for (int i = 0; i < n; i++) most = hl_max64(most, list[i].count);
    HL_TRY(hl_aligned(run->ctx, (size_t)most * sizeof(double), "a parameter", &host));
    halo_status st = HALO_OK;
    for (int i = 0; i < n && st == HALO_OK; i++) {
        st = hl_model_get_raw(run->model, i, HL_MASTER, host);
        if (st == HALO_OK) st = hl_model_set_raw(to, i, HL_MASTER, host);
    }
    free(host);
    return st;
}

static halo_status network_of(hl_run *run, const int64_t ext[3], struct halo_network **net)
{
    char *text;
    HL_TRY(halo_network_text(run->net, &text));
    halo_status st = halo_network_parse(run->ctx, run->net->name, text, strlen(text), 0, ext, net);
    free(text);
    if (st != HALO_OK) return st;
    const int64_t *out = (*net)->layer[(*net)->layers - 1].out + 1;
    if (memcmp(out, ext, 3 * sizeof(*ext)) == 0) return HALO_OK;
    st = hl_fail(run->ctx, HALO_ERR_SHAPE, "network '%s' makes [%" PRId64 ", %" PRId64 ", %" PRId64 "] of volumes of [%" PRId64 ", %" PRId64 ", %" PRId64 "]", run->net->name, out[0], out[1], out[2],
                 ext[0], ext[1], ext[2]);
    halo_network_destroy(*net);
    *net = NULL;
    return st;
}

static hl_compile_options options_of(const hl_run *run)
{
    hl_compile_options o = hl_run_compile_options(&run->set, false);
    o.batch = 1;
    o.accumulate = false;
    o.plan = HL_PLAN_FIXED;
    o.grid = run->grid;
    return o;
}

static void drop(hl_shape *s)
{
    hl_program_destroy(s->program);
    hl_model_destroy(s->model);
    halo_network_destroy(s->net);
    free(s->of_rank);
    *s = (hl_shape){.batch = 0};
}

static halo_status compile(hl_run *run, hl_shape *s)
{
    hl_compile_options o = options_of(run);
    o.team = run->ctx->ranks > 1 ? run->team : NULL;
    halo_status st = hl_agree(run->team->group, hl_model_create(run->ctx, run->dev, s->net, NULL, &s->model));
    if (st == HALO_OK) st = hl_agree(run->team->group, copy_weights(run, s->model));
    return st == HALO_OK ? hl_agree(run->team->group, hl_compile(s->model, &o, &s->program)) : st;
}

static halo_status set_boxes(hl_run *run, hl_shape *s)
{
    hl_program_input_box(s->program, s->x.lo, s->x.ext);
    hl_program_output_box(s->program, s->y.lo, s->y.ext);
    HL_AGREE(run->team->group, hl_calloc(run->ctx, (size_t)run->team->group->ranks, sizeof(*s->of_rank), "the parts of ranks", &s->of_rank));
    return hl_comm_gather(run->team->group, &s->y, sizeof(s->y), s->of_rank);
}

/* ---------------------------------------------------------------------------------------------------------------- fits */

/* What this rank may still take. */
static double allowed(const hl_run *run)
{
    hl_memory_bound b;
    double used = (double)hl_rss_bytes();
    if (run->set.memory_limit > 0) return (double)run->set.memory_limit - used;
    hl_memory_bound_find("", &b);
    return b.bytes ? (double)b.bytes / hl_comm_place(run->ctx).locals * 0.8 - used : INFINITY;
}

/* *too_much above 0: by so many bytes. Of the values that come in and out host copies too. */
static halo_status weigh(hl_run *run, const struct halo_network *net, double *too_much)
{
    hl_compile_options o = options_of(run);
    hl_model *model;
    hl_program *program = NULL;
    hl_program_info i;
    hl_cells x, y;
    o.after = "fit";
    o.only_ask = true;
    HL_TRY(hl_model_outline(run->ctx, run->dev, net, NULL, &model));
    halo_status st = hl_compile(model, &o, &program);
    if (st == HALO_OK) {
        hl_program_info_get(program, &i);
        hl_program_input_box(program, x.lo, x.ext);
        hl_program_output_box(program, y.lo, y.ext);
        const int64_t *in = net->layer[0].out, *out = net->layer[net->layers - 1].out;
        double host = (double)(in[0] * x.ext[0] * x.ext[1] * x.ext[2] * 2 + (out[0] + 1) * y.ext[0] * y.ext[1] * y.ext[2]) * sizeof(float);
        *too_much = (double)(i.peak_bytes + i.record_bytes + hl_message_bytes(&i.traffic)) + host - allowed(run);
    }
    hl_program_destroy(program);
    hl_model_destroy(model);
    return st == HALO_ERR_NOMEM ? HALO_OK : st;
}

/* A network that cannot be made in this shape, and a shape that does not fit, are no error where windows would do. */
static halo_status ask(hl_run *run, const int64_t ext[3], bool must, struct halo_network **net)
{
    halo_context *ctx = run->ctx;
    halo_log_fn log = ctx->log;
    double too_much = must ? 0 : INFINITY;
    if (!must) ctx->log = NULL;
    halo_status st = network_of(run, ext, net);
    if (st == HALO_OK && !must) st = weigh(run, *net, &too_much);
    ctx->log = log;
    if (must) return hl_agree(run->team->group, st);
    if (st != HALO_OK) too_much = INFINITY;
    HL_TRY(hl_comm_max(run->team->group, &too_much, 1));
    if (too_much <= 0) return HALO_OK;
    halo_network_destroy(*net);
    *net = NULL;
    return HALO_OK;
}

static bool was_refused(const hl_shapes *all, const int64_t ext[3])
{
    for (int i = 0; i < HL_SHAPES_MOST && i < all->refusals; i++)
        if (memcmp(all->refused[i], ext, sizeof(all->refused[i])) == 0) return true;
    return false;
}

/* A program for the shape in the place of the one that was used longest ago; *shape NULL: windows it is. */
static halo_status make(hl_run *run, const int64_t ext[3], bool must, const hl_shape **shape)
{
    hl_shapes *all = run->shapes;
    hl_shape *oldest = &all->whole[0];
    struct halo_network *net = NULL;
    *shape = NULL;
    if (!must && was_refused(all, ext)) return HALO_OK;
    for (int i = 1; i < HL_SHAPES_MOST; i++)
        if (all->whole[i].used < oldest->used) oldest = &all->whole[i];
    drop(oldest);
    HL_TRY(ask(run, ext, must, &net));
    if (!net) {
        memcpy(all->refused[all->refusals++ % HL_SHAPES_MOST], ext, sizeof(all->refused[0]));
        if (run->ctx->rank == 0) HL_INFO(run->ctx, "volumes of [%" PRId64 ", %" PRId64 ", %" PRId64 "] are taken in windows: as a whole they do not fit", ext[0], ext[1], ext[2]);
        return HALO_OK;
    }
    *oldest = (hl_shape){.ext = {ext[0], ext[1], ext[2]}, .batch = 1, .net = net, .used = ++all->clock};
    halo_status st = compile(run, oldest);
    if (st == HALO_OK) st = set_boxes(run, oldest);
    if (st == HALO_OK) *shape = oldest;
    else drop(oldest);
    return st;
}

/* ------------------------------------------------------------------------------------------------------------- choice */

halo_status hl_shapes_refresh(hl_run *run)
{
    hl_shapes *all = run->shapes;
    if (!all) {
        HL_AGREE(run->team->group, hl_calloc(run->ctx, 1, sizeof(*all), "programs of shapes", &all));
        run->shapes = all;
        all->patch.batch = hl_run_part(run);
        all->patch.program = run->eval;
        memcpy(all->patch.ext, run->net->layer[0].out + 1, sizeof(all->patch.ext));
        return set_boxes(run, &all->patch);
    }
    halo_status st = HALO_OK;
    for (int i = 0; i < HL_SHAPES_MOST && st == HALO_OK; i++)
        if (all->whole[i].program) st = copy_weights(run, all->whole[i].model);
    return hl_agree(run->team->group, st);
}

void hl_shapes_free(hl_shapes *all)
{
    if (!all) return;
    for (int i = 0; i < HL_SHAPES_MOST; i++) drop(&all->whole[i]);
    free(all->patch.of_rank);
    free(all);
}

/* Group and instance norms have learned from statistics of patches, and those of whole volumes are others: Dice falls by a hundredth or two on phantoms. */
static bool norms_patches(const hl_run *run)
{
    for (int i = 0; i < run->net->layers; i++)
        if (run->net->layer[i].kind == HL_LAYER_NORM && hl_per_sample(&run->net->layer[i])) return true;
    return false;
}

/* Whether to ask at all. */
static bool wants_whole(const hl_run *run, const int64_t ext[3])
{
    const int64_t *patch = run->shapes->patch.ext;
    if (run->set.predict.volumes != HL_VOLUMES_AUTO) return run->set.predict.volumes == HL_VOLUMES_WHOLE;
    return (!run->train && !norms_patches(run)) || (ext[0] <= patch[0] && ext[1] <= patch[1] && ext[2] <= patch[2]);
}

halo_status hl_shapes_choose(hl_run *run, const int64_t n[3], const hl_shape **shape)
{
    hl_shapes *all = run->shapes;
    int64_t unit[3], ext[3];
    hl_network_unit(run->net, unit);
    for (int k = 0; k < 3; k++) ext[k] = hl_round_up(n[k], unit[k]);
    *shape = &all->patch;
    if (!wants_whole(run, ext) || memcmp(ext, all->patch.ext, sizeof(ext)) == 0) return HALO_OK;
    for (int i = 0; i < HL_SHAPES_MOST; i++) {
        hl_shape *s = &all->whole[i];
        if (!s->program || memcmp(s->ext, ext, sizeof(ext)) != 0) continue;
        s->used = ++all->clock;
        *shape = s;
        return HALO_OK;
    }
    const hl_shape *made;
    HL_TRY(make(run, ext, run->set.predict.volumes == HL_VOLUMES_WHOLE, &made));
    if (made) *shape = made;
    return HALO_OK;
}
