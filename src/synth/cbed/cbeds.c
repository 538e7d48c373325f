/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cbeds.c -- crystals and their diffraction in files of halo's own layout (doc/formats.md), `per_file` crystals each: a rank makes every ranks-th file, with all its threads on one crystal.
 *
 * y is stored as a z-score, so that a network's outputs are of order 1: mean and deviation are those of the images of the first crystals of training, which every rank makes for itself before its first file, to the same bits.
 */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/file.h"
#include "base/hash.h"
#include "comm/comm.h"
#include "io/source.h"
#include "io/writer.h"
#include "synth/cbed/cbed.h"
#include "synth/making.h"

enum { MEASURED = 16 };

static const char *const part_name[HL_CBED_PARTS] = {"train", "val", "test"};

typedef struct maker {
    hl_cbed c;
    const hl_cbed_hooks *hooks;
    double begin, mean, std; /* of y, once `measured` */
    bool measured;
    int lock; /* of the directory; -1: none */
    int64_t count[HL_CBED_PARTS], files[HL_CBED_PARTS];
    float *patterns, *image;
    uint16_t *counts;
    hl_cbed_result result;
} maker;

/* -------------------------------------------------------------------------------------------------------------- samples */

/* A constant potential shifts the phase of the whole wave, which no pattern shows: what cannot be known is left out of what is to be learned. */
static void take_mean_off(float *image, int64_t n)
{
    double mean = 0;
    for (int64_t i = 0; i < n; i++) mean += (double)image[i] / (double)n;
    for (int64_t i = 0; i < n; i++) image[i] = (float)((double)image[i] - mean);
}

static halo_status make_image(maker *m, int part, int64_t number, hl_specimen *p, hl_potential **potential)
{
    const hl_cbed_settings *s = m->c.s;
    hl_cbed_draw(&m->c, part, number, p);
    HL_TRY(hl_cbed_potential(&m->c, p, potential));
    halo_status st = hl_potential_image(*potential, s->size, m->c.pixel, s->blur, m->image);
    if (st == HALO_OK && s->reference == 0) take_mean_off(m->image, s->size * s->size);
    if (st != HALO_OK) hl_potential_destroy(*potential);
    return st;
}

static halo_status measure(maker *m)
{
    const int64_t pixels = m->c.s->size * m->c.s->size;
    double mean = 0, squares = 0, n = 0;
    for (int64_t i = 0; i < MEASURED; i++) {
        hl_specimen p;
        hl_potential *v;
        HL_TRY(make_image(m, HL_CBED_TRAIN, i, &p, &v));
        hl_potential_destroy(v);
        for (int64_t k = 0; k < pixels; k++) {
            double x = (double)m->image[k], d = x - mean;
            mean += d / ++n;
            squares += d * (x - mean);
        }
    }
    m->mean = mean;
    m->std = fmax(sqrt(squares / n), 1e-6);
    m->measured = true;
    return HALO_OK;
}

static int64_t group_of(int part, int64_t number) { return ((int64_t)part << 40) + number; }

static halo_status add_sample(maker *m, int part, int64_t number, const hl_specimen *p, int dose, hl_writer *w)
{
    char name[160];
    const void *x = m->patterns;
    int at = snprintf(name, sizeof(name), "%s-%06" PRId64 " %s [%.3g %.3g %.3g] %.2f A", part_name[part], number, p->crystal->name, p->zone[0], p->zone[1], p->zone[2], p->thickness);
    if (dose >= 0) {
        HL_TRY(hl_cbed_count(&m->c, part, number, dose, m->patterns, m->counts));
        x = m->counts;
        snprintf(name + at, sizeof(name) - (size_t)at, " dose %g", m->c.dose[dose]);
    }
    HL_TRY(hl_writer_add(w, x, m->image, group_of(part, number)));
    HL_TRY(hl_writer_column(w, "thickness", p->thickness));
    if (dose >= 0) HL_TRY(hl_writer_column(w, "dose", m->c.dose[dose]));
    m->result.samples++;
    return hl_writer_name(w, name);
}

