/* SPDX-License-Identifier: Apache-2.0 */
/* roles.c -- which of its operands an operation writes, and which it reads. */
#include "backend/backend.h"

static const unsigned written[HALO_OP_KINDS] = {
    [HALO_OP_CONV_FWD] = HL_ROLE_BIT(HALO_Y) | HL_ROLE_BIT(HALO_AUX),
    [HALO_OP_CONV_BWD_DATA] = HL_ROLE_BIT(HALO_DX),
    [HALO_OP_CONV_BWD_WEIGHTS] = HL_ROLE_BIT(HALO_DW) | HL_ROLE_BIT(HALO_DB),
    [HALO_OP_CONV_IMAGE] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_POOL_FWD] = HL_ROLE_BIT(HALO_Y) | HL_ROLE_BIT(HALO_AUX),
    [HALO_OP_POOL_BWD] = HL_ROLE_BIT(HALO_DX),
    [HALO_OP_NORM_STATS] = HL_ROLE_BIT(HALO_STAT),
    [HALO_OP_NORM_APPLY] = HL_ROLE_BIT(HALO_Y) | HL_ROLE_BIT(HALO_RUN),
    [HALO_OP_NORM_BWD_STATS] = HL_ROLE_BIT(HALO_STAT2),
    [HALO_OP_NORM_BWD_APPLY] = HL_ROLE_BIT(HALO_DX) | HL_ROLE_BIT(HALO_DW) | HL_ROLE_BIT(HALO_DB),
    [HALO_OP_ACT_FWD] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_ACT_BWD] = HL_ROLE_BIT(HALO_DX),
    [HALO_OP_ADD] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_COPY] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_MARGIN] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_FLATTEN] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_UNFLATTEN] = HL_ROLE_BIT(HALO_DX),
    [HALO_OP_LINEAR_FWD] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_LINEAR_BWD_DATA] = HL_ROLE_BIT(HALO_DX),
    [HALO_OP_LINEAR_BWD_WEIGHTS] = HL_ROLE_BIT(HALO_DW) | HL_ROLE_BIT(HALO_DB),
    [HALO_OP_DROPOUT] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_LOSS] = HL_ROLE_BIT(HALO_STAT) | HL_ROLE_BIT(HALO_DX),
    [HALO_OP_SUMSQ] = HL_ROLE_BIT(HALO_STAT),
    [HALO_OP_UPDATE] = HL_ROLE_BIT(HALO_WT) | HL_ROLE_BIT(HALO_M1) | HL_ROLE_BIT(HALO_M2) | HL_ROLE_BIT(HALO_STAT2),
    [HALO_OP_CAST] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_BIAS_BWD] = HL_ROLE_BIT(HALO_DB),
    [HALO_OP_CONV_POOL_FWD] = HL_ROLE_BIT(HALO_Y) | HL_ROLE_BIT(HALO_AUX),
    [HALO_OP_ACT_POOL_BWD] = HL_ROLE_BIT(HALO_DX),
    [HALO_OP_LOSS_SUMS] = HL_ROLE_BIT(HALO_STAT2),
    [HALO_OP_UPSAMPLE_FWD] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_UPSAMPLE_BWD] = HL_ROLE_BIT(HALO_DX),
    [HALO_OP_DECIDE] = HL_ROLE_BIT(HALO_NUM),
};
/* Written roles whose old content matters even without `accumulate`. */
static const unsigned changed[HALO_OP_KINDS] = {
    [HALO_OP_NORM_APPLY] = HL_ROLE_BIT(HALO_RUN),
    [HALO_OP_MARGIN] = HL_ROLE_BIT(HALO_Y),
    [HALO_OP_LOSS] = HL_ROLE_BIT(HALO_STAT),
    [HALO_OP_DECIDE] = HL_ROLE_BIT(HALO_NUM),
    [HALO_OP_UPDATE] = HL_ROLE_BIT(HALO_WT) | HL_ROLE_BIT(HALO_M1) | HL_ROLE_BIT(HALO_M2) | HL_ROLE_BIT(HALO_STAT2),
};

bool hl_op_writes(halo_op_kind kind, halo_role role) { return written[kind] & HL_ROLE_BIT(role); }

bool hl_op_reads(const halo_op_desc *desc, halo_role role)
{
    return !hl_op_writes(desc->kind, role) || (changed[desc->kind] & HL_ROLE_BIT(role)) || desc->accumulate;
}
