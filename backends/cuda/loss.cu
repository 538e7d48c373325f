/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.cu -- losses with their gradients, a block per part of a sample; then one thread adds the parts in order. The formulas stand in loss.c.
 *
 * What a pass needs to know of a whole sample, its targets' squares or its classes' sums, an earlier pass has found; probabilities are worked out anew in each.
 */
#include "words.cuh"

static __device__ inline float penalty(const hl_losing &l, float delta, float r)
{
    float a = fabsf(r);
    if (l.loss == HALO_LOSS_MAE) return a;
    if (l.loss != HALO_LOSS_HUBER) return r * r;
    return a <= delta ? r * r / 2 : delta * (a - delta / 2);
}

static __device__ inline float gradient(const hl_losing &l, float delta, float r)
{
    float sign = (float)(r > 0) - (float)(r < 0);
    if (l.loss == HALO_LOSS_MAE) return isnan(r) ? r : sign;
    if (l.loss != HALO_LOSS_HUBER) return 2 * r;
    return fabsf(r) <= delta || isnan(r) ? r : delta * sign;
}

/* ------------------------------------------------------------------------------------------------ differences to targets */

/* Squares of targets. */
template <class U> HL_KERNEL(HL_BLOCK) target_parts(hl_groups g, const U *t, double *partial)
{
    HL_SHARED(double, shared, HL_BLOCK);
    for (int64_t n = blockIdx.y; n < g.groups; n += gridDim.y) {
        int64_t start = hl_group_start(g, n, 1), end = hl_part_end(g, g.cells.total);
        double v[1] = {0};
        for (int64_t i = hl_part_begin(g, g.cells.total) + threadIdx.x; i < end; i += HL_BLOCK) {
            double a = hl_load(t, start + hl_at<2>(g.cells, i).a[1]);
            v[0] += a * a;
        }
        hl_block_sum<1>(v, shared);
        if (threadIdx.x == 0) partial[(n * g.parts + blockIdx.x) * HL_GROUP_SUMS] = v[0];
    }
}

HL_KERNEL(HL_BLOCK) target_norms(hl_groups g, hl_losing l, const double *partial, double *norm)
{
    for (int64_t n = HL_INDEX; n < g.groups; n += HL_STRIDE) norm[n] = fmax(hl_parts_sum(g, partial, n, 0) / l.targets, l.least);
}

template <class T, class U>
HL_KERNEL(HL_BLOCK) lose_parts(hl_groups g, hl_losing l, const T *x, const U *t, const double *weight, const double *norm, T *dx, double *partial, const halo_step_record *record)
{
    HL_SHARED(double, shared, HL_BLOCK);
    for (int64_t n = blockIdx.y; n < g.groups; n += gridDim.y) {
        int64_t x0 = hl_group_start(g, n, 0), t0 = hl_group_start(g, n, 1), d0 = hl_group_start(g, n, 2), end = hl_part_end(g, g.cells.total);
        float delta = (float)(record->delta > 0 ? record->delta : l.delta);
        float scale = (float)((weight ? weight[n] : 1) / (norm ? norm[n] : 1) / l.targets * record->loss_scale / record->weight_sum);
        double v[1] = {0};
        for (int64_t i = hl_part_begin(g, g.cells.total) + threadIdx.x; i < end; i += HL_BLOCK) {
            hl_offsets<3> at = hl_at<3>(g.cells, i);
            float r = hl_load(x, x0 + at.a[0]) - hl_load(t, t0 + at.a[1]);
            v[0] += penalty(l, delta, r);
            if (dx) hl_store(dx, d0 + at.a[2], gradient(l, delta, r) * scale);
        }
        hl_block_sum<1>(v, shared);
        if (threadIdx.x == 0) partial[(n * g.parts + blockIdx.x) * HL_GROUP_SUMS] = v[0];
    }
}

