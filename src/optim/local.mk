# SPDX-License-Identifier: Apache-2.0
# optim: schedules (the optimisers themselves are the backends' update operation)
libhalo_core_la_SOURCES += src/optim/schedule.c src/optim/schedule.h
