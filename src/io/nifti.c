/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nifti.c -- see nifti.h. nifticlib turns headers into numbers and back, and opens files that may be gzipped; what a header claims is checked before it sees it, since it allocates
 * what it is told and prints what it does not like.
 */
#include "io/nifti.h"
#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n > m && strcmp(path + n - m, end) == 0 ? n - m : 0;
}

bool hl_is_nifti(const char *path)
{
    static const char *const ends[] = {".nii", ".nii.gz", ".hdr", ".hdr.gz", ".img", ".img.gz"};
    for (size_t i = 0; i < HL_COUNT(ends); i++)
        if (ends_with(path, ends[i])) return true;
    return false;
}

void hl_nifti_case(const char *path, char *out, size_t size)
{
    static const char *const ends[] = {".gz", ".nii", ".hdr", ".img", "_0000"};
    const char *slash = strrchr(path, '/');
    snprintf(out, size, "%s", slash ? slash + 1 : path);
    for (size_t i = 0; i < HL_COUNT(ends); i++) {
        size_t n = ends_with(out, ends[i]);
        if (n) out[n] = '\0';
    }
}

/* The digits of a name, runs of them apart. */
static void numbers_of(const char *path, char *out, size_t size)
{
    char name[256];
    size_t n = 0;
    bool within = false;
    hl_nifti_case(path, name, sizeof(name));
    for (const char *at = name; *at && n + 2 < size; at++) {
        bool digit = *at >= '0' && *at <= '9';
        if (digit && !within && n > 0) out[n++] = ' ';
        if (digit) out[n++] = *at;
        within = digit;
    }
    out[n] = '\0';
}

bool hl_nifti_same_case(const char *a, const char *b)
{
    char of_a[256], of_b[256];
    numbers_of(a, of_a, sizeof(of_a));
    numbers_of(b, of_b, sizeof(of_b));
    return strcmp(of_a, of_b) == 0;
}

void hl_nifti_free(hl_nifti *n)
{
    free(n->header);
    free(n->image);
    n->header = n->image = NULL;
}

const char *hl_nifti_codes(const hl_nifti *n, char out[4])
{
    static const char ends[3][2] = {{'R', 'L'}, {'A', 'P'}, {'S', 'I'}};
    memcpy(out, "???", 4);
    for (int k = 0; k < 3 && *n->place; k++) out[n->axis[k]] = ends[k][n->flip[k]];
    return out;
}

void hl_nifti_extents(const hl_nifti *n, int64_t ext[3])
{
    for (int k = 0; k < 3; k++) ext[2 - k] = n->dim[n->axis[k]];
}

void hl_nifti_spacings(const hl_nifti *n, double spacing[3])
{
    for (int k = 0; k < 3; k++) spacing[2 - k] = n->spacing[n->axis[k]];
}

/* Where the first (or the last) voxel of an image in RAS is. */
static void corner(const hl_nifti *n, bool last, double out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = n->affine[i][3];
        for (int k = 0; k < 3; k++) {
            int s = n->axis[k];
            if (last != n->flip[k]) out[i] += n->affine[i][s] * (double)(n->dim[s] - 1);
        }
    }
}

hl_nifti_span hl_nifti_span_of(const hl_nifti *n)
{
    hl_nifti_span s = {.known = *n->place};
    hl_nifti_spacings(n, s.spacing);
    for (int last = 0; last < 2; last++) corner(n, last, s.corner[last]);
    return s;
}

double hl_nifti_apart(const hl_nifti_span *a, const hl_nifti_span *b)
{
    double most = 0, voxel = fmin(a->spacing[0], fmin(a->spacing[1], a->spacing[2]));
    if (!a->known || !b->known) return 0;
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < 3; i++) most = fmax(most, fabs(a->corner[last][i] - b->corner[last][i]) / voxel);
    return most;
}

#ifdef HAVE_NIFTI
#include <nifti2_io.h>

/* deflate makes at most 1032 bytes of one (zlib's technical notes). */
#define RATIO_MOST INT64_C(1032)

/* ------------------------------------------------------------------------------------------------------------- types */

typedef struct type_row {
    int code;
    hl_number type; /* kind 0: not to be read */
    const char *what;
} type_row;

