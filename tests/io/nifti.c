/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images written byte by byte here, and read by halo: every type in both byte orders, plain and gzipped, as one file and as a pair, of versions 1 and 2; all 48 orders and directions of
 * axes; boxes; a volume written back into the place of its scan; and what is broken.
 */
#include "tests/io/iotest.h"
#include "base/file.h"
#include "io/array.h"
#include "io/nifti.h"
#include "io/scans.h"

#ifdef HAVE_NIFTI
#include <nifti2_io.h>

typedef struct form {
    hl_number type;
    bool swapped, two, pair, packed, qform; /* qform: that alone, else sform alone */
    int64_t dim[4];   /* x y z t */
    int axis[3];      /* RAS axis of each stored axis */
    bool from_end[3]; /* of each stored axis: index grows to L, P, I */
    double slope, inter;
} form;

static const int codes[] = {['u' * 16 + 1] = DT_UINT8,  ['i' * 16 + 1] = DT_INT8,   ['u' * 16 + 2] = DT_UINT16,  ['i' * 16 + 2] = DT_INT16,  ['u' * 16 + 4] = DT_UINT32,
                            ['i' * 16 + 4] = DT_INT32,  ['u' * 16 + 8] = DT_UINT64, ['i' * 16 + 8] = DT_INT64,   ['f' * 16 + 4] = DT_FLOAT32, ['f' * 16 + 8] = DT_FLOAT64};
static const double spacing[3] = {1.5, 2, 0.75}; /* along RAS */

/* What the voxel at a place in the patient, r a s from the left, the back and the feet, holds: 0 to 99. */
static int value_at(const int64_t at[3], int64_t t) { return (int)((at[0] * 31 + at[1] * 7 + at[2] * 3 + t * 11) % 100); }

static void put(hl_number type, bool swapped, int v, char *out)
{
    union { int8_t b; int16_t s; int32_t l; int64_t q; float f; double d; char c[8]; } u;
    memset(&u, 0, sizeof(u));
    if (type.kind != 'f') u.q = v;
    else if (type.bytes == 4) u.f = (float)v;
    else u.d = v;
    if (swapped) hl_swap_bytes(u.c, type.bytes, 1);
    memcpy(out, u.c, (size_t)type.bytes);
}

/* The stored volume; extents of RAS axes in n. */
static void fill(const form *f, char *out, int64_t n[3])
{
    int64_t at[3];
    for (int s = 0; s < 3; s++) n[f->axis[s]] = f->dim[s];
    for (int64_t i = 0; i < f->dim[0] * f->dim[1] * f->dim[2] * f->dim[3]; i++) {
        int64_t rest = i;
        for (int s = 0; s < 3; s++) {
            int64_t index = rest % f->dim[s];
            rest /= f->dim[s];
            at[f->axis[s]] = f->from_end[s] ? f->dim[s] - 1 - index : index;
        }
        put(f->type, f->swapped, value_at(at, rest), out + i * f->type.bytes);
    }
}

static void place(const form *f, float row[3][4])
{
    memset(row, 0, 12 * sizeof(float));
    for (int s = 0; s < 3; s++) row[f->axis[s]][s] = (float)((f->from_end[s] ? -1 : 1) * spacing[f->axis[s]]);
    for (int k = 0; k < 3; k++) row[k][3] = (float)(10 * k + 3);
}

