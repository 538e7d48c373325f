/* SPDX-License-Identifier: Apache-2.0 */
/*
 * margin.c -- fills an operand's margin from the operand itself, cell by cell (the contract's definition, word for word):
 *
 *   any coordinate in a ZERO side: 0;  else y[cell] = y[cell with WRAP coordinates wrapped into the box];  KEEP sides alone: untouched
 *
 * The source of a wrapped cell has no WRAP coordinate, so the order of the cells does not matter. `reverse` is the adjoint:
 * y[source] += y[cell], then the cell becomes 0.
 */
#include "ref.h"

typedef enum fate { FATE_KEEP, FATE_ZERO, FATE_WRAP } fate;

/* What becomes of `cell` (d h w); its source in `from`. */
static fate cell_fate(const halo_op_desc *d, const halo_operand *op, const int64_t cell[3], int64_t from[3])
{
    fate f = FATE_KEEP;
    for (int k = 0; k < 3; k++) {
        int64_t ext = op->ext[HALO_D + k];
        from[k] = cell[k];
        if (cell[k] >= 0 && cell[k] < ext) continue;
        halo_margin_mode mode = d->margin_mode[k][cell[k] >= ext];
        if (mode == HALO_MARGIN_ZERO) return FATE_ZERO;
        if (mode == HALO_MARGIN_KEEP) continue;
        f = FATE_WRAP;
        from[k] = (cell[k] % ext + ext) % ext;
    }
    return f;
}

static void do_cell(const halo_op_desc *d, const hl_ref_view *y, int64_t n, int64_t c, const int64_t cell[3])
{
    int64_t from[3];
    fate f = cell_fate(d, y->op, cell, from);
    if (f == FATE_KEEP) return;
    if (f == FATE_WRAP && d->reverse) {
        double sum = hl_ref_get(y, n, c, from[0], from[1], from[2]) + hl_ref_get(y, n, c, cell[0], cell[1], cell[2]);
        hl_ref_set(y, n, c, from[0], from[1], from[2], sum);
    }
    double value = f == FATE_WRAP && !d->reverse ? hl_ref_get(y, n, c, from[0], from[1], from[2]) : 0;
    hl_ref_set(y, n, c, cell[0], cell[1], cell[2], value);
}

static int candidates(halo_device *dev, const halo_op_desc *d, halo_candidate *out)
{
    (void)dev;
    return REF_HAVE(d, HALO_Y) ? hl_ref_offer(0, out) : 0;
}

static halo_status run(halo_plan *plan, const halo_op_args *args)
{
    hl_ref_view y = hl_ref_operand(plan, args, HALO_Y);
    const halo_operand *op = y.op;
    int64_t cell[3];
    for (int64_t n = 0; n < op->ext[HALO_N]; n++)
        for (int64_t c = 0; c < op->ext[HALO_C]; c++)
            for (cell[0] = -op->margin[0][0]; cell[0] < op->ext[HALO_D] + op->margin[0][1]; cell[0]++)
                for (cell[1] = -op->margin[1][0]; cell[1] < op->ext[HALO_H] + op->margin[1][1]; cell[1]++)
                    for (cell[2] = -op->margin[2][0]; cell[2] < op->ext[HALO_W] + op->margin[2][1]; cell[2]++)
                        do_cell(&plan->d, &y, n, c, cell);
    return HALO_OK;
}

REF_CLASS(hl_ref_margin, HALO_OP_MARGIN, candidates, run);
