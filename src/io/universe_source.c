/* SPDX-License-Identifier: Apache-2.0 */
/*
 * universe_source.c -- CosmoUniverse as published: a file per universe with `full` [D, H, W, C] (counts of
 * particles, a channel per redshift) and `unitPar` [T] in -1..1; `physPar`, `namePar`, `redshifts` may be
 * absent. A universe is cut into sub-volumes numbered x-major, as the published preparation numbers them:
 * sample = universe * crops + (i * nh + j) * nw + k.
 *
 * What -1 and +1 of a target stand for is taken from, in this order: the attributes low and high of unitPar
 * (this project's generator writes them); the line through (unitPar, physPar) of all files, where it fits;
 * the published ranges, where there are four targets.
 *
 * All files are opened once at the start, so that a bad one is met before any training, not in the middle of
 * the night.
 */
#include "io/source.h"

#include <pthread.h>
#include <stdio.h>

typedef struct universe_source {
    hl_source base;
    hl_files files;
    hl_crops crops;
    float *y;             /* [files, T] */
    pthread_mutex_t lock; /* guards what follows */
    hl_open_files open;
    char *scratch;
    size_t capacity;
} universe_source;

/* ------------------------------------------------------------------------------------------------ reading */

static halo_status read_cut(hl_source *source, int64_t sample, const hl_cut *cut, void *x)
{
    universe_source *u = (universe_source *)source;
    int64_t file = sample / u->crops.count;
    hl_cut in_file = hl_crop_cut(&u->crops, sample % u->crops.count, cut);
    hl_volume *v;
    pthread_mutex_lock(&u->lock);
    halo_status st = hl_open_files_get(&u->open, file, &v);
    if (st == HALO_OK)
        st = hl_volume_read(v, 0, source->info.ext[0], &in_file, source->info.dtype, x, &u->scratch, &u->capacity);
    pthread_mutex_unlock(&u->lock);
    return st;
}

static halo_status read_target(hl_source *source, int64_t sample, const hl_cut *cut, float *y)
{
    const universe_source *u = (const universe_source *)source;
    (void)cut;
    if (u->y) memcpy(y, u->y + sample / u->crops.count * source->info.targets, (size_t)source->info.targets * sizeof(*y));
    return HALO_OK;
}

static int64_t group_of(hl_source *source, int64_t sample)
{
    return sample / ((universe_source *)source)->crops.count;
}

static void id_of(hl_source *source, int64_t sample, char *out, size_t size)
{
    universe_source *u = (universe_source *)source;
    snprintf(out, size, "%s#%" PRId64, hl_files_name(&u->files, sample / u->crops.count),
             sample % u->crops.count);
}

static void close_source(hl_source *source)
{
    universe_source *u = (universe_source *)source;
    hl_open_files_close(&u->open);
    pthread_mutex_destroy(&u->lock);
    hl_files_free(&u->files);
    free(u->scratch);
    free(u->y);
    hl_source_free(source);
}

static const hl_source_ops universe_ops = {.name = "cosmouniverse",
                                           .read = read_cut,
                                           .target = read_target,
                                           .group_of = group_of,
                                           .id_of = id_of,
                                           .close = close_source};

/* ------------------------------------------------------------------------------------------------ targets */

/* A dataset of `n` numbers as doubles; n < 0: any number up to -n, returned in *found. */
static halo_status read_numbers(hl_h5 *file, const char *name, int64_t n, double *out, int64_t *found)
{
    hl_h5_data *d = NULL;
    int64_t start[HL_H5_RANK] = {0}, most = n < 0 ? -n : n;
    char shape[320];
    void *raw = NULL;
    HL_TRY(hl_h5_data_open(file, name, 0, &d));
    halo_status st = HALO_OK;
    if ((n >= 0 && d->elements != n) || d->elements > most)
        st =
            hl_fail(file->ctx, HALO_ERR_SHAPE, "'%s': dataset '%s' is %s, expected %s%" PRId64 " numbers",
                    file->path, name, hl_h5_describe(d, shape, sizeof(shape)), n < 0 ? "at most " : "", most);
    if (st == HALO_OK) st = hl_aligned(file->ctx, (size_t)d->bytes, name, &raw);
    if (st == HALO_OK) st = hl_h5_read(d, start, d->dim, raw, (size_t)d->bytes);
    if (st == HALO_OK) {
        for (int64_t i = 0; i < d->elements; i++) out[i] = hl_number_value(d->type, raw, i);
        *found = d->elements;
    }
    free(raw);
    hl_h5_data_close(d);
    return st;
}

typedef struct target_reader {
    universe_source *u;
    int64_t targets;
    double *unit, *physical; /* [files, T]; physical NaN where absent */
} target_reader;

