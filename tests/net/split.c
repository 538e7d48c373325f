/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c -- networks over a grid of ranks, beside the same network on one rank in every process: losses, predictions and gradients, in double on the reference
 * backend, which must agree to 1e-10 of the largest; or, with `cpu`, in float to 1e-5, or to twice what the one rank's own floats are away from double where
 * that is more (gradients in front of norms over a few cells are small differences of large numbers).
 *
 *     split D H W [cpu] [FIRST LAST]      small networks, then random ones of those seeds
 */
#include "comm/comm.h"
#include "comm/team.h"
#include "halo/halo_mpi.h"
#include "tests/net/random.h"
#include "tests/tap.h"

#include "base/rng.h"

#include <float.h>

static halo_context *ctx;
static halo_device *dev, *exact; /* exact: NULL where dev is */
static hl_team *team;
static bool cpu;

static double tolerance(void) { return cpu ? 1e-5 : 1e-10; }

static hl_compile_options options_for(int64_t batch, bool training, bool split)
{
    hl_compile_options o = small_options(batch);
    o.training = training;
    if (split) o.team = team;
    return o;
}

/* ------------------------------------------------------------------------------------------------------------- parts */

static int64_t modulo(int64_t a, int64_t n) { return ((a % n) + n) % n; }

/* Cells [lo, lo + ext), wrapped, of volumes [count][whole]. */
static float *part_of(const float *from, int64_t count, const int64_t whole[3], const int64_t lo[3], const int64_t ext[3])
{
    float *to = check_alloc(count * ext[0] * ext[1] * ext[2], sizeof(*to)), *at = to;
    for (int64_t c = 0; c < count; c++)
        for (int64_t d = 0; d < ext[0]; d++)
            for (int64_t h = 0; h < ext[1]; h++)
                for (int64_t w = 0; w < ext[2]; w++)
                    *at++ = from[((c * whole[0] + modulo(lo[0] + d, whole[0])) * whole[1] + modulo(lo[1] + h, whole[1])) * whole[2] + modulo(lo[2] + w, whole[2])];
    return to;
}

static float *input_part(const hl_program *p, const small_data *d, int64_t samples)
{
    const int64_t *in = p->net->layer[0].out;
    int64_t lo[3], ext[3];
    hl_program_input_box(p, lo, ext);
    return part_of(d->x, samples * in[0], in + 1, lo, ext);
}

static float *output_part(const hl_program *p, const float *y, int64_t samples)
{
    const int64_t *out = p->net->layer[p->net->layers - 1].out;
    int64_t lo[3], ext[3];
    hl_program_output_box(p, lo, ext);
    return part_of(y, samples * out[0], out + 1, lo, ext);
}

static int64_t output_size(const hl_program *p)
{
    const int64_t *out = p->net->layer[p->net->layers - 1].out;
    int64_t lo[3], ext[3];
    hl_program_output_box(p, lo, ext);
    return out[0] * ext[0] * ext[1] * ext[2];
}

/* ---------------------------------------------------------------------------------------------------------- outcomes */

typedef struct outcome {
    double loss;
    float *prediction; /* [n] of this rank's block */
    int64_t n;
    double *gradient; /* [parameters], one after the other; at[params + 1] */
    int64_t *at;
    int params;
} outcome;

static void outcome_free(outcome *o)
{
    free(o->prediction);
    free(o->gradient);
    free(o->at);
}

static void keep_gradients(hl_model *m, outcome *o)
{
    o->params = m->params;
    o->at = check_alloc(m->params + 1, sizeof(*o->at));
    for (int i = 0; i < m->params; i++) o->at[i + 1] = o->at[i] + (m->param[i].trainable ? m->param[i].count : 0);
    o->gradient = check_alloc(o->at[m->params], sizeof(double));
    for (int i = 0; i < m->params; i++)
        if (m->param[i].trainable) check_status(ctx, hl_model_get(m, i, HL_GRADIENT, o->gradient + o->at[i]), "gradient");
}