static const type_row types[] = {
    {DT_UINT8, {'u', 1}, ""},   {DT_INT8, {'i', 1}, ""},    {DT_INT16, {'i', 2}, ""},   {DT_UINT16, {'u', 2}, ""},  {DT_INT32, {'i', 4}, ""},
    {DT_UINT32, {'u', 4}, ""},  {DT_INT64, {'i', 8}, ""},   {DT_UINT64, {'u', 8}, ""},  {DT_FLOAT32, {'f', 4}, ""}, {DT_FLOAT64, {'f', 8}, ""},
    {DT_BINARY, {0, 0}, "single bits"},      {DT_COMPLEX64, {0, 0}, "complex numbers"},  {DT_COMPLEX128, {0, 0}, "complex numbers"}, {DT_COMPLEX256, {0, 0}, "complex numbers"},
    {DT_RGB24, {0, 0}, "colours (RGB)"},     {DT_RGBA32, {0, 0}, "colours (RGBA)"},      {DT_FLOAT128, {0, 0}, "numbers of 128 bits"},
};

static const type_row *type_of(int code)
{
    for (size_t i = 0; i < HL_COUNT(types); i++)
        if (types[i].code == code) return &types[i];
    return NULL;
}

static int code_of(hl_number type)
{
    for (size_t i = 0; i < HL_COUNT(types); i++)
        if (types[i].type.kind == type.kind && types[i].type.bytes == type.bytes) return types[i].code;
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- files */

static halo_status wrong(halo_context *ctx, const char *path, const char *format, ...) HALO_PRINTF(3, 4);
static halo_status wrong(halo_context *ctx, const char *path, const char *format, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    return hl_fail(ctx, HALO_ERR_FORMAT, "cannot read '%s': %s", path, text);
}

/* Its size, and whether it begins as gzip does; a name says nothing. */
static halo_status look(halo_context *ctx, const char *path, int64_t *size, bool *packed)
{
    struct stat s;
    unsigned char b[2] = {0};
    FILE *f = fopen(path, "rbe");
    if (!f) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    bool ordinary = fstat(fileno(f), &s) == 0 && S_ISREG(s.st_mode);
    *packed = ordinary && fread(b, 1, 2, f) == 2 && b[0] == 0x1f && b[1] == 0x8b;
    fclose(f);
    if (!ordinary) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': no ordinary file", path);
    if (s.st_size == 0) return hl_fail(ctx, HALO_ERR_FORMAT, "cannot open '%s': the file is empty", path);
    if (*packed && !nifti_compiled_with_zlib()) return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "cannot read '%s': it is gzipped, and nifticlib was built without zlib", path);
    *size = (int64_t)s.st_size;
    return HALO_OK;
}

/* The other file of a pair: `end` or `end`.gz behind the first n bytes of the name, packed as the first is or not. */
static halo_status find_other(halo_context *ctx, const char *path, size_t n, const char *end, char **out)
{
    bool gz = ends_with(path, ".gz") > 0;
    hl_str name = {0};
    for (int turn = 0; turn < 3; turn++) { /* the last one is named in the error */
        hl_str_free(&name);
        name = (hl_str){0};
        hl_str_addn(&name, path, n);
        hl_str_addf(&name, "%s%s", end, turn < 2 && gz == (turn == 0) ? ".gz" : "");
        if (name.failed) return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: a file name");
        if (turn < 2 && hl_file_exists(name.s)) {
            *out = name.s;
            return HALO_OK;
        }
    }
    halo_status st = hl_fail(ctx, HALO_ERR_IO, "cannot read '%s': there is no '%s' beside it, nor one that is gzipped", path, name.s);
    hl_str_free(&name);
    return st;
}

/* .img means its header. */
static halo_status find_header(halo_context *ctx, const char *path, char **out)
{
    size_t n = ends_with(path, ".img");
    if (!n) n = ends_with(path, ".img.gz");
    return n ? find_other(ctx, path, n, ".hdr", out) : hl_strdup(ctx, path, out);
}

static halo_status find_image(halo_context *ctx, hl_nifti *n, bool pair)
{
    size_t length = ends_with(n->header, ".hdr");
    if (!length) length = ends_with(n->header, ".hdr.gz");
    if (!pair) return hl_strdup(ctx, n->header, &n->image);
    if (!length) return wrong(ctx, n->header, "its voxels are in another file, which only a .hdr has");
    return find_other(ctx, n->header, length, ".img", &n->image);
}

