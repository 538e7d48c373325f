/* SPDX-License-Identifier: Apache-2.0 */
/* h5count.h -- file access for reading that counts the bytes it reads. */
#ifndef HL_IO_H5COUNT_H
#define HL_IO_H5COUNT_H

#include "io/h5.h"

/*
 * Makes files opened with `fapl` add what is read of them, data and metadata alike, to *count. The driver's
 * id, to be unregistered after the file is closed; negative on failure. Between enter and leave.
 */
hid_t hl_h5_count(hid_t fapl, hl_read_count *count);

#endif
