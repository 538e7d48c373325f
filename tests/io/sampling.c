/* SPDX-License-Identifier: Apache-2.0 */
/* The order of samples, the symmetries of the cube, shifts and transforms: properties, and the formulas in
 * double. */
#include "io/crc32c.h"
#include "io/pipeline.h"
#include "tests/tap.h"
#include "base/rng.h"

static void permutations(void)
{
    enum { n = 1000 };
    static int64_t a[n], b[n], c[n], seen[n];
    hl_permutation(7, 0, n, a);
    hl_permutation(7, 0, n, b);
    hl_permutation(7, 1, n, c);
    bool all = true;
    int moved = 0, differ = 0;
    for (int i = 0; i < n; i++) {
        all = all && a[i] >= 0 && a[i] < n && !seen[a[i]]++;
        moved += a[i] != i;
        differ += a[i] != c[i];
    }
    tap_ok(all, "an epoch visits every sample once");
    tap_ok(memcmp(a, b, sizeof(a)) == 0, "the order is a function of seed and epoch");
    tap_ok(moved > n - 20 && differ > n - 20,
           "it is shuffled, and the next epoch differently (%d and %d of %d places)", moved, differ, n);
    hl_permutation(8, 0, n, b);
    tap_ok(memcmp(a, b, sizeof(a)) != 0, "another seed gives another order");
    int64_t one = -1;
    hl_permutation(7, 0, 1, &one);
    tap_ok(one == 0, "one sample has one order");
    int count[4][4] = {{0}};
    for (int e = 0; e < 4000; e++) {
        int64_t p[4];
        hl_permutation(3, e, 4, p);
        for (int i = 0; i < 4; i++) count[i][p[i]]++;
    }
    int low = 4000, high = 0;
    for (int i = 0; i < 16; i++) {
        low = count[i / 4][i % 4] < low ? count[i / 4][i % 4] : low;
        high = count[i / 4][i % 4] > high ? count[i / 4][i % 4] : high;
    }
    tap_ok(low > 880 && high < 1120,
           "every sample is in every place equally often: %d..%d of 4000, expected 1000 +- 4 sigma", low,
           high);
}

static void fill(float *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = (float)(i + 1);
}

static void symmetries(void)
{
    enum { N = 3, CELLS = N * N * N };
    static float image[HL_SYMMETRIES][CELLS], x[CELLS], y[CELLS], z[CELLS];
    const int64_t ext[3] = {N, N, N}, none[3] = {0, 0, 0};
    fill(x, CELLS);
    bool distinct = true, inverse = true, closed = true;
    for (int s = 0; s < HL_SYMMETRIES; s++) {
        hl_augment(x, image[s], 1, ext, hl_symmetry_of(s), none);
        for (int t = 0; t < s; t++) distinct = distinct && memcmp(image[s], image[t], sizeof(x)) != 0;
        hl_augment(image[s], y, 1, ext, hl_symmetry_inverse(hl_symmetry_of(s)), none);
        inverse = inverse && memcmp(x, y, sizeof(x)) == 0;
    }
    tap_ok(memcmp(image[0], x, sizeof(x)) == 0, "symmetry 0 is the identity");
    tap_ok(distinct, "the 48 symmetries are distinct");
    tap_ok(inverse, "each is undone by its inverse");
    for (int a = 0; a < HL_SYMMETRIES; a++)
        for (int b = 0; b < HL_SYMMETRIES; b++) {
            int c = hl_symmetry_after(a, b);
            hl_augment(image[a], z, 1, ext, hl_symmetry_of(b), none);
            closed = closed && c >= 0 && memcmp(z, image[c < 0 ? 0 : c], sizeof(z)) == 0;
        }
    tap_ok(closed, "two in a row are a third, the one that hl_symmetry_after names");
    int count[HL_SYMMETRIES] = {0}, low = 1 << 30;
    for (int i = 0; i < 9600; i++) count[hl_draw_symmetry(1, i % 7, i)]++;
    for (int s = 0; s < HL_SYMMETRIES; s++) low = count[s] < low ? count[s] : low;
    tap_ok(low > 140, "all are drawn, none rarely: at least %d of 200 expected", low);
    tap_ok(hl_draw_symmetry(5, 2, 9) == hl_draw_symmetry(5, 2, 9),
           "what is drawn depends on seed, epoch and sample alone");
    int same = 0;
    for (int i = 0; i < 480; i++) same += hl_draw_symmetry(5, 0, i) == hl_draw_symmetry(5, 1, i);
    tap_ok(same < 40, "epochs draw differently: %d of 480 equal", same);
}