/* At most n bytes from the beginning. */
static halo_status read_start(halo_context *ctx, const char *path, bool packed, void *out, size_t n, size_t *got)
{
    znzFile f = znzopen(path, "rb", packed);
    if (znz_isnull(f)) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    *got = znzread(out, 1, n, f);
    znzclose(f);
    if (*got > n) return wrong(ctx, path, "damaged: it cannot be unpacked");
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------ header */

typedef union header {
    nifti_1_header one;
    nifti_2_header two;
    unsigned char raw[HL_NIFTI_HEADER];
} header;

/* Which header it is, from its first number and its magic, and to our byte order. */
static halo_status recognise(halo_context *ctx, hl_nifti *n, header *h, size_t got)
{
    int32_t first;
    if (got < sizeof(h->one)) return wrong(ctx, n->header, "too short for a NIfTI header");
    memcpy(&first, h->raw, sizeof(first));
    n->swapped = first != 348 && first != 540;
    if (n->swapped) first = (int32_t)__builtin_bswap32((uint32_t)first);
    if (first != 348 && first != 540) return wrong(ctx, n->header, "no NIfTI header, which begins with the number 348 or 540");
    if (first == 540 && got < sizeof(h->two)) return wrong(ctx, n->header, "too short for a NIfTI-2 header");
    const char *magic = first == 540 ? h->two.magic : h->one.magic;
    bool known = magic[0] == 'n' && (magic[1] == 'i' || magic[1] == '+') && magic[2] == (first == 540 ? '2' : '1');
    n->version = !known ? 0 : first == 540 ? 2 : 1;
    if (!known && first == 540) return wrong(ctx, n->header, "no NIfTI-2 header: its magic is not n+2 or ni2");
    if (n->swapped) swap_nifti_header(h->raw, n->version);
    return HALO_OK;
}

static halo_status take_extents(halo_context *ctx, hl_nifti *n, const header *h)
{
    int64_t dim[8];
    for (int i = 0; i < 8; i++) dim[i] = n->version == 2 ? h->two.dim[i] : h->one.dim[i];
    if (dim[0] < 1 || dim[0] > HL_NIFTI_RANK) return wrong(ctx, n->header, "its header counts %" PRId64 " axes, there are 1 to 7", dim[0]);
    n->ndim = (int)dim[0];
    n->elements = 1;
    for (int i = 0; i < HL_NIFTI_RANK; i++) {
        n->dim[i] = i < n->ndim ? dim[i + 1] : 1;
        if (n->dim[i] < 1) return wrong(ctx, n->header, "its axis %d has %" PRId64 " voxels", i + 1, n->dim[i]);
        if (!hl_mul64(n->elements, n->dim[i], &n->elements)) return wrong(ctx, n->header, "it claims more than 2^63 voxels");
    }
    return hl_mul64(n->elements, 16, &(int64_t){0}) ? HALO_OK : wrong(ctx, n->header, "it claims more than 2^63 bytes");
}

static halo_status take_type(halo_context *ctx, hl_nifti *n, int code)
{
    const type_row *row = type_of(code);
    if (!row) return wrong(ctx, n->header, "its type of number, %d, is not known", code);
    if (!row->type.kind) return wrong(ctx, n->header, "it holds %s, not real numbers", row->what);
    n->type = row->type;
    n->bytes = n->elements * n->type.bytes;
    return HALO_OK;
}

static bool finite_affine(const nifti_dmat44 *m)
{
    bool all = true;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) all = all && isfinite(m->m[i][j]);
    return all;
}

/* sform before qform, as readers agree; where neither says anything, or nothing that can be, axes are as stored. */
static void take_place(hl_nifti *n, const nifti_image *nim)
{
    const nifti_dmat44 *m = nim->sform_code > 0 ? &nim->sto_xyz : &nim->qto_xyz;
    int code[3] = {0};
    n->place = n->version == 0 ? "" : nim->sform_code > 0 ? "sform" : nim->qform_code > 0 ? "qform" : "";
    if (*n->place && finite_affine(m)) nifti_dmat44_to_orientation(*m, &code[0], &code[1], &code[2]);
    if (!code[0] || !code[1] || !code[2]) n->place = "";
    for (int i = 0; i < 3; i++) {
        int k = *n->place ? (code[i] - 1) / 2 : i;
        n->axis[k] = i;
        n->flip[k] = *n->place && (code[i] - 1) % 2;
        n->spacing[i] = isfinite(nim->pixdim[i + 1]) && nim->pixdim[i + 1] != 0 ? fabs(nim->pixdim[i + 1]) : 1;
        for (int j = 0; j < 4; j++) n->affine[i][j] = *n->place ? m->m[i][j] : i == j ? n->spacing[i] : 0;
    }
}

