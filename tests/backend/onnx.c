/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onnx.c -- the public ONNX node test vectors (onnx/backend/test/data/node), which nobody on this project wrote, through every backend in every
 * layout. Each directory has model.onnx (one node with its attributes) and its input and output tensors as protobuf messages; both are read here
 * with the little of the wire format that they need.
 *
 * HALO_TESTDATA names the directory that holds onnx+onnx.node; the whole program is skipped without it.
 */
#include "backend/backend.h"

#include "base/file.h"
#include "tests/check.h"
#include "tests/tap.h"

#include <dirent.h>

/* --------------------------------------------------------------------------------------------------- protobuf on wire */

typedef struct message { const unsigned char *p, *end; } message;
typedef struct field {
    int number, wire;
    uint64_t value; /* varint, fixed32, fixed64 */
    message data;   /* length-delimited */
} field;

static bool varint(message *m, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && m->p < m->end; shift += 7) {
        unsigned char b = *m->p++;
        *v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

static bool fixed(message *m, size_t bytes, uint64_t *v)
{
    if ((size_t)(m->end - m->p) < bytes) return false;
    *v = 0;
    for (size_t i = 0; i < bytes; i++) *v |= (uint64_t)m->p[i] << 8 * i;
    m->p += bytes;
    return true;
}

/* The next field; false at the end or on nonsense. */
static bool next(message *m, field *f)
{
    uint64_t tag, length;
    if (m->p >= m->end || !varint(m, &tag)) return false;
    *f = (field){.number = (int)(tag >> 3), .wire = (int)(tag & 7)};
    if (f->wire == 0) return varint(m, &f->value);
    if (f->wire == 1) return fixed(m, 8, &f->value);
    if (f->wire == 5) return fixed(m, 4, &f->value);
    if (f->wire != 2 || !varint(m, &length) || length > (uint64_t)(m->end - m->p)) return false;
    f->data = (message){m->p, m->p + length};
    m->p += length;
    return true;
}

static float as_float(uint64_t bits)
{
    uint32_t u = (uint32_t)bits;
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

/* ---------------------------------------------------------------------------------------------------- what is in them */

enum { MAX_DIMS = 5, MAX_TENSORS = 8, MAX_INTS = 16 };

typedef struct tensor {
    int rank;
    int64_t dim[MAX_DIMS], n;
    int type; /* of ONNX: 1 float, 2 uint8, 7 int64, 11 double */
    double *v;
} tensor;

typedef struct attribute {
    char name[32], s[16];
    double f;
    int64_t i, ints[MAX_INTS];
    int n;
} attribute;

typedef struct vector {
    char name[128], op[32];
    attribute attr[16];
    int attrs, ins, outs;
    tensor in[MAX_TENSORS], out[MAX_TENSORS];
} vector;

static void copy_text(char *to, size_t size, message m)
{
    snprintf(to, size, "%.*s", (int)(m.end - m.p), (const char *)m.p);
}

static void parse_attribute(message m, attribute *a)
{
    field f;
    while (next(&m, &f)) {
        if (f.number == 1) copy_text(a->name, sizeof(a->name), f.data);
        if (f.number == 2) a->f = (double)as_float(f.value);
        if (f.number == 3) a->i = (int64_t)f.value;
        if (f.number == 4) copy_text(a->s, sizeof(a->s), f.data);
        if (f.number == 8 && f.wire == 0 && a->n < MAX_INTS) a->ints[a->n++] = (int64_t)f.value;
        if (f.number == 8 && f.wire == 2)
            for (uint64_t v; a->n < MAX_INTS && varint(&f.data, &v);) a->ints[a->n++] = (int64_t)v;
    }
}

/* ModelProto.graph (7) . node (1) . op_type (4), attribute (5); false when it has not one node. */
static bool parse_model(message m, vector *v)
{
    field f, g, n;
    int nodes = 0;
    while (next(&m, &f)) {
        if (f.number != 7) continue;
        while (next(&f.data, &g)) {
            if (g.number != 1) continue;
            nodes++;
            while (next(&g.data, &n)) {
                if (n.number == 4) copy_text(v->op, sizeof(v->op), n.data);
                if (n.number == 5 && v->attrs < 16) parse_attribute(n.data, &v->attr[v->attrs++]);
            }
        }
    }
    return nodes == 1;
}

static size_t element_size(int type) { return type == 1 ? 4 : type == 2 ? 1 : type == 7 || type == 11 ? 8 : 0; }

static double element(int type, const unsigned char *p)
{
    message m = {p, p + 8};
    uint64_t u = 0;
    double d;
    fixed(&m, element_size(type), &u);
    if (type == 1) return (double)as_float(u);
    if (type == 2) return (double)u;
    if (type == 7) return (double)(int64_t)u;
    memcpy(&d, &u, sizeof(d));
    return d;
}

/* TensorProto: dims (1), data_type (2), raw_data (9). */
static bool parse_tensor(message m, tensor *t)
{
    field f;
    message raw = {NULL, NULL};
    t->n = 1;
    while (next(&m, &f)) {
        if (f.number == 1 && f.wire == 0 && t->rank < MAX_DIMS) t->dim[t->rank++] = (int64_t)f.value;
        if (f.number == 1 && f.wire == 2)
            for (uint64_t v; t->rank < MAX_DIMS && varint(&f.data, &v);) t->dim[t->rank++] = (int64_t)v;
        if (f.number == 2) t->type = (int)f.value;
        if (f.number == 9) raw = f.data;
    }
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] < 1 || t->dim[i] > 1 << 20 || !hl_mul64(t->n, t->dim[i], &t->n)) return false;
    size_t size = element_size(t->type);
    if (size == 0 || (size_t)(raw.end - raw.p) != (size_t)t->n * size) return false;
    t->v = check_alloc(t->n, 8);
    for (int64_t i = 0; i < t->n; i++) t->v[i] = element(t->type, raw.p + (size_t)i * size);
    return true;
}

