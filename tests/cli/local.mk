# SPDX-License-Identifier: Apache-2.0
# tests of the program
EXTRA_DIST += tests/cli/lib.sh
dist_check_SCRIPTS += tests/cli/diffraction.test tests/cli/usage.test tests/cli/train.test tests/cli/volumes.test tests/cli/classes.test tests/cli/examples.test
TESTS += tests/cli/diffraction.test tests/cli/usage.test tests/cli/train.test tests/cli/volumes.test tests/cli/classes.test tests/cli/examples.test
TESTS_FAST += tests/cli/usage.test tests/cli/volumes.test tests/cli/classes.test
# What inspect --verify says
dist_check_SCRIPTS += tests/cli/verify.test tests/cli/pitfalls.test
TESTS += tests/cli/verify.test tests/cli/pitfalls.test
TESTS_FAST += tests/cli/verify.test tests/cli/pitfalls.test
check_PROGRAMS += tests/cli/make_data
tests_cli_make_data_SOURCES = tests/cli/make_data.c

# Data of strangers
dist_check_SCRIPTS += tests/cli/arrays.test
TESTS += tests/cli/arrays.test
TESTS_FAST += tests/cli/arrays.test
check_PROGRAMS += tests/cli/make_arrays
tests_cli_make_arrays_SOURCES = tests/cli/make_arrays.c

# Medical images
dist_check_SCRIPTS += tests/cli/nifti.test
TESTS += tests/cli/nifti.test
TESTS_FAST += tests/cli/nifti.test

# Volumes of any extents
dist_check_SCRIPTS += tests/cli/patches.test
TESTS += tests/cli/patches.test
