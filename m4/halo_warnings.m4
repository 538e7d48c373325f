# SPDX-License-Identifier: Apache-2.0
# halo_warnings.m4 -- language level, warnings, visibility, and paths kept out of the binary.
# Warnings are errors where the source comes from git (a developer builds) and not from a tarball (a new compiler must not stop a user).
AC_DEFUN([HALO_WARNINGS], [
AC_ARG_ENABLE([werror],
  [AS_HELP_STRING([--enable-werror], [warnings are errors (default: yes in a git checkout, no in a release)])],
  [], [AS_IF([test -e "$srcdir/.git"], [enable_werror=yes], [enable_werror=no])])
HALO_CFLAGS="-std=gnu11"
for halo_flag in -fvisibility=hidden -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wshadow; do
  HALO_CC_FLAG([HALO_CFLAGS], [$halo_flag])
done
# The same sources give the same binary, wherever they lie
HALO_CC_FLAG([HALO_MAP_PROBE], [-ffile-prefix-map=/a=/b])
HALO_MAP_CFLAGS=""
AS_IF([test -n "$HALO_MAP_PROBE"],
  [HALO_MAP_CFLAGS='"-ffile-prefix-map=$(abs_top_srcdir)=." "-ffile-prefix-map=$(abs_top_builddir)=." -ffile-prefix-map=$(top_srcdir)/='])
AS_IF([test "x$enable_werror" = xyes], [HALO_CFLAGS="$HALO_CFLAGS -Werror"; halo_row_werror="errors"], [halo_row_werror="not errors"])
AC_SUBST([HALO_CFLAGS])
AC_SUBST([HALO_MAP_CFLAGS])
])
