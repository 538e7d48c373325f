/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diffraction: scattering factors and constants against published values; crystals against their geometry; potentials, probe and multislice against what is known exactly; counts; files that read back, and are the same whatever
 * is made besides, by however many threads.
 */
#include "tests/io/iotest.h"
#include "io/source.h"
#include "synth/cbed/cbed.h"
#include "synth/cbed/kirkland.h"
#include "synth/cbed/multislice.h"
#include "synth/cbed/prototypes.h"

#include <math.h>

static double relative(double a, double b) { return fabs(a - b) / fabs(b); }

/* ------------------------------------------------------------------------------------------------------- scattering */

static void test_factors(void)
{
    /* f(0) of neutral atoms, A: International Tables for Crystallography C, 4.3.1 (Doyle and Turner's relativistic Hartree-Fock values). */
    static const struct { const char *symbol; int z; double f; } known[] = {{"C", 6, 2.509}, {"O", 8, 1.983}, {"Si", 14, 5.828}, {"Cu", 29, 5.600}, {"Ag", 47, 8.671}, {"Au", 79, 10.573}};
    for (size_t i = 0; i < HL_COUNT(known); i++) {
        double f = hl_kirkland(hl_element_number(known[i].symbol), 0);
        tap_ok(hl_element_number(known[i].symbol) == known[i].z && relative(f, known[i].f) <= 0.01, "f(0) of %s is that of the International Tables: %.4f A, %.3f", known[i].symbol, f, known[i].f);
    }
    /* Mott and Bethe: f q^2 tends to Z / (2 pi^2 a_0), which is the check on every row of the table. */
    double worst = 0;
    for (int z = 1; z <= 98; z++) {
        double q2 = 144, f = hl_kirkland(z, q2) * q2 * 2 * M_PI * M_PI * 0.529177211;
        worst = fmax(worst, fabs(f / z - 1));
    }
    tap_ok(worst <= 0.12, "f q^2 of all elements at 12 1/A is that of the bare nucleus: within %.1f %%", 100 * worst);
    bool falling = true;
    for (int z = 1; z <= HL_ELEMENTS; z++)
        for (double q = 0; q < 6; q += 0.25) falling = falling && hl_kirkland(z, q * q) > hl_kirkland(z, (q + 0.25) * (q + 0.25));
    tap_ok(falling, "f falls with q for all elements");
    tap_ok(hl_element_number("Si4+") == 14 && hl_element_number("O1") == 8 && hl_element_number("OH") == 8 && hl_element_number("Xx") == 0 && hl_element_number("1") == 0, "elements are known by what labels begin with");
}

static void test_constants(void)
{
    /* E. J. Kirkland, 2010, table 2.1 and figure 5.x: 100, 200 and 300 keV. */
    static const double known[3][3] = {{100, 0.0370144, 0.924397e-3}, {200, 0.0250793, 0.728840e-3}, {300, 0.0196875, 0.652594e-3}};
    for (int i = 0; i < 3; i++) {
        double l = hl_electron_wavelength(known[i][0]), s = hl_interaction(known[i][0]);
        tap_ok(relative(l, known[i][1]) <= 1e-4 && relative(s, known[i][2]) <= 1e-4, "wavelength and interaction at %g keV: %.7f A, %.6e rad/(V A)", known[i][0], l, s);
    }
}

/* -------------------------------------------------------------------------------------------------------- potential */

enum { N = 128 };
static const double box = 20;

static hl_potential *potential_of(halo_context *ctx, const hl_atom *a, int64_t n, double thickness, double slice)
{
    hl_potential *p;
    MUST(hl_potential_create(ctx, N, box, thickness, slice, a, n, 2, NULL, &p));
    return p;
}

