# SPDX-License-Identifier: Apache-2.0
# net/compile: from graph to program, one file per pass; and what a program is, runs and prints
libhalo_core_la_SOURCES += \
	src/net/arena.c \
	src/net/arrive.c \
	src/net/average.c \
	src/net/recordings.c \
	src/net/running.c \
	src/net/ir.c src/net/ir.h \
	src/net/memory_plan.c \
	src/net/model.c src/net/model.h \
	src/net/nonfinite.c src/net/nonfinite.h \
	src/net/print.c \
	src/net/program.c src/net/program.h \
	src/net/reduce.c \
	src/net/run.c src/net/statistics.c src/net/weigh.c \
	src/net/mirror.c \
	src/net/transfer.c \
	src/net/link.c \
	src/net/load.c \
	src/net/node_sums.c \
	src/net/merge.c \
	src/net/passage.c \
	src/net/compile/backward.c \
	src/net/compile/bind.c \
	src/net/compile/choose.c \
	src/net/compile/compile.h \
	src/net/compile/crop.c src/net/compile/upsample.c \
	src/net/compile/differentiate.c \
	src/net/compile/distribute.c \
	src/net/compile/forms.c \
	src/net/compile/economy.c \
	src/net/compile/fit.c \
	src/net/compile/forward.c \
	src/net/compile/fuse.c \
	src/net/compile/inplace.c \
	src/net/compile/lower.c \
	src/net/compile/margins.c \
	src/net/compile/overlap.c \
	src/net/compile/place.c \
	src/net/compile/pooled.c \
	src/net/compile/precision.c \
	src/net/compile/shape.c \
	src/net/compile/slabs.c src/net/compile/slabs.h \
	src/net/compile/transient.c \
	src/net/compile/transposed.c \
	src/net/compile/update.c \
	src/net/compile/views.c
