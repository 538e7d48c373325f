/* SPDX-License-Identifier: Apache-2.0 */
/* halo doctor: what this machine and this build offer, and what is odd about them. Never starts MPI. */
#include "cli/commands.h"
#include "cli/progress.h"
#include "backend/backend.h"
#include "base/context.h"
#include "base/topology.h"
#include "comm/comm.h"

static void machine(hl_invocation *inv, hl_str *t, hl_json *j)
{
    char host[256], memory[32];
    hl_host_name(host, sizeof(host));
    hl_bytes_text((double)hl_memory_limit(), memory, sizeof(memory));
    hl_str_addf(t, "machine   %s, %d cores allowed to this process, %s memory\n", host, hl_usable_cores(), memory);
    hl_json_string(j, "host", host);
    hl_json_int(j, "cores", hl_usable_cores());
    hl_json_int(j, "memory_bytes", (int64_t)hl_memory_limit());
    hl_json_int(j, "threads", inv->ctx->threads);
}

static void backend(hl_invocation *inv, const halo_backend *b, hl_str *t, hl_json *j)
{
    halo_device *dev;
    halo_device_info info = {0};
    hl_json_object(j, NULL);
    hl_json_string(j, "name", b->name);
    halo_device_options o = {0};
    halo_log_fn log = inv->ctx->log;
    inv->ctx->log = NULL; /* what does not work is part of the report */
    bool works = hl_device_open(inv->ctx, b->name, &o, &dev) == HALO_OK;
    inv->ctx->log = log;
    hl_json_bool(j, "works", works);
    if (works) {
        dev->ops->describe(dev, &info);
        hl_str_addf(t, "backend   %-5s %s%s%s\n", b->name, info.name, *info.details ? "; " : "", info.details);
        hl_json_string(j, "device", info.name);
        hl_json_string(j, "details", info.details);
        if (*info.placement) {
            hl_str_addf(t, "          computing: %s\n", info.placement);
            hl_json_string(j, "placement", info.placement);
        }
        dev->ops->close(dev);
    } else {
        hl_str_addf(t, "backend   %-5s does not work here: %s\n", b->name, halo_error_message(inv->ctx));
        hl_json_string(j, "reason", halo_error_message(inv->ctx));
    }
    hl_json_end_object(j);
}

/* Asked before it is started: some MPIs know only afterwards. */
static void mpi(hl_str *t, hl_json *j)
{
    static const char *const words[] = {"cannot be asked whether it takes addresses of CUDA's device memory", "says that it takes no addresses of CUDA's device memory",
                                        "takes addresses of CUDA's device memory"};
    char library[256];
    const int cuda = hl_comm_says_cuda();
    hl_comm_library(library, sizeof(library));
    hl_str_addf(t, "mpi       %s; %s\n", library, words[cuda + 1]);
    hl_json_string(j, "mpi", library);
    if (cuda >= 0) hl_json_bool(j, "mpi_cuda", cuda == 1);
}

/* The threads beside those that compute are never bound: they run for moments, on whatever core has one to spare. */
static void helpers(hl_str *t, hl_json *j)
{
    int cores = hl_usable_cores();
    hl_str_addf(t, "threads   beside these: reading ahead: 1 where there is data, summing gradients: 1 where there are several ranks; free to move over %d core%s\n", cores,
                HL_S(cores));
    hl_json_string(j, "helper_threads", "one reads ahead where there is data, one sums gradients where there are several ranks; neither is bound");
}

static void advice(hl_str *t, hl_json *j)
{
    const char *omp = getenv("OMP_NUM_THREADS"), *blas = getenv("OPENBLAS_NUM_THREADS");
    hl_json_array(j, "advice");
    if (omp && strtol(omp, NULL, 10) > hl_usable_cores()) {
        hl_str_addf(t, "advice    OMP_NUM_THREADS is %s, but only %d cores are allowed to this process\n", omp, hl_usable_cores());
        hl_json_string(j, NULL, "OMP_NUM_THREADS is above the cores allowed to this process");
    }
    if (blas && omp && strcmp(blas, omp) != 0) {
        hl_str_addf(t, "advice    OPENBLAS_NUM_THREADS (%s) differs from OMP_NUM_THREADS (%s)\n", blas, omp);
        hl_json_string(j, NULL, "OPENBLAS_NUM_THREADS differs from OMP_NUM_THREADS");
    }
    hl_json_end_array(j);
}

static int doctor(hl_invocation *inv)
{
    hl_str t = {0};
    hl_json j = {0};
    hl_str_addf(&t, "halo      %s\n          %s\n", halo_version(), halo_version_details());
    hl_json_object(&j, NULL);
    hl_json_string(&j, "version", halo_version());
    hl_json_string(&j, "build", halo_version_details());
    machine(inv, &t, &j);
    hl_json_array(&j, "backends");
    for (const halo_backend *const *b = hl_backends(); *b; b++) backend(inv, *b, &t, &j);
    hl_json_end_array(&j);
    helpers(&t, &j);
    mpi(&t, &j);
    advice(&t, &j);
    hl_json_end_object(&j);
    int rc = inv->json ? hl_print_json(inv, &j) : hl_print(inv, &t);
    hl_str_free(&t);
    hl_json_free(&j);
    return rc;
}

const hl_command hl_command_doctor = {
    .name = "doctor",
    .synopsis = "",
    .summary = "say what this machine and this build offer",
    .details = "Prints the version and libraries of this build, cores and memory allowed to this process, each backend and whether it works here, whether MPI takes a GPU's memory, and "
               "advice where settings disagree.",
    .most = 0,
    .json = true,
    .run = doctor,
};
