/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.c -- whole volumes in overlapping windows. Of windows i at l_i with outputs f_i (logits, or values), for each cell v:
 *
 *     F(v) = sum_i u_i(v - l_i) f_i(v - l_i),   u_i(j) = prod over axes of g(j) / sum over windows of g,   g(j) = exp(-(j - (p-1)/2)^2 / (2 (p/8)^2))
 *
 * Windows stand on a grid, so that their weights are products over axes and are known before anything is computed: what is added up are planes of F alone, without the sums of weights beside them. They
 * are done depth by depth; when all windows of a depth are in, the planes that no later one has are finished: classes are chosen, scored and written, and the planes are used again. Memory: C p H W
 * values, whatever the depth of the volume is. (Gaussian windows: Isensee et al., nnU-Net, 2021.)
 *
 * A volume that is taken as a whole is one window with weights 1, whose planes are finished as they are gathered.
 *
 * Where several ranks hold a window together, each makes its part; parts come to the first rank of the group in slabs of some MiB, which adds them in the order of windows: what it finds depends on no
 * number of ranks but by what the network's operations round.
 */
#include "train/windows.h"
#include "io/cells.h"
#include "io/cutter.h"
#include "train/metrics.h"
#include "train/shapes.h"

#define SLAB_VALUES (INT64_C(1) << 20)

typedef struct axis {
    int64_t n, p, count, *lo;
    float *u; /* [count, p] */
} axis;

typedef struct walk {
    hl_run *run;
    hl_source *source;
    hl_cutter *cutter;
    halo_context *group;
    hl_take_part take;
    void *take_user;
    hl_visit_prediction visit;
    void *user;
    hl_transport *transport; /* of volumes to rank 0; NULL: no need */
    int64_t logits, channels, targets; /* classes or 0; that come out; that a prediction has */
    hl_windows_sums sums;
    const hl_shape *shape;
    axis axis[3];
    /* room, which grows with the shapes */
    char *x, *y, *out, *part, *parts, *sum, *value, *truth, *kept;
    size_t x_room, y_room, out_room, part_room, parts_room, sum_room, value_room, truth_room, kept_room;
    double *weight;
    int64_t planes;   /* that `sum` has room for */
    int64_t finished; /* planes of the volume */
} walk;

static float *values(char *room) { return (float *)(void *)room; }

static bool root(const walk *w) { return w->group->rank == 0; }

static halo_status agree(const walk *w, halo_status st) { return hl_agree(w->group, st); }

/* ------------------------------------------------------------------------------------------------------------ geometry */

halo_status hl_windows_along(halo_context *ctx, int64_t n, int64_t p, double overlap, int64_t **lo, int64_t *count)
{
    int64_t step = hl_max64(1, (int64_t)((double)p * (1 - overlap))), m = n <= p ? 1 : hl_div_up(n - p, step) + 1;
    HL_TRY(hl_calloc(ctx, (size_t)m, sizeof(**lo), "places of windows", lo));
    (*lo)[0] = n <= p ? -((p - n) / 2) : 0;
    for (int64_t i = 1; i < m; i++) (*lo)[i] = (i * (n - p) + (m - 1) / 2) / (m - 1);
    *count = m;
    return HALO_OK;
}

static double gauss(int64_t j, int64_t p)
{
    double s = ((double)j - (double)(p - 1) / 2) / ((double)p / 8);
    return exp(-s * s / 2);
}

void hl_window_weights(int64_t count, const int64_t *lo, int64_t p, float *weight)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < p; j++) {
            double all = 0;
            for (int64_t k = 0; k < count; k++) {
                int64_t at = lo[i] + j - lo[k];
                if (at >= 0 && at < p) all += gauss(at, p);
            }
            weight[i * p + j] = count == 1 ? 1.0f : (float)(gauss(j, p) / all);
        }
}

static halo_status set_axis(walk *w, axis *a, int64_t n, int64_t p)
{
    free(a->lo);
    free(a->u);
    *a = (axis){.n = n, .p = p};
    HL_TRY(hl_windows_along(w->run->ctx, n, p, w->run->set.predict.overlap, &a->lo, &a->count));
    HL_TRY(hl_calloc(w->run->ctx, (size_t)(a->count * p), sizeof(*a->u), "weights of windows", &a->u));
    hl_window_weights(a->count, a->lo, p, a->u);
    return HALO_OK;
}

static int64_t windows(const walk *w) { return w->axis[0].count * w->axis[1].count * w->axis[2].count; }

