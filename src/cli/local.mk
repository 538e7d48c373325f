# SPDX-License-Identifier: Apache-2.0
# cli: main.c and one file per command; append to halo_SOURCES
