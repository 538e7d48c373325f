/* SPDX-License-Identifier: Apache-2.0 */
/* kern_decide.cpp -- backends/cuda/decide.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/decide.cu"