static size_t head(const form *f, char *out)
{
    float row[3][4];
    place(f, row);
    const int64_t dims[8] = {f->dim[3] > 1 ? 4 : 3, f->dim[0], f->dim[1], f->dim[2], f->dim[3], 1, 1, 1};
    nifti_image *nim = nifti_make_new_nim(dims, codes[f->type.kind * 16 + f->type.bytes], 0);
    nifti_dmat44 m = {.m = {{0}}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) m.m[i][j] = (double)row[i][j];
    m.m[3][3] = 1;
    for (int s = 0; s < 3; s++) nim->pixdim[s + 1] = spacing[f->axis[s]];
    nim->dx = nim->pixdim[1], nim->dy = nim->pixdim[2], nim->dz = nim->pixdim[3];
    nim->scl_slope = f->slope, nim->scl_inter = f->inter;
    nim->sto_xyz = m;
    nim->sform_code = f->qform ? 0 : 1;
    nim->qform_code = f->qform ? 1 : 0;
    nifti_dmat44_to_quatern(m, &nim->quatern_b, &nim->quatern_c, &nim->quatern_d, &nim->qoffset_x, &nim->qoffset_y, &nim->qoffset_z, NULL, NULL, NULL, &nim->qfac);
    nim->pixdim[0] = nim->qfac;
    nim->nifti_type = f->two ? (f->pair ? NIFTI_FTYPE_NIFTI2_2 : NIFTI_FTYPE_NIFTI2_1) : f->pair ? NIFTI_FTYPE_NIFTI1_2 : NIFTI_FTYPE_NIFTI1_1;
    nim->iname_offset = f->pair ? 0 : f->two ? 544 : 352;
    nifti_1_header one;
    nifti_2_header two;
    if (f->two ? nifti_convert_nim2n2hdr(nim, &two) : nifti_convert_nim2n1hdr(nim, &one)) tap_bail("no header");
    nifti_image_free(nim);
    if (f->swapped) swap_nifti_header(f->two ? (void *)&two : (void *)&one, f->two ? 2 : 1);
    size_t n = f->two ? sizeof(two) : sizeof(one);
    memcpy(out, f->two ? (void *)&two : (void *)&one, n);
    memset(out + n, 0, 4);
    return n + 4;
}

static void write_part(const char *path, bool packed, const char *a, size_t n, const char *b, size_t m)
{
    znzFile z = znzopen(path, "wb", packed);
    if (znz_isnull(z) || znzwrite(a, 1, n, z) != n || znzwrite(b, 1, m, z) != m || znzclose(z) != 0) tap_bail("cannot write '%s'", path);
}

/* NAME.nii or NAME.hdr and .img; the path that reads it. */
static const char *write_form(const char *name, const form *f)
{
    static char path[1024];
    char *data, header[600], image[1024];
    int64_t n[3];
    size_t bytes = (size_t)(f->dim[0] * f->dim[1] * f->dim[2] * f->dim[3] * f->type.bytes), h = head(f, header);
    data = malloc(bytes);
    if (!data) tap_bail("out of memory");
    fill(f, data, n);
    snprintf(path, sizeof(path), "%s/%s%s%s", iotest_dir, name, f->pair ? ".hdr" : ".nii", f->packed ? ".gz" : "");
    snprintf(image, sizeof(image), "%s/%s.img%s", iotest_dir, name, f->packed ? ".gz" : "");
    write_part(path, f->packed, header, h, data, f->pair ? 0 : bytes);
    if (f->pair) write_part(image, f->packed, data, bytes, data, 0);
    free(data);
    return path;
}

/* Every voxel of the array is what its place in the patient says; wrong ones are counted. */
static int64_t compare(halo_context *ctx, const char *path, const form *f)
{
    hl_array *a;
    int64_t n[3], bad = 0, start[HL_ARRAY_RANK] = {0};
    char *raw;
    for (int s = 0; s < 3; s++) n[f->axis[s]] = f->dim[s];
    MUST(hl_array_open(ctx, path, "", NULL, &a));
    MUST(hl_aligned(ctx, (size_t)a->bytes, "an array", &raw));
    MUST(hl_array_read(a, start, a->dim, raw, (size_t)a->bytes));
    bad += a->dim[a->ndim - 1] != n[0] || a->dim[a->ndim - 2] != n[1] || a->dim[a->ndim - 3] != n[2];
    for (int64_t i = 0; i < a->elements && !bad; i++) {
        int64_t at[3] = {i % n[0], i / n[0] % n[1], i / n[0] / n[1] % n[2]};
        double want = value_at(at, i / (n[0] * n[1] * n[2]));
        if (f->slope != 0) want = want * f->slope + f->inter;
        bad += !(fabs(hl_number_value(a->type, raw, i) - want) <= 1e-6 * fabs(want));
    }
    free(raw);
    hl_array_close(a);
    return bad;
}

static form plain(void)
{
    return (form){.type = {'i', 2}, .dim = {5, 4, 3, 1}, .axis = {0, 1, 2}};
}

