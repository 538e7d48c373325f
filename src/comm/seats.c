/* SPDX-License-Identifier: Apache-2.0 */
/* seats.c -- see seats.h. */
#include "comm/seats.h"

#include <stdio.h>

hl_seat hl_seat_here(int threads)
{
    hl_seat s = {.threads = threads};
    hl_host_name(s.host, sizeof(s.host));
    s.cores = hl_cores(s.mask);
    return s;
}

/* ------------------------------------------------------------------------------------------------------------- masks */

static bool has(const uint64_t *mask, int c) { return c < 64 * HL_CORE_WORDS && (mask[c / 64] >> (c % 64) & 1); }

static int count(const uint64_t *mask)
{
    int n = 0;
    for (int w = 0; w < HL_CORE_WORDS; w++) n += __builtin_popcountll(mask[w]);
    return n;
}

void hl_cores_text(const uint64_t mask[HL_CORE_WORDS], hl_str *out)
{
    bool any = false;
    for (int c = 0; c < 64 * HL_CORE_WORDS; c++) {
        if (!has(mask, c)) continue;
        int first = c;
        while (has(mask, c + 1)) c++;
        hl_str_addf(out, c > first ? "%s%d-%d" : "%s%d", any ? "," : "", first, c);
        any = true;
    }
    if (!any) hl_str_add(out, "any");
}

/* ------------------------------------------------------------------------------------------------------------- hosts */

/* Ranks from `first` on that sit on its host. */
static int on_host(const hl_seat *seat, int ranks, int first)
{
    int n = 1;
    while (first + n < ranks && strcmp(seat[first + n].host, seat[first].host) == 0) n++;
    return n;
}

static bool same(const hl_seat *a, const hl_seat *b)
{
    return a->threads == b->threads && a->cores == b->cores && memcmp(a->mask, b->mask, sizeof(a->mask)) == 0;
}

/* Does the host that begins at rank b look like the one of n ranks at a? */
static bool alike(const hl_seat *seat, int ranks, int a, int n, int b)
{
    if (b >= ranks || on_host(seat, ranks, b) != n) return false;
    for (int i = 0; i < n; i++)
        if (!same(&seat[a + i], &seat[b + i])) return false;
    return true;
}

/* "8 threads on cores 0-7, 8 threads on cores 8-15", "2 threads each on cores 0-3" or "2 ranks with 1 thread on cores 0-1, 6 threads on cores 2-7" of n ranks. */
static void host_text(const hl_seat *seat, int n, hl_str *out)
{
    for (int i = 0, k; i < n; i += k) {
        for (k = 1; i + k < n && same(&seat[i], &seat[i + k]); k++) continue;
        hl_str_add(out, i > 0 ? ", " : "");
        if (k > 1 && k < n) hl_str_addf(out, "%d ranks with ", k);
        hl_str_addf(out, "%d thread%s%s on core%s ", seat[i].threads, HL_S(seat[i].threads), k > 1 && k == n ? " each" : "", HL_S(count(seat[i].mask)));
        hl_cores_text(seat[i].mask, out);
    }
}

void hl_seats_text(const hl_seat *seat, int ranks, hl_str *out)
{
    for (int r = 0, hosts; r < ranks;) {
        int n = on_host(seat, ranks, r), first = r;
        for (hosts = 0; hosts == 0 || alike(seat, ranks, first, n, r); hosts++) r += n;
        hl_str_addf(out, "%srank%s %d", first > 0 ? "\n" : "", r - first > 1 ? "s" : "", first);
        if (r - first > 1) hl_str_addf(out, "-%d", r - 1);
        hl_str_addf(out, " on %s", seat[first].host);
        if (hosts > 1) hl_str_addf(out, " .. %s, %d on each", seat[r - 1].host, n);
        hl_str_add(out, ": ");
        host_text(seat + first, n, out);
    }
}

