/* SPDX-License-Identifier: Apache-2.0 */
/* kern_pool.cpp -- backends/cuda/pool.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/pool.cu"
