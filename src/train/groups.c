/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.c -- which gradients a run sums together. `auto` asks the machine: when each gradient is complete is timed by backward passes over whatever the
 * program's memory holds, what a sum costs by sums of several sizes, the slowest rank's of both; group.h does the rest. The choice is kept in the run
 * directory (groups.yaml), because with some schedules the last bits depend on it: a run that is resumed on as many ranks takes it from there.
 */
#include "base/file.h"
#include "base/yaml.h"
#include "train/run.h"

static halo_status groups_path(hl_run *run, char **path) { return hl_path_join(run->ctx, run->set.output, "groups.yaml", path); }

enum { KEPT_MAX = 256 }; /* groups; more are chosen anew */

/* The names of layers at which groups end. */
typedef struct kept {
    int32_t valid, n;
    char name[KEPT_MAX][HL_WORD_MAX];
} kept;
_Static_assert((int)KEPT_MAX >= (int)HL_WORDS_MAX, "all names of the settings fit");

static bool is_number(const hl_yaml *root, const char *key, int64_t value)
{
    const hl_yaml *node = hl_yaml_find(root, key);
    int64_t x;
    return node && hl_yaml_int(node, &x) && x == value;
}

static bool is_text(const hl_yaml *root, const char *key, const char *value)
{
    const hl_yaml *node = hl_yaml_find(root, key);
    return node && node->text && strcmp(node->text, value) == 0;
}

/* Made for this run on this many ranks? */
static bool fits(const hl_run *run, const hl_reducer_options *o, const hl_yaml *root)
{
    return is_number(root, "ranks", run->ctx->ranks) && is_number(root, "gradients", o->gradients) &&
           is_number(root, "elements", o->gradient[o->gradients - 1].hi) && is_text(root, "algorithm", hl_algorithm_name(o->algorithm));
}

static void take(const hl_yaml *root, kept *k)
{
    const hl_yaml *ends = hl_yaml_find(root, "end_at");
    if (!ends || ends->items > KEPT_MAX) return;
    k->valid = 1;
    for (size_t i = 0; i < ends->items; i++) {
        const char *name = ends->item[i]->text;
        k->valid = k->valid && name && strlen(name) < sizeof(k->name[0]);
        if (k->valid) memcpy(k->name[k->n++], name, strlen(name) + 1);
    }
}

/* Rank 0's file for all; a file of another run, or none, is no failure. */
static halo_status recall(hl_run *run, const hl_reducer_options *o, kept *k)
{
    char *path = NULL;
    hl_yaml *root = NULL;
    halo_status st = HALO_OK;
    if (!*run->set.output) return HALO_OK;
    if (run->ctx->rank == 0) {
        st = groups_path(run, &path);
        if (st == HALO_OK && hl_file_exists(path)) st = hl_yaml_load(run->ctx, path, &root);
        if (st == HALO_OK && root && fits(run, o, root)) take(root, k);
        hl_yaml_destroy(root);
        free(path);
    }
    HL_AGREE(run->ctx, st);
    return hl_comm_broadcast(run->ctx, k, sizeof(*k), 0);
}

static void describe(const hl_run *run, const hl_reducer_options *o, hl_str *text)
{
    hl_str ends = {0};
    hl_group_text(o->gradient, o->group, o->groups, &ends);
    hl_str_addf(text, "# the groups of gradients that were chosen for this run; taken again when it is resumed on as many ranks\n");
    hl_str_addf(text, "ranks: %d\nalgorithm: %s\ngradients: %d\nelements: %" PRId64 "\nend_at: [%s]\n", run->ctx->ranks, hl_algorithm_name(o->algorithm),
                o->gradients, o->gradient[o->gradients - 1].hi, ends.s ? ends.s : "");
    hl_str_free(&ends);
}

static halo_status keep(hl_run *run, const hl_reducer_options *o)
{
    hl_str text = {0};
    char *path;
    if (!*run->set.output || run->ctx->rank != 0 || o->groups > KEPT_MAX) return HALO_OK;
    HL_TRY(hl_make_dirs(run->ctx, run->set.output));
    HL_TRY(groups_path(run, &path));
    describe(run, o, &text);
    halo_status st = text.failed ? hl_fail(run->ctx, HALO_ERR_NOMEM, "out of memory: groups of gradients") : hl_file_write(run->ctx, path, text.s, text.len);
    hl_str_free(&text);
    free(path);
    return st;
}

/* Completion times, the latest of any rank; of a fixed plan those that follow from operation counts. */
static halo_status time_gradients(hl_run *run, const hl_reducer_options *o, hl_gradient *gradient)
{
    double *seconds;
    bool fixed = run->set.plan == HL_SET_PLAN_FIXED;
    if (fixed && !hl_grid_split(&run->grid)) return HALO_OK; /* all ranks count the same operations */
    HL_AGREE(run->ctx, fixed ? HALO_OK : hl_program_time_backward(run->train));
    (void)hl_program_gradients(run->train, gradient);
    HL_AGREE(run->ctx, hl_calloc(run->ctx, (size_t)o->gradients, sizeof(*seconds), "times of gradients", &seconds));
    for (int i = 0; i < o->gradients; i++) seconds[i] = gradient[i].seconds;
    halo_status st = hl_comm_max(run->ctx, seconds, o->gradients);
    for (int i = 0; i < o->gradients; i++) gradient[i].seconds = seconds[i];
    free(seconds);
    return st;
}

