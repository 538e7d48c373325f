/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance.c -- every operation of every backend of this build against the reference in double: random shapes, boxes, margins and layouts,
 * every implementation that offers itself, with several instruction sets and thread counts.
 *
 * HALO_TRIALS is the number of random operations per kind; HALO_SUBJECT the only backend to try. `conformance.test KIND` runs one kind; `conformance.test KIND SEED` one of its operations,
 * and prints its description.
 */
#include "dress.h"

#include "tests/check.h"
#include "tests/tap.h"

typedef struct subject {
    char name[64];
    halo_device *dev;
    halo_dtype grain; /* 16-bit activations, or none */
    double tolerance;
    bool all_layouts; /* more than it lists */
    int turn, turns;  /* takes every turns-th trial: thread counts share the work */
} subject;

enum { MAX_SUBJECTS = 24, MAX_IMPLS = 24, NOTES = 3 };

/* What one kind did on one subject. */
typedef struct tally {
    int runs, failed, declined;
    double worst;
    struct { char impl[48]; int runs; } by[MAX_IMPLS];
} tally;

static void count_impl(tally *y, const char *impl)
{
    for (int i = 0; i < MAX_IMPLS; i++) {
        if (!y->by[i].runs) snprintf(y->by[i].impl, sizeof(y->by[i].impl), "%.47s", impl);
        if (strcmp(y->by[i].impl, impl) != 0) continue;
        y->by[i].runs++;
        return;
    }
}

static bool depends_on_layout(const trial *t)
{
    for (int i = 0; i < HALO_ROLES; i++)
        if (t->t[i].dress == DRESS_PROGRAM || t->t[i].dress == DRESS_AUX) return true;
    return false;
}

/* Winograd's convolutions promise less or more than others (winograd.c). */
static double tolerance_of(const subject *s, const halo_candidate *c)
{
    return strncmp(c->impl, "winograd-f4", 11) == 0 ? 2e-4 : strncmp(c->impl, "winograd-f2", 11) == 0 ? 2e-6 : s->tolerance;
}

static void run_layout(const subject *s, const trial *t, halo_layout layout, halo_device *oracle, tally *y, bool loud)
{
    dressed x;
    halo_candidate c[HALO_MAX_CANDIDATES];
    dress_up(&x, t, s->dev, layout, oracle, s->tolerance);
    int n = hl_op_candidates(s->dev, &x.d, c);
    if (n == 0) y->declined++;
    if (n == 0 && loud) dress_print(&x, NULL);
    for (int i = 0; i < n; i++) {
        x.why[0] = 0;
        x.worst = 0;
        x.tolerance = tolerance_of(s, &c[i]);
        bool good = dress_run(&x, &c[i], t->seed % 4 == 0 ? 2 : 1);
        y->runs++;
        count_impl(y, c[i].impl);
        y->worst = fmax(y->worst, x.worst);
        if (!good && y->failed++ < NOTES) tap_note("%s", s->name);
        if (loud || (!good && y->failed <= NOTES)) dress_print(&x, &c[i]);
    }
    dress_off(&x);
}

static void run_trial(const subject *s, const trial *t, halo_device *oracle, tally *y, bool loud)
{
    static const halo_layout all[] = {HALO_NCDHW, HALO_NDHWC, HALO_NCDHW8C, HALO_NCDHW16C, HALO_LAYOUTS};
    const halo_layout *layouts = s->all_layouts ? all : s->dev->layouts;
    for (int i = 0; layouts[i] != HALO_LAYOUTS; i++) {
        run_layout(s, t, layouts[i], oracle, y, loud);
        if (!depends_on_layout(t)) break;
    }
}

static void report(const subject *s, halo_op_kind kind, const tally *y)
{
    if (!s->dev->classes[kind]) {
        tap_skip("%s: %s: this backend does not have it", s->name, hl_op_kind_name(kind));
        return;
    }
    tap_ok(y->runs > 0 && y->failed == 0, "%s: %s: %d of %d runs agree, worst error %.2g of its bound, mostly %.0e (%d declined)",
           s->name, hl_op_kind_name(kind), y->runs - y->failed, y->runs, y->worst, s->tolerance, y->declined);
    for (int i = 0; i < MAX_IMPLS && y->by[i].runs; i++)
        if (strcmp(y->by[i].impl, "ref") != 0) tap_note("  %s: %d", y->by[i].impl, y->by[i].runs);
}

static int trials_of(halo_op_kind kind)
{
    const char *text = getenv("HALO_TRIALS"), *sanitizer = getenv("HALO_SANITIZER");
    int n = text ? (int)strtol(text, NULL, 10) : 32;
    if (!text && (kind <= HALO_OP_CONV_BWD_WEIGHTS || kind == HALO_OP_CONV_POOL_FWD)) n *= 2;
    return !text && sanitizer && *sanitizer ? (n + 3) / 4 : n;
}

static const halo_dtype grains[] = {HALO_NONE, HALO_F16, HALO_BF16};

static bool has_grain(const subject *subjects, int n, halo_dtype grain)
{
    for (int i = 0; i < n; i++)
        if (subjects[i].grain == grain) return true;
    return false;
}

static void run_kind(const subject *subjects, int n, halo_op_kind kind, halo_device *oracle)
{
    tally y[MAX_SUBJECTS];
    memset(y, 0, sizeof(y));
    for (size_t g = 0; g < HL_COUNT(grains); g++)
        for (int k = 0; k < trials_of(kind) && has_grain(subjects, n, grains[g]); k++) {
            trial t;
            trial_make_of(&t, kind, (uint64_t)k + 1, oracle, grains[g]);
            for (int i = 0; i < n; i++)
                if (subjects[i].grain == grains[g] && k % subjects[i].turns == subjects[i].turn) run_trial(&subjects[i], &t, oracle, &y[i], false);
            trial_free(&t);
        }
    for (int i = 0; i < n; i++) report(&subjects[i], kind, &y[i]);
}

