/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c -- from settings to a run: context, data, network, model, programs. */
#include "base/file.h"
#include "base/topology.h"
#include "io/folds.h"
#include "net/graph.h"
#include "train/run.h"
#include "train/shapes.h"

#include <stdio.h>
#include <unistd.h>

/* The largest m of F(m, 3). What is measured may be another algorithm where that is as exact; F(4) is for those who ask. A fixed plan is for results
 * that are to be the same, or to be compared, so nothing but the direct kernels unless asked: then Winograd's come first. */
static int winograd_of(const hl_settings *set)
{
    static const int m[] = {0, 0, 2, 4};
    if (set->winograd > 0) return m[set->winograd];
    return set->plan == HL_SET_PLAN_MEASURE && set->parallel.spatial[0] * set->parallel.spatial[1] * set->parallel.spatial[2] == 1 ? 2 : 0;
}

static halo_status apply_to_context(halo_context *ctx, const hl_settings *set)
{
    static const char *const isas[] = {"", "generic", "avx2", "avx512f"}, *const binds[] = {"", "none", "cores"};
    static const halo_dtype types[] = {HALO_F32, HALO_F64, HALO_F16, HALO_BF16};
    if (ctx->device) return HALO_OK; /* chosen already */
    if (*set->backend) {
        if (strlen(set->backend) >= sizeof(ctx->backend)) return hl_fail(ctx, HALO_ERR_USAGE, "unknown backend '%s'", set->backend);
        memcpy(ctx->backend, set->backend, strlen(set->backend) + 1);
    }
    ctx->compute = types[set->precision];
    if (ctx->compute == HALO_F64) {
        if (*ctx->backend && strcmp(ctx->backend, "ref") != 0)
            return hl_fail(ctx, HALO_ERR_USAGE, "'precision: f64' needs 'backend: ref': backend '%s' computes in f32", ctx->backend);
        memcpy(ctx->backend, "ref", sizeof("ref"));
    }
    memcpy(ctx->isa, isas[set->cpu_isa], strlen(isas[set->cpu_isa]) + 1);
    ctx->winograd = winograd_of(set);
    ctx->tf32 = set->cuda.tf32;
    ctx->any_order = !set->cuda.deterministic;
    ctx->step_by_step = !set->cuda.graphs;
    ctx->no_links = !set->cuda.nccl;
    memcpy(ctx->bind, binds[set->cpu_bind], strlen(binds[set->cpu_bind]) + 1);
    ctx->threads = set->threads > 0 ? (int)set->threads : hl_run_threads(ctx);
    ctx->seed = (uint64_t)set->seed;
    return HALO_OK;
}

void hl_run_spacing(const hl_settings *set, double spacing[3])
{
    const hl_words *w = &set->data.spacing;
    for (int k = 0; k < 3; k++) spacing[k] = w->n ? strtod(w->word[w->n == 3 ? k : 0], NULL) : 0;
}

bool hl_run_patches(const hl_settings *set) { return set->data.patch[0] > 0; }

static hl_transform transform_of(const hl_settings *set, const char *word)
{
    if (strcmp(word, "log1p") == 0) return HL_LOG1P;
    if (strcmp(word, "over-mean") == 0) return HL_OVER_MEAN;
    if (strcmp(word, "window") == 0) return HL_CLIP;
    return hl_settings_zscore(set) == HL_ZSCORE_OF_SAMPLE ? HL_ZSCORE : HL_STANDARD;
}

void hl_run_transforms(const hl_settings *set, hl_loader_options *o)
{
    o->transforms = 0;
    for (int i = 0; i < set->data.transform.n && i < (int)HL_COUNT(o->transform); i++)
        o->transform[o->transforms++] = transform_of(set, set->data.transform.word[i]);
    for (int i = 0; i < set->data.window.n && i < 2; i++) o->window[i] = strtod(set->data.window.word[i], NULL);
    if (hl_settings_zscore(set) != HL_ZSCORE_GIVEN) return;
    o->mean = strtod(set->data.zscore.word[0], NULL);
    o->std = strtod(set->data.zscore.word[1], NULL);
}

/* ------------------------------------------------------------------------------------------------------------ data */

static const char *path_of(const hl_settings *set, hl_split split)
{
    return split == HL_TRAIN ? set->data.train : split == HL_VALIDATION ? set->data.validation : set->data.test;
}

