# SPDX-License-Identifier: Apache-2.0
# halo_hwloc.m4 -- hwloc 2, optional: cores, sockets and memory kinds. Substitutes HWLOC_CFLAGS, HWLOC_LIBS; conditional and define HAVE_HWLOC.
AC_DEFUN([HALO_HWLOC], [
AC_ARG_WITH([hwloc], [AS_HELP_STRING([--without-hwloc], [do not use hwloc])], [], [with_hwloc=auto])
halo_hwloc=no halo_row_hwloc="no: doctor reports cores from the affinity mask only (Debian libhwloc-dev)"
AS_IF([test "x$with_hwloc" != xno], [
  PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0], [halo_hwloc=yes], [
    AS_IF([test "x$with_hwloc" != xauto], [AC_MSG_ERROR([--with-hwloc: no hwloc 2 found (Debian: libhwloc-dev)])])])])
AS_IF([test $halo_hwloc = yes], [
  halo_row_hwloc="yes"
  AC_DEFINE([HAVE_HWLOC], [1], [Define to 1 if hwloc is used.])])
AM_CONDITIONAL([HAVE_HWLOC], [test $halo_hwloc = yes])
])
