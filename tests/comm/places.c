/* SPDX-License-Identifier: Apache-2.0 */
/* places.c -- launchers, nodes, grids and who sits where: the pure functions. */
#include "comm/launch.h"
#include "comm/nodes.h"
#include "comm/seats.h"
#include "tests/check.h"
#include "tests/tap.h"

/* An environment: "NAME=value" up to NULL. */
static const char *look(void *user, const char *name)
{
    for (const char *const *e = user; *e; e++) {
        size_t n = strlen(name);
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=') return *e + n + 1;
    }
    return NULL;
}

static const struct launch {
    const char *sentence, *env[8];
    int world;
    bool launched, mistake;
    const char *says;
} launches[] = {
    {"a shell", {"HOME=/root", NULL}, 1, false, false, NULL},
    {"a batch script's shell with --ntasks=4", {"SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_NPROCS=4", "SLURM_PROCID=0", NULL}, 1, false, false, NULL},
    {"srun --mpi=pmix -n 4", {"SLURM_STEP_NUM_TASKS=4", "SLURM_NTASKS=4", "PMIX_RANK=2", NULL}, 4, true, false, NULL},
    {"srun -n 4 with a PMIx that MPI cannot talk to", {"SLURM_STEP_NUM_TASKS=4", "PMIX_RANK=2", NULL}, 1, true, true, "srun started 4 tasks"},
    {"srun -n 4 --mpi=none, before MPI_Init", {"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=2", NULL}, 0, true, true, "srun --mpi=pmix"},
    {"srun -n 4 --mpi=none, after MPI_Init", {"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=2", NULL}, 1, true, true, "srun started 4 tasks"},
    {"srun -n 4 --mpi=pmi2 with another MPI", {"SLURM_STEP_NUM_TASKS=4", "PMI_SIZE=4", "PMI_RANK=1", NULL}, 1, true, true, "srun started 4 tasks"},
    {"srun -n 4 --mpi=pmi2 before MPI_Init", {"SLURM_STEP_NUM_TASKS=4", "PMI_SIZE=4", NULL}, 0, true, false, NULL},
    {"srun -n 1", {"SLURM_STEP_NUM_TASKS=1", "SLURM_NTASKS=1", NULL}, 1, false, false, NULL},
    {"srun -n 1 in an allocation of 4", {"SLURM_STEP_NUM_TASKS=1", "SLURM_NTASKS=4", "PMIX_RANK=0", NULL}, 1, true, false, NULL},
    {"mpiexec -n 3", {"OMPI_COMM_WORLD_SIZE=3", "PMIX_RANK=1", NULL}, 3, true, false, NULL},
    {"mpiexec -n 3 of another MPI", {"OMPI_COMM_WORLD_SIZE=3", NULL}, 1, true, true, "the mpiexec of the MPI that halo was built with"},
    {"mpiexec -n 4 over srun-started daemons", {"OMPI_COMM_WORLD_SIZE=4", "SLURM_STEP_NUM_TASKS=2", NULL}, 4, true, false, NULL},
    {"mpiexec -n 1 over srun-started daemons", {"OMPI_COMM_WORLD_SIZE=1", "SLURM_STEP_NUM_TASKS=2", NULL}, 1, true, false, NULL},
    {"hydra -n 2", {"PMI_SIZE=2", "PMI_RANK=0", "PMI_FD=9", NULL}, 2, true, false, NULL},
    {"hydra -n 2 of another MPI", {"PMI_SIZE=2", "PMI_RANK=0", NULL}, 1, true, true, "a launcher with PMI started 2"},
    {"nonsense in the variables", {"SLURM_STEP_NUM_TASKS=4x", "PMI_SIZ=3", NULL}, 1, false, false, NULL},
};

static void launchers(void)
{
    for (size_t i = 0; i < HL_COUNT(launches); i++) {
        const struct launch *l = &launches[i];
        char text[256] = "";
        void *env = (void *)(uintptr_t)l->env;
        bool mistake = hl_launch_mistake(look, env, l->world, text, sizeof(text));
        tap_ok(hl_launched(look, env) == l->launched && mistake == l->mistake && (!l->says || strstr(text, l->says)), "%s, world %d: %s", l->sentence, l->world,
               mistake ? text : l->launched ? "launched" : "alone");
    }
}

