/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h -- how this process was started, read from the environment alone, so that MPI_Init is only called where a launcher waits for it (login nodes
 * kill programs that try) and so that a launcher that started P separate programs is noticed. Pure functions of a getter.
 */
#ifndef HL_LAUNCH_H
#define HL_LAUNCH_H

#include "base/base.h"

/* The value of an environment variable, or NULL. */
typedef const char *(*hl_variable)(void *user, const char *name);

/* getenv; user is not used. */
const char *hl_process_variable(void *user, const char *name);

/* Did a launcher of MPI programs start this process? */
bool hl_launched(hl_variable get, void *user);

/* The rank that it gave this process; 0 without a launcher. For programs that do not call MPI_Init. */
long hl_launched_rank(hl_variable get, void *user);

/*
 * What is wrong when MPI says that the world has `world` ranks (0: MPI_Init was not called yet, and Open MPI is what would be called): one sentence with the
 * cure into text, false if nothing is. Compares with OMPI_COMM_WORLD_SIZE, PMI_SIZE, MV2_COMM_WORLD_SIZE, else SLURM_STEP_NUM_TASKS; never with SLURM_NTASKS, which
 * a batch script's shell has too.
 */
bool hl_launch_mistake(hl_variable get, void *user, int world, char *text, size_t size);

#endif
