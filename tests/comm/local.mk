# SPDX-License-Identifier: Apache-2.0
# tests of comm; those on several ranks are a program here and a script of one line per number of ranks
comm_fabric = tests/comm/fabric.c tests/comm/fabric.h

check_PROGRAMS += tests/comm/routes.test
TESTS += tests/comm/routes.test
TESTS_FAST += tests/comm/routes.test
tests_comm_routes_test_SOURCES = tests/comm/routes.c $(comm_fabric)

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
