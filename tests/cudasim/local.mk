# SPDX-License-Identifier: Apache-2.0
# tests/cudasim: a simulated CUDA device, as a library with the part of the C APIs of cudart, cuDNN, cuBLAS and NCCL that backends/cuda calls, and its
# own tests. Whoever links tests/cudasim/libcudasim.la in place of NVIDIA's libraries runs on it. The backend itself is built as a
# module in tests/cudasim/.libs: the same C sources, and its kernels by the C++ compiler, one file kern_NAME.cpp for each NAME.cu. With
# HALO_MODULES set to that directory every test and the program run on the simulated device. Nothing of it is installed, and nothing it measures is a
# figure of a GPU.
check_LTLIBRARIES =
cudasim_cppflags = -I$(top_srcdir)/tests/cudasim -I$(top_srcdir) -I$(top_srcdir)/src -I$(top_srcdir)/include $(CUDASIM_CPPFLAGS)
cudasim_cxxflags = $(CUDASIM_CXXFLAGS) $(HALO_MAP_CFLAGS) $(HALO_SANITIZER_CFLAGS)
cudasim_programs = tests/cudasim/planted.test tests/cudasim/streams.test tests/cudasim/graphs.test tests/cudasim/kernels.test \
	tests/cudasim/layers.test tests/cudasim/fused.test tests/cudasim/pools.test tests/cudasim/ranks.test

if CUDASIM
check_LTLIBRARIES += tests/cudasim/libcudasim.la tests/cudasim/halo_cuda.la tests/cudasim/aware_mpi.la
check_PROGRAMS += $(cudasim_programs)
TESTS += $(cudasim_programs) tests/cudasim/symbols.test tests/cudasim/descriptors.test
TESTS_FAST += $(cudasim_programs) tests/cudasim/symbols.test tests/cudasim/descriptors.test
else
TESTS += tests/cudasim/absent.test
endif
# The same calls to the simulated cuDNN and to the real one
if CUDASIM_REAL
check_PROGRAMS += tests/cudasim/descriptors_sim tests/cudasim/descriptors_real
endif
dist_check_SCRIPTS += tests/cudasim/absent.test tests/cudasim/symbols.test tests/cudasim/descriptors.test
AM_TESTS_ENVIRONMENT += CUDASIM_MISSING='$(CUDASIM_MISSING)'; export CUDASIM_MISSING;

tests_cudasim_libcudasim_la_SOURCES = tests/cudasim/cudasim.h tests/cudasim/device.h tests/cudasim/grid.hpp tests/cudasim/launch.hpp \
	tests/cudasim/number.hpp tests/cudasim/sanitize.hpp tests/cudasim/sim.hpp tests/cudasim/settings.cpp tests/cudasim/report.cpp \
	tests/cudasim/lock.cpp tests/cudasim/lend.cpp tests/cudasim/touch.cpp tests/cudasim/memory.cpp tests/cudasim/pinned.cpp tests/cudasim/trap.cpp \
	tests/cudasim/clock.cpp tests/cudasim/stream.cpp tests/cudasim/stream_api.cpp tests/cudasim/graph.cpp tests/cudasim/device.cpp \
	tests/cudasim/copy.cpp tests/cudasim/grid.cpp tests/cudasim/launch.cpp tests/cudasim/dnn.hpp tests/cudasim/dnn.cpp \
	tests/cudasim/dnn_descriptor.cpp tests/cudasim/dnn_conv.hpp tests/cudasim/dnn_conv.cpp tests/cudasim/dnn_algorithm.cpp \
	tests/cudasim/dnn_graph.hpp tests/cudasim/dnn_backend.cpp tests/cudasim/dnn_graph.cpp tests/cudasim/dnn_engine.cpp \
	tests/cudasim/dnn_pool.cpp tests/cudasim/dnn_pointwise.cpp tests/cudasim/blas.cpp tests/cudasim/nccl.hpp tests/cudasim/nccl.cpp \
	tests/cudasim/nccl_run.cpp tests/cudasim/nccl_segment.cpp
tests_cudasim_libcudasim_la_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_libcudasim_la_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_libcudasim_la_LIBADD = -lrt -lpthread

