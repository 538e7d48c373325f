# SPDX-License-Identifier: Apache-2.0
# tests/cuda: the cuda backend on the simulated device (tests/cudasim), and its module as nvcc made it
cuda_tests = tests/cuda/conformance.test tests/cuda/doctor.test tests/cuda/train.test tests/cuda/samples.test tests/cuda/planted.test tests/cuda/ways.test
dist_check_SCRIPTS += $(cuda_tests) tests/cuda/archs.test tests/cuda/support.test tests/cuda/volta.test
EXTRA_DIST += tests/cuda/lib.sh tests/cuda/archs.py tests/gpu-check
TESTS += $(cuda_tests) tests/cuda/archs.test tests/cuda/support.test tests/cuda/volta.test
TESTS_FAST += tests/cuda/doctor.test tests/cuda/archs.test tests/cuda/volta.test
AM_TESTS_ENVIRONMENT += CUDA_ARCHS='$(CUDA_ARCHS)'; export CUDA_ARCHS;

# The real cuDNN, asked about described devices
if CUDASIM_REAL
check_PROGRAMS += tests/cuda/support
check_LTLIBRARIES += tests/cuda/driver/libcuda.la
endif
tests_cuda_support_SOURCES = tests/cuda/support.c backends/cuda/conv_graph.c backends/cuda/conv_graph.h
tests_cuda_support_CPPFLAGS = $(CUDA_CFLAGS) -I$(top_srcdir)/backends/cuda
tests_cuda_support_LDADD = $(CUDA_LIBS)
# In place of the driver's library, for cuDNN to load: nothing is linked with it
tests_cuda_driver_libcuda_la_SOURCES = tests/cuda/driver.c
tests_cuda_driver_libcuda_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
tests_cuda_driver_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere

tests_cuda_ways_SOURCES = tests/cuda/ways.c tests/train/outcome.h
tests_cuda_ways_planted_SOURCES = $(tests_cuda_ways_SOURCES)
if CUDASIM
# The same with defects: what is sent is not waited for
check_PROGRAMS += tests/cuda/ways tests/cuda/ways_planted
nodist_tests_cuda_ways_planted_SOURCES = tests/cuda/planted/passage.c tests/cuda/planted/node_sums.c
CLEANFILES += tests/cuda/planted/passage.c tests/cuda/planted/node_sums.c
tests/cuda/planted/passage.c: src/net/passage.c
	$(AM_V_GEN)$(MKDIR_P) tests/cuda/planted && sed "s/HL_TRY(p->dev->ops->wait(p->dev, w->packed));/(void)p;/" $(top_srcdir)/src/net/passage.c >$@.tmp && mv $@.tmp $@
tests/cuda/planted/node_sums.c: src/net/node_sums.c
	$(AM_V_GEN)$(MKDIR_P) tests/cuda/planted && sed "s/if (done) break;/break;/" $(top_srcdir)/src/net/node_sums.c >$@.tmp && mv $@.tmp $@
cuda_simulated_kernels = tests/cudasim/kern_copy.cpp tests/cudasim/kern_decide.cpp tests/cudasim/kern_loss.cpp tests/cudasim/kern_margin.cpp tests/cudasim/kern_merge.cpp tests/cudasim/kern_norm.cpp \
	tests/cudasim/kern_pointwise.cpp tests/cudasim/kern_pool.cpp tests/cudasim/kern_prepare.cpp tests/cudasim/kern_record.cpp tests/cudasim/kern_reduce.cpp tests/cudasim/kern_update.cpp \
	tests/cudasim/kern_upsample.cpp
# The backend with a defect: its streams do not wait for one another
check_LTLIBRARIES += tests/cuda/planted/halo_cuda.la
nodist_tests_cuda_planted_halo_cuda_la_SOURCES = tests/cuda/planted/transfer.c
tests_cuda_planted_halo_cuda_la_SOURCES = $(cuda_sources_besides_transfer) $(cuda_simulated_kernels)
tests_cuda_planted_halo_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/cudasim -I$(top_srcdir)/backends/cuda $(CUDASIM_CPPFLAGS) -DHL_HAVE_NCCL -DHL_CUDA_ARCHS='"90"'
tests_cuda_planted_halo_cuda_la_CXXFLAGS = $(tests_cudasim_halo_cuda_la_CXXFLAGS)
tests_cuda_planted_halo_cuda_la_LDFLAGS = $(tests_cudasim_halo_cuda_la_LDFLAGS)
tests_cuda_planted_halo_cuda_la_LIBADD = tests/cudasim/libcudasim.la
CLEANFILES += tests/cuda/planted/transfer.c
tests/cuda/planted/transfer.c: backends/cuda/transfer.c
	$(AM_V_GEN)$(MKDIR_P) tests/cuda/planted && sed "s/HL_CUDA(dev, cudaStreamWaitEvent(later, event, 0));/(void)later;/" $(top_srcdir)/backends/cuda/transfer.c >$@.tmp && mv $@.tmp $@
else
AM_TESTS_ENVIRONMENT += CUDASIM_ABSENT=1; export CUDASIM_ABSENT;
endif
