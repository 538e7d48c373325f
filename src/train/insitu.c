/* SPDX-License-Identifier: Apache-2.0 */
/*
 * insitu.c -- training from blocks of samples as the ranks of a simulation have them.
 *
 * Ranks say which box of the step's array [N, C, D, H, W] they have; from the program's grid follows which they want, margin included. A redistribution is planned for
 * these boxes when they change anywhere, which ranks find out by one sum of a few numbers before each step. Types that do not travel are converted to f32 by the rank
 * that has them. Where all want what they have, dense, the program reads the caller's memory.
 */
#include "io/convert.h"
#include "train/deliver.h"
#include "train/trainer.h"

/* ------------------------------------------------------------------------------------------------------------- blocks */

static hl_cuboid cells_of(const halo_block *b)
{
    hl_cuboid c;
    for (int a = 0; a < HALO_DIMS; a++) c.axis[a] = (hl_range){b->lo[a], b->lo[a] + b->extents[a]};
    return c;
}

static hl_held piece_of(const halo_block *b)
{
    hl_cuboid cells = cells_of(b);
    hl_held p = hl_held_dense(&cells);
    for (int a = 0; a < HALO_DIMS; a++)
        if (b->stride[a] != 0) memcpy(p.stride, b->stride, sizeof(p.stride));
    return p;
}

static bool same(const halo_block *a, const halo_block *b)
{
    return a->type == b->type && memcmp(a->lo, b->lo, sizeof(a->lo)) == 0 && memcmp(a->extents, b->extents, sizeof(a->extents)) == 0 &&
           memcmp(a->stride, b->stride, sizeof(a->stride)) == 0;
}

static bool known_type(halo_dtype type) { return type == HALO_F32 || type == HALO_F64 || type == HALO_F16 || type == HALO_U8 || type == HALO_I16 || type == HALO_I32; }

static halo_status check(halo_context *ctx, const halo_block *b, const char *name)
{
    bool empty = false;
    HL_TRY(hl_not_null(ctx, b, name));
    if (b->size != sizeof(*b)) return hl_fail(ctx, HALO_ERR_USAGE, "halo_block has size %zu, this library expects %zu", b->size, sizeof(*b));
    if (!known_type(b->type)) return hl_fail(ctx, HALO_ERR_USAGE, "'%s': type %d is not one that blocks can have", name, (int)b->type);
    for (int a = 0; a < HALO_DIMS; a++) {
        int64_t end;
        empty = empty || b->extents[a] == 0;
        if (b->extents[a] < 0 || !hl_add64(b->lo[a], b->extents[a], &end))
            return hl_fail(ctx, HALO_ERR_USAGE, "'%s': extent %d is %" PRId64 " from %" PRId64 " on", name, a, b->extents[a], b->lo[a]);
    }
    return empty || b->data ? HALO_OK : hl_fail(ctx, HALO_ERR_USAGE, "'%s': 'data' must not be NULL", name);
}

/* ------------------------------------------------------------------------------------------------------------ intake */

/* Row by row into dense f32. */
static void convert(const halo_block *b, const hl_held *p, float *out)
{
    const size_t size = hl_dtype_size(b->type);
    const int64_t *n = b->extents, *s = p->stride;
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t c = 0; c < n[1]; c++)
            for (int64_t d = 0; d < n[2]; d++)
                for (int64_t h = 0; h < n[3]; h++, out += n[4]) {
                    int64_t at = i * s[0] + c * s[1] + d * s[2] + h * s[3];
                    hl_convert(hl_dtype_number(b->type), (const char *)b->data + at * (int64_t)size, s[4], HALO_F32, out, n[4]);
                }
}

void hl_intake_free(hl_intake *i)
{
    hl_redistribution_destroy(i->plan);
    free(i->converted);
    free(i->taken);
    *i = (hl_intake){0};
}

static bool travels(const hl_intake *i) { return i->block.type == i->type; }

static halo_status make_room(halo_context *ctx, hl_intake *i)
{
    size_t size = hl_dtype_size(i->type);
    if (!travels(i)) HL_TRY(hl_calloc(ctx, (size_t)hl_cuboid_cells(&i->have.cells), size, "a block of samples", &i->converted));
    if (hl_redistribution_none(i->plan)) return HALO_OK;
    return hl_calloc(ctx, (size_t)hl_cuboid_cells(&i->want.cells), size, "a block of samples", &i->taken);
}

