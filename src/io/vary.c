/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vary.c -- random changes of samples. A cell at p of the patch, whose middle is m and lies at q in the sample, comes from
 *
 *     q + R (p - m) / s        R turns about the axes, s makes larger; x by trilinear interpolation, classes by the nearest cell
 *
 * by one read of the box that these places lie in. Values between the least and the largest of the whole sample become lo + (hi - lo) ((x - lo) / (hi - lo))^gamma; noise is a function of what the patch
 * was drawn by and of the cell's index in it. So nothing depends on which part of a patch is asked for.
 */
#include "io/cutting.h"

typedef struct change {
    bool moves;
    double m[3][3]; /* R / s */
    double gamma;   /* 0: none */
    double noise;
} change;

bool hl_varies(const hl_vary *v) { return v->share > 0 && (v->rotate > 0 || v->scale[0] > 0 || v->gamma[0] > 0 || v->noise > 0); }

static double unit(uint32_t r) { return ((double)r + 0.5) / 4294967296.0; }

static double between(const double range[2], uint32_t r) { return exp(log(range[0]) + unit(r) * (log(range[1]) - log(range[0]))); }

/* m <- m times the turn by `angle` in the plane of the axes a and b. */
static void turn(double m[3][3], int a, int b, double angle)
{
    double c = cos(angle), s = sin(angle);
    for (int k = 0; k < 3; k++) {
        double x = m[k][a], y = m[k][b];
        m[k][a] = c * x + s * y;
        m[k][b] = c * y - s * x;
    }
}

