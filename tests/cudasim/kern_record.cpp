/* SPDX-License-Identifier: Apache-2.0 */
/* kern_record.cpp -- backends/cuda/record.cu for the simulated device. */
#include "device.h"
#include "backends/cuda/record.cu"
