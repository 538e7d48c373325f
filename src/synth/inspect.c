/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c -- a universe's parameters, counts and measured power against linear theory.
 *
 * P(k) has the assignment window divided out and Poisson shot noise, box^3 / particles, subtracted. The
 * particles of a simulation start on a lattice and carry less noise than that until they have moved by about
 * their spacing, so at high redshift the subtraction takes too much; what was taken is printed, and so is the
 * power with the noise left in. Linear theory is the spectrum of Eisenstein & Hu at the file's parameters,
 * grown to the channel's redshift.
 */
#include "synth/inspect.h"

#include <stdio.h>

#include "io/universe.h"
#include "synth/plot.h"
#include "synth/power.h"
#include "synth/spectrum.h"

enum { ROWS_MOST = 16 };

typedef struct channel_report {
    double redshift, mean, deviation, most, empty, shot; /* shot: (Mpc/h)^3 */
    int shells;
    hl_shell *shell;
    hl_plot_point *point; /* [shells] */
    double *raw;          /* [shells] power with the shot noise left in, (Mpc/h)^3 */
} channel_report;

typedef struct inspection {
    halo_context *ctx;
    const char *path;
    hl_universe_file u;
    hl_cosmology cosmology;
    hl_power linear;
    int scheme;
    double box;
    hl_spectrum *spectrum;
} inspection;

bool hl_is_universe(const char *path)
{
    return hl_universe_is_complete(path, NULL);
}

/* Published names, and what they mean here. */
static void set_cosmology(inspection *in)
{
    hl_cosmology *c = &in->cosmology;
    const hl_universe_file *u = &in->u;
    const struct {
        const char *name;
        double *value, factor;
    } known[] = {{"Omega_m", &c->omega_m, 1.0},
                 {"sigma_8", &c->sigma_8, 1.0},
                 {"N_spec", &c->n_s, 1.0},
                 {"H_0", &c->h, 0.01}};

    *c = (hl_cosmology){
        .omega_m = 0.3, .omega_b = 0.045, .h = 0.7, .n_s = 0.96, .sigma_8 = 0.8, .t_cmb = HL_T_CMB};
    if (isfinite(u->omega_b)) c->omega_b = u->omega_b;
    if (isfinite(u->h)) c->h = u->h;
    for (int i = 0; i < u->parameters; i++)
        for (size_t k = 0; k < HL_COUNT(known); k++)
            if (strcmp(u->parameter[i].name, known[k].name) == 0 && isfinite(u->parameter[i].physical))
                *known[k].value = u->parameter[i].physical * known[k].factor;
}

static halo_status prepare(inspection *in)
{
    HL_TRY(hl_universe_read(in->ctx, in->path, &in->u));
    set_cosmology(in);
    if (!(in->cosmology.omega_m > 0.0) || !(in->cosmology.h > 0.0) ||
        !(in->cosmology.omega_b >= 0.0 && in->cosmology.omega_b < in->cosmology.omega_m))
        return hl_fail(in->ctx, HALO_ERR_FORMAT,
                       "'%s': its cosmology makes no sense: Omega_m %g, Omega_b %g, h %g", in->path,
                       in->cosmology.omega_m, in->cosmology.omega_b, in->cosmology.h);
    in->linear = hl_power_prepare(&in->cosmology, !in->u.no_wiggles);
    in->box = isfinite(in->u.box) && in->u.box > 0.0 ? in->u.box : 512.0;
    in->scheme = in->u.integer ? HL_NGP : HL_CIC;
    for (int s = HL_NGP; s <= HL_TSC; s++)
        if (strcmp(in->u.assignment, hl_scheme_name((hl_scheme)s)) == 0) in->scheme = s;
    return hl_spectrum_create(in->ctx, in->u.ext, 0, in->scheme, &in->spectrum);
}

