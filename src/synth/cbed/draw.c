/* SPDX-License-Identifier: Apache-2.0 */
/* draw.c -- crystals, dealt to the parts so that no compound is in two, and how each lies in the beam. Every number is one of (seed, part and number of the crystal, what it is for). */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "base/topology.h"
#include "base/context.h"
#include "synth/cbed/cbed.h"
#include "synth/cbed/multislice.h"
#include "synth/cbed/prototypes.h"

/* ------------------------------------------------------------------------------------------------------------- settings */

#define THICKNESS_MOST 1e4 /* A: nothing that a beam of 200 keV passes is thicker */
#define DOSE_MOST 1e9      /* a pattern's; counts of a pixel must be below 2^16 besides (hl_cbed_count) */

/* Above 0, at most `most`. */
static halo_status read_number(halo_context *ctx, const char *key, const char *text, double most, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*out) || *out <= 0) return hl_fail(ctx, HALO_ERR_USAGE, "'%s': '%s' is no number above 0", key, text);
    return *out <= most ? HALO_OK : hl_fail(ctx, HALO_ERR_USAGE, "'%s' is %s: must be at most %g", key, text, most);
}

static halo_status read_thickness(hl_cbed *c)
{
    char text[HL_TEXT_MAX];
    snprintf(text, sizeof(text), "%s", c->s->thickness);
    char *colon = strchr(text, ':');
    if (colon) *colon = '\0';
    HL_TRY(read_number(c->ctx, "thickness", text, THICKNESS_MOST, &c->thickness[0]));
    HL_TRY(read_number(c->ctx, "thickness", colon ? colon + 1 : text, THICKNESS_MOST, &c->thickness[1]));
    if (c->thickness[0] <= c->thickness[1]) return HALO_OK;
    return hl_fail(c->ctx, HALO_ERR_USAGE, "'thickness' is '%s': the most is below the least", c->s->thickness);
}

/* "1-10": digits with signs. */
static bool read_zone(const char *text, double zone[3])
{
    int n = 0;
    bool any = false;
    for (double sign = 1; *text; text++) {
        if (*text == '-') {
            sign = -1;
            continue;
        }
        if (*text < '0' || *text > '9' || n == 3) return false;
        zone[n++] = sign * (*text - '0');
        any = any || *text != '0';
        sign = 1;
    }
    return n == 3 && any;
}

/* One number, or several with commas. */
static halo_status read_doses(hl_cbed *c, const char *text)
{
    char word[HL_WORD_MAX], *rest = word;
    snprintf(word, sizeof(word), "%s", text);
    while (rest) {
        char *this = rest, *comma = strchr(rest, ',');
        rest = comma ? comma + 1 : NULL;
        if (comma) *comma = '\0';
        if (c->doses == HL_WORDS_MAX) return hl_fail(c->ctx, HALO_ERR_USAGE, "'dose' has more than %d numbers", HL_WORDS_MAX);
        HL_TRY(read_number(c->ctx, "dose", this, DOSE_MOST, &c->dose[c->doses++]));
    }
    return HALO_OK;
}

static halo_status read_words(hl_cbed *c)
{
    const hl_cbed_settings *s = c->s;
    c->zones = s->zones.n;
    for (int i = 0; i < s->zones.n; i++)
        if (!read_zone(s->zones.word[i], c->zone[i])) return hl_fail(c->ctx, HALO_ERR_USAGE, "'zones': '%s' is no direction such as 001 or 1-10", s->zones.word[i]);
    for (int i = 0; i < s->dose.n; i++) HL_TRY(read_doses(c, s->dose.word[i]));
    return HALO_OK;
}

static halo_status check_geometry(const hl_cbed *c)
{
    const hl_cbed_settings *s = c->s;
    double lambda = hl_electron_wavelength(s->kv), k = c->lens.aperture / lambda, limit = hl_band_limit(s->grid, s->box);
    double spread = 2 * fabs(lambda * c->lens.defocus * k + c->lens.cs * lambda * lambda * lambda * k * k * k), wide = spread + (double)(s->scan - 1) * s->step;
    if (s->grid % 2) return hl_fail(c->ctx, HALO_ERR_USAGE, "'grid' is %" PRId64 ": must be even", s->grid);
    if ((double)(s->size / 2) / s->box > limit)
        return hl_fail(c->ctx, HALO_ERR_USAGE, "a pattern of %" PRId64 " pixels reaches %.4g 1/A, waves only %.4g (two thirds of the grid's): 'grid' must be at least %" PRId64, s->size, (double)(s->size / 2) / s->box, limit,
                       hl_round_up(hl_div_up(3 * s->size, 2), 2));
    if (k > limit) return hl_fail(c->ctx, HALO_ERR_USAGE, "the aperture reaches %.4g 1/A, waves only %.4g (two thirds of the grid's)", k, limit);
    if (wide > s->box) return hl_fail(c->ctx, HALO_ERR_USAGE, "the probe is %.4g A wide and with its scan %.4g, the box %.4g", spread, wide, s->box);
    return HALO_OK;
}

static halo_status resolve(hl_cbed *c)
{
    const hl_cbed_settings *s = c->s;
    c->lens = (hl_lens){.kv = s->kv, .aperture = 1e-3 * s->aperture, .defocus = s->defocus, .cs = 1e7 * s->cs};
    double shadow = fabs(hl_electron_wavelength(s->kv) * s->defocus / s->box);
    c->pixel = s->pixel > 0 ? s->pixel : shadow > 0 ? shadow : (double)s->scan * s->step / (double)s->size;
    c->threads = s->threads > 0 ? (int)s->threads : c->ctx && c->ctx->threads > 0 ? c->ctx->threads : hl_default_threads();
    HL_TRY(read_thickness(c));
    HL_TRY(read_words(c));
    return check_geometry(c);
}

