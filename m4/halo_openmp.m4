# SPDX-License-Identifier: Apache-2.0
# halo_openmp.m4 -- threads inside a process. Without OpenMP halo is right, and uses one core per rank.
AC_DEFUN([HALO_OPENMP], [
AC_OPENMP
halo_openmp=no
AS_IF([test "x$enable_openmp" != xno], [
  halo_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $OPENMP_CFLAGS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <omp.h>
#ifndef _OPENMP
#error no OpenMP
#endif], [return omp_get_max_threads() < 1;])], [halo_openmp=yes])
  CFLAGS=$halo_save_CFLAGS
])
AS_IF([test $halo_openmp = yes],
  [halo_row_openmp="yes ($OPENMP_CFLAGS)"],
  [OPENMP_CFLAGS="-Wno-unknown-pragmas"
   halo_row_openmp="no: one core per rank (with clang: Debian libomp-dev)"])
])
