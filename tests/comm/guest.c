/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest.c LEVEL -- halo as the guest of an MPI program on 3 ranks, by public calls alone: before MPI_Init, with MPI begun at any thread level, on the
 * host's own communicator given as Fortran's handle, and after MPI_Finalize. A network trains at each of these times, and its losses are the same.
 *
 * LEVEL: init (plain MPI_Init), single, funneled, serialized or multiple.
 */
#include <halo/halo_mpi.h>

#include "tests/tap.h"

#include <math.h>
#include <string.h>

enum { SIDE = 6, CELLS = SIDE * SIDE * SIDE, BATCH = 2, STEPS = 3, TAG = 77 };

/* Of the host's rank 0. */
static int host_rank;

static void claim(bool holds, const char *sentence)
{
    int mine = holds, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (host_rank == 0) tap_ok(all, "%s", sentence);
}

static bool train_on(halo_context *ctx, const halo_network *net, double loss[STEPS])
{
    static float x[BATCH * CELLS], y[BATCH * CELLS];
    halo_trainer_options o = HALO_TRAINER_OPTIONS_INIT;
    halo_trainer *t = NULL;
    for (int i = 0; i < BATCH * CELLS; i++) x[i] = (float)sin(0.7 * i), y[i] = (float)cos(0.3 * i);
    o.batch = BATCH;
    o.lr = 1e-2;
    bool good = halo_trainer_create(ctx, net, &o, &t) == HALO_OK;
    for (int i = 0; i < STEPS && good; i++) good = halo_trainer_step(t, x, y, 0, &loss[i]) == HALO_OK;
    halo_trainer_destroy(t);
    return good;
}

/* The losses of a few steps in this context. */
static bool train(halo_context *ctx, double loss[STEPS])
{
    static const char text[] = "name: map\ninput: {channels: 1, size: 6}\nlayers:\n  - conv: {filters: 4, padding: same}\n  - tanh\n  - conv: {filters: 1, kernel: 1}\n";
    halo_network *net = NULL;
    if (halo_network_parse(ctx, "map.yaml", text, sizeof(text) - 1, 0, NULL, &net) != HALO_OK) return false;
    bool good = train_on(ctx, net, loss);
    halo_network_destroy(net);
    return good;
}

static bool alone(double loss[STEPS])
{
    halo_context *ctx = NULL;
    bool good = halo_context_create(NULL, &ctx) == HALO_OK && train(ctx, loss);
    halo_context_destroy(ctx);
    return good;
}

static bool near(const double *a, const double *b)
{
    bool good = true;
    for (int i = 0; i < STEPS; i++) good = good && fabs(a[i] - b[i]) <= 1e-6 * fabs(b[i]);
    return good;
}

static bool refused(void)
{
    halo_context *ctx = NULL;
    return halo_mpi_context_create(MPI_COMM_WORLD, NULL, &ctx) == HALO_ERR_USAGE && strcmp(halo_error_message(NULL), "MPI is not initialised") == 0;
}

static void begin(int *argc, char ***argv)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {{"single", MPI_THREAD_SINGLE}, {"funneled", MPI_THREAD_FUNNELED}, {"serialized", MPI_THREAD_SERIALIZED}, {"multiple", MPI_THREAD_MULTIPLE}};
    const char *want = *argc > 1 ? (*argv)[1] : "init";
    int got;
    if (strcmp(want, "init") == 0) MPI_Init(argc, argv);
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (strcmp(want, levels[i].name) == 0) MPI_Init_thread(argc, argv, levels[i].level, &got);
}

/* The host's ranks 2 and 0, in this order, and 1 by itself; a message of the host's own is under way while halo works. */
static void on_communicator(const double *want)
{
    MPI_Comm part;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    halo_context *ctx = NULL;
    double loss[STEPS] = {0}, got = -1, sent = 100 + host_rank;
    int rank, ranks, size, me;
    MPI_Comm_split(MPI_COMM_WORLD, host_rank % 2, -host_rank, &part);
    MPI_Comm_size(part, &size);
    MPI_Comm_rank(part, &me);
    if (size > 1) MPI_Irecv(&got, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, part, &request);
    bool made = halo_mpi_context_create_f(MPI_Comm_c2f(part), NULL, &ctx) == HALO_OK;
    claim(made, "a context is made of Fortran's handle of a part of the ranks");
    halo_mpi_rank(ctx, &rank, &ranks);
    claim(ranks == size && rank >= 0 && rank < size, "it has the ranks of that part");
    claim(train(ctx, loss), "it trains");
    claim(near(loss, want), "with the losses of one rank alone");
    if (size > 1) {
        MPI_Send(&sent, 1, MPI_DOUBLE, 1 - me, TAG, part);
        MPI_Wait(&request, &status);
    }
    claim(size == 1 || (status.MPI_TAG == TAG && got == (host_rank == 0 ? 102 : 100)), "and none of its messages met the host's, which waited for any");
    halo_context_destroy(ctx);
    MPI_Comm_free(&part);
}

int main(int argc, char **argv)
{
    double before[STEPS], during[STEPS], after[STEPS];
    bool good = alone(before), told = refused();
    begin(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &host_rank);
    claim(good, "before MPI_Init a context of one rank trains");
    claim(told, "one of several is refused, with the reason");
    claim(alone(during) && near(during, before), "after MPI_Init a context of one rank is still none of MPI's");
    on_communicator(before);
    on_communicator(before);
    MPI_Finalize();
    if (host_rank != 0) return 0;
    tap_ok(refused(), "after MPI_Finalize a context of several ranks is refused");
    tap_ok(alone(after) && near(after, before), "and one of one rank trains");
    return tap_done();
}
