# SPDX-License-Identifier: Apache-2.0
# perf: timing a step beside the machine's limits
libhalo_core_la_SOURCES += src/perf/bench.c src/perf/bench.h src/perf/scaling.c src/perf/scaling.h
