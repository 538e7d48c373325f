# SPDX-License-Identifier: Apache-2.0
# backend: the generic side of the backend contract
libhalo_core_la_SOURCES += \
	src/backend/backend.h \
	src/backend/builtin.h \
	src/backend/cost.c \
	src/backend/names.c \
	src/backend/once.c \
	src/backend/registry.c
