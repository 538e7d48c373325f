/* SPDX-License-Identifier: Apache-2.0 */
/* version.c -- which halo this is, from what, under which licences. */
#include "base/base.h"
#include "halo_build.h"

const char *halo_version(void) { return PACKAGE_VERSION; }

const char *halo_version_details(void)
{
    return "libhalo: Apache-2.0; with MPI, HDF5, CBLAS"
#ifdef HAVE_OPENBLAS
           " (OpenBLAS)"
#endif
           ", libyaml"
#ifdef HAVE_ONEDNN
           ", oneDNN"
#endif
#ifdef HAVE_HWLOC
           ", hwloc"
#endif
#ifdef HAVE_MEMKIND
           ", memkind"
#endif
#ifdef HAVE_FFTW
           ". The program 'halo' also holds the generators, which use FFTW (GPL-2.0-or-later): as a whole it is under GPL-2.0-or-later"
#endif
        ;
}
