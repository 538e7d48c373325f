# SPDX-License-Identifier: Apache-2.0
# tests of synth: the generators are optional, so are their tests
if HAVE_FFTW
synth_tests = tests/synth/cosmology.test tests/synth/field.test
check_PROGRAMS += $(synth_tests)
TESTS += $(synth_tests)
TESTS_FAST += $(synth_tests)
tests_synth_cosmology_test_SOURCES = tests/synth/cosmology.c
tests_synth_cosmology_test_LDADD = libhalo_synth.la libhalo_core.la
tests_synth_field_test_SOURCES = tests/synth/field.c
tests_synth_field_test_LDADD = libhalo_synth.la libhalo_core.la
endif
