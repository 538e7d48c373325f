# SPDX-License-Identifier: Apache-2.0
# base: status, log, context, options, configuration, buffers, random numbers, clock, topology
