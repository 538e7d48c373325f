/* SPDX-License-Identifier: Apache-2.0 */
/* pure.c -- schedules and metrics against values worked out by hand. */
#include "optim/schedule.h"
#include "tests/tap.h"
#include "train/metrics.h"

static halo_context *ctx;

static bool near(double a, double b) { return fabs(a - b) <= 1e-12 * fmax(1, fabs(b)); }

static void schedules(void)
{
    hl_schedule s = {.shape = HL_POLYNOMIAL, .peak = 1, .end = 0.1, .power = 1, .warmup = 2, .length = 12};
    tap_ok(near(hl_schedule_rate(&s, 0, 10), 0.05), "warm-up begins one part above its start");
    tap_ok(near(hl_schedule_rate(&s, 19, 10), 1), "warm-up ends at the peak");
    tap_ok(near(hl_schedule_rate(&s, 20, 10), 1), "polynomial begins at the peak");
    tap_ok(near(hl_schedule_rate(&s, 70, 10), 0.55), "polynomial of power 1 is half-way in the middle");
    tap_ok(near(hl_schedule_rate(&s, 120, 10), 0.1) && near(hl_schedule_rate(&s, 500, 10), 0.1), "and stays at its end");
    s.shape = HL_COSINE;
    tap_ok(near(hl_schedule_rate(&s, 70, 10), 0.55), "cosine is half-way in the middle");
    s = (hl_schedule){.shape = HL_STEP, .peak = 1, .factor = 0.5, .boundaries = 2, .boundary = {2, 4}};
    tap_ok(near(hl_schedule_rate(&s, 19, 10), 1) && near(hl_schedule_rate(&s, 20, 10), 0.5) && near(hl_schedule_rate(&s, 45, 10), 0.25),
           "step multiplies at each boundary");
    s = (hl_schedule){.shape = HL_CONSTANT, .peak = 0.3};
    tap_ok(near(hl_schedule_rate(&s, 12345, 10), 0.3), "constant stays");
}

static void deltas(void)
{
    tap_ok(near(hl_schedule_delta(2, 1, 0, 1000, 10), 2), "delta of huber stays with factor 1");
    tap_ok(near(hl_schedule_delta(2, 0.25, 0, 0, 10), 2) && near(hl_schedule_delta(2, 0.25, 0, 5, 10), 1) && near(hl_schedule_delta(2, 0.25, 0, 20, 10), 0.125),
           "and shrinks by its factor per epoch, a little in each step");
    tap_ok(near(hl_schedule_delta(2, 0.25, 0.3, 20, 10), 0.3) && near(hl_schedule_delta(2, 0.25, 5, 20, 10), 2), "not below its end, which is not above its start");
}

static void scaling(void)
{
    tap_ok(near(hl_scaled_rate(HL_RATE_NONE, 0.1, 2048, 256), 0.1), "no rule: the rate stays");
    tap_ok(near(hl_scaled_rate(HL_RATE_LINEAR, 0.1, 2048, 256), 0.8), "linear: 8 times the batch, 8 times the rate");
    tap_ok(near(hl_scaled_rate(HL_RATE_SQRT, 0.1, 1024, 256), 0.2), "sqrt: 4 times the batch, twice the rate");
    tap_ok(near(hl_scaled_rate(HL_RATE_LINEAR, 0.1, 64, 256), 0.025), "a smaller batch, a smaller rate");
    hl_schedule s = {.shape = HL_CONSTANT, .peak = hl_scaled_rate(HL_RATE_LINEAR, 0.1, 2048, 256), .warmup = 5, .warmup_start = 0.1, .length = 90};
    tap_ok(near(hl_schedule_rate(&s, 24, 10), 0.45) && near(hl_schedule_rate(&s, 49, 10), 0.8), "warm-up goes from the unscaled rate to the scaled one");
}

static void add(hl_metrics *m, int64_t group, float truth, float guess) { (void)hl_metrics_add(m, group, &truth, &guess); }

