# SPDX-License-Identifier: Apache-2.0
# halo_fftw.m4 -- FFTW 3 with threads, optional and only for the data generators (it is under the GPL: the library libhalo never links it).
# Substitutes FFTW_CFLAGS, FFTW_LIBS; conditional and define HAVE_FFTW.
AC_DEFUN([HALO_FFTW], [
AC_ARG_WITH([fftw], [AS_HELP_STRING([--without-fftw], [build without the data generators that need FFTW])], [], [with_fftw=auto])
halo_fftw=no halo_row_fftw="no: 'halo synth' cannot make universes (Debian libfftw3-dev)"
AS_IF([test "x$with_fftw" != xno], [
  PKG_CHECK_MODULES([FFTW], [fftw3 >= 3.3], [
    halo_fftw_base=$FFTW_LIBS
    AC_MSG_CHECKING([for the threads of FFTW])
    for halo_word in -lfftw3_omp -lfftw3_threads; do
      AS_IF([test $halo_fftw = no], [
        FFTW_LIBS="$halo_word $halo_fftw_base"
        HALO_LINK_IFELSE([FFTW], [#include <fftw3.h>], [return fftw_init_threads();], [halo_fftw=$halo_word])])
    done
    AC_MSG_RESULT([$halo_fftw])], [halo_fftw=no])
  AS_IF([test "x$with_fftw" != xauto && test $halo_fftw = no], [AC_MSG_ERROR([--with-fftw: no FFTW 3.3 with threads found (Debian: libfftw3-dev)])])])
AS_IF([test $halo_fftw != no], [
  halo_row_fftw="yes, in the program's generators only"
  AC_DEFINE([HAVE_FFTW], [1], [Define to 1 if the data generators may use FFTW.])])
AM_CONDITIONAL([HAVE_FFTW], [test $halo_fftw != no])
])
