/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HL_COMMANDS_H
#define HL_COMMANDS_H

#include "cli/command.h"

extern const hl_command hl_command_train, hl_command_evaluate, hl_command_predict, hl_command_explain, hl_command_inspect,
    hl_command_bench, hl_command_convert, hl_command_doctor, hl_command_synth, hl_command_help;

/* `halo bench synth` (cmd_synth.c); built with FFTW only. */
int hl_bench_synth(hl_invocation *inv);

#endif