/* With data.split, the universes [first, first + count) of data.train that belong to a split; all of them otherwise. */
static halo_status split_range(hl_run *run, hl_split split, hl_source_options *o)
{
    const hl_words *w = &run->set.data.split;
    double before = 0;
    hl_source *whole;
    if (w->n == 0 || o->synthetic || *path_of(&run->set, split == HL_TRAIN ? HL_VALIDATION : split)) return HALO_OK;
    o->path = run->set.data.train;
    HL_TRY(hl_source_open(run->ctx, o, &whole));
    int64_t groups = whole->info.groups;
    hl_source_close(whole);
    for (int i = 0; i < (int)split && i < w->n; i++) before += strtod(w->word[i], NULL);
    double share = (int)split < w->n ? strtod(w->word[split], NULL) : 0;
    o->group_first = (int64_t)floor(before * (double)groups + 0.5);
    o->group_count = (int64_t)floor((before + share) * (double)groups + 0.5) - o->group_first;
    if (o->group_count > 0) return HALO_OK;
    return hl_fail(run->ctx, HALO_ERR_USAGE, "'data.split' leaves no universe for part %d of the %" PRId64 " in '%s'", (int)split + 1, groups, o->path);
}

static bool of_classes(const hl_settings *set) { return hl_loss_of_classes((halo_loss)set->loss); }

int hl_run_classes(const hl_run *run) { return of_classes(&run->set) ? (int)run->net->layer[run->net->layers - 1].out[0] : 0; }

/* Where the data say nothing of the sizes of samples (synthetic) or targets (not labelled): the network's own. */
static halo_status sizes_of_network(hl_run *run, hl_source_options *o)
{
    struct halo_network *net;
    const int64_t unknown[4] = {0, 0, 0, 0};
    HL_TRY(hl_run_network(run->ctx, &run->set, unknown, 0, &net));
    const int64_t *in = net->layer[0].out, *out = net->layer[net->layers - 1].out;
    memcpy(o->target_ext, out + 1, sizeof(o->target_ext));
    o->label = run->set.label;
    o->labels = run->set.labels;
    o->outputs = 0; /* compared with the network later, whichever targets it will be */
    if (o->synthetic) {
        o->channels = in[0];
        memcpy(o->size, in + 1, sizeof(o->size));
        o->classes = of_classes(&run->set) ? out[0] : 0;
        o->outputs = o->classes ? 1 : out[0];
    }
    halo_network_destroy(net);
    return HALO_OK;
}

/* Training and validation data are those of data.train that are not, and that are, in the fold. */
static bool folded(const hl_settings *set, hl_split split) { return set->data.folds.count > 0 && split != HL_TEST; }

static halo_status take_fold(hl_run *run, hl_split split)
{
    const hl_settings *set = &run->set;
    hl_folds folds = {.count = set->data.folds.count, .use = set->data.folds.use, .patient = set->data.folds.patient};
    return folded(set, split) && !set->data.synthetic ? hl_fold_open(run->source[split], &folds, split == HL_VALIDATION, &run->source[split]) : HALO_OK;
}

static halo_status open_source(hl_run *run, hl_split split)
{
    static const char *const names[] = {"data.train", "data.validation", "data.test"};
    const hl_settings *set = &run->set;
    const hl_source *first = run->source[HL_TRAIN]; /* the others must look like it */
    hl_source_options o = {.path = path_of(set, folded(set, split) ? HL_TRAIN : split), .format = set->data.format, .synthetic = set->data.synthetic,
                           .synthetic_samples = set->data.samples, .seed = (uint64_t)set->seed + (uint64_t)split};
    if (!*o.path && !set->data.synthetic && (set->data.split.n == 0 || !*set->data.train)) return hl_fail(run->ctx, HALO_ERR_USAGE, "'%s' is not set: where is the data?", names[split]);
    if (*o.path && set->data.synthetic) HL_WARN(run->ctx, "'data.synthetic' is true: '%s' of '%s' is not read", o.path, names[split]);
    hl_array_options array;
    hl_run_arrays(run, &array);
    o.array = &array;
    memcpy(o.crop, set->data.crop, sizeof(o.crop));
    hl_run_spacing(set, o.spacing);
    if (hl_run_patches(set)) memcpy(o.patch, set->data.patch, sizeof(o.patch)); /* of any extents */
    else memcpy(o.size, first ? first->info.ext + 1 : set->size, sizeof(o.size));
    o.channels = first ? first->info.ext[0] : set->channels > 0 ? set->channels : 0;
    o.outputs = first ? first->info.targets : set->outputs > 0 && !of_classes(set) ? set->outputs : 0;
    if (o.synthetic || set->label) HL_TRY(sizes_of_network(run, &o));
    HL_TRY(split_range(run, split, &o));
    HL_TRY(hl_source_open(run->ctx, &o, &run->source[split]));
    return take_fold(run, split);
}

