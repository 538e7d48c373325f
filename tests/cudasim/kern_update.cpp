/* SPDX-License-Identifier: Apache-2.0 */
/* kern_update.cpp -- backends/cuda/update.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/update.cu"
