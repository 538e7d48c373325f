# SPDX-License-Identifier: Apache-2.0
# net/zoo: the named networks
libhalo_core_la_SOURCES += \
	src/net/zoo/cosmoflow.c \
	src/net/zoo/fcdensenet.c \
	src/net/zoo/unet3d.c \
	src/net/zoo/zoo.c src/net/zoo/zoo.h