static void take_scale(hl_nifti *n, double slope, double inter)
{
    bool plain = !isfinite(slope) || !isfinite(inter) || slope == 0 || (slope == 1 && inter == 0);
    n->slope = plain ? 0 : slope;
    n->inter = plain ? 0 : inter;
}

static nifti_image *image_of(const hl_nifti *n)
{
    header h;
    memcpy(h.raw, n->raw, sizeof(h.raw));
    nifti_set_debug_level(0); /* it prints nothing */
    return n->version == 2 ? nifti_convert_n2hdr2nim(h.two, NULL) : nifti_convert_n1hdr2nim(h.one, NULL);
}

/* The header as nifticlib reads it. */
static halo_status take_header(halo_context *ctx, hl_nifti *n, const header *h)
{
    HL_TRY(take_extents(ctx, n, h));
    HL_TRY(take_type(ctx, n, n->version == 2 ? h->two.datatype : h->one.datatype));
    memcpy(n->raw, h->raw, sizeof(n->raw));
    nifti_image *nim = image_of(n);
    if (!nim) return wrong(ctx, n->header, "nifticlib refuses its header");
    take_place(n, nim);
    if (n->version == 2) take_scale(n, h->two.scl_slope, h->two.scl_inter);
    else take_scale(n, n->version ? (double)h->one.scl_slope : 0, (double)h->one.scl_inter);
    nifti_image_free(nim);
    return HALO_OK;
}

/* Where voxels begin, and whether the file can have so many. */
static halo_status check_image(halo_context *ctx, hl_nifti *n, const header *h, bool pair)
{
    double at = n->version == 2 ? (double)h->two.vox_offset : n->version ? (double)h->one.vox_offset : 0;
    int64_t start = pair ? 0 : n->version == 2 ? (int64_t)sizeof(h->two) : (int64_t)sizeof(h->one), end;
    HL_TRY(look(ctx, n->image, &n->size, &n->packed));
    if (!(at >= 0 && at < 0x1p53)) return wrong(ctx, n->header, "its voxels begin at byte %g", at);
    n->at = hl_max64((int64_t)at, start);
    if (!hl_add64(n->at, n->bytes, &end)) return wrong(ctx, n->header, "it claims more than 2^63 bytes");
    if (!n->packed && end > n->size)
        return wrong(ctx, n->image, "truncated: its header claims %" PRId64 " bytes from byte %" PRId64 " on, there are %" PRId64, n->bytes, n->at, hl_max64(n->size - n->at, 0));
    if (n->packed && end / RATIO_MOST > n->size) return wrong(ctx, n->image, "truncated: its header claims %" PRId64 " bytes, more than %" PRId64 " gzipped bytes can hold", n->bytes, n->size);
    return HALO_OK;
}

static halo_status open_all(halo_context *ctx, const char *path, hl_nifti *n)
{
    header h = {.raw = {0}};
    int64_t size;
    bool packed, pair;
    size_t got = 0;
    HL_TRY(find_header(ctx, path, &n->header));
    HL_TRY(look(ctx, n->header, &size, &packed));
    HL_TRY(read_start(ctx, n->header, packed, h.raw, sizeof(h.raw), &got));
    HL_TRY(recognise(ctx, n, &h, got));
    HL_TRY(take_header(ctx, n, &h));
    pair = n->version == 0 || (n->version == 2 ? h.two.magic : h.one.magic)[1] == 'i';
    HL_TRY(find_image(ctx, n, pair));
    return check_image(ctx, n, &h, pair);
}

halo_status hl_nifti_open(halo_context *ctx, const char *path, hl_nifti *out)
{
    hl_nifti n = {.place = ""};
    halo_status st = open_all(ctx, path, &n);
    if (st == HALO_OK) *out = n;
    else hl_nifti_free(&n);
    return st;
}

/* ------------------------------------------------------------------------------------------------------------- image */