/* The closed form of the projected potential is the transform of the scattering factor: 47.878 f(q) = integral of v(r) J_0(2 pi q r) 2 pi r dr, by steps of log r. */
static void test_closed_form(void)
{
    static const int z[] = {6, 14, 79};
    double worst = 0;
    for (int i = 0; i < 9; i++) {
        double q = 0.4 * (i / 3), sum = 0, h = 2e-3;
        for (double u = log(1e-5); u < log(25); u += h) sum += hl_kirkland_projected(z[i % 3], exp(u)) * j0(2 * M_PI * q * exp(u)) * 2 * M_PI * exp(2 * u) * h;
        worst = fmax(worst, relative(sum, HL_POTENTIAL_OF_FACTOR * hl_kirkland(z[i % 3], q * q)));
    }
    tap_ok(worst <= 1e-4, "the closed form of the projected potential has the scattering factor as its transform: %.1e", worst);
}

/* One gold atom off the grid. */
static void test_atom(halo_context *ctx)
{
    const hl_atom a = {.z = 79, .weight = 1, .b = 2, .at = {8.03, 9.57, 0.5}};
    hl_potential *p = potential_of(ctx, &a, 1, 1, 1);
    double sum = 0, h = 0, w = 0;
    for (int64_t i = 0; i < N * N; i++) {
        double v = p->v[i] * p->v[i];
        sum += v;
        h += v * (double)(i / N) * box / N;
        w += v * (double)(i % N) * box / N;
    }
    tap_ok(fabs(h / sum - a.at[0]) < 0.01 && fabs(w / sum - a.at[1]) < 0.01, "an atom lies where it is, to parts of a point: %.4f, %.4f", h / sum, w / sum);
    sum = 0;
    for (int64_t i = 0; i < N * N; i++) sum += p->v[i];
    tap_ok(relative(sum * box * box / (N * N), HL_POTENTIAL_OF_FACTOR * hl_kirkland(79, 0)) <= 1e-9, "its integral is 47.878 f(0)");
    hl_potential_destroy(p);
}

static void test_image(halo_context *ctx)
{
    hl_atom a[3] = {{.z = 14, .weight = 1, .b = 1, .at = {8, 9.3, 0.5}}, {.z = 8, .weight = 0.5, .b = 0.6, .at = {11, 10, 2.5}}, {.z = 14, .weight = 1, .b = 1, .at = {12.2, 7.7, 4.9}}};
    hl_potential *p = potential_of(ctx, a, 3, 5, 2);
    float image[N * N];
    double worst = 0, most = 0;
    MUST(hl_potential_image(p, N, box / N, 0, image));
    for (int64_t i = 0; i < N * N; i++) {
        double v = 0;
        for (int64_t s = 0; s < p->slices; s++) v += p->v[s * N * N + i];
        worst = fmax(worst, fabs(v - (double)image[i]));
        most = fmax(most, v);
    }
    tap_ok(p->slices == 3 && fabs(p->dz - 5.0 / 3) < 1e-12, "slices are of equal thickness, at most that asked for");
    tap_ok(worst <= 1e-6 * most, "the image is the sum of the slices: %.1e of its largest", worst / most);
    hl_potential_destroy(p);
}

/* ------------------------------------------------------------------------------------------------------- multislice */

static double _Complex *wave_new(void)
{
    double _Complex *w = fftw_alloc_complex(N * N);
    if (!w) tap_bail("out of memory");
    return w;
}

static double norm_of(const double _Complex *w)
{
    double sum = 0;
    for (int64_t i = 0; i < N * N; i++) sum += creal(w[i]) * creal(w[i]) + cimag(w[i]) * cimag(w[i]);
    return sum;
}

static const hl_lens lens = {.kv = 200, .aperture = 0.02, .defocus = 80, .cs = 1e4};

