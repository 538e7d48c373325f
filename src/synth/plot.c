/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c -- draws one 256-colour image: left, the density of a slab an eighth of the box thick, on a
 * logarithmic colour scale; right, measured power (dots) and linear theory (line) on logarithmic axes with a
 * grid line per decade.
 */
#include "synth/plot.h"

#include <stdio.h>

#include "io/png.h"

enum {
    SIDE = 480,
    GAP = 16,
    LEFT = 64,
    WIDTH = 3 * GAP + 2 * SIDE + LEFT,
    HEIGHT = SIDE + 4 * GAP,
    TOP = 2 * GAP
};
enum { RAMP = 240, WHITE = 250, GREY, BLACK, RED, BLUE }; /* 0 .. RAMP - 1: density */

typedef struct canvas {
    uint8_t pixel[HEIGHT][WIDTH];
    uint8_t palette[256][3];
} canvas;

static void set(canvas *c, int x, int y, uint8_t colour)
{
    if (x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT) c->pixel[y][x] = colour;
}

static void fill(canvas *c, int x0, int y0, int w, int h, uint8_t colour)
{
    for (int y = y0; y < y0 + h; y++)
        for (int x = x0; x < x0 + w; x++) set(c, x, y, colour);
}

static void line(canvas *c, double x0, double y0, double x1, double y1, uint8_t colour)
{
    int n = (int)fmax(fabs(x1 - x0), fabs(y1 - y0)) + 1;
    for (int i = 0; i <= n; i++) {
        int x = (int)(x0 + (x1 - x0) * i / n), y = (int)(y0 + (y1 - y0) * i / n);
        fill(c, x, y, 2, 2, colour);
    }
}

/* --------------------------------------------------------------------------------------------- lettering */

typedef struct glyph {
    char letter;
    uint16_t rows; /* five rows of three dots, the top one in the highest bits */
} glyph;

static const glyph font[] = {
    {'0', 075557}, {'1', 026227}, {'2', 071747}, {'3', 071717}, {'4', 055711}, {'5', 074717}, {'6', 074757},
    {'7', 071122}, {'8', 075757}, {'9', 075717}, {'.', 000002}, {'-', 000700}, {'/', 011244}, {'(', 024442},
    {')', 042224}, {'=', 007070}, {'^', 025000}, {'M', 057755}, {'p', 065644}, {'c', 003443}, {'h', 044655},
    {'k', 045655}, {'P', 065644}, {'z', 007127}, {'e', 003743}, {'+', 002720},
};

static void letter(canvas *c, int x, int y, char which)
{
    for (size_t g = 0; g < HL_COUNT(font); g++) {
        if (font[g].letter != which) continue;
        for (int dot = 0; dot < 15; dot++)
            if (font[g].rows >> (14 - dot) & 1) fill(c, x + dot % 3 * 2, y + dot / 3 * 2, 2, 2, BLACK);
    }
}

static void write_text(canvas *c, int x, int y, const char *text)
{
    for (; *text; text++, x += 8) letter(c, x, y, *text);
}

/* ------------------------------------------------------------------------------------------------- slice */

static void make_palette(canvas *c)
{
    static const uint8_t fixed[5][3] = {
        {255, 255, 255}, {208, 208, 208}, {32, 32, 32}, {200, 40, 40}, {40, 80, 200}};

    hl_png_ramp(c->palette, RAMP);
    memcpy(c->palette[WHITE], fixed, sizeof(fixed));
}

/* Sum of the cells under a pixel over the slab. */
static double column(const hl_plot *p, int64_t i, int64_t j, int64_t depth)
{
    double sum = 0.0;
    for (int64_t k = 0; k < depth; k++)
        sum += (double)p->full[((k * p->ext[1] + i) * p->ext[2] + j) * p->ext[3] + p->channel];
    return sum;
}

static void draw_slice(canvas *c, const hl_plot *p)
{
    int64_t depth = hl_max64(1, p->ext[0] / 8);
    double most = 0.0;

    for (int64_t i = 0; i < p->ext[1]; i++)
        for (int64_t j = 0; j < p->ext[2]; j++) most = fmax(most, column(p, i, j, depth));
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            double v = column(p, y * p->ext[1] / SIDE, x * p->ext[2] / SIDE, depth);
            set(c, GAP + x, TOP + y, (uint8_t)((RAMP - 1) * log1p(fmax(v, 0.0)) / log1p(fmax(most, 1e-9))));
        }
}

