# SPDX-License-Identifier: Apache-2.0
# halo_util.m4 -- what the other macros share: flags, missing libraries, the summary.

# HALO_OPTIMISATION: before AC_PROG_CC, whose own default CFLAGS would come after (and override) the kernels' -O3.
AC_DEFUN([HALO_OPTIMISATION], [
AS_IF([test "x${CFLAGS+set}" = xset], [HALO_OPT_CFLAGS=""], [HALO_OPT_CFLAGS="-O2 -g"; CFLAGS=""])
AC_SUBST([HALO_OPT_CFLAGS])
])

# HALO_MISSING(LIBRARY, DEBIAN-PACKAGE): note a required library that was not found; HALO_REPORT_MISSING tells about all at once.
AC_DEFUN([HALO_MISSING], [
halo_missing="${halo_missing}
    $1"
halo_missing_packages="$halo_missing_packages $2"
])

AC_DEFUN([HALO_REPORT_MISSING], [
AS_IF([test -n "$halo_missing"], [AC_MSG_ERROR([required and not found:$halo_missing
  On Debian or Ubuntu: apt-get install$halo_missing_packages
  Elsewhere: install them, or name their place (./configure --help, section "Optional Packages").])])
])

# HALO_DIR_FLAGS(PREFIX, DIRECTORY, LIBRARIES): flags of a library installed under DIRECTORY, which its users find at run time too.
AC_DEFUN([HALO_DIR_FLAGS], [
AS_IF([test ! -d "$2/include"], [AC_MSG_ERROR([no library is installed in '$2': no directory '$2/include'])])
halo_libdir="$2/lib"
AS_IF([test -d "$2/lib64" && test ! -d "$2/lib"], [halo_libdir="$2/lib64"])
$1_CFLAGS="-I$2/include"
$1_LIBS="-L$halo_libdir -Wl,-rpath,$halo_libdir $3"
])

# HALO_WRAPPER_FLAGS(PREFIX, COMMAND): the -I -D and -L -l words of what a compiler wrapper such as "mpicc -show" prints.
AC_DEFUN([HALO_WRAPPER_FLAGS], [
$1_CFLAGS="" $1_LIBS=""
for halo_word in `$2 2>/dev/null`; do
  AS_CASE([$halo_word],
    [-I*|-D*], [$1_CFLAGS="$$1_CFLAGS $halo_word"],
    [-L*|-l*|-Wl,-rpath*|-Wl,--enable-new-dtags], [$1_LIBS="$$1_LIBS $halo_word"],
    [-pthread], [$1_CFLAGS="$$1_CFLAGS $halo_word"; $1_LIBS="$$1_LIBS $halo_word"])
done
])

# HALO_LINK_IFELSE(PREFIX, INCLUDES, BODY, YES, NO): a link test with PREFIX_CFLAGS, MPI's flags (for headers that need mpi.h) and PREFIX_LIBS.
AC_DEFUN([HALO_LINK_IFELSE], [
halo_save_CPPFLAGS=$CPPFLAGS halo_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $$1_CFLAGS $MPI_CFLAGS" LIBS="$$1_LIBS $MPI_LIBS $LIBS"
AC_LINK_IFELSE([AC_LANG_PROGRAM([[$2]], [[$3]])], [halo_linked=yes], [halo_linked=no])
CPPFLAGS=$halo_save_CPPFLAGS LIBS=$halo_save_LIBS
AS_IF([test $halo_linked = yes], [$4], [$5])
])

# HALO_CC_FLAG(VARIABLE, FLAG): append FLAG to VARIABLE if the compiler takes it without a word.
AC_DEFUN([HALO_CC_FLAG], [
AC_MSG_CHECKING([whether $CC accepts $2])
halo_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -Werror $2"
AC_COMPILE_IFELSE([AC_LANG_SOURCE([int halo_probe; ])],
  [AC_MSG_RESULT([yes]); $1="$$1 $2"], [AC_MSG_RESULT([no])])
CFLAGS=$halo_save_CFLAGS
])

# HALO_SUMMARY: one row per choice; an absent thing says what its absence costs.
AC_DEFUN([HALO_SUMMARY], [
AC_MSG_NOTICE([

  halo $PACKAGE_VERSION
    compiler      $CC${CFLAGS:+ }$CFLAGS${HALO_OPT_CFLAGS:+ }$HALO_OPT_CFLAGS, warnings are $halo_row_werror
    backends      $halo_row_backends
    cpu kernels   $halo_row_isa
    OpenMP        $halo_row_openmp
    MPI           $halo_row_mpi
    mpi tests     $halo_row_mpirun
    HDF5          $halo_row_hdf5
    BLAS          $halo_row_blas
    libyaml       $halo_row_yaml
    oneDNN        $halo_row_onednn
    hwloc         $halo_row_hwloc
    memkind       $halo_row_memkind
    zlib          $halo_row_zlib
    nifticlib     $halo_row_nifti
    FFTW          $halo_row_fftw
    CUDA          $halo_row_cuda
    simulated GPU $halo_row_cudasim
    sanitizer     $halo_row_sanitizer
    install to    $prefix
])
])
