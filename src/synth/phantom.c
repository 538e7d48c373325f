/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phantom.c -- draws ellipsoids and renders them.
 *
 *     value(voxel) = mean over 4^3 points of it of m(p), + noise      m(p): the value of the last shape that covers p
 *     label(voxel) = the class of the last shape that covers its middle
 *
 * so that voxels on a border are partly of either side, as in a scanner, while the mask is exact. Points are only counted where a border may pass: sqrt(q) with q = |A^T (p - c) / r|^2 changes
 * by at most |dp| / min r (Lipschitz), so where |sqrt(q) - 1| is above half a voxel's diagonal over min r for every shape, the middle speaks for the voxel.
 *
 * Every number is one of (seed, part and number of the phantom, what it is for), the noise one of the voxel's place too.
 */
#include "synth/phantom.h"

#include "base/rng.h"

enum { FINE = 4 }; /* points along each axis of a voxel */

double hl_ellipsoid_volume(const hl_ellipsoid *e) { return 4.0 / 3.0 * M_PI * e->radius[0] * e->radius[1] * e->radius[2]; }

/* ------------------------------------------------------------------------------------------------------------- drawing */

typedef struct draws { /* numbers one after the other */
    uint64_t seed, number, next;
} draws;

static double uniform(draws *d, double lo, double hi) { return lo + (hi - lo) * hl_rng_uniform(d->seed, HL_STREAM_PHANTOM, d->next++, d->number); }

/* A rotation that all are as likely as (Shoemake, "Uniform random rotations", 1992). */
static void turn(draws *d, double axis[3][3])
{
    double u = uniform(d, 0, 1), v = 2 * M_PI * uniform(d, 0, 1), w = 2 * M_PI * uniform(d, 0, 1);
    double a = sqrt(1 - u) * sin(v), b = sqrt(1 - u) * cos(v), c = sqrt(u) * sin(w), s = sqrt(u) * cos(w);
    const double m[3][3] = {{1 - 2 * (b * b + c * c), 2 * (a * b - s * c), 2 * (a * c + s * b)},
                            {2 * (a * b + s * c), 1 - 2 * (a * a + c * c), 2 * (b * c - s * a)},
                            {2 * (a * c - s * b), 2 * (b * c + s * a), 1 - 2 * (a * a + b * b)}};
    memcpy(axis, m, sizeof(m));
}

