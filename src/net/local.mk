# SPDX-License-Identifier: Apache-2.0
# net: layers and the graph
libhalo_core_la_SOURCES += \
	src/net/build.c \
	src/net/file.c src/net/file.h \
	src/net/freeze.c \
	src/net/graph.c src/net/graph.h \
	src/net/infer.c \
	src/net/init.c \
	src/net/landing.c \
	src/net/keys.c src/net/keys.h \
	src/net/params.c \
	src/net/write.c
EXTRA_DIST += doc/networks.md
