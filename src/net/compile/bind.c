/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c -- the last pass: buffers, plans, addresses. Afterwards a step only runs. All memory is cleared
 * before the first run: margins and padding lanes that nobody writes are zero for good.
 */
#include "net/compile/compile.h"

static halo_status alloc_cleared(hl_program *p, size_t bytes, void **ptr)
{
    if (bytes == 0) return HALO_OK;
    HL_TRY(p->dev->ops->alloc(p->dev, bytes, ptr));
    return p->dev->ops->fill(p->dev, *ptr, 0, bytes, NULL);
}

static void *address(const hl_program *p, int value)
{
    const hl_value *v = &p->value[value];
    if (v->region == HL_REGION_MODEL) return hl_model_address(p->model, v->param, v->array);
    return (char *)(v->region == HL_REGION_IMAGES ? p->images : p->arena) + v->offset;
}

/* Between the devices of those that hold samples together; NULL: there is none. */
static halo_link *link_of_group(const hl_program *p)
{
    const hl_links *l = p->opt.links;
    const int64_t group = hl_grid_group(&p->grid);
    return l && l->size % group == 0 ? l->order : NULL; /* their numbers follow one another: nobody is on another node */
}

static halo_status make_exchange(hl_program *p, hl_transfer *t, const hl_message *message, int n)
{
    HL_TRY(hl_exchange_create(p->opt.team->group, p->value[t->to].dtype, message, n, &t->exchange));
    hl_exchange_name(t->exchange, hl_layer_of(p, t->layer)->name);
    return p->dev->ops->mpi_pointer ? HALO_OK : hl_mirror_make(p, t, message, n, &t->mirror);
}

static halo_status bind_transfer(hl_program *p, hl_transfer *t)
{
    hl_message *message;
    int n;
    if (!p->opt.team)
        return hl_fail(p->ctx, HALO_ERR_USAGE, "layer '%s' is split over ranks that this program does not have", hl_layer_of(p, t->layer)->name);
    HL_TRY(hl_transfer_messages(p, t, &message, &n));
    halo_link *link = link_of_group(p);
    const bool passes = link || (p->opt.mpi_reaches && !p->dev->ops->mpi_pointer);
    halo_status st = passes ? hl_passage_make(p, t, message, n, link, &t->passage) : make_exchange(p, t, message, n);
    free(message);
    return st;
}

static halo_status bind_step(hl_program *p, hl_step *s)
{
    if (s->kind == HL_STEP_OP) HL_TRY(hl_op_class(p->dev, s->desc.kind, &s->choice)->plan(p->dev, &s->desc, &s->choice, &s->plan));
    if (s->kind == HL_STEP_START) HL_TRY(bind_transfer(p, &p->transfer[s->transfer]));
    for (int r = 0; r < HALO_ROLES; r++)
        s->args.ptr[r] = s->use[r].value >= 0 ? address(p, s->use[r].value) : NULL;
    if (s->image >= 0) s->args.ptr[HALO_WT] = address(p, s->image);
    s->args.scratch = p->scratch;
    s->args.record = &p->record;
    return HALO_OK;
}

halo_status hl_pass_bind(hl_program *p)
{
    const hl_program *beside = p->opt.beside;
    p->opt.beside = NULL;
    HL_TRY(hl_arena_open(p, beside));
    HL_TRY(alloc_cleared(p, p->image_bytes, &p->images));
    HL_TRY(alloc_cleared(p, p->scratch_bytes - hl_landing_bytes(p), &p->scratch));
    HL_TRY(hl_calloc(p->ctx, (size_t)(p->opt.batch * hl_rows(p)), sizeof(*p->host), "weights of samples", &p->host));
    for (int i = 0; i < p->steps; i++) HL_TRY(bind_step(p, &p->step[i]));
    hl_find_phases(p);
    HL_TRY(hl_statistics_prepare(p));
    HL_TRY(hl_landing_make(p, beside));
    return p->dev->ops->wait(p->dev, NULL);
}