static void test_types(halo_context *ctx)
{
    static const hl_number types[] = {{'u', 1}, {'i', 1}, {'u', 2}, {'i', 2}, {'u', 4}, {'i', 4}, {'u', 8}, {'i', 8}, {'f', 4}, {'f', 8}};
    int good = 0, n = 0;
    for (size_t t = 0; t < HL_COUNT(types); t++)
        for (int way = 0; way < 32; way++, n++) {
            form f = plain();
            f.type = types[t];
            f.swapped = way & 1, f.two = way & 2, f.pair = way & 4, f.packed = way & 8;
            f.dim[3] = way & 16 ? 2 : 1;
            good += compare(ctx, write_form("types", &f), &f) == 0;
        }
    tap_ok(good == n, "%d of %d images of ten types, both byte orders, versions 1 and 2, pairs, gzipped, of one and two volumes read as they were written", good, n);
    form f = plain();
    f.slope = 0.5, f.inter = -20;
    tap_ok(compare(ctx, write_form("scaled", &f), &f) == 0, "slope and intercept are applied");
}

/* Order number i of 48. */
static void turn(form *f, int i)
{
    static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    memcpy(f->axis, order[i / 8], sizeof(f->axis));
    for (int s = 0; s < 3; s++) f->from_end[s] = i >> s & 1;
}

/* A volume written for a scan stands where the scan stands: equal header, and the stored bytes of the scan again. */
static bool written_back(halo_context *ctx, const char *path, const form *f)
{
    hl_nifti n, m;
    hl_array *a;
    char *raw, back[1024], head_of[2][348], *bytes[2];
    size_t size[2];
    int64_t start[HL_ARRAY_RANK] = {0};
    MUST(hl_array_open(ctx, path, "", NULL, &a));
    MUST(hl_nifti_open(ctx, path, &n));
    MUST(hl_aligned(ctx, (size_t)a->bytes, "an array", &raw));
    MUST(hl_array_read(a, start, a->dim, raw, (size_t)a->bytes));
    snprintf(back, sizeof(back), "%s", in_dir("back.nii"));
    MUST(hl_nifti_write(ctx, back, &n, a->type, raw));
    MUST(hl_nifti_open(ctx, back, &m));
    bool same = n.version == m.version && memcmp(n.dim, m.dim, sizeof(n.dim)) == 0 && memcmp(n.affine, m.affine, sizeof(n.affine)) == 0 && strcmp(n.place, m.place) == 0;
    for (int i = 0; i < 2; i++) {
        MUST(hl_file_read(ctx, i ? back : path, 1 << 20, &bytes[i], &size[i]));
        memcpy(head_of[i], bytes[i] + 252, 76); /* qform and sform of version 1, to the end of srow_z */
    }
    same = same && size[0] == size[1] && memcmp(bytes[0] + size[0] - (size_t)n.bytes, bytes[1] + size[1] - (size_t)n.bytes, (size_t)n.bytes) == 0;
    same = same && (f->two || memcmp(head_of[0], head_of[1], 76) == 0);
    free(bytes[0]), free(bytes[1]), free(raw);
    hl_nifti_free(&n), hl_nifti_free(&m);
    hl_array_close(a);
    return same;
}

static void test_orientations(halo_context *ctx)
{
    int good = 0, back = 0, n = 0;
    for (int i = 0; i < 48; i++)
        for (int way = 0; way < 4; way++, n++) {
            form f = plain();
            turn(&f, i);
            f.qform = way & 1, f.two = way & 2;
            const char *path = write_form("turned", &f);
            good += compare(ctx, path, &f) == 0;
            back += written_back(ctx, path, &f);
        }
    tap_ok(good == n, "%d of %d: all 48 orders and directions of axes, by qform and by sform, are read in RAS", good, n);
    tap_ok(back == n, "%d of %d: and a volume written for a scan has its bytes, axes, qform and sform again", back, n);
}

