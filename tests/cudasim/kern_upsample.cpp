/* SPDX-License-Identifier: Apache-2.0 */
/* kern_upsample.cpp -- backends/cuda/upsample.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/upsample.cu"
