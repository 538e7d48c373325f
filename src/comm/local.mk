# SPDX-License-Identifier: Apache-2.0
# comm: everything that speaks MPI
libhalo_core_la_SOURCES += \
	src/comm/reduction.c src/comm/reduction.h \
	src/comm/route.c src/comm/route.h \
	src/comm/route_hierarchical.c \
	src/comm/route_rabenseifner.c \
	src/comm/route_ring.c \
	src/comm/transport.c src/comm/transport.h \
	src/comm/wire.c src/comm/wire.h src/comm/wire_body.h