/* ---------------------------------------------------------------------------------------------------------- subjects */

/* NULL when it does not open here. */
static subject *add_subject(subject *list, int *n, halo_context *ctx, const char *backend,
                            halo_device_options options, double tolerance)
{
    subject *s = &list[*n];
    HL_BUG_UNLESS(*n < MAX_SUBJECTS);
    *s = (subject){.tolerance = tolerance, .all_layouts = strcmp(backend, "ref") == 0, .turns = 1};
    snprintf(s->name, sizeof(s->name), "%s%s%s%s", backend, options.compute == HALO_F64 ? " f64" : "", options.isa ? " " : "",
             options.isa ? options.isa : "");
    if (options.threads)
        snprintf(s->name + strlen(s->name), sizeof(s->name) - strlen(s->name), " x%d", options.threads);
    if (hl_device_open(ctx, backend, &options, &s->dev) != HALO_OK) {
        tap_skip("%s: %s", s->name, halo_error_message(ctx));
        return NULL;
    }
    (*n)++;
    return s;
}

/* With 16-bit activations: a rounding or two of every output. Where all is done in f32 between conversions a third of the trials show that. */
static void add_halves(subject *list, int *n, halo_context *ctx, const char *backend)
{
    for (size_t g = 0; g < HL_COUNT(grains); g++) {
        halo_device *dev = NULL;
        const halo_dtype type = grains[g];
        if (type == HALO_NONE || hl_device_open(ctx, backend, &(halo_device_options){.compute = type}, &dev) != HALO_OK) continue;
        if (dev->compute != type) {
            dev->ops->close(dev);
            continue;
        }
        bool widened = strcmp(backend, "cpu") == 0 || strcmp(backend, "ref") == 0;
        HL_BUG_UNLESS(*n < MAX_SUBJECTS);
        subject *s = &list[(*n)++];
        *s = (subject){.dev = dev, .grain = type, .tolerance = type == HALO_F16 ? 2e-3 : 1.6e-2, .turns = widened ? 3 : 1};
        snprintf(s->name, sizeof(s->name), "%s %s", backend, hl_dtype_name(type));
    }
}

/* Each instruction set sees every trial, with 1, 2 and 3 threads in turn. */
static void add_cpu(subject *list, int *n, halo_context *ctx)
{
    static const char *const isas[] = {"generic", "avx2", "avx512f"};
    enum { COUNTS = 3 };
    for (size_t i = 0; i < HL_COUNT(isas); i++)
        for (int k = 0; k < COUNTS; k++) {
            subject *s =
                add_subject(list, n, ctx, "cpu", (halo_device_options){.isa = isas[i], .threads = k + 1, .winograd = -4}, 5e-6);
            if (!s) break;
            s->turn = (k + (int)i) % COUNTS;
            s->turns = COUNTS;
        }
}

static int all_subjects(subject *list, halo_context *ctx)
{
    int n = 0;
    const char *only = getenv("HALO_SUBJECT");
    for (const halo_backend *const *b = hl_backends(); *b; b++) {
        const char *name = (*b)->name;
        if (only && strcmp(name, only) != 0) continue;
        if (strcmp(name, "ref") == 0) {
            add_subject(list, &n, ctx, name, (halo_device_options){.compute = HALO_F64}, 2e-13);
            add_subject(list, &n, ctx, name, (halo_device_options){.compute = HALO_F32}, 2e-7);
        } else if (strcmp(name, "cpu") == 0) {
            add_cpu(list, &n, ctx);
        } else {
            add_subject(list, &n, ctx, name, (halo_device_options){.threads = 0}, 5e-6);
        }
        add_halves(list, &n, ctx, name);
    }
    return n;
}

static void run_one(const subject *subjects, int n, const char *kind, const char *seed, halo_device *oracle)
{
    for (int k = 0; k < HALO_OP_KINDS; k++) {
        if (strcmp(hl_op_kind_name((halo_op_kind)k), kind) != 0) continue;
        for (int i = 0; i < n; i++) {
            trial t;
            tally y = {0};
            trial_make_of(&t, (halo_op_kind)k, strtoull(seed, NULL, 10), oracle, subjects[i].grain);
            printf("# %s\n", subjects[i].name);
            run_trial(&subjects[i], &t, oracle, &y, true);
            report(&subjects[i], (halo_op_kind)k, &y);
            trial_free(&t);
        }
    }
}

int main(int argc, char **argv)
{
    halo_context *ctx;
    halo_device *oracle;
    subject subjects[MAX_SUBJECTS];
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "ref", &(halo_device_options){.compute = HALO_F64}, &oracle), "oracle");
    int n = all_subjects(subjects, ctx);
    if (argc == 3)
        run_one(subjects, n, argv[1], argv[2], oracle);
    else
        for (int k = 0; k < HALO_OP_KINDS; k++)
            if (k != HALO_OP_CONV_IMAGE && (argc == 1 || strcmp(argv[1], hl_op_kind_name((halo_op_kind)k)) == 0))
                run_kind(subjects, n, (halo_op_kind)k, oracle);
    for (int i = 0; i < n; i++) subjects[i].dev->ops->close(subjects[i].dev);
    oracle->ops->close(oracle);
    halo_context_destroy(ctx);
    return tap_done();
}
