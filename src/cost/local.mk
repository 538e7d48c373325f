# SPDX-License-Identifier: Apache-2.0
# cost: what operations and messages cost
libhalo_core_la_SOURCES += \
	src/cost/cache.c src/cost/cache.h \
	src/cost/choices.c src/cost/choices.h \
	src/cost/kept.c src/cost/kept.h \
	src/cost/measure.c src/cost/measure.h
