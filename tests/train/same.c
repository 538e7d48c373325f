/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same.c -- training on as many ranks as the launcher started, beside the same training on one rank in rank 0's own process: losses and gradients on the cpu
 * backend in f32; what must be equal on all ranks; and that with the schedules whose additions do not depend on a gradient's place no bit of the parameters
 * depends on groups or orchestration.
 */
#include "halo/halo_mpi.h"
#include "tests/train/outcome.h"

static halo_context *ctx, *alone;

static void claim(bool holds, const char *sentence, double figure) { outcome_claim(ctx, holds, sentence, figure); }

/* keys: "a=1 b=2". */
static outcome train(halo_context *on, const char *keys)
{
    outcome o = {0};
    char text[1024];
    snprintf(text, sizeof(text), "plan=fixed backend=cpu threads=1 size=8 batch=10 data.synthetic=true data.samples=40 data.transform=[] %s", keys);
    hl_run_destroy(outcome_train(on, text, &o));
    return o;
}

/* max |a - b| / |b| of the losses of rank 0; infinite where they are not as many. */
static double losses_apart(const outcome *a, const outcome *b, int steps)
{
    double worst = a->losses < steps || b->losses < steps ? INFINITY : 0;
    for (int i = 0; i < steps && worst < INFINITY; i++) worst = check_worse(worst, fabs(a->loss[i] - b->loss[i]) / fabs(b->loss[i]));
    return worst;
}

/* The worst tensor: max |a - b| of it by max |b| of it. */
static double gradients_apart(const outcome *a, const outcome *b)
{
    double worst = 0;
    for (int i = 0; i < b->params; i++) {
        double apart = 0, most = 0;
        for (int64_t k = b->at[i]; k < b->at[i + 1]; k++) {
            apart = check_worse(apart, fabs(a->gradients[k] - b->gradients[k]));
            most = fmax(most, fabs(b->gradients[k]));
        }
        if (most > 0) worst = check_worse(worst, apart / most);
    }
    return worst;
}

static void single(const char *network)
{
    char one[512], five[512], sentence[256];
    snprintf(one, sizeof(one), "%s optimizer.name=sgd optimizer.lr=1e-3 train.steps=1", network);
    snprintf(five, sizeof(five), "%s optimizer.name=sgd optimizer.lr=1e-3 train.steps=5", network);
    outcome many = train(ctx, one), few = ctx->rank == 0 ? train(alone, one) : (outcome){0};
    double first = ctx->rank == 0 ? losses_apart(&many, &few, 1) : 0, gradients = ctx->rank == 0 ? gradients_apart(&many, &few) : 0;
    snprintf(sentence, sizeof(sentence), "%s: the first loss is that of one rank to 1e-6", network);
    claim(first <= 1e-6, sentence, first);
    snprintf(sentence, sizeof(sentence), "%s: every reduced gradient is that of one rank to 1e-5 of its maximum", network);
    claim(gradients <= 1e-5, sentence, gradients);
    snprintf(sentence, sizeof(sentence), "%s: weights, running statistics and gradients are equal on all ranks", network);
    claim(outcome_everywhere(ctx, many.parameters, many.n) && outcome_everywhere(ctx, many.gradients, many.n), sentence, (double)many.n);
    outcome_done(&many);
    outcome_done(&few);
    many = train(ctx, five);
    if (ctx->rank == 0) few = train(alone, five);
    double later = ctx->rank == 0 ? losses_apart(&many, &few, 5) : 0;
    snprintf(sentence, sizeof(sentence), "%s: the losses of 5 steps are those of one rank to 1e-5", network);
    claim(later <= 1e-5, sentence, later);
    outcome_done(&many);
    outcome_done(&few);
}

/* Parameters after 5 steps of momentum, with these words for the reduction. */
static outcome reduced(const char *words)
{
    char keys[512];
    snprintf(keys, sizeof(keys), "variant=mlperf batch_norm=true optimizer.name=sgd optimizer.lr=1e-3 train.steps=5 %s", words);
    return train(ctx, keys);
}

static void bits(void)
{
    static const char *const algorithms[] = {"rabenseifner", "hierarchical", "mpi", "ring"}, *const orchestrations[] = {"static", "bitvector", "coordinator"},
                      *const groups[] = {"auto", "per-layer", "single", "{bytes: 20000}", "{layers: [fc1]}"};
    outcome first = reduced("reduce.algorithm=rabenseifner reduce.group=single"), again = reduced("reduce.algorithm=rabenseifner reduce.group=single");
    claim(outcome_equal(&first, &again), "the same bits from run to run", 5);
    outcome_done(&again);
    for (int a = 0; a < 4; a++) {
        bool same = true;
        char words[256], sentence[256];
        if (a >= 2 && ctx->ranks != 2) continue;
        int some = a >= 2 ? 2 : 3, kinds = a >= 2 ? 3 : 5;
        for (int o = 0; o < some; o++)
            for (int g = 0; g < kinds; g++) {
                /* the words are parted at spaces */
                const char *group = g == 3 ? "bytes reduce.group.bytes=20000" : g == 4 ? "layers reduce.group.layers=[fc1]" : groups[g];
                snprintf(words, sizeof(words), "reduce.algorithm=%s reduce.orchestration=%s reduce.group=%s", algorithms[a], orchestrations[o], group);
                outcome other = reduced(words);
                if (g == 0 && o == 0 && a != 0 && ctx->ranks != 2) { /* another schedule adds in another order */
                    outcome_done(&first);
                    first = other;
                    continue;
                }
                same = same && outcome_equal(&first, &other);
                outcome_done(&other);
            }
        snprintf(sentence, sizeof(sentence), "%s: no bit of the parameters depends on groups or orchestration%s", algorithms[a],
                 ctx->ranks == 2 ? ", nor on the schedule" : "");
        claim(same, sentence, some * kinds);
    }
    outcome_done(&first);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    check_status(NULL, halo_mpi_context_create(MPI_COMM_WORLD, NULL, &ctx), "context");
    check_status(NULL, halo_context_create(NULL, &alone), "context");
    single("variant=mlperf size=16 batch_norm=true");
    single("variant=mlperf size=16 train.accumulate=2 batch=12 reduce.group=per-layer");
    single("variant=hybrid size=32 batch=5");
    bits();
    int rank = ctx->rank;
    halo_context_destroy(alone);
    halo_context_destroy(ctx);
    MPI_Finalize();
    return rank == 0 ? tap_done() : 0;
}
