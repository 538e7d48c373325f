/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png.c -- the Portable Network Graphics format (ISO/IEC 15948) with a palette, and the least of deflate:
 * stored blocks. A plot is a few hundred KiB that way, which is less trouble than one more library.
 */
#include "io/png.h"

#include "base/file.h"
#include "base/str.h"

enum { STORED_MOST = 65535 };

static void add_u32(hl_str *out, uint32_t v)
{
    const uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    hl_str_addn(out, (const char *)b, 4);
}

/* The CRC of ISO 3309, bit by bit: speed does not matter here. */
static uint32_t crc32_of(const char *data, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= (uint8_t)data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static uint32_t adler32_of(const uint8_t *data, size_t n)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* Length, type, data, checksum of type and data. */
static void add_chunk(hl_str *out, const char type[4], const void *data, size_t n)
{
    add_u32(out, (uint32_t)n);
    size_t start = out->len;
    hl_str_addn(out, type, 4);
    hl_str_addn(out, data, n);
    if (!out->failed) add_u32(out, crc32_of(out->s + start, n + 4));
}

/* zlib's wrapper around stored blocks. */
static void add_stored(hl_str *out, const uint8_t *data, size_t n)
{
    hl_str_addn(out, "\x78\x01", 2);
    for (size_t at = 0; at < n; at += STORED_MOST) {
        size_t part = n - at < STORED_MOST ? n - at : STORED_MOST;
        const uint8_t head[5] = {at + part == n, (uint8_t)part, (uint8_t)(part >> 8), (uint8_t)~part,
                                 (uint8_t)(~part >> 8)};
        hl_str_addn(out, (const char *)head, 5);
        hl_str_addn(out, (const char *)data + at, part);
    }
    add_u32(out, adler32_of(data, n));
}

/* Rows, each after its filter byte (0: none). */
static halo_status filtered_rows(halo_context *ctx, int width, int height, const uint8_t *pixel,
                                 uint8_t **out)
{
    size_t w = (size_t)width;
    HL_TRY(hl_calloc(ctx, (w + 1) * (size_t)height, 1, "an image", out));
    for (size_t y = 0; y < (size_t)height; y++) memcpy(*out + y * (w + 1) + 1, pixel + y * w, w);
    return HALO_OK;
}

halo_status hl_png_write(halo_context *ctx, const char *path, int width, int height, const uint8_t *pixel,
                         uint8_t (*palette)[3])
{
    hl_str file = {0}, head = {0}, data = {0};
    uint8_t *rows = NULL;

    halo_status st = filtered_rows(ctx, width, height, pixel, &rows);
    if (st == HALO_OK) {
        hl_str_addn(&file, "\x89PNG\r\n\x1a\n", 8);
        add_u32(&head, (uint32_t)width);
        add_u32(&head, (uint32_t)height);
        hl_str_addn(&head, "\x08\x03\x00\x00\x00",
                    5); /* 8 bits, palette, deflate, filters by row, not interlaced */
        add_stored(&data, rows, ((size_t)width + 1) * (size_t)height);
        add_chunk(&file, "IHDR", head.s, head.len);
        add_chunk(&file, "PLTE", palette, 256 * 3);
        add_chunk(&file, "IDAT", data.s, data.len);
        add_chunk(&file, "IEND", "", 0);
        if (file.failed || data.failed || head.failed)
            st = hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: an image");
        else
            st = hl_file_write(ctx, path, file.s, file.len);
    }
    free(rows);
    hl_str_free(&file);
    hl_str_free(&head);
    hl_str_free(&data);
    return st;
}

void hl_png_ramp(uint8_t (*palette)[3], int n)
{
    for (int i = 0; i < n; i++) {
        double t = (double)i / (n - 1);
        palette[i][0] = (uint8_t)(255 * fmin(1, 1.6 * t));
        palette[i][1] = (uint8_t)(255 * t * t);
        palette[i][2] = (uint8_t)(255 * (t < 0.5 ? 1.4 * t * (1 - t) : 0.7 * (1 - t)));
    }
}
