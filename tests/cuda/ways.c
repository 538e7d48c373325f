/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ways.c -- the ways in which ranks with a device each sum gradients and exchange margins, on as many ranks as the launcher started, two of which count as a node: in the nodes with MPI between
 * them, by MPI from the device's memory, by MPI from the host's. Losses and gradients of each are those of the last one, all ranks hold equal bits, and where only the way of margins differs no bit
 * differs.
 */
#include "halo/halo_mpi.h"
#include "tests/train/outcome.h"

static halo_context *world;

/* And by which way. */
typedef struct trained {
    outcome o;
    bool linked, between, from_device;
    hl_traffic sent;
} trained;

static void claim(bool holds, const char *sentence, double figure) { outcome_claim(world, holds, sentence, figure); }

/* keys: "a=1 b=2". A context of its own: a device keeps the settings with which it was opened. */
static trained train(const char *keys, const char *way)
{
    trained t = {.linked = false};
    char text[1200];
    halo_context *ctx;
    check_status(NULL, halo_mpi_context_create(MPI_COMM_WORLD, NULL, &ctx), "context");
    snprintf(text, sizeof(text),
             "plan=fixed backend=cuda threads=1 batch=4 data.synthetic=true data.samples=16 data.transform=[] train.norm_samples=0 train.validate_every=1000 checkpoint.every=1000 "
             "optimizer.name=sgd optimizer.lr=1e-3 train.steps=3 train.epochs=4 %s %s",
             keys, way);
    hl_run *run = outcome_train(ctx, text, &t.o);
    t.linked = run->links;
    t.between = run->links && run->links->between;
    t.from_device = run->mpi_reaches;
    t.sent = hl_program_counted(run->train);
    hl_run_destroy(run);
    halo_context_destroy(ctx);
    return t;
}

static double losses_apart(const outcome *a, const outcome *b)
{
    double worst = a->losses != b->losses || b->losses == 0 ? INFINITY : 0;
    for (int i = 0; i < b->losses && worst < INFINITY; i++) worst = check_worse(worst, fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]));
    return world->rank == 0 ? worst : 0;
}

static double largest(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* The worst tensor: max |a - b| of it by max |b| of it; of those that are not 0 but for rounding, as biases before norms are. */
static double gradients_apart(const outcome *a, const outcome *b, double tolerance)
{
    const double all = largest(b->gradients, b->n);
    double worst = 0;
    for (int i = 0; i < b->params; i++) {
        const double most = largest(b->gradients + b->at[i], b->at[i + 1] - b->at[i]);
        double apart = 0;
        for (int64_t k = b->at[i]; k < b->at[i + 1]; k++) apart = check_worse(apart, fabs(a->gradients[k] - b->gradients[k]));
        if (most > tolerance * all) worst = check_worse(worst, apart / most);
    }
    return worst;
}

/* In the nodes, and over all, beside by way of the host. */
static void sums(const char *what, const char *keys, double tolerance)
{
    char sentence[256];
    trained host = train(keys, "cuda.nccl=no cuda.mpi=host"), node = train(keys, "cuda.nccl=node cuda.mpi=host");
    double loss = losses_apart(&node.o, &host.o), gradient = gradients_apart(&node.o, &host.o, tolerance);
    snprintf(sentence, sizeof(sentence), "%s: summed in the nodes and between them, losses are those by way of the host", what);
    claim(node.between && !host.linked && loss <= tolerance, sentence, loss);
    snprintf(sentence, sizeof(sentence), "%s: so are gradients", what);
    claim(gradient <= 10 * tolerance, sentence, gradient);
    snprintf(sentence, sizeof(sentence), "%s: and parameters and gradients are equal on all ranks", what);
    claim(outcome_everywhere(world, node.o.parameters, node.o.n) && outcome_everywhere(world, node.o.gradients, node.o.n), sentence, (double)node.o.n);
    outcome_done(&host.o);
    outcome_done(&node.o);
}

/* Margins by MPI, from the device's memory and from the host's; these libraries are the same ones, so that bits are. */
static void margins(const char *what, const char *keys)
{
    char sentence[256];
    trained host = train(keys, "cuda.nccl=no cuda.mpi=host"), device = train(keys, "cuda.nccl=no cuda.mpi=auto");
    snprintf(sentence, sizeof(sentence), "%s: margins that MPI takes from the device's memory give the bits of those by way of the host", what);
    claim(outcome_equal(&device.o, &host.o) && losses_apart(&device.o, &host.o) == 0, sentence, (double)device.o.n);
    snprintf(sentence, sizeof(sentence), "%s: and these were the ways", what);
    claim(device.from_device && !host.from_device, sentence, device.from_device);
    const hl_traffic *a = &device.sent, *b = &host.sent;
    snprintf(sentence, sizeof(sentence), "%s: and as many bytes are sent", what);
    claim(a->halo_bytes[0] == b->halo_bytes[0] && a->halo_bytes[1] == b->halo_bytes[1] && a->halo_messages == b->halo_messages && a->gather_bytes == b->gather_bytes && a->halo_bytes[0] > 0,
          sentence, (double)a->halo_bytes[0]);
    outcome_done(&host.o);
    outcome_done(&device.o);
}

int main(int argc, char **argv)
{
    int level;
    const bool aware = argc > 2 && strcmp(argv[2], "aware") == 0, funneled = argc > 2 && strcmp(argv[2], "funneled") == 0;
    char keys[400];
    const char *network = argc > 1 ? argv[1] : "";
    MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &level);
    check_status(NULL, halo_mpi_context_create(MPI_COMM_WORLD, NULL, &world), "context");
    static const struct {
        const char *what, *keys;
        double tolerance;
    } all[] = {
        {"samples on two ranks, clipped", "parallel.spatial=[2,1,1] optimizer.clip_norm=1 reduce.orchestration=bitvector reduce.group=per-layer", 1e-6},
        {"one group", "reduce.group=single reduce.algorithm=mpi", 1e-6},
        {"a group per layer", "reduce.group=per-layer reduce.algorithm=ring", 1e-6},
        {"f16 with a scaled loss, accumulated", "precision=f16 optimizer.loss_scale_start=256 batch=8 train.accumulate=2", 3e-3},
        {"bf16 between nodes", "reduce.wire=bf16 reduce.group=per-layer", 1e-2},
    };
    for (size_t i = 0; i < (funneled ? 1 : HL_COUNT(all)) && !aware; i++) {
        snprintf(keys, sizeof(keys), "network=%s %s", network, all[i].keys);
        sums(all[i].what, keys, all[i].tolerance);
    }
    static const struct {
        const char *what, *keys;
    } split[] = {
        {"cut along two axes", "parallel.spatial=[2,2,1]"},
        {"channels last", "parallel.spatial=[1,2,1] precision=bf16"},
    };
    for (size_t i = 0; i < HL_COUNT(split) && aware; i++) {
        snprintf(keys, sizeof(keys), "network=%s %s", network, split[i].keys);
        margins(split[i].what, keys);
    }
    int rank = world->rank;
    halo_context_destroy(world);
    MPI_Finalize();
    return rank == 0 ? tap_done() : 0;
}
