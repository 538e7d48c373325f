/* SPDX-License-Identifier: Apache-2.0 */
/* kern_copy.cpp -- backends/cuda/copy.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/copy.cu"
