# SPDX-License-Identifier: Apache-2.0
# tests of backend
noinst_HEADERS += tests/check.h tests/backend/dress.h tests/backend/makers.h tests/backend/suite.h

# Random operations and what they should give
suite_sources = tests/backend/suite.c tests/backend/make_cells.c tests/backend/make_rows.c tests/backend/make_windows.c

check_PROGRAMS += tests/backend/conformance.test
TESTS += tests/backend/conformance.test
TESTS_FAST += tests/backend/conformance.test
tests_backend_conformance_test_SOURCES = tests/backend/conformance.c tests/backend/dress.c $(suite_sources)

check_PROGRAMS += tests/backend/properties.test
TESTS += tests/backend/properties.test
TESTS_FAST += tests/backend/properties.test
tests_backend_properties_test_SOURCES = tests/backend/properties.c $(suite_sources)

check_PROGRAMS += tests/backend/update.test
TESTS += tests/backend/update.test
TESTS_FAST += tests/backend/update.test
tests_backend_update_test_SOURCES = tests/backend/update.c

check_PROGRAMS += tests/backend/queues.test
TESTS += tests/backend/queues.test
TESTS_FAST += tests/backend/queues.test
tests_backend_queues_test_SOURCES = tests/backend/queues.c

check_PROGRAMS += tests/backend/onnx.test
TESTS += tests/backend/onnx.test
TESTS_FAST += tests/backend/onnx.test
tests_backend_onnx_test_SOURCES = tests/backend/onnx.c

check_PROGRAMS += tests/backend/registry.test
TESTS += tests/backend/registry.test
TESTS_FAST += tests/backend/registry.test
tests_backend_registry_test_SOURCES = tests/backend/registry.c

check_PROGRAMS += tests/backend/corner.test
TESTS += tests/backend/corner.test
TESTS_FAST += tests/backend/corner.test
tests_backend_corner_test_SOURCES = tests/backend/corner.c

if BACKEND_CPU
check_PROGRAMS += tests/backend/conv_kernels.test
TESTS += tests/backend/conv_kernels.test
tests_backend_conv_kernels_test_SOURCES = tests/backend/conv_kernels.c

check_PROGRAMS += tests/backend/denormal.test
TESTS += tests/backend/denormal.test
TESTS_FAST += tests/backend/denormal.test
tests_backend_denormal_test_SOURCES = tests/backend/denormal.c

check_PROGRAMS += tests/backend/threads.test
TESTS += tests/backend/threads.test
TESTS_FAST += tests/backend/threads.test
tests_backend_threads_test_SOURCES = tests/backend/threads.c

check_PROGRAMS += tests/backend/bind.test
TESTS += tests/backend/bind.test
TESTS_FAST += tests/backend/bind.test
tests_backend_bind_test_SOURCES = tests/backend/bind.c

# Scripts that look at the kernels as compiled: their instructions, and another processor's build
dist_check_SCRIPTS += tests/backend/isa.test tests/backend/aarch64.test tests/backend/bench.test
TESTS += tests/backend/isa.test tests/backend/aarch64.test tests/backend/bench.test
TESTS_FAST += tests/backend/isa.test

# make tests/backend/bench_pointwise: times everything else beside the triad
EXTRA_PROGRAMS += tests/backend/bench_pointwise
tests_backend_bench_pointwise_SOURCES = tests/backend/bench_pointwise.c

# make tests/backend/bench_conv: times the convolutions of the zoo networks
EXTRA_PROGRAMS += tests/backend/bench_conv
tests_backend_bench_conv_SOURCES = tests/backend/bench_conv.c
tests_backend_bench_conv_LDFLAGS = $(AM_LDFLAGS) $(OPENMP_CFLAGS)
endif

EXTRA_DIST += tests/backend/isa.awk
