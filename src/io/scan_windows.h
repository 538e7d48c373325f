/* SPDX-License-Identifier: Apache-2.0 */
/* scan_windows.h -- diffraction scans [sy, sx, h, w] as they come from a microscope (EMD files of py4DSTEM, or any array), cut into windows of neighbouring positions, each a sample. */
#ifndef HL_IO_SCAN_WINDOWS_H
#define HL_IO_SCAN_WINDOWS_H

#include "io/io.h"

/* Whether the axes of data.x are those of a scan. */
bool hl_names_scan(const hl_words *axes);

halo_status hl_scan_windows_open(halo_context *ctx, const hl_source_options *o, hl_source **source);

#endif
