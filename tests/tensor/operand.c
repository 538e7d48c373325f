/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operand.c -- sizes, strides and boxes of random operands against exhaustive enumeration, sizes past 2^63, and the 16-bit types bit by bit.
 */
#include "tensor/half.h"
#include "tensor/operand.h"

#include "base/rng.h"
#include "tests/check.h"
#include "tests/tap.h"

static int64_t random_int(uint64_t *at, int64_t lo, int64_t hi)
{
    return lo + (int64_t)hl_rng_below(1, HL_STREAM_TEST, (*at)++, 0, (uint64_t)(hi - lo + 1));
}

static halo_operand random_operand(uint64_t *at)
{
    halo_operand o = {.dtype = HALO_F32, .layout = (halo_layout)random_int(at, 0, HALO_LAYOUTS - 1)};
    for (int i = 0; i < HALO_DIMS; i++) {
        bool whole = random_int(at, 0, 2) > 0;
        int64_t block = i == HALO_C ? hl_layout_block(o.layout) : 1;
        o.ext[i] = i == HALO_C ? random_int(at, 1, 20) : random_int(at, 1, 3);
        if (random_int(at, 0, 2) == 0) o.ext[i] = block;
        o.lo[i] = whole ? 0 : random_int(at, 0, 2) * block;
        o.alloc[i] = o.lo[i] + o.ext[i] + (whole ? 0 : random_int(at, 0, 2));
    }
    return o;
}

static int64_t product(const int64_t e[HALO_DIMS]) { return e[0] * e[1] * e[2] * e[3] * e[4]; }

static void unrank(int64_t k, const int64_t e[HALO_DIMS], int64_t i[HALO_DIMS])
{
    for (int j = HALO_DIMS - 1; j >= 0; k /= e[j--]) i[j] = k % e[j];
}

/* Offsets of all cells are distinct and inside. */
static bool strides_good(const halo_operand *o)
{
    int64_t elements, i[HALO_DIMS], at;
    if (!hl_operand_elements(o, &elements)) return false;
    hl_strides s = hl_operand_strides(o);
    char *seen = check_alloc(elements, 1);
    bool good = true;
    for (int64_t k = 0; k < product(o->alloc); k++) {
        unrank(k, o->alloc, i);
        at = hl_offset(&s, i[0], i[1], i[2], i[3], i[4]);
        good = good && at >= 0 && at < elements && !seen[at];
        if (good) seen[at] = 1;
    }
    free(seen);
    return good;
}

/* Dense by definition: every cell of the box, and every lane of its last block, lies where a whole tensor of the box's extents would have it, and
 * such a lane is nobody's. */
static bool dense_by_definition(const halo_operand *o, int64_t *offset)
{
    halo_operand small = hl_operand_whole(o->dtype, o->layout, o->ext);
    hl_strides s = hl_operand_strides(o), t = hl_operand_strides(&small);
    int64_t block = hl_layout_block(o->layout), e[HALO_DIMS], i[HALO_DIMS];
    const int64_t *lo = o->lo;
    memcpy(e, o->ext, sizeof(e));
    e[HALO_C] = hl_round_up(e[HALO_C], block);
    *offset = hl_offset(&s, lo[0], lo[1], lo[2], lo[3], lo[4]);
    for (int64_t k = 0; k < product(e); k++) {
        unrank(k, e, i);
        bool lane = i[HALO_C] >= o->ext[HALO_C], owned = lo[HALO_C] + i[HALO_C] < o->alloc[HALO_C];
        if (lane && owned) return false;
        int64_t at = hl_offset(&s, lo[0] + i[0], lo[1] + i[1], lo[2] + i[2], lo[3] + i[3], lo[4] + i[4]);
        if (at - *offset != hl_offset(&t, i[0], i[1], i[2], i[3], i[4])) return false;
    }
    return true;
}