static halo_status open_sources(hl_run *run, unsigned splits)
{
    for (int split = 0; split < HL_SPLITS; split++)
        if (splits & 1u << split) HL_TRY(open_source(run, (hl_split)split));
    return HALO_OK;
}

/* --------------------------------------------------------------------------------------------------------- network */

static bool is_file(const char *network)
{
    size_t n = strlen(network);
    return strchr(network, '/') || (n > 5 && strcmp(network + n - 5, ".yaml") == 0) || (n > 4 && strcmp(network + n - 4, ".yml") == 0);
}

/* Options of the zoo beside a network file: ignored, they would make another network than the one that was meant. */
static halo_status check_zoo_options(halo_context *ctx, const hl_settings *set)
{
    const char *key = set->padding == HL_PADDING_PERIODIC ? "padding" : set->batch_norm ? "batch_norm" : !set->dropout ? "dropout" : set->upsampling ? "upsampling" : NULL;
    if (!key) return HALO_OK;
    return hl_fail(ctx, HALO_ERR_USAGE, "'%s' is for networks of the zoo and has no use with '%s': change the file", key, set->network);
}

/* The first key that was set and belongs to another network of the zoo, of which one may be put in place of a configuration's by the command line; NULL: none. */
static const char *key_of_another(const hl_settings *set)
{
    const struct { const char *key, *network; bool is_set; } all[] = {
        {"levels", "unet3d", set->levels > 0},       {"first_channels", "unet3d", set->first_channels > 0}, {"upsampling", "unet3d", set->upsampling != 0},
        {"growth", "fcdensenet", set->growth > 0},   {"kernel", "fcdensenet", set->kernel > 0},             {"blocks", "fcdensenet", set->blocks.n > 0},
        {"stem", "fcdensenet", set->stem > 0},       {"up_kernel", "fcdensenet", set->up_kernel > 0},       {"keep", "fcdensenet", set->keep > 0},
    };
    for (size_t i = 0; i < HL_COUNT(all); i++)
        if (all[i].is_set && strcmp(set->network, all[i].network) != 0) return all[i].key;
    return NULL;
}

/* What fcdensenet has alone. */
static halo_status set_dense(halo_context *ctx, const hl_settings *set, halo_zoo_options *o)
{
    o->growth = hl_max64(0, set->growth);
    o->kernel = hl_max64(0, set->kernel);
    o->stem = hl_max64(0, set->stem);
    o->up_kernel = hl_max64(0, set->up_kernel);
    o->keep = fmax(0, set->keep);
    if (set->blocks.n >= HALO_ZOO_BLOCKS) return hl_fail(ctx, HALO_ERR_USAGE, "'blocks' has %d of them, must be at most %d", set->blocks.n, HALO_ZOO_BLOCKS - 1);
    for (int i = 0; i < set->blocks.n; i++) {
        char *end;
        o->block[i] = strtoll(set->blocks.word[i], &end, 10);
        if (*end || o->block[i] < 1) return hl_fail(ctx, HALO_ERR_USAGE, "'blocks' must be numbers of layers, such as [2, 2, 2], not '%s'", set->blocks.word[i]);
    }
    return HALO_OK;
}

halo_status hl_run_network(halo_context *ctx, const hl_settings *set, const int64_t ext[4], int64_t outputs, struct halo_network **net)
{
    int64_t size[3], channels = ext[0] > 0 ? ext[0] : set->channels > 0 ? set->channels : 0;
    const int64_t *asked = set->size[0] > 0 || !hl_run_patches(set) ? set->size : set->data.patch;
    for (int i = 0; i < 3; i++) size[i] = ext[i + 1] > 0 ? ext[i + 1] : asked[i];
    if (set->network_text) return halo_network_parse(ctx, "the checkpoint's network", set->network_text, strlen(set->network_text), 0, hl_run_patches(set) ? set->data.patch : NULL, net);
    if (is_file(set->network)) HL_TRY(check_zoo_options(ctx, set));
    if (is_file(set->network)) /* its own sizes unless the configuration says otherwise; check_data compares them with the data */
        return hl_config_status(halo_network_load(ctx, set->network, set->channels > 0 ? set->channels : 0, asked[0] > 0 ? asked : NULL, net));
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    o.variant = *set->variant ? set->variant : NULL;
    o.wiring = strcmp(set->wiring, "paper") == 0 ? NULL : set->wiring;
    memcpy(o.extents, size, sizeof(size));
    o.channels = channels;
    o.outputs = outputs > 0 ? outputs : set->outputs > 0 ? set->outputs : 0;
    o.batch_norm = set->batch_norm;
    o.periodic = set->padding == HL_PADDING_PERIODIC;
    o.no_dropout = !set->dropout;
    o.levels = hl_max64(0, set->levels);
    o.first_channels = hl_max64(0, set->first_channels);
    o.trilinear = set->upsampling == 1;
    HL_TRY(set_dense(ctx, set, &o));
    return halo_network_zoo(ctx, set->network, &o, net);
}

