# SPDX-License-Identifier: Apache-2.0
# halo_nifti.m4 -- nifticlib 3 (libnifti2, which reads NIfTI-1 and NIfTI-2), optional: medical images. Substitutes NIFTI_CFLAGS, which has -DHAVE_NIFTI
# as few files ask, and NIFTI_LIBS.
AC_DEFUN([HALO_NIFTI], [
AC_ARG_WITH([nifti], [AS_HELP_STRING([--with-nifti@<:@=DIR@:>@], [nifticlib 3, for medical images; DIR has include and lib])], [], [with_nifti=auto])
NIFTI_CFLAGS="" NIFTI_LIBS=""
halo_nifti=no halo_row_nifti="no: NIfTI images cannot be read or written (Debian libnifti-dev)"
AS_IF([test "x$with_nifti" != xno], [
  AC_MSG_CHECKING([for nifticlib 3])
  halo_nifti_libs="-lnifti2 -lznz" halo_nifti_dirs="/usr/include /usr/local/include"
  AS_CASE([$with_nifti], [auto|yes], [],
    [HALO_DIR_FLAGS([NIFTI], [$with_nifti], [$halo_nifti_libs])
    halo_nifti_libs=$NIFTI_LIBS halo_nifti_dirs="$with_nifti/include"])
  NIFTI_LIBS=$halo_nifti_libs
  for halo_word in $halo_nifti_dirs; do
    AS_IF([test $halo_nifti = no], [
      NIFTI_CFLAGS="-isystem $halo_word/nifti"
      HALO_LINK_IFELSE([NIFTI], [#include <nifti2_io.h>], [return nifti_convert_n2hdr2nim(*nifti_make_new_n2_header(0, 2), 0) != 0 && znzopen("", "rb", 1) != 0;], [halo_nifti=yes])])
  done
  AC_MSG_RESULT([$halo_nifti])
  AS_IF([test "x$with_nifti" != xauto && test $halo_nifti = no], [AC_MSG_ERROR([--with-nifti: no nifticlib 3 found (Debian: libnifti-dev)])])])
AS_IF([test $halo_nifti = yes], [
  halo_row_nifti="yes, NIfTI-1 and NIfTI-2"
  NIFTI_CFLAGS="-DHAVE_NIFTI $NIFTI_CFLAGS"],
  [NIFTI_CFLAGS="" NIFTI_LIBS=""])
AC_SUBST([NIFTI_CFLAGS])
AC_SUBST([NIFTI_LIBS])
])