static void test_random(void)
{
    uint64_t at = 0;
    int bad_strides = 0, bad_valid = 0, unsound = 0, missed = 0, dense = 0, bad_bytes = 0;
    enum { TRIALS = 4000 };
    for (int k = 0; k < TRIALS; k++) {
        halo_operand o = random_operand(&at);
        int64_t offset = -1, want, elements;
        size_t bytes;
        bad_valid += !hl_operand_valid(&o);
        bad_strides += !strides_good(&o);
        bad_bytes +=
            !hl_operand_bytes(&o, &bytes) || !hl_operand_elements(&o, &elements) || bytes != 4 * (size_t)elements;
        bool found = hl_operand_dense(&o, &offset), is = dense_by_definition(&o, &want);
        unsound += found && (!is || offset != want);
        missed += is && !found;
        dense += is;
    }
    tap_ok(bad_valid == 0, "%d random operands are valid", TRIALS);
    tap_ok(bad_strides == 0, "their cells have distinct places inside the allocation (%d do not)", bad_strides);
    tap_ok(bad_bytes == 0, "bytes are elements times the size");
    tap_ok(unsound == 0, "no box is called dense that is not (%d of %d are)", dense, TRIALS);
    tap_ok(missed == 0, "no dense box is missed (%d are)", missed);
}

/* One change that makes a valid operand invalid. */
static void test_invalid(void)
{
    uint64_t at = 1u << 20;
    int accepted = 0;
    for (int k = 0; k < 2000; k++) {
        halo_operand o = random_operand(&at);
        int dim = (int)random_int(&at, 0, 4), space = (int)random_int(&at, 0, 2);
        switch (random_int(&at, 0, 6)) {
        case 0: o.ext[dim] = -random_int(&at, 0, 3); break;
        case 1: o.alloc[dim] = o.lo[dim] + o.ext[dim] - 1; break;
        case 2: o.lo[dim] = -1; break;
        case 3: o.margin[space][0] = o.lo[HALO_D + space] + 1; break;
        case 4: o.margin[space][1] = o.alloc[HALO_D + space] - o.lo[HALO_D + space] - o.ext[HALO_D + space] + 1; break;
        case 5: o.margin[space][random_int(&at, 0, 1)] = -1; break;
        default: o.dtype = HALO_NONE; break;
        }
        accepted += hl_operand_valid(&o);
    }
    tap_ok(accepted == 0, "no broken operand is called valid (%d are)", accepted);
    halo_operand o = hl_operand_whole(HALO_F32, HALO_NCDHW8C, (int64_t[]){1, 32, 2, 2, 2});
    o.lo[HALO_C] = 4, o.ext[HALO_C] = 8;
    tap_ok(!hl_operand_valid(&o), "a channel box that does not begin on a block is not valid");
}

static void test_sizes(void)
{
    int64_t n;
    size_t bytes;
    halo_operand conv1 = hl_operand_whole(HALO_F32, HALO_NDHWC, (int64_t[]){1, 16, 512, 512, 512});
    tap_ok(hl_operand_elements(&conv1, &n) && n == (int64_t)1 << 31, "16 channels of 512^3 are 2^31 elements");
    tap_ok(hl_operand_bytes(&conv1, &bytes) && bytes == (size_t)1 << 33, "and 2^33 bytes");
    hl_strides s = hl_operand_strides(&conv1);
    tap_ok(hl_offset(&s, 0, 15, 511, 511, 511) == n - 1, "the last cell is the last element");
    int refused = 0, cases = 0;
    for (int layout = 0; layout < HALO_LAYOUTS; layout++)
        for (int i = 0; i < HALO_DIMS; i++, cases++) {
            halo_operand o = hl_operand_whole(HALO_F64, (halo_layout)layout, (int64_t[]){3, 3, 3, 3, 3});
            o.alloc[i] = INT64_MAX - 5;
            refused += !hl_operand_elements(&o, &n) && !hl_operand_bytes(&o, &bytes);
        }
    tap_ok(refused == cases, "extents whose product passes 2^63 are refused, in every layout");
    halo_operand wide =
        hl_operand_whole(HALO_F64, HALO_NCDHW, (int64_t[]){1, 1, 1, (int64_t)1 << 30, (int64_t)1 << 31});
    tap_ok(hl_operand_elements(&wide, &n) && !hl_operand_bytes(&wide, &bytes), "2^61 elements of 8 bytes do not fit");
}