void hl_class_name(const hl_settings *set, int k, char *out, size_t size)
{
    if (k < set->data.classes.n) snprintf(out, size, "%s", set->data.classes.word[k]);
    else snprintf(out, size, "%d", k);
}

/* Of classes the network has logits, an output each, and the data one number for all of them. */
static halo_status check_classes(const hl_run *run, const hl_source_info *info, const int64_t out[4])
{
    const hl_words *names = &run->set.data.classes;
    if (names->n > 0 && names->n != out[0])
        return hl_fail(run->ctx, HALO_ERR_USAGE, "'data.classes' names %d class%s, but network '%s' has %" PRId64 " outputs, one for each class", names->n, names->n == 1 ? "" : "es", run->net->name, out[0]);
    if (out[0] < 2)
        return hl_fail(run->ctx, HALO_ERR_SHAPE, "network '%s' has 1 output: a loss of classes needs one for each class, two at least", run->net->name);
    if (info->targets == 1 && memcmp(out + 1, info->target_ext, sizeof(info->target_ext)) == 0) return HALO_OK;
    return hl_fail(run->ctx, HALO_ERR_SHAPE,
                   "network '%s' ends in %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 ", logits of %" PRId64 " classes, so that targets must be 1 x %" PRId64
                   " x %" PRId64 " x %" PRId64 ", but are %d x %" PRId64 " x %" PRId64 " x %" PRId64 " (C D H W)",
                   run->net->name, out[0], out[1], out[2], out[3], out[0], out[1], out[2], out[3], info->targets, info->target_ext[0], info->target_ext[1],
                   info->target_ext[2]);
}

/* The network takes what the data gives, and has an output per target. */
static halo_status check_data(const hl_run *run, const hl_source_info *info)
{
    const int64_t *in = run->net->layer[0].out, *out = run->net->layer[run->net->layers - 1].out, *has = info->ext;
    if (info->targets == 0) return hl_fail(run->ctx, HALO_ERR_USAGE, "the data has no targets: %s", info->description);
    if (memcmp(in, has, 4 * sizeof(*in)) != 0)
        return hl_fail(run->ctx, HALO_ERR_SHAPE,
                       "network '%s' takes %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 ", the data has %" PRId64 " x %" PRId64 " x %" PRId64
                       " x %" PRId64 " (C D H W); set 'size' and 'channels', or 'data.crop'",
                       run->net->name, in[0], in[1], in[2], in[3], has[0], has[1], has[2], has[3]);
    if (of_classes(&run->set)) return check_classes(run, info, out);
    if (out[0] == info->targets && memcmp(out + 1, info->target_ext, sizeof(info->target_ext)) == 0) return HALO_OK;
    if (!hl_target_volumes(info) && out[1] == 1 && out[2] == 1 && out[3] == 1)
        return hl_fail(run->ctx, HALO_ERR_SHAPE, "network '%s' has %" PRId64 " output%s, the data has %d target%s", run->net->name, out[0], HL_S(out[0]),
                       info->targets, HL_S(info->targets));
    return hl_fail(run->ctx, HALO_ERR_SHAPE,
                   "network '%s' ends in %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 ", the targets are %d x %" PRId64 " x %" PRId64 " x %" PRId64
                   " (C D H W)",
                   run->net->name, out[0], out[1], out[2], out[3], info->targets, info->target_ext[0], info->target_ext[1], info->target_ext[2]);
}

/* The mean of one value is that value: a norm would make everything 0, and nothing before it could learn. Norms of single samples were looked at when the network was
 * made; frozen ones do not measure. */
