# SPDX-License-Identifier: Apache-2.0
# tests of train and optim
check_PROGRAMS += tests/train/pure.test
TESTS += tests/train/pure.test
TESTS_FAST += tests/train/pure.test
tests_train_pure_test_SOURCES = tests/train/pure.c

dist_check_SCRIPTS += tests/train/parallel.test
TESTS += tests/train/parallel.test