/* Of a process that does not ask MPI: the launcher's number, the first rank where there is no launcher. */
static void launched_ranks(void)
{
    static const struct {
        const char *env[4];
        long rank;
    } cases[] = {{{"SLURM_PROCID=3", "SLURM_NTASKS=4", NULL}, 0},
                 {{"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=3", NULL}, 3},
                 {{"OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_RANK=1", "SLURM_PROCID=0", NULL}, 1},
                 {{"PMI_RANK=2", "PMI_SIZE=4", NULL}, 2}};
    for (size_t i = 0; i < HL_COUNT(cases); i++) {
        long rank = hl_launched_rank(look, (void *)(uintptr_t)cases[i].env);
        tap_ok(rank == cases[i].rank, "%s ...: rank %ld", cases[i].env[0], rank);
    }
}

static void nodes(void)
{
    const int cyclic[] = {0, 1, 0, 1, 0, 1}, blocked[] = {0, 0, 0, 3, 3, 3}, uneven[] = {0, 1, 1, 0, 1, 5};
    int order[6];
    hl_node_order(cyclic, 6, order);
    const int want[] = {0, 3, 1, 4, 2, 5};
    tap_ok(memcmp(order, want, sizeof(want)) == 0, "ranks dealt to two nodes in turn are put in order");
    hl_node_order(blocked, 6, order);
    bool same = true;
    for (int r = 0; r < 6; r++) same = same && order[r] == r;
    tap_ok(same, "ranks in order stay");
    hl_node_order(uneven, 6, order);
    const int wanted[] = {0, 2, 3, 1, 4, 5};
    tap_ok(memcmp(order, wanted, sizeof(wanted)) == 0, "uneven nodes are put in order");
    hl_node_place p = hl_node_find(cyclic, 6, 3), q = hl_node_find(uneven, 6, 4);
    tap_ok(p.local == 1 && p.locals == 3 && p.node == 1 && p.nodes == 2 && p.node_size == 3, "a rank finds its place on equal nodes");
    tap_ok(q.local == 2 && q.locals == 3 && q.node == 1 && q.nodes == 3 && q.node_size == 0, "and on unequal ones, which have no common size");
}

static void grids(void)
{
    const int part[3] = {2, 1, 3}, bad[3] = {2, 2, 2}, zero[3] = {0, 1, 1}, huge[3] = {65536, 65536, 65536};
    hl_grid g;
    tap_ok(!hl_grid_make(12, 0, bad, &g) && !hl_grid_make(12, 0, zero, &g) && !hl_grid_make(12, 0, huge, &g), "a grid that does not divide the ranks is refused");
    bool good = true;
    for (int r = 0; r < 24; r++) {
        good = good && hl_grid_make(24, r, part, &g) && g.data == 4 && hl_grid_rank(&g, g.at_data, g.at) == r;
        hl_ranks s = hl_grid_spatial(&g), d = hl_grid_data(&g);
        good = good && s.size == 6 && s.stride == 1 && hl_ranks_member(&s, s.index) == r && d.size == 4 && d.stride == 6 && hl_ranks_member(&d, d.index) == r;
    }
    tap_ok(good, "24 ranks as 4 x (2 1 3): every rank finds itself in the grid and in both of its sets");
}

/* ------------------------------------------------------------------------------------------------------- who sits where */

/* On host n<node>, with cores [lo, hi). */
static hl_seat seat(int node, int lo, int hi, int threads)
{
    hl_seat s = {.threads = threads, .cores = hi - lo};
    snprintf(s.host, sizeof(s.host), "n%d", node);
    for (int c = lo; c < hi; c++) s.mask[c / 64] |= UINT64_C(1) << (c % 64);
    return s;
}

static bool text_is(const hl_seat *s, int ranks, const char *want)
{
    hl_str text = {0};
    hl_seats_text(s, ranks, &text);
    bool same = text.s && strcmp(text.s, want) == 0;
    if (!same) tap_note("'%s'", text.s ? text.s : "");
    hl_str_free(&text);
    return same;
}

