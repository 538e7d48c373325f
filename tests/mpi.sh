#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpi.sh RANKS PROGRAM [ARGUMENT...]: runs a TAP program on RANKS ranks with the launcher that configure found, or skips with the reason.
ranks=$1
shift
if [ -z "$TESTMPIRUN" ]; then
    echo "1..0 # SKIP no MPI launcher was found by configure"
    exit 0
fi
# More ranks than cores: one thread each, and no spinning
OMP_NUM_THREADS=1 OMPI_MCA_mpi_yield_when_idle=1
export OMP_NUM_THREADS OMPI_MCA_mpi_yield_when_idle
exec $TESTMPIRUN -n "$ranks" "$@"
