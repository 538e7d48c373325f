# SPDX-License-Identifier: Apache-2.0
# halo_blas.m4 -- a CBLAS, required. OpenBLAS built with OpenMP shares its threads with halo; one built with pthreads keeps a second pool, so
# Debian's OpenMP flavour is preferred even where the pthread one is the system's default. Substitutes BLAS_CFLAGS, BLAS_LIBS.
AC_DEFUN([HALO_BLAS], [
AC_ARG_WITH([blas], [AS_HELP_STRING([--with-blas=WHAT], [directory of an installation, or the linker flags of a library with CBLAS])],
  [], [with_blas=yes])
halo_row_blas=""
BLAS_CFLAGS="" BLAS_LIBS=""
AS_CASE([$with_blas],
  [no], [AC_MSG_ERROR([halo needs a CBLAS: --without-blas is not possible])],
  [yes], [
    halo_multiarch=`$CC -print-multiarch 2>/dev/null`
    HALO_BLAS_PKG([/usr/lib/$halo_multiarch/openblas-openmp/pkgconfig/openblas.pc])
    HALO_BLAS_PKG([openblas])
    for halo_word in -lopenblas -lblis "-lcblas -lblas" -lblas; do
      AS_IF([test -z "$halo_row_blas"], [BLAS_CFLAGS="" BLAS_LIBS="$halo_word"
        HALO_BLAS_TRY([$halo_word])])
    done],
  [/*], [
    for halo_word in -lopenblas -lblis "-lcblas -lblas" -lblas; do
      AS_IF([test -z "$halo_row_blas"], [
        HALO_DIR_FLAGS([BLAS], [$with_blas], [$halo_word])
        HALO_BLAS_TRY([$with_blas, $halo_word])])
    done],
  [BLAS_LIBS=$with_blas
   HALO_BLAS_TRY([$with_blas])])
AS_IF([test -z "$halo_row_blas"], [
  AS_IF([test "x$with_blas" != xyes], [AC_MSG_ERROR([--with-blas=$with_blas: no cblas_sgemm or no cblas.h there])])
  HALO_MISSING([a BLAS with the C interface (OpenBLAS)], [libopenblas-openmp-dev])])
AC_SUBST([BLAS_CFLAGS])
AC_SUBST([BLAS_LIBS])
])

# HALO_BLAS_PKG(MODULE): a pkg-config module or the path of its .pc file; OpenBLAS tells there how it was built
AC_DEFUN([HALO_BLAS_PKG], [
AS_IF([test -z "$halo_row_blas" && test -n "$PKG_CONFIG" && $PKG_CONFIG --exists "$1" 2>/dev/null], [
  BLAS_CFLAGS=`$PKG_CONFIG --cflags "$1"`
  BLAS_LIBS=`$PKG_CONFIG --libs "$1"`
  AS_CASE([`$PKG_CONFIG --variable=openblas_config "$1"`],
    [*USE_OPENMP=1*], [HALO_BLAS_TRY([OpenBLAS, threads by OpenMP])],
    [HALO_BLAS_TRY([OpenBLAS, not known to use OpenMP (Debian libopenblas-openmp-dev): two thread pools])])])
])

AC_DEFUN([HALO_BLAS_TRY], [
AC_MSG_CHECKING([for CBLAS: $1])
HALO_LINK_IFELSE([BLAS], [#include <cblas.h>],
  [float a = 0; cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &a, 1, &a, 1, 0, &a, 1);],
  [AC_MSG_RESULT([yes]); halo_row_blas="$1"], [AC_MSG_RESULT([no]); BLAS_CFLAGS="" BLAS_LIBS=""])
AS_IF([test -n "$halo_row_blas"], [
  HALO_LINK_IFELSE([BLAS], [#include <cblas.h>], [return openblas_get_parallel();],
    [AC_DEFINE([HAVE_OPENBLAS], [1], [Define to 1 if the CBLAS is OpenBLAS.])])])
])
