# SPDX-License-Identifier: Apache-2.0
# tests of train and optim
check_PROGRAMS += tests/train/pure.test
TESTS += tests/train/pure.test
TESTS_FAST += tests/train/pure.test
tests_train_pure_test_SOURCES = tests/train/pure.c
check_PROGRAMS += tests/train/trainer.test
TESTS += tests/train/trainer.test
TESTS_FAST += tests/train/trainer.test
tests_train_trainer_test_SOURCES = tests/train/trainer.c
check_PROGRAMS += tests/train/statistics.test
TESTS += tests/train/statistics.test
TESTS_FAST += tests/train/statistics.test
tests_train_statistics_test_SOURCES = tests/train/statistics.c

dist_check_SCRIPTS += tests/train/parallel.test tests/train/spatial.test tests/train/grids.test tests/train/running.test tests/train/stopping.test
TESTS += tests/train/parallel.test tests/train/spatial.test tests/train/grids.test tests/train/running.test tests/train/stopping.test

# Beginning with what another run had; and what it compares checkpoints with
dist_check_SCRIPTS += tests/train/limit.test tests/train/precision.test tests/train/start.test
TESTS += tests/train/limit.test tests/train/precision.test tests/train/start.test
check_PROGRAMS += tests/train/tensors
tests_train_tensors_SOURCES = tests/train/tensors.c

# Several ranks beside one
check_PROGRAMS += tests/train/same
tests_train_same_SOURCES = tests/train/same.c tests/train/outcome.h
train_scripts = tests/train/double.test tests/train/trace.test
cpu_train_scripts = tests/train/same_2.test tests/train/same_3.test tests/train/same_4.test tests/train/plan_cache.test
dist_check_SCRIPTS += $(train_scripts) $(cpu_train_scripts)
TESTS += $(train_scripts)
if BACKEND_CPU
TESTS += $(cpu_train_scripts)
endif

# Trainers that are given blocks of samples
check_PROGRAMS += tests/train/blocks
tests_train_blocks_SOURCES = tests/train/blocks.c
blocks_scripts = tests/train/split_lost.test tests/train/blocks_1.test tests/train/blocks_2.test tests/train/blocks_4.test \
	tests/train/blocks_funneled.test
dist_check_SCRIPTS += $(blocks_scripts)
TESTS += $(blocks_scripts)

# A guest in another program
check_PROGRAMS += tests/train/contexts.test
TESTS += tests/train/contexts.test
TESTS_FAST += tests/train/contexts.test
tests_train_contexts_test_SOURCES = tests/train/contexts.c

# What a run takes, before and while it is made; and killed runs
dist_check_SCRIPTS += tests/train/check.test tests/train/killed.test
TESTS += tests/train/check.test tests/train/killed.test

# Windows of volumes of any extents
check_PROGRAMS += tests/train/windows.test
TESTS += tests/train/windows.test
TESTS_FAST += tests/train/windows.test
tests_train_windows_test_SOURCES = tests/train/windows.c
