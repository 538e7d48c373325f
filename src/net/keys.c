/* SPDX-License-Identifier: Apache-2.0 */
#include "net/keys.h"

#include <stddef.h>

enum { MOST = 2147483647 };

static const char *const init_words[] = {"glorot_uniform", "glorot_normal", "he_uniform", "he_normal", NULL};
static const char *const padding_words[] = {"explicit", "same", "valid", "periodic",
                                            NULL}; /* as halo_padding; the first is never written */

/* Rows: name, type, field, default, then what the type needs, help. */
#define FIELD(f) offsetof(hl_layer, f)
#define COUNT(n, f, d, least, most, h)                                                                       \
    {                                                                                                        \
        .name = n, .type = HL_KEY_COUNT, .offset = FIELD(f), .fallback = d, .lo = least, .hi = most,         \
        .help = h                                                                                            \
    }
#define EXTENTS(n, f, d, most, h)                                                                            \
    {                                                                                                        \
        .name = n, .type = HL_KEY_EXTENTS, .offset = FIELD(f), .fallback = d, .lo = 1, .hi = most, .help = h \
    }
#define BOOL(n, f, d, h)                                                                                     \
    {                                                                                                        \
        .name = n, .type = HL_KEY_BOOL, .offset = FIELD(f), .fallback = d, .hi = 1, .help = h                \
    }
#define WORD(n, f, d, w, h)                                                                                  \
    {                                                                                                        \
        .name = n, .type = HL_KEY_WORD, .offset = FIELD(f), .fallback = d, .words = w, .help = h             \
    }
#define PADDING(h)                                                                                           \
    {                                                                                                        \
        .name = "padding", .type = HL_KEY_PADDING, .offset = FIELD(padding), .fallback = "valid",            \
        .hi = HL_WINDOW_MAX, .help = h                                                                       \
    }
#define NUMBER(n, f, d, least, most, ...)                                                                    \
    {                                                                                                        \
        .name = n, .type = HL_KEY_NUMBER, .offset = FIELD(f), .fallback = d, .lo = least, .hi = most,        \
        __VA_ARGS__                                                                                          \
    }
#define CELLS(n, f, d, most, h)                                                                              \
    {                                                                                                        \
        .name = n, .type = HL_KEY_EXTENTS, .offset = FIELD(f), .fallback = d, .hi = most, .help = h          \
    }
#define BIAS      BOOL("bias", bias, "yes", "add a number per output channel")
#define INIT      WORD("init", init, "glorot_uniform", init_words, "first values of the weights")
#define BIAS_INIT NUMBER("bias_init", init_bias, "0", -INFINITY, INFINITY, .help = "first value of the bias")
#define END                                                                                                  \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

static const hl_layer_key no_keys[] = {END};

static const hl_layer_key conv_keys[] = {
    COUNT("filters", filters, NULL, 1, MOST, "output channels"),
    EXTENTS("kernel", window.kernel, "3", HL_CONV_KERNEL_MAX, "cells of the kernel"),
    EXTENTS("stride", window.stride, "1", HL_WINDOW_MAX, "step of the kernel over the input"),
    EXTENTS("dilation", window.dilation, "1", HL_WINDOW_MAX, "distance of the kernel's cells in the input"),
    PADDING("cells added around the input"),
    BIAS,
    INIT,
    BIAS_INIT,
    END,
};

static const hl_layer_key conv_transpose_keys[] = {
    COUNT("filters", filters, NULL, 1, MOST, "output channels"),
    EXTENTS("kernel", window.kernel, "2", HL_CONV_KERNEL_MAX, "cells of the kernel"),
    EXTENTS("stride", window.stride, "2", HL_WINDOW_MAX, "step of the kernel over the output"),
    EXTENTS("dilation", window.dilation, "1", HL_WINDOW_MAX, "distance of the kernel's cells in the output"),
    PADDING("cells cut off around the output; same: the output is stride times the input"),
    CELLS("output_padding", output_padding, "0", HL_WINDOW_MAX, "cells added behind the output, fewer than stride or dilation"),
    BIAS,
    INIT,
    BIAS_INIT,
    END,
};

#define POOL_WINDOW                                                                                          \
    EXTENTS("kernel", window.kernel, "2", HL_WINDOW_MAX, "cells of the window"),                             \
        EXTENTS("stride", window.stride, "=kernel", HL_WINDOW_MAX, "step of the window over the input"),     \
        PADDING("cells added around the input")

