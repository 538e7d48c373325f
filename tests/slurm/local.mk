# SPDX-License-Identifier: Apache-2.0
# halo under a real Slurm on this machine, and the scripts of examples/slurm; skipped where there is none
dist_check_SCRIPTS += tests/slurm/slurm.test
TESTS += tests/slurm/slurm.test
EXTRA_DIST += tests/slurm/cluster.sh
