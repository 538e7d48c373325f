# SPDX-License-Identifier: Apache-2.0
# synth: generators of training data; append to libhalo_synth_la_SOURCES
if HAVE_FFTW
libhalo_synth_la_CFLAGS = $(AM_CFLAGS) $(KERN_CFLAGS)
libhalo_synth_la_SOURCES += \
	src/synth/assign.c src/synth/assign.h \
	src/synth/baseline.c src/synth/baseline.h \
	src/synth/bench.c src/synth/bench.h \
	src/synth/cbed/cbed.h src/synth/cbed/cbeds.c src/synth/cbed/cif.c \
	src/synth/cbed/crystal.c src/synth/cbed/crystal.h src/synth/cbed/crystal_table.c \
	src/synth/cbed/draw.c src/synth/cbed/keys.c \
	src/synth/cbed/kirkland.c src/synth/cbed/kirkland.h src/synth/cbed/kirkland_table.h \
	src/synth/cbed/multislice.c src/synth/cbed/multislice.h \
	src/synth/cbed/optics.c src/synth/cbed/optics.h \
	src/synth/cbed/poisson.c src/synth/cbed/potential.c src/synth/cbed/potential.h \
	src/synth/cbed/prototypes.c src/synth/cbed/prototypes.h src/synth/cbed/scan.c \
	src/synth/cola.c src/synth/cola.h \
	src/synth/cosmology.c src/synth/cosmology.h \
	src/synth/eh98.c src/synth/eh98.h \
	src/synth/estimate.c \
	src/synth/features.c src/synth/features.h \
	src/synth/fft.c src/synth/fft3.h src/synth/mesh.h \
	src/synth/ic.c src/synth/ic.h \
	src/synth/inspect.c src/synth/inspect.h \
	src/synth/lpt.c src/synth/lpt.h \
	src/synth/making.c src/synth/making.h \
	src/synth/making_directory.c \
	src/synth/pack.c src/synth/pack.h \
	src/synth/particles.c src/synth/particles.h \
	src/synth/phantom.c src/synth/phantom.h src/synth/phantoms.c \
	src/synth/plot.c src/synth/plot.h \
	src/synth/pm.c src/synth/pm.h \
	src/synth/power.c src/synth/power.h \
	src/synth/prior.c src/synth/prior.h \
	src/synth/prior_table.c \
	src/synth/quad.c src/synth/quad.h \
	src/synth/ridge.c src/synth/ridge.h \
	src/synth/samples.c src/synth/samples.h \
	src/synth/settle.c \
	src/synth/simulate.c src/synth/simulate.h \
	src/synth/slabs.c src/synth/slabs.h \
	src/synth/spectrum.c src/synth/spectrum.h \
	src/synth/universes.c src/synth/universes.h \
	src/synth/universes_keys.c

halo_SOURCES += src/cli/cmd_synth.c
endif
