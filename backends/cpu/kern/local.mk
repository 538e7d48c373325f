# SPDX-License-Identifier: Apache-2.0
# backends/cpu/kern: the convolution kernels, into the libraries of kernels that backends/cpu/local.mk makes. Vectors pass between inlined
# functions only: what gcc says about their calling convention does not concern them.
if BACKEND_CPU
noinst_HEADERS += backends/cpu/kern/conv.h backends/cpu/kern/conv_body.h
libkern_generic_la_SOURCES += backends/cpu/kern/conv_lanes8.c backends/cpu/kern/conv_lanes16.c
if HAVE_KERN_AVX2
libkern_avx2_la_SOURCES += backends/cpu/kern/conv_lanes8.c backends/cpu/kern/conv_lanes16.c
endif
if HAVE_KERN_AVX512F
libkern_avx512f_la_SOURCES += backends/cpu/kern/conv_lanes16.c
endif

libhalo_core_la_SOURCES += \
	backends/cpu/conv.h \
	backends/cpu/conv_bwd_data.c \
	backends/cpu/conv_fwd.c \
	backends/cpu/conv_gather.c backends/cpu/conv_gather.h \
	backends/cpu/conv_gather_run.c \
	backends/cpu/conv_image.c \
	backends/cpu/conv_onednn.c \
	backends/cpu/conv_pool.c \
	backends/cpu/conv_shape.c \
	backends/cpu/conv_weights.c backends/cpu/conv_weights.h \
	backends/cpu/conv_weights_run.c
endif
