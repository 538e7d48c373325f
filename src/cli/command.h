/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h -- a command is one row: name, synopsis, options, what it does. The row parses the command line, prints --help, and makes the man
 * page and the completion, so these cannot drift apart.
 */
#ifndef HL_COMMAND_H
#define HL_COMMAND_H

#include "base/base.h"
#include "base/json.h"
#include "base/str.h"

/* Exit codes of the program; exit.c has the one table of what they mean and which status gives which. */
enum { HL_EXIT_OK = 0, HL_EXIT_FAILED = 1, HL_EXIT_USAGE = 2, HL_EXIT_STOPPED = 3 };
int hl_exit_code(halo_status st);
/* "0 done, 1 failed, ...": for help and man pages. */
void hl_exit_text(hl_str *out);

typedef enum hl_option_type { HL_OPT_FLAG = 0, HL_OPT_TEXT, HL_OPT_INT } hl_option_type;

typedef struct hl_option {
    const char *name; /* "json" for --json */
    char letter;      /* 'j' for -j; 0 = none */
    hl_option_type type;
    const char *arg; /* "FILE"; NULL for flags */
    const char *help;
    int64_t low, high; /* whole numbers: the least, and the largest; 0: no largest */
    const char *needs; /* another option without which this one has no use; NULL: none */
} hl_option;

enum { HL_OPTIONS_MAX = 32 };

typedef struct hl_command hl_command;

/* A parsed command line. Values stand at the index of their row. */
typedef struct hl_invocation {
    const hl_command *command;
    bool given[HL_OPTIONS_MAX];
    const char *text[HL_OPTIONS_MAX];
    int64_t number[HL_OPTIONS_MAX];
    int args; /* positional ones */
    char **arg;
    bool json, quiet, verbose; /* common to all commands */
    halo_context *ctx;         /* a plain context for messages; made by main */
} hl_invocation;

struct hl_command {
    const char *name;
    const char *synopsis; /* "CONFIG [key=value ...]" */
    const char *summary;  /* one line, lower case */
    const char *details;  /* paragraphs */
    const hl_option *option;
    int options;
    int least, most; /* positional arguments; most -1: any number */
    bool json;       /* takes --json */
    bool world;      /* runs on all ranks that a launcher started; the others never touch MPI */
    int (*run)(hl_invocation *inv); /* returns an exit code */
};

/* The list, ended by NULL: src/cli/main.c. */
extern const hl_command *const hl_commands[];
const hl_command *hl_command_find(const char *name);

/* Index of an option's row by name; BUG when there is none. */
int hl_option_index(const hl_command *c, const char *name);
bool hl_given(const hl_invocation *inv, const char *name);
const char *hl_option_text(const hl_invocation *inv, const char *name); /* NULL when not given */

/* Ends all ranks, after an error that the others may not know of; the message is that of this rank. Does not return. */
void hl_exit_all(hl_invocation *inv, halo_status st) __attribute__((noreturn));

/* Prints to stdout, on rank 0, and reports a failure to write (a full disk behind a redirection). */
int hl_print(hl_invocation *inv, hl_str *text);
int hl_print_json(hl_invocation *inv, hl_json *json);

/* Set by SIGTERM, SIGINT and SIGUSR1 after hl_catch_signals: the signal's number. */
void hl_catch_signals(void);
int hl_signal_caught(void);
/* From a SIGTERM on the process has so many seconds (more than 0) to call hl_stop_reached, or it ends with code 143. */
void hl_stop_within(double seconds);
void hl_stop_reached(void);

/* Help texts, from the rows. */
void hl_help_all(hl_str *out);
void hl_help_command(const hl_command *c, hl_str *out);
void hl_man_page(const hl_command *c, hl_str *out); /* NULL: halo(1) */
void hl_completion(hl_str *out);

#endif
