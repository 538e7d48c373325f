# SPDX-License-Identifier: Apache-2.0
# backend: the generic side of the backend contract
libhalo_core_la_SOURCES += \
	src/backend/backend.h \
	src/backend/builtin.h \
	src/backend/cost.c \
	src/backend/modules.c \
	src/backend/modules.h \
	src/backend/names.c \
	src/backend/once.c \
	src/backend/registry.c \
	src/backend/roles.c \
	src/backend/widen.c \
	src/backend/widen.h

# Where modules of backends are installed. A file of its own: the directory is known to make, not to configure.
nodist_libhalo_core_la_SOURCES = src/backend/directory.c
CLEANFILES += src/backend/directory.c
src/backend/directory.c: Makefile
	$(AM_V_GEN)$(MKDIR_P) src/backend && \
	printf 'extern const char hl_installed_modules[];\nconst char hl_installed_modules[] = "%s";\n' '$(pkglibdir)' >$@.tmp && mv $@.tmp $@