HL_KERNEL(32) lose_total(hl_groups g, hl_losing l, const double *weight, const double *norm, const double *partial, double *stat)
{
    if (threadIdx.x != 0) return;
    double loss = 0, sum = 0;
    for (int64_t n = 0; n < g.groups; n++) {
        double w = weight ? weight[n] : 1;
        loss += w * hl_parts_sum(g, partial, n, 0) / l.targets / (norm ? norm[n] : 1);
        sum += w;
    }
    stat[0] += loss;
    stat[1] += sum;
}

/* ------------------------------------------------------------------------------------------------------------- classes */

/* Of the cell whose logits are x[0], x[step], ...: the largest, the sum of exponents, and the class of the largest. */
struct hl_logits {
    float m, z;
    int64_t top;
};

template <class T> static __device__ inline hl_logits logits_of(const hl_losing &l, const T *x)
{
    hl_logits o = {hl_load(x, 0), 0, 0};
    for (int64_t c = 1; c < l.classes; c++) {
        float v = hl_load(x, c * l.x_step);
        if (v > o.m || isnan(v)) o.m = v, o.top = c;
    }
    for (int64_t c = 0; c < l.classes; c++) o.z += expf(hl_load(x, c * l.x_step) - o.m);
    return o;
}

template <class T> static __device__ inline float share_of(const hl_losing &l, const hl_logits &o, const T *x, int64_t c) { return expf(hl_load(x, c * l.x_step) - o.m) / o.z; }

static __device__ inline bool ignored(const hl_losing &l, float label) { return l.ignores && label == l.ignore; }
static __device__ inline bool known(const hl_losing &l, float label) { return label >= 0 && label < (float)l.classes && label == floorf(label); }

enum { CLASSES_AT_ONCE = 8 };

/* One cell's part of the sums of the classes from `first` on. */
template <class T> static __device__ inline void add_cell(const hl_losing &l, const T *x, float label, int64_t first, double (&v)[CLASSES_AT_ONCE][2])
{
    hl_logits o = logits_of(l, x);
    bool good = known(l, label);
#pragma unroll
    for (int k = 0; k < CLASSES_AT_ONCE; k++) {
        if (first + k >= l.classes) break;
        float p = good ? share_of(l, o, x, first + k) : NAN;
        bool is = label == (float)(first + k);
        v[k][0] += is ? p : p * 0;
        v[k][1] += p + (is ? 1.f : 0.f);
    }
}

/* Of every class: sum p [t = c], sum p + sum [t = c]. partial: [samples][parts][classes][2]. Cells are read once for every eight classes. */
template <class T, class U> HL_KERNEL(HL_BLOCK) class_parts(hl_groups g, hl_losing l, const T *x, const U *t, double *partial)
{
    HL_SHARED(double, shared, HL_BLOCK * 2);
    for (int64_t n = blockIdx.y; n < g.groups; n += gridDim.y) {
        int64_t x0 = hl_group_start(g, n, 0), t0 = hl_group_start(g, n, 1), end = hl_part_end(g, g.cells.total);
        for (int64_t first = 0; first < l.classes; first += CLASSES_AT_ONCE) {
            double v[CLASSES_AT_ONCE][2] = {{0}};
            for (int64_t i = hl_part_begin(g, g.cells.total) + threadIdx.x; i < end; i += HL_BLOCK) {
                hl_offsets<2> at = hl_at<2>(g.cells, i);
                float label = hl_load(t, t0 + at.a[1]);
                if (!ignored(l, label)) add_cell(l, x + x0 + at.a[0], label, first, v);
            }
#pragma unroll
            for (int k = 0; k < CLASSES_AT_ONCE; k++) {
                if (first + k >= l.classes) break;
                hl_block_sum<2>(v[k], shared);
                if (threadIdx.x != 0) continue;
                double *to = partial + ((n * g.parts + blockIdx.x) * l.classes + first + k) * 2;
                to[0] = v[k][0], to[1] = v[k][1];
            }
        }
    }
}