/* What a sum costs between nodes comes on top of what it costs in one: of a rank's slices. */
static halo_status measure_between(hl_run *run, const hl_reducer_options *o, int64_t bytes, hl_reduce_cost *cost)
{
    const int size = run->links->size;
    hl_reduce_cost slice;
    HL_TRY(hl_reducer_measure(run->links->between, o, bytes / size, &slice));
    double x[2] = {slice.latency, slice.seconds_per_byte / size};
    HL_TRY(hl_comm_max(run->ctx, x, 2));
    cost->latency += x[0];
    cost->seconds_per_byte += x[1];
    return HALO_OK;
}

static halo_status measured(hl_run *run, hl_reducer_options *o, hl_gradient *gradient, hl_grouping_spec *spec)
{
    HL_TRY(time_gradients(run, o, gradient));
    const int64_t bytes = gradient[o->gradients - 1].hi * (int64_t)spec->element;
    HL_TRY(run->links ? hl_links_measure(run->model, run->links, &spec->cost) : hl_reducer_measure(run->ctx, o, bytes, &spec->cost));
    if (run->links && run->links->between) HL_TRY(measure_between(run, o, bytes, &spec->cost));
    HL_DEBUG(run->ctx, "backward takes %.3g ms, a sum %.3g us and %.3g s per GB", gradient[o->gradients - 1].seconds * 1e3, spec->cost.latency * 1e6,
             spec->cost.seconds_per_byte * 1e9);
    return HALO_OK;
}

/* Words that say nothing without what they ask for. */
static halo_status check_asked(const hl_run *run)
{
    const hl_settings *s = &run->set;
    if (s->reduce.group == HL_GROUP_BYTES && s->reduce.group_bytes < 1)
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'reduce.group' is bytes, but how many must be given and positive: {bytes: 25MiB}");
    if (s->reduce.group == HL_GROUP_LAYERS && s->reduce.group_layers.n == 0)
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'reduce.group' is layers, but which must be given: {layers: [name, ..]}");
    return HALO_OK;
}

static hl_grouping_spec asked(const hl_run *run, halo_dtype type, const char *layer[KEPT_MAX])
{
    hl_grouping_spec spec = {.kind = (hl_grouping)run->set.reduce.group, .bytes = run->set.reduce.group_bytes, .layers = run->set.reduce.group_layers.n,
                             .layer = layer, .element = hl_dtype_size(type)};
    for (int i = 0; i < spec.layers; i++) layer[i] = run->set.reduce.group_layers.word[i];
    return spec;
}

halo_status hl_run_check_groups(const hl_run *run)
{
    const char *layer[KEPT_MAX];
    hl_gradient *gradient = NULL;
    hl_group *groups = NULL;
    int count;
    hl_grouping_spec spec = asked(run, HALO_F32, layer);
    size_t most = (size_t)hl_model_params(run->model, NULL) + 1;
    HL_TRY(check_asked(run));
    if (spec.kind != HL_GROUP_LAYERS) return HALO_OK;
    halo_status st = hl_calloc(run->ctx, most, sizeof(*gradient), "the order of gradients", &gradient);
    if (st == HALO_OK) st = hl_calloc(run->ctx, most, sizeof(*groups), "groups of gradients", &groups);
    if (st == HALO_OK) st = hl_group_gradients(run->ctx, &spec, gradient, hl_program_gradients(run->train, gradient), groups, &count);
    free(groups);
    free(gradient);
    return st;
}

halo_status hl_run_choose_groups(hl_run *run, hl_reducer_options *o, hl_gradient *gradient, hl_group *groups)
{
    const char *layer[KEPT_MAX];
    kept k = {0};
    hl_grouping_spec spec = asked(run, o->type, layer);
    if (spec.kind == HL_GROUP_AUTO) HL_TRY(recall(run, o, &k));
    if (k.valid) {
        spec.kind = HL_GROUP_LAYERS;
        spec.layers = k.n;
        for (int i = 0; i < k.n; i++) layer[i] = k.name[i];
    } else if (spec.kind == HL_GROUP_AUTO) HL_TRY(measured(run, o, gradient, &spec));
    HL_AGREE(run->ctx, hl_group_gradients(run->ctx, &spec, gradient, o->gradients, groups, &o->groups));
    run->hidden = (hl_hidden){.backward = gradient[o->gradients - 1].seconds, .cost = spec.cost,
                              .end = spec.kind == HL_GROUP_AUTO ? hl_group_end(gradient, groups, o->groups, spec.element, spec.cost) : NAN};
    return spec.kind == HL_GROUP_AUTO ? hl_agree(run->ctx, keep(run, o)) : HALO_OK;
}