/* Cells beyond the border are those of the other side: a program asks for none where an axis is not periodic. */
static halo_status plan(halo_context *ctx, hl_intake *i, const halo_block *b, const hl_wish *wish, halo_dtype type)
{
    static const bool periodic[HALO_DIMS] = {false, false, true, true, true};
    hl_intake_free(i);
    i->block = *b;
    i->type = type;
    i->have = piece_of(b);
    i->want = hl_held_dense(&wish->cells);
    if (!travels(i)) i->have = hl_held_dense(&i->have.cells);
    halo_status st = hl_redistribution_create(ctx, type, wish->extent, periodic, &i->have, &i->want, &i->plan);
    if (st == HALO_OK) st = hl_agree(ctx, make_room(ctx, i));
    if (st != HALO_OK) hl_intake_free(i);
    return st;
}

/* Begins; *taken is complete after the end, NULL where nothing is under way. */
static halo_status begin(halo_context *ctx, hl_intake *i, const halo_block *b, const char *name, const hl_wish *wish, const void **taken, bool *under_way)
{
    halo_status st = check(ctx, b, name);
    bool empty = st != HALO_OK;
    for (int a = 0; a < HALO_DIMS && st == HALO_OK; a++) empty = empty || b->extents[a] == 0;
    double any[3] = {st != HALO_OK, st == HALO_OK && !same(b, &i->block), !empty && (b->type != HALO_F64 || !wish->f64)};
    HL_TRY(hl_comm_max(ctx, any, 3));
    if (any[0] > 0) return hl_agree(ctx, st);
    if (any[1] > 0 || !i->plan) HL_TRY(plan(ctx, i, b, wish, any[2] > 0 || !wish->f64 ? HALO_F32 : HALO_F64));
    const void *from = travels(i) ? b->data : i->converted;
    if (!travels(i) && !empty) {
        hl_held p = piece_of(b);
        convert(b, &p, i->converted);
    }
    *under_way = !hl_redistribution_none(i->plan);
    *taken = *under_way ? i->taken : from;
    return *under_way ? hl_redistribution_start(i->plan, from, i->taken) : HALO_OK;
}

static hl_wish wish_of(const halo_trainer *t, const int64_t ext[4], const hl_cells *box, bool f64)
{
    hl_wish w = {.extent = {t->run.set.batch, ext[0], ext[1], ext[2], ext[3]}, .f64 = f64};
    w.cells = hl_cuboid_whole(w.extent);
    w.cells.axis[HALO_N] = (hl_range){t->first_sample, t->first_sample + t->share};
    for (int k = 0; k < 3; k++) w.cells.axis[HALO_D + k] = (hl_range){box->lo[k], box->lo[k] + box->ext[k]};
    return w;
}

/* ------------------------------------------------------------------------------------------------------------- a step */

static halo_status check_targets(halo_trainer *t, const float *y, const halo_block *y_block, double lr)
{
    bool volumes = t->outputs != t->out[0];
    if (!(isfinite(lr) && lr >= 0)) return hl_fail(t->run.ctx, HALO_ERR_USAGE, "'lr' is %g, must be finite and not negative", lr);
    if (volumes && y) return hl_fail(t->run.ctx, HALO_ERR_USAGE, "the network ends in a volume: targets are 'y_block', and 'y' is NULL");
    if (!volumes && y_block) return hl_fail(t->run.ctx, HALO_ERR_USAGE, "the network ends in numbers: targets are 'y', and 'y_block' is NULL");
    return volumes ? hl_not_null(t->run.ctx, y_block, "y_block") : hl_not_null(t->run.ctx, y, "y");
}

halo_status halo_trainer_step_blocks(halo_trainer *t, const halo_block *x, const float *y, const halo_block *y_block, double lr, double *loss)
{
    const void *x_taken, *y_taken = NULL;
    bool x_moves, y_moves = false;
    HL_TRY(hl_not_null(t ? t->run.ctx : NULL, t, "trainer"));
    halo_context *ctx = t->run.ctx;
    HL_AGREE(ctx, check_targets(t, y, y_block, lr));
    hl_wish wish = wish_of(t, t->in, &t->x_box, true);
    HL_TRY(begin(ctx, &t->x_intake, x, "x", &wish, &x_taken, &x_moves));
    if (y_block) {
        wish = wish_of(t, t->y_ext, &t->y_box, false);
        halo_status st = begin(ctx, &t->y_intake, y_block, "y_block", &wish, &y_taken, &y_moves);
        if (st != HALO_OK && x_moves && st != HALO_ERR_COMM) HL_TRY(hl_redistribution_finish(t->x_intake.plan));
        HL_TRY(st);
    }
    if (x_moves) HL_TRY(hl_redistribution_finish(t->x_intake.plan));
    if (y_moves) HL_TRY(hl_redistribution_finish(t->y_intake.plan));
    return hl_trainer_step(t, t->x_intake.type, x_taken, y_block ? y_taken : y + t->first_sample * t->truths, lr, loss);
}

