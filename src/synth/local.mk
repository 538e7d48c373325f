# SPDX-License-Identifier: Apache-2.0
# synth: generators of training data; append to libhalo_synth_la_SOURCES
