/* SPDX-License-Identifier: Apache-2.0 */
/* init.c -- parameters of a graph: names, dims, roles; first values have the variance, range and independence
 * that they should. */
#include "net/graph.h"
#include "tests/tap.h"

static halo_context *ctx;

/* conv (3 -> 20, kernel 3 2 1), norm, flatten, dense -> 50; `init` for both kinds of weights. */
static halo_network *build(halo_init init)
{
    halo_network *net;
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    halo_norm_options norm = HALO_NORM_OPTIONS_INIT;
    halo_flatten_options flatten = HALO_FLATTEN_OPTIONS_INIT;
    halo_dense_options dense = HALO_DENSE_OPTIONS_INIT;
    conv.filters = 20, conv.kernel[1] = 2, conv.kernel[2] = 1, conv.init = init, conv.bias_init = 0.1;
    norm.gamma_init = 0.7;
    dense.outputs = 50, dense.init = init, dense.bias = false;
    int id = 0;
    bool ok = halo_network_create(ctx, "test", 300, (int64_t[3]){5, 4, 3}, &net) == HALO_OK &&
              halo_network_conv(net, id, "c", &conv, &id) == HALO_OK &&
              halo_network_norm(net, id, "n", &norm, &id) == HALO_OK &&
              halo_network_flatten(net, id, "f", &flatten, &id) == HALO_OK &&
              halo_network_dense(net, id, "d", &dense, &id) == HALO_OK;
    if (!ok) tap_bail("build: %s", halo_error_message(ctx));
    return net;
}

static void check_list(void)
{
    static const struct {
        const char *name;
        int ndim;
        int64_t count;
        bool trainable, decay;
        halo_role role;
    } want[] = {
        {"c/weights", 5, 20 * 300 * 6, true, true, HALO_WT},
        {"c/bias", 1, 20, true, false, HALO_B},
        {"n/gamma", 1, 20, true, false, HALO_WT},
        {"n/beta", 1, 20, true, false, HALO_B},
        {"n/running_mean", 1, 20, false, false, HALO_RUN},
        {"n/running_variance", 1, 20, false, false, HALO_RUN},
        {"d/weights", 2, 50 * 540, true, true, HALO_WT},
    };
    halo_network *net = build(HALO_INIT_GLOROT_UNIFORM);
    hl_param_info *p;
    int n;
    if (hl_graph_params(net, &p, &n) != HALO_OK) tap_bail("params");
    tap_ok(n == (int)HL_COUNT(want), "%d parameters", n);
    int64_t trainable = 0;
    for (int i = 0; i < n && i < (int)HL_COUNT(want); i++) {
        tap_ok(strcmp(p[i].name, want[i].name) == 0 && p[i].ndim == want[i].ndim &&
                   p[i].count == want[i].count && p[i].trainable == want[i].trainable &&
                   p[i].decay == want[i].decay && p[i].role == want[i].role &&
                   strncmp(net->layer[p[i].layer].name, p[i].name, 1) == 0,
               "%s: %d dims, %d values", p[i].name, p[i].ndim, (int)p[i].count);
        trainable += p[i].trainable ? p[i].count : 0;
    }
    tap_ok(p[0].dim[0] == 20 && p[0].dim[1] == 300 && p[0].dim[2] == 3 && p[0].dim[3] == 2 &&
               p[0].dim[4] == 1,
           "weights are (out, in, kd, kh, kw)");
    tap_ok(trainable == hl_graph_param_count(net), "the trainable ones are those that the network counts");
    free(p);
    halo_network_destroy(net);
}

static double *values(const halo_network *net, const hl_param_info *p, uint64_t seed)
{
    double *v = malloc((size_t)p->count * sizeof(double));
    if (!v) tap_bail("memory");
    hl_param_init(net, p, seed, v);
    return v;
}

/* Mean, variance and largest magnitude against theory; 5 deviations of the sample's own scatter are allowed.
 */
static void check_moments(halo_init init, int which, double variance, bool uniform, const char *what)
{
    halo_network *net = build(init);
    hl_param_info *p;
    int n;
    if (hl_graph_params(net, &p, &n) != HALO_OK) tap_bail("params");
    double *v = values(net, &p[which], 7), mean = 0, square = 0, pairs = 0, most = 0,
           count = (double)p[which].count;
    for (int64_t i = 0; i < p[which].count; i++) {
        mean += v[i] / count;
        square += v[i] * v[i] / count;
        pairs += i > 0 ? v[i] * v[i - 1] / count : 0;
        most = fmax(most, fabs(v[i]));
    }
    double kurtosis = uniform ? 1.8 : 3, limit = sqrt(3 * variance);
    bool range = uniform ? most <= limit && most >= 0.999 * limit : most >= 3.5 * sqrt(variance);
    tap_ok(fabs(mean) <= 5 * sqrt(variance / count) &&
               fabs(square / variance - 1) <= 5 * sqrt((kurtosis - 1) / count) &&
               fabs(pairs) <= 5 * variance / sqrt(count) && range,
           "%s of %s: variance %.3g of %.3g", what, p[which].name, square, variance);
    free(v);
    free(p);
    halo_network_destroy(net);
}

