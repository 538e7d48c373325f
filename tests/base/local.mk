# SPDX-License-Identifier: Apache-2.0
# tests of base
check_PROGRAMS += tests/base/yaml.test
TESTS += tests/base/yaml.test
TESTS_FAST += tests/base/yaml.test
tests_base_yaml_test_SOURCES = tests/base/yaml.c

check_PROGRAMS += tests/base/config.test
TESTS += tests/base/config.test
TESTS_FAST += tests/base/config.test
tests_base_config_test_SOURCES = tests/base/config.c

check_PROGRAMS += tests/base/topology.test
TESTS += tests/base/topology.test
TESTS_FAST += tests/base/topology.test
tests_base_topology_test_SOURCES = tests/base/topology.c

check_PROGRAMS += tests/base/limits.test
TESTS += tests/base/limits.test
TESTS_FAST += tests/base/limits.test
tests_base_limits_test_SOURCES = tests/base/limits.c
