/* SPDX-License-Identifier: Apache-2.0 */
/* wrapped.h -- sources over another one: what most of them only pass on. */
#ifndef HL_WRAPPED_H
#define HL_WRAPPED_H

#include "io/source.h"

typedef struct hl_wrapped {
    hl_source base;
    hl_source *inner; /* owned */
    int64_t *sample;  /* owned: [info.samples] the inner one's samples; NULL: all of them */
} hl_wrapped;

/* A zeroed source of `size` bytes that begins with a hl_wrapped, with the info of `inner` and its targets copied. It does not own `inner` until the caller sets it; closing it before that
 * leaves `inner` alone. */
halo_status hl_wrapped_new(hl_source *inner, const hl_source_ops *ops, size_t size, void *out);
void hl_wrapped_close(hl_source *s);

/* The number of a sample in the inner source; what was read there becomes what was read here. */
int64_t hl_wrapped_sample(const hl_source *s, int64_t sample);
void hl_wrapped_count(hl_source *s);

/* For tables of operations: the inner source's. */
halo_status hl_wrapped_read(hl_source *s, int64_t sample, const hl_cut *cut, void *x);
halo_status hl_wrapped_target(hl_source *s, int64_t sample, const hl_cut *cut, float *y);
int64_t hl_wrapped_group_of(hl_source *s, int64_t sample);
void hl_wrapped_id_of(hl_source *s, int64_t sample, char *out, size_t size);
const char *hl_wrapped_image_of(hl_source *s, int64_t sample);
bool hl_wrapped_place_of(hl_source *s, int64_t sample, hl_window_place *place);
void hl_wrapped_extents(hl_source *s, int64_t sample, int64_t ext[3]);

#endif