/* sums: [samples][2][classes] */
HL_KERNEL(HL_BLOCK) class_sums(hl_groups g, hl_losing l, const double *partial, double *sums)
{
    for (int64_t i = HL_INDEX; i < g.groups * l.classes; i += HL_STRIDE) {
        int64_t n = i / l.classes, c = i % l.classes;
        double common = 0, all = 0;
        for (int64_t k = 0; k < g.parts; k++) {
            const double *from = partial + ((n * g.parts + k) * l.classes + c) * 2;
            common += from[0], all += from[1];
        }
        sums[n * 2 * l.classes + c] = common;
        sums[(n * 2 + 1) * l.classes + c] = all;
    }
}

/* loss[n] = 1 - weighted mean of dice; table [samples][classes][2]: a / (S + 1), dice */
HL_KERNEL(HL_BLOCK) dice_table(hl_groups g, hl_losing l, const double *sums, const double *of_class, double *loss, float *table)
{
    int64_t first = l.classes > 1;
    for (int64_t n = HL_INDEX; n < g.groups; n += HL_STRIDE) {
        double weights = 0, rest = 1;
        for (int64_t c = first; c < l.classes; c++) weights += of_class ? of_class[c] : 1;
        for (int64_t c = 0; c < l.classes; c++) {
            double common = sums[n * 2 * l.classes + c], all = sums[(n * 2 + 1) * l.classes + c];
            double share = c < first ? 0 : (of_class ? of_class[c] : 1) / weights, dice = (2 * common + 1) / (all + 1);
            float *row = table + (n * l.classes + c) * 2;
            row[0] = (float)(share / (all + 1));
            row[1] = (float)dice;
            rest -= share * dice;
        }
        loss[n] = rest;
    }
}

template <class T> static __device__ inline void clear_cell(const hl_losing &l, T *dx)
{
    for (int64_t c = 0; dx && c < l.classes; c++) hl_store(dx, c * l.dx_step, 0);
}

/* d loss / d p of class c */
static __device__ inline float dice_slope(const float *table, int64_t c, bool is) { return -table[2 * c] * ((is ? 2.f : 0.f) - table[2 * c + 1]); }

/* One cell: its weighted cross entropy, and dx = scale (p (g - sum p g) + entropy (p - [c = t])). Differences that nearly cancel where a
 * class is nearly certain are sums over the other classes: p - 1 = -sum of the others' p, and with the likeliest class r, g_c - sum_k p_k g_k =
 * (g_c - g_r) - sum over k but r of p_k (g_k - g_r). */
template <class T> static __device__ inline float lose_cell(const hl_losing &l, const T *x, float label, const double *of_class, const float *table, float entropy, float scale, T *dx)
{
    hl_logits o = logits_of(l, x);
    bool good = known(l, label);
    int64_t mine = good ? (int64_t)label : 0;
    float weight = !good ? NAN : of_class ? (float)of_class[mine] : 1.f, others = 0, mean = 0, at_top = table ? dice_slope(table, o.top, o.top == mine) : 0;
    for (int64_t c = 0; dx && c < l.classes; c++) {
        float p = share_of(l, o, x, c);
        if (c != mine) others += p;
        if (table && c != o.top) mean += p * (dice_slope(table, c, c == mine) - at_top);
    }
    for (int64_t c = 0; dx && c < l.classes; c++) {
        float p = share_of(l, o, x, c), slope = table ? dice_slope(table, c, c == mine) - at_top - mean : 0;
        float d = entropy * weight * (c == mine ? -others : p) + p * slope;
        hl_store(dx, c * l.dx_step, good ? d * scale : NAN);
    }
    return weight * (o.m - hl_load(x, mine * l.x_step) + logf(o.z));
}