static void test_probe(void)
{
    double _Complex *w = wave_new();
    const double at[2] = {box / 2, box / 2};
    const hl_lens ideal = {.kv = 200, .aperture = 0.02};
    double worst = 0, outside = 0, most = 0.02 / hl_electron_wavelength(200);
    hl_probe(&ideal, N, box, at, w);
    fftw_plan plan = hl_fft_plan(N, FFTW_BACKWARD);
    double _Complex *r = wave_new();
    fftw_execute_dft(plan, w, r);
    for (int64_t i = 1; i < N; i++)
        for (int64_t j = 1; j < N; j++) {
            double a = cabs(r[i * N + j]), b = cabs(r[(N - i) * N + j]), c = cabs(r[j * N + i]);
            worst = fmax(worst, fmax(fabs(a - b), fabs(a - c)));
        }
    tap_ok(worst <= 1e-12 * cabs(r[N / 2 * N + N / 2]) * N, "without aberrations the probe is symmetric around its place: %.1e", worst);
    tap_ok(fabs(norm_of(w) - 1) <= 1e-12 && fabs(norm_of(r) / (N * N) - 1) <= 1e-12, "its intensity is 1, in modes and (Parseval) in space");
    hl_probe(&lens, N, box, at, w);
    for (int64_t i = 0; i < N * N; i++) {
        double kh = hl_frequency(i / N, N, box), kw = hl_frequency(i % N, N, box);
        if (sqrt(kh * kh + kw * kw) > most + 1 / box) outside = fmax(outside, cabs(w[i]));
    }
    tap_ok(outside == 0 && fabs(norm_of(w) - 1) <= 1e-12, "aberrations change no intensity, and nothing passes outside the aperture");
    double k2 = 0.25, l = hl_electron_wavelength(200);
    tap_ok(fabs(hl_aberration(&lens, k2) - (M_PI * l * k2 * 80 + M_PI / 2 * 1e4 * l * l * l * k2 * k2)) <= 1e-12, "chi is that of defocus and spherical aberration");
    hl_fft_plan_free(plan);
    fftw_free(w);
    fftw_free(r);
}

static hl_multislice *multislice_of(halo_context *ctx, const hl_potential *p)
{
    hl_multislice *m;
    MUST(hl_multislice_create(ctx, p, 200, 2, NULL, &m));
    return m;
}

/* Nothing in the way: a probe of defocus C1 becomes that of defocus C1 + thickness. */
static void test_free(halo_context *ctx)
{
    hl_potential *p = potential_of(ctx, NULL, 0, 100, 2);
    hl_multislice *m = multislice_of(ctx, p);
    double _Complex *w = wave_new(), *work = wave_new(), *to = wave_new();
    const double at[2] = {9.1, 11.3};
    hl_lens further = lens;
    double worst = 0;
    further.defocus += 100;
    hl_probe(&lens, N, box, at, w);
    hl_probe(&further, N, box, at, to);
    hl_multislice_run(m, w, work);
    for (int64_t i = 0; i < N * N; i++) worst = fmax(worst, cabs(w[i] - to[i]));
    tap_ok(fabs(norm_of(w) - 1) <= 1e-6, "free propagation through 100 A keeps the norm: off by %.1e", fabs(norm_of(w) - 1));
    tap_ok(worst <= 1e-12, "and is a change of defocus: %.1e", worst);
    hl_multislice_destroy(m);
    hl_potential_destroy(p);
    fftw_free(w), fftw_free(work), fftw_free(to);
}

/* A thin object of the part `weight` of an atom: exit wave over entrance wave, beside 1 + i sigma v. */
static double weak_error(halo_context *ctx, double weight, double *change)
{
    const hl_atom a = {.z = 6, .weight = weight, .b = 8, .at = {9.3, 10.4, 0.005}};
    hl_potential *p = potential_of(ctx, &a, 1, 0.01, 1);
    hl_multislice *m = multislice_of(ctx, p);
    double _Complex *w = wave_new(), *r = wave_new();
    fftw_plan plan = hl_fft_plan(N, FFTW_BACKWARD);
    double worst = 0, sigma = hl_interaction(200);
    for (int64_t i = 0; i < N * N; i++) w[i] = i == 0; /* a plane wave */
    hl_multislice_run(m, w, r);
    fftw_execute_dft(plan, w, r);
    *change = 0;
    for (int64_t i = 0; i < N * N; i++) {
        worst = fmax(worst, cabs(r[i] - (1 + I * sigma * p->v[i])));
        *change = fmax(*change, sigma * p->v[i]);
    }
    hl_fft_plan_free(plan);
    hl_multislice_destroy(m);
    hl_potential_destroy(p);
    fftw_free(w), fftw_free(r);
    return worst;
}

