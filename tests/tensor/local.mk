# SPDX-License-Identifier: Apache-2.0
# tests of tensor
check_PROGRAMS += tests/tensor/block.test tests/tensor/cuboid.test tests/tensor/grid.test tests/tensor/operand.test
TESTS += tests/tensor/block.test tests/tensor/cuboid.test tests/tensor/grid.test tests/tensor/operand.test
TESTS_FAST += tests/tensor/block.test tests/tensor/cuboid.test tests/tensor/grid.test tests/tensor/operand.test
tests_tensor_block_test_SOURCES = tests/tensor/block.c
tests_tensor_operand_test_SOURCES = tests/tensor/operand.c
tests_tensor_grid_test_SOURCES = tests/tensor/grid.c
tests_tensor_cuboid_test_SOURCES = tests/tensor/cuboid.c