static bool read_tensor(const char *dir, const char *kind, int i, tensor *t)
{
    char path[1200], *data;
    size_t bytes;
    snprintf(path, sizeof(path), "%s/test_data_set_0/%s_%d.pb", dir, kind, i);
    if (!hl_file_exists(path)) return false;
    check_status(NULL, hl_file_read(NULL, path, 1 << 26, &data, &bytes), path);
    bool good = parse_tensor((message){(unsigned char *)data, (unsigned char *)data + bytes}, t);
    free(data);
    return good;
}

static bool read_vector(const char *dir, vector *v)
{
    char path[1100], *data;
    size_t bytes;
    snprintf(path, sizeof(path), "%s/model.onnx", dir);
    if (!hl_file_exists(path)) return false;
    check_status(NULL, hl_file_read(NULL, path, 1 << 26, &data, &bytes), path);
    bool good = parse_model((message){(unsigned char *)data, (unsigned char *)data + bytes}, v);
    free(data);
    while (good && v->ins < MAX_TENSORS && read_tensor(dir, "input", v->ins, &v->in[v->ins])) v->ins++;
    while (good && v->outs < MAX_TENSORS && read_tensor(dir, "output", v->outs, &v->out[v->outs])) v->outs++;
    return good && v->ins > 0 && v->outs > 0;
}

static void free_vector(vector *v)
{
    for (int i = 0; i < MAX_TENSORS; i++) {
        free(v->in[i].v);
        free(v->out[i].v);
    }
}

static const attribute *find(const vector *v, const char *name)
{
    for (int i = 0; i < v->attrs; i++)
        if (strcmp(v->attr[i].name, name) == 0) return &v->attr[i];
    return NULL;
}

static int64_t int_of(const vector *v, const char *name, int64_t otherwise)
{
    return find(v, name) ? find(v, name)->i : otherwise;
}
static double float_of(const vector *v, const char *name, double otherwise)
{
    return find(v, name) ? find(v, name)->f : otherwise;
}

/* ------------------------------------------------------------------------------------------------------------ running */

/* One operation being set up on a device: operands are given with their values, results are fetched. */
typedef struct job {
    halo_device *dev;
    halo_layout layout;
    halo_op_desc d;
    halo_step_record record;
    void *ptr[HALO_ROLES];
    double error; /* largest, relative to the largest wanted value */
    const char *skip;
} job;