tests_cudasim_planted_test_SOURCES = tests/cudasim/planted.cpp tests/cudasim/check.hpp tests/cudasim/example.hpp tests/cudasim/example.cpp
tests_cudasim_planted_test_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_planted_test_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_planted_test_LDADD = tests/cudasim/libcudasim.la
tests_cudasim_kernels_test_SOURCES = tests/cudasim/kernels.cpp tests/cudasim/check.hpp tests/cudasim/example.hpp tests/cudasim/example.cpp
tests_cudasim_kernels_test_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_kernels_test_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_kernels_test_LDADD = tests/cudasim/libcudasim.la
tests_cudasim_streams_test_SOURCES = tests/cudasim/streams.cpp tests/cudasim/check.hpp
tests_cudasim_streams_test_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_streams_test_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_streams_test_LDADD = tests/cudasim/libcudasim.la
tests_cudasim_graphs_test_SOURCES = tests/cudasim/graphs.cpp tests/cudasim/check.hpp
tests_cudasim_graphs_test_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_graphs_test_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_graphs_test_LDADD = tests/cudasim/libcudasim.la
tests_cudasim_pools_test_SOURCES = tests/cudasim/pools.cpp tests/cudasim/check.hpp tests/cudasim/tensor.hpp
tests_cudasim_pools_test_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_pools_test_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_pools_test_LDADD = tests/cudasim/libcudasim.la
tests_cudasim_layers_test_SOURCES = tests/cudasim/layers.cpp tests/cudasim/check.hpp tests/cudasim/tensor.hpp
tests_cudasim_layers_test_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_layers_test_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_layers_test_LDADD = tests/cudasim/libcudasim.la
tests_cudasim_fused_test_SOURCES = tests/cudasim/fused.cpp tests/cudasim/graph_case.hpp tests/cudasim/check.hpp tests/cudasim/tensor.hpp
tests_cudasim_fused_test_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_fused_test_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_fused_test_LDADD = tests/cudasim/libcudasim.la
tests_cudasim_ranks_test_SOURCES = tests/cudasim/ranks.cpp tests/cudasim/check.hpp
tests_cudasim_ranks_test_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_ranks_test_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_ranks_test_LDADD = tests/cudasim/libcudasim.la

tests_cudasim_descriptors_sim_SOURCES = tests/cudasim/descriptors.cpp tests/cudasim/graph_case.hpp
tests_cudasim_descriptors_sim_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_descriptors_sim_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_descriptors_sim_LDADD = tests/cudasim/libcudasim.la
tests_cudasim_descriptors_real_SOURCES = tests/cudasim/descriptors.cpp tests/cudasim/graph_case.hpp
tests_cudasim_descriptors_real_CPPFLAGS = $(cudasim_cppflags)
tests_cudasim_descriptors_real_CXXFLAGS = $(cudasim_cxxflags)
tests_cudasim_descriptors_real_LDADD = $(CUDA_LIBS)

tests_cudasim_halo_cuda_la_SOURCES = $(cuda_sources) tests/cudasim/kern_copy.cpp tests/cudasim/kern_decide.cpp tests/cudasim/kern_loss.cpp \
	tests/cudasim/kern_margin.cpp tests/cudasim/kern_merge.cpp tests/cudasim/kern_norm.cpp tests/cudasim/kern_pointwise.cpp tests/cudasim/kern_pool.cpp tests/cudasim/kern_prepare.cpp \
	tests/cudasim/kern_record.cpp tests/cudasim/kern_reduce.cpp tests/cudasim/kern_update.cpp tests/cudasim/kern_upsample.cpp
tests_cudasim_halo_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/cudasim $(CUDASIM_CPPFLAGS) -DHL_HAVE_NCCL -DHL_CUDA_ARCHS='"70 75 80 86 89 90"'
tests_cudasim_halo_cuda_la_CXXFLAGS = $(cudasim_cxxflags) -Wno-shadow -Wno-unknown-pragmas
tests_cudasim_halo_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere -no-undefined \
	-export-symbols-regex '^halo_backend_entry$$'
tests_cudasim_halo_cuda_la_LIBADD = tests/cudasim/libcudasim.la

# The real MPI, with addresses of simulated device memory
tests_cudasim_aware_mpi_la_SOURCES = tests/cudasim/aware_mpi.c tests/cudasim/cudasim.h
tests_cudasim_aware_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/cudasim
tests_cudasim_aware_mpi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
tests_cudasim_aware_mpi_la_LIBADD = $(MPI_LIBS)

# The kernels of the simulator's own tests, included by example.cpp
EXTRA_DIST += tests/cudasim/example.cu