/* Two steps alike, then an evaluation with the running statistics that they left. */
static outcome run(hl_model *m, hl_program *train, hl_program *eval, const small_data *d, int64_t samples, bool split)
{
    outcome o = {.n = samples * output_size(eval)};
    hl_batch b = d->batch;
    float *x = input_part(train, d, samples), *y = output_part(train, d->y, samples), *x2 = input_part(eval, d, samples);
    const hl_step_options step = {.lr = 0.1, .seed = 4, .step = 7};
    hl_step_result result;
    b.x = x;
    b.y = y;
    b.weight_sum = (double)samples;
    o.prediction = check_alloc(o.n, sizeof(float));
    for (int twice = 0; twice < 2; twice++) check_status(ctx, hl_program_train(train, &b, &step, &result), m->net->name);
    double sums[2] = {result.loss_sum, result.weight_sum};
    keep_gradients(m, &o);
    if (split) {
        check_status(ctx, hl_comm_sum(ctx, sums, 2), "losses");
        check_status(ctx, hl_comm_sum(ctx, o.gradient, o.at[o.params]), "gradients");
    }
    o.loss = sums[0] / sums[1];
    b.x = x2;
    b.y = NULL;
    check_status(ctx, hl_program_evaluate(eval, &b, o.prediction, NULL), m->net->name);
    free(x2);
    free(x);
    free(y);
    return o;
}

static double largest(const double *a, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(a[i]));
    return most;
}

/* Predictions are float: in double they must be equal but for a last bit. */
static double prediction_error(const outcome *a, const float *b)
{
    double most = 0, error = 0;
    for (int64_t i = 0; i < a->n; i++) {
        most = fmax(most, fabs((double)b[i]));
        error = check_worse(error, fabs((double)a->prediction[i] - (double)b[i]));
    }
    return most > 0 ? error / most : error;
}

/* Each tensor by itself; those that vanish (a bias in front of a norm) beside the largest gradient of the network, of which a float's last bits are no error. */
static double gradient_error(const outcome *a, const outcome *b)
{
    double error = 0, all = largest(b->gradient, b->at[b->params]), bits = cpu ? 2 * (double)FLT_EPSILON * all : 0;
    for (int i = 0; i < a->params; i++) {
        int64_t n = b->at[i + 1] - b->at[i];
        double most = fmax(largest(b->gradient + b->at[i], n), 1e-4 * all);
        for (int64_t k = b->at[i]; k < b->at[i + 1]; k++) {
            double differs = fabs(a->gradient[k] - b->gradient[k]);
            if (!(differs <= bits)) error = check_worse(error, most > 0 ? differs / most : differs);
        }
    }
    return error;
}

/* ------------------------------------------------------------------------------------------------------------ checks */

static void claim(bool holds, const char *name, int64_t batch, const double error[3], const int64_t ext[3])
{
    double x[4] = {holds ? 0 : 1, error[0], error[1], error[2]};
    check_status(ctx, hl_comm_max(ctx, x, 4), "max");
    const int64_t *part = team->grid.part;
    if (ctx->rank == 0)
        tap_ok(x[0] == 0, "%d x %d x %d, %s on %d x %d x %d, batch %d: loss %.1e, prediction %.1e, gradients %.1e", (int)part[0], (int)part[1], (int)part[2], name,
               (int)ext[0], (int)ext[1], (int)ext[2], (int)batch, x[1], x[2], x[3]);
}

/* How far gradients in float are from those in double. */
static double float_error(halo_network *net, const outcome *o, const small_data *d, int64_t batch)
{
    hl_optim_spec sgd = small_sgd();
    hl_model *m;
    hl_program *p[2];
    if (!exact) return 0;
    check_status(ctx, hl_model_create(ctx, exact, net, &sgd, &m), net->name);
    for (int t = 0; t < 2; t++) {
        hl_compile_options options = options_for(batch, t == 0, false);
        check_status(ctx, hl_compile(m, &options, &p[t]), net->name);
    }
    outcome e = run(m, p[0], p[1], d, batch, false);
    double error = gradient_error(o, &e);
    outcome_free(&e);
    hl_program_destroy(p[0]);
    hl_program_destroy(p[1]);
    hl_model_destroy(m);
    return error;
}