enum { TARGETS_MOST = 64 };

static halo_status read_targets(target_reader *r, hl_h5 *file, int64_t index)
{
    double *unit = r->unit + index * r->targets, *physical = r->physical + index * r->targets;
    int64_t n = 0;
    HL_TRY(read_numbers(file, "unitPar", r->targets, unit, &n));
    for (int64_t t = 0; t < r->targets; t++) {
        if (!isfinite(unit[t]))
            return hl_fail(file->ctx, HALO_ERR_NONFINITE,
                           "'%s': dataset 'unitPar': value %" PRId64 " is not finite", file->path, t);
        r->u->y[index * r->targets + t] = (float)unit[t];
        physical[t] = NAN;
    }
    if (hl_h5_has(file, "physPar")) HL_TRY(read_numbers(file, "physPar", r->targets, physical, &n));
    return HALO_OK;
}

/* Fits physical = centre + unit * half through all files; false where it is no line or has no slope. */
static bool fit_line(const target_reader *r, int64_t t, double *centre, double *half)
{
    double su = 0, sp = 0, suu = 0, sup = 0;
    int64_t n = r->u->files.count;
    for (int64_t i = 0; i < n; i++) {
        su += r->unit[i * r->targets + t];
        sp += r->physical[i * r->targets + t];
    }
    su /= (double)n;
    sp /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        double du = r->unit[i * r->targets + t] - su;
        suu += du * du;
        sup += du * (r->physical[i * r->targets + t] - sp);
    }
    *half = sup / suu;
    *centre = sp - *half * su;
    if (!isfinite(*half) || *half == 0) return false;
    for (int64_t i = 0; i < n; i++) {
        double residual = r->physical[i * r->targets + t] - *centre - *half * r->unit[i * r->targets + t];
        if (!(fabs(residual) <= 1e-3 * fabs(*half))) return false;
    }
    return true;
}

static void set_published(hl_source_info *info, bool named)
{
    static const struct {
        const char *name;
        double low, high;
    } published[4] = {
        {"Omega_m", 0.27, 0.33}, {"sigma_8", 0.72, 0.88}, {"N_spec", 0.864, 1.056}, {"H_0", 63, 77}};
    if (info->targets != 4) return;
    for (int t = 0; t < 4; t++) {
        hl_target *x = &info->target[t];
        if (!named) snprintf(x->name, sizeof(x->name), "%s", published[t].name);
        if (strcmp(x->name, published[t].name) != 0 || !isnan(x->low)) continue;
        x->low = published[t].low;
        x->high = published[t].high;
    }
}

static halo_status set_names(universe_source *u, hl_h5 *first, bool *named)
{
    char **name = NULL;
    int64_t n = 0;
    hl_source_info *info = &u->base.info;
    HL_TRY(hl_h5_strings(first, "namePar", NULL, &name, &n));
    *named = n == info->targets;
    for (int t = 0; *named && t < info->targets; t++)
        snprintf(info->target[t].name, sizeof(info->target[t].name), "%s", name[t]);
    free(name);
    return HALO_OK;
}

static halo_status set_ranges(target_reader *r, hl_h5 *first)
{
    hl_source_info *info = &r->u->base.info;
    double low[TARGETS_MOST], high[TARGETS_MOST];
    int64_t lows = 0, highs = 0;
    bool named = false;
    HL_TRY(set_names(r->u, first, &named));
    HL_TRY(hl_h5_attr_numbers(first, "unitPar", "low", TARGETS_MOST, low, &lows));
    HL_TRY(hl_h5_attr_numbers(first, "unitPar", "high", TARGETS_MOST, high, &highs));
    for (int t = 0; t < info->targets; t++) {
        double centre, half;
        if (lows == info->targets && highs == info->targets && isfinite(low[t]) && isfinite(high[t])) {
            info->target[t].low = low[t];
            info->target[t].high = high[t];
        } else if (fit_line(r, t, &centre, &half)) {
            info->target[t].low = centre - half;
            info->target[t].high = centre + half;
        }
    }
    set_published(info, named);
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------ opening */

static halo_status check_equal(const hl_volume *v, const int64_t ext[5], hl_number type, const char *first)
{
    char shape[320];
    if (memcmp(v->ext, ext, 5 * sizeof(*ext)) == 0 && v->data->type.kind == type.kind &&
        v->data->type.bytes == type.bytes)
        return HALO_OK;
    return hl_fail(v->data->file->ctx, HALO_ERR_SHAPE,
                   "'%s': dataset 'full' is %s, expected [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                   "] %s as in '%s'",
                   v->data->file->path, hl_h5_describe(v->data, shape, sizeof(shape)), ext[2], ext[3], ext[4],
                   ext[1], hl_number_name(type), hl_base_name(first));
}

