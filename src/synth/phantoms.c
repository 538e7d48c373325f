/* SPDX-License-Identifier: Apache-2.0 */
/* phantoms.c -- every setting of `halo synth phantom`, and phantoms in files: train, validation and test as train.h5, val.h5, test.h5, or as images and masks in directories; phantoms.csv lists
 * the organs and lesions of all. */
#include "synth/phantom.h"

#include <stdio.h>

#include "base/file.h"
#include "io/nifti.h"
#include "io/writer.h"
#include "synth/making.h"

#define AT(field) offsetof(hl_phantom_settings, field)

static const hl_key keys[] = {
    {"count", HL_SETTING_INT, AT(count), "32", 0, 1e9, NULL, NULL, "phantoms for training"},
    {"validation", HL_SETTING_INT, AT(validation), "0", 0, 1e9, NULL, NULL, "phantoms for validation"},
    {"test", HL_SETTING_INT, AT(test), "0", 0, 1e9, NULL, NULL, "phantoms for the test"},
    {"out", HL_SETTING_TEXT, AT(out), "phantoms", 0, 0, NULL, NULL, "directory to write"},
    {"format", HL_SETTING_CHOICE, AT(format), "hdf5", 0, 0, "hdf5|nifti", NULL, "train.h5, val.h5 and test.h5; or train/images/*.nii.gz and train/masks/*.nii.gz ..."},
    {"seed", HL_SETTING_INT, AT(seed), "1", 0, 0, NULL, NULL, "root of all random numbers"},
    {"size", HL_SETTING_SIZE, AT(size), "64", 8, 4096, NULL, NULL, "voxels, one number or [D, H, W]"},
    {"vary", HL_SETTING_NUMBER, AT(vary), "0", 0, 0.5, NULL, NULL, "extents are drawn within this part of size, each its own; of nifti only"},
    {"spacing", HL_SETTING_NUMBER, AT(spacing), "1.5", 0.01, 100, NULL, NULL, "of voxels, mm"},
    {"thickness", HL_SETTING_NUMBER, AT(thickness), "none", 0.01, 100, NULL, "none", "spacing along D, mm; none: as spacing"},
    {"lesions", HL_SETTING_INT, AT(lesions), "3", 0, 32, NULL, NULL, "each phantom has 0 to so many, every number as likely"},
    {"least", HL_SETTING_NUMBER, AT(least), "4", 0.1, 1000, NULL, NULL, "least mean radius of a lesion, mm"},
    {"most", HL_SETTING_NUMBER, AT(most), "9", 0.1, 1000, NULL, NULL, "largest mean radius of a lesion, mm; at most half of the organ's least one"},
    {"contrast", HL_SETTING_NUMBER, AT(contrast), "50", -1000, 1000, NULL, NULL, "of the organ over its lesions, Hounsfield units"},
    {"noise", HL_SETTING_NUMBER, AT(noise), "15", 0, 1000, NULL, NULL, "deviation of the noise, Hounsfield units"},
};

hl_keys hl_phantom_keys(void) { return (hl_keys){.key = keys, .n = HL_COUNT(keys), .page = "halo synth keys"}; }

typedef struct maker {
    halo_context *ctx;
    const hl_phantom_settings *s;
    hl_phantom p;
    int16_t *value;
    uint8_t *label;
    float *y;
    size_t value_room, label_room, y_room;
    hl_str table;
    bool (*stop)(void *user);
    void *user;
    int64_t made;
} maker;

static const char *const parts[] = {"train", "val", "test"};

static const char *name_of(int part, int64_t number, char out[32])
{
    snprintf(out, 32, "%s_%05" PRId64, parts[part], number);
    return out;
}

/* A row for each organ and lesion, with the voxels of its class that it has by volume. */
static void tell(maker *m, const char *name)
{
    const hl_phantom *p = &m->p;
    double voxel = p->spacing[0] * p->spacing[1] * p->spacing[2];
    for (int i = 0; i < p->shapes; i++) {
        const hl_ellipsoid *e = &p->shape[i];
        if (e->label == 0) continue;
        hl_str_addf(&m->table, "%s,%s,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.2f,%.1f\n", name, e->label == 1 ? "organ" : "lesion", e->centre[0], e->centre[1], e->centre[2], e->radius[0], e->radius[1],
                    e->radius[2], hl_ellipsoid_volume(e), hl_ellipsoid_volume(e) / voxel);
    }
}