static void test_weak(halo_context *ctx)
{
    double change, half, error = weak_error(ctx, 0.1, &change), smaller = weak_error(ctx, 0.05, &half);
    tap_ok(error <= change * change && error > 0, "a weak phase object gives 1 + i sigma v: %.1e beside a change of %.1e", error, change);
    tap_ok(fabs(change / half - 2) < 1e-9 && error / smaller > 3 && error / smaller < 4.5, "to first order: half of it is wrong by a %.2fth", error / smaller);
}

static int64_t gold(hl_atom a[16])
{
    for (int i = 0; i < 16; i++) a[i] = (hl_atom){.z = 79, .weight = 1, .b = 0.6, .at = {7 + (i % 4), 11, 2.0 * i + 1}};
    return 16;
}

static void test_thick(halo_context *ctx)
{
    hl_atom a[16];
    hl_potential *p = potential_of(ctx, a, gold(a), 32, 2);
    hl_multislice *m = multislice_of(ctx, p);
    double _Complex *w = wave_new(), *work = wave_new();
    const double at[2] = {8, 11};
    double limit = hl_band_limit(N, box), beyond = 0;
    hl_probe(&lens, N, box, at, w);
    hl_multislice_run(m, w, work);
    for (int64_t i = 0; i < N * N; i++) {
        double kh = hl_frequency(i / N, N, box), kw = hl_frequency(i % N, N, box);
        if (sqrt(kh * kh + kw * kw) > limit) beyond = fmax(beyond, cabs(w[i]));
    }
    tap_ok(beyond == 0 && fabs(limit - 2.0 / 3 * N / 2 / box) < 1e-12, "waves have no modes beyond two thirds of the grid's");
    tap_ok(norm_of(w) <= 1 && norm_of(w) > 0.95, "a crystal takes nothing but what it scatters beyond: %.4f is left behind gold", norm_of(w));
    hl_multislice_destroy(m);
    hl_potential_destroy(p);
    fftw_free(w), fftw_free(work);
}

/* --------------------------------------------------------------------------------------------------------- crystals */

static void test_cut(halo_context *ctx)
{
    hl_crystal c;
    double turn[3][3];
    const double zone[3] = {1, 2, 3}, tilt[2] = {0.01, -0.02}, origin[3] = {0.3, -1, 7}, side = 60;
    bool found = true, orthogonal = true;
    for (int64_t i = 0; i < hl_prototype_compounds(); i += 7) {
        hl_atom *a;
        int64_t n;
        MUST(hl_prototype_compound(ctx, i, 0.5, &c));
        hl_crystal_turn(c.cell, zone, 1.1, tilt, turn);
        for (int k = 0; k < 9; k++) {
            double d = 0;
            for (int l = 0; l < 3; l++) d += turn[k / 3][l] * turn[k % 3][l];
            orthogonal = orthogonal && fabs(d - (k / 3 == k % 3)) < 1e-12;
        }
        MUST(hl_crystal_cut(ctx, &c, turn, origin, side, side, &a, &n));
        found = found && relative((double)n, (double)c.sites * side * side * side / hl_cell_volume(c.cell)) < 0.02;
        free(a);
        hl_crystal_free(&c);
    }
    tap_ok(found, "as many atoms are in a box as its volume holds");
    tap_ok(orthogonal, "turns are orthogonal");
}

static void test_zone(halo_context *ctx)
{
    hl_crystal c;
    double turn[3][3], beam[3] = {0};
    const double zone[3] = {1, 1, 0}, tilt[2] = {0, 0};
    MUST(hl_prototype_compound(ctx, 0, 0.5, &c));
    hl_crystal_turn(c.cell, zone, 0.7, tilt, turn);
    for (int k = 0; k < 3; k++)
        for (int l = 0; l < 3; l++) beam[k] += turn[k][l] * (c.cell[0][l] + c.cell[1][l]);
    tap_ok(fabs(beam[0]) < 1e-12 && fabs(beam[1]) < 1e-12 && relative(beam[2], sqrt(2) * c.cell[0][0]) < 1e-12, "the zone axis lies in the beam");
    hl_crystal_free(&c);
}

