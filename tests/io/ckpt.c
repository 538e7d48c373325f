/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint files: what goes in comes out, bit for bit; damage is found; a failed, interrupted or killed
 * write leaves the old file alone. */
#include "tests/io/iotest.h"
#include "io/h5out.h"
#include "io/io.h"
#include "base/file.h"

#include <sys/resource.h>
#include <sys/wait.h>

enum { N = 3000 };

static void fill(float *w, double *m, int version)
{
    for (int i = 0; i < N; i++) {
        w[i] = (float)hl_rng_normal(1, HL_STREAM_TEST, (uint64_t)i, (uint64_t)version);
        m[i] = hl_rng_normal(2, HL_STREAM_TEST, (uint64_t)i, (uint64_t)version);
    }
}

static halo_status put_all(hl_ckpt *f, const float *w, const double *m, int version)
{
    HL_TRY(hl_ckpt_put(f, "weights/conv1/w", HALO_F32, 5, (int64_t[]){10, 3, 10, 5, 2}, w));
    HL_TRY(hl_ckpt_put(f, "optimizer/m/conv1/w", HALO_F64, 1, (int64_t[]){N}, m));
    HL_TRY(hl_ckpt_put(f, "weights/scalar", HALO_F32, 0, NULL, w));
    HL_TRY(hl_ckpt_put(f, "weights/empty", HALO_F32, 2, (int64_t[]){0, 4}, w));
    HL_TRY(hl_ckpt_put_int(f, "training/step", INT64_MAX - version));
    HL_TRY(hl_ckpt_put_number(f, "training/scale", 0.1 + version));
    HL_TRY(hl_ckpt_put_int(f, "top", version));
    return hl_ckpt_put_string(f, "config", "network: cosmoflow\nsize: 64 # \xc3\xa9\n");
}

static halo_status save(halo_context *ctx, const char *path, int version)
{
    static float w[N];
    static double m[N];
    hl_ckpt *f = NULL;
    fill(w, m, version);
    HL_TRY(hl_ckpt_create(ctx, path, &f));
    halo_status st = put_all(f, w, m, version), st2 = hl_ckpt_close(f, st == HALO_OK);
    return st != HALO_OK ? st : st2;
}

/* HALO_OK and *same when the file reads; *same tells whether it is `version`. */
static halo_status load(halo_context *ctx, const char *path, int version, bool *same)
{
    static float w[N], w2[N], one;
    static double m[N], m2[N], scale;
    int64_t step = 0, top = -1;
    char *config = NULL;
    hl_ckpt *f = NULL;
    fill(w, m, version);
    HL_TRY(hl_ckpt_open(ctx, path, &f));
    halo_status st = HALO_OK;
    HL_GOTO(st, hl_ckpt_get(f, "weights/conv1/w", HALO_F32, 5, (int64_t[]){10, 3, 10, 5, 2}, w2), done);
    HL_GOTO(st, hl_ckpt_get(f, "optimizer/m/conv1/w", HALO_F64, 1, (int64_t[]){N}, m2), done);
    HL_GOTO(st, hl_ckpt_get(f, "weights/scalar", HALO_F32, 0, NULL, &one), done);
    HL_GOTO(st, hl_ckpt_get(f, "weights/empty", HALO_F32, 2, (int64_t[]){0, 4}, NULL), done);
    HL_GOTO(st, hl_ckpt_get_int(f, "training/step", &step), done);
    HL_GOTO(st, hl_ckpt_get_number(f, "training/scale", &scale), done);
    HL_GOTO(st, hl_ckpt_get_int(f, "top", &top), done);
    HL_GOTO(st, hl_ckpt_get_string(f, "config", &config), done);
    *same = memcmp(w, w2, sizeof(w)) == 0 && memcmp(m, m2, sizeof(m)) == 0 && one == w[0] &&
            step == INT64_MAX - version && scale == 0.1 + version && top == version &&
            strcmp(config, "network: cosmoflow\nsize: 64 # \xc3\xa9\n") == 0;
done:
    free(config);
    hl_ckpt_close(f, false);
    return st;
}

static bool is_version(halo_context *ctx, const char *path, int version)
{
    bool same = false;
    return load(ctx, path, version, &same) == HALO_OK && same;
}