static halo_status check_norms(const hl_run *run)
{
    if (run->set.batch / run->set.train.accumulate > 1 || run->set.freeze.n > 0) return HALO_OK;
    for (int i = 0; i < run->net->layers; i++) {
        const hl_layer *l = &run->net->layer[i];
        if (l->kind != HL_LAYER_NORM || hl_per_sample(l) || l->out[1] * l->out[2] * l->out[3] > 1) continue;
        return hl_fail(run->ctx, HALO_ERR_SHAPE, "layer '%s': of input %" PRId64 " x 1 x 1 x 1 (C D H W) and 1 sample each statistic would be that of one value: set a larger 'batch'", l->name,
                       l->out[0]);
    }
    return HALO_OK;
}

static halo_status make_network(hl_run *run)
{
    const int64_t unknown[4] = {0, 0, 0, 0};
    const hl_source_info *info = NULL;
    for (int split = HL_SPLITS - 1; split >= 0; split--)
        if (run->source[split]) info = &run->source[split]->info;
    hl_source *looked = info ? NULL : hl_run_look(run);
    if (looked) info = &looked->info;
    const char *idle = run->set.network_text ? NULL : key_of_another(&run->set);
    if (idle && run->ctx->rank == 0) HL_WARN(run->ctx, "'%s' has no use with network '%s'", idle, run->set.network);
    halo_status st = hl_run_network(run->ctx, &run->set, info ? info->ext : unknown, info && !of_classes(&run->set) ? info->targets : 0, &run->net);
    hl_source_close(looked);
    HL_TRY(st);
    for (int split = 0; split < HL_SPLITS; split++)
        if (run->source[split]) HL_TRY(check_data(run, &run->source[split]->info));
    return HALO_OK;
}

/* -------------------------------------------------------------------------------------------------- model, programs */

hl_compile_options hl_run_compile_options(const hl_settings *set, bool training)
{
    static const halo_layout layouts[] = {HALO_LAYOUTS, HALO_NCDHW, HALO_NDHWC, HALO_NCDHW8C, HALO_NCDHW16C};
    hl_compile_options o = {.batch = set->batch / set->train.accumulate, .training = training, .accumulate = set->train.accumulate > 1, .loss = (halo_loss)set->loss,
                            .huber_delta = set->huber_delta, .class_weights = &set->class_weights, .ignores = set->ignore_label >= 0, .ignore = set->ignore_label, .plan = set->plan == HL_SET_PLAN_FIXED ? HL_PLAN_FIXED : HL_PLAN_MEASURE,
                            .memory_limit = set->memory_limit > 0 ? (size_t)set->memory_limit : 0, .slabs = (int)hl_max64(0, set->memory_slabs), .layout = layouts[set->layout],
                            .split_until = set->parallel.spatial_until};
    return o;
}

static hl_scaling scaling_of(const hl_settings *set)
{
    static const hl_scaling_rule rules[] = {HL_SCALING_NONE, HL_SCALING_NONE, HL_SCALING_BACKOFF, HL_SCALING_LOGMAX};
    hl_scaling s = {.rule = rules[set->optimizer.loss_scale], .start = exp2(floor(log2(set->optimizer.loss_scale_start))), .every = set->optimizer.loss_scale_every};
    if (set->optimizer.loss_scale == HL_LOSS_SCALE_AUTO && set->precision == HL_PRECISION_F16) s.rule = HL_SCALING_BACKOFF;
    return s;
}

hl_optim_spec hl_run_optim_spec(const hl_settings *set)
{
    hl_optim_spec o = {.weight_decay = set->optimizer.weight_decay, .dense_decay = set->optimizer.dense_decay,
                       .clip_norm = set->optimizer.clip_norm > 0 ? set->optimizer.clip_norm : 0, .freeze = &set->freeze,
                       .scaling = scaling_of(set)};
    o.update = (halo_update_params){.kind = (halo_optimizer)set->optimizer.name, .larc = (halo_larc)set->optimizer.larc,
                                    .momentum = set->optimizer.momentum, .beta1 = set->optimizer.beta1, .beta2 = set->optimizer.beta2,
                                    .eps = set->optimizer.epsilon, .lr_factor = 1, .trust = set->optimizer.trust,
                                    .larc_zero = 1.0 / 16000};
    return o;
}

