# SPDX-License-Identifier: Apache-2.0
# halo_cudasim.m4 -- the simulated CUDA device of the tests (tests/cudasim): needs a C++17 compiler and the headers of the toolkit, cuDNN and NCCL, no
# nvcc, no library and no GPU. Substitutes CUDASIM_CPPFLAGS, CUDASIM_CXXFLAGS, CUDASIM_MISSING (why it is not built); conditionals CUDASIM and
# CUDASIM_REAL: the real cuDNN is there too, to be compared with.
AC_DEFUN([HALO_CUDASIM], [
AC_ARG_ENABLE([cudasim], [AS_HELP_STRING([--enable-cudasim], [build the simulated CUDA device for 'make check' (default: where the headers are)])],
  [], [enable_cudasim=auto])
halo_cudasim=no CUDASIM_MISSING="--disable-cudasim was given"
AS_IF([test "x$enable_cudasim" != xno], [
  CUDASIM_MISSING="no directory has the headers of CUDA, cuDNN, cuBLAS and NCCL, or no C++17 compiler is there"
  AC_MSG_CHECKING([for the headers of the simulated CUDA device])
  AC_LANG_PUSH([C++])
  halo_save_CPPFLAGS=$CPPFLAGS halo_save_CXXFLAGS=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS -std=c++17"
  AS_CASE([$with_cuda], [/*], [halo_places="$with_cuda/include"], [halo_places=""])
  AS_IF([test -n "$NVCC"], [halo_places="$halo_places `dirname "$NVCC"`/../include"])
  for halo_place in $halo_places ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/local/cuda/include /usr/include; do
    AS_IF([test $halo_cudasim = no], [
      CPPFLAGS="$halo_save_CPPFLAGS -isystem $halo_place"
      AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cudnn.h>
#include <cublas_v2.h>
#include <nccl.h>]], [[return std::is_same_v<int, float> + CUDNN_VERSION + NCCL_VERSION_CODE;]])], [halo_cudasim=$halo_place])])
  done
  CPPFLAGS=$halo_save_CPPFLAGS CXXFLAGS=$halo_save_CXXFLAGS
  AC_LANG_POP([C++])
  AC_MSG_RESULT([$halo_cudasim])
  AS_IF([test "x$enable_cudasim" = xyes && test $halo_cudasim = no], [AC_MSG_ERROR([--enable-cudasim: $CUDASIM_MISSING])])])
AS_IF([test "x$enable_shared" = xno && test $halo_cudasim != no], [
  halo_cudasim=no CUDASIM_MISSING="with --disable-shared there are no modules, and the backend on it is one"])
CUDASIM_CPPFLAGS="-isystem $halo_cudasim"
AS_IF([test "x$halo_cudasim" = x/usr/include], [CUDASIM_CPPFLAGS=""])
CUDASIM_CXXFLAGS="-std=c++17 -fvisibility=hidden -Wall -Wextra -Wshadow"
AS_IF([test "x$enable_werror" = xyes], [CUDASIM_CXXFLAGS="$CUDASIM_CXXFLAGS -Werror"])
AC_SUBST([CUDASIM_CPPFLAGS])
AC_SUBST([CUDASIM_CXXFLAGS])
AC_SUBST([CUDASIM_MISSING])
AM_CONDITIONAL([CUDASIM], [test $halo_cudasim != no])
AM_CONDITIONAL([CUDASIM_REAL], [test $halo_cudasim != no && test $halo_cuda = yes])
AS_IF([test $halo_cudasim = no], [halo_row_cudasim="no: $CUDASIM_MISSING"], [halo_row_cudasim="in 'make check', with the headers in $halo_cudasim"])
])
