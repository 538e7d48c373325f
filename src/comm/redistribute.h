/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redistribute.h -- a global array [N, C, D, H, W] from the blocks in which the ranks have it into those in which they want it: a caller's decomposition into halo's, a split
 * tensor to all ranks that held it. Any boxes, any strides; what is wanted may overlap, repeat and reach across periodic borders.
 *
 * A rank sends each other rank what that wants of its cells, one message for each image (tensor/cuboid.h), all in one stage of an exchange (exchange.h): no rank holds
 * more than what it has and what it wants, and its messages' buffers.
 */
#ifndef HL_REDISTRIBUTE_H
#define HL_REDISTRIBUTE_H

#include "comm/exchange.h"
#include "tensor/cuboid.h"

/* A box of the array, empty: none, and how far its cells are apart in memory, in elements; addresses are those of its first cell. */
typedef struct hl_held {
    hl_cuboid cells;
    int64_t stride[HALO_DIMS];
} hl_held;

/* Dense, in the order N C D H W. */
hl_held hl_held_dense(const hl_cuboid *cells);

typedef struct hl_redistribution hl_redistribution;

/*
 * `have` of all ranks tile the array: HALO_ERR_USAGE else, with ranks and a cell; or where extents differ between ranks. Cells wanted beyond the border of an axis that is not
 * periodic stay as they are in memory. f32 or f64. HALO_ERR_UNSUPPORTED: a rank wants the cells of another more than 64 times. Collective, as is the end.
 */
halo_status hl_redistribution_create(halo_context *ctx, halo_dtype type, const int64_t extent[HALO_DIMS], const bool periodic[HALO_DIMS], const hl_held *have,
                                     const hl_held *want, hl_redistribution **r);
void hl_redistribution_destroy(hl_redistribution *r);
/* Every rank wants exactly what it has, with the same strides: what is at `from` is what would be at `to`, and nothing need be started. The same on all ranks. */
bool hl_redistribution_none(const hl_redistribution *r);
/* As hl_exchange_start and finish, with the same rules. */
halo_status hl_redistribution_start(hl_redistribution *r, const void *from, void *to);
halo_status hl_redistribution_finish(hl_redistribution *r);
void hl_redistribution_stats_get(hl_redistribution *r, hl_exchange_stats *stats, bool reset);

#endif
