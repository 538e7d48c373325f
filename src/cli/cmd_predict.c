/* SPDX-License-Identifier: Apache-2.0 */
/* halo predict */
#include "cli/commands.h"
#include "cli/predict_plot.h"
#include "cli/restore.h"
#include "base/file.h"

static const hl_option options[] = {
    HL_RESTORE_OPTIONS,
    {.name = "out", .letter = 'o', .type = HL_OPT_TEXT, .arg = "FILE", .help = "where to write; default: predictions.csv or predictions.h5 in the run directory or here; of NIfTI images, and of volumes that differ in their extents, a directory, default predictions"},
    {.name = "plot", .type = HL_OPT_TEXT, .arg = "DIR", .help = "pictures, too, of predicted volumes: input, truth and prediction side by side, PNG"},
    {.name = "plots", .type = HL_OPT_INT, .arg = "N", .help = "of so many samples; default: 8", .low = 1, .needs = "plot"},
};

/* Where predictions go: a table in memory for numbers, a file that grows for volumes. Of rank 0. */
typedef struct output {
    hl_invocation *inv;
    char *path;
    hl_str text;
    hl_volumes *volumes;
    hl_plotter *plotter; /* NULL: none */
    bool images;     /* each volume as an image in the place of its scan */
    bool any;        /* volumes have extents of their own */
    bool arrays;     /* which differ: an NPY file each */
    int64_t sample;  /* that is being written */
    float *physical; /* a part of it */
    size_t room;
} output;

/* RFC 4180: quoted, quotes doubled. */
static void quoted(hl_str *out, const char *text, const char *tail)
{
    hl_str_add(out, "\"");
    for (; *text; text++) hl_str_addn(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    hl_str_addf(out, "%s\"", tail);
}

static void header(hl_str *out, const hl_source *source)
{
    hl_str_add(out, "id,group");
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < source->info.targets; i++) {
            hl_str_add(out, ",");
            quoted(out, source->info.target[i].name, part ? "_predicted" : "");
        }
    hl_str_add(out, "\n");
}

static halo_status row(void *user, hl_source *source, const hl_prediction *p)
{
    hl_str *out = &((output *)user)->text;
    char id[512];
    source->ops->id_of(source, p->sample, id, sizeof(id));
    quoted(out, id, "");
    hl_str_addf(out, ",%" PRId64, source->ops->group_of(source, p->sample));
    for (int i = 0; i < source->info.targets; i++) {
        hl_str_add(out, ",");
        if (!source->info.unlabelled) hl_str_addf(out, "%.8g", hl_physical(&source->info.target[i], (double)p->truth[i]));
    }
    for (int i = 0; i < source->info.targets; i++) hl_str_addf(out, ",%.8g", hl_physical(&source->info.target[i], (double)p->value[i]));
    hl_str_add(out, "\n");
    return out->failed ? hl_fail(source->ctx, HALO_ERR_NOMEM, "out of memory: predictions") : HALO_OK;
}

static halo_status begin_volume(output *o, hl_source *source, int64_t sample)
{
    char id[512];
    int64_t ext[3];
    if (o->sample == sample) return HALO_OK;
    o->sample = sample;
    source->ops->id_of(source, sample, id, sizeof(id));
    hl_source_extents(source, sample, ext);
    HL_TRY(hl_volumes_add(o->volumes, id, o->images ? source->ops->image_of(source, sample) : NULL, source->ops->group_of(source, sample), o->any ? ext : NULL));
    hl_window_place place;
    bool window = source->ops->place_of && source->ops->place_of(source, sample, &place);
    return window ? hl_volumes_place(o->volumes, &place) : HALO_OK;
}