/* Each box is what the whole has there. */
static void test_boxes(halo_context *ctx)
{
    int bad = 0;
    for (int i = 0; i < 96; i++) {
        form f = plain();
        turn(&f, i % 48);
        f.dim[3] = 2, f.packed = i >= 48;
        hl_array *a;
        int64_t start[4], count[4], zero[4] = {0};
        MUST(hl_array_open(ctx, write_form("boxes", &f), "", NULL, &a));
        int16_t *all = malloc((size_t)a->bytes), *part = malloc((size_t)a->bytes);
        if (!all || !part) tap_bail("out of memory");
        MUST(hl_array_read(a, zero, a->dim, all, (size_t)a->bytes));
        for (int k = 0; k < 4; k++) {
            start[k] = (int64_t)hl_rng_below(7, HL_STREAM_TEST, (uint64_t)i, (uint64_t)k, (uint64_t)a->dim[k]);
            count[k] = 1 + (int64_t)hl_rng_below(8, HL_STREAM_TEST, (uint64_t)i, (uint64_t)k, (uint64_t)(a->dim[k] - start[k]));
        }
        MUST(hl_array_read(a, start, count, part, (size_t)a->bytes));
        for (int64_t e = 0; e < count[0] * count[1] * count[2] * count[3]; e++) {
            int64_t rest = e, at = 0, along = 1;
            for (int k = 3; k >= 0; k--) {
                at += (start[k] + rest % count[k]) * along;
                rest /= count[k];
                along *= a->dim[k];
            }
            bad += part[e] != all[at];
        }
        free(all), free(part);
        hl_array_close(a);
    }
    tap_ok(bad == 0, "boxes of turned images, plain and gzipped, are what the whole image has there");
}

static void test_source(halo_context *ctx)
{
    char scans[1024], masks[1024];
    hl_array_options o = {.x = "", .y = "", .y_from = "", .table = "", .classes = true};
    hl_source *s;
    float y[60];
    int16_t x[60];
    int bad = 0;
    snprintf(scans, sizeof(scans), "%s/scans", iotest_dir);
    snprintf(masks, sizeof(masks), "%s/masks", iotest_dir);
    mkdir(scans, 0777), mkdir(masks, 0777);
    for (int i = 0; i < 3; i++) { /* masks that stand otherwise than their scans */
        char name[64];
        form f = plain(), g = plain();
        snprintf(name, sizeof(name), "scans/case_%d", i);
        write_form(name, &f);
        turn(&g, 13 + i);
        for (int k = 0; k < 3; k++) g.dim[k] = f.dim[g.axis[k]];
        g.type = (hl_number){'u', 1}, g.packed = true;
        snprintf(name, sizeof(name), "masks/case_%d", i);
        write_form(name, &g);
    }
    o.y_from = masks;
    MUST(hl_source_open(ctx, &(hl_source_options){.path = scans, .array = &o}, &s));
    tap_ok(s->info.samples == 3 && s->info.ext[0] == 1 && s->info.ext[1] == 3 && s->info.ext[2] == 4 && s->info.ext[3] == 5 && s->info.targets == 1 && s->info.target_ext[2] == 5,
           "a directory of scans with one of masks: %s", s->info.description);
    for (int64_t i = 0; i < 3; i++) {
        MUST(hl_source_read(s, i, NULL, x, NULL, y));
        for (int k = 0; k < 60; k++) bad += (float)x[k] != y[k];
    }
    tap_ok(bad == 0, "and each mask lies over its scan, whatever its orientation");
    hl_source_close(s);
    if (rename(in_dir("masks/case_2.nii.gz"), in_dir("masks/case_7.nii.gz")) != 0) tap_bail("cannot rename a mask");
    iotest_errors = 0;
    fails_with(ctx, hl_source_open(ctx, &(hl_source_options){.path = scans, .array = &o}, &s), HALO_ERR_SHAPE, "case_7.nii.gz", "case_2.nii", "a mask of another case");
}

/* A ramp along w, 10 per voxel, and a mask of its right half; packed, resampled to twice the spacing, scaled and padded. */
static void test_pack(halo_context *ctx)
{
    const int64_t ext[3] = {4, 6, 8};
    const double fine[3] = {1, 1, 1};
    int16_t ramp[192];
    uint8_t mask[192];
    float x[384], y[384];
    hl_nifti n;
    hl_scans scans;
    hl_scans_packed r;
    hl_source *s;
    int bad = 0;
    for (int i = 0; i < 192; i++) ramp[i] = (int16_t)(10 * (i % 8)), mask[i] = i % 8 >= 4;
    MUST(hl_nifti_make(ctx, ext, fine, &n));
    MUST(hl_nifti_write(ctx, in_dir("ramp.nii"), &n, (hl_number){'i', 2}, ramp));
    MUST(hl_nifti_write(ctx, in_dir("half.nii.gz"), &n, (hl_number){'u', 1}, mask));
    MUST(hl_scans_find(ctx, in_dir("ramp.nii"), in_dir("half.nii.gz"), &scans));
    MUST(hl_scans_pack(&scans, &(hl_scan_packing){.spacing = {2, 2, 2}, .window = {0, 100}, .size = {4, 2, 6}}, in_dir("pack.h5"), &r));
    hl_scans_free(&scans);
    tap_ok(r.cases == 1 && r.ext[0] == 1 && r.ext[1] == 4 && r.ext[2] == 2 && r.ext[3] == 6 && r.type == HALO_F32 && r.classes == 2, "a pair is packed as it is asked for");
    MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("pack.h5")}, &s));
    MUST(hl_source_read(s, 0, NULL, x, NULL, y));
    for (int d = 0; d < 4; d++)
        for (int h = 0; h < 2; h++)
            for (int w = 0; w < 6; w++) {
                bool within = d >= 1 && d < 3 && w >= 1 && w < 5;
                double want = within ? 0.2 * (w - 1) + 0.05 : 0.05; /* 20 for each, from 5 on; around it the least */
                int at = (d * 2 + h) * 6 + w;
                bad += !(fabs((double)x[at] - want) <= 1e-6) || y[at] != (float)(within && w >= 3);
            }
    tap_ok(bad == 0, "images linearly, masks by the nearest voxel, both about the middle");
    hl_source_close(s);
}