static void give(job *j, halo_role role, halo_operand op, const double *values)
{
    size_t bytes;
    HL_BUG_UNLESS(hl_operand_bytes(&op, &bytes));
    j->d.t[role] = op;
    check_status(j->dev->ctx, j->dev->ops->alloc(j->dev, bytes, &j->ptr[role]), "alloc");
    check_status(j->dev->ctx, j->dev->ops->fill(j->dev, j->ptr[role], 0, bytes, NULL), "fill");
    if (values) check_status(j->dev->ctx, j->dev->ops->upload(j->dev, &op, j->ptr[role], HALO_F64, values), "upload");
}

/* An activation of rank 3 to 5: N C W, N C H W, N C D H W. */
static void give_volume(job *j, halo_role role, const tensor *t, const double *values)
{
    int64_t e[HALO_DIMS] = {t->dim[0], t->dim[1], 1, 1, 1};
    for (int i = 2; i < t->rank; i++) e[HALO_DIMS - t->rank + i] = t->dim[i];
    give(j, role, hl_operand_whole(j->dev->compute, j->layout, e), values);
}

static void give_flat(job *j, halo_role role, halo_dtype type, int64_t n, const double *values)
{
    give(j, role, hl_operand_flat(type, n), values);
}

static void compare(job *j, halo_role role, const tensor *want)
{
    double *got = check_alloc(want->n, 8), scale = 1e-30, error = 0;
    check_status(j->dev->ctx, j->dev->ops->download(j->dev, &j->d.t[role], j->ptr[role], HALO_F64, got), "download");
    for (int64_t i = 0; i < want->n; i++) {
        scale = fmax(scale, fabs(want->v[i]));
        error = check_worse(error, fabs(got[i] - want->v[i]));
    }
    j->error = check_worse(j->error, error / scale);
    free(got);
}

static bool applicable(job *j)
{
    halo_candidate c[HALO_MAX_CANDIDATES];
    if (hl_op_candidates(j->dev, &j->d, c) > 0) return true;
    j->skip = "the backend declines it";
    return false;
}

static void run(job *j)
{
    check_status(j->dev->ctx, hl_op_run_once(j->dev, &j->d, NULL, j->ptr, &j->record), hl_op_kind_name(j->d.kind));
}

/* ---------------------------------------------------------------------------------------------------------- operators */

/* Kernel, stride, dilation of the last `rank` dimensions. */
static void window_from(const vector *v, const tensor *w, int rank, halo_window *g)
{
    const attribute *k = find(v, "kernel_shape"), *s = find(v, "strides"), *l = find(v, "dilations"),
                    *p = find(v, "pads");
    for (int i = 0; i < 3; i++) {
        int a = i - (3 - rank);
        g->kernel[i] = a < 0 ? 1 : k ? k->ints[a] : w->dim[2 + a];
        g->stride[i] = a < 0 || !s ? 1 : s->ints[a];
        g->dilation[i] = a < 0 || !l ? 1 : l->ints[a];
        g->pad_lo[i] = a < 0 || !p ? 0 : p->ints[a];
    }
}

/* auto_pad: what the extents leave over is shared, the odd cell at the end (UPPER) or at the beginning (LOWER). */
static void auto_pad(const vector *v, const tensor *in, const tensor *out, halo_window *g)
{
    const attribute *a = find(v, "auto_pad");
    if (!a || strncmp(a->s, "SAME", 4) != 0) return;
    for (int i = 5 - in->rank; i < 3; i++) {
        int at = i - (5 - in->rank) + 2;
        int64_t total = (out->dim[at] - 1) * g->stride[i] + g->dilation[i] * (g->kernel[i] - 1) + 1 - in->dim[at];
        g->pad_lo[i] = total <= 0 ? 0 : strcmp(a->s, "SAME_LOWER") == 0 ? (total + 1) / 2 : total / 2;
    }
}

static void give_weights(job *j, const tensor *w)
{
    int64_t e[HALO_DIMS] = {w->dim[0], w->dim[1], 1, 1, 1};
    for (int i = 2; i < w->rank; i++) e[HALO_DIMS - w->rank + i] = w->dim[i];
    give(j, HALO_WT, hl_operand_whole(j->dev->master, HALO_NCDHW, e), w->v);
}

