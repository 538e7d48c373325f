# SPDX-License-Identifier: Apache-2.0
# tests of comm; those on several ranks are a program here and a script of one line per number of ranks
comm_fabric = tests/comm/fabric.c tests/comm/fabric.h

check_PROGRAMS += tests/comm/routes.test
TESTS += tests/comm/routes.test
TESTS_FAST += tests/comm/routes.test
tests_comm_routes_test_SOURCES = tests/comm/routes.c $(comm_fabric)

check_PROGRAMS += tests/comm/regions.test
TESTS += tests/comm/regions.test
TESTS_FAST += tests/comm/regions.test
tests_comm_regions_test_SOURCES = tests/comm/regions.c $(comm_fabric)

check_PROGRAMS += tests/comm/places.test
TESTS += tests/comm/places.test
TESTS_FAST += tests/comm/places.test
tests_comm_places_test_SOURCES = tests/comm/places.c

check_PROGRAMS += tests/comm/groups.test
TESTS += tests/comm/groups.test
TESTS_FAST += tests/comm/groups.test
tests_comm_groups_test_SOURCES = tests/comm/groups.c

check_PROGRAMS += tests/comm/protocol.test
TESTS += tests/comm/protocol.test
TESTS_FAST += tests/comm/protocol.test
tests_comm_protocol_test_SOURCES = tests/comm/protocol.c $(comm_fabric)

check_PROGRAMS += tests/comm/reducer.test
TESTS += tests/comm/reducer.test
TESTS_FAST += tests/comm/reducer.test
tests_comm_reducer_test_SOURCES = tests/comm/reducer.c $(comm_fabric)

check_PROGRAMS += tests/comm/ranks tests/comm/world tests/comm/exchange tests/comm/redistribute tests/comm/guest
tests_comm_ranks_SOURCES = tests/comm/ranks.c
tests_comm_world_SOURCES = tests/comm/world.c
tests_comm_exchange_SOURCES = tests/comm/exchange.c
tests_comm_redistribute_SOURCES = tests/comm/redistribute.c
tests_comm_guest_SOURCES = tests/comm/guest.c
comm_scripts = tests/comm/ranks_1.test tests/comm/ranks_2.test tests/comm/ranks_3.test tests/comm/ranks_4.test \
	tests/comm/ranks_funneled.test tests/comm/launch.test \
	tests/comm/guest_init.test tests/comm/guest_single.test tests/comm/guest_funneled.test tests/comm/guest_serialized.test \
	tests/comm/guest_multiple.test \
	tests/comm/exchange_1.test tests/comm/exchange_2.test tests/comm/exchange_3.test tests/comm/exchange_4.test \
	tests/comm/exchange_8.test tests/comm/exchange_funneled.test tests/comm/exchange_late.test \
	tests/comm/redistribute_1.test tests/comm/redistribute_2.test tests/comm/redistribute_3.test tests/comm/redistribute_4.test \
	tests/comm/redistribute_8.test tests/comm/redistribute_funneled.test
dist_check_SCRIPTS += $(comm_scripts)
TESTS += $(comm_scripts)
EXTRA_DIST += tests/tsan.supp

# make tests/comm/bench_reduce: 28 MB by each algorithm beside MPI_Allreduce, under mpiexec
EXTRA_PROGRAMS += tests/comm/bench_reduce
tests_comm_bench_reduce_SOURCES = tests/comm/bench_reduce.c

# src/comm on a simulated machine; skipped without SimGrid
dist_check_SCRIPTS += tests/simgrid/simgrid.test
TESTS += tests/simgrid/simgrid.test
EXTRA_DIST += tests/simgrid/steps.c tests/simgrid/cluster.xml
