# SPDX-License-Identifier: Apache-2.0
# halo_onednn.m4 -- oneDNN 2.6 or 3.x, optional: primitives of the cpu backend beside halo's own kernels.
# Substitutes ONEDNN_CFLAGS, ONEDNN_LIBS; conditional and define HAVE_ONEDNN.
AC_DEFUN([HALO_ONEDNN], [
AC_ARG_WITH([onednn], [AS_HELP_STRING([--with-onednn@<:@=DIR@:>@], [oneDNN 2.6 or 3.x (default: if found)])], [], [with_onednn=auto])
ONEDNN_CFLAGS="" ONEDNN_LIBS="-ldnnl" halo_onednn=no
halo_row_onednn="no: convolutions by halo's own kernels only (Debian libdnnl-dev)"
AS_CASE([$with_onednn], [/*], [HALO_DIR_FLAGS([ONEDNN], [$with_onednn], [-ldnnl])])
AS_IF([test "x$with_onednn" != xno], [
  AC_MSG_CHECKING([for oneDNN])
  for halo_word in 2 3; do
    AS_IF([test $halo_onednn = no], [
      HALO_LINK_IFELSE([ONEDNN], [#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#if DNNL_VERSION_MAJOR != $halo_word || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 6)
#error another version
#endif], [dnnl_engine_t e; return dnnl_engine_create(&e, dnnl_cpu, 0);], [halo_onednn=$halo_word])])
  done
  AC_MSG_RESULT([$halo_onednn])])
AS_IF([test $halo_onednn != no],
  [AS_IF([test $halo_onednn = 2], [halo_row_onednn="2.x, from 2.6"], [halo_row_onednn="$halo_onednn.x"])
   AC_DEFINE([HAVE_ONEDNN], [1], [Define to 1 if oneDNN is used.])],
  [AS_CASE([$with_onednn], [auto|no], [],
     [AC_MSG_ERROR([--with-onednn=$with_onednn: no oneDNN 2.6 or 3.x found (Debian: libdnnl-dev)])])
   ONEDNN_CFLAGS="" ONEDNN_LIBS=""])
AC_SUBST([ONEDNN_CFLAGS])
AC_SUBST([ONEDNN_LIBS])
AM_CONDITIONAL([HAVE_ONEDNN], [test $halo_onednn != no])
])
