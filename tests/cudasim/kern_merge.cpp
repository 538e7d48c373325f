/* SPDX-License-Identifier: Apache-2.0 */
/* kern_merge.cpp -- backends/cuda/merge.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/merge.cu"
