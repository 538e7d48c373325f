/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_plan.c -- which of cuDNN's algorithms a convolution may use, and its plan. An algorithm is a candidate when it is deterministic, its workspace is
 * within the device's limit, and all pieces can use it; cuDNN's own heuristics say which is likely the best, and stand first. A graph is one more. Where no
 * workspace is within the limit the least stands alone: whether there is memory for it is found, and told, where a program's needs are added up.
 */
#include "conv.h"

#include <stdio.h>

static size_t round_up(size_t n) { return (n + 255) / 256 * 256; }

/* The most workspace of all pieces. */
static bool workspace_of(hl_cuda_device *dev, const hl_conv_pieces *list, const hl_conv_way *way, int algorithm, size_t *bytes)
{
    *bytes = 0;
    for (size_t i = 0; i < list->n; i++) {
        size_t one = 0;
        if (list->piece[i].empty && algorithm == HL_CONV_FUSED) return false;
        if (list->piece[i].empty) continue;
        if (!way->size(dev, &list->piece[i], algorithm, &one)) return false;
        if (one > *bytes) *bytes = one;
    }
    *bytes = round_up(*bytes);
    return true;
}

static const hl_conv_piece *first_piece(const hl_conv_pieces *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (!list->piece[i].empty) return &list->piece[i];
    return NULL;
}

static size_t moved_bytes(const hl_conv_pieces *list, halo_dtype type) { return round_up((size_t)list->near_elements * hl_dtype_size(type)); }
static size_t packed_bytes(const hl_conv_pieces *list, halo_dtype type) { return round_up((size_t)list->far_elements * hl_dtype_size(type)); }

bool hl_conv_indirect(const halo_op_desc *d)
{
    return d->kind == HALO_OP_CONV_BWD_WEIGHTS && hl_cuda_image(d->t[HALO_DW].dtype, d->t[HALO_X].dtype, d->t[HALO_X].layout) != 0;
}

static size_t filter_bytes(const halo_op_desc *d, const hl_conv_pieces *list)
{
    return hl_conv_indirect(d) ? round_up((size_t)list->filter_elements * hl_dtype_size(d->t[HALO_X].dtype)) : 0;
}

static void bias_groups(const halo_op_desc *d, hl_groups *g)
{
    const halo_operand *dy = &d->t[HALO_DY];
    hl_cuda_groups_channels(&dy, 1, false, dy->ext[HALO_C], g);
    g->samples = 0;
}

static size_t sums_bytes(const halo_op_desc *d)
{
    hl_groups g;
    if (!hl_has(d, HALO_DB)) return 0;
    bias_groups(d, &g);
    return hl_cuda_groups_bytes(&g);
}

static void add(const halo_op_desc *d, const hl_conv_pieces *list, const char *name, int algorithm, size_t workspace, halo_candidate *out)
{
    const halo_operand *near = &d->t[hl_conv_near(d)];
    const halo_dtype type = near->dtype;
    *out = (halo_candidate){.id = algorithm, .scratch = workspace + moved_bytes(list, type) + packed_bytes(list, type) + filter_bytes(d, list) + sums_bytes(d), .items = 1};
    if (d->kind != HALO_OP_CONV_BWD_WEIGHTS) out->image = hl_cuda_image(d->t[HALO_WT].dtype, type, near->layout);
    if (out->image) out->image_bytes = (size_t)hl_operand_box_elements(&d->t[HALO_WT]) * hl_dtype_size(type);
    snprintf(out->impl, sizeof(out->impl), "cudnn:%s%s%s", name, list->near_elements > 0 || list->far_elements > 0 ? ":moved" : "", list->n > 1 ? ":cut" : "");
}