/* Behind `at` bytes, which are read into `out` too: gzip cannot skip. */
static bool read_packed(znzFile f, int64_t at, char *out, size_t n)
{
    char skipped[4096], more;
    for (int64_t left = at; left > 0;) {
        size_t m = (size_t)hl_min64(left, (int64_t)sizeof(skipped));
        if (znzread(skipped, 1, m, f) != m) return false;
        left -= (int64_t)m;
    }
    return znzread(out, 1, n, f) == n && znzread(&more, 1, 1, f) <= 1; /* the end has the checksum */
}

halo_status hl_nifti_unpack(halo_context *ctx, const hl_nifti *n, void *out)
{
    znzFile f = znzopen(n->image, "rb", 1);
    if (znz_isnull(f)) return hl_fail(ctx, HALO_ERR_IO, "cannot open '%s': %s", n->image, strerror(errno));
    bool good = read_packed(f, n->at, out, (size_t)n->bytes);
    znzclose(f);
    return good ? HALO_OK : wrong(ctx, n->image, "truncated or damaged: its header claims %" PRId64 " bytes, they cannot be unpacked", n->bytes);
}

/* ------------------------------------------------------------------------------------------------------------ writing */

halo_status hl_nifti_make(halo_context *ctx, const int64_t ext[3], const double spacing[3], hl_nifti *out)
{
    hl_nifti n = {.version = 1, .type = {'u', 1}, .ndim = 3, .place = "sform", .axis = {0, 1, 2}};
    const int64_t dims[8] = {3, ext[2], ext[1], ext[0], 1, 1, 1, 1};
    for (int k = 0; k < 3; k++)
        if (ext[k] < 1 || ext[k] > 32767) return hl_fail(ctx, HALO_ERR_SHAPE, "a NIfTI-1 image has 1 to 32767 voxels along an axis, not %" PRId64, ext[k]);
    nifti_1_header *h = nifti_make_new_n1_header(dims, DT_UINT8);
    if (!h) return hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: a NIfTI header");
    float *row[3] = {h->srow_x, h->srow_y, h->srow_z};
    for (int k = 0; k < HL_NIFTI_RANK; k++) n.dim[k] = dims[k + 1];
    for (int k = 0; k < 3; k++) {
        n.spacing[k] = n.affine[k][k] = spacing[2 - k];
        h->pixdim[k + 1] = row[k][k] = (float)spacing[2 - k];
    }
    h->sform_code = NIFTI_XFORM_SCANNER_ANAT;
    h->xyzt_units = NIFTI_UNITS_MM;
    memcpy(h->magic, "n+1", 4);
    n.elements = n.bytes = ext[0] * ext[1] * ext[2];
    memcpy(n.raw, h, sizeof(*h));
    free(h);
    *out = n;
    return HALO_OK;
}

/* The header of the scan, but for what is another volume's: one volume of that type, values as they are. */
static halo_status new_header(halo_context *ctx, const char *path, const hl_nifti *like, hl_number type, header *h, size_t *bytes)
{
    nifti_image *nim = image_of(like);
    if (!nim) return hl_fail(ctx, HALO_ERR_NOMEM, "'%s': nifticlib makes no header of that of '%s'", path, like->header ? like->header : "");
    bool two = like->version == 2;
    nim->ndim = nim->dim[0] = 3;
    for (int i = 1; i < 8; i++) nim->dim[i] = i <= 3 ? like->dim[i - 1] : 1;
    nim->nifti_type = two ? NIFTI_FTYPE_NIFTI2_1 : NIFTI_FTYPE_NIFTI1_1;
    nifti_update_dims_from_array(nim);
    nim->datatype = code_of(type);
    nifti_datatype_sizes(nim->datatype, &nim->nbyper, &nim->swapsize);
    nim->scl_slope = 1;
    nim->scl_inter = nim->cal_min = nim->cal_max = nim->toffset = nim->slice_duration = 0;
    nim->intent_code = NIFTI_INTENT_NONE;
    nim->intent_p1 = nim->intent_p2 = nim->intent_p3 = 0;
    memset(nim->intent_name, 0, sizeof(nim->intent_name));
    memset(nim->aux_file, 0, sizeof(nim->aux_file));
    memset(nim->descrip, 0, sizeof(nim->descrip));
    memcpy(nim->descrip, "halo", 5);
    nim->iname_offset = two ? 544 : 352;
    memset(h->raw, 0, sizeof(h->raw));
    int failed = two ? nifti_convert_nim2n2hdr(nim, &h->two) : nifti_convert_nim2n1hdr(nim, &h->one);
    nifti_image_free(nim);
    *bytes = two ? sizeof(h->two) : sizeof(h->one);
    return failed ? hl_fail(ctx, HALO_ERR_UNSUPPORTED, "'%s': nifticlib makes no header of that of '%s'", path, like->header ? like->header : "") : HALO_OK;
}