/* Of a transposed convolution one tap in (the stride's cells) reaches an output: with kernel 3, stride 2 it is 27 / 8 of them on the average. */
static void check_transposed(void)
{
    halo_network *net;
    halo_conv_transpose_options o = HALO_CONV_TRANSPOSE_OPTIONS_INIT;
    hl_param_info *p = NULL;
    int n = 0;
    o.filters = 20, o.init = HALO_INIT_HE_UNIFORM;
    for (int d = 0; d < 3; d++) o.kernel[d] = 3;
    if (halo_network_create(ctx, "test", 30, (int64_t[3]){4, 4, 4}, &net) != HALO_OK ||
        halo_network_conv_transpose(net, 0, "t", &o, NULL) != HALO_OK || hl_graph_params(net, &p, &n) != HALO_OK)
        tap_bail("transposed");
    tap_ok(n == 2 && p[0].dim[0] == 30 && p[0].dim[1] == 20 && p[0].dim[4] == 3 && p[1].count == 20 && p[0].decay,
           "weights of a transposed convolution are (in, out, kd, kh, kw)");
    double *v = values(net, &p[0], 3), most = 0, limit = sqrt(6 / (30 * 27 / 8.0));
    for (int64_t i = 0; i < p[0].count; i++) most = fmax(most, fabs(v[i]));
    tap_ok(most <= limit && most >= 0.999 * limit, "they begin within %.3g, as each output adds up in * 27 / 8 products", limit);
    free(v);
    free(p);
    halo_network_destroy(net);
}

static void check_independence(void)
{
    halo_network *a = build(HALO_INIT_GLOROT_UNIFORM), *b = NULL;
    halo_conv_options conv = HALO_CONV_OPTIONS_INIT;
    conv.filters = 20, conv.kernel[1] = 2, conv.kernel[2] = 1;
    int id = 0;
    bool ok =
        halo_network_create(ctx, "other", 300, (int64_t[3]){9, 9, 9}, &b) == HALO_OK &&
        halo_network_activation(b, 0, NULL, HALO_ACT_RELU, 0, &id) == HALO_OK &&
        halo_network_conv(b, id, "c", &conv, &id) == HALO_OK &&
        halo_network_flatten(b, id, NULL, &(halo_flatten_options)HALO_FLATTEN_OPTIONS_INIT, &id) == HALO_OK;
    hl_param_info *p = NULL, *q = NULL;
    int n, m;
    if (!ok || hl_graph_params(a, &p, &n) != HALO_OK || hl_graph_params(b, &q, &m) != HALO_OK)
        tap_bail("build");
    size_t bytes = (size_t)p[0].count * sizeof(double), few = 100 * sizeof(double);
    double *v = values(a, &p[0], 1), *same = values(a, &p[0], 1), *other = values(b, &q[0], 1),
           *seed = values(a, &p[0], 2), *dense = values(a, &p[6], 1);
    tap_ok(memcmp(v, same, bytes) == 0, "equal seeds give equal values");
    tap_ok(q[0].layer != p[0].layer && memcmp(v, other, bytes) == 0,
           "a layer of equal name and shape begins equally in another network");
    tap_ok(memcmp(v, seed, few) != 0, "another seed gives other values");
    double scale = sqrt((300.0 + 20) * 6 / (540 + 50));
    tap_ok(!(fabs(dense[0] / v[0] - scale) <= 1e-9) && !(fabs(dense[1] / v[1] - scale) <= 1e-9),
           "another name gives other values");
    for (int i = 1; i < 6; i++) {
        static const double constant[6] = {0, 0.1, 0.7, 0, 0, 1};
        double *c = values(a, &p[i], 1);
        tap_ok(c[0] == constant[i] && c[p[i].count - 1] == constant[i], "%s begins at %g", p[i].name, c[0]);
        free(c);
    }
    free(v), free(same), free(other), free(seed), free(dense), free(p), free(q);
    halo_network_destroy(a);
    halo_network_destroy(b);
}

int main(void)
{
    if (halo_context_create(NULL, &ctx) != HALO_OK) tap_bail("no context");
    check_list();
    for (int which = 0; which <= 6; which += 6) { /* fans: 300 and 20 channels times 6 cells; 540 and 50 */
        double in = which ? 540 : 300 * 6, out = which ? 50 : 20 * 6;
        check_moments(HALO_INIT_GLOROT_UNIFORM, which, 2 / (in + out), true, "glorot uniform");
        check_moments(HALO_INIT_GLOROT_NORMAL, which, 2 / (in + out), false, "glorot normal");
        check_moments(HALO_INIT_HE_UNIFORM, which, 2 / in, true, "he uniform");
        check_moments(HALO_INIT_HE_NORMAL, which, 2 / in, false, "he normal");
    }
    check_transposed();
    check_independence();
    halo_context_destroy(ctx);
    return tap_done();
}