static const char cif[] = "# silicon, as a database writes it\n"
                          "data_Si\n_cell_length_a 5.4310(2)\n_cell_length_b 5.4310(2)\n_cell_length_c 5.4310(2)\n_cell_angle_alpha 90\n_cell_angle_beta 90.00\n_cell_angle_gamma 90\n"
                          "_symmetry_space_group_name_H-M 'F d -3 m'\n"
                          "_publ_text\n;\nloop_ data_ 'not read\n;\n"
                          "loop_\n_symmetry_equiv_pos_as_xyz\n"
                          "'x, y, z'\n'x, y+1/2, z+1/2'\n'x+1/2, y, z+1/2'\n'x+1/2, y+1/2, z'\n'1/4-x, 1/4-y, 1/4-z'\n'1/4-x, 3/4-y, 3/4-z'\n'3/4-x, 1/4-y, 3/4-z'\n'3/4-x, 3/4-y, 1/4-z'\n'-x+1/4,-y+.25,-z+0.25'\n"
                          "loop_\n_atom_site_label\n_atom_site_fract_x\n_atom_site_fract_y\n_atom_site_fract_z\n_atom_site_U_iso_or_equiv\nSi1 0.0 0 0 0.0064\n";

static const char table[] = "crystal MgO   # rock salt\ncell 4.21 4.21 4.21\nMg 0 0 0\nMg 0 .5 .5\nMg .5 0 .5\nMg .5 .5 0\nO .5 .5 .5 0.4\nO .5 0 0\nO 0 .5 0\nO 0 0 .5 0.4 0.5\n"
                            "crystal graphite\ncell 2.46 2.46 6.71 90 90 120\nC 0 0 .25\nC 0 0 .75\nC 0.3333 0.6667 .25\nC .6667 .3333 .75\n";

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) tap_bail("cannot write a file");
}

static void test_files(halo_context *ctx, const char *dir)
{
    char path[600];
    hl_crystal *c = NULL;
    int64_t n = 0;
    snprintf(path, sizeof(path), "%s/si.cif", dir);
    write_text(path, cif);
    MUST(hl_crystals_read(ctx, path, &c, &n));
    tap_ok(n == 1 && strcmp(c[0].name, "Si") == 0 && c[0].sites == 8 && fabs(c[0].cell[0][0] - 5.431) < 1e-12 && fabs(c[0].site[0].b - 8 * M_PI * M_PI * 0.0064) < 1e-12,
           "a CIF file's operations make the cell: %" PRId64 " atoms of silicon", c[0].sites);
    snprintf(path, sizeof(path), "%s/crystals.txt", dir);
    write_text(path, table);
    MUST(hl_crystals_read(ctx, path, &c, &n));
    tap_ok(n == 3 && c[1].sites == 8 && c[2].sites == 4 && c[1].site[7].occupancy == 0.5 && c[1].site[0].b < 0 && relative(hl_cell_volume(c[2].cell), 2.46 * 2.46 * 6.71 * sqrt(0.75)) < 1e-12,
           "a table holds several crystals");
    for (int64_t i = 0; i < n; i++) hl_crystal_free(&c[i]);
    free(c);
}

static void refuse(halo_context *ctx, const char *dir, const char *text, const char *what)
{
    char path[600];
    hl_crystal *c = NULL;
    int64_t n = 0;
    snprintf(path, sizeof(path), "%s/bad.cif", dir);
    write_text(path, text);
    halo_status st = hl_crystals_read(ctx, path, &c, &n);
    tap_ok(st == HALO_ERR_FORMAT && strstr(halo_error_message(ctx), what), "refused: %s", halo_error_message(ctx));
    for (int64_t i = 0; i < n; i++) hl_crystal_free(&c[i]);
    free(c);
}

