# SPDX-License-Identifier: Apache-2.0
# halo_isa.m4 -- the instruction sets the cpu kernels are compiled for; the program chooses among them at run time.
# Everything else is compiled for the plain target: a file with instructions that the machine lacks must not be entered by accident.
#
# Substitutes KERN_CFLAGS (all kernels) and KERN_AVX2_CFLAGS, KERN_AVX512F_CFLAGS; conditionals HAVE_KERN_AVX2, HAVE_KERN_AVX512F.
# Contraction to fma and no errno are wanted; -ffast-math is not: it lets the compiler assume that NaN does not exist.
AC_DEFUN([HALO_ISA], [
KERN_CFLAGS=""
AS_IF([test -n "$HALO_OPT_CFLAGS"], [KERN_CFLAGS="-O3"])
for halo_flag in -ffp-contract=fast -fno-math-errno -fno-trapping-math -ftree-vectorize -fvect-cost-model=dynamic; do
  HALO_CC_FLAG([KERN_CFLAGS], [$halo_flag])
done
halo_avx2=no halo_avx512f=no halo_row_isa="generic"
KERN_AVX2_CFLAGS="-mavx2 -mfma"
KERN_AVX512F_CFLAGS="-mavx512f -mavx512cd"
AS_CASE([$host_cpu], [x86_64|amd64], [
  HALO_ISA_PROBE([AVX2 with FMA], [$KERN_AVX2_CFLAGS], [
    __m256 a = _mm256_setzero_ps(); a = _mm256_fmadd_ps(a, a, a); (void)a;], [halo_avx2=yes])
  HALO_CC_FLAG([KERN_AVX512F_CFLAGS], [-mprefer-vector-width=512])
  HALO_ISA_PROBE([AVX-512F], [$KERN_AVX512F_CFLAGS], [
    __m512 a = _mm512_setzero_ps(); a = _mm512_fmadd_ps(a, a, a); (void)a;], [halo_avx512f=yes])
])
AS_IF([test $halo_avx2 = yes], [
  halo_row_isa="$halo_row_isa, avx2"
  AC_DEFINE([HAVE_KERN_AVX2], [1], [Define to 1 if the cpu kernels are compiled for AVX2 with FMA.])])
AS_IF([test $halo_avx512f = yes], [
  halo_row_isa="$halo_row_isa, avx512f"
  AC_DEFINE([HAVE_KERN_AVX512F], [1], [Define to 1 if the cpu kernels are compiled for AVX-512F.])])
AC_SUBST([KERN_CFLAGS])
AC_SUBST([KERN_AVX2_CFLAGS])
AC_SUBST([KERN_AVX512F_CFLAGS])
AM_CONDITIONAL([HAVE_KERN_AVX2], [test $halo_avx2 = yes])
AM_CONDITIONAL([HAVE_KERN_AVX512F], [test $halo_avx512f = yes])
])

# HALO_ISA_PROBE(NAME, FLAGS, BODY, YES): compile only, for the machine that builds need not be the one that runs
AC_DEFUN([HALO_ISA_PROBE], [
AC_MSG_CHECKING([whether $CC compiles $1])
halo_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS $2"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([#include <immintrin.h>], [$3])], [AC_MSG_RESULT([yes]); $4], [AC_MSG_RESULT([no])])
CFLAGS=$halo_save_CFLAGS
])
