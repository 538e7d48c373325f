/* SPDX-License-Identifier: Apache-2.0 */
/* kirkland.h -- how atoms scatter fast electrons. */
#ifndef HL_SYNTH_CBED_KIRKLAND_H
#define HL_SYNTH_CBED_KIRKLAND_H

enum { HL_ELEMENTS = 103 };

/* Atomic number of "Si", 0 where there is no such element; only the letters at the beginning count, so that "Si4+" and "Si1" are Si too. */
int hl_element_number(const char *symbol);
const char *hl_element_symbol(int z);

/* Scattering factor for electrons in the first Born approximation, A, without the relativistic factor of the mass; q2 = q^2 = (2 sin(theta) / lambda)^2, 1/A^2. */
double hl_kirkland(int z, double q2);

/* Projected potential of an atom that does not move, V A, at the distance r > 0, A. */
double hl_kirkland_projected(int z, double r);

/* h^2 / (2 pi m e) in V A^2: a Fourier coefficient of the projected potential, V A^3, is so many times the scattering factor. */
#define HL_POTENTIAL_OF_FACTOR 47.8780082

#endif
