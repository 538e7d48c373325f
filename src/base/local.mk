# SPDX-License-Identifier: Apache-2.0
# base: status, log, context, options, configuration, buffers, random numbers, clock, topology
libhalo_core_la_SOURCES += \
	src/base/base.h \
	src/base/clock.c src/base/clock.h \
	src/base/config.c src/base/config.h \
	src/base/config_text.c \
	src/base/context.c src/base/context.h \
	src/base/file.c src/base/file.h \
	src/base/hash.h \
	src/base/heap.c \
	src/base/json.c src/base/json.h \
	src/base/limits.c src/base/limits.h \
	src/base/log.c \
	src/base/memory.c \
	src/base/rng.h \
	src/base/status.c \
	src/base/str.c src/base/str.h \
	src/base/topology.c src/base/topology.h \
	src/base/trace.c src/base/trace.h \
	src/base/version.c \
	src/base/yaml.c src/base/yaml.h
