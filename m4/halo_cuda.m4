# SPDX-License-Identifier: Apache-2.0
# halo_cuda.m4 -- CUDA Toolkit (11 to 13), cuDNN (8 or 9), cuBLAS and, optionally, NCCL, and the architectures that the kernels are compiled for. Found and reported always,
# used with --with-backend=cuda. Never -lcuda: the driver is found at run time, where there is one.
# Substitutes NVCC, NVCC_FLAGS, CUDA_CFLAGS, CUDA_LIBS, CUDA_ARCHS ("75 80 90"); sets halo_cuda to yes or no, halo_cuda_why.
AC_DEFUN([HALO_CUDA], [
AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR], [CUDA Toolkit (default: nvcc on the PATH, then /usr/local/cuda)])], [], [with_cuda=auto])
AC_ARG_WITH([cuda-arch], [AS_HELP_STRING([--with-cuda-arch=LIST], [compute capabilities, as "70 80" (default: those of 70 75 80 86 89 90 100 120 that nvcc knows)])],
  [], [with_cuda_arch=auto])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_WITH([nccl], [AS_HELP_STRING([--without-nccl], [ranks' GPUs exchange data by way of the host alone (default: NCCL where it is beside cuDNN)])], [], [with_nccl=auto])
halo_cuda=no halo_cuda_why="" halo_nvcc_path="$PATH:/usr/local/cuda/bin"
AS_CASE([$with_cuda], [/*], [halo_nvcc_path="$with_cuda/bin"])
AS_IF([test "x$with_cuda" != xno], [AC_PATH_PROG([NVCC], [nvcc], [], [$halo_nvcc_path])])
AS_IF([test -z "$NVCC"], [halo_cuda_why="no nvcc"], [
  halo_cuda_root=`dirname "$NVCC"`/..
  halo_cuda_root=`cd "$halo_cuda_root" && pwd`
  halo_word=$halo_cuda_root/lib64
  AS_IF([test -d "$halo_word"], [], [halo_word=$halo_cuda_root/lib])
  CUDA_CFLAGS="-isystem $halo_cuda_root/include" CUDA_LIBS="-L$halo_word -Wl,-rpath,$halo_word -lcudart"
  HALO_CUDA_VERSION
  HALO_CUDA_LIBRARIES])
AS_IF([test $halo_cuda = yes], [
  halo_row_cuda="not used: toolkit $halo_nvcc_version found ($NVCC); --with-backend=cpu,cuda builds the module"],
  [halo_row_cuda="no: $halo_cuda_why; cpu only"])
AC_SUBST([CUDA_CFLAGS])
AC_SUBST([CUDA_LIBS])
])

AC_DEFUN([HALO_CUDA_VERSION], [
halo_nvcc_version=`"$NVCC" --version 2>/dev/null | sed -n 's/.*release \([[0-9.]]*\).*/\1/p'`
AS_CASE([$halo_nvcc_version],
  [11.*|12.*|13.*], [],
  [halo_cuda_why="'$NVCC' is release '$halo_nvcc_version', halo knows CUDA 11 to 13"])
])

AC_DEFUN([HALO_CUDA_LIBRARIES], [
AS_IF([test -z "$halo_cuda_why"], [
  HALO_LINK_IFELSE([CUDA], [#include <cuda_runtime_api.h>], [int n; return cudaGetDeviceCount(&n);], [], [halo_cuda_why="no cudart beside $NVCC"])])
AS_IF([test -z "$halo_cuda_why"], [
  CUDA_LIBS="$CUDA_LIBS -lcudnn -lcublas"
  HALO_LINK_IFELSE([CUDA], [#include <cudnn.h>
#include <cublas_v2.h>
#if CUDNN_MAJOR < 8
#error cuDNN 8 or 9 needed
#endif], [cublasHandle_t h; return cublasCreate(&h) + (cudnnGetVersion() == 0);], [halo_cuda=yes], [halo_cuda_why="no cuDNN 8 or 9, or no cuBLAS"])])
AS_IF([test $halo_cuda = yes && test "x$with_nccl" != xno], [
  halo_save_cuda_libs=$CUDA_LIBS CUDA_LIBS="$CUDA_LIBS -lnccl"
  HALO_LINK_IFELSE([CUDA], [#include <nccl.h>], [int v; return ncclGetVersion(&v);],
    [CUDA_CFLAGS="$CUDA_CFLAGS -DHL_HAVE_NCCL"],
    [CUDA_LIBS=$halo_save_cuda_libs
     AS_IF([test "x$with_nccl" = xyes], [AC_MSG_ERROR([--with-nccl: no NCCL that links with $CUDA_LIBS])])])])
])

# HALO_CUDA_ARCHS: which architectures; called where the backend is built. What the user named must be possible.
AC_DEFUN([HALO_CUDA_ARCHS], [
halo_nvcc_archs=`"$NVCC" --list-gpu-code 2>/dev/null | sed -n 's/^sm_\([[0-9]]*\)$/\1/p' | tr '\n' ' '`
CUDA_ARCHS="" halo_last=""
AS_IF([test "x$with_cuda_arch" = xauto], [halo_want="70 75 80 86 89 90 100 120"], [halo_want=`AS_ECHO(["$with_cuda_arch"]) | tr ',' ' '`])
for halo_word in $halo_want; do
  AS_CASE([" $halo_nvcc_archs "],
    [*" $halo_word "*], [CUDA_ARCHS="$CUDA_ARCHS${CUDA_ARCHS:+ }$halo_word"],
    [AS_IF([test "x$with_cuda_arch" != xauto], [
      AS_CASE([$halo_word],
        [5?|6?|70|72], [AC_MSG_ERROR([nvcc $halo_nvcc_version cannot build for sm_$halo_word; use CUDA 11 or 12 (up to 12.9) with cuDNN up to 9.10, for V100 too])],
        [AC_MSG_ERROR([nvcc $halo_nvcc_version cannot build for sm_$halo_word; it knows $halo_nvcc_archs])])])])
done
AS_IF([test -z "$CUDA_ARCHS"], [AC_MSG_ERROR([nvcc $halo_nvcc_version knows no architecture that halo can use; it lists '$halo_nvcc_archs'])])
NVCC_FLAGS=""
for halo_word in $CUDA_ARCHS; do
  NVCC_FLAGS="$NVCC_FLAGS -gencode arch=compute_$halo_word,code=sm_$halo_word"
  halo_last=$halo_word
done
NVCC_FLAGS="$NVCC_FLAGS -gencode arch=compute_$halo_last,code=compute_$halo_last -std=c++14 --forward-unknown-to-host-compiler -Wno-deprecated-gpu-targets"
AS_CASE([" $CUDA_ARCHS "], [*" 70 "*], [], [AS_IF([test "x$with_cuda_arch" = xauto], [AC_MSG_WARN([this build does not run on V100 (sm_70): nvcc $halo_nvcc_version cannot build for it])])])
halo_row_cuda="$halo_nvcc_version ($NVCC), module for sm_$CUDA_ARCHS"
# another toolkit may spill where this one does not: an error for those who develop halo only
NVCC_WARNINGS=""
AS_IF([test "x$enable_werror" = xyes], [NVCC_WARNINGS="--Werror=all-warnings --ptxas-options=-warn-spills,-Werror --compiler-options=-Wall,-Wextra"])
AC_SUBST([NVCC_FLAGS])
AC_SUBST([NVCC_WARNINGS])
AC_SUBST([CUDA_ARCHS])
])