static void test_bad_files(halo_context *ctx, const char *dir)
{
    refuse(ctx, dir, "", "no crystals");
    refuse(ctx, dir, "Si 0 0 0\n", "'crystal NAME'");
    refuse(ctx, dir, "crystal a\ncell 1 2\n", "line 2");
    refuse(ctx, dir, "crystal a\ncell 1 1 1 90 90 200\n", "no such cell");
    refuse(ctx, dir, "crystal a\ncell 4 4 4\nQx 0 0 0\n", "no such element");
    refuse(ctx, dir, "crystal a\ncell 4 4 4\ncrystal b\n", "'a' has no atoms");
    refuse(ctx, dir, "data_a\n_cell_length_a 4\n", "lacks edges");
    refuse(ctx, dir, "data_a\n_cell_length_a four\n", "line 2");
    refuse(ctx, dir, "data_a\nloop_\n_atom_site_label\n_atom_site_fract_x\n_atom_site_fract_y\n_atom_site_fract_z\nSi 0 0 0 Si 0\n", "too early");
    refuse(ctx, dir, "data_a\nloop_\n_symmetry_equiv_pos_as_xyz\n'x,y'\n", "symmetry operation");
    char no_operations[sizeof(cif)];
    snprintf(no_operations, sizeof(no_operations), "%.*s%s", (int)(strstr(cif, "loop_\n_symm") - cif), cif, strstr(cif, "loop_\n_atom"));
    refuse(ctx, dir, no_operations, "'F d -3 m'");
}

/* ----------------------------------------------------------------------------------------------------------- counts */

static void test_poisson(void)
{
    static const double means[] = {0.01, 0.7, 12, 255.9, 257, 300, 5000, 60000, 1e9};
    for (size_t k = 0; k < HL_COUNT(means); k++) {
        enum { DRAWS = 40000 };
        double sum = 0, squares = 0, m = means[k];
        for (uint64_t i = 0; i < DRAWS; i++) {
            double x = (double)hl_poisson(m, 7, i, k) - m;
            sum += x;
            squares += x * x;
        }
        double mean = sum / DRAWS, variance = squares / DRAWS;
        tap_ok(fabs(mean) <= 4 * sqrt(m / DRAWS) && fabs(variance / m - 1) <= 4 * sqrt((2 + 1 / m) / DRAWS), "counts of mean %g: off by %.2g, variance over mean %.4f", m, mean, variance / m);
    }
    tap_ok(hl_poisson(0, 7, 1, 1) == 0, "of mean 0 there is none");
}

/* Each count as often as it should be, of a mean that is drawn by rejection: chi^2 over the counts within four deviations. */
static void test_poisson_law(void)
{
    enum { DRAWS = 400000, FROM = 236, BINS = 129 };
    static int64_t seen[BINS];
    const double m = 300;
    double chi2 = 0, inside = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        int64_t k = hl_poisson(m, 11, i, 3) - FROM;
        if (k >= 0 && k < BINS) seen[k]++;
    }
    for (int k = 0; k < BINS; k++) {
        double expected = DRAWS * exp((k + FROM) * log(m) - m - lgamma(k + FROM + 1));
        chi2 += ((double)seen[k] - expected) * ((double)seen[k] - expected) / expected;
        inside += (double)seen[k] / DRAWS;
    }
    tap_ok(chi2 < BINS + 4 * sqrt(2.0 * BINS) && inside > 0.9995, "counts of mean 300 have Poisson's law: chi^2 %.1f of %d, %.6f within", chi2, BINS, inside);
}

/* ------------------------------------------------------------------------------------------------------------ files */

static hl_cbed_settings *settings(halo_context *ctx, const char *dir, const char *name, const char *const *set)
{
    hl_cbed_settings *s = calloc(1, sizeof(*s));
    if (!s) tap_bail("out of memory");
    MUST(hl_config_defaults(ctx, hl_cbed_keys(), s));
    for (; *set; set++) MUST(hl_config_override(ctx, hl_cbed_keys(), s, *set));
    snprintf(s->out, sizeof(s->out), "%.400s/%s", dir, name);
    return s;
}

static const char *const small[] = {"count=5", "validation=2", "size=32", "scan=3", "box=14", "grid=64", "aperture=20", "defocus=60", "thickness=6:9", "per_file=3", "threads=1", NULL};

static hl_source *open_part(halo_context *ctx, const hl_cbed_settings *s, const char *part)
{
    char path[HL_TEXT_MAX + 16];
    hl_source *source;
    snprintf(path, sizeof(path), "%s/%s", s->out, part);
    const hl_source_options o = {.path = path, .format = "auto"};
    MUST(hl_source_open(ctx, &o, &source));
    return source;
}

