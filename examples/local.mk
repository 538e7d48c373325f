# SPDX-License-Identifier: Apache-2.0
# examples: configurations, and programs that link the library as a user's would
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	examples/cosmoflow-hybrid.yaml \
	examples/cosmoflow-mlperf.yaml \
	examples/cosmoflow-sc18.yaml \
	examples/quickstart.yaml \
	examples/segmentation.yaml \
	examples/insitu.c

networksexamplesdir = $(docdir)/examples/networks
dist_networksexamples_DATA = examples/networks/unet.yaml

check_PROGRAMS += examples/insitu
TESTS += tests/cli/insitu.test
dist_check_SCRIPTS += tests/cli/insitu.test
examples_insitu_SOURCES = examples/insitu.c
examples_insitu_CPPFLAGS = -I$(top_srcdir)/include
examples_insitu_LDADD = libhalo.la -lm

# Scripts to start from, as tests/slurm submits them; data, because sbatch reads them and nobody runs them
slurmexamplesdir = $(docdir)/examples/slurm
dist_slurmexamples_DATA = examples/slurm/cpu.sbatch examples/slurm/hybrid.sbatch examples/slurm/gpu.sbatch
