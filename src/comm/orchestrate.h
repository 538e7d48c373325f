/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orchestrate.h -- the order in which groups are summed, the same on all ranks: three ways behind one interface.
 *
 *   static       the compiled order. A rank starts the next group when it is ready here; messages wait for the ranks that are late. No message of its own
 *   bitvector    what is ready everywhere, by an AND of bits (bitvector.h): groups may overtake each other, and every rank knows what the others lack
 *   coordinator  rank 0 is told what is ready and tells what to start: 2 (P - 1) messages a group through one rank. The baseline
 *
 * Nothing blocks: the owner calls advance again and again. One thread at a time.
 */
#ifndef HL_ORCHESTRATE_H
#define HL_ORCHESTRATE_H

#include "comm/bitvector.h"
#include "comm/transport.h"

typedef enum hl_orchestration { HL_STATIC = 0, HL_BITVECTOR, HL_COORDINATOR, HL_ORCHESTRATIONS } hl_orchestration;

const char *hl_orchestration_name(hl_orchestration o);

/* Tags of the transport: groups are summed under their own numbers. */
enum { HL_TAG_GROUPS = 30000, HL_TAG_CYCLE = 30000, HL_TAG_TELL = 30100, HL_TAG_START, HL_TAG_QUERY, HL_TAG_ANSWER, HL_TAG_MEASURE };

typedef struct hl_orchestrator hl_orchestrator;

typedef struct hl_orchestrator_ops {
    void (*ready)(hl_orchestrator *o, int g);
    halo_status (*advance)(hl_orchestrator *o, bool *moved); /* moved: something came or went */
    int (*next)(hl_orchestrator *o);                         /* a group to start, -1: none yet */
    bool (*busy)(const hl_orchestrator *o);                  /* advance must be called soon: messages are under way */
    void (*destroy)(hl_orchestrator *o);
} hl_orchestrator_ops;

struct hl_orchestrator {
    const hl_orchestrator_ops *ops;
    hl_transport *transport;
    int groups;
    bool listens;           /* messages can come at any time */
    bool stop, stall;       /* of this rank; bitvector tells the others */
    bool any_stop, any_stall;
};

/* pause: seconds between cycles that started nothing, where the bitvector begins; it doubles up to 10 times that. The caller owns *o. */
halo_status hl_orchestrator_create(halo_context *ctx, hl_orchestration kind, hl_transport *t, int groups, double pause, hl_orchestrator **o);
halo_status hl_orchestrate_static(halo_context *ctx, hl_transport *t, int groups, hl_orchestrator **o);
halo_status hl_orchestrate_bitvector(halo_context *ctx, hl_transport *t, int groups, double pause, hl_orchestrator **o);
halo_status hl_orchestrate_coordinator(halo_context *ctx, hl_transport *t, int groups, hl_orchestrator **o);

#endif