static halo_status collect(void *user, const char *name, halo_dtype type, int ndim, const int64_t *dim)
{
    char *out = user;
    sprintf(out + strlen(out), "%s:%d:%d:%d ", name, (int)type, ndim, ndim ? (int)dim[0] : 0);
    return HALO_OK;
}

static void round_trip(halo_context *ctx, const char *path)
{
    char list[512] = "";
    hl_ckpt *f = NULL;
    MUST(save(ctx, path, 1));
    tap_ok(is_version(ctx, path, 1), "tensors, integers, numbers and texts come back bit for bit");
    MUST(hl_ckpt_open(ctx, path, &f));
    MUST(hl_ckpt_list(f, collect, list));
    tap_ok(strcmp(list, "optimizer/m/conv1/w:2:1:3000 weights/conv1/w:1:5:10 weights/empty:1:2:0 "
                        "weights/scalar:1:0:0 ") == 0,
           "listed: %s", list);
    tap_ok(hl_ckpt_has(f, "weights/conv1/w") && hl_ckpt_has(f, "training/step") && hl_ckpt_has(f, "top") &&
               hl_ckpt_has(f, "config") && !hl_ckpt_has(f, "weights/conv2/w") &&
               !hl_ckpt_has(f, "training/epoch") && !hl_ckpt_has(f, "no/where/at/all"),
           "what is there is known to be there, and nothing else");
    tap_ok(hl_ckpt_verify(f) == HALO_OK, "and verifies");
    float w[N];
    int64_t step;
    char *text;
    fails_with(ctx, hl_ckpt_get(f, "weights/conv1/w", HALO_F32, 5, (int64_t[]){10, 3, 10, 2, 5}, w),
               HALO_ERR_SHAPE, "[10, 3, 10, 5, 2] float32", "[10, 3, 10, 2, 5]",
               "another shape is refused, both are named");
    fails_with(ctx, hl_ckpt_get(f, "optimizer/m/conv1/w", HALO_F32, 1, (int64_t[]){N}, w), HALO_ERR_SHAPE,
               "float64", "float32", "another type too");
    fails_with(ctx, hl_ckpt_get(f, "weights/conv9/w", HALO_F32, 1, (int64_t[]){N}, w), HALO_ERR_FORMAT, path,
               "weights/conv9/w", "a missing tensor");
    fails_with(ctx, hl_ckpt_get_int(f, "training/epoch", &step), HALO_ERR_FORMAT, path, "epoch",
               "a missing integer");
    fails_with(ctx, hl_ckpt_get_string(f, "nothing", &text), HALO_ERR_FORMAT, path, "nothing",
               "a missing text");
    hl_ckpt_close(f, false);
}

static void not_committed(halo_context *ctx, const char *path)
{
    hl_ckpt *f = NULL;
    MUST(hl_ckpt_create(ctx, path, &f));
    MUST(hl_ckpt_put_int(f, "top", 9));
    hl_ckpt_close(f, false);
    tap_ok(is_version(ctx, path, 1) && leftovers() == 0,
           "a checkpoint that is given up leaves the old one and nothing else");
    MUST(save(ctx, path, 2));
    tap_ok(is_version(ctx, path, 2), "a new one replaces it");
    fails_with(ctx, hl_ckpt_create(ctx, in_dir("no/such/dir.h5"), &f), HALO_ERR_IO, "no/such/dir.h5",
               "No such file", "a directory that is not there");
}

/* Each limit on the file's size ends the writing somewhere else: HDF5's header, a tensor, an attribute, the
 * closing. */