static void metrics(void)
{
    hl_target t = {.name = "a", .low = 0, .high = 10, .mean = NAN, .std = NAN};
    hl_metrics *m;
    hl_score s, g;
    int64_t items;
    tap_ok(near(hl_physical(&t, -1), 0) && near(hl_physical(&t, 1), 10) && near(hl_physical(&t, 0), 5), "a range turns -1..1 into physical units");
    hl_target z = {.low = NAN, .high = NAN, .mean = 3, .std = 2};
    tap_ok(near(hl_physical(&z, -1), 1), "a z-score is undone");
    (void)hl_metrics_create(ctx, 1, &t, &m);
    tap_ok(hl_metrics_score(m, false, &s, &items) == HALO_ERR_USAGE, "no sample, no score");
    add(m, 1, -1, -0.8f);  /* 0 against 1 */
    add(m, 1, -1, -1.2f);  /* 0 against -1 */
    add(m, 2, 1, 0.6f);    /* 10 against 8 */
    add(m, 3, 0, 0.2f);    /* 5 against 6 */
    (void)hl_metrics_score(m, false, &s, &items);
    tap_ok(items == 4 && fabs(s.error - 5. / 4) < 1e-6, "error is the mean absolute one (%.9g)", s.error);
    tap_ok(fabs(s.constant_error - 15. / 4) < 1e-6, "the best constant is the median: %.9g", s.constant_error);
    (void)hl_metrics_score(m, true, &g, &items);
    tap_ok(items == 3 && fabs(g.error - 1) < 1e-6 && fabs(g.constant_error - 10. / 3) < 1e-6, "groups are averaged first (%.9g)", g.error);
    tap_ok(g.correlation > 0.9 && g.correlation <= 1, "correlation of a good prediction is near 1");
    tap_ok(!hl_unconstrained(&g), "a learned target is constrained");
    hl_score none = {.error = 0.97, .constant_error = 1};
    tap_ok(hl_unconstrained(&none), "one that is 3 %% better than the constant is not");
    hl_metrics_destroy(m);
}

/* A noisy prediction of a value that varies over both samples and voxels, far from 0. */
static void noisy(int64_t sample, int64_t voxel, float *truth, float *guess)
{
    uint64_t i = (uint64_t)(sample * 4099 + voxel), h = (i + 1) * UINT64_C(0xD1342543DE82EF95);
    double u = (double)(h >> 40) / 16777216, v = (double)(h >> 16 & 0xFFFFFF) / 16777216;
    *truth = (float)(1000 + u * u);
    *guess = (float)(1000 + u * u + 0.3 * (v - 0.4));
}

/* voxels.c against metrics.c, for which every voxel is a sample. */
static void voxel_metrics(int64_t samples, int64_t voxels, double tolerance, const char *what)
{
    hl_target t = {.name = "a", .low = NAN, .high = NAN, .mean = NAN, .std = NAN};
    hl_voxel_metrics *m = NULL;
    hl_metrics *all = NULL;
    hl_score s, want;
    int64_t items;
    hl_cells whole = {.ext = {1, 2, voxels / 2}};
    float *truth = calloc((size_t)voxels, sizeof(*truth)), *guess = calloc((size_t)voxels, sizeof(*guess));
    if (!truth || !guess || hl_voxel_metrics_create(ctx, 1, &t, whole.ext, &m) != HALO_OK || hl_metrics_create(ctx, 1, &t, &all) != HALO_OK) {
        tap_ok(false, "memory for %s", what);
        return;
    }
    for (int64_t n = 0; n < samples; n++) {
        for (int64_t i = 0; i < voxels; i++) {
            noisy(n, i, &truth[i], &guess[i]);
            add(all, n, truth[i], guess[i]);
        }
        hl_voxel_metrics_add(m, n, &whole, truth, guess);
    }
    (void)hl_voxel_metrics_score(m, &s, &items);
    (void)hl_metrics_score(all, false, &want, NULL);
    tap_ok(items == samples && fabs(s.error - want.error) <= 1e-9 * want.error && fabs(s.correlation - want.correlation) <= 1e-9,
           "%s: error %.9g and correlation %.9g of voxels", what, s.error, s.correlation);
    tap_ok(fabs(s.constant_error - want.constant_error) <= tolerance * want.constant_error, "%s: the constant's error is %.9g, all voxels give %.9g", what,
           s.constant_error, want.constant_error);
    hl_voxel_metrics_destroy(m);
    hl_metrics_destroy(all);
    free(truth);
    free(guess);
}

