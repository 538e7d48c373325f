/* SPDX-License-Identifier: Apache-2.0 */
/* kern_margin.cpp -- backends/cuda/margin.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/margin.cu"