static void count_cells(const inspection *in, int channel, channel_report *r)
{
    int64_t cells = in->u.ext[0] * in->u.ext[1] * in->u.ext[2], channels = in->u.ext[3], empty = 0;
    double sum = 0.0, square = 0.0;

    r->most = (double)in->u.full[channel];
    for (int64_t c = 0; c < cells; c++) {
        double v = (double)in->u.full[c * channels + channel];
        sum += v;
        square += v * v;
        r->most = fmax(r->most, v);
        empty += v == 0.0;
    }
    r->mean = sum / (double)cells;
    r->deviation = sqrt(fmax(square / (double)cells - r->mean * r->mean, 0.0));
    r->empty = (double)empty / (double)cells;
}

static halo_status measure(inspection *in, int channel, channel_report *r)
{
    const double pi = 3.14159265358979323846, volume = in->box * in->box * in->box, unit = 2.0 * pi / in->box;
    double particles;

    r->shells = hl_spectrum_shells(in->spectrum);
    r->redshift = channel < in->u.redshifts ? in->u.redshift[channel] : 0.0;
    HL_TRY(hl_calloc(in->ctx, (size_t)r->shells, sizeof(*r->shell), "a spectrum", &r->shell));
    HL_TRY(hl_calloc(in->ctx, (size_t)r->shells, sizeof(*r->point), "a spectrum", &r->point));
    HL_TRY(hl_calloc(in->ctx, (size_t)r->shells, sizeof(*r->raw), "a spectrum", &r->raw));
    count_cells(in, channel, r);
    particles = isfinite(in->u.particles) ? pow(in->u.particles, 3.0)
                                          : r->mean * (double)(in->u.ext[0] * in->u.ext[1] * in->u.ext[2]);
    r->shot = particles > 0.0 ? volume / particles : 0.0;
    hl_spectrum_of(in->spectrum, in->u.full + channel, in->u.ext[3], 0.0, r->shell);
    for (int m = 0; m < r->shells; m++) r->raw[m] = r->shell[m].power * volume;
    hl_spectrum_of(in->spectrum, in->u.full + channel, in->u.ext[3], r->shot / volume, r->shell);
    double growth = hl_lpt_growth_at(&in->cosmology, 1.0 / (1.0 + r->redshift)).d1;
    for (int m = 0; m < r->shells; m++) {
        double k = r->shell[m].k * unit;
        r->point[m] =
            (hl_plot_point){k, r->shell[m].power * volume, hl_power_at(&in->linear, k) * growth * growth};
    }
    return HALO_OK;
}

/* ------------------------------------------------------------------------------------------------ output */

static void say_parameters(const inspection *in, hl_str *out)
{
    const hl_universe_file *u = &in->u;

    hl_str_addf(out,
                "universe of %" PRId64 " x %" PRId64 " x %" PRId64 " cells, %" PRId64
                " redshift%s, %s; box %g Mpc/h%s\n\n",
                u->ext[0], u->ext[1], u->ext[2], u->ext[3], HL_S(u->ext[3]),
                u->integer ? "counts" : "densities", in->box,
                isfinite(u->box) ? "" : " (assumed: the file does not say)");
    hl_str_addf(out, "%-14s %12s %10s\n", "parameter", "value", "stored");
    for (int i = 0; i < u->parameters; i++) {
        const hl_universe_parameter *p = &u->parameter[i];
        if (isfinite(p->physical))
            hl_str_addf(out, "%-14s %12.5g %10.5f\n", p->name, p->physical, p->unit);
        else
            hl_str_addf(out, "%-14s %12s %10.5f\n", p->name, "unknown", p->unit);
    }
}

/* Every shell of the first few, then fewer: the table stays small. */
static bool is_shown(int m, int shells)
{
    return shells <= ROWS_MOST || m < ROWS_MOST / 2 || (m + 1) % (shells / (ROWS_MOST / 2)) == 0;
}

