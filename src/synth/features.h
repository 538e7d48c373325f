/* SPDX-License-Identifier: Apache-2.0 */
/* features.h -- the summary of a volume that the baseline regresses on. */
#ifndef HL_SYNTH_FEATURES_H
#define HL_SYNTH_FEATURES_H

#include "synth/spectrum.h"

typedef struct hl_features hl_features;

/* For samples of `channels` x D x H x W. */
halo_status hl_features_create(halo_context *ctx, const int64_t ext[4], hl_features **out);
void hl_features_destroy(hl_features *f);
int hl_features_count(const hl_features *f);

/* x[C, D, H, W] -> out[count]: per channel log mean, log variance, skewness, and log power of each shell up
 * to 0.8 of the grid, corners included. */
void hl_features_of(hl_features *f, const float *x, double *out);

#endif
