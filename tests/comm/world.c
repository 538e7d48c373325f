/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c -- a program as a launcher starts it, for launch.test. Arguments: "size" prints the ranks and whether MPI was initialised; "die", "freeze" and "late" make
 * steps of gradients, in the third of which rank 1 kills itself, stops itself or is late with its second group; in "absent" rank 1 does not come to an
 * agreement. A failure ends all ranks.
 */
#include "comm/comm.h"
#include "comm/reducer.h"
#include "halo/halo_mpi.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void say(void *user, halo_log_level level, const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", message);
}

/* Dies, stops, or with no signal sleeps. */
static void suffer(int fate)
{
    if (fate) raise(fate);
    else sleep(10);
}

static halo_status steps(halo_context *ctx, int fate)
{
    static float buffer[1000];
    static const hl_gradient gradient[] = {{"dense1", 0, 400, 0}, {"conv1", 400, 1000, 0}};
    static const hl_group group[] = {{0, 1}, {1, 2}};
    hl_reducer_options o = {.buffer = buffer, .type = HALO_F32, .gradient = gradient, .gradients = 2, .group = group, .groups = 2,
                            .algorithm = HL_RABENSEIFNER, .orchestration = HL_BITVECTOR, .stall = 1};
    hl_reducer *r;
    HL_TRY(hl_reducer_create(ctx, &o, &r));
    for (int step = 0; step < 5; step++) {
        hl_reducer_begin(r);
        hl_reducer_ready(r, 0);
        if (step == 2 && ctx->rank == 1) suffer(fate);
        hl_reducer_ready(r, 1);
        HL_TRY(hl_reducer_finish(r));
    }
    hl_reducer_destroy(r);
    return HALO_OK;
}

static halo_status absent(halo_context *ctx)
{
    hl_comm_stall(ctx, 1);
    HL_TRY(hl_agree(ctx, HALO_OK));
    if (ctx->rank == 1) sleep(10);
    return hl_agree(ctx, HALO_OK);
}

static halo_status act(halo_context *ctx, const char *what)
{
    if (strcmp(what, "size") == 0) return HALO_OK;
    if (strcmp(what, "absent") == 0) return absent(ctx);
    return steps(ctx, strcmp(what, "die") == 0 ? SIGKILL : strcmp(what, "freeze") == 0 ? SIGSTOP : 0);
}

int main(int argc, char **argv)
{
    halo_context_options options = HALO_CONTEXT_OPTIONS_INIT;
    halo_context *ctx;
    options.log = say;
    if (argc != 2) return 2;
    if (hl_world_create(&options, &ctx) != HALO_OK) {
        fprintf(stderr, "%s\n", halo_error_message(NULL));
        return 2;
    }
    int mpi;
    MPI_Initialized(&mpi);
    if (ctx->rank == 0 && strcmp(argv[1], "size") == 0) printf("%d ranks, MPI %s\n", ctx->ranks, mpi ? "initialised" : "untouched");
    if (act(ctx, argv[1]) != HALO_OK) hl_comm_abort(ctx, 4);
    halo_context_destroy(ctx);
    return 0;
}
