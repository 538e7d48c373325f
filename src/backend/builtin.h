/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builtin.h -- the backends linked into this build. configure writes their list as HL_BACKEND_LIST(X), one X(name) for each; backend `name`
 * defines hl_backend_name(). This is the only place where the core names a backend.
 */
#ifndef HL_BUILTIN_H
#define HL_BUILTIN_H

#include <halo/backend.h>

#ifdef HAVE_CONFIG_H
#include "halo_build.h"
#endif
#ifndef HL_BACKEND_LIST
#define HL_BACKEND_LIST(X) X(ref)
#endif

#define HL_DECLARE_BACKEND(name) const halo_backend *hl_backend_##name(void);
HL_BACKEND_LIST(HL_DECLARE_BACKEND)
#undef HL_DECLARE_BACKEND

#endif
