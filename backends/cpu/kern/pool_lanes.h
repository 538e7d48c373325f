/* SPDX-License-Identifier: Apache-2.0 */
/* pool_lanes.h -- one cell of pool.c for HL_N neighbouring channels; included once per width, no include guard. */

#define P_PASTE(name, n) name##n
#define P_EXPAND(name, n) P_PASTE(name, n)
#define P(name) P_EXPAND(name, HL_N)

typedef float P(pool_f) __attribute__((vector_size(4 * HL_N)));
typedef int32_t P(pool_i) __attribute__((vector_size(4 * HL_N)));
typedef float P(pool_fu) __attribute__((vector_size(4 * HL_N), aligned(4), may_alias));
typedef int32_t P(pool_iu) __attribute__((vector_size(4 * HL_N), aligned(4), may_alias));

static inline void P(max_cell)(const float *x, hl_pool_taps taps, float *y, int32_t *index)
{
    P(pool_f) best = *(const P(pool_fu) *)(x + taps.offset[0]);
    P(pool_i) which = (P(pool_i)){0} + taps.index[0];
    for (int k = 1; k < taps.count; k++) {
        P(pool_f) v = *(const P(pool_fu) *)(x + taps.offset[k]);
        P(pool_i) larger = v > best, number = (P(pool_i)){0} + taps.index[k];
        best = (P(pool_f))((larger & (P(pool_i))v) | (~larger & (P(pool_i))best));
        which = (larger & number) | (~larger & which);
    }
    *(P(pool_fu) *)y = best;
    if (index) *(P(pool_iu) *)index = which;
}

static inline void P(sum_cell)(const float *x, hl_pool_taps taps, float factor, float *y)
{
    P(pool_f) sum = *(const P(pool_fu) *)(x + taps.offset[0]);
    for (int k = 1; k < taps.count; k++) sum += *(const P(pool_fu) *)(x + taps.offset[k]);
    *(P(pool_fu) *)y = sum * factor;
}

static inline void P(max_back_cell)(float *dx, int64_t kstep, int taps, int32_t first, const float *dy, const int32_t *index)
{
    P(pool_i) g = (P(pool_i))*(const P(pool_fu) *)dy, which = *(const P(pool_iu) *)index - first;
    for (int k = 0; k < taps; k++, dx += kstep) *(P(pool_fu) *)dx += (P(pool_f))((which == k) & g);
}

static inline void P(sum_back_cell)(float *dx, int64_t kstep, int taps, float factor, const float *dy)
{
    P(pool_f) g = *(const P(pool_fu) *)dy * factor;
    for (int k = 0; k < taps; k++, dx += kstep) *(P(pool_fu) *)dx += g;
}

#undef P
#undef P_EXPAND
#undef P_PASTE
#undef HL_N
