/* SPDX-License-Identifier: Apache-2.0 */
/* h5driver.h -- file access through owner's descriptor and error memory; see h5out.h. */
#ifndef HL_IO_H5DRIVER_H
#define HL_IO_H5DRIVER_H

#include "io/h5out.h"

/* A file access list that the caller closes, negative on failure; sets owner->driver, which is unregistered
 * after the file is closed. Locked. */
hid_t hl_h5_driver_access(hl_h5_out *owner);

#endif
