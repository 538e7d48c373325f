# SPDX-License-Identifier: Apache-2.0
# halo_yaml.m4 -- libyaml, required: it reads configurations and network files. Substitutes YAML_CFLAGS, YAML_LIBS.
AC_DEFUN([HALO_YAML], [
AC_ARG_WITH([yaml], [AS_HELP_STRING([--with-yaml=DIR], [libyaml installation (default: pkg-config, then the compiler's paths)])],
  [], [with_yaml=yes])
YAML_CFLAGS="" YAML_LIBS="-lyaml" halo_row_yaml=""
AS_CASE([$with_yaml],
  [no], [AC_MSG_ERROR([halo needs libyaml: --without-yaml is not possible])],
  [yes], [AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists yaml-0.1], [
    YAML_CFLAGS=`$PKG_CONFIG --cflags yaml-0.1`
    YAML_LIBS=`$PKG_CONFIG --libs yaml-0.1`])],
  [HALO_DIR_FLAGS([YAML], [$with_yaml], [-lyaml])])
AC_MSG_CHECKING([for libyaml])
HALO_LINK_IFELSE([YAML], [#include <yaml.h>], [yaml_parser_t p; return !yaml_parser_initialize(&p);],
  [AC_MSG_RESULT([yes]); halo_row_yaml="yes"],
  [AC_MSG_RESULT([no])
   AS_IF([test "x$with_yaml" != xyes], [AC_MSG_ERROR([--with-yaml=$with_yaml: no libyaml there])])
   HALO_MISSING([libyaml], [libyaml-dev])])
AC_SUBST([YAML_CFLAGS])
AC_SUBST([YAML_LIBS])
])
