# SPDX-License-Identifier: Apache-2.0
# optim: schedules, loss scaling (the optimisers themselves are the backends' update operation)
libhalo_core_la_SOURCES += \
	src/optim/scaler.c \
	src/optim/scaler.h \
	src/optim/schedule.c \
	src/optim/schedule.h