static halo_status open_first(universe_source *u, const hl_source_options *o)
{
    hl_volume *v;
    char shape[384];
    HL_TRY(hl_open_files_get(&u->open, 0, &v));
    snprintf(shape, sizeof(shape), "dataset 'full' ");
    hl_h5_describe(v->data, shape + strlen(shape), sizeof(shape) - strlen(shape));
    HL_TRY(hl_source_fit(&u->base, o, u->files.path[0], shape, v->ext[1], v->ext + 2, &u->crops));
    u->base.info.dtype = hl_number_dtype(v->data->type);
    hl_source_warn_waste(&u->base, v, &u->crops);
    double unit[TARGETS_MOST];
    int64_t n = 0;
    if (o->label && !hl_h5_has(v->data->file, "unitPar")) return HALO_OK; /* to be predicted */
    HL_TRY(read_numbers(v->data->file, "unitPar", -TARGETS_MOST, unit, &n));
    return hl_source_targets(&u->base, o, u->files.path[0], "unitPar", n);
}

static halo_status open_all(universe_source *u)
{
    hl_volume *v;
    target_reader r = {.u = u, .targets = u->base.info.targets};
    halo_status st = HALO_OK;
    size_t numbers = (size_t)(u->files.count * r.targets);
    HL_TRY(hl_open_files_get(&u->open, 0, &v));
    int64_t ext[5];
    hl_number type = v->data->type;
    memcpy(ext, v->ext, sizeof(ext));
    HL_GOTO(st, hl_calloc(u->base.ctx, numbers, sizeof(float), "targets", &u->y), done);
    HL_GOTO(st, hl_calloc(u->base.ctx, numbers, sizeof(double), "targets", &r.unit), done);
    HL_GOTO(st, hl_calloc(u->base.ctx, numbers, sizeof(double), "targets", &r.physical), done);
    for (int64_t i = 0; i < u->files.count; i++) {
        HL_GOTO(st, hl_open_files_get(&u->open, i, &v), done);
        HL_GOTO(st, check_equal(v, ext, type, u->files.path[0]), done);
        HL_GOTO(st, hl_h5_claim(v->data, v->data->bytes), done);
        if (r.targets > 0) HL_GOTO(st, read_targets(&r, v->data->file, i), done);
    }
    HL_GOTO(st, hl_open_files_get(&u->open, 0, &v), done);
    if (r.targets > 0) st = set_ranges(&r, v->data->file);
done:
    free(r.unit);
    free(r.physical);
    return st;
}

static void describe(universe_source *u, const char *path)
{
    hl_source_info *info = &u->base.info;
    const int64_t *b = u->crops.box, *e = u->crops.ext;
    int at = snprintf(info->description, sizeof(info->description),
                      "%" PRId64 " universe%s of %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64
                      " %s in '%.100s' (CosmoUniverse)",
                      u->files.count, HL_S(u->files.count), b[0], b[1], b[2], info->ext[0],
                      hl_number_name(hl_dtype_number(info->dtype)), path);
    if (u->crops.count > 1 && at > 0 && (size_t)at < sizeof(info->description))
        snprintf(info->description + at, sizeof(info->description) - (size_t)at,
                 ", %" PRId64 " crops of %" PRId64 " x %" PRId64 " x %" PRId64 " each", u->crops.count, e[0],
                 e[1], e[2]);
}

static halo_status set_up(universe_source *u, const hl_source_options *o)
{
    int64_t first, count;
    hl_source_info *info = &u->base.info;
    HL_TRY(hl_files_find(u->base.ctx, o->path, &u->files));
    HL_TRY(hl_files_set_names(&u->files));
    HL_TRY(hl_source_part(u->base.ctx, o, u->files.count, &first, &count));
    hl_files_keep(&u->files, first, count);
    HL_TRY(open_first(u, o));
    HL_TRY(open_all(u));
    info->groups = u->files.count;
    info->samples = u->files.count * u->crops.count;
    info->whole_periodic = memcmp(u->crops.ext, u->crops.box, sizeof(u->crops.ext)) == 0;
    describe(u, o->path);
    return HALO_OK;
}

halo_status hl_universe_open(halo_context *ctx, const hl_source_options *o, hl_source **source)
{
    universe_source *u = NULL;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*u), "a source", &u));
    u->base.ops = &universe_ops;
    u->base.ctx = ctx;
    hl_open_files_init(&u->open, &u->files, "full", "dhwc", &u->base.count);
    pthread_mutex_init(&u->lock, NULL); /* the default kind cannot fail on Linux */
    halo_status st = set_up(u, o);
    if (st == HALO_OK)
        *source = &u->base;
    else
        close_source(&u->base);
    return st;
}