static void full_disk(halo_context *ctx, const char *path)
{
    struct rlimit old, limit;
    int failures = 0, wrong = 0, tried = 0;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    for (rlim_t most = 0; most <= 40000; most += most < 4000 ? 400 : 4000) {
        limit = (struct rlimit){most, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        iotest_errors = 0;
        halo_status st = save(ctx, path, 3); /* 36 KB of tensors */
        setrlimit(RLIMIT_FSIZE, &old);
        tried++;
        if (st == HALO_OK) continue;
        failures++;
        if (st != HALO_ERR_IO || !strstr(halo_error_message(ctx), path) ||
            !strstr(halo_error_message(ctx), strerror(EFBIG)) || leftovers() != 0 ||
            !is_version(ctx, path, 2))
            wrong++;
    }
    tap_note("last: %s", halo_error_message(ctx));
    tap_ok(
        failures >= 15 && wrong == 0,
        "no room after 0 to 40000 bytes: %d of %d writes fail, name file and cause, keep the old checkpoint",
        failures, tried);
    MUST(save(ctx, path, 2));
    tap_ok(is_version(ctx, path, 2), "with room it works again, in the same process");
    iotest_errors = 0;
}

static void save_over_and_over(halo_context *ctx, const char *path, int saved)
{
    for (int v = 1;; v++)
        if (save(ctx, path, 100 + v % 50) != HALO_OK || write(saved, "", 1) != 1) _exit(1);
}

static bool is_whole(halo_context *ctx, const char *path)
{
    hl_ckpt *f = NULL;
    bool whole = false;
    for (int v = 100; v < 150 && !whole; v++) whole = is_version(ctx, path, v);
    if (!whole || hl_ckpt_open(ctx, path, &f) != HALO_OK) return false;
    whole = hl_ckpt_verify(f) == HALO_OK;
    hl_ckpt_close(f, false);
    return whole;
}

/* Children save over and over, and are killed at random moments after their first save. */
static void killed(halo_context *ctx, const char *path)
{
    int bad = 0;
    MUST(save(ctx, path, 100));
    for (int i = 0; i < 25; i++) {
        int saved[2];
        char byte;
        if (pipe(saved) != 0) tap_bail("no pipe");
        pid_t child = fork();
        if (child == 0) save_over_and_over(ctx, path, saved[1]);
        close(saved[1]);
        bad += read(saved[0], &byte, 1) != 1;
        usleep((useconds_t)hl_rng_below(1, HL_STREAM_TEST, (uint64_t)i, 9, 8000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(saved[0]);
        bad += !is_whole(ctx, path) || is_version(ctx, path, 100);
    }
    tap_ok(bad == 0, "killed 25 times in the middle of saving: always one whole checkpoint, and a new one");
}

/* Without fsync: 600 of these are written. */
static void write_copy(const char *path, const char *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) tap_bail("cannot write '%s'", path);
}

/* Any flipped bit, or any cut, is met with an error, or is in bytes that nobody reads. */
static void damaged(halo_context *ctx, const char *path)
{
    char *data = NULL;
    size_t n = 0;
    const char *copy = in_dir("damaged.h5");
    int found = 0, harmless = 0, wrong = 0;
    MUST(save(ctx, path, 2));
    MUST(hl_file_read(ctx, path, 1 << 20, &data, &n));
    for (int i = 0; i < 600; i++) {
        size_t at = (size_t)hl_rng_below(4, HL_STREAM_TEST, (uint64_t)i, 0, i % 2 ? 4096 : n);
        char kept = data[at];
        data[at] = (char)(kept ^ (1 << i % 8));
        bool same = false;
        write_copy(copy, data, n);
        if (load(ctx, copy, 2, &same) != HALO_OK) {
            found++;
            if (!strstr(halo_error_message(ctx), copy)) wrong++;
        } else if (same)
            harmless++;
        else
            wrong++;
        data[at] = kept;
    }
    tap_ok(wrong == 0 && found > 300,
           "a flipped bit: %d of 600 found and the file named, %d harmless, %d read wrongly", found, harmless,
           wrong);
    int opened = 0;
    for (size_t cut = 0; cut < n; cut += cut < 2048 ? 101 : 997) {
        bool same = false;
        write_copy(copy, data, cut);
        opened += load(ctx, copy, 2, &same) == HALO_OK;
    }
    tap_ok(opened == 0, "a cut file is refused wherever it was cut: '%s'", halo_error_message(ctx));
    free(data);
    iotest_errors = 0;
}

/* One bit in the middle of the weights. */
static void damaged_tensor(halo_context *ctx, const char *path)
{
    static float w[N];
    static double m[N];
    char *data = NULL;
    size_t n = 0;
    const char *copy = in_dir("damaged.h5");
    bool same;
    MUST(save(ctx, path, 2));
    MUST(hl_file_read(ctx, path, 1 << 20, &data, &n));
    fill(w, m, 2);
    char *at = memmem(data, n, w, sizeof(w));
    tap_ok(at != NULL, "the weights are in the file as they are in memory");
    if (at) at[100] ^= 1;
    MUST(hl_file_write(ctx, copy, data, n));
    free(data);
    fails_with(ctx, load(ctx, copy, 2, &same), HALO_ERR_FORMAT, copy, "'/weights/conv1/w' is damaged",
               "a damaged tensor is named");
}

static void foreign(halo_context *ctx)
{
    hl_ckpt *f = NULL;
    const char *path = in_dir("text.h5");
    MUST(hl_file_write(ctx, path, "network: cosmoflow\n", 19));
    fails_with(ctx, hl_ckpt_open(ctx, path, &f), HALO_ERR_FORMAT, "text.h5", "not an HDF5 file",
               "a text file");
    fails_with(ctx, hl_ckpt_open(ctx, in_dir("none.h5"), &f), HALO_ERR_IO, "none.h5", "No such file",
               "no file");
    fails_with(ctx, hl_ckpt_open(ctx, iotest_dir, &f), HALO_ERR_IO, iotest_dir, "directory", "a directory");
    int64_t ext[4] = {1, 2, 2, 2};
    float x[8] = {0};
    hl_volumes *v;
    MUST(hl_volumes_create(ctx, path, ext, &(hl_target){.name = "density"}, &v));
    MUST(hl_volumes_add(v, "a", NULL, 0, NULL));
    MUST(hl_volumes_put(v, (int64_t[4]){0}, ext, x));
    MUST(hl_volumes_close(v, true));
    fails_with(ctx, hl_ckpt_open(ctx, path, &f), HALO_ERR_FORMAT, "text.h5", "not a halo checkpoint",
               "an HDF5 file of something else");
}

static void put_plain(halo_context *ctx, const char *path, bool of_a_run)
{
    const hl_number int64 = {'i', 8};
    const char *word = "halo checkpoint";
    hl_h5_out *out = NULL;
    MUST(hl_h5_create(ctx, path, &out));
    MUST(hl_h5_put_attr_strings(out, "/", "halo_file", -1, &word));
    MUST(hl_h5_put_attr(out, "/", "halo_file_version", int64, 0, &(int64_t){1}));
    if (of_a_run) MUST(hl_h5_put_attr(out, "/", "format", int64, 0, &(int64_t){1}));
    MUST(hl_h5_put(out, "/parameters/fc/bias", (hl_number){'f', 4}, 1, (int64_t[]){3}, (float[]){1, 2, 3}));
    MUST(hl_h5_finish(out, true));
}

/* Parameters from elsewhere need no checksums; a run's own do. */
static void without_checksums(halo_context *ctx)
{
    const char *path = in_dir("plain.h5");
    float bias[3] = {0};
    hl_ckpt *f = NULL;
    put_plain(ctx, path, false);
    MUST(hl_ckpt_open(ctx, path, &f));
    tap_ok(hl_ckpt_get(f, "parameters/fc/bias", HALO_F32, 1, (int64_t[]){3}, bias) == HALO_OK && bias[0] == 1 && bias[2] == 3,
           "a tensor that another program wrote has no checksum, and is read");
    MUST(hl_ckpt_close(f, false));
    put_plain(ctx, path, true);
    MUST(hl_ckpt_open(ctx, path, &f));
    fails_with(ctx, hl_ckpt_get(f, "parameters/fc/bias", HALO_F32, 1, (int64_t[]){3}, bias), HALO_ERR_FORMAT, path, "no checksum",
               "one of a run that has lost its checksum");
    MUST(hl_ckpt_close(f, false));
}

int main(void)
{
    halo_context *ctx = iotest_begin("ckpt");
    char path[1024];
    snprintf(path, sizeof(path), "%s", in_dir("last.h5"));
    round_trip(ctx, path);
    not_committed(ctx, path);
    full_disk(ctx, path);
    damaged(ctx, path);
    damaged_tensor(ctx, path);
    foreign(ctx);
    without_checksums(ctx);
    killed(ctx, path);
    return iotest_end(ctx);
}