template <class T, class U>
HL_KERNEL(HL_BLOCK) lose_classes(hl_groups g, hl_losing l, const T *x, const U *t, const double *weight, const double *of_class, const double *divisor, const float *table, T *dx,
                                 double *partial, const halo_step_record *record)
{
    HL_SHARED(double, shared, HL_BLOCK);
    for (int64_t n = blockIdx.y; n < g.groups; n += gridDim.y) {
        int64_t x0 = hl_group_start(g, n, 0), t0 = hl_group_start(g, n, 1), d0 = hl_group_start(g, n, 2), end = hl_part_end(g, g.cells.total);
        float scale = (float)((weight ? weight[n] : 1) * record->loss_scale / record->weight_sum), entropy = l.entropy ? (float)(1 / (divisor ? divisor[n] : l.targets)) : 0;
        double v[1] = {0};
        for (int64_t i = hl_part_begin(g, g.cells.total) + threadIdx.x; i < end; i += HL_BLOCK) {
            hl_offsets<3> at = hl_at<3>(g.cells, i);
            float label = hl_load(t, t0 + at.a[1]);
            T *to = dx ? dx + d0 + at.a[2] : dx;
            if (ignored(l, label))
                clear_cell(l, to);
            else
                v[0] += lose_cell(l, x + x0 + at.a[0], label, of_class, table ? table + n * l.classes * 2 : table, entropy, scale, to);
        }
        hl_block_sum<1>(v, shared);
        if (threadIdx.x == 0) partial[(n * g.parts + blockIdx.x) * HL_GROUP_SUMS] = v[0];
    }
}

HL_KERNEL(32) class_total(hl_groups g, hl_losing l, const double *weight, const double *divisor, const double *dice, const double *partial, double *stat)
{
    if (threadIdx.x != 0) return;
    double loss = 0, sum = 0;
    for (int64_t n = 0; n < g.groups; n++) {
        double w = weight ? weight[n] : 1, entropy = hl_parts_sum(g, partial, n, 0);
        loss += w * ((dice ? l.part * dice[n] : 0) + (l.entropy ? entropy / (divisor ? divisor[n] : l.targets) : 0 * entropy));
        sum += w;
    }
    stat[0] += loss;
    stat[1] += sum;
}

/* ------------------------------------------------------------------------------------------------------------- together */

static inline int64_t entropy_doubles(const hl_groups *g) { return g->groups * g->parts * HL_GROUP_SUMS; }

/* Doubles of scratch: parts of the loss; per sample its norm or dice; parts and sums of its classes; the table. */
extern "C" size_t hl_cuda_loss_bytes(const hl_groups *g, const hl_losing *l)
{
    int64_t n = entropy_doubles(g) + g->groups;
    if (l->dice) n += g->groups * l->classes * (2 * g->parts + 2 + 1);
    return (size_t)n * sizeof(double);
}

template <class T, class U> static cudaError_t find_sums(cudaStream_t stream, const hl_groups *g, const hl_losing *l, const T *x, const U *t, double *partial, double *sums)
{
    cudaError_t e = HL_LAUNCH((class_parts<T, U>), hl_group_grid(g), HL_BLOCK, 0, stream, *g, *l, x, t, HL_SPAN(partial, g->groups * g->parts * l->classes * 2));
    if (e != cudaSuccess) return e;
    return HL_LAUNCH(class_sums, hl_grid(g->groups * l->classes), HL_BLOCK, 0, stream, *g, *l, (const double *)partial, HL_SPAN(sums, g->groups * l->classes * 2));
}

template <class T, class U> static cudaError_t lose_of_classes(cudaStream_t stream, const hl_groups *g, const hl_losing *l, const hl_loss_memory *m, const halo_step_record *record)
{
    double *partial = (double *)m->scratch, *dice = partial + entropy_doubles(g), *sums = dice + g->groups, *parts = sums + g->groups * l->classes * 2;
    float *table = (float *)(void *)(parts + g->groups * g->parts * l->classes * 2);
    cudaError_t e = cudaSuccess;
    if (l->dice && !m->given) e = find_sums(stream, g, l, (const T *)m->x, (const U *)m->t, parts, sums);
    if (l->dice && e == cudaSuccess)
        e = HL_LAUNCH(dice_table, hl_grid(g->groups), HL_BLOCK, 0, stream, *g, *l, HL_SPAN(m->given ? m->given : (const double *)sums, g->groups * l->classes * 2), m->of_class, HL_SPAN(dice, g->groups),
                      HL_SPAN(table, g->groups * l->classes * 2));
    if (e != cudaSuccess) return e;
    e = HL_LAUNCH((lose_classes<T, U>), hl_group_grid(g), HL_BLOCK, 0, stream, *g, *l, (const T *)m->x, (const U *)m->t, m->weight, m->of_class, m->divisor,
                  HL_SPAN((const float *)(l->dice ? table : 0), g->groups * l->classes * 2), (T *)m->dx, HL_SPAN(partial, entropy_doubles(g)), HL_SPAN(record, 1));
    if (e != cudaSuccess) return e;
    return HL_LAUNCH(class_total, 1, 32, 0, stream, *g, *l, m->weight, m->divisor, HL_SPAN((const double *)(l->dice ? dice : 0), g->groups), HL_SPAN((const double *)partial, entropy_doubles(g)),
                     HL_SPAN(m->stat, 2));
}

