/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halo_mpi.h -- halo on the ranks of a program that uses MPI itself: the one public header that names MPI.
 *
 * The communicator is duplicated, so halo's messages never meet the caller's. Ranks are ordered so that those of one node are neighbours: where the
 * caller's are not, halo's rank differs from the caller's (halo_mpi_rank). With MPI_THREAD_MULTIPLE gradients are summed by a thread while the
 * backward pass goes on; with less they are summed between its steps, by calls from the thread that calls halo.
 *
 * Trainers of such a context are of all its ranks together (halo_trainer_create), and take samples that are spread over them (halo_trainer_step_blocks).
 */
#ifndef HALO_HALO_MPI_H
#define HALO_HALO_MPI_H

#include <halo/halo.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a context whose ranks are those of `comm`; MPI must be initialised and not finalised before the context is destroyed, which is collective.
 * options may be NULL. Collective over comm: all ranks succeed or all fail, with the message of the first that did. HALO_ERR_USAGE: no MPI_Init
 * yet, or MPI_COMM_NULL; HALO_ERR_COMM: MPI failed. */
HALO_API halo_status halo_mpi_context_create(MPI_Comm comm, const halo_context_options *options, halo_context **ctx);

/* The same for a communicator of Fortran. */
HALO_API halo_status halo_mpi_context_create_f(MPI_Fint comm, const halo_context_options *options, halo_context **ctx);

/* This process's rank and the number of ranks; 0 and 1 of a context without MPI. Either may be NULL. Not collective. */
HALO_API void halo_mpi_rank(const halo_context *ctx, int *rank, int *ranks);

#ifdef __cplusplus
}
#endif

#endif
