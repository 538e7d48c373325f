/* SPDX-License-Identifier: Apache-2.0 */
/* prototypes.h -- crystals to choose from where no file gives any. */
#ifndef HL_SYNTH_CBED_PROTOTYPES_H
#define HL_SYNTH_CBED_PROTOTYPES_H

#include "synth/cbed/crystal.h"

int64_t hl_prototype_compounds(void); /* how many there are */
/* Compound `i`: a structure type filled with elements, its lattice parameter the one at which neighbours touch. Named like "rocksalt-MgO". */
halo_status hl_prototype_compound(halo_context *ctx, int64_t i, double b, hl_crystal *crystal);

#endif