static halo_status make(maker *m, int part, int64_t number)
{
    char name[32];
    if (m->stop && m->stop(m->user)) return hl_fail(m->ctx, HALO_ERR_STOPPED, "stopped after %" PRId64 " phantom%s; the same command begins anew", m->made, HL_S(m->made));
    hl_phantom_draw(m->s, part, number, &m->p);
    int64_t n = m->p.ext[0] * m->p.ext[1] * m->p.ext[2];
    HL_TRY(hl_grow(m->ctx, &m->value, &m->value_room, (size_t)n, sizeof(*m->value), "a phantom"));
    HL_TRY(hl_grow(m->ctx, &m->label, &m->label_room, (size_t)n, sizeof(*m->label), "a mask"));
    HL_TRY(hl_grow(m->ctx, &m->y, &m->y_room, (size_t)n, sizeof(*m->y), "a mask"));
    hl_phantom_render(&m->p, m->value, m->label);
    for (int64_t i = 0; i < n; i++) m->y[i] = m->label[i];
    tell(m, name_of(part, number, name));
    m->made++;
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------- formats */

static halo_status fill(maker *m, int part, int64_t count, hl_writer *w)
{
    char name[32];
    for (int64_t i = 0; i < count; i++) {
        HL_TRY(make(m, part, i));
        HL_TRY(hl_writer_add(w, m->value, m->y, -1));
        HL_TRY(hl_writer_name(w, name_of(part, i, name)));
    }
    return HALO_OK;
}

static halo_status write_hdf5(maker *m, int part, int64_t count, const char *stem)
{
    const hl_target target = {.name = "class", .low = NAN, .high = NAN, .mean = NAN, .std = NAN};
    hl_writer_options o = {.ext = {1, m->s->size[0], m->s->size[1], m->s->size[2]}, .dtype = HALO_I16, .targets = 1, .target = &target, .level = 1};
    hl_str path = {0};
    hl_writer *w;
    memcpy(o.target_ext, m->s->size, sizeof(o.target_ext));
    hl_str_addf(&path, "%s.h5", stem);
    halo_status st = path.failed ? hl_fail(m->ctx, HALO_ERR_NOMEM, "out of memory: a file name") : hl_writer_create(m->ctx, path.s, &o, &w);
    if (st == HALO_OK) {
        st = fill(m, part, count, w);
        halo_status closed = hl_writer_close(w, st == HALO_OK);
        if (st == HALO_OK) st = closed;
    }
    hl_str_free(&path);
    return st;
}

static halo_status write_image(maker *m, const char *stem, const char *kind, const char *name, hl_number type, const void *data)
{
    hl_nifti like;
    hl_str path = {0};
    HL_TRY(hl_nifti_make(m->ctx, m->p.ext, m->p.spacing, &like));
    hl_str_addf(&path, "%s/%s", stem, kind);
    halo_status st = path.failed ? HALO_ERR_NOMEM : hl_make_dirs(m->ctx, path.s);
    hl_str_addf(&path, "/%s.nii.gz", name);
    if (path.failed) st = hl_fail(m->ctx, HALO_ERR_NOMEM, "out of memory: a file name");
    if (st == HALO_OK) st = hl_nifti_write(m->ctx, path.s, &like, type, data);
    hl_str_free(&path);
    hl_nifti_free(&like);
    return st;
}

static halo_status write_nifti(maker *m, int part, int64_t count, const char *stem)
{
    char name[32];
    for (int64_t i = 0; i < count; i++) {
        HL_TRY(make(m, part, i));
        name_of(part, i, name);
        HL_TRY(write_image(m, stem, "images", name, (hl_number){'i', 2}, m->value));
        HL_TRY(write_image(m, stem, "masks", name, (hl_number){'u', 1}, m->label));
    }
    return HALO_OK;
}

static halo_status write_part(maker *m, int part, int64_t count)
{
    char *stem;
    if (count == 0) return HALO_OK;
    HL_TRY(hl_path_join(m->ctx, m->s->out, parts[part], &stem));
    halo_status st = m->s->format ? write_nifti(m, part, count, stem) : write_hdf5(m, part, count, stem);
    free(stem);
    return st;
}

static halo_status write_table(maker *m)
{
    char *path;
    if (m->table.failed) return hl_fail(m->ctx, HALO_ERR_NOMEM, "out of memory: the list of phantoms");
    HL_TRY(hl_path_join(m->ctx, m->s->out, "phantoms.csv", &path));
    halo_status st = hl_file_write(m->ctx, path, m->table.s, m->table.len);
    free(path);
    return st;
}

static halo_status claim(halo_context *ctx, const hl_phantom_settings *s, int *lock)
{
    hl_phantom_settings fixed = *s;
    hl_str text = {0};
    snprintf(fixed.out, sizeof(fixed.out), ".");
    hl_config_write(hl_phantom_keys(), &fixed, &text);
    halo_status st = hl_making_take_directory(ctx, s->out, "phantoms.yaml", &text, NULL, lock);
    hl_str_free(&text);
    return st;
}

halo_status hl_phantoms_check(halo_context *ctx, const hl_phantom_settings *s)
{
    if (s->count + s->validation + s->test == 0) return hl_fail(ctx, HALO_ERR_USAGE, "no phantoms are asked for: 'count', 'validation' and 'test' are 0");
    if (s->least > s->most) return hl_fail(ctx, HALO_ERR_USAGE, "'least' is %g, 'most' %g: the largest radius of a lesion is below the least", s->least, s->most);
    if (s->vary > 0 && !s->format) return hl_fail(ctx, HALO_ERR_USAGE, "'vary' needs 'format: nifti': the samples of an HDF5 file have one size");
    return HALO_OK;
}

halo_status hl_phantoms_make(halo_context *ctx, const hl_phantom_settings *s, bool (*stop)(void *user), void *user)
{
    maker m = {.ctx = ctx, .s = s, .stop = stop, .user = user};
    const int64_t count[] = {s->count, s->validation, s->test};
    HL_TRY(hl_phantoms_check(ctx, s));
    hl_str_add(&m.table, "phantom,class,d,h,w,radius_1,radius_2,radius_3,volume,voxels\n");
    int lock;
    halo_status st = claim(ctx, s, &lock);
    for (int part = 0; part < 3 && st == HALO_OK; part++) st = write_part(&m, part, count[part]);
    if (st == HALO_OK) st = write_table(&m);
    hl_making_leave_directory(lock);
    free(m.value);
    free(m.label);
    free(m.y);
    hl_str_free(&m.table);
    return st;
}
