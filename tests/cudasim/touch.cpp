/* SPDX-License-Identifier: Apache-2.0 */
/*
 * touch.cpp -- whether two operations touch a common byte. A touch is a range, or a strided box inside a
 * range: the interior of a tensor whose margins another stream fills overlaps those margins as a range and
 * not as a box. Ranges are compared first; only where they overlap are the boxes written out as sorted runs
 * of bytes and merged, which costs one step for each row.
 */
#include "sim.hpp"
#include <algorithm>

namespace sim {

static const int64_t most_runs = 1 << 20; /* beyond this a box counts as its whole range */

Touch span(const void *p, size_t bytes, bool write)
{
    return {p, bytes, write, {}, 1};
}

/* extent and stride in elements of `item` bytes; dimensions of extent 1 and those that continue the run are
 * folded away */
Touch strided(const void *p, int rank, const int64_t *extent, const int64_t *stride, int64_t item, bool write)
{
    Touch t{p, (size_t)item, write, {}, item};
    std::vector<std::pair<int64_t, int64_t>> dims; /* (stride in bytes, extent) */
    for (int i = 0; i < rank; i++) {
        if (extent[i] <= 0) return {p, 0, write, {}, 1};
        t.bytes += (size_t)((extent[i] - 1) * stride[i] * item);
        if (extent[i] > 1) dims.push_back({stride[i] * item, extent[i]});
    }
    std::sort(dims.begin(), dims.end());
    for (auto &d : dims) {
        if (t.box.empty() && d.first == t.item)
            t.item *= d.second;
        else
            t.box.push_back({d.second, d.first});
    }
    return t;
}

using Runs = std::vector<std::pair<const char *, const char *>>;

static Runs runs_of(const Touch &t)
{
    Runs runs;
    const char *p = (const char *)t.p;
    int64_t count = 1;
    for (auto &d : t.box) count *= d.first;
    if (t.box.empty() || count > most_runs) return {{p, p + t.bytes}};
    runs.reserve((size_t)count);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at = 0;
        for (auto &d : t.box) {
            at += rest % d.first * d.second;
            rest /= d.first;
        }
        runs.push_back({p + at, p + at + t.item});
    }
    std::sort(runs.begin(), runs.end());
    return runs;
}

bool overlap(const Touch &a, const Touch &b)
{
    const char *pa = (const char *)a.p, *pb = (const char *)b.p;
    if (pa >= pb + b.bytes || pb >= pa + a.bytes) return false;
    if (a.box.empty() && b.box.empty()) return true;
    Runs ra = runs_of(a), rb = runs_of(b);
    for (size_t i = 0, j = 0; i < ra.size() && j < rb.size();) {
        if (ra[i].first < rb[j].second && rb[j].first < ra[i].second) return true;
        if (ra[i].second <= rb[j].second)
            i++;
        else
            j++;
    }
    return false;
}

} // namespace sim
