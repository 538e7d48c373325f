/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.c -- a layer's output shape from its inputs' shapes, C D H W.
 *
 * Window axes (convolution, pooling), input n, kernel k, stride s, dilation l, padding p before and q behind;
 * the window spans e = l (k - 1) + 1 cells:
 *
 *     out = floor((n + p + q - e) / s) + 1
 *     same, periodic: out = ceil(n / s) by p + q = max((out - 1) s + e - n, 0), p = floor of the half
 * (TensorFlow's rule)
 *
 * A transposed convolution goes the other way:
 *
 *     out = (n - 1) s - p - q + e + output padding
 *     same: out = n s by p + q = max(e - s, 0), or an output padding of s - e where the window is narrower than the stride
 *
 * Every product is checked: a tensor's values must count below 2^57, so that bytes of any type and any sum of
 * two such fit 64 bits.
 */
#include "net/graph.h"
#include "tensor/block.h"

enum { D = 0, H, W };
static const char *const axis_names[3] = {"D", "H", "W"};

static const hl_layer *input_of(const struct halo_network *net, const hl_layer *l, int i)
{
    return &net->layer[l->input[i]];
}

static halo_status check_volume(const struct halo_network *net, const hl_layer *l)
{
    int64_t n = l->rows;
    for (int i = 0; i < 4; i++)
        if (l->out[i] < 1 || !hl_mul64(n, l->out[i], &n) || n > INT64_MAX / 64)
            return hl_graph_fail(net, HALO_ERR_SHAPE, "layer '%s': output %s (C D H W) %s", l->name,
                                 hl_shape_print(l->out, 4).s,
                                 l->out[i] < 1 ? "must be positive" : "has too many values");
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------
 * windows */

static int64_t window_span(const hl_layer *l, int d)
{
    return l->window.dilation[d] * (l->window.kernel[d] - 1) + 1;
}

/* Fills pad[d]; ranges are checked before, so nothing here can overflow. */
static void pad_axis(hl_layer *l, int d, int64_t n)
{
    int64_t *pad = l->pad[d], stride = l->window.stride[d];
    if (l->padding[d] != HALO_PAD_EXPLICIT) pad[0] = pad[1] = 0;
    if (l->padding[d] == HALO_PAD_SAME || l->padding[d] == HALO_PAD_PERIODIC) {
        int64_t out = hl_div_up(n, stride), total = hl_max64((out - 1) * stride + window_span(l, d) - n, 0);
        pad[0] = total / 2;
        pad[1] = total - total / 2;
    }
    l->window.pad_lo[d] = pad[0];
}

/* What the formula gives where that is not positive, for the message. */
static int64_t formula(const hl_layer *l, int d, int64_t n)
{
    int64_t over = n + l->pad[d][0] + l->pad[d][1] - window_span(l, d), stride = l->window.stride[d];
    return (over >= 0 ? over / stride : -hl_div_up(-over, stride)) + 1;
}

static halo_status window_too_large(const struct halo_network *net, const hl_layer *l)
{
    const int64_t *in = input_of(net, l, 0)->out;
    const halo_window *w = &l->window;
    int64_t out[3], pad[3][2];
    memcpy(pad, l->pad, sizeof(pad));
    for (int d = 0; d < 3; d++) out[d] = formula(l, d, in[1 + d]);
    return hl_graph_fail(net, HALO_ERR_SHAPE,
                         "layer '%s': input %s (C D H W), kernel %s, stride %s, dilation %s, padding %" PRId64
                         "+%" PRId64 " %" PRId64 "+%" PRId64 " %" PRId64 "+%" PRId64
                         ": the output's D H W would be %s, all must be positive",
                         l->name, hl_shape_print(in, 4).s, hl_shape_print(w->kernel, 3).s,
                         hl_shape_print(w->stride, 3).s, hl_shape_print(w->dilation, 3).s, pad[D][0],
                         pad[D][1], pad[H][0], pad[H][1], pad[W][0], pad[W][1], hl_shape_print(out, 3).s);
}

static halo_status infer_window(const struct halo_network *net, hl_layer *l)
{
    const int64_t *in = input_of(net, l, 0)->out;
    bool positive = true;
    for (int d = 0; d < 3; d++) {
        pad_axis(l, d, in[1 + d]);
        hl_window1 w = {l->window.kernel[d], l->window.stride[d], l->pad[d][0], l->window.dilation[d]};
        l->out[1 + d] = hl_window_out(in[1 + d], w, l->pad[d][1]);
        positive = positive && l->out[1 + d] > 0;
    }
    return positive ? HALO_OK : window_too_large(net, l);
}

/* A pooling window in the padding alone would be the mean, or the largest, of nothing. */
static halo_status check_pool_padding(const struct halo_network *net, const hl_layer *l)
{
    for (int d = 0; d < 3; d++)
        if (l->padding[d] == HALO_PAD_EXPLICIT && hl_max64(l->pad[d][0], l->pad[d][1]) >= l->window.kernel[d])
            return hl_graph_fail(net, HALO_ERR_USAGE,
                                 "layer '%s': padding %" PRId64 "+%" PRId64
                                 " along %s must be less than the kernel's %" PRId64 " cells",
                                 l->name, l->pad[d][0], l->pad[d][1], axis_names[d], l->window.kernel[d]);
    return HALO_OK;
}

static halo_status infer_conv(const struct halo_network *net, hl_layer *l)
{
    l->out[0] = l->filters;
    return infer_window(net, l);
}

/* ------------------------------------------------------------------------------------------- transposed windows */

static halo_status check_transposed(const struct halo_network *net, const hl_layer *l)
{
    for (int d = 0; d < 3; d++) {
        int64_t most = hl_max64(l->window.stride[d], l->window.dilation[d]) - 1;
        bool same = l->padding[d] == HALO_PAD_SAME;
        if (l->padding[d] == HALO_PAD_PERIODIC)
            return hl_graph_fail(net, HALO_ERR_USAGE, "layer '%s': a transposed convolution has no periodic padding", l->name);
        if (l->output_padding[d] > (same ? 0 : most))
            return hl_graph_fail(net, HALO_ERR_USAGE,
                                 "layer '%s': output padding %" PRId64 " along %s must be %s%" PRId64, l->name,
                                 l->output_padding[d], axis_names[d], same ? "left to 'same': " : "at most ",
                                 same ? 0 : most);
    }
    return HALO_OK;
}

/* Fills pad[d]; returns the cells behind. */
static int64_t pad_transposed(hl_layer *l, int d)
{
    int64_t over = window_span(l, d) - l->window.stride[d], total = hl_max64(over, 0);
    bool same = l->padding[d] == HALO_PAD_SAME;
    if (l->padding[d] == HALO_PAD_VALID) l->pad[d][0] = l->pad[d][1] = 0;
    if (same) {
        l->pad[d][0] = total / 2;
        l->pad[d][1] = total - total / 2;
    }
    l->window.pad_lo[d] = l->pad[d][0];
    return same ? hl_max64(-over, 0) : l->output_padding[d];
}

static halo_status infer_conv_transpose(const struct halo_network *net, hl_layer *l)
{
    const int64_t *in = input_of(net, l, 0)->out;
    HL_TRY(check_transposed(net, l));
    l->out[0] = l->filters;
    for (int d = 0; d < 3; d++) {
        int64_t behind = pad_transposed(l, d), cut = l->pad[d][0] + l->pad[d][1] - window_span(l, d) - behind;
        if (!hl_mul64(in[1 + d] - 1, l->window.stride[d], &l->out[1 + d])) l->out[1 + d] = INT64_MAX / 2;
        l->out[1 + d] -= cut; /* counts are below 2^57, windows below 2^24 */
    }
    return HALO_OK; /* check_volume says what is not positive */
}

static halo_status infer_pool(const struct halo_network *net, hl_layer *l)
{
    HL_TRY(check_pool_padding(net, l));
    l->out[0] = input_of(net, l, 0)->out[0];
    return infer_window(net, l);
}

/* -------------------------------------------------------------------------------------------------------------
 * others */

static halo_status infer_unchanged(const struct halo_network *net, hl_layer *l)
{
    const hl_layer *in = input_of(net, l, 0);
    memcpy(l->out, in->out, sizeof(l->out));
    l->rows = in->rows;
    return HALO_OK;
}

static halo_status infer_flatten(const struct halo_network *net, hl_layer *l)
{
    const int64_t *in = input_of(net, l, 0)->out;
    int64_t values = in[0] * in[1] * in[2] * in[3],
            features = l->features ? l->features : values; /* checked when `in` was added */
    if (values % features != 0)
        return hl_graph_fail(net, HALO_ERR_SHAPE,
                             "layer '%s': input %s (C D H W) has %" PRId64 " values, no multiple of %" PRId64
                             " features",
                             l->name, hl_shape_print(in, 4).s, values, features);
    l->rows = values / features;
    memcpy(l->out, (int64_t[4]){features, 1, 1, 1}, sizeof(l->out));
    return HALO_OK;
}

static halo_status infer_dense(const struct halo_network *net, hl_layer *l)
{
    const hl_layer *in = input_of(net, l, 0);
    if (in->out[1] != 1 || in->out[2] != 1 || in->out[3] != 1)
        return hl_graph_fail(
            net, HALO_ERR_SHAPE,
            "layer '%s': input '%s' is %s (C D H W), a dense layer needs a vector: flatten it first", l->name,
            in->name, hl_shape_print(in->out, 4).s);
    memcpy(l->out, (int64_t[4]){l->filters, 1, 1, 1}, sizeof(l->out));
    l->rows = in->rows;
    return HALO_OK;
}

static halo_status infer_norm(const struct halo_network *net, hl_layer *l)
{
    HL_TRY(infer_unchanged(net, l));
    const int64_t *x = l->out;
    if (l->scope == HALO_NORM_GROUP && x[0] % l->groups != 0)
        return hl_graph_fail(net, HALO_ERR_SHAPE, "layer '%s': %" PRId64 " channels cannot be cut into %" PRId64 " groups",
                             l->name, x[0], l->groups);
    int64_t cells = x[1] * x[2] * x[3] * (x[0] / hl_norm_features(l));
    if (hl_per_sample(l) && cells == 1)
        return hl_graph_fail(net, HALO_ERR_SHAPE,
                             "layer '%s': of input %s (C D H W) each statistic would be that of one value", l->name,
                             hl_shape_print(x, 4).s);
    return HALO_OK;
}

static halo_status infer_crop(const struct halo_network *net, hl_layer *l)
{
    HL_TRY(infer_unchanged(net, l));
    for (int d = 0; d < 3; d++) l->out[1 + d] -= l->crop[d][0] + l->crop[d][1];
    return HALO_OK; /* check_volume says what is not positive */
}

/* The transposed convolution that it is has a padding of one where it doubles (tensor/upsample.h). */
static halo_status infer_upsample(const struct halo_network *net, hl_layer *l)
{
    HL_TRY(infer_unchanged(net, l));
    for (int d = 0; d < 3; d++) {
        bool doubles = l->window.stride[d] == 2;
        l->pad[d][0] = l->pad[d][1] = l->window.pad_lo[d] = doubles;
        if (!hl_mul64(l->out[1 + d], l->window.stride[d], &l->out[1 + d])) return hl_graph_fail(net, HALO_ERR_SHAPE, "layer '%s': too large along %s", l->name, axis_names[d]);
    }
    return HALO_OK;
}

halo_status hl_crop_like(const struct halo_network *net, const char *name, int from, int like, int64_t cells[3][2])
{
    if (from < 0 || from >= net->layers || like < 0 || like >= net->layers)
        return hl_graph_fail(net, HALO_ERR_USAGE, "layer '%s': there is no layer %d", name,
                             from < 0 || from >= net->layers ? from : like);
    const hl_layer *x = &net->layer[from], *as = &net->layer[like];
    for (int d = 0; d < 3; d++) {
        int64_t over = x->out[1 + d] - as->out[1 + d];
        if (over < 0)
            return hl_graph_fail(net, HALO_ERR_SHAPE,
                                 "layer '%s': '%s' %s (C D H W) is smaller along %s than '%s' %s, whose extents it is to be cropped to",
                                 name, x->name, hl_shape_print(x->out, 4).s, axis_names[d], as->name,
                                 hl_shape_print(as->out, 4).s);
        cells[d][0] = over / 2;
        cells[d][1] = over - over / 2;
    }
    return HALO_OK;
}

/* add: all four extents equal; concat: D H W equal, C summed. */
static halo_status infer_joined(const struct halo_network *net, hl_layer *l)
{
    const hl_layer *first = input_of(net, l, 0);
    bool concat = l->kind == HL_LAYER_CONCAT;
    HL_TRY(infer_unchanged(net, l));
    for (int i = 1; i < l->inputs; i++) {
        const hl_layer *in = input_of(net, l, i);
        if (memcmp(in->out + 1, first->out + 1, 3 * sizeof(int64_t)) != 0 || in->rows != first->rows ||
            (!concat && in->out[0] != first->out[0]))
            return hl_graph_fail(net, HALO_ERR_SHAPE,
                                 "layer '%s': inputs '%s' %s and '%s' %s (C D H W) must be equal%s", l->name,
                                 first->name, hl_shape_print(first->out, 4).s, in->name,
                                 hl_shape_print(in->out, 4).s, concat ? " in D H W" : "");
        if (concat) l->out[0] += in->out[0]; /* 16 counts below 2^57 */
    }
    return HALO_OK;
}

static halo_status infer_input(const struct halo_network *net, hl_layer *l)
{
    (void)net;
    (void)l;
    return HALO_OK;
}

static halo_status check_inputs(const struct halo_network *net, const hl_layer *l, bool takes_rows)
{
    for (int i = 0; i < l->inputs; i++) {
        if (l->input[i] < 0 || l->input[i] >= net->layers)
            return hl_graph_fail(net, HALO_ERR_USAGE, "layer '%s': there is no layer %d to take as input",
                                 l->name, l->input[i]);
        const hl_layer *in = input_of(net, l, i);
        if (in->rows != 1 && !takes_rows)
            return hl_graph_fail(net, HALO_ERR_SHAPE,
                                 "layer '%s': input '%s' was cut into %" PRId64
                                 " rows, which a %s layer cannot take",
                                 l->name, in->name, in->rows, hl_layer_kind_name(l->kind));
    }
    return HALO_OK;
}

halo_status hl_graph_infer(struct halo_network *net, hl_layer *layer)
{
    static const struct {
        halo_status (*infer)(const struct halo_network *, hl_layer *);
        bool takes_rows;
    } kinds[HL_LAYER_KINDS] = {
        [HL_LAYER_INPUT] = {infer_input, false},     [HL_LAYER_CONV] = {infer_conv, false},
        [HL_LAYER_CONV_TRANSPOSE] = {infer_conv_transpose, false}, [HL_LAYER_CROP] = {infer_crop, false},
        [HL_LAYER_UPSAMPLE] = {infer_upsample, false},
        [HL_LAYER_POOL] = {infer_pool, false},       [HL_LAYER_NORM] = {infer_norm, false},
        [HL_LAYER_ACT] = {infer_unchanged, true},    [HL_LAYER_DROPOUT] = {infer_unchanged, true},
        [HL_LAYER_FLATTEN] = {infer_flatten, false}, [HL_LAYER_DENSE] = {infer_dense, true},
        [HL_LAYER_ADD] = {infer_joined, true},       [HL_LAYER_CONCAT] = {infer_joined, true},
    };
    HL_TRY(check_inputs(net, layer, kinds[layer->kind].takes_rows));
    layer->rows = 1;
    HL_TRY(kinds[layer->kind].infer(net, layer));
    return check_volume(net, layer);
}
