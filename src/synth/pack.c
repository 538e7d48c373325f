/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c -- one file instead of thousands. Counts of particles are small whole numbers, so a byte each is
 * mostly enough, and one file spares the 10 KiB that HDF5 spends on the structure of each.
 */
#include "synth/pack.h"

#include <sys/stat.h>

#include "io/convert.h"
#include "io/io.h"
#include "io/writer.h"

typedef struct packing {
    halo_context *ctx;
    hl_source *source;
    int64_t cells; /* of a sample, channels included */
    void *raw;     /* [cells] as the source delivers */
    float *value;  /* [cells] */
    void *narrow;  /* [cells] as written */
    float *y;
    halo_dtype type;
} packing;

static halo_status read_sample(packing *p, int64_t sample)
{
    HL_TRY(hl_source_read(p->source, sample, NULL, p->raw, NULL, p->y));
    hl_to_float(p->source->info.dtype, p->raw, p->value, p->cells);
    return HALO_OK;
}

/* The smallest type for all samples. */
static halo_status choose_type(packing *p)
{
    float least = 0.0f, most = 0.0f;
    bool whole = true;

    for (int64_t s = 0; whole && s < p->source->info.samples; s++) {
        HL_TRY(read_sample(p, s));
        for (int64_t c = 0; c < p->cells; c++) {
            float v = p->value[c];
            whole = whole && v == floorf(v);
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
    }
    p->type = HALO_F32;
    if (whole && least >= -32768.0f && most <= 32767.0f) p->type = HALO_I16;
    if (whole && least >= 0.0f && most <= 255.0f) p->type = HALO_U8;
    return HALO_OK;
}

static void narrow(const packing *p)
{
    for (int64_t c = 0; c < p->cells; c++) {
        if (p->type == HALO_U8)
            ((uint8_t *)p->narrow)[c] = (uint8_t)p->value[c];
        else if (p->type == HALO_I16)
            ((int16_t *)p->narrow)[c] = (int16_t)p->value[c];
        else
            ((float *)p->narrow)[c] = p->value[c];
    }
}

static halo_status copy_samples(packing *p, hl_writer *writer)
{
    for (int64_t s = 0; s < p->source->info.samples; s++) {
        HL_TRY(read_sample(p, s));
        narrow(p);
        HL_TRY(hl_writer_add(writer, p->narrow, p->y, p->source->ops->group_of(p->source, s)));
    }
    return HALO_OK;
}

static halo_status write_file(packing *p, const char *path, int level)
{
    const hl_source_info *info = &p->source->info;
    hl_writer_options o = {.dtype = p->type,
                           .targets = info->targets,
                           .target = info->target,
                           .periodic = info->whole_periodic,
                           .level = level};
    hl_writer *writer;

    memcpy(o.ext, info->ext, sizeof(o.ext));
    if (hl_target_volumes(info)) memcpy(o.target_ext, info->target_ext, sizeof(o.target_ext));
    HL_TRY(hl_writer_create(p->ctx, path, &o, &writer));
    halo_status st = copy_samples(p, writer), closed = hl_writer_close(writer, st == HALO_OK);
    return st != HALO_OK ? st : closed;
}

static halo_status allocate(packing *p)
{
    size_t n = (size_t)p->cells;
    HL_TRY(hl_calloc(p->ctx, n, hl_dtype_size(p->source->info.dtype), "a sample", &p->raw));
    HL_TRY(hl_calloc(p->ctx, n, sizeof(float), "a sample", &p->value));
    HL_TRY(hl_calloc(p->ctx, n, sizeof(float), "a sample", &p->narrow));
    return hl_calloc(p->ctx, (size_t)hl_target_values(&p->source->info) + 1, sizeof(float), "targets", &p->y);
}

halo_status hl_pack(halo_context *ctx, const char *from, const char *path, int level, hl_packed *result)
{
    hl_source_options options = {.path = from, .format = "auto"};
    packing p = {.ctx = ctx};
    struct stat file;
    halo_status st;

    HL_TRY(hl_source_open(ctx, &options, &p.source));
    const int64_t *ext = p.source->info.ext;
    p.cells = ext[0] * ext[1] * ext[2] * ext[3];
    HL_GOTO(st, allocate(&p), release);
    HL_GOTO(st, choose_type(&p), release);
    HL_GOTO(st, write_file(&p, path, level), release);
    *result = (hl_packed){p.source->info.samples, stat(path, &file) == 0 ? (int64_t)file.st_size : 0,
                          p.type == HALO_U8    ? "uint8"
                          : p.type == HALO_I16 ? "int16"
                                               : "float32"};
release:
    free(p.raw);
    free(p.value);
    free(p.narrow);
    free(p.y);
    hl_source_close(p.source);
    return st;
}
