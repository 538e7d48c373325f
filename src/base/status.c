/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

const char *halo_status_text(halo_status status)
{
    switch (status) {
#define HL_CASE(name, value, text)                                                                           \
    case name: return text;
        HALO_STATUS_MAP(HL_CASE)
#undef HL_CASE
    }
    return "unknown status";
}
