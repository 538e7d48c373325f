/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocol.c -- orchestration, by properties over random arrivals, delays, stalls and stops on 1 to 64 simulated ranks: no group starts before it is ready
 * everywhere, none starves, all ranks start the same groups in the same order.
 */
#include "base/rng.h"
#include "comm/orchestrate.h"
#include "tests/check.h"
#include "tests/comm/fabric.h"
#include "tests/tap.h"

static uint32_t draw(uint64_t seed, uint64_t i) { return hl_philox(seed, HL_STREAM_TEST, i, 99).v[0]; }

/* A rank of the pure machine: it makes its groups ready in an order of its own, when its turns allow. */
typedef struct player {
    hl_bitvector bits;
    int *order, made;    /* groups in its order, how many are ready */
    int *started, count; /* what it started, in order */
    int sleeping;        /* cycles in which it makes nothing */
} player;

static void shuffle(int *order, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(draw(seed, (uint64_t)i) % (uint32_t)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

typedef struct verdict {
    bool early, starved, differ, flags;
} verdict;

static bool ready_everywhere(const player *p, int ranks, int g)
{
    for (int r = 0; r < ranks; r++) {
        bool has = false;
        for (int i = 0; i < p[r].made; i++) has = has || p[r].order[i] == g;
        if (!has) return false;
    }
    return true;
}

static void cycle(player *p, int ranks, int words, uint64_t *all, uint64_t *one)
{
    memset(all, 0xff, (size_t)words * sizeof(*all));
    for (int r = 0; r < ranks; r++) {
        hl_bitvector_offer(&p[r].bits, one);
        for (int w = 0; w < words; w++) all[w] &= one[w];
    }
    for (int r = 0; r < ranks; r++) hl_bitvector_take(&p[r].bits, all);
}

/* One step of training of the pure machine. */
static void play(int ranks, int groups, uint64_t seed, verdict *v)
{
    player *p = check_alloc(ranks, sizeof(*p));
    for (int r = 0; r < ranks; r++) {
        check_status(NULL, hl_bitvector_create(NULL, groups, &p[r].bits), "bits");
        p[r].order = check_alloc(groups, sizeof(int));
        p[r].started = check_alloc(groups, sizeof(int));
        shuffle(p[r].order, groups, seed * 977 + (uint64_t)r);
    }
    int words = p[0].bits.words, stopper = (int)(draw(seed, 1) % (uint32_t)(ranks + 1)), staller = (int)(draw(seed, 2) % (uint32_t)(ranks + 1));
    uint64_t *all = check_alloc(words, 8), *one = check_alloc(words, 8), turn = 0;
    bool done = false;
    for (int cycles = 0; !done && cycles < 100000; cycles++) {
        for (int r = 0; r < ranks; r++) {
            if (p[r].sleeping == 0 && draw(seed, 1000 + turn++) % 50 == 0) p[r].sleeping = (int)(draw(seed, 1000 + turn++) % 40);
            if (p[r].sleeping > 0) {
                p[r].sleeping--;
                continue;
            }
            for (uint32_t n = draw(seed, 1000 + turn++) % 4; n > 0 && p[r].made < groups; n--) hl_bitvector_ready(&p[r].bits, p[r].order[p[r].made++]);
        }
        bool stop = cycles >= 5 && stopper < ranks, stall = cycles % 7 == 3 && staller < ranks;
        if (stopper < ranks) p[stopper].bits.stop = stop;
        if (staller < ranks) p[staller].bits.stall = stall;
        cycle(p, ranks, words, all, one);
        done = true;
        for (int r = 0; r < ranks; r++) {
            v->flags = v->flags || p[r].bits.any_stop != stop || p[r].bits.any_stall != stall;
            for (int g; (g = hl_bitvector_next(&p[r].bits)) >= 0;) {
                p[r].started[p[r].count++] = g;
                v->early = v->early || !ready_everywhere(p, ranks, g);
            }
            done = done && p[r].count == groups;
        }
        for (int g = 0; g < groups; g++) { /* what is ready everywhere has started */
            bool started = false;
            for (int i = 0; i < p[0].count; i++) started = started || p[0].started[i] == g;
            v->starved = v->starved || (!started && ready_everywhere(p, ranks, g));
        }
    }
    v->starved = v->starved || !done;
    for (int r = 1; r < ranks; r++) v->differ = v->differ || memcmp(p[r].started, p[0].started, (size_t)groups * sizeof(int)) != 0;
    for (int r = 0; r < ranks; r++) {
        hl_bitvector_destroy(&p[r].bits);
        free(p[r].order);
        free(p[r].started);
    }
    free(all);
    free(one);
    free(p);
}

static void pure(void)
{
    static const int groups[] = {1, 3, 61, 62, 63, 64, 65, 130};
    verdict v = {false, false, false, false};
    for (int ranks = 2; ranks <= 64; ranks = ranks < 8 ? ranks + 1 : ranks * 2)
        for (size_t g = 0; g < HL_COUNT(groups); g++) play(ranks, groups[g], (uint64_t)(ranks * 1000 + (int)g), &v);
    tap_ok(!v.early, "bits: no group starts before it is ready everywhere");
    tap_ok(!v.starved, "bits: what is ready everywhere starts in that cycle, and all end");
    tap_ok(!v.differ, "bits: the same order everywhere");
    tap_ok(!v.flags, "bits: one rank's wish to stop or complaint reaches all in one cycle");
}

/* ------------------------------------------------------------------------------------------------ over a transport */

typedef struct rank_state {
    hl_orchestrator *o;
    int *order, *started;
    int made, count, step; /* of this step; steps done */
} rank_state;

typedef struct world {
    int ranks, groups, steps;
    hl_orchestration kind;
    rank_state *r;
    int *log; /* [steps * groups]: what rank 0 started */
    verdict v;
} world;

static void start(world *w, int r, int g)
{
    rank_state *s = &w->r[r];
    for (int q = 0; q < w->ranks; q++) { /* others are in this step and have it, or are in a later one; the static order alone may start earlier */
        bool has = w->r[q].step > s->step;
        for (int i = 0; w->r[q].step == s->step && i < w->r[q].made; i++) has = has || w->r[q].order[i] == g;
        if (!has && w->kind != HL_STATIC) w->v.early = true;
    }
    int *slot = &w->log[s->step * w->groups + s->count];
    if (*slot < 0) *slot = g;
    w->v.differ = w->v.differ || *slot != g;
    s->started[s->count++] = g;
}

static void one_turn(world *w, int r, uint64_t seed, uint64_t turn)
{
    rank_state *s = &w->r[r];
    if (s->step == w->steps) goto advance;
    if (s->made < w->groups && draw(seed, turn) % 6 == 0) {
        int g = s->order[s->made++];
        s->o->ops->ready(s->o, g);
    }
    for (int g; (g = s->o->ops->next(s->o)) >= 0;) start(w, r, g);
    if (s->count == w->groups) {
        s->count = s->made = 0;
        s->step++;
        shuffle(s->order, w->groups, seed + (uint64_t)(s->step * 131 + (w->kind == HL_STATIC ? 0 : r)));
    }
advance:;
    bool moved;
    check_status(NULL, s->o->ops->advance(s->o, &moved), "advance");
}

static verdict over_transport(hl_orchestration kind, int ranks, int groups, uint64_t seed, double *messages)
{
    world w = {.ranks = ranks, .groups = groups, .steps = 4, .kind = kind, .r = check_alloc(ranks, sizeof(rank_state)), .log = check_alloc(4 * groups, sizeof(int))};
    fabric *f = fabric_create(ranks, 5, seed);
    for (int i = 0; i < w.steps * groups; i++) w.log[i] = -1;
    for (int r = 0; r < ranks; r++) {
        check_status(NULL, hl_orchestrator_create(NULL, kind, fabric_rank(f, r), groups, 0, &w.r[r].o), "orchestrator");
        w.r[r].order = check_alloc(groups, sizeof(int));
        w.r[r].started = check_alloc(groups, sizeof(int));
        shuffle(w.r[r].order, groups, seed + (uint64_t)r);
    }
    bool done = false;
    for (uint64_t turn = 0; !done && turn < 20000000; turn++) {
        one_turn(&w, (int)(draw(seed, 2 * turn) % (uint32_t)ranks), seed, 2 * turn + 1);
        done = true;
        for (int r = 0; r < ranks && done; r++) done = w.r[r].step == w.steps && !w.r[r].o->ops->busy(w.r[r].o);
    }
    w.v.starved = !done || fabric_left(f) != 0;
    *messages = (double)fabric_sent(f) / (w.steps * groups);
    for (int r = 0; r < ranks; r++) {
        w.r[r].o->ops->destroy(w.r[r].o);
        free(w.r[r].order);
        free(w.r[r].started);
    }
    free(w.r);
    free(w.log);
    fabric_destroy(f);
    return w.v;
}

int main(void)
{
    pure();
    for (int k = 0; k < HL_ORCHESTRATIONS; k++) {
        static const int ranks[] = {1, 2, 3, 5, 8, 13, 64};
        bool good = true;
        double messages = 0;
        for (size_t i = 0; i < HL_COUNT(ranks); i++)
            for (int groups = 1; groups < 12; groups += 5) {
                verdict v = over_transport((hl_orchestration)k, ranks[i], groups, (uint64_t)(i * 100 + (size_t)groups), &messages);
                good = good && !v.early && !v.starved && !v.differ;
            }
        tap_ok(good, "%s over a transport with delays, 1 to 64 ranks, 4 steps: same order, never early, all start, no message left (%.0f messages a group at 64)",
               hl_orchestration_name((hl_orchestration)k), messages);
    }
    return tap_done();
}