static hl_schedule make_schedule(const hl_settings *set)
{
    hl_schedule s = {.shape = (hl_schedule_shape)set->schedule.name, .peak = hl_scaled_rate((hl_rate_rule)set->schedule.scale, set->optimizer.lr, (double)set->batch, (double)set->schedule.base_batch), .end = set->schedule.end,
                     .power = set->schedule.power, .factor = set->schedule.factor, .warmup = set->schedule.warmup,
                     .warmup_start = set->schedule.warmup_start,
                     .length = set->schedule.epochs > 0 ? set->schedule.epochs : (double)set->train.epochs};
    for (int i = 0; i < set->schedule.at.n && i < HL_BOUNDARIES_MAX; i++) s.boundary[s.boundaries++] = strtod(set->schedule.at.word[i], NULL);
    return s;
}

static hl_compile_options options_of(const hl_run *run, bool training)
{
    hl_compile_options o = hl_run_compile_options(&run->set, training);
    o.batch = hl_run_part(run);
    o.memory_limit = training ? run->program_limit[0] : run->program_limit[1];
    o.memory_beside = o.memory_limit > 0 && (size_t)run->set.memory_limit > o.memory_limit ? (size_t)run->set.memory_limit - o.memory_limit : 0;
    o.grid = run->grid;
    o.team = run->ctx->ranks > 1 ? run->team : NULL;
    o.link = run->link;
    return o;
}

/* Measured choices of implementations are kept in the run directory, so that a resumed run is the same run. */
static halo_status compile_with_cache(hl_run *run, bool training, const char *after, hl_program **program)
{
    hl_compile_options o = options_of(run, training);
    bool kept = *run->set.output && !run->set.check;
    bool shared = run->ctx->ranks == 1 || (kept && !hl_grid_split(&run->grid)); /* all ranks take the same measured choices, from one file and for one shape */
    if (!shared) o.plan = HL_PLAN_FIXED;
    char *cache = NULL;
    if (kept && o.plan == HL_PLAN_MEASURE) {
        HL_TRY(hl_make_dirs(run->ctx, run->set.output));
        HL_TRY(hl_path_join(run->ctx, run->set.output, "plan.json", &cache));
    }
    o.plan_cache = cache;
    o.after = after;
    halo_status st = hl_compile(run->model, &o, program);
    free(cache);
    return st == HALO_ERR_NOMEM && o.memory_limit > 0 ? HALO_ERR_USAGE : st; /* a limit was asked for */
}

static halo_status outline(hl_run *run, bool training, hl_program **program)
{
    hl_compile_options o = options_of(run, training);
    o.only_ask = run->only_ask;
    o.least = &run->least;
    o.plan = HL_PLAN_FIXED;
    o.team = NULL;
    o.after = "fit";
    return hl_compile(run->model, &o, program);
}

halo_status hl_run_outline(hl_run *run, hl_program **program) { return outline(run, true, program); }

static void forget_programs(hl_run *run)
{
    hl_program_destroy(run->train);
    hl_program_destroy(run->eval);
    run->train = run->eval = NULL;
}

static void forget_outlines(hl_run *run)
{
    forget_programs(run);
    hl_model_destroy(run->model);
    run->model = NULL;
}

/* Evaluation is to lie in the memory of training's activations; what it has beside is counted already (hl_run_memory). */
static size_t evaluation_limit(const hl_run *run)
{
    hl_program_info i;
    hl_program_info_get(run->train, &i);
    return i.peak_bytes - i.scratch_bytes - i.image_bytes + run->eval_beside;
}

/* Programs that take no memory, within the limits. */
static halo_status make_outline_programs(hl_run *run)
{
    HL_TRY(outline(run, true, &run->train));
    if (run->program_limit[0] > 0) run->program_limit[1] = evaluation_limit(run);
    return run->source[HL_VALIDATION] ? outline(run, false, &run->eval) : HALO_OK;
}

/* Images, workspace and steps of evaluation's program. */
static size_t beside_of(const hl_program *eval)
{
    hl_program_info i = {.image_bytes = 0};
    if (eval) hl_program_info_get(eval, &i);
    return i.image_bytes + i.scratch_bytes + i.record_bytes;
}

static halo_status less_than_nothing(const hl_run *run, size_t limit, size_t beside)
{
    if (run->only_ask) return HALO_ERR_NOMEM;
    return hl_fail(run->ctx, HALO_ERR_USAGE, "I/O, messages and the process alone need %.1f MiB, without any network; 'memory.limit' is %.1f MiB", (double)beside / 1048576,
                   (double)limit / 1048576);
}

/* A rank may use `limit`: what is left of it for a program's weights, values and workspace. All ranks keep to what the one has that has least, so that they
 * compile the same programs. Collective unless `alone`. */
