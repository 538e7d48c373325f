# SPDX-License-Identifier: Apache-2.0
# halo_backends.m4 -- --with-backend=LIST. The builtin ones go to halo_build.h as HL_BACKEND_LIST(X), one X(name) for each: the registry
# expands it, so that the core needs no #ifdef for any vendor. The oracle 'ref' is always built; 'cuda' is a module, found at run time.
AC_DEFUN([HALO_BACKENDS], [
AC_ARG_WITH([backend], [AS_HELP_STRING([--with-backend=LIST], [comma-separated: cpu, cuda (default: cpu; ref is always built)])],
  [], [with_backend=cpu])
halo_row_backends="ref" halo_backend_list="X(ref)" halo_backend_cpu=no halo_backend_cuda=no
AS_CASE([$with_backend],
  [yes], [with_backend=cpu],
  [no], [with_backend=""])
for halo_word in `AS_ECHO(["$with_backend"]) | tr ',' ' '`; do
  AS_CASE([$halo_word],
    [ref], [],
    [cpu], [halo_backend_cpu=yes],
    [cuda], [halo_backend_cuda=yes],
    [AC_MSG_ERROR([--with-backend: '$halo_word' is none of ref, cpu, cuda])])
done
AS_IF([test $halo_backend_cpu = yes], [
  halo_row_backends="$halo_row_backends, cpu" halo_backend_list="$halo_backend_list X(cpu)"])
AS_IF([test $halo_backend_cuda = yes], [
  AS_IF([test $halo_cuda = no], [AC_MSG_ERROR([--with-backend=cuda: $halo_cuda_why (--with-cuda=DIR names the toolkit)])])
  AS_IF([test "x$enable_shared" = xno], [AC_MSG_ERROR([--with-backend=cuda: the backend is a module, which needs shared libraries: no --disable-shared])])
  halo_row_backends="$halo_row_backends, cuda (module)"
  HALO_CUDA_ARCHS])
AC_DEFINE_UNQUOTED([HL_BACKEND_LIST(X)], [$halo_backend_list], [The backends of this build, X(name) for each.])
AM_CONDITIONAL([BACKEND_CPU], [test $halo_backend_cpu = yes])
AM_CONDITIONAL([BACKEND_CUDA], [test $halo_backend_cuda = yes])
AM_CONDITIONAL([HAVE_CUDA_HEADERS], [test $halo_cuda = yes])
AS_IF([test $halo_backend_cpu = yes], [AC_DEFINE([HAVE_BACKEND_CPU], [1], [Define to 1 if the cpu backend is built.])])
])
