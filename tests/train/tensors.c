/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.c -- tensors FILE: a line for each tensor of a checkpoint: its name and a number made of all its bits. For scripts that compare checkpoints. */
#include "tests/check.h"

#include "io/io.h"
#include "tensor/operand.h"

typedef struct list { halo_context *ctx; hl_ckpt *file; } list;

static halo_status show(void *user, const char *name, halo_dtype type, int ndim, const int64_t *dim)
{
    const list *l = user;
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= dim[i];
    size_t bytes = (size_t)n * hl_dtype_size(type);
    unsigned char *data = check_alloc((int64_t)bytes + 1, 1);
    uint64_t sum = 14695981039346656037u; /* FNV-1a, 64 bits */
    check_status(l->ctx, hl_ckpt_get(l->file, name, type, ndim, dim, data), name);
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ data[i]) * 1099511628211u;
    printf("%s %016" PRIx64 "\n", name, sum);
    free(data);
    return HALO_OK;
}

int main(int argc, char **argv)
{
    list l = {0};
    if (argc != 2) return 2;
    check_status(NULL, halo_context_create(NULL, &l.ctx), "context");
    check_status(l.ctx, hl_ckpt_open(l.ctx, argv[1], &l.file), argv[1]);
    check_status(l.ctx, hl_ckpt_list(l.file, show, &l), argv[1]);
    (void)hl_ckpt_close(l.file, false);
    halo_context_destroy(l.ctx);
    return 0;
}
