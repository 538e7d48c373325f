/* SPDX-License-Identifier: Apache-2.0 */
/* kern_loss.cpp -- backends/cuda/loss.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/loss.cu"
