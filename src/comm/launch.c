/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c -- see launch.h. */
#include "comm/launch.h"

#include <stdio.h>

/* Set for each rank by the launchers we know; some say only the rank. */
static const char *const marks[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD", "MV2_COMM_WORLD_SIZE", "PALS_RANKID",
                                    "JSM_NAMESPACE_RANK", "ALPS_APP_PE"};

static const struct {
    const char *name, *launcher;
} sizes[] = {{"OMPI_COMM_WORLD_SIZE", "the mpiexec of Open MPI"}, {"PMI_SIZE", "a launcher with PMI"}, {"MV2_COMM_WORLD_SIZE", "the launcher of MVAPICH"}};

const char *hl_process_variable(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

/* A positive number, else 0. */
static long number(hl_variable get, void *user, const char *name)
{
    const char *text = get(user, name);
    char *end;
    if (!text || !*text) return 0;
    long n = strtol(text, &end, 10);
    return *end == 0 && n > 0 ? n : 0;
}

static bool marked(hl_variable get, void *user)
{
    for (size_t i = 0; i < HL_COUNT(marks); i++)
        if (get(user, marks[i])) return true;
    return false;
}

bool hl_launched(hl_variable get, void *user) { return marked(get, user) || number(get, user, "SLURM_STEP_NUM_TASKS") > 1; }

long hl_launched_rank(hl_variable get, void *user)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "JSM_NAMESPACE_RANK",
                                        "ALPS_APP_PE", "SLURM_PROCID"};
    if (!hl_launched(get, user)) return 0;
    for (size_t i = 0; i < HL_COUNT(names); i++)
        if (get(user, names[i])) return strtol(get(user, names[i]), NULL, 10);
    return 0;
}

static bool srun_mistake(long tasks, char *text, size_t size)
{
    snprintf(text, size,
             "srun started %ld tasks, but each of them is a world of one rank: use 'srun --mpi=pmix' ('srun --mpi=list' shows what there is) or mpiexec", tasks);
    return true;
}

bool hl_launch_mistake(hl_variable get, void *user, int world, char *text, size_t size)
{
    long tasks = number(get, user, "SLURM_STEP_NUM_TASKS");
    if (world == 0) return tasks > 1 && !marked(get, user) && srun_mistake(tasks, text, size);
    const char *launcher = NULL;
    long said = 0;
    for (size_t i = 0; i < HL_COUNT(sizes); i++) {
        long n = number(get, user, sizes[i].name);
        if (n == world) return false;
        if (n > 0 && !launcher) {
            launcher = sizes[i].launcher;
            said = n;
        }
    }
    if (world > 1) return false;
    if (tasks > 1 && (!launcher || said == tasks)) return srun_mistake(tasks, text, size);
    if (!launcher) return false;
    snprintf(text, size, "%s started %ld processes, but each of them is a world of one rank: use the mpiexec of the MPI that halo was built with", launcher, said);
    return true;
}
