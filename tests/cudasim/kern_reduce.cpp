/* SPDX-License-Identifier: Apache-2.0 */
/* kern_reduce.cpp -- backends/cuda/reduce.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/reduce.cu"
