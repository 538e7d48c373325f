/* SPDX-License-Identifier: Apache-2.0 */
/*
 * landing.c -- samples as they are stored on their way to a device that prepares them itself.
 *
 *     host, pinned            device
 *     x, y, numbers  --copy-->  landing place  --PREPARE-->  input, targets
 *     a queue of its own        the default queue
 *
 * There is one landing place, which programs that never run at the same time share, training and evaluation: it has one queue, so what comes in for one of them comes in behind what came in before, and behind the
 * last PREPARE of whichever. PREPARE empties it at the beginning of a step, and the samples of the next step come in behind that, beside everything else that the step does: two follows order the
 * queues, and the host waits for neither. PREPARE itself is not recorded with the step: it is two launches, and what it reads need not be where it was last time.
 */
#include "net/ir.h"

enum { ALIGN = 256 };

typedef struct preparing {
    const halo_op_class *class;
    halo_plan *plan;
    halo_op_args args;
} preparing;

typedef struct place {
    void *ptr;
    size_t bytes;
    int users;
    halo_queue *queue, *end;
    const hl_program *of; /* whose batch is there, or on its way: */
    const void *landed;   /* its x; NULL: nothing that anybody wants */
    uint64_t serial;
} place;

struct hl_landing {
    preparing x, y;  /* of y no plan: targets are no volumes */
    size_t bytes[3]; /* of x, y, numbers; of y 0 where it does not land */
    void *at[3];
    place *place;
};

static bool lands(const hl_program *p) { return p->opt.stored.type != HALO_NONE && p->dev->ops->pin && p->dev->ops->queue && p->dev->classes[HALO_OP_PREPARE]; }

/* Operands as they land: a box's cells, plain. */
static halo_operand landed_x(const hl_program *p)
{
    const halo_operand in = hl_input_operand(p);
    return hl_operand_whole(p->opt.stored.type, HALO_NCDHW, in.ext);
}

static halo_operand landed_y(const hl_program *p) { return hl_operand_whole(HALO_F32, HALO_NCDHW, p->value[p->target].operand.ext); }

static halo_operand landed_numbers(const hl_program *p) { return hl_operand_flat(HALO_F64, p->opt.batch * HALO_SAMPLE_NUMBERS); }

static void sizes_of(const hl_program *p, size_t bytes[3])
{
    const halo_operand x = landed_x(p), y = landed_y(p);
    bytes[0] = (size_t)hl_operand_box_elements(&x) * hl_dtype_size(x.dtype);
    bytes[1] = p->opt.stored.targets ? (size_t)hl_operand_box_elements(&y) * sizeof(float) : 0;
    bytes[2] = (p->opt.stored.targets ? 2 : 1) * (size_t)(p->opt.batch * HALO_SAMPLE_NUMBERS) * sizeof(double);
}

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

size_t hl_landing_bytes(const hl_program *p)
{
    size_t bytes[3];
    if (!lands(p)) return 0;
    sizes_of(p, bytes);
    return aligned(bytes[0]) + aligned(bytes[1]) + aligned(bytes[2]);
}

/* Another program's, if it is large enough. */
static place *lent(const hl_program *p, const hl_program *beside)
{
    place *there = beside && beside->landing ? beside->landing->place : NULL;
    return there && there->bytes >= hl_landing_bytes(p) ? there : NULL;
}

size_t hl_landing_own_bytes(const hl_program *p, const hl_program *beside) { return lent(p, beside) ? 0 : hl_landing_bytes(p); }

static halo_status make_place(hl_program *p, const hl_program *beside, place **out)
{
    const halo_device_ops *ops = p->dev->ops;
    *out = lent(p, beside);
    if (*out) {
        (*out)->users++;
        return HALO_OK;
    }
    HL_TRY(hl_calloc(p->ctx, 1, sizeof(**out), "a landing place", out));
    **out = (place){.bytes = hl_landing_bytes(p), .users = 1};
    HL_TRY(ops->alloc(p->dev, (*out)->bytes, &(*out)->ptr));
    HL_TRY(ops->fill(p->dev, (*out)->ptr, 0, (*out)->bytes, NULL));
    HL_TRY(ops->queue(p->dev, &(*out)->queue));
    HL_TRY(ops->queue(p->dev, &(*out)->end));
    return ops->follow(p->dev, (*out)->queue, NULL);
}

static void leave_place(const hl_program *p, place *l)
{
    const halo_device_ops *ops = p->dev->ops;
    if (!l) return;
    if (l->of == p) l->landed = NULL;
    if (--l->users > 0) return;
    if (l->queue) ops->unqueue(p->dev, l->queue);
    if (l->end) ops->unqueue(p->dev, l->end);
    if (l->ptr) ops->release(p->dev, l->ptr);
    free(l);
}