static void test_made(halo_context *ctx, const char *dir)
{
    hl_cbed_settings *s = settings(ctx, dir, "a", small);
    hl_cbed_result r;
    float x[9 * 32 * 32], y[32 * 32];
    double sum = 0;
    MUST(hl_cbeds_make(ctx, s, NULL, &r));
    tap_ok(r.crystals == 7 && r.files == 3 && r.skipped == 0, "crystals in files of a few");
    hl_source *t = open_part(ctx, s, "train");
    tap_ok(t->info.samples == 5 && t->info.groups == 5 && t->info.ext[0] == 9 && t->info.ext[1] == 1 && t->info.ext[2] == 32 && t->info.target_ext[2] == 32 && strcmp(t->info.target[0].name, "potential") == 0,
           "which train: %s", t->info.description);
    MUST(hl_source_read(t, 4, NULL, x, NULL, y));
    for (int i = 0; i < 32 * 32; i++) sum += (double)x[4 * 32 * 32 + i];
    tap_ok(sum / (32 * 32) > 0.9 && sum / (32 * 32) <= 1, "a pattern holds the intensity of the beam: %.4f", sum / (32 * 32));
    hl_source_close(t);
    MUST(hl_cbeds_make(ctx, s, NULL, &r));
    tap_ok(r.skipped == 7, "a second run finds them");
    s->step = 0.25;
    tap_ok(hl_cbeds_make(ctx, s, NULL, &r) == HALO_ERR_USAGE && strstr(halo_error_message(ctx), "step: 0.5"), "other settings are refused: %s", halo_error_message(ctx));
    free(s);
}

/* The same sample among more, by more threads; with counts its patterns are these and its image the same. */
static void test_same(halo_context *ctx, const char *dir)
{
    hl_cbed_settings *a = settings(ctx, dir, "a", small), *b = settings(ctx, dir, "b", small), *c = settings(ctx, dir, "c", small);
    float xa[9 * 32 * 32], ya[32 * 32], xb[9 * 32 * 32], yb[32 * 32], yc[32 * 32];
    int32_t counts[2][9 * 32 * 32];
    double sum = 0;
    b->count = 4, b->per_file = 2, b->threads = 3;
    MUST(hl_cbeds_make(ctx, b, NULL, NULL));
    c->dose = (hl_words){2, {"500", "100000"}};
    c->count = 4, c->validation = 0;
    MUST(hl_cbeds_make(ctx, c, NULL, NULL));
    hl_source *s = open_part(ctx, a, "train"), *t = open_part(ctx, b, "train"), *u = open_part(ctx, c, "train");
    MUST(hl_source_read(s, 3, NULL, xa, NULL, ya));
    MUST(hl_source_read(t, 3, NULL, xb, NULL, yb));
    tap_ok(memcmp(xa, xb, sizeof(xa)) == 0 && memcmp(ya, yb, sizeof(ya)) == 0, "a sample is the same whatever else is made, by any number of threads");
    tap_ok(u->info.samples == 8 && u->info.groups == 4 && u->info.dtype == HALO_I32, "a sample for each dose, of one group each crystal");
    for (int d = 0; d < 2; d++) MUST(hl_source_read(u, 6 + d, NULL, counts[d], NULL, yc));
    for (int i = 0; i < 9 * 32 * 32; i++) sum += counts[0][i];
    double off = 0;
    for (int i = 0; i < 9 * 32 * 32; i++) {
        double mean = 1e5 / (32 * 32) * (double)xa[i];
        off += (counts[1][i] - mean) * (counts[1][i] - mean) / fmax(mean, 1);
    }
    tap_ok(memcmp(ya, yc, sizeof(ya)) == 0 && fabs(sum / 9 - 500) < 60 && off / (9 * 32 * 32) < 1.1, "counts are those of the dose (%.0f a pattern) and of the patterns (chi^2 %.3f)", sum / 9, off / (9 * 32 * 32));
    hl_source_close(s), hl_source_close(t), hl_source_close(u);
    free(a), free(b), free(c);
}

