/* SPDX-License-Identifier: Apache-2.0 */
#include "runs.h"

/* The dimensions of a box outside the lanes of a cell, innermost first; C counts blocks. */
static const int order[HL_RUN_DIMS] = {HALO_W, HALO_H, HALO_D, HALO_C, HALO_N};

/* Folds into the run, from the innermost outwards, every dimension that continues it in all operands. */
static hl_runs fold(const halo_operand *const *ops, int operands, int64_t lanes, const int64_t ext[HL_RUN_DIMS])
{
    hl_runs r = {.operands = operands, .count = 1, .len = lanes};
    hl_strides t[HL_RUN_OPERANDS];
    for (int k = 0; k < operands; k++) {
        const int64_t *lo = ops[k]->lo;
        t[k] = hl_operand_strides(ops[k]);
        r.offset[k] = hl_offset(&t[k], lo[HALO_N], lo[HALO_C], lo[HALO_D], lo[HALO_H], lo[HALO_W]);
    }
    int outer = 0;
    for (int i = 0; i < HL_RUN_DIMS; i++) {
        bool continues = outer == 0;
        if (ext[i] == 1) continue;
        for (int k = 0; k < operands; k++) continues = continues && t[k].s[order[i]] == r.len;
        if (continues) {
            r.len *= ext[i];
            continue;
        }
        for (int k = 0; k < operands; k++) r.stride[k][outer] = t[k].s[order[i]];
        r.ext[outer++] = ext[i];
        r.count *= ext[i];
    }
    for (; outer < HL_RUN_DIMS; outer++) r.ext[outer] = 1;
    return r;
}

static hl_runs runs_of(const halo_operand *const *ops, int operands, int64_t lanes, int64_t blocks, int64_t samples)
{
    const int64_t *e = ops[0]->ext;
    const int64_t ext[HL_RUN_DIMS] = {e[HALO_W], e[HALO_H], e[HALO_D], blocks, samples};
    return fold(ops, operands, lanes, ext);
}

hl_runs hl_runs_block(const halo_operand *const *ops, int operands, int64_t lanes) { return runs_of(ops, operands, lanes, 1, 1); }

static bool together(const halo_operand *const *ops, int operands)
{
    for (int k = 0; k < operands; k++)
        if (!hl_operand_valid(ops[k]) || ops[k]->layout != ops[0]->layout || !hl_same_extents(ops[k], ops[0])) return false;
    return operands <= HL_RUN_OPERANDS;
}

/* The lanes past the box in its last block are padding in every operand. */
static bool padded(const halo_operand *const *ops, int operands)
{
    for (int k = 0; k < operands; k++)
        if (ops[k]->lo[HALO_C] + ops[k]->ext[HALO_C] != ops[k]->alloc[HALO_C]) return false;
    return true;
}

hl_run_sets hl_runs_make(const halo_operand *const *ops, int operands, bool zeros)
{
    hl_run_sets s = {0};
    if (!together(ops, operands)) return s;
    const int64_t *e = ops[0]->ext;
    bool last = ops[0]->layout == HALO_NDHWC;
    int64_t lanes = last ? e[HALO_C] : hl_layout_block(ops[0]->layout), whole = e[HALO_C] / lanes, rest = e[HALO_C] % lanes;
    if (rest && zeros && padded(ops, operands)) {
        whole++;
        rest = 0;
    }
    if (whole) s.set[s.sets++] = runs_of(ops, operands, lanes, whole, e[HALO_N]);
    if (!rest) return s;
    hl_runs *r = &s.set[s.sets++];
    *r = runs_of(ops, operands, rest, 1, e[HALO_N]);
    for (int k = 0; k < operands; k++) r->offset[k] += whole * hl_operand_strides(ops[k]).s[HALO_C];
    return s;
}

hl_walk hl_walk_begin(const hl_runs *r, hl_range elements)
{
    hl_walk w = {.r = r, .in_run = elements.lo % r->len, .left = hl_range_len(elements)};
    int64_t run = elements.lo / r->len;
    memcpy(w.base, r->offset, sizeof(w.base));
    for (int i = 0; i < HL_RUN_DIMS; i++) {
        w.i[i] = run % r->ext[i];
        run /= r->ext[i];
        for (int k = 0; k < r->operands; k++) w.base[k] += w.i[i] * r->stride[k][i];
    }
    return w;
}

static void next_run(hl_walk *w)
{
    const hl_runs *r = w->r;
    w->in_run = 0;
    for (int i = 0; i < HL_RUN_DIMS; i++) {
        if (++w->i[i] < r->ext[i]) {
            for (int k = 0; k < r->operands; k++) w->base[k] += r->stride[k][i];
            return;
        }
        for (int k = 0; k < r->operands; k++) w->base[k] -= (r->ext[i] - 1) * r->stride[k][i];
        w->i[i] = 0;
    }
}

int64_t hl_walk_next(hl_walk *w, int64_t most, int64_t at[HL_RUN_OPERANDS])
{
    int64_t n = hl_min64(hl_min64(w->r->len - w->in_run, w->left), most);
    if (n <= 0) return 0;
    for (int k = 0; k < w->r->operands; k++) at[k] = w->base[k] + w->in_run;
    w->in_run += n;
    w->left -= n;
    if (w->in_run == w->r->len) next_run(w);
    return n;
}

hl_range hl_runs_part(const hl_runs *r, int64_t unit, int64_t parts, int64_t i)
{
    hl_range units = hl_block_range(hl_runs_elements(r) / unit, parts, i);
    return (hl_range){units.lo * unit, units.hi * unit};
}

/* Contiguous: plain cells of one sample, or channels alone where nothing lies between their blocks. */
bool hl_vector_rows(const halo_operand *op, halo_operand *plain)
{
    const int64_t *e = op->ext, *a = op->alloc;
    bool channels_alone = e[HALO_D] == 1 && e[HALO_H] == 1 && e[HALO_W] == 1;
    halo_operand sample = *op;
    int64_t unused, features = e[HALO_C] * e[HALO_D] * e[HALO_H] * e[HALO_W];
    if (!hl_operand_valid(op)) return false;
    sample.alloc[HALO_N] = sample.ext[HALO_N] = 1;
    sample.lo[HALO_N] = 0;
    bool contiguous = op->layout == HALO_NDHWC    ? channels_alone
                      : op->layout == HALO_NCDHW ? hl_operand_dense(&sample, &unused)
                                                 : channels_alone && a[HALO_D] * a[HALO_H] * a[HALO_W] == 1;
    if (!contiguous) return false;
    hl_strides t = hl_operand_strides(op);
    int64_t first = hl_offset(&t, 0, op->lo[HALO_C], op->lo[HALO_D], op->lo[HALO_H], op->lo[HALO_W]);
    *plain = (halo_operand){.dtype = op->dtype,
                            .layout = HALO_NCDHW,
                            .alloc = {a[HALO_N], 1, 1, 1, t.s[HALO_N]},
                            .lo = {op->lo[HALO_N], 0, 0, 0, first},
                            .ext = {e[HALO_N], 1, 1, 1, features}};
    return true;
}