/* out[x y z] as stored = data[D H W] in RAS. */
static void to_stored(const hl_nifti *n, int bytes, const char *data, char *out)
{
    int64_t along[3], from[3], step = bytes; /* of RAS axes in data, and of stored axes */
    int64_t first = 0;
    for (int k = 0; k < 3; k++) {
        along[k] = step;
        step *= n->dim[n->axis[k]];
        from[n->axis[k]] = n->flip[k] ? -along[k] : along[k];
        if (n->flip[k]) first += (n->dim[n->axis[k]] - 1) * along[k];
    }
    for (int64_t z = 0; z < n->dim[2]; z++)
        for (int64_t y = 0; y < n->dim[1]; y++) {
            const char *at = data + first + z * from[2] + y * from[1];
            for (int64_t x = 0; x < n->dim[0]; x++, at += from[0], out += bytes) memcpy(out, at, (size_t)bytes);
        }
}

static halo_status write_file(halo_context *ctx, const char *path, const char *temporary, const header *h, size_t header_bytes, const char *data, size_t bytes)
{
    static const char no_extension[4];
    errno = 0;
    znzFile f = znzopen(temporary, "wb", ends_with(path, ".gz") > 0);
    if (znz_isnull(f)) return hl_fail(ctx, HALO_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    bool good = znzwrite(h->raw, 1, header_bytes, f) == header_bytes && znzwrite(no_extension, 1, 4, f) == 4 && znzwrite(data, 1, bytes, f) == bytes;
    good = znzclose(f) == 0 && good;
    if (good) return hl_file_commit(ctx, temporary, path);
    halo_status st = hl_fail(ctx, HALO_ERR_IO, "cannot write '%s': %s", path, errno ? strerror(errno) : "not all of it was taken");
    unlink(temporary);
    return st;
}

halo_status hl_nifti_write(halo_context *ctx, const char *path, const hl_nifti *like, hl_number type, const void *data)
{
    header h;
    size_t header_bytes = 0, bytes = (size_t)(like->dim[0] * like->dim[1] * like->dim[2]) * (size_t)type.bytes;
    char *stored = NULL, *temporary = NULL;
    halo_status st;
    if (!code_of(type)) return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "'%s': NIfTI images do not hold %s", path, hl_number_name(type));
    HL_TRY(new_header(ctx, path, like, type, &h, &header_bytes));
    HL_GOTO(st, hl_aligned(ctx, bytes, "an image", &stored), release);
    to_stored(like, type.bytes, data, stored);
    HL_GOTO(st, hl_temporary_name(ctx, path, &temporary), release);
    st = write_file(ctx, path, temporary, &h, header_bytes, stored, bytes);
release:
    free(temporary);
    free(stored);
    return st;
}

#else

static halo_status absent(halo_context *ctx, const char *path)
{
    return hl_fail(ctx, HALO_ERR_UNSUPPORTED, "'%s': this build has no nifticlib (Debian: libnifti-dev), so it neither reads nor writes NIfTI images", path);
}

halo_status hl_nifti_open(halo_context *ctx, const char *path, hl_nifti *nifti)
{
    (void)nifti;
    return absent(ctx, path);
}

halo_status hl_nifti_unpack(halo_context *ctx, const hl_nifti *nifti, void *out)
{
    (void)out;
    return absent(ctx, nifti->image);
}

halo_status hl_nifti_make(halo_context *ctx, const int64_t ext[3], const double spacing[3], hl_nifti *nifti)
{
    (void)ext, (void)spacing, (void)nifti;
    return absent(ctx, "an image");
}

halo_status hl_nifti_write(halo_context *ctx, const char *path, const hl_nifti *like, hl_number type, const void *data)
{
    (void)like, (void)type, (void)data;
    return absent(ctx, path);
}

#endif
