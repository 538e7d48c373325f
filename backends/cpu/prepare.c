/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prepare.c -- samples as they are stored become the network's input:
 *
 *   y[n,c,i] = t(x[n,c,s(i)])        s a symmetry of the cube and a periodic shift, t a chain of transforms, both of sample n
 *
 * A row of y runs along one axis of the stored sample, forward or backward, and goes around its border at most once: two runs of cells at one stride. They are loaded, transformed in double, rounded to
 * float after each transform as the loader's own threads do it, and stored. Planes (n, c, d) are dealt to the threads.
 */
#include "classes.h"
#include "rows.h"

enum { CHUNK = 256 };

typedef struct prepare_plan {
    hl_cpu_plan super;
    hl_side y;
    int64_t first, cells; /* of x: where its box begins; of a channel */
} prepare_plan;

typedef struct prepare_run {
    const prepare_plan *p;
    const void *x;
    const double *number; /* [N][HALO_SAMPLE_NUMBERS] */
    void *y;
} prepare_run;

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    const halo_operand *x = &d->t[HALO_X], *y = &d->t[HALO_Y];
    int64_t first;
    if (!hl_operand_valid(x) || !hl_operand_valid(y) || !hl_operand_valid(&d->t[HALO_STAT]) || d->t[HALO_STAT].dtype != HALO_F64 || d->transforms > HALO_MAX_TRANSFORMS) return 0;
    if (x->layout != HALO_NCDHW || !hl_operand_dense(x, &first) || x->ext[HALO_N] != y->ext[HALO_N] || x->ext[HALO_C] != y->ext[HALO_C]) return 0;
    return hl_operand_box_elements(x) == hl_operand_box_elements(y) ? hl_cpu_pointwise(dev, "cpu", hl_operand_box_elements(y), out) : 0;
}

static halo_status make(halo_device *dev, const halo_op_desc *d, const halo_candidate *choice, halo_plan **out)
{
    prepare_plan *p;
    const int64_t *e = d->t[HALO_Y].ext;
    (void)choice;
    HL_TRY(hl_cpu_plan_new(dev, d, sizeof(*p), &p));
    p->y = hl_side_of(&d->t[HALO_Y]);
    p->first = hl_box_offset(&d->t[HALO_X]);
    p->cells = e[HALO_D] * e[HALO_H] * e[HALO_W];
    *out = (halo_plan *)p;
    return HALO_OK;
}

/* Extents and strides of the axes of the stored sample. */
static void axes_of(const double *number, const int64_t ext[3], int64_t e[3], int64_t stride[3])
{
    for (int k = 0; k < 3; k++) e[(int)number[HALO_SAMPLE_AXIS + k]] = ext[k];
    stride[2] = 1;
    stride[1] = e[2];
    stride[0] = e[1] * e[2];
}

/* Index along the stored axis that axis k of the output runs along. */
static int64_t index_of(const double *number, int k, int64_t n, int64_t i)
{
    return ((number[HALO_SAMPLE_FLIP + k] != 0 ? n - 1 - i : i) + (int64_t)number[HALO_SAMPLE_SHIFT + (int)number[HALO_SAMPLE_AXIS + k]]) % n;
}

static void transform(const halo_op_desc *d, const double *number, double *v, int n)
{
    for (int t = 0; t < d->transforms; t++) {
        const double a = number[HALO_SAMPLE_CONSTANT + 2 * t], b = number[HALO_SAMPLE_CONSTANT + 2 * t + 1];
        const float low = (float)a, high = (float)b, scale = (float)(1 / (b - a));
        for (int i = 0; i < n && d->transform[t] == HALO_TRANSFORM_LOG1P; i++) v[i] = (double)(float)log1p(v[i]);
        for (int i = 0; i < n && d->transform[t] == HALO_TRANSFORM_STANDARD; i++) v[i] = (double)(float)((v[i] - a) / b);
        for (int i = 0; i < n && d->transform[t] == HALO_TRANSFORM_WINDOW; i++) {
            float x = (float)v[i];
            v[i] = (double)(((x < low ? low : x > high ? high : x) - low) * scale);
        }
    }
}

/* Cells [0, e) of a row of y, from x's cells at `from`, `step` apart along an axis of which this row begins at index j. */
static void prepare_row(const prepare_run *r, const double *number, int64_t from, int64_t stride, int64_t to, int64_t j)
{
    const halo_op_desc *d = &r->p->super.d;
    const int64_t e = d->t[HALO_Y].ext[HALO_W], yw = r->p->y.t.s[HALO_W];
    const bool back = number[HALO_SAMPLE_FLIP + 2] != 0, there = number[HALO_SAMPLE_THERE] != 0;
    double v[CHUNK] = {0};
    for (int64_t w = 0; w < e;) {
        int n = (int)hl_min64(hl_min64(CHUNK, e - w), back ? j + 1 : e - j);
        if (there) hl_row_load(d->t[HALO_X].dtype, r->x, from + j * stride, back ? -stride : stride, n, v);
        if (there) transform(d, number, v, n);
        hl_row_store(r->p->y.type, r->y, to + w * yw, yw, n, v);
        w += n;
        j = back ? (j - n + e) % e : (j + n) % e;
    }
}

/* Plane i: (n, c, d). */
static void plane(void *arg, int64_t i)
{
    const prepare_run *r = arg;
    const prepare_plan *p = r->p;
    const int64_t *ext = p->super.d.t[HALO_Y].ext, d = i % ext[HALO_D], c = i / ext[HALO_D] % ext[HALO_C], n = i / ext[HALO_D] / ext[HALO_C];
    const double *number = r->number + n * HALO_SAMPLE_NUMBERS;
    int64_t e[3], stride[3], step[3] = {0, 0, 0}, j = 0;
    const bool there = number[HALO_SAMPLE_THERE] != 0;
    if (there) axes_of(number, ext + HALO_D, e, stride);
    for (int k = 0; k < 3 && there; k++) step[k] = stride[(int)number[HALO_SAMPLE_AXIS + k]];
    if (there) j = index_of(number, 2, ext[HALO_W], 0);
    for (int64_t h = 0; h < ext[HALO_H]; h++) {
        int64_t from = p->first + (n * ext[HALO_C] + c) * p->cells;
        if (there) from += index_of(number, 0, ext[HALO_D], d) * step[0] + index_of(number, 1, ext[HALO_H], h) * step[1];
        prepare_row(r, number, from, step[2], p->y.offset + hl_offset(&p->y.t, n, c, d, h, 0), j);
    }
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    const prepare_plan *p = (const prepare_plan *)plan;
    const int64_t *e = p->super.d.t[HALO_Y].ext;
    prepare_run r = {p, args->ptr[HALO_X], (const double *)args->ptr[HALO_STAT] + hl_box_offset(&p->super.d.t[HALO_STAT]), args->ptr[HALO_Y]};
    hl_parallel(p->super.dev, e[HALO_N] * e[HALO_C] * e[HALO_D], plane, &r);
    return HALO_OK;
}

const halo_op_class hl_cpu_prepare = {.kind = HALO_OP_PREPARE, .candidates = candidates, .plan = make, .run = run, .destroy = hl_cpu_plan_free};
