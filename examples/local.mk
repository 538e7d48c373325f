# SPDX-License-Identifier: Apache-2.0
# examples: configurations, and programs that link the library as a user's would
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	examples/cbed.yaml \
	examples/cosmoflow-hybrid.yaml \
	examples/cosmoflow-mlperf.yaml \
	examples/cosmoflow-sc18.yaml \
	examples/own-data.yaml \
	examples/phantom.yaml \
	examples/quickstart.yaml \
	examples/scans.yaml \
	examples/segmentation.yaml \
	examples/insitu.c \
	examples/insitu_mpi.c

networksexamplesdir = $(docdir)/examples/networks
dist_networksexamples_DATA = examples/networks/unet.yaml examples/networks/unet2d.yaml

check_PROGRAMS += examples/insitu examples/insitu_mpi
TESTS += tests/cli/insitu.test tests/cli/insitu_mpi.test
dist_check_SCRIPTS += tests/cli/insitu.test tests/cli/insitu_mpi.test
examples_insitu_SOURCES = examples/insitu.c
examples_insitu_CPPFLAGS = -I$(top_srcdir)/include
examples_insitu_LDADD = libhalo.la -lm
examples_insitu_mpi_SOURCES = examples/insitu_mpi.c
examples_insitu_mpi_CPPFLAGS = -I$(top_srcdir)/include $(MPI_CFLAGS)
examples_insitu_mpi_LDADD = libhalo.la $(MPI_LIBS) -lm

# What it was shown, into a file of halo's layout
check_PROGRAMS += tests/cli/pack
tests_cli_pack_SOURCES = tests/cli/pack.c

# Scripts to start from, as tests/slurm submits them; data, because sbatch reads them and nobody runs them
slurmexamplesdir = $(docdir)/examples/slurm
dist_slurmexamples_DATA = examples/slurm/cpu.sbatch examples/slurm/hybrid.sbatch examples/slurm/gpu.sbatch