static const hl_layer_key max_pool_keys[] = {POOL_WINDOW, END};
static const hl_layer_key average_pool_keys[] = {
    POOL_WINDOW,
    BOOL("count_padding", count_pad, "no", "zeros of the padding count as cells of the mean"),
    END,
};

#define EPS        NUMBER("eps", eps, "1e-05", 0, INFINITY, .open_lo = true, .help = "added to the variance")
#define GAMMA_INIT NUMBER("gamma_init", init_gamma, "1", -INFINITY, INFINITY, .help = "first value of the factor")
static const hl_layer_key norm_keys[] = {
    EPS,
    NUMBER("momentum", momentum, "0.99", 0, 1, .open_hi = true,
           .help = "share of the old running statistics that each step keeps"),
    GAMMA_INIT,
    END,
};
static const hl_layer_key group_norm_keys[] = {
    COUNT("groups", groups, NULL, 1, MOST, "runs of channels with statistics of their own; divides the channels"),
    EPS,
    GAMMA_INIT,
    END,
};
static const hl_layer_key instance_norm_keys[] = {EPS, GAMMA_INIT, END};

static const hl_layer_key leaky_keys[] = {
    NUMBER("slope", slope, "0.01", 0, 1, .open_lo = true, .open_hi = true, .help = "slope below 0"),
    END,
};
static const hl_layer_key scale_keys[] = {
    NUMBER("factor", slope, NULL, -INFINITY, INFINITY, .help = "what each value is multiplied by"), END};
static const hl_layer_key dropout_keys[] = {
    NUMBER("keep", keep, "0.5", 0, 1, .open_lo = true,
           .help = "probability that a value is kept; kept ones are divided by it"),
    END,
};

static const hl_layer_key flatten_keys[] = {
    BOOL("channels_last", channels_last, "no", "order d h w c instead of c d h w"),
    COUNT("features", features, "0", 0, MOST,
          "cut the vector into rows of so many values, each a sample to what follows; 0: one row"),
    END,
};

static const hl_layer_key dense_keys[] = {
    COUNT("outputs", filters, NULL, 1, MOST, "output values"), BIAS, INIT, BIAS_INIT, END,
};

static const hl_layer_key upsample_keys[] = {
    EXTENTS("factor", window.stride, "2", 2, "cells for each cell along the axes: 1 or 2"), END};

static const hl_layer_key crop_keys[] = {
    {.name = "cells", .type = HL_KEY_SIDES, .offset = FIELD(crop), .hi = MOST, .help = "cells cut off"},
    {.name = "like", .type = HL_KEY_LAYER, .fallback = "none", .help = "cut equally off both ends, of an odd number one more behind, down to the D H W of this layer; instead of cells"},
    END,
};