/* A patch of one plane is turned in that. */
static change draw_change(const hl_cutter *c, int64_t epoch, int64_t sample, int64_t number, const int64_t ext[3])
{
    const hl_vary *v = &c->o.vary;
    hl_random t = hl_cutter_random(c, epoch, sample, number, HL_WHICH_TURN), g = hl_cutter_random(c, epoch, sample, number, HL_WHICH_GRAY), s = hl_cutter_random(c, epoch, sample, number, HL_WHICH_GRAY + 1);
    change h = {.m = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    if (v->rotate > 0 && unit(t.v[0]) < v->share) {
        const double most = v->rotate * 3.14159265358979324 / 180;
        turn(h.m, 1, 2, (2 * unit(t.v[1]) - 1) * most);
        if (ext[0] > 1) turn(h.m, 0, 2, (2 * unit(t.v[2]) - 1) * most);
        if (ext[0] > 1) turn(h.m, 0, 1, (2 * unit(t.v[3]) - 1) * most);
        h.moves = true;
    }
    if (v->scale[0] > 0 && unit(s.v[0]) < v->share) {
        double factor = between(v->scale, s.v[1]);
        for (int k = 0; k < 9; k++) h.m[k / 3][k % 3] /= factor;
        if (ext[0] == 1) h.m[0][0] = 1;
        h.moves = true;
    }
    if (v->gamma[0] > 0 && unit(g.v[0]) < v->share) h.gamma = between(v->gamma, g.v[1]);
    if (v->noise > 0 && unit(g.v[2]) < v->share) h.noise = v->noise * unit(g.v[3]);
    return h;
}

typedef struct mapping { /* of cells of a patch to places in the sample */
    double m[3][3], from[3]; /* place of cell p: from + m p */
} mapping;

static mapping mapping_of(const change *h, const int64_t lo[3], const int64_t ext[3])
{
    mapping a;
    memcpy(a.m, h->m, sizeof(a.m));
    for (int k = 0; k < 3; k++) {
        a.from[k] = (double)lo[k] + (double)(ext[k] - 1) / 2;
        for (int j = 0; j < 3; j++) a.from[k] -= h->m[k][j] * (double)(ext[j] - 1) / 2;
    }
    return a;
}

static double place(const mapping *a, int k, int64_t d, int64_t h, int64_t w) { return a->from[k] + a->m[k][0] * (double)d + a->m[k][1] * (double)h + a->m[k][2] * (double)w; }

/* The box of the sample that the places of these cells, and their neighbours above, lie in. */
static hl_cells around(const mapping *a, const hl_cells *cells)
{
    hl_cells box;
    for (int k = 0; k < 3; k++) {
        double lo = INFINITY, hi = -INFINITY;
        for (int corner = 0; corner < 8; corner++) {
            int64_t at[3];
            for (int j = 0; j < 3; j++) at[j] = cells->lo[j] + (corner >> j & 1 ? cells->ext[j] - 1 : 0);
            double p = place(a, k, at[0], at[1], at[2]);
            lo = fmin(lo, p), hi = fmax(hi, p);
        }
        box.lo[k] = (int64_t)floor(lo - 1e-6);
        box.ext[k] = (int64_t)floor(hi + 1e-6) + 2 - box.lo[k];
    }
    return box;
}

static float at_place(const float *v, const hl_cells *box, const double p[3], bool nearest)
{
    int64_t lo[3];
    double high[3], sum = 0;
    for (int k = 0; k < 3; k++) {
        double x = p[k] - (double)box->lo[k];
        lo[k] = (int64_t)floor(x);
        high[k] = nearest ? x - (double)lo[k] >= 0.5 : x - (double)lo[k];
    }
    for (int corner = 0; corner < 8; corner++) {
        double weight = 1;
        int64_t cell = 0;
        for (int k = 0; k < 3; k++) {
            weight *= corner >> k & 1 ? high[k] : 1 - high[k];
            cell = cell * box->ext[k] + lo[k] + (corner >> k & 1);
        }
        if (weight != 0) sum += weight * (double)v[cell];
    }
    return (float)sum;
}

static void move(const float *wide, const hl_cells *box, const mapping *a, const hl_cells *cells, int64_t channels, bool nearest, float *out)
{
    for (int64_t c = 0; c < channels; c++, wide += hl_cells_count(box))
        for (int64_t d = 0; d < cells->ext[0]; d++)
            for (int64_t h = 0; h < cells->ext[1]; h++)
                for (int64_t w = 0; w < cells->ext[2]; w++) {
                    double p[3];
                    for (int k = 0; k < 3; k++) p[k] = place(a, k, cells->lo[0] + d, cells->lo[1] + h, cells->lo[2] + w);
                    *out++ = at_place(wide, box, p, nearest);
                }
}

/* Of x, or of y. */
static halo_status take_moved(hl_cutter *c, int64_t sample, const mapping *a, const hl_cells *cells, float *x, float *y)
{
    hl_cells box = around(a, cells);
    int64_t channels = x ? c->source->info.ext[0] : c->source->info.targets;
    HL_TRY(hl_scratch(c->source->ctx, &c->wide, &c->wide_room, (size_t)(channels * hl_cells_count(&box)) * sizeof(float), "a part of a sample"));
    float *wide = (float *)(void *)c->wide;
    HL_TRY(hl_cutter_read(c, sample, &box, x ? wide : NULL, x ? NULL : wide));
    move(wide, &box, a, cells, channels, !x && c->o.classes > 0, x ? x : y);
    return HALO_OK;
}

static halo_status take_plain(hl_cutter *c, int64_t sample, const int64_t lo[3], const hl_cells *cells, float *x, float *y)
{
    hl_cells box = *cells;
    for (int k = 0; k < 3; k++) box.lo[k] += lo[k];
    return hl_cutter_read(c, sample, &box, x, y);
}

static void widen(void *user, int64_t first, const float *x, int64_t n)
{
    float *range = user;
    (void)first;
    for (int64_t i = 0; i < n; i++) range[0] = fminf(range[0], x[i]), range[1] = fmaxf(range[1], x[i]);
}

/* Range of the whole sample. */
static halo_status range_of(hl_cutter *c, int64_t sample, float range[2])
{
    struct hl_known *known = c->source->known;
    if (hl_known_range(known, sample, range)) return HALO_OK;
    range[0] = INFINITY, range[1] = -INFINITY;
    HL_TRY(hl_cutter_each_slab(c, sample, c->o.transforms, widen, range));
    hl_known_put_range(known, sample, range);
    return HALO_OK;
}

static halo_status change_values(hl_cutter *c, int64_t sample, double gamma, float *x, int64_t n)
{
    float range[2];
    if (gamma == 0) return HALO_OK;
    HL_TRY(range_of(c, sample, range));
    double lo = (double)range[0], span = (double)range[1] - lo;
    for (int64_t i = 0; i < n && span > 0; i++) x[i] = (float)(lo + span * pow(fmin(1, fmax(0, ((double)x[i] - lo) / span)), gamma));
    return HALO_OK;
}

/* Normal numbers come in pairs: cells 2 i and 2 i + 1 of the patch share one. */
static void add_noise(const hl_cutter *c, double noise, int64_t sample, uint64_t draw_number, const int64_t ext[3], const hl_cells *cells, float *x)
{
    for (int64_t ch = 0; ch < c->source->info.ext[0] && noise > 0; ch++)
        for (int64_t d = 0; d < cells->ext[0]; d++)
            for (int64_t h = 0; h < cells->ext[1]; h++) {
                int64_t row = ((ch * ext[0] + cells->lo[0] + d) * ext[1] + cells->lo[1] + h) * ext[2] + cells->lo[2], pair = -1;
                double z[2] = {0, 0};
                for (int64_t w = 0; w < cells->ext[2]; w++) {
                    if ((row + w) >> 1 != pair) hl_rng_normal2(c->o.seed, HL_STREAM_INTENSITY, (uint64_t)sample, draw_number << 36 | (uint64_t)(pair = (row + w) >> 1), z);
                    *x++ += (float)(noise * z[(row + w) & 1]);
                }
            }
}

halo_status hl_cutter_take(hl_cutter *c, int64_t epoch, int64_t sample, int64_t number, const int64_t ext[3], const hl_cells *x_cells, float *x, const hl_cells *y_cells, float *y)
{
    int64_t lo[3], n = c->source->info.ext[0] * hl_cells_count(x_cells);
    change h = draw_change(c, epoch, sample, number, ext);
    bool volumes = hl_target_volumes(&c->source->info), targets = c->source->info.targets > 0;
    HL_TRY(hl_cutter_draw(c, epoch, sample, number, ext, lo));
    mapping a = mapping_of(&h, lo, ext);
    HL_TRY(h.moves ? take_moved(c, sample, &a, x_cells, x, NULL) : take_plain(c, sample, lo, x_cells, x, NULL));
    if (targets && !volumes) HL_TRY(hl_cutter_read(c, sample, y_cells, NULL, y));
    else if (targets) HL_TRY(h.moves ? take_moved(c, sample, &a, y_cells, NULL, y) : take_plain(c, sample, lo, y_cells, NULL, y));
    HL_TRY(change_values(c, sample, h.gamma, x, n));
    add_noise(c, h.noise, sample, (uint64_t)epoch * (uint64_t)hl_max64(1, c->o.patches) + (uint64_t)number, ext, x_cells, x);
    return HALO_OK;
}
