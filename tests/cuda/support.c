/* SPDX-License-Identifier: Apache-2.0 */
/*
 * support.c -- asks the real cuDNN, which needs no device for it, whether it can do convolutions on described ones: its graph API runs its heuristics and builds
 * execution plans for properties given as JSON. The numbers are those of data sheets, not read from cards.
 *
 * stdin: a convolution per line, as the simulated cuDNN writes those that it is asked for (CUDASIM_PROBLEMS):
 *     pass type  x: extents[5] strides[5]  y: extents[5] strides[5]  last  w: extents[5]  pad[3] stride[3] dilation[3]
 *     3 type pass  x y w: extents[5] strides[5] align  pad_lo[3] pad_hi[3] stride[3] dilation[3]  bias relu slope bias_align
 * pass 0 forward, 1 backward data, 2 backward filter, 3 one of these as a graph, which the backend's own file builds; type f32, tf32, f16, bf16;
 * last: filters have channels last. stdout: TAP, two devices for each. An argument n: only every n-th of the graphs, whose kernels the library may compile.
 */
#include "conv_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct problem {
    int pass;
    char type[8];
    long long x[5], xs[5], y[5], ys[5], w[5], pad[3], stride[3], dilation[3];
    int last;
} problem;

static const struct card {
    const char *name, *json;
} cards[] = {
    {"sm_80", "{\"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64], \"regsPerBlock\": 65536, \"multiProcessorCount\": 108, \"warpSize\": 32, "
              "\"maxSharedMemoryPerBlock\": 49152, \"maxSharedMemoryPerBlockOptin\": 166912, \"reservedSharedMemoryPerBlock\": 1024, \"maxRegistersPerSM\": 65536, "
              "\"maxCtasPerSM\": 32, \"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048, \"pciDeviceId\": 0, \"isTccDriver\": 0, \"supportCoopLaunch\": 1, "
              "\"totalGlobalMem\": 42949672960, \"smClockRateKHz\": 1410000, \"memClockRateKHz\": 1215000, \"l2CacheSize\": 41943040, \"cudaDeviceId\": 0, \"deviceVer\": 800, "
              "\"driverVer\": 13000, \"deviceName\": \"NVIDIA A100-SXM4-40GB\"}"},
    {"sm_90", "{\"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64], \"regsPerBlock\": 65536, \"multiProcessorCount\": 132, \"warpSize\": 32, "
              "\"maxSharedMemoryPerBlock\": 49152, \"maxSharedMemoryPerBlockOptin\": 232448, \"reservedSharedMemoryPerBlock\": 1024, \"maxRegistersPerSM\": 65536, "
              "\"maxCtasPerSM\": 32, \"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": 2048, \"pciDeviceId\": 0, \"isTccDriver\": 0, \"supportCoopLaunch\": 1, "
              "\"totalGlobalMem\": 85899345920, \"smClockRateKHz\": 1980000, \"memClockRateKHz\": 2619000, \"l2CacheSize\": 52428800, \"cudaDeviceId\": 0, \"deviceVer\": 900, "
              "\"driverVer\": 13000, \"deviceName\": \"NVIDIA H100 80GB HBM3\"}"},
};

static const char *const passes[] = {"forward", "backward data", "backward filter"};
static char why[512];

/* The first call that fails says why. */
#define NEED(call)                                                                                           \
    do {                                                                                                     \
        cudnnStatus_t need_ = (call);                                                                        \
        if (need_ != CUDNN_STATUS_SUCCESS) {                                                                 \
            char said_[256] = "";                                                                            \
            cudnnGetLastErrorString(said_, sizeof(said_));                                                   \
            snprintf(why, sizeof(why), "%.100s: %d %.250s", #call, (int)need_, said_);                       \
            return 0;                                                                                        \
        }                                                                                                    \
    } while (0)
#define SET(d, name, type, n, value) NEED(cudnnBackendSetAttribute(d, name, type, n, value))

static int device_of(const char *json, cudnnBackendDescriptor_t *d)
{
    NEED(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, d));
    SET(*d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json), json);
    NEED(cudnnBackendFinalize(*d));
    return 1;
}

static cudnnDataType_t type_of(const char *name) { return strcmp(name, "f16") == 0 ? CUDNN_DATA_HALF : strcmp(name, "bf16") == 0 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT; }