/* Those within the limit, or the one with the least workspace. */
static int offer(hl_cuda_device *dev, const halo_op_desc *d, const hl_conv_pieces *list, const hl_conv_way *way, const int *algorithm, int asked, halo_candidate *out)
{
    size_t workspace, least = SIZE_MAX;
    int n = 0, smallest = -1;
    for (int i = 0; i < asked; i++) {
        if (!workspace_of(dev, list, way, algorithm[i], &workspace)) continue;
        if (workspace <= dev->workspace) add(d, list, way->name(algorithm[i]), algorithm[i], workspace, &out[n++]);
        if (workspace < least) least = workspace, smallest = i;
    }
    if (n == 0 && smallest >= 0 && !way->graph) add(d, list, way->name(algorithm[smallest]), algorithm[smallest], least, &out[n++]);
    return n;
}

int hl_conv_candidates(halo_device *device, const halo_op_desc *d, const hl_conv_way *way, halo_candidate *out)
{
    hl_cuda_device *dev = hl_cuda(device);
    hl_conv_pieces list = {0};
    int algorithm[HALO_MAX_CANDIDATES], asked = 0, n = 0;
    if (!hl_conv_fits(d)) return 0;
    if (hl_cuda_here(dev) == HALO_OK && hl_conv_pieces_make(dev, d, way->graph, &list) == HALO_OK) {
        const hl_conv_piece *p = first_piece(&list);
        if (p)
            asked = way->ask(dev, p, algorithm);
        else if (!way->graph)
            add(d, &list, "none", 0, 0, &out[n++]);
        n += offer(dev, d, &list, way, algorithm, asked, &out[n]);
    }
    hl_conv_pieces_free(&list);
    return n;
}

void hl_conv_plan_free(halo_plan *plan)
{
    if (plan) hl_conv_pieces_free(&((hl_conv_plan *)plan)->pieces);
    free(plan);
}

halo_status hl_conv_plan_make(halo_device *dev, const halo_op_desc *d, const hl_conv_way *way, const halo_candidate *choice, halo_plan **out)
{
    hl_conv_plan *p;
    HL_TRY(hl_cuda_here(hl_cuda(dev)));
    HL_TRY(hl_cuda_plan_new(dev, d, sizeof(*p), &p));
    halo_status st = hl_conv_pieces_make(hl_cuda(dev), d, way->graph, &p->pieces);
    p->algorithm = choice->id;
    p->type = d->t[hl_conv_near(d)].dtype;
    p->indirect = hl_conv_indirect(d);
    p->image = choice->image;
    if (st == HALO_OK && !workspace_of(hl_cuda(dev), &p->pieces, way, choice->id, &p->workspace))
        st = hl_fail(dev->ctx, HALO_ERR_UNSUPPORTED, "cuDNN no longer offers '%s' for this convolution", choice->impl);
    if (d->kind != HALO_OP_CONV_BWD_WEIGHTS) {
        const halo_operand *to = &d->t[d->kind == HALO_OP_CONV_FWD ? HALO_Y : HALO_DX];
        int64_t s[HALO_DIMS];
        const int64_t *stride[] = {s, hl_cuda_channel};
        HL_BUG_UNLESS(hl_cuda_strides(to, s));
        hl_cuda_cells(to->ext, stride, 2, &p->finish);
    }
    if (hl_has(d, HALO_DB)) bias_groups(d, &p->db);
    if (st != HALO_OK)
        hl_conv_plan_free((halo_plan *)p);
    else
        *out = (halo_plan *)p;
    return st;
}

void *hl_conv_moved(const hl_conv_plan *p, void *scratch) { return (char *)scratch + p->workspace; }
void *hl_conv_packed(const hl_conv_plan *p, void *scratch) { return (char *)hl_conv_moved(p, scratch) + moved_bytes(&p->pieces, p->type); }
void *hl_conv_filter(const hl_conv_plan *p, void *scratch) { return (char *)hl_conv_packed(p, scratch) + packed_bytes(&p->pieces, p->type); }
void *hl_conv_sums(const hl_conv_plan *p, void *scratch) { return (char *)hl_conv_filter(p, scratch) + filter_bytes(&p->super.d, &p->pieces); }

char *hl_conv_weights(const hl_conv_plan *p, const halo_op_args *args) { return p->image ? args->ptr[HALO_WT] : hl_cuda_ptr(&p->super, args, HALO_WT); }