/* Planes of a window that are gathered at once. */
static int64_t planes_at_once(const walk *w)
{
    const int64_t *e = w->shape->ext;
    return hl_max64(1, hl_min64(e[0], SLAB_VALUES / (w->channels * e[1] * e[2])));
}

/* ---------------------------------------------------------------------------------------------------------------- room */

static halo_status room(walk *w, char **at, size_t *capacity, int64_t n) { return hl_scratch(w->run->ctx, at, capacity, (size_t)hl_max64(1, n) * sizeof(float), "windows of a volume"); }

/* The most that a rank of the group has of so many planes. */
static int64_t largest_part(const walk *w)
{
    int64_t most = 0;
    for (int r = 0; r < w->group->ranks; r++) most = hl_max64(most, w->shape->of_rank[r].ext[1] * w->shape->of_rank[r].ext[2]);
    return w->channels * planes_at_once(w) * most;
}

/* Of the sums of planes, which begin as 0. */
static halo_status make_sums(walk *w)
{
    int64_t plane = w->axis[1].n * w->axis[2].n, some = hl_max64(1, SLAB_VALUES / (w->targets * plane));
    w->planes = windows(w) == 1 ? planes_at_once(w) : w->shape->ext[0];
    HL_TRY(room(w, &w->sum, &w->sum_room, w->planes * w->channels * plane));
    memset(w->sum, 0, (size_t)(w->planes * w->channels * plane) * sizeof(float));
    HL_TRY(room(w, &w->value, &w->value_room, w->targets * some * plane));
    return room(w, &w->truth, &w->truth_room, w->targets * some * plane);
}