static void test_makers(void)
{
    const int64_t margin[3][2] = {{1, 0}, {2, 3}, {0, 1}};
    halo_operand o = hl_operand_margined(HALO_F32, HALO_NCDHW16C, (int64_t[]){2, 5, 4, 4, 4}, margin),
                 f = hl_operand_flat(HALO_F64, 7);
    tap_ok(hl_operand_valid(&o) && o.alloc[HALO_H] == 9 && o.lo[HALO_H] == 2 && !hl_operand_is_whole(&o),
           "margins make room around the box");
    tap_ok(hl_operand_valid(&f) && hl_operand_is_whole(&f) && hl_operand_box_elements(&f) == 7,
           "a flat operand is whole");
    halo_operand g = o;
    tap_ok(hl_operand_equal(&g, &o) && hl_same_extents(&g, &o), "a copy is equal");
    g.margin[2][1] = 0;
    tap_ok(!hl_operand_equal(&g, &o) && hl_same_extents(&g, &o),
           "another margin is another operand of the same extents");
}

/* h is the nearest to f of its neighbours, and of two equally near the even one. */
static bool nearest16(float f, uint16_t h, float (*value)(uint16_t))
{
    double here = fabs((double)f - (double)value(h));
    for (int step = -1; step <= 1; step += 2) {
        if ((step < 0 && (h & 0x7fff) == 0) || !isfinite(value((uint16_t)(h + step)))) continue;
        double there = fabs((double)f - (double)value((uint16_t)(h + step)));
        if (there < here || (there == here && (h & 1))) return false;
    }
    return true;
}

static void test_half(void)
{
    int f16 = 0, bf16 = 0, far16 = 0, farb = 0;
    for (uint32_t h = 0; h < 65536; h++) {
        float a = hl_f32_from_f16((uint16_t)h), b = hl_f32_from_bf16((uint16_t)h);
        f16 += isnan(a) ? !isnan(hl_f32_from_f16(hl_f16_from_f32(a))) : hl_f16_from_f32(a) != h;
        bf16 += isnan(b) ? !isnan(hl_f32_from_bf16(hl_bf16_from_f32(b))) : hl_bf16_from_f32(b) != h;
    }
    tap_ok(f16 == 0 && bf16 == 0, "every f16 and bf16 comes back from f32 as it was (%d %d do not)", f16, bf16);
    for (uint64_t k = 0; k < 200000; k++) {
        hl_random r = hl_philox(7, HL_STREAM_TEST, k, 0);
        float f = ldexpf((float)(int32_t)r.v[0] * 0x1p-31f, (int)(r.v[1] % 44) - 28),
              half_way = hl_f32_from_f16((uint16_t)r.v[2]);
        if (isfinite(half_way) && fabsf(half_way) < 60000) { /* exactly between two neighbours */
            f = r.v[3] % 2 ? f : (half_way + hl_f32_from_f16((uint16_t)(r.v[2] + 1))) / 2;
        }
        if (!isfinite(f) || fabsf(f) >= 65520) continue;
        far16 += !nearest16(f, hl_f16_from_f32(f), hl_f32_from_f16);
        farb += !nearest16(f, hl_bf16_from_f32(f), hl_f32_from_bf16);
    }
    tap_ok(far16 == 0 && farb == 0, "rounding is to nearest, ties to even (%d %d are not)", far16, farb);
    tap_ok(hl_f16_from_f32(65519.99f) == 0x7bff && hl_f16_from_f32(65520) == 0x7c00 && hl_f16_from_f32(-1e9f) == 0xfc00,
           "f16 overflows to infinity from 65520 on");
    tap_ok(hl_f16_from_f32(0x1p-24f) == 1 && hl_f16_from_f32(0x1p-25f) == 0 && hl_f16_from_f32(0x1.8p-25f) == 1,
           "f16's smallest numbers");
}

int main(void)
{
    test_random();
    test_invalid();
    test_sizes();
    test_makers();
    test_half();
    return tap_done();
}