static halo_status add_crystal(maker *m, int part, int64_t number, hl_writer *w)
{
    const int64_t pixels = m->c.s->size * m->c.s->size;
    hl_specimen p;
    hl_potential *v;
    HL_TRY(make_image(m, part, number, &p, &v));
    halo_status st = hl_cbed_patterns(&m->c, v, m->patterns);
    hl_potential_destroy(v);
    for (int64_t i = 0; i < pixels; i++) m->image[i] = (float)(((double)m->image[i] - m->mean) / m->std);
    for (int d = m->c.doses ? 0 : -1; d < m->c.doses && st == HALO_OK; d++) st = add_sample(m, part, number, &p, d, w);
    return st;
}

/* ---------------------------------------------------------------------------------------------------------------- files */

static halo_status add_notes(const maker *m, hl_writer *w)
{
    const hl_cbed_settings *s = m->c.s;
    double lambda = hl_electron_wavelength(s->kv);
    const struct { const char *object, *name; double value; } notes[] = {
        {"/x", "energy", s->kv},         {"/x", "wavelength", lambda},  {"/x", "aperture", s->aperture},       {"/x", "defocus", s->defocus}, {"/x", "cs", s->cs},
        {"/x", "step", s->step},         {"/x", "scan", (double)s->scan}, {"/x", "pixel_size", 1 / s->box}, {"/y", "pixel_size", m->c.pixel}, {"/y", "blur", s->blur}};
    for (size_t i = 0; i < HL_COUNT(notes); i++) HL_TRY(hl_writer_note(w, notes[i].object, notes[i].name, notes[i].value));
    return HALO_OK;
}

/* Says so of a stop within a crystal. */
static halo_status say_stopped(const maker *m, halo_status st)
{
    if (st != HALO_ERR_STOPPED) return st;
    return hl_fail(m->c.ctx, HALO_ERR_STOPPED, "stopped after %" PRId64 " crystals; the same command continues", m->result.crystals);
}

static int64_t share_of(const maker *m)
{
    int64_t n = 0, file = 0;
    for (int p = 0; p < HL_CBED_PARTS; p++)
        for (int64_t f = 0; f < m->files[p]; f++)
            if (file++ % m->c.ctx->ranks == m->c.ctx->rank) n += hl_min64(m->c.s->per_file, m->count[p] - f * m->c.s->per_file);
    return n;
}

static void report(maker *m, int64_t crystals)
{
    m->result.crystals += crystals;
    m->result.seconds = hl_now() - m->begin;
    if (m->hooks && m->hooks->progress) m->hooks->progress(m->hooks->user, m->result.crystals, share_of(m), m->result.seconds);
}

static halo_status fill(maker *m, int part, int64_t first, int64_t end, hl_writer *w)
{
    HL_TRY(add_notes(m, w));
    for (int64_t i = first; i < end; i++) {
        HL_TRY(say_stopped(m, hl_stop_asked(&m->c.stop) ? HALO_ERR_STOPPED : add_crystal(m, part, i, w)));
        report(m, 1);
    }
    return HALO_OK;
}

static halo_status write_file(maker *m, int part, int64_t first, int64_t end, const char *path)
{
    const hl_cbed_settings *s = m->c.s;
    const hl_target target = {.name = "potential", .low = NAN, .high = NAN, .mean = m->mean, .std = m->std};
    const hl_writer_options o = {.ext = {s->scan * s->scan, 1, s->size, s->size}, .dtype = HALO_F32, .number = m->c.doses ? (hl_number){'u', 2} : (hl_number){'f', 4}, .targets = 1, .target = &target, .target_ext = {1, s->size, s->size}, .level = (int)s->compress};
    hl_writer *w;
    HL_TRY(hl_writer_create(m->c.ctx, path, &o, &w));
    halo_status st = fill(m, part, first, end, w), closed = hl_writer_close(w, st == HALO_OK);
    return st != HALO_OK ? st : closed;
}

