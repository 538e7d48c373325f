# SPDX-License-Identifier: Apache-2.0
# tests of net

# programs: small.c has the networks
noinst_HEADERS += tests/net/small.h tests/net/random.h
NET_PROGRAM_TESTS = tests/net/compile_choose.test tests/net/compile_gradient.test tests/net/compile_program.test \
	tests/net/compile_random.test tests/net/compile_update.test
cpu_program_tests = tests/net/compile_cpu.test tests/net/economy.test tests/net/precision.test tests/net/views.test
check_PROGRAMS += $(NET_PROGRAM_TESTS) $(cpu_program_tests)
TESTS += $(NET_PROGRAM_TESTS)
TESTS_FAST += $(NET_PROGRAM_TESTS)
if BACKEND_CPU
TESTS += $(cpu_program_tests)
TESTS_FAST += tests/net/precision.test
endif
tests_net_compile_choose_test_SOURCES = tests/net/compile_choose.c tests/net/small.c
tests_net_compile_cpu_test_SOURCES = tests/net/compile_cpu.c tests/net/small.c
tests_net_compile_gradient_test_SOURCES = tests/net/compile_gradient.c tests/net/small.c
tests_net_economy_test_SOURCES = tests/net/economy.c tests/net/small.c
tests_net_compile_program_test_SOURCES = tests/net/compile_program.c tests/net/small.c
tests_net_compile_random_test_SOURCES = tests/net/compile_random.c tests/net/random.c tests/net/small.c
tests_net_precision_test_SOURCES = tests/net/precision.c tests/net/small.c
tests_net_views_test_SOURCES = tests/net/views.c tests/net/small.c
tests_net_compile_update_test_SOURCES = tests/net/compile_update.c tests/net/small.c

# make tests/net/bench_fuse: times steps with and without what is fused
EXTRA_PROGRAMS += tests/net/bench_fuse
tests_net_bench_fuse_SOURCES = tests/net/bench_fuse.c tests/net/small.c

# the graph
NET_GRAPH_TESTS = tests/net/file.test tests/net/graph.test tests/net/init.test tests/net/zoo.test
check_PROGRAMS += $(NET_GRAPH_TESTS)
TESTS += $(NET_GRAPH_TESTS)
TESTS_FAST += $(NET_GRAPH_TESTS)
tests_net_file_test_SOURCES = tests/net/file.c
tests_net_graph_test_SOURCES = tests/net/graph.c
tests_net_init_test_SOURCES = tests/net/init.c
tests_net_zoo_test_SOURCES = tests/net/zoo.c
EXTRA_DIST += tests/fuzz/network.c

# networks over grids of ranks, beside one rank
check_PROGRAMS += tests/net/split
tests_net_split_SOURCES = tests/net/split.c tests/net/random.c  tests/net/small.c tests/net/small.h
split_scripts = tests/net/split_2_1_1.test tests/net/split_1_1_3.test tests/net/split_1_2_2.test tests/net/split_2_2_2.test
dist_check_SCRIPTS += $(split_scripts) tests/net/split_cpu.test
TESTS += $(split_scripts)
if BACKEND_CPU
TESTS += tests/net/split_cpu.test
endif
