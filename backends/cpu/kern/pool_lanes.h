/* SPDX-License-Identifier: Apache-2.0 */
/* pool_lanes.h -- one cell of pool.c for HL_N neighbouring channels; included once per width, no include guard. */

#define P_PASTE(name, n) name##n
#define P_EXPAND(name, n) P_PASTE(name, n)
#define P(name) P_EXPAND(name, HL_N)

typedef float P(pool_f) __attribute__((vector_size(4 * HL_N)));
typedef int32_t P(pool_i) __attribute__((vector_size(4 * HL_N)));
typedef float P(pool_fu) __attribute__((vector_size(4 * HL_N), aligned(4), may_alias));
typedef int32_t P(pool_iu) __attribute__((vector_size(4 * HL_N), aligned(4), may_alias));

typedef uint8_t P(pool_b) __attribute__((vector_size(HL_N)));
typedef uint8_t P(pool_bu) __attribute__((vector_size(HL_N), aligned(1), may_alias));

/* y = the largest of each channel; returns which tap that is, the first of equal ones. */
static inline P(pool_i) P(largest)(const float *x, hl_pool_taps taps, float *y)
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
    return which;
}

static inline void P(max_cell)(const float *x, hl_pool_taps taps, float *y, int32_t *index)
{
    P(pool_i) which = P(largest)(x, taps, y);
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

static inline void P(max_save_cell)(const float *x, hl_pool_taps taps, float *y, uint8_t *aux)
{
    P(pool_i) which = P(largest)(x, taps, y);
    if (aux) *(P(pool_bu) *)aux = __builtin_convertvector(which, P(pool_b));
}

static inline void P(mean_save_cell)(const float *x, hl_pool_taps taps, float factor, float *y, uint8_t *aux)
{
    P(pool_f) sum = {0};
    P(pool_i) bits = {0};
    for (int k = 0; k < taps.count; k++) {
        P(pool_f) v = *(const P(pool_fu) *)(x + taps.offset[k]);
        sum += v;
        bits |= (v > 0.0f) & ((P(pool_i)){0} + (int32_t)(1u << (taps.index[k] & 31)));
    }
    *(P(pool_fu) *)y = sum * factor;
    if (aux) *(P(pool_bu) *)aux = __builtin_convertvector(bits, P(pool_b));
}

static inline void P(signs_cell)(const float *x, hl_pool_taps taps, uint8_t *aux)
{
    P(pool_i) bits = {0};
    for (int k = 0; k < taps.count; k++)
        bits |= (*(const P(pool_fu) *)(x + taps.offset[k]) > 0.0f) & ((P(pool_i)){0} + (int32_t)(1u << (taps.index[k] & 31)));
    *(P(pool_bu) *)aux = __builtin_convertvector(bits, P(pool_b));
}

static inline void P(sum_rows_cell)(const hl_unaverage *u, int64_t at, float *t)
{
    P(pool_f) sum = *(const P(pool_fu) *)(u->row[0] + at) * u->factor[0];
    for (int r = 1; r < u->rows; r++) sum += *(const P(pool_fu) *)(u->row[r] + at) * u->factor[r];
    *(P(pool_fu) *)t = sum;
}

static inline void P(unaverage_cell)(const hl_unaverage *u, const float *t, const uint8_t *aux, float *dx)
{
    P(pool_i) bits = __builtin_convertvector(*(const P(pool_bu) *)aux, P(pool_i));
    for (int k = 0; k < u->taps; k++, dx += u->tap_step) {
        const float *from = t + u->from[k] * u->lanes;
        P(pool_f) g = {0};
        for (int i = 0; i < u->count[k]; i++) g += *(const P(pool_fu) *)(from + i * u->lanes);
        P(pool_f) low = g * u->slope;
        P(pool_i) above = (bits & ((P(pool_i)){0} + (int32_t)(1u << ((u->first + k) & 31)))) != 0;
        *(P(pool_fu) *)dx = (P(pool_f))((above & (P(pool_i))g) | (~above & (P(pool_i))low));
    }
}

/* act' from the output y */
static inline P(pool_f) P(slope_of)(const hl_unpool *u, const float *y)
{
    P(pool_f) one = (P(pool_f)){0} + 1.0f;
    if (u->act == HALO_ACT_NONE) return one;
    if (u->act == HALO_ACT_SCALE) return one * u->slope;
    P(pool_f) v = *(const P(pool_fu) *)y;
    if (u->act == HALO_ACT_TANH) return one - v * v;
    if (u->act == HALO_ACT_SIGMOID) return v * (one - v);
    P(pool_i) above = v > 0.0f;
    return (P(pool_f))((above & (P(pool_i))one) | (~above & (P(pool_i))(one * (u->act == HALO_ACT_RELU ? 0.0f : u->slope))));
}

static inline void P(unpool_max_cell)(const hl_unpool *u, const float *dy, const float *y, const uint8_t *aux, float *dx)
{
    P(pool_i) g = (P(pool_i))(*(const P(pool_fu) *)dy * P(slope_of)(u, y));
    P(pool_i) which = __builtin_convertvector(*(const P(pool_bu) *)aux, P(pool_i)) - u->first;
    for (int k = 0; k < u->taps; k++, dx += u->tap_step) *(P(pool_fu) *)dx = (P(pool_f))((which == k) & g);
}

static inline void P(unpool_mean_cell)(const hl_unpool *u, const float *dy, const uint8_t *aux, float *dx)
{
    P(pool_f) g = *(const P(pool_fu) *)dy * u->s.factor, low = g * (u->act == HALO_ACT_RELU ? 0.0f : u->slope);
    if (!aux) {
        for (int k = 0; k < u->taps; k++, dx += u->tap_step) *(P(pool_fu) *)dx = u->act == HALO_ACT_SCALE ? low : g;
        return;
    }
    P(pool_i) bits = __builtin_convertvector(*(const P(pool_bu) *)aux, P(pool_i));
    for (int k = 0; k < u->taps; k++, dx += u->tap_step) {
        P(pool_i) above = (bits & ((P(pool_i)){0} + (int32_t)(1u << ((u->first + k) & 31)))) != 0;
        *(P(pool_fu) *)dx = (P(pool_f))((above & (P(pool_i))g) | (~above & (P(pool_i))low));
    }
}

#undef P
#undef P_EXPAND
#undef P_PASTE
#undef HL_N
