/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h -- the inside of a model: where every parameter lies.
 *
 * Masters and gradients are each one allocation, in backward order (the last layer first), so that a group of
 * gradients that are complete together is a range; frozen ones lie behind all others. Every parameter starts at a multiple of 64 bytes; the few
 * elements between are zero and stay so, and a sum over ranks may include them. Running statistics of a norm
 * are one f32 array [2][C], as the contract has it.
 */
#ifndef HL_MODEL_H
#define HL_MODEL_H

#include "net/program.h"

/* hl_array, and the norms: f64 [HL_NORM_NUMBERS] per parameter (sum of squares, values that are not finite, largest magnitude of the others) of
 * gradients and weights. */
enum { HL_NORM_NUMBERS = 3 };
typedef enum hl_model_array {
    HL_MODEL_GRADIENT_NORM = HL_ARRAYS,
    HL_MODEL_WEIGHT_NORM,
    HL_MODEL_ARRAYS
} hl_model_array;

struct hl_model {
    halo_context *ctx;
    halo_device *dev;
    const struct halo_network *net;
    hl_param_info *param;
    int params;
    bool has_optim;
    hl_optim_spec optim;
    bool has_state[2];

    int64_t *offset;  /* [params] in elements, in masters, gradients and states; of running statistics: in
                         `running` */
    int64_t elements, trained; /* of masters, and those before the frozen ones */
    int64_t running_elements, moving; /* of running statistics, and those before the frozen ones */
    void *base[HL_ARRAYS]; /* masters, gradients, state 1 and 2; NULL where absent */
    void *staged;          /* host memory in which gradients are summed, where MPI cannot reach the device's; else NULL */
    void *running;         /* f32 */
    void *norms;           /* f64 [2][params][HL_NORM_NUMBERS]: gradients, weights */

    hl_scaler scaler;
    int64_t steps;
    uint64_t version;      /* counts changes of the masters */
    uint64_t norm_version; /* of the weight norms */
};

/* Device address, type and element count of an array of a parameter. */
void *hl_model_address(const hl_model *m, int param, int array);
halo_dtype hl_model_array_dtype(const hl_model *m, int param, int array);
int64_t hl_model_array_count(const hl_model *m, int param, int array);

/* freeze.c: marks parameters; before places are given out. Whether a layer has anything to train. */
halo_status hl_model_freeze(hl_model *m, const hl_words *patterns);
bool hl_model_trains(const hl_model *m, int layer);

/* Bytes that hl_model_create allocated, by kind. */
size_t hl_model_weight_bytes(const hl_model *m);
size_t hl_model_state_bytes(const hl_model *m);

/* Between the gradient of a parameter on the device and its place in `staged`; nothing where gradients are summed where they are. */
halo_status hl_model_stage_out(hl_model *m, int param);
halo_status hl_model_stage_in(hl_model *m, int param);

#endif
