/* SPDX-License-Identifier: Apache-2.0 */
/* sources.c -- the data of a run: the splits that it needs opened, whole, cut, in patches or in folds, and what a loader does to their samples. */
#include "train/setup.h"
#include "io/folds.h"

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

static const char *path_of(const hl_settings *set, hl_split split)
{
    return split == HL_TRAIN ? set->data.train : split == HL_VALIDATION ? set->data.validation : set->data.test;
}

static halo_status count_universes(hl_run *run, const hl_source_options *o)
{
    hl_source *whole;
    HL_TRY(hl_source_open(run->ctx, o, &whole));
    run->universes = whole->info.groups;
    hl_source_close(whole);
    return HALO_OK;
}

/* With data.split, the universes [first, first + count) of data.train that belong to a split; all of them otherwise. */
static halo_status split_range(hl_run *run, hl_split split, hl_source_options *o, hl_array_options *array)
{
    const hl_words *w = &run->set.data.split;
    double before = 0;
    if (w->n == 0 || o->synthetic || *path_of(&run->set, split == HL_TRAIN ? HL_VALIDATION : split)) return HALO_OK;
    o->path = run->set.data.train;
    if (run->universes == 0) HL_TRY(count_universes(run, o));
    const int64_t groups = run->universes;
    array->hinted = array->same = true;
    for (int i = 0; i < (int)split && i < w->n; i++) before += strtod(w->word[i], NULL);
    double share = (int)split < w->n ? strtod(w->word[split], NULL) : 0;
    o->group_first = (int64_t)floor(before * (double)groups + 0.5);
    o->group_count = (int64_t)floor((before + share) * (double)groups + 0.5) - o->group_first;
    if (o->group_count > 0) return HALO_OK;
    return hl_fail(run->ctx, HALO_ERR_USAGE, "'data.split' leaves no universe for part %d of the %" PRId64 " in '%s'", (int)split + 1, groups, o->path);
}

bool hl_run_of_classes(const hl_settings *set) { return hl_loss_of_classes((halo_loss)set->loss); }

int hl_run_classes(const hl_run *run) { return hl_run_of_classes(&run->set) ? (int)run->net->layer[run->net->layers - 1].out[0] : 0; }

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
        o->classes = hl_run_of_classes(&run->set) ? out[0] : 0;
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
    hl_array_options array;
    hl_run_arrays(run, &array);
    o.array = &array;
    memcpy(o.crop, set->data.crop, sizeof(o.crop));
    hl_run_spacing(set, o.spacing);
    if (hl_run_patches(set)) memcpy(o.patch, set->data.patch, sizeof(o.patch)); /* of any extents */
    else memcpy(o.size, first ? first->info.ext + 1 : set->size, sizeof(o.size));
    o.channels = first ? first->info.ext[0] : set->channels > 0 ? set->channels : 0;
    o.outputs = first ? first->info.targets : set->outputs > 0 && !hl_run_of_classes(set) ? set->outputs : 0;
    if (o.synthetic || set->label) HL_TRY(sizes_of_network(run, &o));
    array.hinted = first != NULL;
    array.same = first && (folded(set, split) || !*o.path); /* out of data.train, as its own */
    HL_TRY(split_range(run, split, &o, &array));
    HL_TRY(hl_source_open(run->ctx, &o, &run->source[split]));
    return take_fold(run, split);
}

halo_status hl_run_open_sources(hl_run *run, unsigned splits)
{
    for (int split = 0; split < HL_SPLITS; split++)
        if (splits & 1u << split) HL_TRY(open_source(run, (hl_split)split));
    return HALO_OK;
}
