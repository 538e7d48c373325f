/* SPDX-License-Identifier: Apache-2.0 */
/* regions.c -- strided parts of memory against loops over every element, and messages that are sent again and again over a transport that cannot prepare them. */
#include "base/rng.h"
#include "comm/region.h"
#include "tests/check.h"
#include "tests/comm/fabric.h"
#include "tests/tap.h"

static uint64_t drawn;

static int64_t draw(int64_t n) { return (int64_t)(hl_rng_uniform(9, HL_STREAM_TEST, drawn++, 0) * (double)n); }

/* Rows that do not overlap: strides grow from the last dimension to the first, some of them without gaps. */
static hl_region draw_region(int64_t *end)
{
    hl_region r = {.offset = draw(5), .run = draw(4) == 0 ? 17 + draw(9) : 1 + draw(4)};
    int64_t at = r.run;
    for (int k = HL_REGION_DIMS - 1; k >= 0; k--) {
        r.count[k] = draw(3) == 0 ? 1 : 1 + draw(4);
        r.stride[k] = at + (draw(2) ? draw(4) : 0);
        at = r.stride[k] * r.count[k];
    }
    *end = r.offset + at;
    return r;
}

/* Places of the elements, in order. */
static int64_t *places(const hl_region *r)
{
    int64_t *at = check_alloc(hl_region_elements(r), 8), n = 0, i[5];
    for (i[0] = 0; i[0] < r->count[0]; i[0]++)
        for (i[1] = 0; i[1] < r->count[1]; i[1]++)
            for (i[2] = 0; i[2] < r->count[2]; i[2]++)
                for (i[3] = 0; i[3] < r->count[3]; i[3]++)
                    for (i[4] = 0; i[4] < r->count[4]; i[4]++)
                        for (int64_t k = 0; k < r->run; k++, n++) {
                            at[n] = r->offset + k;
                            for (int d = 0; d < HL_REGION_DIMS; d++) at[n] += i[d] * r->stride[d];
                        }
    return at;
}

static double get(const void *p, halo_dtype type, int64_t i) { return type == HALO_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i]; }

static void put(void *p, halo_dtype type, int64_t i, double v)
{
    if (type == HALO_F64)
        ((double *)p)[i] = v;
    else
        ((float *)p)[i] = (float)v;
}

static bool agrees(halo_dtype type)
{
    int64_t end;
    hl_region r = draw_region(&end), m = hl_region_merged(&r);
    int64_t n = hl_region_elements(&r), *at = places(&r), *same = places(&m);
    bool good = hl_region_elements(&m) == n && memcmp(at, same, (size_t)n * 8) == 0;
    void *from = check_alloc(end, 8), *packed = check_alloc(n, 8), *to = check_alloc(end, 8), *want = check_alloc(end, 8);
    for (int64_t i = 0; i < end; i++) put(from, type, i, (double)(i * i % 101));
    hl_region_pack(&m, type, from, packed);
    for (int64_t i = 0; i < n; i++) good = good && get(packed, type, i) == get(from, type, at[i]);
    for (int add = 0; add < 2; add++) {
        hl_region_unpack(&m, type, add, packed, to);
        for (int64_t i = 0; i < n; i++) put(want, type, at[i], (add ? get(want, type, at[i]) : 0) + get(packed, type, i));
        for (int64_t i = 0; i < end; i++) good = good && get(to, type, i) == get(want, type, i);
    }
    free(at), free(same), free(from), free(packed), free(to), free(want);
    return good;
}

static void lasting(void)
{
    fabric *f = fabric_create(2, 3, 1);
    hl_lasting send, recv;
    int out = 0, in = 0;
    bool good = true, done;
    check_status(NULL, hl_lasting_create(fabric_rank(f, 0), &send, true, &out, sizeof(out), 1, 5), "send");
    check_status(NULL, hl_lasting_create(fabric_rank(f, 1), &recv, false, &in, sizeof(in), 0, 5), "receive");
    check_status(NULL, hl_lasting_test(fabric_rank(f, 1), &recv, &done), "test");
    good = done; /* not on its way */
    for (int k = 1; k < 9; k++) {
        out = k;
        check_status(NULL, hl_lasting_start(fabric_rank(f, 1), &recv), "start");
        check_status(NULL, hl_lasting_start(fabric_rank(f, 0), &send), "start");
        for (done = false; !done;) check_status(NULL, hl_lasting_test(fabric_rank(f, 1), &recv, &done), "test");
        check_status(NULL, hl_lasting_test(fabric_rank(f, 0), &send, &done), "test");
        good = good && done && in == k;
    }
    hl_lasting_destroy(fabric_rank(f, 0), &send);
    hl_lasting_destroy(fabric_rank(f, 1), &recv);
    tap_ok(good && fabric_left(f) == 0, "messages that are sent again and again, over a transport that cannot prepare them");
    fabric_destroy(f);
}

int main(void)
{
    int bad[2] = {0, 0};
    for (int k = 0; k < 400; k++) bad[k % 2] += !agrees(k % 2 ? HALO_F64 : HALO_F32);
    tap_ok(bad[0] == 0, "200 random regions of f32 are merged, packed, unpacked and added as element by element (%d are not)", bad[0]);
    tap_ok(bad[1] == 0, "and 200 of f64 (%d are not)", bad[1]);
    hl_region whole = {.run = 3, .count = {1, 4, 1, 5, 2}, .stride = {7, 30, 1, 6, 3}}, m = hl_region_merged(&whole);
    tap_ok(m.run == 120 && m.count[4] == 1 && m.count[3] == 1, "a region without gaps is one run (%d)", (int)m.run);
    lasting();
    return tap_done();
}