static void class_metrics(void)
{
    static const float logit[2 * 3 * 4] = {1, 0, 5, 2, 0, 3, 5, 2, -1, 3, 0, 2, /* [3 classes][4 cells]: 0, 1, 0 (the first of equal ones), 0 */
                                           0, 0, 0, NAN, 1, 0, 0, 0, 0, 0, 9, 0};
    static const float want[8] = {0, 1, 0, 0, 1, 0, 2, 0}, truth[8] = {0, 1, 1, 1, 1, 1, 1, 0};
    float guess[8];
    hl_class_metrics *m = NULL;
    hl_score s;
    hl_class_score of[4];
    double cells = 0;
    hl_classes_of(logit, 2, 3, 4, guess);
    tap_ok(memcmp(guess, want, sizeof(want)) == 0, "a cell is of the class with the largest logit, the first of equal ones");
    tap_ok(hl_class_metrics_create(ctx, 4, 0, -1, &m) == HALO_OK && hl_class_metrics_score(m, &s, of, &cells) == HALO_ERR_USAGE, "no cells have no score");
    hl_class_metrics_add(m, 0, 3, truth, guess);
    hl_class_metrics_add(m, 7, 5, truth + 3, guess + 3);
    bool scored = hl_class_metrics_score(m, &s, of, &cells) == HALO_OK;
    /* right: cells 0, 1, 4, 7; of class 1 six, taken for it two */
    tap_ok(scored && cells == 8 && fabs(s.error - 0.5) < 1e-15 && fabs(s.constant_error - 0.25) < 1e-15 && isnan(s.correlation),
           "half of the cells are wrong, a constant has a quarter wrong");
    tap_ok(fabs(of[0].global.dice - 2 * 2.0 / (2 + 5)) < 1e-15 && fabs(of[1].global.dice - 2 * 2.0 / (6 + 2)) < 1e-15 && of[2].global.dice == 0 && isnan(of[3].global.dice),
           "Dice of each class: %.3f %.3f %.3f, none of one that is nowhere", of[0].global.dice, of[1].global.dice, of[2].global.dice);
    tap_ok(fabs(of[0].global.iou - 2.0 / 5) < 1e-15 && fabs(of[1].global.volume_error + 4.0 / 6) < 1e-15 && isnan(of[2].global.volume_error) && isnan(of[0].per_case.dice),
           "IoU %.3f, volume error %.3f; no cases, no scores per case", of[0].global.iou, of[1].global.volume_error);
    tap_ok(hl_class_metrics_confused(m, 1, 2) == 1 && hl_class_metrics_confused(m, 1, 0) == 3 && hl_class_metrics_confused(m, 0, 1) == 0, "which is taken for which");
    hl_class_metrics_destroy(m);
}

/* As LiTS has it: the mean over cases; a class that a case has not, and is not found there, has Dice 1; found there, 0. */
static void cases(void)
{
    static const float truth[3][4] = {{0, 0, 1, 1}, {0, 0, 0, 9}, {0, 1, 2, 2}}, guess[3][4] = {{0, 1, 1, 1}, {0, 0, 0, 2}, {2, 1, 2, 2}};
    hl_class_metrics *m = NULL;
    hl_class_score of[3];
    hl_score s;
    double cells = 0;
    bool made = hl_class_metrics_create(ctx, 3, 4, 9, &m) == HALO_OK; /* a fourth case is never seen */
    for (int i = 2; i >= 0; i--) {
        hl_class_metrics_add(m, i, 1, truth[i], guess[i]); /* a case may come in parts */
        hl_class_metrics_add(m, i, 3, truth[i] + 1, guess[i] + 1);
    }
    bool scored = made && hl_class_metrics_score(m, &s, of, &cells) == HALO_OK;
    tap_ok(scored && cells == 12 && fabs(s.error - 2.0 / 11) < 1e-15, "a label that is ignored is no error: %.4f", s.error);
    tap_ok(fabs(of[1].per_case.dice - (0.8 + 1 + 1) / 3) < 1e-15 && of[1].cases == 2, "Dice per case: where there is none and none is found it is 1 (%.4f)", of[1].per_case.dice);
    tap_ok(fabs(of[2].per_case.dice - (1 + 1 + 0.8) / 3) < 1e-15 && of[2].cases == 1 && fabs(of[2].per_case.volume_error - 0.5) < 1e-15,
           "volume errors are of the cases that have the class (%.3f)", of[2].per_case.volume_error);
    tap_ok(fabs(of[1].global.dice - 2 * 3.0 / (3 + 4)) < 1e-15 && fabs(of[1].global.volume_error - 1.0 / 3) < 1e-15, "over all cells the cases are one: %.4f", of[1].global.dice);
    tap_ok(hl_class_metrics_case(m, 2, 0).dice == 0 && fabs(hl_class_metrics_case(m, 0, 0).iou - 0.5) < 1e-15, "what is there and not found has Dice 0");
    tap_ok(fabs(hl_foreground_dice(of, 3, false) - (6.0 / 7 + 4.0 / 5) / 2) < 1e-15, "the mean leaves the background out");
    hl_class_metrics_destroy(m);
}

int main(void)
{
    if (halo_context_create(NULL, &ctx) != HALO_OK) return 1;
    schedules();
    deltas();
    scaling();
    metrics();
    class_metrics();
    cases();
    voxel_metrics(5, 64, 1e-9, "few voxels");
    voxel_metrics(24, 64 * 64 * 32, 2e-3, "more voxels than are kept");
    halo_context_destroy(ctx);
    return tap_done();
}
