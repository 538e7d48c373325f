# SPDX-License-Identifier: Apache-2.0
# halo_cuda.m4 -- CUDA Toolkit (11 to 13) and cuDNN (8 or 9): found and reported. Sets halo_cuda to yes or no.
AC_DEFUN([HALO_CUDA], [
AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR], [CUDA Toolkit (default: nvcc on the PATH, then /usr/local/cuda)])], [], [with_cuda=auto])
AC_ARG_VAR([NVCC], [CUDA compiler])
halo_cuda=no halo_cuda_why="" NVCC_DIR=""
AS_CASE([$with_cuda], [/*], [NVCC_DIR="$with_cuda/bin:"])
AS_IF([test "x$with_cuda" != xno], [AC_PATH_PROG([NVCC], [nvcc], [], [$NVCC_DIR$PATH:/usr/local/cuda/bin])])
AS_IF([test -z "$NVCC"], [halo_cuda_why="no nvcc"], [
  halo_cuda_root=`dirname "$NVCC"`/..
  CUDA_CFLAGS="-I$halo_cuda_root/include" CUDA_LIBS="-L$halo_cuda_root/lib64 -lcudart"
  HALO_LINK_IFELSE([CUDA], [#include <cuda_runtime_api.h>], [int n; return cudaGetDeviceCount(&n);], [], [halo_cuda_why="no cudart beside $NVCC"])
  AS_IF([test -z "$halo_cuda_why"], [
    CUDA_LIBS="$CUDA_LIBS -lcudnn"
    HALO_LINK_IFELSE([CUDA], [#include <cudnn.h>], [return cudnnGetVersion() == 0;], [halo_cuda=yes], [halo_cuda_why="no cuDNN"])])])
AS_IF([test $halo_cuda = yes], [halo_row_cuda="not used: toolkit found ($NVCC), but the cuda backend is not in this release"], [halo_row_cuda="no: $halo_cuda_why; cpu only"])
])
