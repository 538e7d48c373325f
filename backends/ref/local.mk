# SPDX-License-Identifier: Apache-2.0
# backends/ref: plain C loops, the oracle
noinst_HEADERS += backends/ref/ref.h
libhalo_core_la_SOURCES += \
	backends/ref/bias.c \
	backends/ref/conv.c \
	backends/ref/copy.c \
	backends/ref/correlate.c \
	backends/ref/cross_entropy.c backends/ref/dice.c \
	backends/ref/decide.c \
	backends/ref/device.c \
	backends/ref/linear.c \
	backends/ref/loss.c \
	backends/ref/margin.c \
	backends/ref/merge.c \
	backends/ref/norm.c \
	backends/ref/pointwise.c \
	backends/ref/pool.c \
	backends/ref/prepare.c \
	backends/ref/update.c \
	backends/ref/upsample.c \
	backends/ref/view.c
