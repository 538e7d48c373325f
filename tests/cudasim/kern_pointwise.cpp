/* SPDX-License-Identifier: Apache-2.0 */
/* kern_pointwise.cpp -- backends/cuda/pointwise.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/pointwise.cu"
