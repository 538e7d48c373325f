# SPDX-License-Identifier: Apache-2.0
# backends/cpu: oneDNN, own kernels per instruction set (AM_CONDITIONALs BACKEND_CPU, HAVE_KERN_AVX2, HAVE_KERN_AVX512F, HAVE_ONEDNN)
#
# cpu_kern_sources are compiled once per instruction set, HL_KERN names which; everything else is compiled for the plain target.
cpu_kern_sources = \
	backends/cpu/kern/convert.c \
	backends/cpu/kern/cross_entropy.c \
	backends/cpu/kern/dense.c \
	backends/cpu/kern/dropout.c \
	backends/cpu/kern/elementary.h \
	backends/cpu/kern/kern.h \
	backends/cpu/kern/norm.c \
	backends/cpu/kern/pointwise.c \
	backends/cpu/kern/pool.c \
	backends/cpu/kern/pool_lanes.h \
	backends/cpu/kern/reduce.c \
	backends/cpu/kern/table.c \
	backends/cpu/kern/update.c \
	backends/cpu/kern/vec.h \
	backends/cpu/kern/winograd.c \
	backends/cpu/kern/winograd.h

if BACKEND_CPU
libhalo_core_la_SOURCES += \
	backends/cpu/act_pool.c \
	backends/cpu/bias.c \
	backends/cpu/classes.c \
	backends/cpu/classes.h \
	backends/cpu/copy.c \
	backends/cpu/cross_entropy.c backends/cpu/cross_entropy.h \
	backends/cpu/dice.c \
	backends/cpu/bind.c \
	backends/cpu/cpu.h \
	backends/cpu/decide.c \
	backends/cpu/device.c \
	backends/cpu/dropout.c \
	backends/cpu/isa.c \
	backends/cpu/isa.h \
	backends/cpu/limits.c \
	backends/cpu/linear.c \
	backends/cpu/loss.c \
	backends/cpu/margin.c \
	backends/cpu/memory.c \
	backends/cpu/mode.c \
	backends/cpu/merge.c \
	backends/cpu/norm.c \
	backends/cpu/pointwise.c \
	backends/cpu/pool.c \
	backends/cpu/prepare.c \
	backends/cpu/rows.h \
	backends/cpu/runs.c \
	backends/cpu/runs.h \
	backends/cpu/share.c \
	backends/cpu/transfer.c \
	backends/cpu/update.c \
	backends/cpu/upsample.c \
	backends/cpu/winograd.c \
	backends/cpu/winograd.h \
	backends/cpu/winograd_image.c \
	backends/cpu/winograd_weights.c

noinst_LTLIBRARIES += libkern_generic.la
libkern_generic_la_SOURCES = $(cpu_kern_sources)
libkern_generic_la_CPPFLAGS = $(AM_CPPFLAGS) -DHL_KERN=generic
libkern_generic_la_CFLAGS = $(AM_CFLAGS) $(KERN_CFLAGS)
libhalo_core_la_LIBADD += libkern_generic.la

if HAVE_KERN_AVX2
noinst_LTLIBRARIES += libkern_avx2.la
libkern_avx2_la_SOURCES = $(cpu_kern_sources)
libkern_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DHL_KERN=avx2
libkern_avx2_la_CFLAGS = $(AM_CFLAGS) $(KERN_CFLAGS) $(KERN_AVX2_CFLAGS)
libhalo_core_la_LIBADD += libkern_avx2.la
endif

if HAVE_KERN_AVX512F
noinst_LTLIBRARIES += libkern_avx512f.la
libkern_avx512f_la_SOURCES = $(cpu_kern_sources)
libkern_avx512f_la_CPPFLAGS = $(AM_CPPFLAGS) -DHL_KERN=avx512f
libkern_avx512f_la_CFLAGS = $(AM_CFLAGS) $(KERN_CFLAGS) $(KERN_AVX512F_CFLAGS)
libhalo_core_la_LIBADD += libkern_avx512f.la
endif
endif

include backends/cpu/kern/local.mk
