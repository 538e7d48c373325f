/* SPDX-License-Identifier: Apache-2.0 */
/* slabs.h -- between transient.c, which knows how the cells of an op's operands hang together, and slabs.c, which cuts ops into parts by that. */
#ifndef HL_SLABS_H
#define HL_SLABS_H

#include "net/compile/compile.h"

#define EACH_ROLE(r) (halo_role r = (halo_role)0; r < HALO_ROLES; r = (halo_role)(r + 1))

/* `drive` is the operand that a part of an op is about, the cells of the others follow from its. */
typedef struct hl_relation {
    bool known;
    halo_role drive;
    unsigned same;  /* bits of roles: the same cells */
    unsigned need;  /* those that the windows of `drive` hold */
    unsigned reach; /* those whose windows hold cells of `drive` */
} hl_relation;

const hl_relation *hl_relation_of(const hl_step *s);
/* Bits of all roles that have cells. */
unsigned hl_relation_roles(const hl_relation *k);
/* Along axis `a`, between an op's long and its short operand. */
hl_window1 hl_step_window(const hl_step *s, int a);
/* Backward of a pool whose windows have to be whole, as their cells are counted. */
bool hl_step_unpools(const hl_step *s, int a);

#endif
