# SPDX-License-Identifier: Apache-2.0
# tests of synth: the generators are optional, so are their tests
if HAVE_FFTW
synth_tests = tests/synth/cosmology.test tests/synth/field.test tests/synth/simulate.test tests/synth/universes.test \
	tests/synth/baseline.test tests/synth/phantom.test tests/synth/cbed.test
check_PROGRAMS += $(synth_tests)
TESTS += $(synth_tests)
TESTS_FAST += $(synth_tests)
tests_synth_cosmology_test_SOURCES = tests/synth/cosmology.c
tests_synth_cosmology_test_LDADD = libhalo_synth.la libhalo_core.la
tests_synth_field_test_SOURCES = tests/synth/field.c
tests_synth_field_test_LDADD = libhalo_synth.la libhalo_core.la
tests_synth_simulate_test_SOURCES = tests/synth/simulate.c
tests_synth_simulate_test_LDADD = libhalo_synth.la libhalo_core.la
tests_synth_universes_test_SOURCES = tests/synth/universes.c
tests_synth_universes_test_LDADD = libhalo_synth.la libhalo_core.la
tests_synth_baseline_test_SOURCES = tests/synth/baseline.c
tests_synth_baseline_test_LDADD = libhalo_synth.la libhalo_core.la
tests_synth_phantom_test_SOURCES = tests/synth/phantom.c
tests_synth_phantom_test_LDADD = libhalo_synth.la libhalo_core.la
tests_synth_cbed_test_SOURCES = tests/synth/cbed.c
tests_synth_cbed_test_LDADD = libhalo_synth.la libhalo_core.la $(FFTW_LIBS)
TESTS += tests/synth/command.test
check_PROGRAMS += tests/synth/slabs
tests_synth_slabs_SOURCES = tests/synth/slabs.c
tests_synth_slabs_LDADD = libhalo_synth.la libhalo_core.la
TESTS += tests/synth/slabs2.test tests/synth/slabs4.test
endif
dist_check_SCRIPTS += tests/synth/command.test tests/synth/slabs2.test tests/synth/slabs4.test
EXTRA_DIST += tests/fuzz/crystals.c