static void who_sits_where(void)
{
    hl_seat s[512];
    for (int r = 0; r < 512; r++) s[r] = seat(r / 4, r % 4 * 60, r % 4 * 60 + 60, 60);
    tap_ok(text_is(s, 512, "ranks 0-511 on n0 .. n127, 4 on each: 60 threads on cores 0-59, 60 threads on cores 60-119, 60 threads on cores 120-179, 60 threads on cores 180-239"),
           "128 hosts that look the same are one line");
    s[510].threads = 59;
    tap_ok(text_is(s + 504, 8,
                   "ranks 0-3 on n126: 60 threads on cores 0-59, 60 threads on cores 60-119, 60 threads on cores 120-179, 60 threads on cores 180-239\n"
                   "ranks 4-7 on n127: 60 threads on cores 0-59, 60 threads on cores 60-119, 59 threads on cores 120-179, 60 threads on cores 180-239"),
           "a host that differs has a line of its own");
    s[0] = seat(0, 3, 4, 1);
    s[0].mask[15] = UINT64_C(1) << 63;
    s[1] = seat(1, 0, 0, 2);
    tap_ok(text_is(s, 2, "rank 0 on n0: 1 thread on cores 3,1023\nrank 1 on n1: 2 threads on cores any"), "single ranks, the last core of a mask, a mask that is not known");
    s[0] = s[1] = seat(0, 0, 2, 1);
    s[2] = seat(0, 2, 8, 6);
    tap_ok(text_is(s, 2, "ranks 0-1 on n0: 1 thread each on cores 0-1"), "ranks that are not bound");
    tap_ok(text_is(s, 3, "ranks 0-2 on n0: 2 ranks with 1 thread on cores 0-1, 6 threads on cores 2-7"), "some that look the same beside another");
}

static void oddities(void)
{
    char text[512];
    hl_seat s[64];
    for (int r = 0; r < 64; r++) s[r] = seat(r / 4, r % 4 * 16, r % 4 * 16 + 16, 16);
    tap_ok(!hl_seats_overlap(s, 64, text, sizeof(text)) && !hl_seats_crowded(s, 64, text, sizeof(text)), "one rank for each domain of 16 hosts: nothing to say");
    s[42] = seat(10, 15, 17, 2);
    tap_ok(hl_seats_overlap(s, 64, text, sizeof(text)) && strstr(text, "ranks 40 and 42 share core 15 of 'n10'") && !strstr(text, "hosts"), "a core that two ranks share: %s", text);
    s[5] = s[4];
    tap_ok(hl_seats_overlap(s, 64, text, sizeof(text)) && strstr(text, "ranks 4 and 5 share cores 0-15 of 'n1'") && strstr(text, "on 2 hosts"), "two hosts: %s", text);
    s[0] = seat(0, 0, 16, 16);
    s[1] = seat(1, 0, 16, 16);
    tap_ok(!hl_seats_overlap(s, 2, text, sizeof(text)), "the same cores of two hosts are not shared");
    s[0] = seat(0, 0, 1, 8);
    tap_ok(hl_seats_crowded(s, 1, text, sizeof(text)) && strstr(text, "rank 0 has 8 threads for 1 core of 'n0'"), "more threads than cores: %s", text);
    for (int r = 0; r < 3; r++) s[r] = seat(0, 0, 8, 4);
    tap_ok(hl_seats_crowded(s, 3, text, sizeof(text)) && strstr(text, "the 3 ranks on 'n0' have 12 threads for 8 cores"), "unbound ranks together: %s", text);
    tap_ok(!hl_seats_crowded(s, 2, text, sizeof(text)), "8 threads for 8 cores are not too many");
    hl_seat here = hl_seat_here(3);
    tap_ok(here.cores == hl_usable_cores() && here.cores >= 1 && here.threads == 3 && here.host[0], "this process sits on %s with %d cores", here.host, here.cores);
}

int main(void)
{
    who_sits_where();
    oddities();
    launchers();
    launched_ranks();
    nodes();
    grids();
    return tap_done();
}