const hl_layer_form hl_layer_forms[] = {
    {.word = "conv", .kind = HL_LAYER_CONV, .keys = conv_keys, .help = "convolution"},
    {.word = "conv_transpose",
     .kind = HL_LAYER_CONV_TRANSPOSE,
     .keys = conv_transpose_keys,
     .help = "transposed convolution: a learned enlargement by the stride"},
    {.word = "max_pool",
     .kind = HL_LAYER_POOL,
     .pool = HALO_POOL_MAX,
     .keys = max_pool_keys,
     .help = "largest value of each window"},
    {.word = "average_pool",
     .kind = HL_LAYER_POOL,
     .pool = HALO_POOL_AVG,
     .keys = average_pool_keys,
     .help = "mean of each window"},
    {.word = "batch_norm",
     .kind = HL_LAYER_NORM,
     .keys = norm_keys,
     .help = "normalisation over the batch, per channel"},
    {.word = "group_norm",
     .kind = HL_LAYER_NORM,
     .scope = HALO_NORM_GROUP,
     .keys = group_norm_keys,
     .help = "normalisation of each sample over runs of channels"},
    {.word = "instance_norm",
     .kind = HL_LAYER_NORM,
     .scope = HALO_NORM_INSTANCE,
     .keys = instance_norm_keys,
     .help = "normalisation of each sample, per channel"},
    {.word = "leaky_relu",
     .kind = HL_LAYER_ACT,
     .act = HALO_ACT_LEAKY_RELU,
     .keys = leaky_keys,
     .help = "x above 0, slope x below"},
    {.word = "relu",
     .kind = HL_LAYER_ACT,
     .act = HALO_ACT_RELU,
     .keys = no_keys,
     .help = "x above 0, 0 below"},
    {.word = "tanh",
     .kind = HL_LAYER_ACT,
     .act = HALO_ACT_TANH,
     .keys = no_keys,
     .help = "hyperbolic tangent"},
    {.word = "sigmoid",
     .kind = HL_LAYER_ACT,
     .act = HALO_ACT_SIGMOID,
     .keys = no_keys,
     .help = "1 / (1 + exp(-x))"},
    {.word = "scale",
     .kind = HL_LAYER_ACT,
     .act = HALO_ACT_SCALE,
     .keys = scale_keys,
     .help = "a constant times x"},
    {.word = "dropout",
     .kind = HL_LAYER_DROPOUT,
     .keys = dropout_keys,
     .help = "sets random values to 0 in training"},
    {.word = "flatten", .kind = HL_LAYER_FLATTEN, .keys = flatten_keys, .help = "a volume made a vector"},
    {.word = "dense", .kind = HL_LAYER_DENSE, .keys = dense_keys, .help = "fully connected, from a vector"},
    {.word = "add",
     .kind = HL_LAYER_ADD,
     .many = true,
     .keys = no_keys,
     .help = "sum of layers of equal shape"},
    {.word = "concat",
     .kind = HL_LAYER_CONCAT,
     .many = true,
     .keys = no_keys,
     .help = "layers joined along the channels"},
    {.word = "upsample",
     .kind = HL_LAYER_UPSAMPLE,
     .keys = upsample_keys,
     .help = "linear enlargement, between the middles of cells: nothing to learn"},
    {.word = "crop", .kind = HL_LAYER_CROP, .keys = crop_keys, .help = "a range of the cells"},
    {.word = NULL},
};

_Static_assert(sizeof(halo_init) == sizeof(int) && sizeof(halo_padding) == sizeof(int),
               "enums of the table are read and written as int");

/* ----------------------------------------------------------------------------------------------------------
 * look-up */

const hl_layer_form *hl_form_find(const char *word)
{
    for (const hl_layer_form *f = hl_layer_forms; f->word; f++)
        if (strcmp(f->word, word) == 0) return f;
    return NULL;
}

const hl_layer_form *hl_form_of(const hl_layer *layer)
{
    for (const hl_layer_form *f = hl_layer_forms; f->word; f++) {
        if (f->kind != layer->kind) continue;
        if (layer->kind == HL_LAYER_POOL && f->pool != layer->pool) continue;
        if (layer->kind == HL_LAYER_ACT && f->act != layer->act) continue;
        if (layer->kind == HL_LAYER_NORM && f->scope != layer->scope) continue;
        return f;
    }
    return NULL;
}

const hl_layer_key *hl_form_key(const hl_layer_form *form, const char *name)
{
    for (const hl_layer_key *k = form->keys; k->name; k++)
        if (strcmp(k->name, name) == 0) return k;
    return NULL;
}

const char *hl_form_nearest(const char *word)
{
    const char *names[HL_COUNT(hl_layer_forms)];
    size_t n = 0;
    for (const hl_layer_form *f = hl_layer_forms; f->word; f++) names[n++] = f->word;
    return hl_nearest(word, names, n);
}

const char *hl_key_nearest(const hl_layer_form *form, const char *name)
{
    const char *names[16] = {"name", "from"};
    size_t n = 2;
    for (const hl_layer_key *k = form->keys; k->name && n < HL_COUNT(names); k++) names[n++] = k->name;
    return hl_nearest(name, names, n);
}

/* ----------------------------------------------------------------------------------------------------- text
 * to field */

static void *field(const hl_layer_key *key, hl_layer *layer)
{
    return (char *)layer + key->offset;
}
static const void *const_field(const hl_layer_key *key, const hl_layer *layer)
{
    return (const char *)layer + key->offset;
}

static size_t field_size(const hl_layer_key *key)
{
    switch (key->type) {
    case HL_KEY_COUNT:
        return sizeof(int64_t);
    case HL_KEY_NUMBER:
        return sizeof(double);
    case HL_KEY_BOOL:
        return sizeof(bool);
    case HL_KEY_WORD:
        return sizeof(int);
    case HL_KEY_EXTENTS:
        return 3 * sizeof(int64_t);
    case HL_KEY_PADDING:
        return 3 * sizeof(halo_padding);
    case HL_KEY_SIDES:
        return 6 * sizeof(int64_t);
    case HL_KEY_LAYER:
        break;
    }
    return 0;
}

