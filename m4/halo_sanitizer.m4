# SPDX-License-Identifier: Apache-2.0
# halo_sanitizer.m4 -- --enable-sanitizer=LIST: instrument everything; any finding ends the program, so that tests fail.
AC_DEFUN([HALO_SANITIZER], [
AC_ARG_ENABLE([sanitizer],
  [AS_HELP_STRING([--enable-sanitizer=LIST], [comma-separated: address, undefined, thread (default: none)])],
  [], [enable_sanitizer=no])
HALO_SANITIZER_CFLAGS="" halo_row_sanitizer="none"
AS_IF([test "x$enable_sanitizer" = xyes], [enable_sanitizer=address,undefined])
AS_IF([test "x$enable_sanitizer" != xno], [
  halo_row_sanitizer=$enable_sanitizer
  for halo_word in `AS_ECHO(["$enable_sanitizer"]) | tr ',' ' '`; do
    AS_CASE([$halo_word],
      [address|thread], [HALO_SANITIZER_CFLAGS="$HALO_SANITIZER_CFLAGS -fsanitize=$halo_word"],
      [undefined], [HALO_SANITIZER_CFLAGS="$HALO_SANITIZER_CFLAGS -fsanitize=undefined -fno-sanitize-recover=undefined"],
      [AC_MSG_ERROR([--enable-sanitizer: '$halo_word' is none of address, undefined, thread])])
  done
  HALO_SANITIZER_CFLAGS="$HALO_SANITIZER_CFLAGS -fno-omit-frame-pointer"
  AC_MSG_CHECKING([whether $CC links with$HALO_SANITIZER_CFLAGS])
  halo_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $HALO_SANITIZER_CFLAGS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$CC cannot build with --enable-sanitizer=$enable_sanitizer])])
  CFLAGS=$halo_save_CFLAGS
])
AC_SUBST([HALO_SANITIZER_CFLAGS])
AM_CONDITIONAL([SANITIZER], [test "x$enable_sanitizer" != xno])
])
