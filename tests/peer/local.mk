# SPDX-License-Identifier: Apache-2.0
# tests of peer: halo beside other programs on the same task. They take minutes and want a quiet machine, so they are not in TESTS: make check-peer
peer_tests = tests/peer/pytorch.test
dist_check_SCRIPTS += $(peer_tests)
EXTRA_DIST += tests/peer/step.py

check-peer:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(peer_tests)'
.PHONY: check-peer