static void one_shift(bool cube)
{
    const int64_t ext[3] = {5, cube ? 5 : 3, cube ? 5 : 4};
    float x[2 * 125], y[2 * 125];
    int64_t cells = ext[0] * ext[1] * ext[2];
    fill(x, (int)(2 * cells));
    bool good = true;
    for (int trial = 0; trial < 60; trial++) {
        int64_t shift[3];
        hl_draw_shift(3, trial, 17, ext, shift);
        hl_symmetry s = hl_symmetry_of(cube ? trial % HL_SYMMETRIES : trial % 8);
        hl_augment(x, y, 2, ext, s, shift);
        for (int64_t c = 0; c < 2; c++)
            for (int64_t i = 0; i < cells; i++) {
                int64_t at[3] = {i / (ext[1] * ext[2]), i / ext[2] % ext[1], i % ext[2]}, from[3];
                for (int k = 0; k < 3; k++) {
                    int a = s.axis[k];
                    from[a] = ((s.flip[k] ? ext[k] - 1 - at[k] : at[k]) + shift[a]) % ext[a];
                }
                good = good &&
                       y[c * cells + i] == x[c * cells + (from[0] * ext[1] + from[1]) * ext[2] + from[2]];
            }
    }
    tap_ok(good,
           "shifted and turned, [%d, %d, %d] with 2 channels: every cell comes from where the formula says",
           (int)ext[0], (int)ext[1], (int)ext[2]);
}

static void shifts(void)
{
    const int64_t ext[3] = {4, 6, 8};
    bool seen[3][8] = {{false}}, in_range = true;
    for (int i = 0; i < 400; i++) {
        int64_t s[3];
        hl_draw_shift(1, 0, i, ext, s);
        for (int k = 0; k < 3; k++) {
            in_range = in_range && s[k] >= 0 && s[k] < ext[k];
            if (in_range) seen[k][s[k]] = true;
        }
    }
    bool all = true;
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < ext[k]; i++) all = all && seen[k][i];
    tap_ok(in_range && all, "shifts reach every cell and no other");
    one_shift(true);
    one_shift(false);
}

static double worst(const float *x, const double *want, int n)
{
    double e = 0;
    for (int i = 0; i < n; i++) {
        double d = fabs((double)x[i] - want[i]) / (fabs(want[i]) + 1e-3);
        if (!(d <= e)) e = d;
    }
    return e;
}

