/* SPDX-License-Identifier: Apache-2.0 */
/* wire_body.h -- the functions of one narrow wire over one type. Before including: T, NAME(f), R(x) to 16 bits, F(h) back to float. */
static void NAME(encode)(int64_t n, const void *x, void *out)
{
    const T *a = x;
    uint16_t *b = out;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) b[i] = R((float)a[i]);
}

static void NAME(decode)(int64_t n, const void *in, void *x)
{
    const uint16_t *a = in;
    T *b = x;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) b[i] = F(a[i]);
}

static void NAME(settle)(int64_t n, void *x)
{
    T *a = x;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) a[i] = F(R((float)a[i]));
}

static void NAME(feed)(int64_t n, void *x, void *e)
{
    T *a = x, *lost = e;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        T want = a[i] + lost[i], got = F(R((float)want)), rest = want - got;
        a[i] = got;
        lost[i] = rest - rest == 0 ? rest : 0; /* infinities and NaN leave nothing behind */
    }
}

static void NAME(sum)(int64_t n, int fan, int before, const void *const *in, void *x)
{
    T *a = x;
    if (fan == 1) {
        const uint16_t *b = in[0];
#pragma omp simd
        for (int64_t i = 0; i < n; i++) a[i] = (T)F(R((float)a[i])) + (T)F(b[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        T own = F(R((float)a[i])), s = before > 0 ? (T)F(((const uint16_t *)in[0])[i]) : own;
        for (int k = 1; k < before; k++) s += (T)F(((const uint16_t *)in[k])[i]);
        if (before > 0) s += own;
        for (int k = before; k < fan; k++) s += (T)F(((const uint16_t *)in[k])[i]);
        a[i] = s;
    }
}

static const hl_arithmetic NAME(table) = {
    .encode = NAME(encode), .decode = NAME(decode), .sum = NAME(sum), .settle = NAME(settle), .feed = NAME(feed)};
