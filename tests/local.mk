# SPDX-License-Identifier: Apache-2.0
# tests: TAP programs and scripts, all named *.test, started from the top of the build directory.
#
# A test program (tests/AREA/local.mk; link the generators with tests_AREA_NAME_test_LDADD = libhalo_synth.la libhalo_core.la):
#     check_PROGRAMS += tests/AREA/NAME.test
#     TESTS += tests/AREA/NAME.test
#     tests_AREA_NAME_test_SOURCES = tests/AREA/NAME.c
# A test that is a script (executable; reads $top_srcdir, writes only where it stands, in a directory of its own, for tests run in parallel):
#     dist_check_SCRIPTS += tests/AREA/NAME.test
#     TESTS += tests/AREA/NAME.test
# A test on several ranks: a program without TESTS, and a script of one line (rank 0 alone prints TAP):
#     exec "$top_srcdir/tests/mpi.sh" 4 tests/AREA/PROGRAM
# Logs are named after the test without its extension, so no two tests may differ in the extension alone.
#
# The environment of a test: top_srcdir and top_builddir (absolute), HALO (the program), TESTMPIRUN (launcher with options, or empty),
# HALO_TESTDATA (a collection of files of others; tests that need it SKIP when it is unset), HALO_CACHE (measured choices of all tests, never the user's), CC
# and the flags of the build.

TEST_EXTENSIONS = .test
TEST_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) '$(top_srcdir)/build-aux/tap-driver.sh'
AM_TESTS_ENVIRONMENT = \
	top_srcdir='$(abs_top_srcdir)'; top_builddir='$(abs_top_builddir)'; export top_srcdir top_builddir; \
	HALO='$(abs_top_builddir)/halo'; CC='$(CC)'; NM='$(NM)'; MAKE='$(MAKE)'; export HALO CC NM MAKE; \
	HALO_SANITIZER='$(HALO_SANITIZER_CFLAGS)'; export HALO_SANITIZER; \
	TESTMPIRUN='$(TESTMPIRUN)'; export TESTMPIRUN; \
	OMPI_ALLOW_RUN_AS_ROOT=1; OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM; \
	OMP_NUM_THREADS=2; OMP_WAIT_POLICY=passive; export OMP_NUM_THREADS OMP_WAIT_POLICY; \
	test -n "$$HALO_TESTDATA" || { test -d "$$top_srcdir/../shared/testdata" && HALO_TESTDATA=$$top_srcdir/../shared/testdata; }; \
	test -z "$$HALO_TESTDATA" || export HALO_TESTDATA; \
	LSAN_OPTIONS=suppressions='$(abs_top_srcdir)/tests/lsan.supp':print_suppressions=0; export LSAN_OPTIONS; \
	TSAN_OPTIONS=suppressions='$(abs_top_srcdir)/tests/tsan.supp'; export TSAN_OPTIONS; \
	UBSAN_OPTIONS=print_stacktrace=1; export UBSAN_OPTIONS; \
	HALO_CACHE='$(abs_top_builddir)/tests/cache.dir'; export HALO_CACHE;

noinst_HEADERS += tests/tap.h
EXTRA_DIST += tests/mpi.sh tests/lsan.supp

dist_check_SCRIPTS += tests/rooms.test tests/symbols.test tests/install.test
TESTS += tests/rooms.test tests/symbols.test tests/install.test
TESTS_FAST += tests/rooms.test tests/symbols.test tests/install.test

# Failed scripts leave their directories for reading
clean-local:
	rm -rf tests/cache.dir tests/rooms.dir tests/symbols.dir tests/install.dir tests/cudasim/symbols.dir tests/cudasim/descriptors.dir

# The quick part of 'make check', for sanitizers and 'make distcheck TESTS=...'
check-fast:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(TESTS_FAST)'
# Prints the quick part, for scripts
print-tests-fast:
	@echo $(TESTS_FAST)
.PHONY: check-fast print-tests-fast
