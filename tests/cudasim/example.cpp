/* SPDX-License-Identifier: Apache-2.0 */
/* example.cpp -- example.cu for the simulated device: the words first, then the file as nvcc would see it. */
#include "device.h"
#include "example.cu"
