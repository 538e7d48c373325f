/* SPDX-License-Identifier: Apache-2.0 */
/* kern_norm.cpp -- backends/cuda/norm.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/norm.cu"
