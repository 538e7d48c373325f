/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weigh.c -- what the losses of classes divide by, where cells have weights: w_t of their class t, 0 where they are ignored. With W_n the sum over the cells of sample n,
 *
 *     training      every sample's sum of cross entropies is divided by M = (sum_n s_n W_n) / (sum_n s_n), n over the samples of the step of all ranks, s_n the samples' own weights:
 *                   then the loss is sum w loss / sum w, as PyTorch's CrossEntropyLoss(weight, ignore_index) has it of a batch
 *     evaluation    by W_n: the losses of samples do not depend on what they are evaluated with
 *
 * It follows from the labels, which the host has: one pass over them, and one small sum over ranks, before the step. Where nothing counts the divisor is 1 and the loss is 0. The samples of
 * `train.accumulate` are weighed part by part.
 */
#include "net/ir.h"

static bool weighs(const hl_program *p) { return p->opt.ignores || p->class_weights; }

static double weight_of(const hl_program *p, float label)
{
    const int64_t classes = p->value[p->class_weight].ext[HALO_W];
    if (p->opt.ignores && label == (float)p->opt.ignore) return 0;
    return p->class_weights && label >= 0 && label < (float)classes ? p->class_weights[(int64_t)label] : 1;
}

/* W_n of this process's cells, once for every row of a sample. */
static void add_up(hl_program *p, const float *y, double *out)
{
    const int64_t *ext = p->value[p->target].ext, cells = ext[HALO_D] * ext[HALO_H] * ext[HALO_W], rows = ext[HALO_N] / p->opt.batch;
    for (int64_t n = 0; n < ext[HALO_N]; n++) {
        const float *label = y + n / rows * cells;
        out[n] = 0;
        for (int64_t i = 0; i < cells; i++) out[n] += weight_of(p, label[i]);
    }
}

/* All become their mean, over all ranks where gradients are summed. */
static halo_status average(hl_program *p, double *divisor, int64_t n, const double *weight)
{
    double sum[2] = {0};
    for (int64_t i = 0; i < n; i++) {
        sum[0] += weight[i] * divisor[i];
        sum[1] += weight[i];
    }
    if (p->reducer && p->average == 0) HL_TRY(hl_comm_sum(hl_grid_split(&p->grid) ? p->opt.team->peers : p->ctx, sum, 2));
    for (int64_t i = 0; i < n; i++) divisor[i] = sum[1] > 0 ? sum[0] / sum[1] : 0;
    return HALO_OK;
}

halo_status hl_weigh_labels(hl_program *p, const float *y, const double *weight)
{
    const halo_device_ops *ops = p->dev->ops;
    if (!weighs(p)) return HALO_OK;
    const int64_t n = p->value[p->target].ext[HALO_N];
    double *divisor = p->divisors;
    add_up(p, y, divisor);
    if (p->split[p->net->layers - 1]) HL_TRY(hl_comm_sum(p->opt.team->group, divisor, n));
    if (p->opt.training) HL_TRY(average(p, divisor, n, weight));
    for (int64_t i = 0; i < n; i++) divisor[i] = divisor[i] > 0 ? divisor[i] : 1;
    HL_TRY(ops->upload(p->dev, &p->value[p->divisor].operand, (char *)p->arena + p->value[p->divisor].offset, HALO_F64, divisor));
    if (!p->class_weights) return HALO_OK;
    return ops->upload(p->dev, &p->value[p->class_weight].operand, (char *)p->arena + p->value[p->class_weight].offset, HALO_F64, p->class_weights);
}

static halo_status read_weights(hl_program *p, int64_t classes)
{
    const hl_words *w = p->opt.class_weights;
    double sum = 0;
    if (w->n != classes)
        return hl_fail(p->ctx, HALO_ERR_USAGE, "'class_weights' has %d number%s, and network '%s' %" PRId64 " classes", w->n, HL_S(w->n), p->net->name, classes);
    HL_TRY(hl_calloc(p->ctx, (size_t)classes, sizeof(*p->class_weights), "weights of classes", &p->class_weights));
    for (int k = 0; k < w->n; k++) {
        p->class_weights[k] = strtod(w->word[k], NULL);
        sum += k > 0 ? p->class_weights[k] : 0;
    }
    if (sum > 0 || p->opt.loss == HALO_LOSS_CROSS_ENTROPY) return HALO_OK;
    return hl_fail(p->ctx, HALO_ERR_USAGE, "'class_weights' are 0 for all classes but class 0, which dice leaves out");
}

static halo_status new_doubles(hl_program *p, const char *name, int64_t n, bool forever, int *value)
{
    HL_TRY(hl_value_new(p, HL_VALUE_STATISTICS, -1, name, value));
    hl_value *v = &p->value[*value];
    v->dtype = HALO_F64;
    v->ext[HALO_W] = n;
    v->operand = hl_operand_flat(v->dtype, n);
    v->forever = forever; /* uploaded before the step */
    return HALO_OK;
}

halo_status hl_weigh_prepare(hl_program *p)
{
    const int64_t n = p->value[p->target].ext[HALO_N], classes = p->value[p->y[p->net->layers - 1]].ext[HALO_C];
    p->class_weight = p->divisor = -1;
    if (!hl_loss_of_classes(p->opt.loss)) return HALO_OK;
    if (p->opt.class_weights && p->opt.class_weights->n > 0) HL_TRY(read_weights(p, classes));
    if (!weighs(p)) return HALO_OK;
    HL_TRY(hl_calloc(p->ctx, (size_t)n, sizeof(*p->divisors), "weights of samples", &p->divisors));
    HL_TRY(new_doubles(p, "weights of classes", classes, true, &p->class_weight));
    return new_doubles(p, "divisors", n, true, &p->divisor);
}

halo_status hl_weigh_sums(hl_program *p, int *value)
{
    const int64_t n = p->value[p->target].ext[HALO_N], classes = p->value[p->y[p->net->layers - 1]].ext[HALO_C];
    return new_doubles(p, "sums of classes", 2 * n * classes, false, value);
}

bool hl_program_weighs(const hl_program *p) { return weighs(p) && hl_loss_of_classes(p->opt.loss); }