static halo_status set_program_limit(hl_run *run, size_t limit, bool alone)
{
    hl_memory m;
    hl_program_info i;
    hl_run_memory(run, &m);
    hl_program_info_get(run->train, &i);
    run->eval_beside = beside_of(run->eval);
    const size_t total = hl_memory_total(&m);
    double x[2] = {(double)total - (double)(i.peak_bytes + i.record_bytes), total > limit}; /* beside the program; too much */
    if (!alone) HL_TRY(hl_comm_max(run->ctx, x, 2));
    if (x[1] == 0) return HALO_OK;
    if (x[0] >= (double)limit) return less_than_nothing(run, limit, (size_t)x[0]);
    run->program_limit[0] = limit - (size_t)fmax(0, x[0]);
    return HALO_OK;
}

/* Once more with the limit, where without one it is exceeded. Collective unless `alone`. */
static halo_status make_outlines(hl_run *run, size_t limit, bool alone)
{
    hl_optim_spec optim = hl_run_optim_spec(&run->set);
    if (run->resident == 0) run->resident = hl_rss_bytes();
    run->program_limit[0] = run->program_limit[1] = 0;
    halo_status st = hl_model_outline(run->ctx, run->dev, run->net, &optim, &run->model);
    if (st == HALO_OK) st = make_outline_programs(run);
    if (!alone) st = hl_agree(run->ctx, st);
    if (st == HALO_OK && limit > 0) st = set_program_limit(run, limit, alone);
    if (st != HALO_OK || run->program_limit[0] == 0) return st;
    forget_programs(run);
    return make_outline_programs(run);
}

/* The limit with which it would fit goes to the head of what would help. */
static halo_status offer_limit(hl_run *run)
{
    hl_forecast f = run->forecast;
    const size_t share = f.bound.bytes / (size_t)f.locals, round = share > (size_t)1 << 33 ? (size_t)1 << 27 : (size_t)1 << 20, limit = share / round * round;
    hl_memory m;
    if (f.fits || run->set.memory_limit > 0 || limit == 0) return HALO_OK;
    run->only_ask = true;
    const bool can = make_outlines(run, limit, true) == HALO_OK;
    run->only_ask = false;
    if (can) hl_run_memory(run, &m);
    if (can && hl_memory_total(&m) <= limit) hl_forecast_help(&run->forecast, limit);
    forget_outlines(run);
    run->program_limit[0] = run->program_limit[1] = 0;
    return HALO_OK;
}

/* What training will need, before anything large is allocated. */
static halo_status forecast(hl_run *run)
{
    const size_t limit = run->set.memory_limit > 0 ? (size_t)run->set.memory_limit : 0;
    halo_status mine = make_outlines(run, limit, false), st = hl_agree(run->ctx, limit > 0 && mine == HALO_ERR_NOMEM ? HALO_ERR_USAGE : mine); /* a limit was asked for */
    if (st == HALO_OK) st = hl_run_forecast(run, &run->forecast);
    forget_outlines(run);
    if (st == HALO_OK) st = offer_limit(run);
    return st == HALO_OK && !run->set.check ? hl_agree(run->ctx, hl_run_refuse(run, &run->forecast)) : st;
}

static void tell_anew(const hl_run *run)
{
    hl_program_info i;
    hl_str names = {0};
    hl_program_info_get(run->train, &i);
    if (i.slabs == 0 || run->ctx->rank != 0) return;
    hl_program_anew(run->train, 6, &names);
    HL_INFO(run->ctx, "memory limit: %s %s made anew in %d slab%s, not stored: %.0f MiB instead of %.0f, %.1f %% more operations", names.s ? names.s : "",
            strchr(names.s ? names.s : "", ',') ? "are" : "is", i.slabs, HL_S(i.slabs), (double)i.peak_bytes / 1048576, (double)i.plain_bytes / 1048576,
            100 * (i.flops_step / i.plain_flops - 1));
    hl_str_free(&names);
}

static halo_status make_programs(hl_run *run, hl_need need, const char *after)
{
    hl_optim_spec optim = hl_run_optim_spec(&run->set);
    bool look = after && strcmp(after, "bind") != 0;
    HL_TRY((look ? hl_model_outline : hl_model_create)(run->ctx, run->dev, run->net, need == HL_NEED_TRAINING ? &optim : NULL, &run->model));
    if (need == HL_NEED_TRAINING) HL_TRY(compile_with_cache(run, true, after ? after : "fit", &run->train));
    if (need == HL_NEED_EVALUATION || run->source[HL_VALIDATION]) HL_TRY(compile_with_cache(run, false, after ? after : "fit", &run->eval));
    hl_give_back(); /* what measuring used */
    if (run->train && !after) tell_anew(run);
    if (run->train && !after) HL_TRY(hl_program_bind(run->train, NULL));
    return run->eval && !after ? hl_program_bind(run->eval, run->train) : HALO_OK;
}