static halo_status box(void *user, hl_source *source, const hl_prediction *p)
{
    output *o = user;
    int64_t cells = p->ext[1] * p->ext[2] * p->ext[3];
    HL_TRY(begin_volume(o, source, p->sample));
    if (o->plotter) HL_TRY(hl_plotter_box(o->plotter, p));
    HL_TRY(hl_grow(source->ctx, &o->physical, &o->room, (size_t)(p->ext[0] * cells), sizeof(float), "a predicted volume"));
    for (int64_t i = 0; i < p->ext[0] * cells; i++)
        o->physical[i] = (float)hl_physical(&source->info.target[p->lo[0] + i / cells], (double)p->value[i]);
    return hl_volumes_put(o->volumes, p->lo, p->ext, o->physical);
}

static halo_status out_path(hl_invocation *inv, const hl_run *run, const char *name, char **path)
{
    const char *given = hl_option_text(inv, "out");
    if (given) return hl_strdup(inv->ctx, given, path);
    return *run->set.output ? hl_path_join(inv->ctx, run->set.output, name, path) : hl_strdup(inv->ctx, name, path);
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), k = strlen(tail);
    return n >= k && strcmp(s + n - k, tail) == 0;
}

/* Of NIfTI images whose volumes are predicted as a whole, unless an HDF5 file is asked for. */
static bool makes_images(const output *o, hl_source *source)
{
    const hl_source_info *i = &source->info;
    const char *given = hl_option_text(o->inv, "out");
    bool images = source->ops->image_of && hl_target_volumes(i) && memcmp(i->ext + 1, i->target_ext, sizeof(i->target_ext)) == 0;
    for (int64_t s = 0; s < i->samples && images; s++) images = source->ops->image_of(source, s) != NULL;
    return images && !(given && (ends_with(given, ".h5") || ends_with(given, ".hdf5")));
}

static halo_status begin_plots(output *o, hl_source *source)
{
    const char *directory = hl_option_text(o->inv, "plot");
    if (!directory) return HALO_OK;
    if (!hl_target_volumes(&source->info)) return hl_fail(o->inv->ctx, HALO_ERR_USAGE, "'--plot' is for networks that end in a volume");
    int64_t most = hl_given(o->inv, "plots") ? o->inv->number[hl_option_index(o->inv->command, "plots")] : 8;
    return o->inv->ctx->rank == 0 ? hl_plotter_open(o->inv->ctx, directory, most, source, &o->plotter) : HALO_OK;
}

static halo_status end_plots(output *o, bool write)
{
    hl_plotter *plotter = o->plotter;
    o->plotter = NULL;
    return hl_plotter_close(plotter, write);
}

/* One HDF5 file holds volumes of the same extents: others are arrays, a file each. */
static halo_status choose_arrays(output *o, hl_source *source)
{
    int64_t first[3], ext[3];
    char id[160];
    const char *given = hl_option_text(o->inv, "out");
    hl_source_extents(source, 0, first);
    for (int64_t s = 1; s < source->info.samples && !o->arrays; s++) {
        hl_source_extents(source, s, ext);
        o->arrays = memcmp(ext, first, sizeof(ext)) != 0;
        if (o->arrays) source->ops->id_of(source, s, id, sizeof(id));
    }
    if (!o->arrays || !given || (!ends_with(given, ".h5") && !ends_with(given, ".hdf5"))) return HALO_OK;
    return hl_fail(source->ctx, HALO_ERR_SHAPE,
                   "'%s' has [%" PRId64 ", %" PRId64 ", %" PRId64 "] cells, the first volume [%" PRId64 ", %" PRId64 ", %" PRId64
                   "]: one HDF5 file cannot hold the predictions of both; '--out' can be a directory",
                   id, ext[0], ext[1], ext[2], first[0], first[1], first[2]);
}