static void do_conv(job *j, const vector *v)
{
    const tensor *x = &v->in[0], *w = &v->in[1], *y = &v->out[0];
    if (int_of(v, "group", 1) != 1) {
        j->skip = "no groups in halo";
        return;
    }
    j->d.kind = HALO_OP_CONV_FWD;
    window_from(v, w, x->rank - 2, &j->d.window);
    auto_pad(v, x, y, &j->d.window);
    give_volume(j, HALO_X, x, x->v);
    give_weights(j, w);
    if (v->ins > 2) give_flat(j, HALO_B, j->dev->master, v->in[2].n, v->in[2].v);
    give_volume(j, HALO_Y, y, NULL);
    if (!applicable(j)) return;
    run(j);
    compare(j, HALO_Y, y);
}

/* Convolution backward data used forward: ONNX's weights (in, out, k) are the (o, i, k) of the convolution whose gradient this is. */
static void do_transposed(job *j, const vector *v)
{
    const tensor *x = &v->in[0], *w = &v->in[1], *y = &v->out[0];
    if (int_of(v, "group", 1) != 1) {
        j->skip = "no groups in halo";
        return;
    }
    j->d.kind = HALO_OP_CONV_BWD_DATA;
    window_from(v, w, x->rank - 2, &j->d.window);
    auto_pad(v, y, x, &j->d.window);
    give_volume(j, HALO_DY, x, x->v);
    give_weights(j, w);
    give_volume(j, HALO_DX, y, NULL);
    if (!applicable(j)) return;
    run(j);
    compare(j, HALO_DX, y);
}

/* AUX counts within the window, ONNX's indices over the whole tensor. */
static void compare_argmax(job *j, const vector *v)
{
    const tensor *x = &v->in[0], *z = &v->out[1];
    const halo_window *g = &j->d.window;
    double *aux = check_alloc(z->n, 8);
    check_status(j->dev->ctx, j->dev->ops->download(j->dev, &j->d.t[HALO_AUX], j->ptr[HALO_AUX], HALO_F64, aux),
                 "download");
    for (int64_t i = 0; i < z->n; i++) { /* 2-D */
        int64_t ow = z->dim[3], oh = z->dim[2], k = (int64_t)aux[i], plane = i / (ow * oh);
        int64_t row = i / ow % oh * g->stride[1] - g->pad_lo[1] + k / g->kernel[2] % g->kernel[1] * g->dilation[1];
        int64_t column = i % ow * g->stride[2] - g->pad_lo[2] + k % g->kernel[2] * g->dilation[2];
        if ((double)((plane * x->dim[2] + row) * x->dim[3] + column) != z->v[i]) j->error = INFINITY;
    }
    free(aux);
}

static void do_pool(job *j, const vector *v)
{
    const tensor *x = &v->in[0], *y = &v->out[0];
    bool global = strcmp(v->op, "GlobalAveragePool") == 0,
         indices = v->outs > 1 && x->rank == 4 && int_of(v, "storage_order", 0) == 0;
    j->d.kind = HALO_OP_POOL_FWD;
    j->d.pool = strcmp(v->op, "MaxPool") == 0 ? HALO_POOL_MAX : HALO_POOL_AVG;
    j->d.count_pad = int_of(v, "count_include_pad", 0) != 0;
    if (j->d.count_pad && int_of(v, "ceil_mode", 0)) {
        j->skip = "a window past the declared padding: halo counts its cells";
        return;
    }
    window_from(v, x, x->rank - 2, &j->d.window);
    for (int i = 5 - x->rank; global && i < 3; i++) j->d.window.kernel[i] = x->dim[i - (5 - x->rank) + 2];
    auto_pad(v, x, y, &j->d.window);
    give_volume(j, HALO_X, x, x->v);
    give_volume(j, HALO_Y, y, NULL);
    if (indices) {
        halo_operand aux = j->d.t[HALO_Y];
        aux.dtype = HALO_U8;
        give(j, HALO_AUX, aux, NULL);
    }
    if (!applicable(j)) return;
    run(j);
    compare(j, HALO_Y, y);
    if (indices) compare_argmax(j, v);
}