/* Rank 0 measures and keeps its choices in the run directory first, so that all ranks make the same. Ranks that hold samples together compile together, since
 * their exchanges are made by all of them. */
static halo_status make_programs_in_turn(hl_run *run, hl_need need, const char *after)
{
    bool together = hl_grid_split(&run->grid);
    if (need == HL_NEED_NETWORK) return HALO_OK;
    if (need == HL_NEED_TRAINING && !after && run->source[HL_TRAIN]) {
        HL_TRY(forecast(run));
        if (!run->forecast.fits && run->set.check) return HALO_OK;
    }
    HL_AGREE(run->ctx, together || run->ctx->rank == 0 ? make_programs(run, need, after) : HALO_OK);
    HL_AGREE(run->ctx, !together && run->ctx->rank != 0 ? make_programs(run, need, after) : HALO_OK);
    return need == HL_NEED_TRAINING && !after ? hl_run_make_reducer(run) : HALO_OK;
}

/* What each rank does by itself: data, network, device. */
static halo_status open_all(hl_run *run, hl_need need, unsigned splits)
{
    HL_TRY(apply_to_context(run->ctx, &run->set));
    HL_TRY(open_sources(run, splits));
    HL_TRY(make_network(run));
    if (need == HL_NEED_TRAINING) HL_TRY(check_norms(run));
    if (need == HL_NEED_NETWORK) return HALO_OK;
    HL_TRY(hl_context_device(run->ctx, &run->dev));
    return need == HL_NEED_TRAINING ? hl_run_check_ranks(run) : HALO_OK;
}

static halo_status create(halo_context *ctx, const hl_settings *set, hl_need need, unsigned splits, const char *after, hl_run **out)
{
    hl_run *run;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*run), "a run", &run));
    run->ctx = ctx;
    run->set = *set;
    run->at.best = INFINITY;
    run->schedule = make_schedule(set);
    run->program_limit[0] = run->program_limit[1] = set->memory_limit > 0 ? (size_t)set->memory_limit : 0;
    halo_status st;
    HL_GOTO(st, hl_run_make_grid(run, after != NULL), destroy);
    HL_GOTO(st, hl_agree(ctx, open_all(run, need, splits)), destroy);
    if (!after && run->dev) HL_GOTO(st, hl_link_open(ctx, run->dev, &run->link), destroy);
    if (splits) HL_GOTO(st, hl_run_standardise(run), destroy);
    HL_GOTO(st, make_programs_in_turn(run, need, after), destroy);
    *out = run;
    return HALO_OK;
destroy:
    hl_run_destroy(run);
    return st;
}

halo_status hl_run_create(halo_context *ctx, const hl_settings *set, hl_need need, unsigned splits, hl_run **run)
{
    return create(ctx, set, need, splits, NULL, run);
}

halo_status hl_run_explain(halo_context *ctx, const hl_settings *set, const char *after, hl_run **run)
{
    return create(ctx, set, HL_NEED_TRAINING, 0, after, run);
}

void hl_run_destroy(hl_run *run)
{
    if (!run) return;
    hl_reducer_destroy(run->reducer);
    hl_shapes_free(run->shapes);
    hl_program_destroy(run->train);
    hl_program_destroy(run->eval);
    hl_model_destroy(run->model);
    halo_network_destroy(run->net);
    for (int split = 0; split < HL_SPLITS; split++) hl_source_close(run->source[split]);
    if (run->link) run->dev->ops->unlink(run->dev, run->link);
    hl_team_destroy(run->team);
    if (run->lock > 0) close(run->lock);
    free(run->seat);
    free(run->counted);
    free(run);
}

halo_status hl_run_observe(hl_run *run, hl_observer call, void *user)
{
    HL_BUG_UNLESS(run->observers < HL_OBSERVERS_MAX);
    run->observer[run->observers].call = call;
    run->observer[run->observers].user = user;
    run->observers++;
    return HALO_OK;
}

void hl_run_tell(hl_run *run, const hl_event *event)
{
    for (int i = 0; i < run->observers && run->ctx->rank == 0; i++) run->observer[i].call(run->observer[i].user, event);
}