void hl_seats_json(const hl_seat *seat, int ranks, hl_json *j)
{
    for (int r = 0, n; r < ranks; r += n) {
        n = on_host(seat, ranks, r);
        hl_json_object(j, NULL);
        hl_json_string(j, "host", seat[r].host);
        hl_json_int(j, "first", r);
        hl_json_int(j, "ranks", n);
        hl_json_array(j, "threads");
        for (int i = 0; i < n; i++) hl_json_int(j, NULL, seat[r + i].threads);
        hl_json_end_array(j);
        hl_json_array(j, "cores");
        for (int i = 0; i < n; i++) {
            hl_str text = {0};
            hl_cores_text(seat[r + i].mask, &text);
            hl_json_string(j, NULL, text.s ? text.s : "");
            hl_str_free(&text);
        }
        hl_json_end_array(j);
        hl_json_end_object(j);
    }
}

/* --------------------------------------------------------------------------------------------------------- what is odd */

/* The first two of n ranks that share cores, which go to `common`. */
static bool meet(const hl_seat *seat, int n, int *a, int *b, uint64_t *common)
{
    uint64_t seen[HL_CORE_WORDS] = {0};
    for (int i = 0; i < n; i++) {
        bool met = false;
        for (int w = 0; w < HL_CORE_WORDS; w++) met = met || (seen[w] & seat[i].mask[w]);
        for (int w = 0; w < HL_CORE_WORDS; w++) seen[w] |= seat[i].mask[w];
        for (int k = 0; met && k < i; k++) {
            for (int w = 0; w < HL_CORE_WORDS; w++) common[w] = seat[k].mask[w] & seat[i].mask[w];
            *a = k;
            *b = i;
            if (count(common) > 0) return true;
        }
    }
    return false;
}

static void more(int hosts, char *text, size_t size)
{
    size_t n = strlen(text);
    if (hosts > 1 && n < size) snprintf(text + n, size - n, "; so it is on %d hosts", hosts);
}

bool hl_seats_overlap(const hl_seat *seat, int ranks, char *text, size_t size)
{
    int hosts = 0;
    for (int r = 0, n; r < ranks; r += n) {
        int a, b;
        uint64_t common[HL_CORE_WORDS];
        n = on_host(seat, ranks, r);
        if (!meet(seat + r, n, &a, &b, common) || hosts++ > 0) continue;
        hl_str cores = {0};
        hl_cores_text(common, &cores);
        snprintf(text, size, "ranks %d and %d share core%s %s of '%s': give each its own ('mpiexec --map-by numa --bind-to numa', 'srun --cpu-bind=cores')", r + a, r + b,
                 HL_S(count(common)), cores.s ? cores.s : "", seat[r].host);
        hl_str_free(&cores);
    }
    if (hosts > 0) more(hosts, text, size);
    return hosts > 0;
}

/* Threads and cores of n ranks of a host; cores 0: not known. */
static void total(const hl_seat *seat, int n, int *threads, int *cores)
{
    uint64_t all[HL_CORE_WORDS] = {0};
    *threads = 0;
    for (int i = 0; i < n; i++) {
        *threads += seat[i].threads;
        for (int w = 0; w < HL_CORE_WORDS; w++) all[w] |= seat[i].mask[w];
    }
    *cores = count(all);
}

bool hl_seats_crowded(const hl_seat *seat, int ranks, char *text, size_t size)
{
    int hosts = 0;
    for (int r = 0, n; r < ranks; r += n) {
        int worst = r, threads, cores;
        n = on_host(seat, ranks, r);
        for (int i = r; i < r + n; i++)
            if (seat[i].threads - seat[i].cores > seat[worst].threads - seat[worst].cores) worst = i;
        total(seat + r, n, &threads, &cores);
        bool alone = seat[worst].threads > seat[worst].cores;
        if ((!alone && (cores == 0 || threads <= cores)) || hosts++ > 0) continue;
        if (alone)
            snprintf(text, size, "rank %d has %d threads for %d core%s of '%s': set 'threads' or OMP_NUM_THREADS, or bind it to more cores", worst, seat[worst].threads,
                     seat[worst].cores, HL_S(seat[worst].cores), seat[r].host);
        else
            snprintf(text, size, "the %d ranks on '%s' have %d threads for %d core%s: set 'threads' or OMP_NUM_THREADS", n, seat[r].host, threads, cores, HL_S(cores));
    }
    if (hosts > 0) more(hosts, text, size);
    return hosts > 0;
}
