# SPDX-License-Identifier: Apache-2.0
# halo_zlib.m4 -- zlib, optional: compressed NPZ files. Substitutes ZLIB_CFLAGS, which has -DHAVE_ZLIB as one file alone asks, and ZLIB_LIBS.
AC_DEFUN([HALO_ZLIB], [
AC_ARG_WITH([zlib], [AS_HELP_STRING([--without-zlib], [do not read compressed NPZ files])], [], [with_zlib=auto])
ZLIB_CFLAGS="" ZLIB_LIBS=""
halo_zlib=no halo_row_zlib="no: compressed NPZ files cannot be read (Debian zlib1g-dev)"
AS_IF([test "x$with_zlib" != xno], [
  AC_MSG_CHECKING([for zlib])
  ZLIB_LIBS="-lz"
  HALO_LINK_IFELSE([ZLIB], [#include <zlib.h>], [return crc32(0, Z_NULL, 0) != 0;], [halo_zlib=yes ZLIB_CFLAGS=-DHAVE_ZLIB], [ZLIB_LIBS=""])
  AC_MSG_RESULT([$halo_zlib])
  AS_IF([test "x$with_zlib" != xauto && test $halo_zlib = no], [AC_MSG_ERROR([--with-zlib: no zlib found (Debian: zlib1g-dev)])])])
AS_IF([test $halo_zlib = yes], [halo_row_zlib="yes"])
AC_SUBST([ZLIB_CFLAGS])
AC_SUBST([ZLIB_LIBS])
])