static halo_status make_room(walk *w)
{
    const hl_shape *s = w->shape;
    const hl_source_info *i = &w->source->info;
    HL_TRY(room(w, &w->x, &w->x_room, s->batch * i->ext[0] * hl_cells_count(&s->x)));
    HL_TRY(room(w, &w->y, &w->y_room, s->batch * i->targets * hl_cells_count(&s->y)));
    HL_TRY(room(w, &w->out, &w->out_room, s->batch * w->channels * hl_cells_count(&s->y)));
    free(w->weight);
    HL_TRY(hl_calloc(w->run->ctx, (size_t)s->batch, sizeof(*w->weight), "windows of a volume", &w->weight));
    HL_TRY(room(w, &w->part, &w->part_room, largest_part(w)));
    HL_TRY(room(w, &w->parts, &w->parts_room, largest_part(w) * w->group->ranks));
    if (!root(w)) return HALO_OK;
    HL_TRY(make_sums(w));
    bool keeps = w->visit && w->run->grid.data_at > 0;
    return keeps ? room(w, &w->kept, &w->kept_room, w->targets * w->axis[0].n * w->axis[1].n * w->axis[2].n) : HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------ finished planes */

/* Planes [from, from + n) of the sums as what is predicted: [targets, n, H W]; the sums become 0. */
static void take_values(walk *w, int64_t from, int64_t n)
{
    int64_t plane = w->axis[1].n * w->axis[2].n;
    for (int64_t d = 0; d < n; d++) {
        float *sum = values(w->sum) + (from + d) % w->planes * w->channels * plane;
        if (w->logits) hl_classes_of(sum, 1, (int)w->logits, plane, values(w->value) + d * plane);
        for (int64_t t = 0; t < w->targets && !w->logits; t++) memcpy(values(w->value) + (t * n + d) * plane, sum + t * plane, (size_t)plane * sizeof(float));
        memset(sum, 0, (size_t)(w->channels * plane) * sizeof(float));
    }
}

/* To the visitor at once where this is rank 0, else kept for it. */
static halo_status hand_over(walk *w, int64_t sample, const hl_cells *box)
{
    int64_t n = hl_cells_count(box), plane = box->ext[1] * box->ext[2];
    hl_prediction p = {.sample = sample, .lo = {0, box->lo[0], 0, 0}, .ext = {w->targets, box->ext[0], box->ext[1], box->ext[2]}, .value = values(w->value)};
    if (!w->visit) return HALO_OK;
    if (w->run->ctx->rank == 0) return w->visit(w->user, w->source, &p);
    for (int64_t t = 0; t < w->targets; t++) memcpy(values(w->kept) + (t * w->axis[0].n + box->lo[0]) * plane, values(w->value) + t * n, (size_t)n * sizeof(float));
    return HALO_OK;
}

/* Planes up to `to` of the volume have all that comes. */
static halo_status finish(walk *w, int64_t sample, int64_t to)
{
    int64_t plane = w->axis[1].n * w->axis[2].n, some = hl_max64(1, SLAB_VALUES / (w->targets * plane));
    for (; w->finished < to; w->finished += some) {
        some = hl_min64(some, to - w->finished);
        hl_cells box = {.lo = {w->finished, 0, 0}, .ext = {some, w->axis[1].n, w->axis[2].n}};
        take_values(w, w->finished, some);
        HL_TRY(hl_cutter_read(w->cutter, sample, &box, NULL, values(w->truth)));
        HL_TRY(w->take(w->take_user, sample, &box, values(w->truth), values(w->value)));
        HL_TRY(hand_over(w, sample, &box));
    }
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------------- one window */

/* v [C, block] of the window at i, j, k, whose cells that lie in the volume are added. */
static void add_block(walk *w, const int64_t at[3], const hl_cells *block, const float *v)
{
    const axis *a = w->axis;
    const int64_t H = a[1].n, W = a[2].n, lo[3] = {a[0].lo[at[0]] + block->lo[0], a[1].lo[at[1]] + block->lo[1], a[2].lo[at[2]] + block->lo[2]};
    const float *ud = a[0].u + at[0] * a[0].p + block->lo[0], *uh = a[1].u + at[1] * a[1].p + block->lo[1], *uw = a[2].u + at[2] * a[2].p + block->lo[2];
    int64_t first = hl_max64(0, -lo[2]), last = hl_min64(block->ext[2], W - lo[2]);
    for (int64_t c = 0; c < w->channels; c++)
        for (int64_t d = 0; d < block->ext[0]; d++)
            for (int64_t h = 0; h < block->ext[1]; h++) {
                int64_t gd = lo[0] + d, gh = lo[1] + h;
                if (gd < 0 || gd >= a[0].n || gh < 0 || gh >= H) continue;
                const float *row = v + ((c * block->ext[0] + d) * block->ext[1] + h) * block->ext[2], u = ud[d] * uh[h];
                float *to = values(w->sum) + ((gd % w->planes * w->channels + c) * H + gh) * W + lo[2];
                for (int64_t k = first; k < last; k++) to[k] += u * uw[k] * row[k];
            }
}

/* Planes [from, from + n) of a window that lie in a rank's part of it; false: none do. */
static bool planes_of(const hl_cells *part, int64_t from, int64_t n, hl_cells *block)
{
    int64_t lo = hl_max64(part->lo[0], from), hi = hl_min64(part->lo[0] + part->ext[0], from + n);
    *block = *part;
    block->lo[0] = lo;
    block->ext[0] = hi - lo;
    return hi > lo;
}

/* This rank's part of these planes, dense. */
static void pack(const walk *w, const float *out, int64_t from, int64_t n)
{
    const hl_cells *mine = &w->shape->y;
    hl_cells block;
    int64_t plane = mine->ext[1] * mine->ext[2];
    if (!planes_of(mine, from, n, &block)) return;
    for (int64_t c = 0; c < w->channels; c++)
        memcpy(values(w->part) + c * block.ext[0] * plane, out + (c * mine->ext[0] + block.lo[0] - mine->lo[0]) * plane, (size_t)(block.ext[0] * plane) * sizeof(float));
}

/* Whether the ranks have parts, rather than all the same. */
static bool parted(const walk *w) { return w->group->ranks > 1 && hl_cells_count(&w->shape->y) < w->shape->ext[0] * w->shape->ext[1] * w->shape->ext[2]; }

static halo_status add_planes(walk *w, const int64_t at[3], const float *out, int64_t from, int64_t n)
{
    hl_cells block;
    int64_t most = largest_part(w);
    pack(w, out, from, n);
    if (parted(w)) HL_TRY(hl_comm_gather(w->group, w->part, (size_t)most * sizeof(float), w->parts));
    for (int r = 0; r < (parted(w) ? w->group->ranks : 1) && root(w); r++)
        if (planes_of(&w->shape->of_rank[r], from, n, &block)) add_block(w, at, &block, parted(w) ? values(w->parts) + r * most : values(w->part));
    return HALO_OK;
}

/* out: of this rank. A volume of one window is finished on the way. */
static halo_status add_window(walk *w, int64_t sample, const int64_t at[3], const float *out)
{
    int64_t some = planes_at_once(w), p = w->shape->ext[0];
    for (int64_t from = 0; from < p; from += some) {
        int64_t n = hl_min64(some, p - from), to = hl_max64(0, hl_min64(w->axis[0].n, w->axis[0].lo[at[0]] + from + n));
        HL_TRY(add_planes(w, at, out, from, n));
        if (windows(w) == 1) HL_TRY(agree(w, root(w) ? finish(w, sample, to) : HALO_OK));
    }
    return HALO_OK;
}

static void place_of(const walk *w, int64_t depth, int64_t number, int64_t at[3])
{
    at[0] = depth;
    at[1] = number / w->axis[2].count;
    at[2] = number % w->axis[2].count;
}

static hl_cells moved(const walk *w, const hl_cells *c, const int64_t at[3])
{
    hl_cells m = *c;
    for (int k = 0; k < 3; k++) m.lo[k] += w->axis[k].lo[at[k]];
    return m;
}

/* Windows first .. first + n - 1 of a depth into x and y; the rest of the batch counts for nothing. */
static halo_status read_windows(walk *w, int64_t sample, int64_t depth, int64_t first, int64_t n)
{
    const hl_shape *s = w->shape;
    int64_t x_values = w->source->info.ext[0] * hl_cells_count(&s->x), y_values = w->source->info.targets * hl_cells_count(&s->y), at[3];
    for (int64_t i = 0; i < s->batch; i++) {
        float *x = values(w->x) + i * x_values, *y = values(w->y) + i * y_values;
        w->weight[i] = i < n;
        if (i < n) {
            place_of(w, depth, first + i, at);
            hl_cells of_x = moved(w, &s->x, at), of_y = moved(w, &s->y, at);
            HL_TRY(hl_cutter_read(w->cutter, sample, &of_x, x, NULL));
            HL_TRY(hl_cutter_read(w->cutter, sample, &of_y, NULL, y));
        } else {
            memset(x, 0, (size_t)x_values * sizeof(*x));
            memset(y, 0, (size_t)y_values * sizeof(*y));
        }
    }
    return HALO_OK;
}

static halo_status run_windows(walk *w, int64_t sample, int64_t depth, int64_t first, int64_t n)
{
    hl_step_result r;
    hl_batch batch = {.dtype = HALO_F32, .x = w->x, .y = values(w->y), .weight = w->weight};
    int64_t each = w->channels * hl_cells_count(&w->shape->y), at[3];
    batch.x = w->x;
    HL_TRY(agree(w, read_windows(w, sample, depth, first, n)));
    HL_TRY(agree(w, hl_program_evaluate(w->shape->program, &batch, values(w->out), &r)));
    w->sums.loss += r.loss_sum;
    w->sums.weight += r.weight_sum;
    for (int64_t i = 0; i < n; i++) {
        place_of(w, depth, first + i, at);
        HL_TRY(add_window(w, sample, at, values(w->out) + i * each));
    }
    return HALO_OK;
}

/* ----------------------------------------------------------------------------------------------------------- one volume */

static halo_status begin_volume(walk *w, int64_t sample)
{
    int64_t n[3];
    hl_source_extents(w->source, sample, n);
    HL_TRY(hl_shapes_choose(w->run, n, &w->shape));
    halo_status st = HALO_OK;
    for (int k = 0; k < 3 && st == HALO_OK; k++) st = set_axis(w, &w->axis[k], n[k], w->shape->ext[k]);
    if (st == HALO_OK) st = make_room(w);
    w->finished = 0;
    return agree(w, st);
}

static halo_status one_volume(walk *w, int64_t sample)
{
    HL_TRY(begin_volume(w, sample));
    const axis *a = w->axis;
    for (int64_t depth = 0; depth < a[0].count; depth++) {
        int64_t all = a[1].count * a[2].count, to = depth + 1 < a[0].count ? a[0].lo[depth + 1] : a[0].n;
        for (int64_t first = 0; first < all; first += w->shape->batch) HL_TRY(run_windows(w, sample, depth, first, hl_min64(w->shape->batch, all - first)));
        HL_TRY(agree(w, root(w) ? finish(w, sample, to) : HALO_OK));
    }
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------------ to the visitor */

static halo_status pass_on(walk *w, int from, float *v, int64_t n)
{
    hl_request request = {0};
    size_t bytes = (size_t)n * sizeof(*v);
    if (w->run->ctx->rank == from) HL_TRY(w->transport->ops->isend(w->transport, v, bytes, 0, 0, &request));
    else HL_TRY(w->transport->ops->irecv(w->transport, v, bytes, from, 0, &request));
    return hl_transport_wait(w->transport, &request);
}

/* The volume that the group whose first rank is `from` has kept, in slabs, plane by plane of each target. What the visitor says is kept, so that senders find their receiver. */
static halo_status deliver(walk *w, int from, int64_t sample, halo_status *said)
{
    int64_t n[3];
    hl_source_extents(w->source, sample, n);
    int64_t plane = n[1] * n[2], some = hl_max64(1, SLAB_VALUES / plane);
    bool here = w->run->ctx->rank == 0;
    if (here) HL_TRY(room(w, &w->value, &w->value_room, some * plane));
    for (int64_t t = 0; t < w->targets; t++)
        for (int64_t d = 0; d < n[0]; d += some) {
            int64_t planes = hl_min64(some, n[0] - d);
            float *v = here ? values(w->value) : values(w->kept) + (t * n[0] + d) * plane;
            hl_prediction p = {.sample = sample, .lo = {t, d, 0, 0}, .ext = {1, planes, n[1], n[2]}, .value = v};
            HL_TRY(pass_on(w, from, v, planes * plane));
            if (here && *said == HALO_OK) *said = w->visit(w->user, w->source, &p);
        }
    return HALO_OK;
}

/* Those of the others of a round, in the order of samples. */
static halo_status deliver_round(walk *w, int64_t first)
{
    halo_status said = HALO_OK;
    int size = (int)hl_grid_group(&w->run->grid), me = w->run->ctx->rank;
    for (int64_t g = 1; g < w->run->grid.data && w->visit && first + g < w->source->info.samples; g++)
        if (me == 0 || me == (int)g * size) HL_TRY(deliver(w, (int)g * size, first + g, &said));
    return said;
}

/* ----------------------------------------------------------------------------------------------------------------- walk */

static halo_status begin(walk *w, const hl_loader_options *options)
{
    hl_run *run = w->run;
    const int64_t *out = run->net->layer[run->net->layers - 1].out;
    w->group = run->team->group;
    w->logits = hl_run_classes(run);
    w->channels = out[0];
    w->targets = w->source->info.targets;
    return hl_cutter_create(w->source, options, &w->cutter);
}

static void end(walk *w)
{
    char *const all[] = {w->x, w->y, w->out, w->part, w->parts, w->sum, w->value, w->truth, w->kept};
    for (size_t i = 0; i < HL_COUNT(all); i++) free(all[i]);
    for (int k = 0; k < 3; k++) {
        free(w->axis[k].lo);
        free(w->axis[k].u);
    }
    free(w->weight);
    if (w->transport) hl_transport_close(w->transport);
    hl_cutter_destroy(w->cutter);
}

static halo_status walk_all(walk *w, int64_t most)
{
    hl_run *run = w->run;
    int64_t groups = run->grid.data, samples = w->source->info.samples, rounds = hl_div_up(samples, groups);
    if (most > 0) rounds = hl_min64(rounds, most);
    HL_TRY(hl_agree(run->ctx, hl_shapes_refresh(run)));
    if (w->visit && groups > 1) HL_TRY(hl_transport_open(run->ctx, &w->transport));
    for (int64_t r = 0; r < rounds; r++) {
        int64_t sample = r * groups + run->grid.data_at;
        HL_AGREE(run->ctx, sample < samples ? one_volume(w, sample) : HALO_OK);
        HL_TRY(hl_run_look_for_stop(run));
        HL_AGREE(run->ctx, deliver_round(w, r * groups));
    }
    w->sums.volumes = hl_min64(samples, rounds * groups);
    return HALO_OK;
}

halo_status hl_run_windows(hl_run *run, hl_source *source, const hl_loader_options *options, int64_t most, hl_take_part take, void *take_user, hl_visit_prediction visit, void *user,
                           hl_windows_sums *sums)
{
    walk w = {.run = run, .source = source, .take = take, .take_user = take_user, .visit = visit, .user = user};
    halo_status st = hl_agree(run->ctx, begin(&w, options));
    if (st == HALO_OK) st = walk_all(&w, most);
    if (st == HALO_OK) *sums = w.sums;
    end(&w);
    return st;
}

int64_t hl_windows_bytes(const hl_run *run, hl_source *source)
{
    const int64_t *in = run->net->layer[0].out, *out = run->net->layer[run->net->layers - 1].out;
    hl_cells x, y;
    int64_t sums = 0, n[3];
    hl_program_input_box(run->eval, x.lo, x.ext);
    hl_program_output_box(run->eval, y.lo, y.ext);
    for (int64_t i = 0; i < source->info.samples; i++) {
        hl_source_extents(source, i, n);
        sums = hl_max64(sums, hl_min64(in[1], n[0]) * n[1] * n[2] * out[0]);
    }
    int64_t windows_at_once = hl_run_part(run) * (in[0] * hl_cells_count(&x) + (source->info.targets + out[0]) * hl_cells_count(&y));
    return (windows_at_once + 4 * SLAB_VALUES + (hl_grid_number(&run->grid) == 0 ? sums : 0)) * (int64_t)sizeof(float);
}
