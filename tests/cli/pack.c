/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c -- pack FIELDS TARGETS OUT N C D H W T: raw float [N C D H W] and [N T] into a file of halo's own layout. */
#include "io/writer.h"
#include "tests/check.h"

static float *take(const char *path, int64_t n)
{
    float *x = check_alloc(n, sizeof(*x));
    FILE *f = fopen(path, "rb");
    if (!f || fread(x, sizeof(*x), (size_t)n, f) != (size_t)n || fgetc(f) != EOF) {
        fprintf(stderr, "pack: '%s' has not %" PRId64 " numbers\n", path, n);
        exit(1);
    }
    fclose(f);
    return x;
}

int main(int argc, char **argv)
{
    if (argc != 10) return 2;
    int64_t n[6], cells = 1;
    for (int i = 0; i < 6; i++) n[i] = atoll(argv[4 + i]);
    for (int i = 1; i < 5; i++) cells *= n[i];
    hl_writer_options o = {.ext = {n[1], n[2], n[3], n[4]}, .dtype = HALO_F32, .targets = (int)n[5]};
    float *x = take(argv[1], n[0] * cells), *y = take(argv[2], n[0] * n[5]);
    halo_context *ctx;
    hl_writer *w;
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    check_status(ctx, hl_writer_create(ctx, argv[3], &o, &w), "file");
    for (int64_t i = 0; i < n[0]; i++) check_status(ctx, hl_writer_add(w, x + i * cells, y + i * n[5], -1), "sample");
    check_status(ctx, hl_writer_close(w, true), "file");
    halo_context_destroy(ctx);
    free(x);
    free(y);
    return 0;
}