/* -------------------------------------------------------------------------------------------------------------- dealing */

typedef struct card { double at; hl_crystal crystal; } card;

static int by_place(const void *a, const void *b)
{
    const card *p = a, *q = b;
    return (p->at > q->at) - (p->at < q->at);
}

static halo_status shuffle(hl_cbed *c)
{
    card *deck;
    HL_TRY(hl_calloc(c->ctx, (size_t)c->crystals, sizeof(*deck), "crystals", &deck));
    for (int64_t i = 0; i < c->crystals; i++) deck[i] = (card){hl_rng_uniform((uint64_t)c->s->seed, HL_STREAM_CRYSTAL, (uint64_t)i, UINT64_MAX), c->crystal[i]};
    qsort(deck, (size_t)c->crystals, sizeof(*deck), by_place);
    for (int64_t i = 0; i < c->crystals; i++) c->crystal[i] = deck[i].crystal;
    free(deck);
    return HALO_OK;
}

/* A sixth for validation and for the test each, whether or not they are asked for: parts do not depend on counts. Of fewer than three crystals all parts have all. */
static void deal(hl_cbed *c)
{
    int64_t held = c->crystals < 3 ? 0 : hl_div_up(c->crystals, 6);
    c->first[0] = 0;
    c->first[1] = c->crystals - 2 * held;
    c->first[2] = c->crystals - held;
    c->first[3] = c->crystals;
    if (held == 0 && c->s->validation + c->s->test > 0 && c->ctx->rank == 0)
        HL_WARN(c->ctx, "%" PRId64 " crystal%s for all parts: the test has unseen orientations only", c->crystals, HL_S(c->crystals));
}

static halo_status collect(hl_cbed *c)
{
    for (int i = 0; i < c->s->crystals.n; i++) HL_TRY(hl_crystals_read(c->ctx, c->s->crystals.word[i], &c->crystal, &c->crystals));
    for (int64_t i = 0; c->s->crystals.n == 0 && i < hl_prototype_compounds(); i++) {
        hl_crystal *crystal;
        HL_TRY(hl_crystals_grow(c->ctx, &c->crystal, &c->crystals, &crystal));
        HL_TRY(hl_prototype_compound(c->ctx, i, -1, crystal));
    }
    for (int64_t i = 0; i < c->crystals; i++)
        for (int64_t k = 0; k < c->crystal[i].sites; k++)
            if (c->crystal[i].site[k].b < 0) c->crystal[i].site[k].b = c->s->b;
    return HALO_OK;
}

halo_status hl_cbed_open(halo_context *ctx, const hl_cbed_settings *s, hl_cbed *c)
{
    *c = (hl_cbed){.ctx = ctx, .s = s};
    if (s->count + s->validation + s->test == 0) return hl_fail(ctx, HALO_ERR_USAGE, "no crystals are asked for: 'count', 'validation' and 'test' are 0");
    HL_TRY(resolve(c));
    HL_TRY(collect(c));
    HL_TRY(shuffle(c));
    deal(c);
    return HALO_OK;
}

void hl_cbed_close(hl_cbed *c)
{
    for (int64_t i = 0; i < c->crystals; i++) hl_crystal_free(&c->crystal[i]);
    free(c->crystal);
    c->crystal = NULL;
    c->crystals = 0;
}

/* -------------------------------------------------------------------------------------------------------------- drawing */

typedef struct draws { uint64_t seed, number, next; } draws;

static double uniform(draws *d, double lo, double hi) { return lo + (hi - lo) * hl_rng_uniform(d->seed, HL_STREAM_CRYSTAL, d->next++, d->number); }

/* A direction of the cell: one of those that are asked for, or that of a point on the sphere. */
static void draw_zone(const hl_cbed *c, draws *d, double zone[3])
{
    double which = uniform(d, 0, 1), z = uniform(d, -1, 1), phi = uniform(d, 0, 2 * M_PI), r = sqrt(1 - z * z);
    if (c->zones) memcpy(zone, c->zone[(int)(which * c->zones)], 3 * sizeof(*zone));
    else zone[0] = r * cos(phi), zone[1] = r * sin(phi), zone[2] = z;
}

void hl_cbed_draw(const hl_cbed *c, int part, int64_t number, hl_specimen *p)
{
    const hl_cbed_settings *s = c->s;
    draws d = {.seed = (uint64_t)s->seed, .number = (uint64_t)part << 48 | (uint64_t)number};
    int64_t first = c->crystals < 3 ? 0 : c->first[part], n = (c->crystals < 3 ? c->crystals : c->first[part + 1]) - first;
    *p = (hl_specimen){.crystal = &c->crystal[first + hl_min64(n - 1, (int64_t)(uniform(&d, 0, 1) * (double)n))]};
    double scale = 1 + s->strain * uniform(&d, -1, 1), place[3];
    for (int i = 0; i < 9; i++) p->cell[i / 3][i % 3] = scale * p->crystal->cell[i / 3][i % 3];
    draw_zone(c, &d, p->zone);
    p->spin = uniform(&d, 0, s->spin) * M_PI / 180;
    for (int i = 0; i < 2; i++) p->tilt[i] = 1e-3 * s->tilt * uniform(&d, -1, 1);
    hl_crystal_turn(p->cell, p->zone, p->spin, p->tilt, p->turn);
    p->thickness = uniform(&d, c->thickness[0], c->thickness[1]);
    for (int i = 0; i < 3; i++) place[i] = uniform(&d, 0, 1);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            for (int l = 0; l < 3; l++) p->origin[i] += place[k] * p->turn[i][l] * p->cell[k][l];
}
