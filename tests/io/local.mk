# SPDX-License-Identifier: Apache-2.0
# tests of io
noinst_HEADERS += tests/io/iotest.h tests/io/layouts.h tests/io/manifest.h

check_PROGRAMS += tests/io/sampling.test tests/io/loader.test tests/io/cells.test tests/io/ckpt.test tests/io/h5.test tests/io/sources.test tests/io/refused.test tests/io/public_hdf5.test tests/io/huge.test
TESTS += tests/io/sampling.test tests/io/loader.test tests/io/cells.test tests/io/ckpt.test tests/io/h5.test tests/io/sources.test tests/io/refused.test tests/io/public_hdf5.test tests/io/huge.test
TESTS_FAST += tests/io/sampling.test tests/io/loader.test tests/io/cells.test tests/io/ckpt.test tests/io/h5.test tests/io/sources.test tests/io/refused.test
tests_io_sampling_test_SOURCES = tests/io/sampling.c
tests_io_loader_test_SOURCES = tests/io/loader.c
tests_io_cells_test_SOURCES = tests/io/cells.c
tests_io_ckpt_test_SOURCES = tests/io/ckpt.c
tests_io_h5_test_SOURCES = tests/io/h5.c
tests_io_public_hdf5_test_SOURCES = tests/io/public_hdf5.c
tests_io_sources_test_SOURCES = tests/io/sources.c
tests_io_refused_test_SOURCES = tests/io/refused.c
tests_io_huge_test_SOURCES = tests/io/huge.c

# Samples that a device prepares
check_PROGRAMS += tests/io/stored.test
TESTS += tests/io/stored.test
TESTS_FAST += tests/io/stored.test
tests_io_stored_test_SOURCES = tests/io/stored.c

# What verification finds
check_PROGRAMS += tests/io/verify.test
TESTS += tests/io/verify.test
TESTS_FAST += tests/io/verify.test
tests_io_verify_test_SOURCES = tests/io/verify.c

# Arrays of files that others wrote
noinst_HEADERS += tests/io/npytest.h
check_PROGRAMS += tests/io/arrays.test tests/io/public_arrays.test
TESTS += tests/io/arrays.test tests/io/public_arrays.test
TESTS_FAST += tests/io/arrays.test
tests_io_arrays_test_SOURCES = tests/io/arrays.c
tests_io_public_arrays_test_SOURCES = tests/io/public_arrays.c

# Fuzz targets and what they begin with; .ci/full runs each for a minute
EXTRA_DIST += tests/fuzz/run tests/fuzz/array.h tests/fuzz/npy.c tests/fuzz/nifti.c tests/fuzz/layout.c tests/fuzz/corpus

# Diffraction scans
check_PROGRAMS += tests/io/scan_windows.test
TESTS += tests/io/scan_windows.test
TESTS_FAST += tests/io/scan_windows.test
tests_io_scan_windows_test_SOURCES = tests/io/scan_windows.c

# Medical images
check_PROGRAMS += tests/io/nifti.test tests/io/public_nifti.test
TESTS += tests/io/nifti.test tests/io/public_nifti.test
TESTS_FAST += tests/io/nifti.test
tests_io_nifti_test_SOURCES = tests/io/nifti.c
tests_io_public_nifti_test_SOURCES = tests/io/public_nifti.c

# Patches of volumes of any extents
check_PROGRAMS += tests/io/patches.test tests/io/folds.test tests/io/vary.test
TESTS += tests/io/patches.test tests/io/folds.test tests/io/vary.test
TESTS_FAST += tests/io/patches.test tests/io/folds.test tests/io/vary.test
tests_io_patches_test_SOURCES = tests/io/patches.c
tests_io_folds_test_SOURCES = tests/io/folds.c
tests_io_vary_test_SOURCES = tests/io/vary.c
