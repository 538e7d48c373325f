# SPDX-License-Identifier: Apache-2.0
# halo_hdf5.m4 -- HDF5 1.10 or later, required. serial (default): every rank reads its own hyperslab. parallel: collective reads too.
# On Debian the pkg-config module 'hdf5' is an alternative that turns to the MPI build as soon as that is installed, so the flavour is
# always named, and what was found is checked by H5_HAVE_PARALLEL. Substitutes HDF5_CFLAGS, HDF5_LIBS; defines HAVE_HDF5_PARALLEL.
AC_DEFUN([HALO_HDF5], [
AC_ARG_WITH([hdf5], [AS_HELP_STRING([--with-hdf5=WHICH], [serial (default), parallel, or the directory of an installation])],
  [], [with_hdf5=serial])
halo_row_hdf5="" halo_hdf5_want=any
HDF5_CFLAGS="" HDF5_LIBS=""
AS_CASE([$with_hdf5],
  [no], [AC_MSG_ERROR([halo needs HDF5: --without-hdf5 is not possible])],
  [serial|yes], [halo_hdf5_want=serial
    HALO_HDF5_PKG([hdf5-serial])
    HALO_HDF5_WRAPPER([h5cc])
    HALO_HDF5_PLAIN],
  [parallel], [halo_hdf5_want=parallel
    HALO_HDF5_PKG([hdf5-openmpi hdf5-mpich hdf5-mpi])
    HALO_HDF5_WRAPPER([h5pcc])
    HALO_HDF5_PLAIN],
  [/*], [HALO_DIR_FLAGS([HDF5], [$with_hdf5], [-lhdf5])
    HALO_HDF5_TRY([$with_hdf5])
    AS_IF([test -z "$halo_row_hdf5"], [AC_MSG_ERROR([--with-hdf5=$with_hdf5: no usable HDF5 1.10 or later there])])],
  [AC_MSG_ERROR([--with-hdf5=$with_hdf5: neither serial, parallel nor an absolute path])])
AS_IF([test -z "$halo_row_hdf5"], [
  AS_IF([test "x$with_hdf5" = xparallel],
    [HALO_MISSING([parallel HDF5 1.10 or later (--with-hdf5=parallel)], [libhdf5-openmpi-dev])],
    [HALO_MISSING([HDF5 1.10 or later], [libhdf5-dev])])])
AC_SUBST([HDF5_CFLAGS])
AC_SUBST([HDF5_LIBS])
])

AC_DEFUN([HALO_HDF5_PKG], [
AS_IF([test -n "$PKG_CONFIG"], [
  for halo_word in $1; do
    AS_IF([test -z "$halo_row_hdf5" && $PKG_CONFIG --exists $halo_word], [
      HDF5_CFLAGS=`$PKG_CONFIG --cflags $halo_word`
      HDF5_LIBS=`$PKG_CONFIG --libs $halo_word`
      HALO_HDF5_TRY([pkg-config $halo_word])])
  done])
])

AC_DEFUN([HALO_HDF5_WRAPPER], [
AS_IF([test -z "$halo_row_hdf5" && ($1 -show) >/dev/null 2>&1], [
  HALO_WRAPPER_FLAGS([HDF5], [$1 -shlib -show])
  HDF5_LIBS="$HDF5_LIBS -lhdf5"
  HALO_HDF5_TRY([$1])])
])

AC_DEFUN([HALO_HDF5_PLAIN], [
AS_IF([test -z "$halo_row_hdf5"], [HDF5_CFLAGS="" HDF5_LIBS="-lhdf5"
  HALO_HDF5_TRY([the compiler's own paths])])
])

# HALO_HDF5_TRY(WHERE): sets halo_row_hdf5 if HDF5 links with the present flags and is of the wanted flavour
AC_DEFUN([HALO_HDF5_TRY], [
AC_MSG_CHECKING([for $halo_hdf5_want HDF5 by $1])
HALO_LINK_IFELSE([HDF5], [#include <hdf5.h>
#if !H5_VERSION_GE(1, 10, 0)
#error HDF5 1.10 needed
#endif], [H5open();], [halo_hdf5=serial], [halo_hdf5=no])
AS_IF([test $halo_hdf5 != no], [
  HALO_LINK_IFELSE([HDF5], [#include <hdf5.h>
#ifndef H5_HAVE_PARALLEL
#error serial
#endif], [H5open();], [halo_hdf5=parallel])])
AC_MSG_RESULT([$halo_hdf5])
AS_CASE([$halo_hdf5_want:$halo_hdf5],
  [*:no|parallel:serial|serial:parallel], [HDF5_CFLAGS="" HDF5_LIBS=""],
  [halo_row_hdf5="$halo_hdf5 ($1)"
   AS_IF([test $halo_hdf5 = parallel],
     [AC_DEFINE([HAVE_HDF5_PARALLEL], [1], [Define to 1 if HDF5 is the parallel build.])])])
])