/* Statistics where they are not given, then the normalisation. in: x, gamma, beta, mean, variance. */
static void do_norm(job *j, const vector *v)
{
    const tensor *x = &v->in[0], *y = &v->out[0];
    int64_t channels = x->dim[1], groups = strcmp(v->op, "GroupNormalization") == 0 ? int_of(v, "num_groups", 1) : 0;
    bool batch = strcmp(v->op, "BatchNormalization") == 0, training = !batch || int_of(v, "training_mode", 0);
    double run_values[2 * 64];
    if (channels > 64) return;
    j->d.per_sample = !batch;
    j->d.groups = groups;
    j->d.eps = float_of(v, "epsilon", 1e-5);
    j->d.momentum = float_of(v, "momentum", 0.9);
    j->d.inference = !training;
    give_volume(j, HALO_X, x, x->v);
    int64_t features = (groups ? groups : channels) * (batch ? 1 : x->dim[0]);
    give_flat(j, HALO_STAT, HALO_F64, features * 3, NULL);
    j->d.kind = HALO_OP_NORM_STATS;
    if (!applicable(j)) return;
    if (training) run(j);
    j->d.kind = HALO_OP_NORM_APPLY;
    give_flat(j, HALO_WT, j->dev->master, channels, v->in[1].v);
    give_flat(j, HALO_B, j->dev->master, channels, v->in[2].v);
    if (batch) {
        memcpy(run_values, v->in[3].v, (size_t)channels * 8);
        memcpy(run_values + channels, v->in[4].v, (size_t)channels * 8);
        give_flat(j, HALO_RUN, j->dev->master, 2 * channels, run_values);
    }
    give_volume(j, HALO_Y, y, NULL);
    if (!applicable(j)) return;
    run(j);
    compare(j, HALO_Y, y);
    if (v->outs != 3) return;
    tensor both = {.n = 2 * channels, .v = run_values};
    memcpy(run_values, v->out[1].v, (size_t)channels * 8);
    memcpy(run_values + channels, v->out[2].v, (size_t)channels * 8);
    compare(j, HALO_RUN, &both);
}

/* The weights of all cells: of their classes, 0 where they are ignored. That is what the weighted mean divides by. */
static double weight_of_all(const job *j, const tensor *labels, const tensor *weights)
{
    double sum = 0;
    for (int64_t i = 0; i < labels->n; i++)
        if (!(j->d.ignores && labels->v[i] == (double)j->d.ignore)) sum += weights ? weights->v[(int64_t)labels->v[i]] : 1;
    return sum;
}

/* The weighted mean or sum of the cells' losses; of 1-D targets each sample's one. Every sample's sum is divided by the same, so their sum is what is wanted. */
static void do_cross_entropy(job *j, const vector *v)
{
    const tensor *x = &v->in[0], *t = &v->in[1], *weights = v->ins > 2 ? &v->in[2] : NULL;
    const attribute *how = find(v, "reduction");
    bool sum = how && strcmp(how->s, "sum") == 0;
    if ((how && strcmp(how->s, "none") == 0) || x->rank > 5) {
        j->skip = "a mean or sum, of at most three dimensions";
        return;
    }
    tensor x5 = *x, t5 = {.rank = t->rank + 1, .n = t->n, .v = t->v, .dim = {t->dim[0], 1}};
    for (int i = 1; i < t->rank; i++) t5.dim[i + 1] = t->dim[i];
    for (; x5.rank < 3; x5.rank++) x5.dim[x5.rank] = t5.dim[x5.rank] = 1;
    t5.rank = x5.rank;
    j->d.kind = HALO_OP_LOSS;
    j->d.loss = HALO_LOSS_CROSS_ENTROPY;
    j->d.ignores = find(v, "ignore_index") != NULL;
    j->d.ignore = int_of(v, "ignore_index", 0);
    give_volume(j, HALO_X, &x5, x->v);
    give_volume(j, HALO_T, &t5, t->v);
    give_flat(j, HALO_STAT, HALO_F64, 2, NULL);
    if (weights) give_flat(j, HALO_WT, HALO_F64, weights->n, weights->v);
    if (weights || j->d.ignores) {
        double *divisor = check_alloc(t->dim[0], 8);
        for (int64_t n = 0; n < t->dim[0]; n++) divisor[n] = sum ? 1 : weight_of_all(j, t, weights);
        give_flat(j, HALO_X2, HALO_F64, t->dim[0], divisor);
        free(divisor);
    }
    if (!applicable(j)) return;
    run(j);
    double stat[2];
    check_status(j->dev->ctx, j->dev->ops->download(j->dev, &j->d.t[HALO_STAT], j->ptr[HALO_STAT], HALO_F64, stat), "download");
    double got = j->ptr[HALO_X2] ? stat[0] : stat[0] / stat[1] * (sum ? (double)t->n : 1), want = v->out[0].v[0];
    j->error = check_worse(j->error, fabs(got - want) / fabs(want));
}

