/* SPDX-License-Identifier: Apache-2.0 */
/* kern_prepare.cpp -- backends/cuda/prepare.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/prepare.cu"