static void say_channel(const inspection *in, const channel_report *r, hl_str *out)
{
    hl_str_addf(out, "\nz = %g: mean %.6g, deviation %.4g, most %.6g, empty cells %.1f %%\n", r->redshift,
                r->mean, r->deviation, r->most, 100.0 * r->empty);
    hl_str_addf(out, "power spectrum, %s window divided out, shot noise of %.4g (Mpc/h)^3 subtracted\n",
                hl_scheme_name((hl_scheme)in->scheme), r->shot);
    hl_str_addf(out, "%10s %12s %12s %12s %8s %10s\n", "k h/Mpc", "P (Mpc/h)^3", "with noise", "linear",
                "ratio", "modes");
    for (int m = 0; m < r->shells; m++) {
        const hl_plot_point *p = &r->point[m];
        if (!is_shown(m, r->shells) || r->shell[m].modes == 0.0) continue;
        hl_str_addf(out, "%10.4f %12.4g %12.4g %12.4g %8.3f %10.0f\n", p->k, p->power, r->raw[m], p->linear,
                    p->power / p->linear, 2.0 * r->shell[m].modes);
    }
}

static void parameters_json(const inspection *in, hl_json *j)
{
    hl_json_number(j, "box", in->box);
    hl_json_array(j, "extents");
    for (int d = 0; d < 4; d++) hl_json_int(j, NULL, in->u.ext[d]);
    hl_json_end_array(j);
    hl_json_array(j, "parameters");
    for (int i = 0; i < in->u.parameters; i++) {
        hl_json_object(j, NULL);
        hl_json_string(j, "name", in->u.parameter[i].name);
        hl_json_number(j, "value", in->u.parameter[i].physical);
        hl_json_number(j, "stored", in->u.parameter[i].unit);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
}

static void channel_json(const channel_report *r, hl_json *j)
{
    hl_json_object(j, NULL);
    hl_json_number(j, "redshift", r->redshift);
    hl_json_number(j, "mean", r->mean);
    hl_json_number(j, "deviation", r->deviation);
    hl_json_number(j, "most", r->most);
    hl_json_number(j, "empty", r->empty);
    hl_json_number(j, "shot_noise", r->shot);
    hl_json_array(j, "spectrum");
    for (int m = 0; m < r->shells; m++) {
        if (r->shell[m].modes == 0.0) continue;
        hl_json_object(j, NULL);
        hl_json_number(j, "k", r->point[m].k);
        hl_json_number(j, "power", r->point[m].power);
        hl_json_number(j, "power_with_noise", r->raw[m]);
        hl_json_number(j, "linear", r->point[m].linear);
        hl_json_number(j, "modes", 2.0 * r->shell[m].modes);
        hl_json_end_object(j);
    }
    hl_json_end_array(j);
    hl_json_end_object(j);
}

static halo_status draw(const inspection *in, const channel_report *r, const char *plot)
{
    hl_plot p = {
        .full = in->u.full, .box = in->box, .redshift = r->redshift, .points = r->shells, .point = r->point};
    memcpy(p.ext, in->u.ext, sizeof(p.ext));
    return hl_plot_write(in->ctx, plot, &p);
}

/* The picture shows the first channel. */
static halo_status report_channels(inspection *in, const char *plot, hl_str *text, hl_json *json)
{
    for (int c = 0; c < (int)in->u.ext[3]; c++) {
        channel_report r = {0};
        halo_status st = measure(in, c, &r);
        if (st == HALO_OK && text) say_channel(in, &r, text);
        if (st == HALO_OK && json) channel_json(&r, json);
        if (st == HALO_OK && plot && c == 0) st = draw(in, &r, plot);
        free(r.shell);
        free(r.point);
        free(r.raw);
        if (st != HALO_OK) return st;
    }
    return HALO_OK;
}

halo_status hl_universe_inspect(halo_context *ctx, const char *path, const char *plot, hl_str *text,
                                hl_json *json)
{
    inspection in = {.ctx = ctx, .path = path};
    halo_status st = prepare(&in);

    if (st == HALO_OK) {
        if (text) say_parameters(&in, text);
        if (json) {
            parameters_json(&in, json);
            hl_json_array(json, "channels");
        }
        st = report_channels(&in, plot, text, json);
        if (json) hl_json_end_array(json);
    }
    hl_spectrum_destroy(in.spectrum);
    free(in.u.full);
    return st;
}
