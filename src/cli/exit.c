/* SPDX-License-Identifier: Apache-2.0 */
/* exit.c -- the exit codes: which status gives which, and what they mean. README repeats the words; tests/cli/usage.test compares. */
#include "cli/command.h"

static const char *const meaning[] = {[HL_EXIT_OK] = "done",
                                      [HL_EXIT_FAILED] = "failed",
                                      [HL_EXIT_USAGE] = "usage or configuration",
                                      [HL_EXIT_STOPPED] = "stopped on request with a checkpoint"};

/* What a person can mend on the command line, in the configuration or in a network file is 2; so is what this build cannot do. */
int hl_exit_code(halo_status st)
{
    switch (st) {
    case HALO_OK: return HL_EXIT_OK;
    case HALO_ERR_STOPPED: return HL_EXIT_STOPPED;
    case HALO_ERR_USAGE:
    case HALO_ERR_SHAPE:
    case HALO_ERR_UNSUPPORTED: return HL_EXIT_USAGE;
    default: return HL_EXIT_FAILED;
    }
}

void hl_exit_text(hl_str *out)
{
    for (size_t i = 0; i < HL_COUNT(meaning); i++) hl_str_addf(out, "%s%zu %s", i ? ", " : "", i, meaning[i]);
}
