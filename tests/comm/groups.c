/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c -- the packing of gradients: rules, and optimality against all partitions. */
#include "base/rng.h"
#include "comm/group.h"
#include "tests/check.h"
#include "tests/tap.h"

enum { MOST = 12 };

static double uniform(uint64_t a, uint64_t b) { return hl_rng_uniform(11, HL_STREAM_TEST, a, b); }

static const char *const names[MOST] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};

/* n gradients; every other layer has two (weights and bias) when `pairs`. */
static void make(hl_gradient *g, int n, bool pairs, uint64_t seed)
{
    int64_t at = 0;
    double t = 0;
    for (int i = 0; i < n; i++) {
        int64_t size = 1 + (int64_t)(1e6 * pow(uniform(seed, (uint64_t)(2 * i)), 3));
        t += uniform(seed, (uint64_t)(2 * i + 1)) * 1e-3;
        g[i] = (hl_gradient){names[pairs ? i / 2 : i], at, at + size, t};
        at += size;
    }
}

static bool covers(const hl_group *groups, int count, int n)
{
    for (int k = 0; k < count; k++)
        if (groups[k].first != (k > 0 ? groups[k - 1].last : 0) || groups[k].last <= groups[k].first) return false;
    return count > 0 && groups[count - 1].last == n;
}

/* The earliest end over all 2^(n-1) partitions, and how few groups reach it. */
static double brute(const hl_gradient *g, int n, hl_reduce_cost cost, int *fewest)
{
    double best = INFINITY;
    for (unsigned cut = 0; cut < 1u << (n - 1); cut++) {
        hl_group groups[MOST];
        int count = 0, begin = 0;
        for (int i = 0; i < n; i++)
            if (i + 1 == n || (cut >> i & 1u)) {
                groups[count++] = (hl_group){begin, i + 1};
                begin = i + 1;
            }
        double end = hl_group_end(g, groups, count, 4, cost);
        if (end < best || (end == best && count < *fewest)) {
            best = end;
            *fewest = count;
        }
    }
    return best;
}

static void optimal(void)
{
    int wrong = 0, cases = 0, different = 0, last = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        hl_gradient g[MOST];
        int n = 1 + (int)(seed % 10), count, fewest = 0;
        make(g, n, false, seed);
        hl_grouping_spec s = {.kind = HL_GROUP_AUTO, .element = 4,
                              .cost = {1e-3 * pow(10, -3 * uniform(seed, 1001)), 1e-9 * pow(10, 2 * uniform(seed, 1002) - 1)}};
        hl_group groups[MOST];
        check_status(NULL, hl_group_gradients(NULL, &s, g, n, groups, &count), "auto");
        double want = brute(g, n, s.cost, &fewest);
        cases++;
        wrong += !(covers(groups, count, n) && hl_group_end(g, groups, count, 4, s.cost) <= want * (1 + 1e-14));
        different += count != last;
        last = count;
    }
    tap_ok(wrong == 0, "auto is as early as the best of all partitions: %d of %d cases wrong", wrong, cases);
    tap_ok(different > 50, "and its number of groups depends on the case: %d changes", different);
}

static int group_with(hl_grouping_spec s, const hl_gradient *g, int n, hl_group *groups)
{
    int count = -1;
    s.element = 4;
    check_status(NULL, hl_group_gradients(NULL, &s, g, n, groups, &count), "grouping");
    return covers(groups, count, n) ? count : -1;
}

static bool whole_layers(const hl_gradient *g, const hl_group *groups, int count)
{
    for (int k = 0; k + 1 < count; k++)
        if (strcmp(g[groups[k].last - 1].layer, g[groups[k].last].layer) == 0) return false;
    return true;
}

static void rules(void)
{
    hl_gradient g[MOST];
    hl_group groups[MOST];
    make(g, MOST, true, 5);
    tap_ok(group_with((hl_grouping_spec){.kind = HL_GROUP_SINGLE}, g, MOST, groups) == 1, "single: one group");
    tap_ok(group_with((hl_grouping_spec){.kind = HL_GROUP_PER_LAYER}, g, MOST, groups) == 6 && whole_layers(g, groups, 6), "per-layer: weights and bias together");
    int count = group_with((hl_grouping_spec){.kind = HL_GROUP_BYTES, .bytes = 600000}, g, MOST, groups);
    bool full = count > 1 && whole_layers(g, groups, count);
    for (int k = 0; k + 1 < count; k++) full = full && (g[groups[k].last - 1].hi - g[groups[k].first].lo) * 4 >= 600000;
    tap_ok(full, "bytes: %d groups, each but the last of at least n bytes, no layer cut", count);
    count = group_with((hl_grouping_spec){.kind = HL_GROUP_AUTO, .cost = {1e-6, 1e-10}}, g, MOST, groups);
    tap_ok(count > 1 && whole_layers(g, groups, count), "auto cuts no layer: %d groups", count);
    tap_ok(group_with((hl_grouping_spec){.kind = HL_GROUP_AUTO, .cost = {1, 0}}, g, MOST, groups) == 1, "auto: when messages are dear there is one group");
    const char *list[] = {"b", "d"}, *unordered[] = {"d", "b"}, *unknown[] = {"z"};
    count = group_with((hl_grouping_spec){.kind = HL_GROUP_LAYERS, .layers = 2, .layer = list}, g, MOST, groups);
    tap_ok(count == 3 && groups[0].last == 4 && groups[1].last == 8, "layers: groups end behind the named layers");
    hl_str text = {0};
    hl_group_text(g, groups, count, &text);
    tap_ok(strcmp(text.s, "b, d") == 0, "and are written as such a list: %s", text.s);
    hl_str_free(&text);
    hl_grouping_spec s = {.kind = HL_GROUP_LAYERS, .layers = 2, .layer = unordered, .element = 4};
    tap_ok(hl_group_gradients(NULL, &s, g, MOST, groups, &count) == HALO_ERR_USAGE, "layers out of order: %s", halo_error_message(NULL));
    s.layer = unknown;
    s.layers = 1;
    tap_ok(hl_group_gradients(NULL, &s, g, MOST, groups, &count) == HALO_ERR_USAGE && strstr(halo_error_message(NULL), "'reduce.group': layer 'z'"), "an unknown layer: %s",
           halo_error_message(NULL));
    s = (hl_grouping_spec){.kind = HL_GROUP_BYTES, .element = 4};
    tap_ok(hl_group_gradients(NULL, &s, g, MOST, groups, &count) == HALO_ERR_USAGE, "groups of no bytes are refused");
    s.kind = HL_GROUP_AUTO;
    tap_ok(hl_group_gradients(NULL, &s, g, 0, groups, &count) == HALO_OK && count == 0, "no gradients make no groups");
}

static void fits(void)
{
    double x[] = {1e3, 1e5, 1e6, 3e7}, y[4];
    for (int i = 0; i < 4; i++) y[i] = 40e-6 + 2e-10 * x[i];
    hl_reduce_cost c = hl_fit_cost(x, y, 4);
    tap_ok(fabs(c.latency / 40e-6 - 1) <= 1e-9 && fabs(c.seconds_per_byte / 2e-10 - 1) <= 1e-9, "the fit finds the line it was given: %.3g s, %.3g s/byte",
           c.latency, c.seconds_per_byte);
    double falling[] = {3, 2, 1, 0.5};
    c = hl_fit_cost(x, falling, 4);
    tap_ok(c.latency >= 0 && c.seconds_per_byte >= 0, "and never gives a negative cost");
}

int main(void)
{
    optimal();
    rules();
    fits();
    return tap_done();
}