static bool parse_word(const char *const *words, const hl_yaml *value, int first, int *out)
{
    if (value->kind != HL_YAML_SCALAR) return false;
    for (int i = first; words[i]; i++)
        if (strcmp(words[i], value->text) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static bool parse_extents(const hl_yaml *value, int64_t out[3])
{
    int64_t e[3];
    bool list = value->kind == HL_YAML_LIST;
    if (list && value->items != 3) return false;
    for (int d = 0; d < 3; d++)
        if (!hl_yaml_int(list ? value->item[d] : value, &e[d])) return false;
    memcpy(out, e, sizeof(e));
    return true;
}

/* A number for both sides, or [before, behind]. */
static bool parse_pair(const hl_yaml *value, int64_t out[2])
{
    bool list = value->kind == HL_YAML_LIST;
    if (list && value->items != 2) return false;
    for (int side = 0; side < 2; side++)
        if (!hl_yaml_int(list ? value->item[side] : value, &out[side])) return false;
    return true;
}

static bool parse_sides(const hl_yaml *value, int64_t out[3][2])
{
    bool list = value->kind == HL_YAML_LIST;
    if (list && value->items != 3) return false;
    for (int d = 0; d < 3; d++)
        if (!parse_pair(list ? value->item[d] : value, out[d])) return false;
    return true;
}

/* One axis: a word, or as parse_pair. */
static bool parse_padding_axis(const hl_yaml *value, halo_padding *padding, int64_t pad[2])
{
    int word = HALO_PAD_EXPLICIT;
    int64_t p[2] = {0, 0};
    if (!parse_word(padding_words, value, 1, &word) && !parse_pair(value, p)) return false;
    *padding = (halo_padding)word;
    memcpy(pad, p, sizeof(p));
    return true;
}

static bool parse_padding(const hl_yaml *value, hl_layer *layer)
{
    bool list = value->kind == HL_YAML_LIST;
    if (list && value->items != 3) return false;
    for (int d = 0; d < 3; d++)
        if (!parse_padding_axis(list ? value->item[d] : value, &layer->padding[d], layer->pad[d]))
            return false;
    return true;
}

bool hl_key_parse(const hl_layer_key *key, const hl_yaml *value, hl_layer *layer)
{
    void *f = field(key, layer);
    int word;
    switch (key->type) {
    case HL_KEY_COUNT:
        return hl_yaml_int(value, f);
    case HL_KEY_NUMBER:
        return hl_yaml_number(value, f);
    case HL_KEY_BOOL:
        return hl_yaml_bool(value, f);
    case HL_KEY_WORD:
        if (!parse_word(key->words, value, 0, &word)) return false;
        memcpy(f, &word, sizeof(word));
        return true;
    case HL_KEY_EXTENTS:
        return parse_extents(value, f);
    case HL_KEY_PADDING:
        return parse_padding(value, layer);
    case HL_KEY_SIDES:
        return parse_sides(value, f);
    case HL_KEY_LAYER:
        return true;
    }
    return false;
}

bool hl_key_default(const hl_layer_form *form, const hl_layer_key *key, hl_layer *layer)
{
    if (!key->fallback) return false;
    if (key->fallback[0] == '=') {
        memcpy(field(key, layer), const_field(hl_form_key(form, key->fallback + 1), layer), field_size(key));
        return true;
    }
    char text[32] = {0};
    strncpy(text, key->fallback, sizeof(text) - 1);
    hl_yaml value = {.kind = HL_YAML_SCALAR, .text = text};
    HL_BUG_UNLESS(hl_key_parse(key, &value, layer));
    return true;
}

/* ----------------------------------------------------------------------------------------------------- field
 * to text */

static void add_number(hl_str *out, double v)
{
    char text[32];
    hl_yaml_number_text(v, text);
    hl_str_add(out, text);
}

static void add_list(hl_str *out, const int64_t *v, int n)
{
    for (int i = 0; i < n; i++) hl_str_addf(out, "%s%" PRId64, i ? ", " : "[", v[i]);
    hl_str_add(out, "]");
}

static void format_extents(const int64_t v[3], hl_str *out)
{
    if (v[0] == v[1] && v[1] == v[2])
        hl_str_addf(out, "%" PRId64, v[0]);
    else
        add_list(out, v, 3);
}

static void format_pair(const int64_t v[2], hl_str *out)
{
    if (v[0] == v[1])
        hl_str_addf(out, "%" PRId64, v[0]);
    else
        add_list(out, v, 2);
}

static void format_sides(const int64_t v[3][2], hl_str *out)
{
    for (int d = 0; d < 3; d++) {
        hl_str_add(out, d ? ", " : "[");
        format_pair(v[d], out);
    }
    hl_str_add(out, "]");
}

static void format_padding_axis(halo_padding padding, const int64_t pad[2], hl_str *out)
{
    if (padding != HALO_PAD_EXPLICIT)
        hl_str_add(out, padding_words[padding]);
    else
        format_pair(pad, out);
}

/* pad[] of padding that is not explicit was filled by inference and says nothing. */
static bool same_padding(const hl_layer *l, int a, int b)
{
    if (l->padding[a] != l->padding[b]) return false;
    return l->padding[a] != HALO_PAD_EXPLICIT ||
           (l->pad[a][0] == l->pad[b][0] && l->pad[a][1] == l->pad[b][1]);
}

static void format_padding(const hl_layer *l, hl_str *out)
{
    bool pair = l->padding[0] == HALO_PAD_EXPLICIT && l->pad[0][0] != l->pad[0][1];
    if (!pair && same_padding(l, 0, 1) && same_padding(l, 1, 2)) {
        format_padding_axis(l->padding[0], l->pad[0], out);
        return;
    }
    for (int d = 0; d < 3; d++) {
        hl_str_add(out, d ? ", " : "[");
        format_padding_axis(l->padding[d], l->pad[d], out);
    }
    hl_str_add(out, "]");
}

void hl_key_format(const hl_layer_key *key, const hl_layer *layer, hl_str *out)
{
    const void *f = const_field(key, layer);
    int word;
    switch (key->type) {
    case HL_KEY_COUNT:
        hl_str_addf(out, "%" PRId64, *(const int64_t *)f);
        break;
    case HL_KEY_NUMBER:
        add_number(out, *(const double *)f);
        break;
    case HL_KEY_BOOL:
        hl_str_add(out, *(const bool *)f ? "yes" : "no");
        break;
    case HL_KEY_WORD:
        memcpy(&word, f, sizeof(word));
        hl_str_add(out, key->words[word]);
        break;
    case HL_KEY_EXTENTS:
        format_extents(f, out);
        break;
    case HL_KEY_PADDING:
        format_padding(layer, out);
        break;
    case HL_KEY_SIDES:
        format_sides(f, out);
        break;
    case HL_KEY_LAYER:
        break;
    }
}

/* ------------------------------------------------------------------------------------------------------------
 * ranges */

static void add_range(const hl_layer_key *key, hl_str *out)
{
    bool least = isfinite(key->lo), most = isfinite(key->hi);
    if (least && most && !key->open_lo && !key->open_hi) {
        hl_str_addf(out, " from %.10g to %.10g", key->lo, key->hi);
        return;
    }
    if (least) hl_str_addf(out, key->open_lo ? " above %.10g" : most ? " at least %.10g" : " from %.10g on", key->lo);
    if (most) hl_str_addf(out, "%s %s %.10g", least ? " and" : "", key->open_hi ? "below" : "at most", key->hi);
}

static void add_words(const char *const *words, hl_str *out)
{
    for (int i = 0; words[i]; i++) hl_str_addf(out, "%s%s", i ? ", " : "", words[i]);
}

void hl_key_expects(const hl_layer_key *key, hl_str *out)
{
    switch (key->type) {
    case HL_KEY_COUNT:
        hl_str_add(out, "a whole number");
        add_range(key, out);
        break;
    case HL_KEY_NUMBER:
        hl_str_add(out, "a number");
        add_range(key, out);
        break;
    case HL_KEY_BOOL:
        hl_str_add(out, "yes or no");
        break;
    case HL_KEY_WORD:
        hl_str_add(out, "one of ");
        add_words(key->words, out);
        break;
    case HL_KEY_EXTENTS:
        hl_str_add(out, "a whole number, or [D, H, W],");
        add_range(key, out);
        break;
    case HL_KEY_PADDING:
        hl_str_add(out, "same, valid, periodic, or a whole number");
        add_range(key, out);
        hl_str_add(out, ", or three of these, each number possibly a pair [before, behind]");
        break;
    case HL_KEY_SIDES:
        hl_str_add(out, "a whole number");
        add_range(key, out);
        hl_str_add(out, ", or three of these, each possibly a pair [before, behind]");
        break;
    case HL_KEY_LAYER:
        hl_str_add(out, "the name of an earlier layer");
        break;
    }
}

static bool within(const hl_layer_key *key, double v)
{
    return isfinite(v) && (key->open_lo ? v > key->lo : v >= key->lo) &&
           (key->open_hi ? v < key->hi : v <= key->hi);
}

static bool counts_within(const hl_layer_key *key, const int64_t *v, int n)
{
    bool all = true;
    for (int i = 0; i < n; i++) all = all && within(key, (double)v[i]);
    return all;
}

static int words_of(const char *const *words)
{
    int n = 0;
    while (words[n]) n++;
    return n;
}

static bool padding_within(const hl_layer_key *key, const hl_layer *l)
{
    bool all = true;
    for (int d = 0; d < 3; d++) {
        int padding = (int)l->padding[d];
        all = all && padding >= 0 && padding <= HALO_PAD_PERIODIC;
        if (padding == HALO_PAD_EXPLICIT) all = all && counts_within(key, l->pad[d], 2);
    }
    return all;
}

static bool key_within(const hl_layer_key *key, const hl_layer *layer)
{
    const void *f = const_field(key, layer);
    int word;
    switch (key->type) {
    case HL_KEY_COUNT:
        return counts_within(key, f, 1);
    case HL_KEY_NUMBER:
        return within(key, *(const double *)f);
    case HL_KEY_BOOL:
        return true;
    case HL_KEY_WORD:
        memcpy(&word, f, sizeof(word));
        return word >= 0 && word < words_of(key->words);
    case HL_KEY_EXTENTS:
        return counts_within(key, f, 3);
    case HL_KEY_PADDING:
        return padding_within(key, layer);
    case HL_KEY_SIDES:
        return counts_within(key, f, 6);
    case HL_KEY_LAYER:
        return true;
    }
    return false;
}

/* A word out of range has no text. */
static void format_checked(const hl_layer_key *key, const hl_layer *layer, hl_str *out)
{
    bool nameless = key->type == HL_KEY_WORD;
    for (int d = 0; d < 3 && key->type == HL_KEY_PADDING; d++)
        nameless = nameless || (int)layer->padding[d] < 0 || (int)layer->padding[d] > HALO_PAD_PERIODIC;
    if (nameless)
        hl_str_add(out, "not a value of its enum");
    else
        hl_key_format(key, layer, out);
}

halo_status hl_layer_in_range(const struct halo_network *net, const hl_layer *layer)
{
    const hl_layer_form *form = hl_form_of(layer);
    if (!form)
        return hl_graph_fail(net, HALO_ERR_USAGE, "layer '%s': no such kind of %s", layer->name,
                             hl_layer_kind_name(layer->kind));
    for (const hl_layer_key *k = form->keys; k->name; k++) {
        if (key_within(k, layer)) continue;
        hl_str value = {0}, expects = {0};
        format_checked(k, layer, &value);
        hl_key_expects(k, &expects);
        halo_status st = hl_graph_fail(net, HALO_ERR_USAGE, "layer '%s': %s is %s, must be %s", layer->name,
                                       k->name, value.s ? value.s : "?", expects.s ? expects.s : "?");
        hl_str_free(&value);
        hl_str_free(&expects);
        return st;
    }
    return HALO_OK;
}

/* --------------------------------------------------------------------------------------------------------------
 * help */

void hl_network_help(hl_str *out)
{
    for (const hl_layer_form *f = hl_layer_forms; f->word; f++) {
        hl_str_addf(out, "%s: %s\n", f->word, f->help);
        for (const hl_layer_key *k = f->keys; k->name; k++) {
            hl_str_addf(out, "  %s: %s; ", k->name, k->help);
            hl_key_expects(k, out);
            if (!k->fallback)
                hl_str_add(out, "; must be given\n");
            else
                hl_str_addf(out, "; default %s\n", k->fallback[0] == '=' ? "that of kernel" : k->fallback);
        }
    }
}
