/* SPDX-License-Identifier: Apache-2.0 */
/* png.h -- writes an image of 256 colours. */
#ifndef HL_IO_PNG_H
#define HL_IO_PNG_H

#include "base/base.h"

/* pixel[height, width] are indices into palette[256][3] (red, green, blue). Complete or not at all. */
halo_status hl_png_write(halo_context *ctx, const char *path, int width, int height, const uint8_t *pixel,
                         uint8_t (*palette)[3]);

/* The first n colours, for values from the least to the largest: black, violet, orange, yellow. */
void hl_png_ramp(uint8_t (*palette)[3], int n);

#endif
