# SPDX-License-Identifier: Apache-2.0
# comm: everything that speaks MPI
haloinclude_HEADERS += include/halo/halo_mpi.h
libhalo_core_la_SOURCES += \
	src/comm/agree.c \
	src/comm/bitvector.c src/comm/bitvector.h \
	src/comm/comm.c src/comm/comm.h \
	src/comm/group.c src/comm/group.h \
	src/comm/launch.c src/comm/launch.h \
	src/comm/mpi_calls.c src/comm/mpi_calls.h \
	src/comm/nodes.c src/comm/nodes.h \
	src/comm/orchestrate.c src/comm/orchestrate.h \
	src/comm/orchestrate_bitvector.c \
	src/comm/orchestrate_coordinator.c \
	src/comm/reducer.c src/comm/reducer.h src/comm/reducer_impl.h \
	src/comm/reducer_measure.c \
	src/comm/reducer_progress.c \
	src/comm/reduction.c src/comm/reduction.h \
	src/comm/route.c src/comm/route.h \
	src/comm/route_hierarchical.c \
	src/comm/route_rabenseifner.c \
	src/comm/route_ring.c \
	src/comm/seats.c src/comm/seats.h \
	src/comm/stall.c src/comm/stall.h \
	src/comm/exchange.c src/comm/exchange.h src/comm/exchange_impl.h \
	src/comm/exchange_match.c \
	src/comm/exchange_progress.c \
	src/comm/exchange_stall.c \
	src/comm/redistribute.c src/comm/redistribute.h \
	src/comm/region.c src/comm/region.h \
	src/comm/team.c src/comm/team.h \
	src/comm/thread.c src/comm/thread.h \
	src/comm/transport.c src/comm/transport.h \
	src/comm/transport_mpi.c \
	src/comm/trace_save.c \
	src/comm/watch.c \
	src/comm/wire.c src/comm/wire.h src/comm/wire_body.h