static int tensor(int64_t id, cudnnDataType_t type, const long long extent[5], const long long stride[5], cudnnBackendDescriptor_t *d)
{
    int64_t e[5], s[5], align = 16;
    for (int i = 0; i < 5; i++) e[i] = extent[i], s[i] = stride[i];
    NEED(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, d));
    SET(*d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    SET(*d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 5, e);
    SET(*d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 5, s);
    SET(*d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    SET(*d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    NEED(cudnnBackendFinalize(*d));
    return 1;
}

static void filter_strides(const problem *p, long long s[5])
{
    long long step = 1;
    if (p->last) s[1] = 1, step = p->w[1];
    for (int i = 4; i >= 0; i--) {
        if (i == 1 && p->last) continue;
        s[i] = step;
        step *= p->w[i];
    }
}

static int window(const problem *p, cudnnBackendDescriptor_t *c)
{
    int64_t three = 3, pad[3], stride[3], dilation[3];
    cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    for (int i = 0; i < 3; i++) pad[i] = p->pad[i], stride[i] = p->stride[i], dilation[i] = p->dilation[i];
    NEED(cudnnBackendCreateDescriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, c));
    SET(*c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &three);
    SET(*c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    SET(*c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    SET(*c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 3, pad);
    SET(*c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 3, pad);
    SET(*c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 3, dilation);
    SET(*c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 3, stride);
    NEED(cudnnBackendFinalize(*c));
    return 1;
}

static int operation(const problem *p, cudnnBackendDescriptor_t *g)
{
    static const cudnnBackendDescriptorType_t kinds[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                                         CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
    static const int first[] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA};
    const int a = first[p->pass]; /* alpha, beta, convolution, w, x, y follow each other in all three */
    const cudnnDataType_t type = type_of(p->type);
    const float one = 1, zero = 0;
    long long ws[5];
    cudnnBackendDescriptor_t x, w, y, c, op;
    filter_strides(p, ws);
    if (!tensor(1, type, p->x, p->xs, &x) || !tensor(2, type, p->w, ws, &w) || !tensor(3, type, p->y, p->ys, &y) || !window(p, &c)) return 0;
    NEED(cudnnBackendCreateDescriptor(kinds[p->pass], &op));
    SET(op, (cudnnBackendAttributeName_t)a, CUDNN_TYPE_FLOAT, 1, &one);
    SET(op, (cudnnBackendAttributeName_t)(a + 1), CUDNN_TYPE_FLOAT, 1, &zero);
    SET(op, (cudnnBackendAttributeName_t)(a + 2), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c);
    SET(op, (cudnnBackendAttributeName_t)(a + 3), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
    SET(op, (cudnnBackendAttributeName_t)(a + 4), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    SET(op, (cudnnBackendAttributeName_t)(a + 5), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    NEED(cudnnBackendFinalize(op));
    NEED(cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, g));
    SET(*g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
    NEED(cudnnBackendFinalize(*g));
    return 1;
}

enum { CONFIGS = 64 };

/* How many configurations the heuristics offer. */
static int heuristics(cudnnBackendDescriptor_t g, cudnnBackendDescriptor_t device, cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t config[CONFIGS], int64_t *n)
{
    cudnnBackendDescriptor_t h;
    int64_t offered = 0;
    NEED(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &h));
    SET(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g);
    SET(h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    SET(h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    NEED(cudnnBackendFinalize(h));
    NEED(cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &offered, NULL));
    if (offered > CONFIGS) offered = CONFIGS;
    for (int64_t i = 0; i < offered; i++) NEED(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[i]));
    NEED(cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, offered, n, config));
    return 1;
}

static int plan(cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t device)
{
    cudnnBackendDescriptor_t p;
    NEED(cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &p));
    SET(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    SET(p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    NEED(cudnnBackendFinalize(p));
    cudnnBackendDestroyDescriptor(p);
    return 1;
}

/* A configuration of which a plan can be built. */
static int supported(const problem *p, cudnnBackendDescriptor_t device, long long *offered)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    cudnnBackendDescriptor_t g, config[CONFIGS];
    if (!operation(p, &g)) return 0;
    *offered = 0;
    snprintf(why, sizeof(why), "nothing is offered");
    for (int m = 0; m < 2; m++) {
        int64_t n = 0;
        if (!heuristics(g, device, modes[m], config, &n)) continue;
        *offered += n;
        for (int64_t i = 0; i < n; i++)
            if (plan(config[i], device)) return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- graphs */

static int read_numbers(int64_t *v, int n)
{
    long long one;
    for (int i = 0; i < n; i++) {
        if (scanf("%lld", &one) != 1) return 0;
        v[i] = one;
    }
    return 1;
}

static int read_tensor(hl_graph_tensor *t) { return read_numbers(t->ext, 5) && read_numbers(t->stride, 5) && read_numbers(&t->align, 1); }

/* f32 is asked for without tensor cores, tf32 with them. */
static int read_graph(const char *type, hl_graph_conv *c)
{
    memset(c, 0, sizeof(*c));
    c->type = (int)type_of(type);
    c->refuse = 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS | 1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION | 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC |
                (uint64_t)(strcmp(type, "f32") == 0) << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    c->workspace = INT64_C(1) << 32;
    return scanf("%d", &c->pass) == 1 && c->pass >= 0 && c->pass < 3 && read_tensor(&c->x) && read_tensor(&c->y) && read_tensor(&c->w) && read_numbers(c->pad_lo, 3) && read_numbers(c->pad_hi, 3) && read_numbers(c->stride, 3) &&
           read_numbers(c->dilation, 3) && scanf("%d %d %lf", &c->bias, &c->relu, &c->slope) == 3 && read_numbers(&c->bias_align, 1);
}

static int graph_supported(const hl_graph_conv *c, cudnnBackendDescriptor_t device, long long *workspace)
{
    hl_conv_graph *g;
    NEED(hl_conv_graph_make(NULL, device, c, &g));
    *workspace = hl_conv_graph_workspace(g);
    hl_conv_graph_free(g);
    return 1;
}

static int ask_graph(const char *type, const hl_graph_conv *c, int card, cudnnBackendDescriptor_t device, int number)
{
    long long workspace = 0;
    int good = graph_supported(c, device, &workspace);
    printf("%s %d - %s: %s %s%s%s%s, %lld x %lld to %lld channels, %lld x %lld x %lld by %lld x %lld x %lld: graph, workspace %lld%s%s\n", good ? "ok" : "not ok", number, cards[card].name,
           type, passes[c->pass], c->bias ? " + bias" : "", c->relu ? " + relu" : "", c->slope != 0 ? " with slope" : "", (long long)c->x.ext[0], (long long)c->x.ext[1], (long long)c->y.ext[1],
           (long long)c->x.ext[2], (long long)c->x.ext[3], (long long)c->x.ext[4], (long long)c->w.ext[2], (long long)c->w.ext[3], (long long)c->w.ext[4], workspace, good ? "" : ": ",
           good ? "" : why);
    return good;
}

/* ---------------------------------------------------------------------------------------------------------- older calls */

static int read_five(long long v[5]) { return scanf("%lld %lld %lld %lld %lld", &v[0], &v[1], &v[2], &v[3], &v[4]) == 5; }
static int read_three(long long v[3]) { return scanf("%lld %lld %lld", &v[0], &v[1], &v[2]) == 3; }

static int read_problem(problem *p)
{
    return read_five(p->x) && read_five(p->xs) && read_five(p->y) && read_five(p->ys) && scanf("%d", &p->last) == 1 &&
           read_five(p->w) && read_three(p->pad) && read_three(p->stride) && read_three(p->dilation);
}

static int ask_problem(const problem *p, int card, cudnnBackendDescriptor_t device, int number)
{
    long long offered = 0;
    int good = supported(p, device, &offered);
    printf("%s %d - %s: %s %s, %s, %lld x %lld to %lld channels, %lld x %lld x %lld by %lld x %lld x %lld: %lld ways%s%s\n", good ? "ok" : "not ok", number, cards[card].name, p->type,
           passes[p->pass], p->last ? "channels last" : "plain", p->x[0], p->x[1], p->y[1], p->x[2], p->x[3], p->x[4], p->w[2], p->w[3], p->w[4], offered, good ? "" : ": ", good ? "" : why);
    return good;
}

int main(int argc, char **argv)
{
    cudnnBackendDescriptor_t device[2];
    problem p;
    hl_graph_conv c;
    const int every = argc > 1 ? atoi(argv[1]) : 1;
    int count = 0, failed = 0, graphs = 0;
    for (int i = 0; i < 2; i++)
        if (!device_of(cards[i].json, &device[i])) {
            printf("1..0 # SKIP this cuDNN takes no described devices: %s\n", why);
            return 0;
        }
    while (scanf("%d %7s", &p.pass, p.type) == 2 && p.pass >= 0 && p.pass < 4) {
        const int graph = p.pass == 3;
        if (!(graph ? read_graph(p.type, &c) : read_problem(&p))) break;
        if (graph && every > 1 && graphs++ % every != 0) continue;
        for (int i = 0; i < 2; i++) {
            failed += !(graph ? ask_graph(p.type, &c, i, device[i], count + 1) : ask_problem(&p, i, device[i], count + 1));
            count++;
        }
    }
    if (!feof(stdin)) printf("Bail out! what was asked cannot be read\n");
    printf("1..%d\n", count);
    return failed > 0 || count == 0 || !feof(stdin);
}