/* Whether a file of an earlier run opens and has all its samples. Without the context: what is wrong with it is no error, and other ranks have other files. */
static bool is_whole(const maker *m, const char *path, int64_t crystals)
{
    hl_source *source;
    const hl_source_options o = {.path = path, .format = "auto"};
    bool whole = false;
    if (hl_source_open(NULL, &o, &source) == HALO_OK) {
        whole = source->info.samples == crystals * hl_max64(1, m->c.doses);
        hl_source_close(source);
    }
    if (!whole) HL_WARN(m->c.ctx, "'%s' of an earlier run is not whole: made anew", path);
    return whole;
}

static halo_status make_file(maker *m, int part, int64_t file)
{
    const int64_t first = file * m->c.s->per_file, end = hl_min64(m->count[part], first + m->c.s->per_file);
    hl_str path = {0};
    hl_str_addf(&path, "%s/%s/cbed-%05" PRId64 ".h5", m->c.s->out, part_name[part], file);
    halo_status st = path.failed ? hl_fail(m->c.ctx, HALO_ERR_NOMEM, "out of memory: a file name") : HALO_OK;
    if (st == HALO_OK && hl_file_exists(path.s) && is_whole(m, path.s, end - first)) {
        m->result.skipped += end - first;
        report(m, end - first);
    } else if (st == HALO_OK) {
        if (!m->measured) st = say_stopped(m, measure(m));
        if (st == HALO_OK) st = write_file(m, part, first, end, path.s);
    }
    m->result.files++;
    hl_str_free(&path);
    return st;
}