static void do_act(job *j, const vector *v)
{
    j->d.kind = HALO_OP_ACT_FWD;
    j->d.act = strcmp(v->op, "Relu") == 0 ? HALO_ACT_RELU : HALO_ACT_LEAKY_RELU;
    j->d.slope = float_of(v, "alpha", 0.01);
    tensor as5 = v->in[0];
    for (; as5.rank < 3; as5.rank++) as5.dim[as5.rank] = 1;
    give_volume(j, HALO_X, &as5, v->in[0].v);
    give_volume(j, HALO_Y, &as5, NULL);
    if (!applicable(j)) return;
    run(j);
    compare(j, HALO_Y, &v->out[0]);
}

/* alpha A' B' + beta C as x = A', w = alpha B'', b = beta C. */
static void do_gemm(job *j, const vector *v)
{
    const tensor *a = &v->in[0], *b = &v->in[1], *c = v->ins > 2 ? &v->in[2] : NULL, *y = &v->out[0];
    int64_t n = y->dim[0], out = y->dim[1], in = a->n / n;
    bool ta = int_of(v, "transA", 0), tb = int_of(v, "transB", 0);
    if (c && c->n != out && c->n != 1) {
        j->skip = "the bias is a matrix";
        return;
    }
    double *x = check_alloc(n * in, 8), *w = check_alloc(out * in, 8), *bias = check_alloc(out, 8);
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < in; i++) x[r * in + i] = ta ? a->v[i * n + r] : a->v[r * in + i];
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++)
            w[o * in + i] = float_of(v, "alpha", 1) * (tb ? b->v[o * in + i] : b->v[i * out + o]);
        bias[o] = c ? float_of(v, "beta", 1) * c->v[c->n == 1 ? 0 : o] : 0;
    }
    j->d.kind = HALO_OP_LINEAR_FWD;
    give(j, HALO_X, hl_operand_whole(j->dev->compute, HALO_NCDHW, (int64_t[]){n, in, 1, 1, 1}), x);
    give(j, HALO_WT, hl_operand_whole(j->dev->master, HALO_NCDHW, (int64_t[]){out, in, 1, 1, 1}), w);
    if (c) give_flat(j, HALO_B, j->dev->master, out, bias);
    give(j, HALO_Y, hl_operand_whole(j->dev->compute, HALO_NCDHW, (int64_t[]){n, out, 1, 1, 1}), NULL);
    free(x), free(w), free(bias);
    if (!applicable(j)) return;
    run(j);
    compare(j, HALO_Y, y);
}

/* ONNX keeps V = -v / lr: in R, T, X, G, V; out X, V. */
static void do_momentum(job *j, const vector *v)
{
    double rate = v->in[0].v[0], m1[64], beta = v->in[1].v[0] > 0 ? float_of(v, "beta", 1) : 1;
    int64_t n = v->in[2].n;
    const attribute *mode = find(v, "mode");
    if (v->ins != 5 || n > 64 || v->outs != 2) {
        j->skip = "several tensors in one node";
        return;
    }
    for (int64_t i = 0; i < n; i++) m1[i] = -rate * v->in[4].v[i];
    j->d.kind = HALO_OP_UPDATE;
    j->d.update = (halo_update_params){.kind = mode && strcmp(mode->s, "nesterov") == 0 ? HALO_NESTEROV : HALO_SGD};
    j->d.update.momentum = float_of(v, "alpha", 0);
    j->d.update.weight_decay = float_of(v, "norm_coefficient", 0) * beta;
    j->d.update.lr_factor = 1;
    j->record = (halo_step_record){.t = 1, .lr = rate, .grad_scale = beta, .loss_scale = 1, .weight_sum = 1};
    give_flat(j, HALO_WT, j->dev->master, n, v->in[2].v);
    give_flat(j, HALO_DW, j->dev->master, n, v->in[3].v);
    give_flat(j, HALO_M1, j->dev->master, n, m1);
    if (!applicable(j)) return;
    run(j);
    compare(j, HALO_WT, &v->out[0]);
}