static halo_status begin(output *o, const hl_run *run, hl_source *source)
{
    const hl_source_info *info = &source->info;
    bool volumes = hl_target_volumes(info);
    o->images = makes_images(o, source);
    HL_TRY(begin_plots(o, source));
    if (hl_run_patches(&run->set) && !o->images) HL_TRY(choose_arrays(o, source));
    HL_TRY(out_path(o->inv, run, o->images || o->arrays ? "predictions" : volumes ? "predictions.h5" : "predictions.csv", &o->path));
    if (run->ctx->rank != 0) return HALO_OK;
    if (*run->set.output && !hl_option_text(o->inv, "out")) HL_TRY(hl_make_dirs(run->ctx, run->set.output));
    header(&o->text, source);
    if (!volumes) return HALO_OK;
    int64_t ext[4] = {info->targets, info->target_ext[0], info->target_ext[1], info->target_ext[2]};
    o->any = hl_run_patches(&run->set);
    if (o->any) hl_source_extents(source, 0, ext + 1);
    if (o->images) {
        HL_TRY(hl_volumes_create_images(run->ctx, o->path, ext, info->target, &o->volumes));
        if (run->set.data.spacing.n) hl_volumes_resample(o->volumes);
        return HALO_OK;
    }
    return (o->arrays ? hl_volumes_create_arrays : hl_volumes_create)(run->ctx, o->path, ext, info->target, &o->volumes);
}

/* What is there when all went well, and else nothing. */
static halo_status end(output *o)
{
    halo_context *ctx = o->inv->ctx;
    HL_TRY(end_plots(o, true));
    hl_volumes *volumes = o->volumes;
    o->volumes = NULL;
    if (ctx->rank != 0) return HALO_OK;
    return volumes ? hl_volumes_close(volumes, true) : hl_file_write(ctx, o->path, o->text.s, o->text.len);
}

static int print(hl_invocation *inv, const output *o, const hl_evaluation *e)
{
    hl_json j = {0};
    HL_INFO(inv->ctx, "%" PRId64 " prediction%s written to '%s'", e->items, HL_S(e->items), o->path);
    if (!inv->json) return HL_EXIT_OK;
    hl_json_object(&j, NULL);
    hl_json_string(&j, "path", o->path);
    hl_json_int(&j, "samples", e->items);
    hl_json_end_object(&j);
    return hl_print_json(inv, &j);
}

static halo_status predict_run(hl_invocation *inv, hl_run *run, hl_split split)
{
    output o = {.inv = inv, .sample = -1};
    hl_evaluation e = {0};
    hl_source *source = run->source[split];
    halo_status st;
    HL_GOTO(st, hl_agree(inv->ctx, begin(&o, run, source)), drop);
    HL_GOTO(st, hl_run_evaluate(run, split, NULL, hl_target_volumes(&source->info) ? box : row, &o, &e), drop);
    HL_GOTO(st, hl_agree(inv->ctx, end(&o)), drop);
    if (print(inv, &o, &e) != HL_EXIT_OK) st = HALO_ERR_IO;
drop:
    (void)end_plots(&o, false);
    (void)hl_volumes_close(o.volumes, false);
    hl_evaluation_free(&e);
    free(o.physical);
    free(o.path);
    hl_str_free(&o.text);
    return st;
}

static int predict(hl_invocation *inv)
{
    hl_run *run;
    hl_split split;
    halo_status st = hl_restore(inv, true, &split, &run);
    if (st != HALO_OK) return hl_exit_code(st);
    st = predict_run(inv, run, split);
    hl_run_destroy(run);
    return hl_exit_code(st);
}

const hl_command hl_command_predict = {
    .name = "predict",
    .synopsis = "CONFIG | RUN | CHECKPOINT [key=value ...]",
    .summary = "write a trained network's predictions",
    .details = "Writes predictions.csv: sample id, group (universe), true targets (empty where the data have none) and predicted ones, in physical "
               "units. Where the network ends in a volume: predictions.h5, with the dataset 'prediction' [sample, C, D, H, W]. "
               "Where the samples are NIfTI images: CASE.nii.gz each, with the orientation and place of the scan. Where other volumes differ in their extents (data.patch): ID.npy each. Of a network trained with "
               "a loss of classes the class with the largest logit.",
    .option = options,
    .options = HL_COUNT(options),
    .least = 1,
    .most = -1,
    .json = true,
    .world = true,
    .run = predict,
};
