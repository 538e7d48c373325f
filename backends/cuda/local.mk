# SPDX-License-Identifier: Apache-2.0
# backends/cuda: a module, halo_cuda.so in $(pkglibdir), opened at run time: cuDNN, cuBLAS, own kernels by nvcc (AM_CONDITIONAL BACKEND_CUDA)
#
# It has its own copies of what it uses of base and tensor; the one symbol it shows is halo_backend_entry.
cuda_sources_besides_transfer = \
	backends/cuda/cells.c \
	backends/cuda/cells.h \
	backends/cuda/conv.h \
	backends/cuda/conv_bwd_data.c \
	backends/cuda/conv_fused.c \
	backends/cuda/conv_fwd.c \
	backends/cuda/conv_graph.c \
	backends/cuda/conv_graph.h \
	backends/cuda/conv_pieces.c \
	backends/cuda/conv_plan.c \
	backends/cuda/conv_pool.c \
	backends/cuda/conv_weights.c \
	backends/cuda/copy.c \
	backends/cuda/cuda.h \
	backends/cuda/decide.c \
	backends/cuda/device.c \
	backends/cuda/doctor.c \
	backends/cuda/groups.c \
	backends/cuda/groups.h \
	backends/cuda/image.c \
	backends/cuda/kernels.h \
	backends/cuda/limits.c \
	backends/cuda/linear.c \
	backends/cuda/link.c \
	backends/cuda/loss.c \
	backends/cuda/margin.c \
	backends/cuda/memory.c \
	backends/cuda/merge.c \
	backends/cuda/norm.c \
	backends/cuda/pointwise.c \
	backends/cuda/pool.c \
	backends/cuda/prepare.c \
	backends/cuda/queue.c \
	backends/cuda/record.c \
	backends/cuda/recording.c \
	backends/cuda/reduce.c \
	backends/cuda/update.c \
	backends/cuda/upsample.c \
	src/base/clock.c \
	src/base/log.c \
	src/base/memory.c \
	src/base/status.c \
	src/tensor/operand.c
cuda_sources = $(cuda_sources_besides_transfer) backends/cuda/transfer.c

cuda_kernels = \
	backends/cuda/copy.cu \
	backends/cuda/decide.cu \
	backends/cuda/loss.cu \
	backends/cuda/margin.cu \
	backends/cuda/merge.cu \
	backends/cuda/norm.cu \
	backends/cuda/pointwise.cu \
	backends/cuda/pool.cu \
	backends/cuda/prepare.cu \
	backends/cuda/record.cu \
	backends/cuda/reduce.cu \
	backends/cuda/update.cu \
	backends/cuda/upsample.cu

EXTRA_DIST += $(cuda_kernels) backends/cuda/kernel.h backends/cuda/words.cuh

if BACKEND_CUDA
pkglib_LTLIBRARIES = halo_cuda.la
halo_cuda_la_SOURCES = $(cuda_sources)
halo_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CFLAGS) -DHL_CUDA_ARCHS='"$(CUDA_ARCHS)"'
halo_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined -export-symbols-regex '^halo_backend_entry$$'
halo_cuda_la_LIBADD = $(cuda_kernels:.cu=.lo) $(CUDA_LIBS) -lstdc++
halo_cuda_la_DEPENDENCIES = $(cuda_kernels:.cu=.lo)

# nvcc through libtool: what nvcc does not know, such as libtool's -fPIC, goes to the C++ compiler. Dependencies come as files .cud beside the objects.
SUFFIXES = .cu
.cu.lo:
	@$(MKDIR_P) $(@D)
	$(AM_V_CC)$(LIBTOOL) $(AM_V_lt) --tag=CC --silent --mode=compile $(NVCC) $(NVCC_FLAGS) $(NVCC_WARNINGS) -O2 $(NVCCFLAGS) \
	  -I$(top_srcdir)/include -I$(top_srcdir)/src -I$(top_srcdir) -MD -MP -MF $(@D)/$(*F).cud -MT $@ -c -o $@ $<
-include $(cuda_kernels:.cu=.cud)
CLEANFILES += backends/cuda/*.cud
endif