typedef void (*operator_fn)(job *j, const vector *v);

static operator_fn find_operator(const char *op)
{
    static const struct { const char *op; operator_fn fn; } table[] = {
        {"Conv", do_conv},         {"ConvTranspose", do_transposed},       {"MaxPool", do_pool},
        {"AveragePool", do_pool},  {"GlobalAveragePool", do_pool},         {"BatchNormalization", do_norm},
        {"InstanceNormalization", do_norm}, {"GroupNormalization", do_norm}, {"Relu", do_act},
        {"SoftmaxCrossEntropyLoss", do_cross_entropy}, {"LeakyRelu", do_act},     {"Gemm", do_gemm},                      {"Momentum", do_momentum}};
    for (size_t i = 0; i < HL_COUNT(table); i++)
        if (strcmp(table[i].op, op) == 0) return table[i].fn;
    return NULL;
}

/* --------------------------------------------------------------------------------------------------------------- main */

static void run_on(halo_device *dev, const char *name, const vector *v)
{
    double worst = 0;
    const char *skip = NULL;
    for (int i = 0; dev->layouts[i] != HALO_LAYOUTS; i++) {
        job j = {.dev = dev, .layout = dev->layouts[i]};
        find_operator(v->op)(&j, v);
        worst = check_worse(worst, j.error);
        if (j.skip) skip = j.skip;
        for (int r = 0; r < HALO_ROLES; r++)
            if (j.ptr[r]) dev->ops->release(dev, j.ptr[r]);
    }
    if (skip)
        tap_skip("%s on %s: %s", v->name, name, skip);
    else
        tap_ok(worst <= 2e-6, "%s on %s (%.1e)", v->name, name, worst);
}

/* test_* below `root`, sorted by name; the caller owns them. */
static int list_vectors(const char *root, struct dirent ***names)
{
    int n = scandir(root, names, NULL, alphasort);
    if (n <= 0) tap_skip_all("no ONNX node vectors in %s", root);
    return n;
}

static void run_all(const char *root, halo_device *const *devs, const char *const *names, int n_devs)
{
    struct dirent **entries;
    int n = list_vectors(root, &entries);
    for (int i = 0; i < n; i++) {
        char dir[1024];
        vector v = {.attrs = 0};
        snprintf(v.name, sizeof(v.name), "%.120s", entries[i]->d_name);
        snprintf(dir, sizeof(dir), "%s/%s", root, entries[i]->d_name);
        if (strncmp(v.name, "test_", 5) == 0 && read_vector(dir, &v) && find_operator(v.op))
            for (int k = 0; k < n_devs; k++) run_on(devs[k], names[k], &v);
        free_vector(&v);
        free(entries[i]);
    }
    free(entries);
}

int main(void)
{
    const char *data = getenv("HALO_TESTDATA"), *names[8] = {NULL};
    halo_context *ctx;
    halo_device *devs[8] = {NULL};
    int n = 0;
    char root[512];
    if (!data) tap_skip_all("HALO_TESTDATA is not set");
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    for (const halo_backend *const *b = hl_backends(); *b && n < 8; b++)
        if (hl_device_open(ctx, (*b)->name, NULL, &devs[n]) == HALO_OK) names[n++] = (*b)->name;
    snprintf(root, sizeof(root), "%s/onnx+onnx.node/onnx/backend/test/data/node", data);
    run_all(root, devs, names, n);
    tap_ok(tap_count >= 50 * n, "at least 50 vectors were found and tried on each of %d backends", n);
    for (int i = 0; i < n; i++) devs[i]->ops->close(devs[i]);
    halo_context_destroy(ctx);
    return tap_done();
}