/* False: the network cannot be split so. */
static bool check_network(halo_network *net, int64_t batch, uint64_t seed, const char *until, bool print)
{
    hl_optim_spec sgd = small_sgd();
    hl_model *alone, *together;
    hl_program *whole[2], *split[2];
    check_status(ctx, hl_model_create(ctx, dev, net, &sgd, &alone), net->name);
    check_status(ctx, hl_model_create(ctx, dev, net, &sgd, &together), net->name);
    for (int t = 0; t < 2; t++) {
        hl_compile_options o = options_for(batch, t == 0, true);
        o.split_until = until;
        const hl_compile_switches off = {.cut_all = true, .slabs = seed % 3 == 2 ? 1 + (int)(seed % 5) : 0}; /* a third makes anew what it can, in 1 to 5 slabs */
        halo_status st = hl_compile_with(together, &o, off, &split[t]);
        if (st == HALO_ERR_SHAPE && t == 0) {
            hl_model_destroy(alone);
            hl_model_destroy(together);
            return false;
        }
        check_status(ctx, st, net->name);
        o = options_for(batch, t == 0, false);
        check_status(ctx, hl_compile(alone, &o, &whole[t]), net->name);
    }
    if (print && ctx->rank == 0) {
        hl_str text = {0};
        check_status(ctx, hl_program_print(split[0], &text), net->name);
        printf("%s", text.s);
        hl_str_free(&text);
    }
    small_data d = small_fill(net, batch, seed);
    outcome a = run(alone, whole[0], whole[1], &d, batch, false);
    outcome b = run(together, split[0], split[1], &d, batch, true);
    float *mine = output_part(split[1], a.prediction, batch);
    if (print && ctx->rank == 0)
        for (int i = 0; i < a.params; i++) {
            double e = 0, most = 0;
            for (int64_t k = a.at[i]; k < a.at[i + 1]; k++) e = fmax(e, fabs(a.gradient[k] - b.gradient[k])), most = fmax(most, fabs(a.gradient[k]));
            printf("# %s: largest %.3g, differs by %.3g\n", alone->param[i].name, most, e);
        }
    double error[3] = {fabs(a.loss - b.loss) / fabs(a.loss), prediction_error(&b, mine), gradient_error(&b, &a)};
    const double t = tolerance();
    bool holds = error[0] <= t && error[1] <= fmax(t, 2e-7) && error[2] <= fmax(t, 2 * float_error(net, &a, &d, batch));
    claim(holds, net->name, batch, error, net->layer[0].out + 1);
    free(mine);
    outcome_free(&a);
    outcome_free(&b);
    small_free(&d);
    for (int k = 0; k < 2; k++) {
        hl_program_destroy(whole[k]);
        hl_program_destroy(split[k]);
    }
    hl_model_destroy(alone);
    hl_model_destroy(together);
    return true;
}

static void check_small(int64_t batch)
{
    for (const small_network *s = small_networks; s->name; s++) {
        halo_network *net = small_build(ctx, s);
        (void)check_network(net, batch, 5, NULL, false);
        halo_network_destroy(net);
    }
}

int main(int argc, char **argv)
{
    int level;
    const halo_device_options f64 = {.compute = HALO_F64}, f32 = {.threads = 1};
    int64_t part[3] = {argc > 1 ? atoi(argv[1]) : 1, argc > 2 ? atoi(argv[2]) : 1, argc > 3 ? atoi(argv[3]) : 1};
    cpu = argc > 4 && strcmp(argv[4], "cpu") == 0;
    int at = cpu ? 5 : 4, first = argc > at + 1 ? atoi(argv[at]) : 1, last = argc > at + 1 ? atoi(argv[at + 1]) : 20;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    check_status(NULL, halo_mpi_context_create(MPI_COMM_WORLD, NULL, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, cpu ? "cpu" : "ref", cpu ? &f32 : &f64, &dev), "device");
    if (cpu) check_status(ctx, hl_device_open(ctx, "ref", &f64, &exact), "device");
    check_status(ctx, hl_team_create(ctx, part, &team), "team");
    if (argc <= at + 1) check_small(1), check_small(3);
    for (int seed = first; seed <= last; seed++) {
        halo_network *net = seed % 4 == 3 ? random_dense_network(ctx, (uint64_t)seed, 4) : random_network(ctx, (uint64_t)seed, 4);
        int64_t batch = random_below(2) ? 1 : 3;
        const char *until = random_below(3) ? NULL : net->layer[random_below(net->layers)].name; /* where that cannot be split, as far as it goes */
        if (!until || !check_network(net, batch, (uint64_t)seed, until, false)) (void)check_network(net, batch, (uint64_t)seed, NULL, argc > at + 1 && first == last);
        halo_network_destroy(net);
    }
    hl_team_destroy(team);
    dev->ops->close(dev);
    if (exact) exact->ops->close(exact);
    int rank = ctx->rank;
    halo_context_destroy(ctx);
    MPI_Finalize();
    return rank == 0 ? tap_done() : 0;
}
