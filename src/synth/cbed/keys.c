/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c -- every setting of `halo synth cbed`. */
#include "synth/cbed/cbed.h"

#define AT(field) offsetof(hl_cbed_settings, field)

static const hl_key keys[] = {
    {"count", HL_SETTING_INT, AT(count), "128", 0, 1e9, NULL, NULL, "crystals for training"},
    {"validation", HL_SETTING_INT, AT(validation), "0", 0, 1e9, NULL, NULL, "crystals for validation, of compounds that training has not"},
    {"test", HL_SETTING_INT, AT(test), "0", 0, 1e9, NULL, NULL, "crystals for the test, of compounds that neither has"},
    {"out", HL_SETTING_TEXT, AT(out), "cbed", 0, 0, NULL, NULL, "directory to write"},
    {"seed", HL_SETTING_INT, AT(seed), "1", 0, 0, NULL, NULL, "root of all random numbers"},
    {"crystals", HL_SETTING_WORDS, AT(crystals), "[]", 0, 0, NULL, NULL, "files of crystals, CIF or tables; none: ten structure types filled with elements"},
    {"zones", HL_SETTING_WORDS, AT(zones), "[001, 011, 111, 012, 112]", 0, 0, NULL, NULL, "directions that may lie in the beam, such as 001 or 1-10; none: any"},
    {"spin", HL_SETTING_NUMBER, AT(spin), "360", 0, 360, NULL, NULL, "the crystal is turned around the beam by up to so many degrees"},
    {"tilt", HL_SETTING_NUMBER, AT(tilt), "10", 0, 200, NULL, NULL, "the zone axis is off the beam by up to so many mrad along either axis"},
    {"strain", HL_SETTING_NUMBER, AT(strain), "0.03", 0, 0.3, NULL, NULL, "lattice parameters are drawn within this part of their own"},
    {"b", HL_SETTING_NUMBER, AT(b), "0.5", 0, 10, NULL, NULL, "Debye-Waller B of atoms whose file gives none, A^2"},
    {"thickness", HL_SETTING_TEXT, AT(thickness), "10:20", 0, 0, NULL, NULL, "of the crystals, A: LO:HI, or one number; at most 10000"},
    {"size", HL_SETTING_INT, AT(size), "64", 8, 4096, NULL, NULL, "pixels of the patterns a side, and of the image"},
    {"scan", HL_SETTING_INT, AT(scan), "8", 1, 256, NULL, NULL, "positions of the probe a side"},
    {"step", HL_SETTING_NUMBER, AT(step), "0.5", 0.001, 1000, NULL, NULL, "between positions, A"},
    {"energy", HL_SETTING_NUMBER, AT(kv), "200", 10, 3000, NULL, NULL, "of the electrons, keV"},
    {"aperture", HL_SETTING_NUMBER, AT(aperture), "38", 0.1, 200, NULL, NULL, "half angle of the probe, mrad"},
    {"defocus", HL_SETTING_NUMBER, AT(defocus), "120", -1e5, 1e5, NULL, NULL, "C1, A; above 0 the patterns hold an upright shadow image"},
    {"cs", HL_SETTING_NUMBER, AT(cs), "0", -10, 10, NULL, NULL, "spherical aberration, mm"},
    {"box", HL_SETTING_NUMBER, AT(box), "20", 1, 10000, NULL, NULL, "side of the simulated box, A; a pixel of a pattern is 1/box"},
    {"grid", HL_SETTING_INT, AT(grid), "128", 16, 8192, NULL, NULL, "points of the box a side"},
    {"slice", HL_SETTING_NUMBER, AT(slice), "2", 0.1, 100, NULL, NULL, "thickness of a slice at most, A"},
    {"pixel", HL_SETTING_NUMBER, AT(pixel), "none", 1e-4, 1000, NULL, "none", "of the image, A; none: as the shadow's (wavelength x defocus / box), or of size to cover the scan"},
    {"blur", HL_SETTING_NUMBER, AT(blur), "0.25", 0, 100, NULL, NULL, "deviation of the Gaussian that the image is blurred with, A"},
    {"reference", HL_SETTING_CHOICE, AT(reference), "mean", 0, 0, "mean|vacuum", NULL, "where the image is 0: at its mean, as no pattern depends on a constant potential, or outside the crystal"},
    {"dose", HL_SETTING_WORDS, AT(dose), "[]", 0, 0, NULL, NULL, "electrons a pattern, a sample for each: whole counts as uint16, at most 65535 a pixel; none: no noise, float32"},
    {"per_file", HL_SETTING_INT, AT(per_file), "16", 1, 1e6, NULL, NULL, "crystals in a file"},
    {"compress", HL_SETTING_INT, AT(compress), "0", 0, 9, NULL, NULL, "level of deflate; counts shrink, noiseless patterns hardly"},
    {"threads", HL_SETTING_INT, AT(threads), "0", 0, 4096, NULL, NULL, "of each rank; 0: one per core"},
};

hl_keys hl_cbed_keys(void) { return (hl_keys){.key = keys, .n = HL_COUNT(keys), .page = "halo synth keys"}; }
