# SPDX-License-Identifier: Apache-2.0
# halo_mpi.m4 -- MPI 3 or later, required. Looked for in this order: CC itself (an mpicc), --with-mpi=DIR, MPICC or mpicc on the
# PATH (what a cluster's modules set), pkg-config. Substitutes MPI_CFLAGS, MPI_LIBS. Whether it takes addresses of CUDA's device memory is asked at
# run time, where it can be: HAVE_MPIX_CUDA.
AC_DEFUN([HALO_MPI], [
AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=DIR], [MPI installation (default: mpicc on the PATH, then pkg-config)])], [], [with_mpi=yes])
AC_ARG_VAR([MPICC], [MPI compiler wrapper to ask for flags])
AS_IF([test "x$with_mpi" = xno], [AC_MSG_ERROR([halo needs MPI: --without-mpi is not possible])])
halo_row_mpi=""
MPI_CFLAGS="" MPI_LIBS=""
AS_IF([test "x$with_mpi" != xyes], [MPICC="$with_mpi/bin/mpicc"], [
  HALO_MPI_TRY([$CC itself])
  AC_PATH_PROG([MPICC], [mpicc])])
AS_IF([test -z "$halo_row_mpi" && test -n "$MPICC"], [
  HALO_WRAPPER_FLAGS([MPI], [$MPICC --showme])
  AS_IF([test -z "$MPI_CFLAGS$MPI_LIBS"], [HALO_WRAPPER_FLAGS([MPI], [$MPICC -show])])
  HALO_MPI_TRY([$MPICC])])
AS_IF([test -z "$halo_row_mpi" && test "x$with_mpi" = xyes && test -n "$PKG_CONFIG"], [
  for halo_word in ompi-c mpich mpi-c; do
    AS_IF([test -z "$halo_row_mpi" && $PKG_CONFIG --exists $halo_word], [
      MPI_CFLAGS=`$PKG_CONFIG --cflags $halo_word`
      MPI_LIBS=`$PKG_CONFIG --libs $halo_word`
      HALO_MPI_TRY([pkg-config $halo_word])])
  done])
AS_IF([test -z "$halo_row_mpi"], [
  AS_IF([test "x$with_mpi" != xyes], [AC_MSG_ERROR([--with-mpi=$with_mpi: no usable MPI 3 there (bin/mpicc)])])
  HALO_MISSING([MPI 3 or later (mpicc)], [libopenmpi-dev openmpi-bin])])
AC_MSG_CHECKING([whether MPI can be asked for CUDA])
HALO_LINK_IFELSE([MPI], [#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif], [return MPIX_Query_cuda_support();], [
  AC_MSG_RESULT([yes])
  AC_DEFINE([HAVE_MPIX_CUDA], [1], [Define to 1 if MPI says whether it takes addresses of CUDA's device memory.])], [AC_MSG_RESULT([no])])
AC_SUBST([MPI_CFLAGS])
AC_SUBST([MPI_LIBS])
])

# HALO_MPI_TRY(WHERE): sets halo_row_mpi if MPI links with the present flags
AC_DEFUN([HALO_MPI_TRY], [
AC_MSG_CHECKING([for MPI by $1])
HALO_LINK_IFELSE([MPI], [#include <mpi.h>
#if MPI_VERSION < 3
#error MPI 3 needed
#endif], [MPI_Init(0, 0);], [
  AC_MSG_RESULT([yes])
  HALO_MPI_NAME([$1])], [
  AC_MSG_RESULT([no])
  MPI_CFLAGS="" MPI_LIBS=""])
])

AC_DEFUN([HALO_MPI_NAME], [
halo_save_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#ifndef OMPI_MAJOR_VERSION
#error not Open MPI
#endif]])], [halo_row_mpi="Open MPI ($1)"],
  [AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <mpi.h>
#ifndef MPICH_VERSION
#error not MPICH
#endif]])], [halo_row_mpi="MPICH ($1)"], [halo_row_mpi="yes ($1)"])])
CPPFLAGS=$halo_save_CPPFLAGS
])
