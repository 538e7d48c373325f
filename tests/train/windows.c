/* SPDX-License-Identifier: Apache-2.0 */
/* Windows along an axis and their weights: they cover all, overlap as asked, and add up to 1 everywhere; what extents a network halves evenly. */
#include "net/graph.h"
#include "train/shapes.h"
#include "train/windows.h"
#include "tests/tap.h"

typedef struct verdict { bool covers, spread, ones, ends; int64_t most; } verdict;

static verdict look(halo_context *ctx, int64_t n, int64_t p, double overlap)
{
    int64_t *lo, count;
    verdict v = {.covers = true, .spread = true, .ones = true};
    if (hl_windows_along(ctx, n, p, overlap, &lo, &count) != HALO_OK) tap_bail("windows");
    float *u = calloc((size_t)(count * p), sizeof(*u));
    hl_window_weights(count, lo, p, u);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < count; k++)
            if (i >= lo[k] && i < lo[k] + p) sum += (double)u[k * p + i - lo[k]];
        v.covers = v.covers && sum > 0;
        v.ones = v.ones && fabs(sum - 1) <= 1e-6;
    }
    for (int64_t k = 1; k < count; k++) v.spread = v.spread && lo[k] > lo[k - 1] && lo[k] - lo[k - 1] <= hl_max64(1, (int64_t)((double)p * (1 - overlap)));
    v.ends = n <= p ? count == 1 && lo[0] == -((p - n) / 2) : lo[0] == 0 && lo[count - 1] == n - p;
    v.most = count;
    free(lo);
    free(u);
    return v;
}

static void along(halo_context *ctx)
{
    static const double overlaps[] = {0, 0.25, 0.5, 0.9};
    bool covers = true, spread = true, ones = true, ends = true;
    for (int64_t n = 1; n <= 40; n++)
        for (int64_t p = 1; p <= 16; p++)
            for (int k = 0; k < 4; k++) {
                verdict v = look(ctx, n, p, overlaps[k]);
                covers = covers && v.covers, spread = spread && v.spread, ones = ones && v.ones, ends = ends && v.ends;
            }
    tap_ok(covers, "every cell is in a window");
    tap_ok(spread, "neighbours overlap as much as is asked for");
    tap_ok(ends, "the first begins where the volume does and the last ends where it ends; a small volume lies in the middle of one");
    tap_ok(ones, "weights add up to 1 in every cell");
    tap_ok(look(ctx, 128, 64, 0.5).most == 3 && look(ctx, 129, 64, 0.5).most == 4 && look(ctx, 128, 64, 0).most == 2, "there are no more than needed");
}

static void units(halo_context *ctx)
{
    halo_zoo_options o = HALO_ZOO_OPTIONS_INIT;
    struct halo_network *net;
    int64_t unit[3];
    o.extents[0] = o.extents[1] = o.extents[2] = 32;
    o.first_channels = 4;
    if (halo_network_zoo(ctx, "unet3d", &o, &net) != HALO_OK) tap_bail("no network: %s", halo_error_message(ctx));
    hl_network_unit(net, unit);
    tap_ok(unit[0] == 8 && unit[1] == 8 && unit[2] == 8, "a U-Net of 4 levels takes multiples of 8");
    halo_network_destroy(net);
}

int main(void)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    halo_context *ctx;
    if (halo_context_create(&o, &ctx) != HALO_OK) tap_bail("no context");
    along(ctx);
    units(ctx);
    halo_context_destroy(ctx);
    return tap_done();
}