template <class T, class U> static cudaError_t lose_of_targets(cudaStream_t stream, const hl_groups *g, const hl_losing *l, const hl_loss_memory *m, const halo_step_record *record)
{
    double *partial = (double *)m->scratch, *norm = l->loss == HALO_LOSS_RELATIVE_MSE ? partial + entropy_doubles(g) : 0;
    cudaError_t e = cudaSuccess;
    if (norm) e = HL_LAUNCH(target_parts<U>, hl_group_grid(g), HL_BLOCK, 0, stream, *g, (const U *)m->t, HL_SPAN(partial, entropy_doubles(g)));
    if (norm && e == cudaSuccess)
        e = HL_LAUNCH(target_norms, hl_grid(g->groups), HL_BLOCK, 0, stream, *g, *l, HL_SPAN((const double *)partial, entropy_doubles(g)), HL_SPAN(norm, g->groups));
    if (e != cudaSuccess) return e;
    e = HL_LAUNCH((lose_parts<T, U>), hl_group_grid(g), HL_BLOCK, 0, stream, *g, *l, (const T *)m->x, (const U *)m->t, m->weight, HL_SPAN((const double *)norm, g->groups), (T *)m->dx,
                  HL_SPAN(partial, entropy_doubles(g)), HL_SPAN(record, 1));
    if (e != cudaSuccess) return e;
    return HL_LAUNCH(lose_total, 1, 32, 0, stream, *g, *l, m->weight, HL_SPAN((const double *)norm, g->groups), HL_SPAN((const double *)partial, entropy_doubles(g)), HL_SPAN(m->stat, 2));
}

template <class T, class U> static cudaError_t lose(cudaStream_t stream, const hl_groups *g, const hl_losing *l, const hl_loss_memory *m, const halo_step_record *record)
{
    return l->of_classes ? lose_of_classes<T, U>(stream, g, l, m, record) : lose_of_targets<T, U>(stream, g, l, m, record);
}

template <class T> static cudaError_t lose_by(cudaStream_t stream, halo_dtype t_type, const hl_groups *g, const hl_losing *l, const hl_loss_memory *m, const halo_step_record *record)
{
    return t_type == HALO_F32 ? lose<T, float>(stream, g, l, m, record) : lose<T, T>(stream, g, l, m, record);
}

template <class T> static cudaError_t sums_by(cudaStream_t stream, halo_dtype t_type, const hl_groups *g, const hl_losing *l, const hl_loss_memory *m)
{
    double *partial = (double *)m->scratch;
    return t_type == HALO_F32 ? find_sums(stream, g, l, (const T *)m->x, (const float *)m->t, partial, m->stat) : find_sums(stream, g, l, (const T *)m->x, (const T *)m->t, partial, m->stat);
}

extern "C" cudaError_t hl_cuda_lose(cudaStream_t stream, halo_dtype type, halo_dtype t_type, const hl_groups *g, const hl_losing *l, const hl_loss_memory *m, const halo_step_record *record)
{
    HL_BY_TYPE(type, lose_by<T>(stream, t_type, g, l, m, record));
}

extern "C" cudaError_t hl_cuda_loss_sums(cudaStream_t stream, halo_dtype type, halo_dtype t_type, const hl_groups *g, const hl_losing *l, const hl_loss_memory *m)
{
    HL_BY_TYPE(type, sums_by<T>(stream, t_type, g, l, m));
}
