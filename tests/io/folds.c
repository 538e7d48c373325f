/* SPDX-License-Identifier: Apache-2.0 */
/* Folds: nobody is in two, all are in one, and names alone decide; some samples of a source; several arrays as channels of a sample. */
#include "tests/io/npytest.h"
#include "io/folds.h"

enum { PATIENTS = 7, SCANS = 17 };

static void write_scan(int i)
{
    char name[64];
    npy_form f = {.descr = "<i2", .version = 1, .ndim = 3, .dim = {2, 2, 2}, .offset = 8 * i};
    snprintf(name, sizeof(name), "p/case%d_scan%02d.npy", i % PATIENTS, i);
    write_npy(in_dir(name), &f);
}

static hl_source *open_scans(halo_context *ctx)
{
    static char path[1024];
    hl_source *s = NULL;
    hl_array_options a = {.x = "", .y = "", .y_from = "", .table = ""};
    snprintf(path, sizeof(path), "%s", in_dir("p"));
    MUST(hl_source_open(ctx, &(hl_source_options){.path = path, .array = &a}, &s));
    return s;
}

/* The scans of a fold, as bits; by what is in them, not by their names. */
static unsigned scans_of(halo_context *ctx, int64_t count, int64_t use, const char *patient, bool held_out)
{
    hl_source *s = open_scans(ctx);
    unsigned bits = 0;
    MUST(hl_fold_open(s, &(hl_folds){.count = count, .use = use, .patient = patient}, held_out, &s));
    for (int64_t i = 0; i < s->info.samples; i++) {
        int16_t x[8];
        MUST(hl_source_read(s, i, NULL, x, NULL, NULL));
        bits |= 1u << x[0] / 8;
    }
    hl_source_close(s);
    return bits;
}

static unsigned patients_of(unsigned scans)
{
    unsigned bits = 0;
    for (int i = 0; i < SCANS; i++)
        if (scans >> i & 1) bits |= 1u << i % PATIENTS;
    return bits;
}

static void folds(halo_context *ctx)
{
    unsigned all = (1u << SCANS) - 1, together = 0, fewest = 99, most = 0;
    bool apart = true, rest = true, once = true;
    for (int use = 0; use < 3; use++) {
        unsigned held = scans_of(ctx, 3, use, "_", true), trained = scans_of(ctx, 3, use, "_", false), n = (unsigned)__builtin_popcount(patients_of(held));
        once = once && !(together & held);
        rest = rest && (held | trained) == all && !(held & trained);
        apart = apart && !(patients_of(held) & patients_of(trained));
        together |= held;
        fewest = n < fewest ? n : fewest;
        most = n > most ? n : most;
    }
    tap_ok(together == all && once, "every scan is held out in one fold");
    tap_ok(rest, "and trained on in the others");
    tap_ok(apart, "no patient is in both");
    tap_ok(most - fewest <= 1, "folds differ by a patient at most: %u to %u", fewest, most);
    unsigned before = patients_of(scans_of(ctx, 3, 0, "_", true));
    write_scan(SCANS);
    tap_ok((patients_of(scans_of(ctx, 3, 0, "_", true)) & 0x7f) == before, "another scan of a patient changes nothing");
    if (remove(in_dir("p/case3_scan17.npy")) != 0) tap_bail("no such file");
    tap_ok(__builtin_popcount(scans_of(ctx, 17, 0, "", true)) == 1, "without a rule each case is a patient");
}

static void refusals(halo_context *ctx)
{
    hl_source *s = open_scans(ctx), *fold = NULL;
    fails_with(ctx, hl_fold_open(s, &(hl_folds){.count = 8, .patient = "_"}, true, &fold), HALO_ERR_USAGE, "'data.folds.count' is 8, but there are 7 patients", "17 samples", "more folds than patients");
    fails_with(ctx, hl_fold_open(s, &(hl_folds){.count = 3, .patient = "-"}, true, &fold), HALO_ERR_USAGE, "'data.folds.patient' is '-'", "in no name such as 'case0_scan00", "a rule that finds nothing");
    hl_source_close(s);
}

static void channels(halo_context *ctx)
{
    static const char *const names[] = {"t1", "t2", "flair"};
    npy_form form[3];
    hl_source *s = NULL;
    float x[3 * 8];
    for (int k = 0; k < 3; k++) form[k] = (npy_form){.descr = k == 1 ? "<f4" : "<i2", .fortran = k == 2, .version = 1, .ndim = 3, .dim = {2, 2, 2}, .offset = 100 * k};
    hl_str z = npz_text(3, names, form, false, false);
    put_file(in_dir("one.npz"), z.s, z.len);
    hl_str_free(&z);
    hl_array_options a = {.x = "t2, flair,t1", .y = "", .y_from = "", .table = ""};
    MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("one.npz"), .array = &a}, &s));
    tap_ok(s->info.ext[0] == 3 && s->info.dtype == HALO_F32, "several arrays of a file are channels of a sample, of any types: %s", s->info.description);
    MUST(hl_source_read(s, 0, NULL, x, NULL, NULL));
    bool good = true;
    for (int i = 0; i < 8; i++) good = good && x[i] == (float)(100 + i) && x[8 + i] == (float)(200 + i) && x[16 + i] == (float)i;
    tap_ok(good, "in the order in which they are named");
    memset(x, 0, sizeof(x));
    hl_cells part = {.lo = {1, 0, 1}, .ext = {1, 2, 1}};
    MUST(hl_source_read(s, 0, &part, x, NULL, NULL));
    tap_ok(x[0] == 105 && x[1] == 107 && x[2] == 205 && x[3] == 207 && x[4] == 5 && x[5] == 7, "and parts of them");
    hl_source_close(s);
    s = NULL;
    MUST(hl_source_open(ctx, &(hl_source_options){.path = in_dir("one.npz"), .array = &a, .channels = 2}, &s));
    MUST(hl_source_read(s, 0, NULL, x, NULL, NULL));
    tap_ok(s->info.ext[0] == 2 && x[15] == 207, "the first ones where fewer are wanted");
    hl_source_close(s);
    s = NULL;
    form[1].dim[2] = 3;
    z = npz_text(3, names, form, false, false);
    put_file(in_dir("bad.npz"), z.s, z.len);
    hl_str_free(&z);
    a.x = "t1,t2";
    fails_with(ctx, hl_source_open(ctx, &(hl_source_options){.path = in_dir("bad.npz"), .array = &a}, &s), HALO_ERR_SHAPE, "member 't2' is [2, 2, 3] float32, and cannot be a channel of 'bad.npz'", "[2, 2, 2]", "a channel of other extents");
}

int main(void)
{
    halo_context *ctx = iotest_begin("folds");
    if (mkdir(in_dir("p"), 0777) != 0) tap_bail("cannot make a directory");
    for (int i = 0; i < SCANS; i++) write_scan(i);
    folds(ctx);
    refusals(ctx);
    channels(ctx);
    return iotest_end(ctx);
}
