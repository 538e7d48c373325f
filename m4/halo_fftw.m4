# SPDX-License-Identifier: Apache-2.0
# halo_fftw.m4 -- FFTW 3, optional and only for the data generators (it is under the GPL: the library libhalo never links it).
# Substitutes FFTW_CFLAGS, FFTW_LIBS; conditional and define HAVE_FFTW.
AC_DEFUN([HALO_FFTW], [
AC_ARG_WITH([fftw], [AS_HELP_STRING([--without-fftw], [build without the data generators that need FFTW])], [], [with_fftw=auto])
halo_fftw=no halo_row_fftw="no: 'halo synth' cannot make random fields (Debian libfftw3-dev)"
AS_IF([test "x$with_fftw" != xno], [
  PKG_CHECK_MODULES([FFTW], [fftw3 >= 3.3], [halo_fftw=yes], [
    AS_IF([test "x$with_fftw" != xauto], [AC_MSG_ERROR([--with-fftw: no FFTW 3.3 found (Debian: libfftw3-dev)])])])])
AS_IF([test $halo_fftw = yes], [
  halo_row_fftw="yes, in the program's generators only"
  AC_DEFINE([HAVE_FFTW], [1], [Define to 1 if the data generators may use FFTW.])])
AM_CONDITIONAL([HAVE_FFTW], [test $halo_fftw = yes])
])