/* ---------------------------------------------------------------------------------------------- spectrum */

typedef struct axes {
    double x0, x1, y0, y1; /* log10 */
} axes;

static axes axes_of(const hl_plot *p)
{
    axes a = {1e9, -1e9, 1e9, -1e9};
    for (int i = 0; i < p->points; i++) {
        double low =
            log10(p->point[i].power > 0.0 ? fmin(p->point[i].power, p->point[i].linear) : p->point[i].linear);
        a.x0 = fmin(a.x0, log10(p->point[i].k) - 0.05);
        a.x1 = fmax(a.x1, log10(p->point[i].k) + 0.05);
        a.y0 = fmin(a.y0, low - 0.1);
        a.y1 = fmax(a.y1, log10(fmax(p->point[i].power, p->point[i].linear)) + 0.1);
    }
    return a;
}

static double at_x(const axes *a, double k)
{
    return 2 * GAP + SIDE + LEFT + SIDE * (log10(k) - a->x0) / (a->x1 - a->x0);
}
static double at_y(const axes *a, double power)
{
    return TOP + SIDE - SIDE * (log10(power) - a->y0) / (a->y1 - a->y0);
}

static void draw_axes(canvas *c, const axes *a)
{
    int left = 2 * GAP + SIDE + LEFT;
    char text[24];

    for (int d = (int)ceil(a->x0); d <= (int)floor(a->x1); d++) {
        int x = (int)at_x(a, pow(10.0, d));
        fill(c, x, TOP, 1, SIDE, GREY);
        snprintf(text, sizeof(text), "%g", pow(10.0, d));
        write_text(c, x - 12, TOP + SIDE + 6, text);
    }
    for (int d = (int)ceil(a->y0); d <= (int)floor(a->y1); d++) {
        int y = (int)at_y(a, pow(10.0, d));
        fill(c, left, y, SIDE, 1, GREY);
        snprintf(text, sizeof(text), "%g", pow(10.0, d));
        write_text(c, left - LEFT + 4, y - 5, text);
    }
    fill(c, left, TOP, SIDE, 1, BLACK);
    fill(c, left, TOP + SIDE, SIDE, 1, BLACK);
    fill(c, left, TOP, 1, SIDE, BLACK);
    fill(c, left + SIDE, TOP, 1, SIDE + 1, BLACK);
    write_text(c, left + SIDE / 2 - 40, TOP + SIDE + 18, "k (h/Mpc)");
    write_text(c, left, TOP - 16, "P (Mpc/h)^3");
}

static void draw_spectrum(canvas *c, const hl_plot *p)
{
    axes a = axes_of(p);

    if (p->points < 2) return;
    draw_axes(c, &a);
    for (int i = 1; i < p->points; i++)
        line(c, at_x(&a, p->point[i - 1].k), at_y(&a, p->point[i - 1].linear), at_x(&a, p->point[i].k),
             at_y(&a, p->point[i].linear), BLUE);
    for (int i = 0; i < p->points; i++)
        if (p->point[i].power > 0.0)
            fill(c, (int)at_x(&a, p->point[i].k) - 2, (int)at_y(&a, p->point[i].power) - 2, 5, 5, RED);
}

halo_status hl_plot_write(halo_context *ctx, const char *path, const hl_plot *plot)
{
    canvas *c;
    char text[64];

    HL_TRY(hl_calloc(ctx, 1, sizeof(*c), "an image", &c));
    memset(c->pixel, WHITE, sizeof(c->pixel));
    make_palette(c);
    draw_slice(c, plot);
    draw_spectrum(c, plot);
    snprintf(text, sizeof(text), "%g Mpc/h  z=%.2f", plot->box, plot->redshift);
    write_text(c, GAP, TOP - 16, text);
    halo_status st = hl_png_write(ctx, path, WIDTH, HEIGHT, &c->pixel[0][0], c->palette);
    free(c);
    return st;
}
