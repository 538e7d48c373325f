/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c -- prints what a small U-Net makes of numbers that layers.py can write down too: the loss and every gradient, in double on the reference
 * backend and, after the word "cpu", in f32 on the cpu one. Parameter i, x and labels are functions of their index:
 *
 *     w[i] = 0.3 sin(1.3 i + k) + (1 for gamma), k the parameter's number;   x[i] = sin(0.7 i);   label[i] = (7 i + i / 5) mod 3
 */
#include "net/program.h"
#include "tests/check.h"

#include <stdio.h>

static const char text[] = "name: unet\n"
                           "input: {channels: 2, size: [6, 5, 7]}\n"
                           "layers:\n"
                           "  - conv: {filters: 4, padding: same}\n"
                           "  - group_norm: {groups: 2}\n"
                           "  - tanh: {name: fine}\n"
                           "  - max_pool\n"
                           "  - conv: {filters: 6, padding: same}\n"
                           "  - instance_norm\n"
                           "  - tanh: {name: coarse}\n"
                           "  - conv_transpose: {name: up, filters: 4}\n"
                           "  - crop: {name: kept, from: fine, like: up}\n"
                           "  - conv_transpose: {name: same, from: coarse, filters: 2, kernel: 3, padding: 1, output_padding: 1}\n"
                           "  - concat: {from: [kept, up, same]}\n"
                           "  - conv_transpose: {filters: 3, kernel: [2, 3, 1], stride: [1, 2, 1], dilation: [2, 1, 1]}\n"
                           "  - tanh\n"
                           "  - conv: {filters: 3, kernel: 1}\n";

enum { SAMPLES = 2 };

static void fill(hl_model *m)
{
    const hl_param_info *list;
    int n = hl_model_params(m, &list);
    for (int k = 0; k < n; k++) {
        double *w = check_alloc(list[k].count, sizeof(double));
        for (int64_t i = 0; i < list[k].count; i++)
            w[i] = 0.3 * sin(1.3 * (double)i + k) + (strstr(list[k].name, "/gamma") ? 1 : 0);
        check_status(NULL, hl_model_set(m, k, HL_MASTER, w), "parameters");
        free(w);
    }
}

static void print(hl_model *m)
{
    const hl_param_info *list;
    int n = hl_model_params(m, &list);
    for (int k = 0; k < n; k++) {
        double *g = check_alloc(list[k].count, sizeof(double));
        check_status(NULL, hl_model_get(m, k, HL_GRADIENT, g), "gradients");
        printf("%s", list[k].name);
        for (int64_t i = 0; i < list[k].count; i++) printf(" %.17g", g[i]);
        printf("\n");
        free(g);
    }
}

static void run(halo_context *ctx, const char *backend, bool f64)
{
    const halo_device_options device = {.compute = f64 ? HALO_F64 : HALO_F32};
    const hl_optim_spec sgd = {.update = {.kind = HALO_SGD, .lr_factor = 1}, .dense_decay = -1};
    const hl_compile_options options = {
        .batch = SAMPLES, .training = true, .loss = HALO_LOSS_CROSS_ENTROPY, .plan = HL_PLAN_FIXED, .layout = HALO_LAYOUTS};
    halo_device *dev;
    halo_network *net;
    hl_model *m;
    hl_program *p;
    hl_step_result r;
    check_status(ctx, hl_device_open(ctx, backend, &device, &dev), backend);
    check_status(ctx, halo_network_parse(ctx, "unet", text, sizeof(text) - 1, 0, NULL, &net), "network");
    check_status(ctx, hl_model_create(ctx, dev, net, &sgd, &m), "model");
    check_status(ctx, hl_compile(m, &options, &p), "program");
    const int64_t *in = net->layer[0].out, *out = net->layer[net->layers - 1].out;
    int64_t nx = SAMPLES * in[0] * in[1] * in[2] * in[3], ny = SAMPLES * out[1] * out[2] * out[3];
    float *x = check_alloc(nx, sizeof(float)), *y = check_alloc(ny, sizeof(float));
    for (int64_t i = 0; i < nx; i++) x[i] = (float)sin(0.7 * (double)i);
    for (int64_t i = 0; i < ny; i++) y[i] = (float)((7 * i + i / 5) % 3);
    fill(m);
    const hl_batch batch = {.dtype = HALO_F32, .x = x, .y = y};
    check_status(ctx, hl_program_train(p, &batch, &(hl_step_options){.seed = 1}, &r), "a step");
    printf("loss %.17g\n", r.loss);
    print(m);
    free(x), free(y);
    hl_program_destroy(p);
    hl_model_destroy(m);
    halo_network_destroy(net);
    dev->ops->close(dev);
}

int main(void)
{
    halo_context *ctx;
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    run(ctx, "ref", true);
    for (const halo_backend *const *b = hl_backends(); *b; b++) {
        if (strcmp((*b)->name, "cpu") != 0) continue;
        printf("cpu\n");
        run(ctx, "cpu", false);
    }
    halo_context_destroy(ctx);
    return 0;
}
