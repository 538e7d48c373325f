# SPDX-License-Identifier: Apache-2.0
# io: sample formats, sampler, prefetch, checkpoint files
EXTRA_DIST += doc/formats.md
noinst_HEADERS += src/io/io.h
libhalo_core_la_SOURCES += \
	src/io/array.c src/io/array.h \
	src/io/array_files.c src/io/array_files.h \
	src/io/array_source.c \
	src/io/augment.c src/io/pipeline.h \
	src/io/axes.c src/io/axes.h \
	src/io/ckpt.c \
	src/io/convert.c src/io/convert.h \
	src/io/crc32c.c src/io/crc32c.h \
	src/io/cutter.c src/io/cutter.h src/io/cutting.h \
	src/io/files.c src/io/files.h \
	src/io/folds.c src/io/folds.h \
	src/io/cells.c src/io/cells.h \
	src/io/h5.c src/io/h5.h \
	src/io/h5_array.c \
	src/io/h5count.c src/io/h5count.h \
	src/io/h5data.c \
	src/io/h5driver.c src/io/h5driver.h \
	src/io/h5out.c src/io/h5out.h \
	src/io/halo_source.c src/io/source.h \
	src/io/inspect.c \
	src/io/inspect_nifti.c src/io/inspect_nifti.h \
	src/io/inspect_numpy.c src/io/inspect_numpy.h \
	src/io/known.c src/io/known.h \
	src/io/labels.c src/io/labels.h \
	src/io/loader.c \
	src/io/loading.c src/io/loading.h \
	src/io/nifti.c src/io/nifti.h \
	src/io/nifti_array.c \
	src/io/npy.c src/io/npy.h \
	src/io/numpy.c \
	src/io/patch.c \
	src/io/png.c src/io/png.h \
	src/io/resample.h \
	src/io/resampled.c \
	src/io/sampler.c \
	src/io/scan.c src/io/scan.h \
	src/io/scan_windows.c src/io/scan_windows.h \
	src/io/scans.h src/io/scans_find.c src/io/scans_pack.c \
	src/io/source.c \
	src/io/stored.c src/io/stored.h \
	src/io/synthetic.c \
	src/io/table.c src/io/table.h \
	src/io/transform.c \
	src/io/unlabelled.c \
	src/io/universe.c src/io/universe.h \
	src/io/universe_source.c \
	src/io/vary.c \
	src/io/verify.c src/io/verify.h \
	src/io/volume.c src/io/volume.h \
	src/io/volumes.c \
	src/io/wrapped.c \
	src/io/wrapped.h \
	src/io/writer.c src/io/writer.h \
	src/io/zip.c src/io/zip.h
