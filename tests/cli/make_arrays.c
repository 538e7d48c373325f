/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_arrays.c -- one data set, as others write it and as halo does:
 *
 *     make_arrays DIR     DIR/cubes/c_00.npy ... [8, 8, 8, 2], in both byte and memory orders, and DIR/params.txt; DIR/set.npz: vol [12, 2, 8, 8, 8], stored, and y [12, 2];
 *                         DIR/halo.h5: x and y, with the ranges of the first 8 samples; DIR/more/c_12.npy ...: two without targets
 */
#include "tests/io/npytest.h"
#include "io/writer.h"

enum { SAMPLES = 12, TRAINING = 8, SIDE = 8, CELLS = SIDE * SIDE * SIDE };

/* What npytest.h writes, in the order of C D H W. */
static npy_form form_of(int sample)
{
    return (npy_form){.descr = sample % 2 ? ">f4" : "<f4", .fortran = sample % 3 == 1, .version = 1, .ndim = 4, .dim = {SIDE, SIDE, SIDE, 2}, .offset = 37 * sample};
}

static void fill(int sample, float *x)
{
    npy_form f = form_of(sample);
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < CELLS; i++) x[c * CELLS + i] = (float)npy_value(&f, 2 * i + c);
}

static void parameters(int sample, double v[2])
{
    v[0] = 0.1 + 0.03 * ((5 * sample) % 12);
    v[1] = 0.6 + 0.037 * ((7 * sample) % 12);
}

static void write_table(const char *dir)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/params.txt", dir);
    FILE *f = fopen(path, "w");
    if (!f) tap_bail("cannot write '%s'", path);
    fprintf(f, "# id Omega_m sigma_8\n");
    for (int s = 0; s < SAMPLES; s++) {
        double v[2];
        parameters(s, v);
        fprintf(f, "run%d %.17g %.17g\n", s, v[0], v[1]);
    }
    fclose(f);
}

/* `now` is what stands in place of `before`: its checksum, in the member's header and in the table, too. */
static void patch_checksum(hl_str *archive, const hl_str *before, char *now)
{
    const hl_str member = {.s = now, .len = before->len};
    uint32_t old = zip_crc(before), crc = zip_crc(&member);
    for (char *at = archive->s; (at = memmem(at, archive->len - (size_t)(at - archive->s), &old, sizeof(old))); at += sizeof(crc)) memcpy(at, &crc, sizeof(crc));
}

/* An NPZ file whose members npytest.h cannot number: its arrays are patched after the headers. */
static void write_npz(const char *dir)
{
    static const char *const name[] = {"vol", "y"};
    const npy_form form[] = {{.descr = "<f4", .version = 1, .ndim = 5, .dim = {SAMPLES, 2, SIDE, SIDE, SIDE}}, {.descr = "<f8", .version = 1, .ndim = 2, .dim = {SAMPLES, 2}}};
    hl_str s = npz_text(2, name, form, false, false), first = npy_text(&form[0]), second = npy_text(&form[1]);
    char path[1024], *data = memmem(s.s, s.len, first.s, first.len), *y = memmem(s.s, s.len, second.s, second.len);
    if (!data || !y) tap_bail("no members");
    char *members[] = {data, y};
    data += first.len - sizeof(float) * SAMPLES * 2 * CELLS;
    y += second.len - sizeof(double) * SAMPLES * 2;
    for (int i = 0; i < SAMPLES; i++) {
        static float x[2 * CELLS];
        double v[2];
        fill(i, x);
        parameters(i, v);
        memcpy(data + (size_t)i * sizeof(x), x, sizeof(x));
        memcpy(y + (size_t)i * sizeof(v), v, sizeof(v));
    }
    patch_checksum(&s, &first, members[0]);
    patch_checksum(&s, &second, members[1]);
    snprintf(path, sizeof(path), "%s/set.npz", dir);
    put_file(path, s.s, s.len);
    hl_str_free(&s), hl_str_free(&first), hl_str_free(&second);
}

static void write_halo(const char *dir)
{
    halo_context *ctx;
    hl_target t[2] = {{.name = "Omega_m", .mean = NAN, .std = NAN}, {.name = "sigma_8", .mean = NAN, .std = NAN}};
    char path[1024];
    hl_writer *w;
    double v[2];
    if (halo_context_create(NULL, &ctx) != HALO_OK) tap_bail("no context");
    for (int k = 0; k < 2; k++) {
        t[k].low = INFINITY, t[k].high = -INFINITY;
        for (int s = 0; s < TRAINING; s++) {
            parameters(s, v);
            t[k].low = fmin(t[k].low, v[k]);
            t[k].high = fmax(t[k].high, v[k]);
        }
    }
    snprintf(path, sizeof(path), "%s/halo.h5", dir);
    hl_writer_options o = {.ext = {2, SIDE, SIDE, SIDE}, .dtype = HALO_F32, .targets = 2, .target = t};
    MUST(hl_writer_create(ctx, path, &o, &w));
    for (int s = 0; s < SAMPLES; s++) {
        static float x[2 * CELLS];
        float y[2];
        fill(s, x);
        parameters(s, v);
        for (int k = 0; k < 2; k++) y[k] = (float)((v[k] - (t[k].low + t[k].high) / 2) / ((t[k].high - t[k].low) / 2));
        MUST(hl_writer_add(w, x, y, s));
    }
    MUST(hl_writer_close(w, true));
    halo_context_destroy(ctx);
}

int main(int n, char **arg)
{
    char path[1024];
    if (n != 2) return 2;
    hl_io_own_process();
    for (int s = 0; s < SAMPLES + 2; s++) {
        npy_form f = form_of(s);
        snprintf(path, sizeof(path), "%s/%s", arg[1], s < SAMPLES ? "cubes" : "more");
        mkdir(path, 0777);
        snprintf(path, sizeof(path), "%s/%s/c_%02d.npy", arg[1], s < SAMPLES ? "cubes" : "more", s);
        write_npy(path, &f);
    }
    write_table(arg[1]);
    write_npz(arg[1]);
    write_halo(arg[1]);
    return 0;
}