static halo_status make_files(maker *m)
{
    int64_t file = 0;
    const size_t pixels = (size_t)(m->c.s->size * m->c.s->size), all = pixels * (size_t)(m->c.s->scan * m->c.s->scan);
    HL_TRY(hl_calloc(m->c.ctx, all, sizeof(float), "patterns", &m->patterns));
    HL_TRY(hl_calloc(m->c.ctx, all, sizeof(uint16_t), "counts", &m->counts));
    HL_TRY(hl_calloc(m->c.ctx, pixels, sizeof(float), "an image", &m->image));
    for (int p = 0; p < HL_CBED_PARTS; p++)
        for (int64_t f = 0; f < m->files[p]; f++)
            if (file++ % m->c.ctx->ranks == m->c.ctx->rank) HL_TRY(make_file(m, p, f));
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------ directory */

/* Of what the crystals are, whatever their files are called. */
static uint64_t hash_crystals(const hl_cbed *c)
{
    uint64_t hash = HL_HASH_START;
    for (int64_t i = 0; i < c->crystals; i++) {
        hash = hl_hash(hl_hash(hash, c->crystal[i].name, strlen(c->crystal[i].name)), c->crystal[i].cell, sizeof(c->crystal[i].cell));
        for (int64_t k = 0; k < c->crystal[i].sites; k++) {
            const hl_site *s = &c->crystal[i].site[k];
            const double number[6] = {s->z, s->at[0], s->at[1], s->at[2], s->b, s->occupancy};
            hash = hl_hash(hash, number, sizeof(number));
        }
    }
    return hash;
}

/* What must not change between runs into one directory. Doses are written as numbers, so that equal ones compare equal. */
static halo_status fixed_settings(const maker *m, hl_str *out)
{
    hl_cbed_settings *fixed;
    HL_TRY(hl_calloc(m->c.ctx, 1, sizeof(*fixed), "settings", &fixed));
    *fixed = *m->c.s;
    fixed->threads = 0;
    snprintf(fixed->out, sizeof(fixed->out), ".");
    fixed->dose.n = m->c.doses;
    for (int i = 0; i < m->c.doses; i++) snprintf(fixed->dose.word[i], sizeof(fixed->dose.word[i]), "%.15g", m->c.dose[i]);
    hl_config_write(hl_cbed_keys(), fixed, out);
    free(fixed);
    if (m->c.s->crystals.n) hl_str_addf(out, "# the crystals' content: %016" PRIx64 "\n", hash_crystals(&m->c));
    return out->failed ? hl_fail(m->c.ctx, HALO_ERR_NOMEM, "out of memory: settings") : HALO_OK;
}

static halo_status claim(maker *m)
{
    hl_str text = {0};
    halo_status st = fixed_settings(m, &text);
    if (st == HALO_OK) st = hl_making_take_directory(m->c.ctx, m->c.s->out, "cbed.yaml", &text, NULL, &m->lock);
    hl_str_free(&text);
    return st;
}

static halo_status make_parts(maker *m)
{
    for (int p = 0; p < HL_CBED_PARTS; p++) {
        char *path;
        if (m->count[p] == 0) continue;
        HL_TRY(hl_path_join(m->c.ctx, m->c.s->out, part_name[p], &path));
        halo_status st = hl_make_dirs(m->c.ctx, path);
        free(path);
        if (st != HALO_OK) return st;
    }
    return HALO_OK;
}

/* crystals.csv: all crystals, known before the first is made. */
static halo_status write_list(const maker *m)
{
    hl_str text = {0};
    char *path;
    hl_str_add(&text, "part,number,crystal,a,b,c,zone_u,zone_v,zone_w,spin,tilt_h,tilt_w,thickness\n");
    for (int part = 0; part < HL_CBED_PARTS; part++)
        for (int64_t i = 0; i < m->count[part]; i++) {
            hl_specimen p;
            hl_cbed_draw(&m->c, part, i, &p);
            hl_str_addf(&text, "%s,%" PRId64 ",%s", part_name[part], i, p.crystal->name);
            for (int k = 0; k < 3; k++) hl_str_addf(&text, ",%.6g", sqrt(p.cell[k][0] * p.cell[k][0] + p.cell[k][1] * p.cell[k][1] + p.cell[k][2] * p.cell[k][2]));
            hl_str_addf(&text, ",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", p.zone[0], p.zone[1], p.zone[2], p.spin * 180 / M_PI, 1e3 * p.tilt[0], 1e3 * p.tilt[1], p.thickness);
        }
    if (text.failed) return hl_fail(m->c.ctx, HALO_ERR_NOMEM, "out of memory: the list of crystals");
    halo_status st = hl_path_join(m->c.ctx, m->c.s->out, "crystals.csv", &path);
    if (st == HALO_OK) {
        st = hl_file_write(m->c.ctx, path, text.s, text.len);
        free(path);
    }
    hl_str_free(&text);
    return st;
}

static halo_status prepare_directory(maker *m)
{
    HL_TRY(claim(m));
    HL_TRY(make_parts(m));
    return write_list(m);
}

static halo_status add_up(maker *m)
{
    double sum[4] = {(double)m->result.crystals, (double)m->result.samples, (double)m->result.skipped, (double)m->result.files};
    HL_TRY(hl_comm_sum(m->c.ctx, sum, 4));
    m->result = (hl_cbed_result){.crystals = (int64_t)sum[0], .samples = (int64_t)sum[1], .skipped = (int64_t)sum[2], .files = (int64_t)sum[3], .seconds = hl_now() - m->begin};
    return HALO_OK;
}

static halo_status make_all(maker *m)
{
    HL_AGREE(m->c.ctx, m->c.ctx->rank == 0 ? prepare_directory(m) : HALO_OK);
    HL_AGREE(m->c.ctx, make_files(m));
    return add_up(m);
}

halo_status hl_cbeds_make(halo_context *ctx, const hl_cbed_settings *s, const hl_cbed_hooks *hooks, hl_cbed_result *result)
{
    maker m = {.hooks = hooks, .begin = hl_now(), .lock = -1, .count = {s->count, s->validation, s->test}};
    for (int p = 0; p < HL_CBED_PARTS; p++) m.files[p] = hl_div_up(m.count[p], s->per_file);
    halo_status st = hl_agree(ctx, hl_cbed_open(ctx, s, &m.c));
    if (hooks) m.c.stop = (hl_stop){hooks->stop, hooks->user};
    if (st == HALO_OK) st = make_all(&m);
    hl_making_leave_directory(m.lock);
    hl_cbed_close(&m.c);
    free(m.patterns);
    free(m.image);
    free(m.counts);
    if (result) *result = m.result;
    return st;
}
