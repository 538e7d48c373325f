/* SPDX-License-Identifier: Apache-2.0 */
/* names.c -- what messages and reports call the contract's enumerations. */
#include "backend/backend.h"

const char *hl_op_kind_name(halo_op_kind kind)
{
    static const char *const names[HALO_OP_KINDS] = {
        [HALO_OP_CONV_FWD] = "conv-fwd",
        [HALO_OP_CONV_BWD_DATA] = "conv-bwd-data",
        [HALO_OP_CONV_BWD_WEIGHTS] = "conv-bwd-weights",
        [HALO_OP_CONV_IMAGE] = "conv-image",
        [HALO_OP_POOL_FWD] = "pool-fwd",
        [HALO_OP_POOL_BWD] = "pool-bwd",
        [HALO_OP_NORM_STATS] = "norm-stats",
        [HALO_OP_NORM_APPLY] = "norm-apply",
        [HALO_OP_NORM_BWD_STATS] = "norm-bwd-stats",
        [HALO_OP_NORM_BWD_APPLY] = "norm-bwd-apply",
        [HALO_OP_ACT_FWD] = "act-fwd",
        [HALO_OP_ACT_BWD] = "act-bwd",
        [HALO_OP_ADD] = "add",
        [HALO_OP_COPY] = "copy",
        [HALO_OP_MARGIN] = "margin",
        [HALO_OP_FLATTEN] = "flatten",
        [HALO_OP_UNFLATTEN] = "unflatten",
        [HALO_OP_LINEAR_FWD] = "linear-fwd",
        [HALO_OP_LINEAR_BWD_DATA] = "linear-bwd-data",
        [HALO_OP_LINEAR_BWD_WEIGHTS] = "linear-bwd-weights",
        [HALO_OP_DROPOUT] = "dropout",
        [HALO_OP_LOSS] = "loss",
        [HALO_OP_SUMSQ] = "sumsq",
        [HALO_OP_UPDATE] = "update",
        [HALO_OP_CAST] = "cast",
        [HALO_OP_BIAS_BWD] = "bias-bwd",
        [HALO_OP_CONV_POOL_FWD] = "conv-pool-fwd",
        [HALO_OP_ACT_POOL_BWD] = "act-pool-bwd",
        [HALO_OP_LOSS_SUMS] = "loss-sums",
        [HALO_OP_UPSAMPLE_FWD] = "upsample-fwd",
        [HALO_OP_UPSAMPLE_BWD] = "upsample-bwd",
        [HALO_OP_DECIDE] = "decide",
        [HALO_OP_PREPARE] = "prepare",
        [HALO_OP_NORM_MERGE] = "norm-merge",
    };
    return (size_t)kind < HL_COUNT(names) ? names[kind] : "?";
}

const char *hl_role_name(halo_role role)
{
    static const char *const names[HALO_ROLES] = {"x",  "x2", "y",   "w",    "b",     "dx",      "dy", "dw", "db",
                                                  "aux", "stat", "stat2", "running", "t",  "sw", "m1", "m2", "num"};
    return (size_t)role < HL_COUNT(names) ? names[role] : "?";
}

const char *hl_act_name(halo_act act)
{
    static const char *const names[] = {"none", "leaky_relu", "relu", "tanh", "sigmoid", "scale"};
    return (size_t)act < HL_COUNT(names) ? names[act] : "?";
}