static halo_status make_preparing(hl_program *p, const halo_operand *from, const halo_operand *to, int transforms, void *x, void *numbers, void *y, preparing *out)
{
    halo_op_desc d = {.kind = HALO_OP_PREPARE, .transforms = transforms};
    halo_candidate c[HALO_MAX_CANDIDATES];
    memcpy(d.transform, p->opt.stored.transform, sizeof(d.transform));
    d.t[HALO_X] = *from;
    d.t[HALO_STAT] = landed_numbers(p);
    d.t[HALO_Y] = *to;
    if (hl_op_candidates(p->dev, &d, c) == 0 || c[0].scratch > 0) return hl_fail(p->ctx, HALO_ERR_UNSUPPORTED, "the device cannot prepare samples of %s for this network", hl_dtype_name(from->dtype));
    out->class = hl_op_class(p->dev, d.kind, &c[0]);
    out->args = (halo_op_args){.record = &p->record};
    out->args.ptr[HALO_X] = x;
    out->args.ptr[HALO_STAT] = numbers;
    out->args.ptr[HALO_Y] = y;
    return out->class->plan(p->dev, &d, &c[0], &out->plan);
}

static halo_status make(hl_program *p, const hl_program *beside, struct hl_landing *l)
{
    const halo_operand x = landed_x(p), y = landed_y(p), in = hl_input_operand(p);
    const bool volumes = p->opt.stored.targets;
    HL_TRY(make_place(p, beside, &l->place));
    char *at = l->place->ptr;
    sizes_of(p, l->bytes);
    for (int i = 0; i < 3; i++) {
        l->at[i] = at;
        at += aligned(l->bytes[i]);
    }
    HL_TRY(make_preparing(p, &x, &in, p->opt.stored.transforms, l->at[0], l->at[2], (char *)p->arena + p->value[p->y[0]].offset, &l->x));
    double *of_y = (double *)l->at[2] + p->opt.batch * HALO_SAMPLE_NUMBERS;
    if (volumes) HL_TRY(make_preparing(p, &y, &p->value[p->target].operand, 0, l->at[1], of_y, (char *)p->arena + p->value[p->target].offset, &l->y));
    return HALO_OK;
}

halo_status hl_landing_make(hl_program *p, const hl_program *beside)
{
    if (!lands(p)) return HALO_OK;
    HL_TRY(hl_calloc(p->ctx, 1, sizeof(*p->landing), "a landing place", &p->landing));
    return make(p, beside, p->landing);
}

void hl_landing_free(hl_program *p)
{
    struct hl_landing *l = p->landing;
    if (!l) return;
    leave_place(p, l->place);
    if (l->x.plan) l->x.class->destroy(l->x.plan);
    if (l->y.plan) l->y.class->destroy(l->y.plan);
    free(l);
    p->landing = NULL;
}

/* Bytes on their way, behind what the queue has. */
static halo_status send(hl_program *p, const hl_batch *b)
{
    const halo_device_ops *ops = p->dev->ops;
    struct hl_landing *l = p->landing;
    const size_t half = (size_t)(p->opt.batch * HALO_SAMPLE_NUMBERS) * sizeof(double);
    place *to = l->place;
    to->landed = NULL;
    HL_TRY(ops->copy(p->dev, l->at[0], b->x, l->bytes[0], to->queue));
    HL_TRY(ops->copy(p->dev, l->at[1], b->y, l->bytes[1], to->queue));
    HL_TRY(ops->copy(p->dev, l->at[2], b->numbers, half, to->queue));
    if (l->y.plan) HL_TRY(ops->copy(p->dev, (char *)l->at[2] + half, b->numbers_y, half, to->queue));
    to->of = p;
    to->landed = b->x;
    to->serial = b->serial;
    return HALO_OK;
}

halo_status hl_landing_take(hl_program *p, const hl_batch *b)
{
    const halo_device_ops *ops = p->dev->ops;
    struct hl_landing *l = p->landing;
    HL_BUG_UNLESS(l);
    place *from = l->place;
    if (from->of != p || from->landed != b->x || from->serial != b->serial) HL_TRY(send(p, b));
    from->landed = NULL;
    HL_TRY(ops->follow(p->dev, NULL, from->queue));
    HL_TRY(l->x.class->run(l->x.plan, &l->x.args));
    if (b->y && l->y.plan) HL_TRY(l->y.class->run(l->y.plan, &l->y.args));
    HL_TRY(ops->follow(p->dev, from->queue, NULL));
    return b->next ? send(p, b->next) : HALO_OK;
}

halo_status hl_program_forget_next(hl_program *p)
{
    if (!p->landing) return HALO_OK;
    place *l = p->landing->place;
    if (l->of == p) l->landed = NULL;
    return p->dev->ops->wait(p->dev, l->queue);
}

halo_status hl_wait_for_step(hl_program *p)
{
    const halo_device_ops *ops = p->dev->ops;
    if (!p->landing) return ops->wait(p->dev, NULL);
    HL_TRY(ops->follow(p->dev, p->landing->place->end, NULL));
    return ops->wait(p->dev, p->landing->place->end);
}

bool hl_program_lands(const hl_program *p) { return p->landing != NULL; }

const hl_stored *hl_program_stored(const hl_program *p) { return &p->opt.stored; }
