# SPDX-License-Identifier: Apache-2.0
# tensor: shapes, block algebra, boxes and views
libhalo_core_la_SOURCES += \
	src/tensor/block.c src/tensor/block.h \
	src/tensor/cuboid.c src/tensor/cuboid.h \
	src/tensor/dropout.h \
	src/tensor/grid.c src/tensor/grid.h \
	src/tensor/half.h \
	src/tensor/upsample.h \
	src/tensor/operand.c src/tensor/operand.h
