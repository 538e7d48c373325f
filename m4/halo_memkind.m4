# SPDX-License-Identifier: Apache-2.0
# halo_memkind.m4 -- memkind, optional: memory of high bandwidth (MCDRAM, HBM). Substitutes MEMKIND_CFLAGS, MEMKIND_LIBS; define HAVE_MEMKIND.
AC_DEFUN([HALO_MEMKIND], [
AC_ARG_WITH([memkind], [AS_HELP_STRING([--without-memkind], [do not use memory of high bandwidth])], [], [with_memkind=auto])
MEMKIND_CFLAGS="" MEMKIND_LIBS=""
halo_memkind=no halo_row_memkind="no: memory of high bandwidth is used only as the system deals it (Debian libmemkind-dev)"
AS_IF([test "x$with_memkind" != xno], [
  AC_MSG_CHECKING([for memkind])
  MEMKIND_LIBS="-lmemkind"
  HALO_LINK_IFELSE([MEMKIND], [#include <memkind.h>], [return memkind_check_available(MEMKIND_HBW);], [halo_memkind=yes], [MEMKIND_LIBS=""])
  AC_MSG_RESULT([$halo_memkind])
  AS_IF([test "x$with_memkind" != xauto && test $halo_memkind = no], [AC_MSG_ERROR([--with-memkind: no memkind found (Debian: libmemkind-dev)])])])
AS_IF([test $halo_memkind = yes], [
  halo_row_memkind="yes"
  AC_DEFINE([HAVE_MEMKIND], [1], [Define to 1 if memkind is used.])])
AC_SUBST([MEMKIND_CFLAGS])
AC_SUBST([MEMKIND_LIBS])
])
