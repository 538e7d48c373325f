# SPDX-License-Identifier: Apache-2.0
# tests of backend
noinst_HEADERS += tests/check.h tests/backend/dress.h tests/backend/suite.h

check_PROGRAMS += tests/backend/conformance.test
TESTS += tests/backend/conformance.test
tests_backend_conformance_test_SOURCES = tests/backend/conformance.c tests/backend/dress.c tests/backend/suite.c
