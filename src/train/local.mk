# SPDX-License-Identifier: Apache-2.0
# train: settings, the loop, evaluation, metrics, run directory and log
libhalo_core_la_SOURCES += \
	src/train/arrays.c \
	src/train/check.c src/train/check.h \
	src/train/classes.c \
	src/train/deliver.c src/train/deliver.h \
	src/train/evaluate.c \
	src/train/events.h \
	src/train/feed.c \
	src/train/figures.c \
	src/train/groups.c \
	src/train/idle.c \
	src/train/insitu.c \
	src/train/loop.c \
	src/train/memory.c src/train/memory.h \
	src/train/metrics.c src/train/metrics.h \
	src/train/run.h \
	src/train/parallel.c \
	src/train/names.c src/train/names.h \
	src/train/network.c \
	src/train/part.c \
	src/train/programs.c \
	src/train/rundir.c \
	src/train/runlog.c \
	src/train/running.c \
	src/train/settings.c src/train/settings.h \
	src/train/shapes.c src/train/shapes.h \
	src/train/setup.c src/train/setup.h \
	src/train/sources.c \
	src/train/standard.c \
	src/train/start.c \
	src/train/state.c \
	src/train/stored.c \
	src/train/tally.c src/train/tally.h \
	src/train/trainer.c src/train/trainer.h \
	src/train/voxels.c \
	src/train/windows.c src/train/windows.h