static void straight(double axis[3][3])
{
    static const double unit[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    memcpy(axis, unit, sizeof(unit));
}

static double least_radius(const hl_ellipsoid *e) { return fmin(e->radius[0], fmin(e->radius[1], e->radius[2])); }
static double largest_radius(const hl_ellipsoid *e) { return fmax(e->radius[0], fmax(e->radius[1], e->radius[2])); }

/* half: half of the volume's extents, mm. */
static void add_body(hl_phantom *p, const double half[3])
{
    for (int i = 0; i < 2; i++) { /* fat, and what it surrounds: longer than the volume */
        hl_ellipsoid *e = &p->shape[p->shapes++];
        double part = i ? 0.85 : 0.95;
        *e = (hl_ellipsoid){.radius = {8 * half[0], part * half[1], part * half[2]}, .value = i ? 40 : -90};
        straight(e->axis);
    }
    hl_ellipsoid *spine = &p->shape[p->shapes++];
    *spine = (hl_ellipsoid){.centre = {0, -0.6 * half[1], 0}, .radius = {8 * half[0], 0.13 * half[1], 0.15 * half[2]}, .value = 350};
    straight(spine->axis);
}

static void add_other(hl_phantom *p, draws *d, const double half[3])
{
    hl_ellipsoid *e = &p->shape[p->shapes++];
    double size = fmin(half[0], fmin(half[1], half[2]));
    *e = (hl_ellipsoid){.value = uniform(d, 0, 80)};
    for (int k = 0; k < 3; k++) {
        e->centre[k] = uniform(d, -0.6, 0.6) * half[k];
        e->radius[k] = uniform(d, 0.08, 0.25) * size;
    }
    turn(d, e->axis);
}

static int add_organ(hl_phantom *p, draws *d, const double half[3])
{
    hl_ellipsoid *e = &p->shape[p->shapes];
    double size = fmin(half[0], fmin(half[1], half[2]));
    *e = (hl_ellipsoid){.value = uniform(d, 100, 130), .label = 1};
    for (int k = 0; k < 3; k++) {
        e->centre[k] = uniform(d, -0.2, 0.2) * half[k];
        e->radius[k] = uniform(d, 0.35, 0.55) * size;
    }
    turn(d, e->axis);
    return p->shapes++;
}

/* A point of the organ which a ball of that radius around it does not leave: within 1 - radius / (least radius of the organ) of its middle, in its own measure. */
static void place(draws *d, const hl_ellipsoid *organ, double radius, double centre[3])
{
    double u[3], q, room = 1 - radius / least_radius(organ);
    do {
        for (int k = 0; k < 3; k++) u[k] = uniform(d, -1, 1);
        q = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
    } while (q > 1);
    for (int i = 0; i < 3; i++) {
        centre[i] = organ->centre[i];
        for (int k = 0; k < 3; k++) centre[i] += room * u[k] * organ->radius[k] * organ->axis[k][i];
    }
}

static bool apart(const hl_phantom *p, int first, const hl_ellipsoid *e, double gap)
{
    for (int i = first; i < p->shapes; i++) {
        double q = 0;
        for (int k = 0; k < 3; k++) q += (p->shape[i].centre[k] - e->centre[k]) * (p->shape[i].centre[k] - e->centre[k]);
        if (sqrt(q) < largest_radius(&p->shape[i]) + largest_radius(e) + gap) return false;
    }
    return true;
}

/* What finds no place in 64 attempts is left out. */
static void add_lesions(hl_phantom *p, draws *d, const hl_phantom_settings *s, int organ)
{
    int first = p->shapes, n = (int)fmin(floor(uniform(d, 0, 1) * (double)(s->lesions + 1)), (double)s->lesions);
    double gap = fmax(p->spacing[0], p->spacing[1]);
    for (int i = 0; i < n && p->shapes < HL_PHANTOM_SHAPES; i++) {
        hl_ellipsoid e = {.value = p->shape[organ].value - s->contrast, .label = 2};
        double radius = fmin(uniform(d, s->least, s->most), 0.5 * least_radius(&p->shape[organ]));
        for (int k = 0; k < 3; k++) e.radius[k] = radius * uniform(d, 0.8, 1.2);
        turn(d, e.axis);
        bool placed = false;
        for (int attempt = 0; attempt < 64 && !placed; attempt++) {
            place(d, &p->shape[organ], largest_radius(&e), e.centre);
            placed = apart(p, first, &e, gap);
        }
        if (placed) p->shape[p->shapes++] = e;
    }
}

void hl_phantom_draw(const hl_phantom_settings *s, int part, int64_t number, hl_phantom *p)
{
    draws d = {.seed = (uint64_t)s->seed, .number = (uint64_t)part << 48 | (uint64_t)number};
    double half[3];
    *p = (hl_phantom){.outside = -1000, .noise = s->noise, .seed = d.seed, .number = d.number};
    for (int k = 0; k < 3; k++) {
        p->ext[k] = hl_max64(1, (int64_t)llround((double)s->size[k] * (1 + s->vary * uniform(&d, -1, 1))));
        p->spacing[k] = k == 0 && s->thickness > 0 ? s->thickness : s->spacing;
        half[k] = (double)p->ext[k] * p->spacing[k] / 2;
    }
    add_body(p, half);
    for (int i = 0; i < 4; i++) add_other(p, &d, half);
    int organ = add_organ(p, &d, half);
    add_lesions(p, &d, s, organ);
}

/* ----------------------------------------------------------------------------------------------------------- rendering */

/* sqrt(q) of a point: below 1 within. */
static double measure(const hl_ellipsoid *e, const double at[3])
{
    double q = 0;
    for (int k = 0; k < 3; k++) {
        double along = 0;
        for (int i = 0; i < 3; i++) along += e->axis[k][i] * (at[i] - e->centre[i]);
        q += along / e->radius[k] * (along / e->radius[k]);
    }
    return sqrt(q);
}

static int shape_at(const hl_phantom *p, const double at[3])
{
    int i = p->shapes - 1;
    while (i >= 0 && measure(&p->shape[i], at) > 1) i--;
    return i;
}

static double value_of(const hl_phantom *p, int shape) { return shape < 0 ? p->outside : p->shape[shape].value; }

static double mean_of(const hl_phantom *p, const double middle[3])
{
    double sum = 0, at[3];
    for (int i = 0; i < FINE * FINE * FINE; i++) {
        const int step[3] = {i / (FINE * FINE), i / FINE % FINE, i % FINE};
        for (int k = 0; k < 3; k++) at[k] = middle[k] + ((step[k] + 0.5) / FINE - 0.5) * p->spacing[k];
        sum += value_of(p, shape_at(p, at));
    }
    return sum / (FINE * FINE * FINE);
}

/* The shape at a voxel's middle, and whether a border may pass through the voxel. Shapes below one that covers it wholly do not count. */
static int look(const hl_phantom *p, const double reach[], const double middle[3], bool *mixed)
{
    int found = -1;
    *mixed = false;
    for (int i = p->shapes - 1; i >= 0; i--) {
        double m = measure(&p->shape[i], middle);
        bool near = fabs(m - 1) <= reach[i];
        *mixed = *mixed || near;
        if (found < 0 && m <= 1) found = i;
        if (m <= 1 && !near) break;
    }
    return found;
}

void hl_phantom_render(const hl_phantom *p, int16_t *value, uint8_t *label)
{
    double reach[HL_PHANTOM_SHAPES], diagonal = sqrt(p->spacing[0] * p->spacing[0] + p->spacing[1] * p->spacing[1] + p->spacing[2] * p->spacing[2]) / 2, at[3];
    int64_t n = p->ext[0] * p->ext[1] * p->ext[2];
    for (int i = 0; i < p->shapes; i++) reach[i] = diagonal / least_radius(&p->shape[i]);
    for (int64_t v = 0; v < n; v++) {
        const int64_t index[3] = {v / (p->ext[1] * p->ext[2]), v / p->ext[2] % p->ext[1], v % p->ext[2]};
        bool mixed;
        for (int k = 0; k < 3; k++) at[k] = ((double)index[k] + 0.5 - (double)p->ext[k] / 2) * p->spacing[k];
        int shape = look(p, reach, at, &mixed);
        if (label) label[v] = (uint8_t)(shape < 0 ? 0 : p->shape[shape].label);
        if (!value) continue;
        double x = mixed ? mean_of(p, at) : value_of(p, shape);
        if (p->noise > 0) x += p->noise * hl_rng_normal(p->seed, HL_STREAM_PHANTOM_NOISE, (uint64_t)v, p->number);
        value[v] = (int16_t)lrint(fmin(fmax(x, -32768), 32767));
    }
}