static void test_parts(halo_context *ctx, const char *dir)
{
    hl_cbed_settings *s = settings(ctx, dir, "x", small);
    hl_cbed c;
    hl_specimen p, q;
    bool apart = true;
    MUST(hl_cbed_open(ctx, s, &c));
    for (int64_t i = 0; i < 60; i++)
        for (int64_t k = 0; k < 60; k++) {
            hl_cbed_draw(&c, HL_CBED_TRAIN, i, &p);
            hl_cbed_draw(&c, HL_CBED_TEST, k, &q);
            apart = apart && strcmp(p.crystal->name, q.crystal->name) != 0;
        }
    tap_ok(apart, "no compound is in two parts");
    hl_cbed_close(&c);
    free(s);
}

static void refuse_setting(halo_context *ctx, const char *dir, const char *set, const char *what)
{
    hl_cbed_settings *s = settings(ctx, dir, "bad", small);
    halo_status st = hl_config_override(ctx, hl_cbed_keys(), s, set);
    if (st == HALO_OK) st = hl_cbeds_make(ctx, s, NULL, NULL);
    tap_ok(st == HALO_ERR_USAGE && strstr(halo_error_message(ctx), what), "%s: %s", set, halo_error_message(ctx));
    free(s);
}

static void test_bad_settings(halo_context *ctx, const char *dir)
{
    refuse_setting(ctx, dir, "zones=[01]", "'01' is no direction");
    refuse_setting(ctx, dir, "thickness=9:6", "below the least");
    refuse_setting(ctx, dir, "thickness=thin", "no number");
    refuse_setting(ctx, dir, "thickness=6:1e9", "must be at most 10000");
    refuse_setting(ctx, dir, "dose=[100, 1e13]", "must be at most 1e+09");
    refuse_setting(ctx, dir, "dose=[0]", "no number above 0");
    refuse_setting(ctx, dir, "size=64", "'grid' must be at least 96");
    refuse_setting(ctx, dir, "grid=65", "must be even");
    refuse_setting(ctx, dir, "aperture=60", "the aperture reaches");
    refuse_setting(ctx, dir, "step=6", "the box 14");
}

static bool after_some(void *user) { return __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED) > 40; }

/* Of crystals whose potential alone would ask far more often. */
static void test_stop(halo_context *ctx, const char *dir)
{
    hl_cbed_settings *s = settings(ctx, dir, "stopped", small);
    int asked = 0;
    const hl_cbed_hooks hooks = {.user = &asked, .stop = after_some};
    snprintf(s->thickness, sizeof(s->thickness), "2000");
    tap_ok(hl_cbeds_make(ctx, s, &hooks, NULL) == HALO_ERR_STOPPED && asked < 2100, "a stop is heeded within a crystal: %s", halo_error_message(ctx));
    free(s);
}

/* More electrons in a pixel than its type holds. */
static void test_bright(halo_context *ctx, const char *dir)
{
    hl_cbed_settings *s = settings(ctx, dir, "bright", small);
    s->dose = (hl_words){1, {"1e9"}};
    tap_ok(hl_cbeds_make(ctx, s, NULL, NULL) == HALO_ERR_USAGE && strstr(halo_error_message(ctx), "'dose' 1e+09 is too high: a pixel would count"), "%s", halo_error_message(ctx));
    free(s);
}

int main(void)
{
    halo_context *ctx = iotest_begin("cbed");
    const char *dir = iotest_dir;
    test_factors();
    test_constants();
    test_closed_form();
    test_atom(ctx);
    test_image(ctx);
    test_probe();
    test_free(ctx);
    test_weak(ctx);
    test_thick(ctx);
    test_cut(ctx);
    test_zone(ctx);
    test_files(ctx, dir);
    test_bad_files(ctx, dir);
    test_poisson();
    test_poisson_law();
    test_stop(ctx, dir);
    test_made(ctx, dir);
    test_same(ctx, dir);
    test_parts(ctx, dir);
    test_bad_settings(ctx, dir);
    test_bright(ctx, dir);
    return iotest_end(ctx);
}