/* -------------------------------------------------------------------------------------------------------- predictions */

/* What of the array of predictions this rank's program makes: numbers are made by all of a group, and so is a volume that no rank has a part of; the first of it counts. */
static hl_held made_by(const halo_trainer *t)
{
    hl_wish w = wish_of(t, t->out, &t->y_box, false);
    if (t->outputs == t->out[0])
        for (int a = HALO_D; a < HALO_DIMS; a++) w.cells.axis[a] = (hl_range){0, 1};
    if (!hl_delivers(&t->run, &t->y_box, t->out + 1, hl_grid_number(&t->run.grid))) w.cells.axis[HALO_N].hi = w.cells.axis[HALO_N].lo;
    return hl_held_dense(&w.cells);
}

static halo_status plan_outlet(halo_trainer *t, const halo_block *b)
{
    static const bool periodic[HALO_DIMS] = {false};
    const int64_t extent[HALO_DIMS] = {t->run.set.batch, t->out[0], t->out[1], t->out[2], t->out[3]};
    hl_intake *i = &t->outlet;
    hl_intake_free(i);
    i->block = *b;
    i->have = made_by(t);
    i->want = piece_of(b);
    return hl_redistribution_create(t->run.ctx, HALO_F32, extent, periodic, &i->have, &i->want, &i->plan);
}

static halo_status check_outlet(halo_trainer *t, const halo_block *b)
{
    const int64_t extent[HALO_DIMS] = {t->run.set.batch, t->out[0], t->out[1], t->out[2], t->out[3]};
    hl_cuboid whole = hl_cuboid_whole(extent);
    HL_TRY(check(t->run.ctx, b, "prediction"));
    hl_cuboid cells = cells_of(b);
    if (b->type != HALO_F32) return hl_fail(t->run.ctx, HALO_ERR_USAGE, "'prediction': type %d, but predictions are f32", (int)b->type);
    if (hl_cuboid_cells(&cells) == 0 || hl_cuboid_inside(&cells, &whole)) return HALO_OK;
    return hl_fail(t->run.ctx, HALO_ERR_USAGE, "'prediction': cells beyond %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " are asked for", extent[0], extent[1],
                   extent[2], extent[3], extent[4]);
}

halo_status halo_trainer_predict_blocks(halo_trainer *t, const halo_block *x, const halo_block *prediction)
{
    const void *x_taken;
    bool x_moves;
    HL_TRY(hl_not_null(t ? t->run.ctx : NULL, t, "trainer"));
    halo_context *ctx = t->run.ctx;
    halo_status st = check_outlet(t, prediction);
    HL_TRY(hl_agree(ctx, st));
    double changed = !t->outlet.plan || !same(prediction, &t->outlet.block);
    HL_TRY(hl_comm_max(ctx, &changed, 1));
    if (changed > 0) HL_TRY(plan_outlet(t, prediction));
    hl_wish wish = wish_of(t, t->in, &t->x_box, true);
    HL_TRY(begin(ctx, &t->x_intake, x, "x", &wish, &x_taken, &x_moves));
    if (x_moves) HL_TRY(hl_redistribution_finish(t->x_intake.plan));
    void *to = (void *)(uintptr_t)prediction->data;
    bool here = hl_redistribution_none(t->outlet.plan);
    hl_batch b = {.dtype = t->x_intake.type, .x = x_taken};
    HL_TRY(hl_agree(ctx, hl_program_evaluate(t->run.eval, &b, here && to ? to : t->prediction, NULL)));
    if (here) return HALO_OK;
    HL_TRY(hl_redistribution_start(t->outlet.plan, t->prediction, to));
    return hl_redistribution_finish(t->outlet.plan);
}
