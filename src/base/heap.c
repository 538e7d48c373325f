/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c -- what the C library can do with its heap beyond the standard. */
#include "base/base.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

void hl_give_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
