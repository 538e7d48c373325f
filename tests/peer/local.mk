# SPDX-License-Identifier: Apache-2.0
# tests of peer: halo beside other programs on the same task. Layers and networks are compared in seconds. Times want minutes and a quiet machine, so they are not in
# TESTS: make check-peer
peer_tests = tests/peer/pytorch.test
dist_check_SCRIPTS += $(peer_tests) tests/peer/layers.test tests/peer/networks.test
check_PROGRAMS += tests/peer/layers
tests_peer_layers_SOURCES = tests/peer/layers.c
TESTS += tests/peer/layers.test tests/peer/networks.test
EXTRA_DIST += tests/peer/layers.py tests/peer/networks.py tests/peer/step.py

check-peer:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(peer_tests)'
.PHONY: check-peer
