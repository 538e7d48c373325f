# SPDX-License-Identifier: Apache-2.0
# halo_mpirun.m4 -- how 'make check' starts several ranks: TESTMPIRUN, probed once with a real two-rank program (a launcher of another MPI
# starts two worlds of one rank). Open MPI refuses root, binds, and counts cores unless told otherwise; MPICH has other options.
AC_DEFUN([HALO_MPIRUN], [
AC_ARG_VAR([TESTMPIRUN], [launcher for the tests, with options; followed by "-n RANKS PROGRAM"])
halo_row_mpirun="no launcher works: tests with several ranks are skipped (Debian openmpi-bin)"
AS_IF([test "x$cross_compiling" = xno && test -z "$TESTMPIRUN"], [
  AC_MSG_CHECKING([for a launcher of two MPI ranks])
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
  halo_launchers="mpiexec mpirun"
  AS_CASE([$MPICC], [*/*], [halo_launchers="`dirname "$MPICC"`/mpiexec $halo_launchers"])
  halo_save_CPPFLAGS=$CPPFLAGS halo_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $MPI_CFLAGS" LIBS="$MPI_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([#include <mpi.h>], [
    int n; MPI_Init(0, 0); MPI_Comm_size(MPI_COMM_WORLD, &n); MPI_Finalize(); return n != 2;])], [
    for halo_launcher in $halo_launchers; do
      for halo_options in "--allow-run-as-root --oversubscribe --bind-to none" "--oversubscribe --bind-to none" "-bind-to none" ""; do
        AS_IF([test -z "$TESTMPIRUN" && $halo_launcher $halo_options -n 2 ./conftest$EXEEXT >&AS_MESSAGE_LOG_FD 2>&1],
          [TESTMPIRUN="$halo_launcher${halo_options:+ }$halo_options"])
      done
    done])
  CPPFLAGS=$halo_save_CPPFLAGS LIBS=$halo_save_LIBS
  AC_MSG_RESULT([${TESTMPIRUN:-none}])])
AS_IF([test -n "$TESTMPIRUN"], [halo_row_mpirun=$TESTMPIRUN])
])