/* ------------------------------------------------------------------------------------------------------------- broken */

static void refuse(halo_context *ctx, const char *path, const char *text, const char *what)
{
    hl_array *a = NULL;
    int64_t start[4] = {0};
    char room[4096];
    iotest_errors = 0;
    halo_status st = hl_array_open(ctx, path, "", NULL, &a);
    if (st == HALO_OK) {
        st = hl_array_read(a, start, a->dim, room, sizeof(room));
        hl_array_close(a);
    }
    fails_with(ctx, st, HALO_ERR_FORMAT, text, strstr(path, "/halo-") ? "halo-" : "", what);
}

static void poke(const char *path, long at, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "r+b");
    if (!f || fseek(f, at, SEEK_SET) != 0 || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) tap_bail("cannot change '%s'", path);
}

static void test_broken(halo_context *ctx)
{
    form f = plain();
    int bad = 0;
    const char *path = write_form("broken", &f);
    for (off_t n = 352 + 119; n >= 0; n -= 23) { /* cut anywhere */
        hl_array *a;
        if (truncate(path, n) != 0) tap_bail("cannot cut '%s'", path);
        iotest_errors = 0;
        if (hl_array_open(ctx, path, "", NULL, &a) == HALO_OK) {
            bad++;
            hl_array_close(a);
        } else bad += iotest_errors != 1 || !strstr(halo_error_message(ctx), path);
    }
    tap_ok(bad == 0, "an image that is cut anywhere is one error, which names it");
    path = write_form("broken", &f);
    poke(path, 70, &(int16_t){32}, 2);
    refuse(ctx, path, "it holds complex numbers, not real numbers", "complex numbers");
    poke(path, 70, &(int16_t){-9510}, 2);
    refuse(ctx, path, "its type of number, -9510, is not known", "no type");
    path = write_form("broken", &f);
    poke(path, 42, &(int16_t){0}, 2);
    refuse(ctx, path, "its axis 1 has 0 voxels", "an empty axis");
    path = write_form("broken", &f);
    poke(path, 108, &(float){NAN}, 4);
    refuse(ctx, path, "its voxels begin at byte nan", "an offset that is no number");
    path = write_form("broken", &f);
    poke(path, 42, (int16_t[]){32767, 32767, 32767}, 6);
    refuse(ctx, path, "truncated: its header claims 70362", "a claim of 70 TB");
    f.packed = true;
    path = write_form("broken", &f);
    struct stat s;
    stat(path, &s);
    if (truncate(path, s.st_size - 12) != 0) tap_bail("cannot cut '%s'", path);
    refuse(ctx, path, "truncated or damaged", "a gzipped image that is cut");
    path = write_form("broken", &f);
    poke(path, (long)s.st_size - 8, "\1\2\3\4", 4);
    refuse(ctx, path, "damaged", "a gzipped image with a wrong checksum");
}

int main(void)
{
    halo_context *ctx = iotest_begin("nifti");
    nifti_set_debug_level(0);
    test_types(ctx);
    test_orientations(ctx);
    test_boxes(ctx);
    test_source(ctx);
    test_pack(ctx);
    test_broken(ctx);
    return iotest_end(ctx);
}
#else
int main(void)
{
    tap_skip_all("built without nifticlib");
}
#endif