static void transforms(void)
{
    enum { n = 5000 };
    static float x[n];
    static double v[n], want[n];
    int64_t bad;
    double mean = 0, var = 0;
    for (int i = 0; i < n; i++) {
        x[i] = (float)(1e4 +
                       hl_rng_normal(1, HL_STREAM_TEST, (uint64_t)i,
                                     0)); /* a variance that a running sum of squares in float would lose */
        v[i] = (double)x[i];
        mean += v[i] / n;
    }
    for (int i = 0; i < n; i++) var += (v[i] - mean) * (v[i] - mean) / n;
    for (int i = 0; i < n; i++) want[i] = (v[i] - mean) / sqrt(var);
    tap_ok(hl_transform_apply(HL_ZSCORE, x, n, &bad), "z-score applies");
    double e = worst(x, want, n);
    tap_ok(e <= 1e-6, "z-score of 10000 +- 1 agrees with the formula in double: %.1e", e);
    for (int i = 0; i < n; i++) x[i] = (float)v[i], want[i] = v[i] / mean;
    hl_transform_apply(HL_OVER_MEAN, x, n, &bad);
    e = worst(x, want, n);
    tap_ok(e <= 1e-7, "x / mean: %.1e", e);
    for (int i = 0; i < n; i++) {
        x[i] = (float)(i < n / 2 ? i * 1e-9 : i);
        want[i] = log1p((double)x[i]);
    }
    hl_transform_apply(HL_LOG1P, x, n, &bad);
    e = worst(x, want, n);
    tap_ok(e <= 1e-7, "log1p, also of 1e-9: %.1e", e);
    float special[3] = {0, -1, 2};
    tap_ok(!hl_transform_apply(HL_LOG1P, special, 3, &bad) && bad == 1,
           "log1p of -1 is refused, and says where");
    float constant[4] = {3, 3, 3, 3}, zero[4] = {1, -1, 2, -2};
    tap_ok(!hl_transform_apply(HL_ZSCORE, constant, 4, &bad) && bad == -1,
           "a constant volume has no z-score");
    tap_ok(!hl_transform_apply(HL_OVER_MEAN, zero, 4, &bad) && bad == -1,
           "a volume of mean 0 is not divided by it");
}

static void tables(void)
{
    static float table[65536], y[65536];
    static int16_t v[65536];
    int64_t bad;
    int wrong = 0;
    for (int i = 0; i < 65536; i++) v[i] = (int16_t)(i - 32768);
    hl_log1p_table(HALO_I16, table);
    tap_ok(!hl_log1p_lookup(HALO_I16, table, v, y, 65536, &bad) && bad == 0,
           "negative counts are refused by the table too");
    tap_ok(hl_log1p_lookup(HALO_I16, table, v + 32768, y, 32768, &bad), "counts are not");
    for (int i = 0; i < 32768; i++) {
        float one = (float)i;
        hl_transform_apply(HL_LOG1P, &one, 1, &bad);
        wrong += one != y[i];
    }
    tap_ok(wrong == 0, "the table gives the same bits as the formula, for every count");
    uint8_t b[3] = {0, 7, 255};
    hl_log1p_table(HALO_U8, table);
    tap_ok(hl_log1p_lookup(HALO_U8, table, b, y, 3, &bad) && y[1] == (float)log1p(7.0) &&
               y[2] == (float)log1p(255.0),
           "and so for bytes");
}

static void nonfinite(void)
{
    enum { n = 10000 };
    static float x[n];
    const int at[] = {0, 1, 4095, 4096, 9999};
    const float value[] = {NAN, INFINITY, -INFINITY};
    bool good = hl_first_nonfinite(x, n) == n;
    for (size_t i = 0; i < HL_COUNT(at); i++)
        for (size_t k = 0; k < HL_COUNT(value); k++) {
            x[at[i]] = value[k];
            good = good && hl_first_nonfinite(x, n) == at[i];
            x[at[i]] = 3e38f;
        }
    tap_ok(good && hl_first_nonfinite(x, n) == n,
           "NaN and infinities are found where they are, 3e38 is none");
}

static void checksums(void)
{
    hl_crc32c c;
    hl_crc32c_init(&c);
    char text[64] = "123456789";
    tap_ok(hl_crc32c_of(&c, 0, text, 9) == 0xe3069283u, "crc32c of 123456789 is e3069283");
    char zeros[32] = {0};
    tap_ok(hl_crc32c_of(&c, 0, zeros, 32) == 0x8a9136aau, "crc32c of 32 zero bytes is 8a9136aa (RFC 3720)");
    uint32_t part = hl_crc32c_of(&c, hl_crc32c_of(&c, 0, text, 5), text + 5, 4);
    tap_ok(part == 0xe3069283u, "a checksum can be continued");
}

int main(void)
{
    permutations();
    symmetries();
    shifts();
    transforms();
    tables();
    nonfinite();
    checksums();
    return tap_done();
}
