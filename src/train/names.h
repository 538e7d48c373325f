/* SPDX-License-Identifier: Apache-2.0 */
/* names.h -- lists of tensors for people. */
#ifndef HL_NAMES_H
#define HL_NAMES_H

#include "base/str.h"

typedef struct hl_names {
    int n;
    const char *const *name; /* "conv1/weights"; a layer's stand together or apart */
    bool *pick;              /* [n] those that are meant; all false afterwards */
} hl_names;

/* "conv1 to conv7, fc3/bias and 4 more" */
void hl_names_text(hl_names *v, hl_str *out);

#endif
