/* SPDX-License-Identifier: Apache-2.0 */
/* group.c -- see group.h. Gradients of one layer are never parted: what completes together is reduced together. */
#include "comm/group.h"

static bool ends_layer(const hl_gradient *g, int n, int i) { return i + 1 == n || strcmp(g[i].layer, g[i + 1].layer) != 0; }

static void close_group(hl_group *groups, int *count, int last)
{
    groups[*count] = (hl_group){*count > 0 ? groups[*count - 1].last : 0, last};
    ++*count;
}

static double cost_of(const hl_reduce_cost *c, size_t element, int64_t elements)
{
    return c->latency + c->seconds_per_byte * (double)elements * (double)element;
}

double hl_group_end(const hl_gradient *g, const hl_group *groups, int count, size_t element, hl_reduce_cost cost)
{
    double end = 0;
    for (int k = 0; k < count; k++) {
        const hl_gradient *first = &g[groups[k].first], *last = &g[groups[k].last - 1];
        end = fmax(end, last->seconds) + cost_of(&cost, element, last->hi - first->lo);
    }
    return end;
}

/* One end of the dynamic programme: gradients before `gradient` are summed at `end` when they are in `groups` groups, the last of which begins at
 * the one of `from`. */
typedef struct best_end {
    int from, groups;
    double end;
} best_end;

static bool better(double end, int groups, const best_end *than)
{
    return end < than->end || (end == than->end && groups < than->groups);
}

static halo_status group_auto(halo_context *ctx, const hl_grouping_spec *s, const hl_gradient *g, int n, hl_group *groups, int *count)
{
    best_end *best;
    HL_TRY(hl_calloc(ctx, (size_t)n + 1, sizeof(*best), "groups of gradients", &best));
    for (int j = 1; j <= n; j++) {
        best[j] = (best_end){.from = -1, .groups = n + 1, .end = INFINITY};
        if (!ends_layer(g, n, j - 1)) continue;
        for (int i = 0; i < j; i++) {
            if (best[i].from < 0) continue;
            double end = fmax(best[i].end, g[j - 1].seconds) + cost_of(&s->cost, s->element, g[j - 1].hi - g[i].lo);
            if (better(end, best[i].groups + 1, &best[j])) best[j] = (best_end){i, best[i].groups + 1, end};
        }
    }
    *count = best[n].groups;
    for (int k = *count, j = n; k > 0; j = best[j].from) groups[--k] = (hl_group){best[j].from, j};
    free(best);
    return HALO_OK;
}

static int find_layer(const hl_gradient *g, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(g[i].layer, name) == 0 && ends_layer(g, n, i)) return i;
    return -1;
}

static halo_status group_layers(halo_context *ctx, const hl_grouping_spec *s, const hl_gradient *g, int n, hl_group *groups, int *count)
{
    for (int k = 0; k < s->layers; k++) {
        int i = find_layer(g, n, s->layer[k]), begin = *count > 0 ? groups[*count - 1].last : 0;
        if (i < 0) return hl_fail(ctx, HALO_ERR_USAGE, "'reduce.group': layer '%s' has no weights to train", s->layer[k]);
        if (i < begin) return hl_fail(ctx, HALO_ERR_USAGE, "'reduce.group': layer '%s' is out of backward order", s->layer[k]);
        close_group(groups, count, i + 1);
    }
    if (*count == 0 || groups[*count - 1].last < n) close_group(groups, count, n);
    return HALO_OK;
}

halo_status hl_group_gradients(halo_context *ctx, const hl_grouping_spec *s, const hl_gradient *g, int n, hl_group *groups, int *out)
{
    int count = 0;
    if (n > 0 && s->kind == HL_GROUP_AUTO) HL_TRY(group_auto(ctx, s, g, n, groups, &count));
    if (n > 0 && s->kind == HL_GROUP_LAYERS) HL_TRY(group_layers(ctx, s, g, n, groups, &count));
    if (s->kind == HL_GROUP_BYTES && s->bytes < 1) return hl_fail(ctx, HALO_ERR_USAGE, "'reduce.group': groups of %" PRId64 " bytes: must be positive", s->bytes);
    for (int i = 0; i < n && (s->kind == HL_GROUP_SINGLE || s->kind == HL_GROUP_PER_LAYER || s->kind == HL_GROUP_BYTES); i++) {
        int begin = count > 0 ? groups[count - 1].last : 0;
        bool full = s->kind == HL_GROUP_PER_LAYER || (s->kind == HL_GROUP_BYTES && (g[i].hi - g[begin].lo) * (int64_t)s->element >= s->bytes);
        if (i + 1 == n || (full && ends_layer(g, n, i))) close_group(groups, &count, i + 1);
    }
    *out = count;
    return HALO_OK;
}

void hl_group_text(const hl_gradient *g, const hl_group *groups, int count, hl_str *out)
{
    for (int k = 0; k + 1 < count; k++) hl_str_addf(out, "%s%s", k > 0 ? ", " : "", g[groups[k].last - 1].layer);
}

/* Minimises sum (1 - (a + b x) / y)^2: linear in a and b with weights 1 / y^2. */
hl_reduce_cost hl_fit_cost(const double *bytes, const double *seconds, int n)
{
    double w = 0, x = 0, xx = 0, y = 0, xy = 0;
    for (int i = 0; i < n; i++) {
        double k = 1 / fmax(seconds[i] * seconds[i], 1e-24);
        w += k;
        x += k * bytes[i];
        xx += k * bytes[i] * bytes[i];
        y += k * seconds[i];
        xy += k * bytes[i] * seconds[i];
    }
    double det = w * xx - x * x;
    hl_reduce_cost c = {0};
    if (!(det > 0)) {
        c.latency = w > 0 ? y / w : 0;
        return c;
    }
    c.seconds_per_byte = (w * xy - x * y) / det;
    if (c.seconds_per_byte < 0) return (hl_reduce_cost){.latency = y / w};
    c.latency = (y - c.seconds_per_byte * x) / w;
    if (c.latency < 0) c = (hl_reduce_cost){.seconds_per_byte = xy / xx};
    return c;
}
