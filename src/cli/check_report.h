/* SPDX-License-Identifier: Apache-2.0 */
/* check_report.h -- what `halo train --check` says. */
#ifndef HL_CHECK_REPORT_H
#define HL_CHECK_REPORT_H

#include "base/json.h"
#include "train/check.h"

void hl_check_text(const hl_run *run, const hl_check *c, hl_str *out);
void hl_check_json(const hl_run *run, const hl_check *c, hl_json *j); /* one object */

#endif
