/* SPDX-License-Identifier: Apache-2.0 */
/* main.c -- parses the command line by the command's row and runs it. */
#include "cli/command.h"
#include "cli/commands.h"
#include "base/context.h"
#include "comm/comm.h"
#include "comm/launch.h"
#include "halo_build.h"
#include "io/io.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

const hl_command *const hl_commands[] = {&hl_command_train, &hl_command_evaluate, &hl_command_predict, &hl_command_explain,
                                         &hl_command_inspect, &hl_command_convert, &hl_command_bench, &hl_command_doctor,
#ifdef HAVE_FFTW
                                         &hl_command_synth,
#endif
                                         &hl_command_help, NULL};

const hl_command *hl_command_find(const char *name)
{
    for (int i = 0; hl_commands[i]; i++)
        if (strcmp(hl_commands[i]->name, name) == 0) return hl_commands[i];
    return NULL;
}

int hl_option_index(const hl_command *c, const char *name)
{
    for (int i = 0; i < c->options; i++)
        if (strcmp(c->option[i].name, name) == 0) return i;
    HL_BUG_UNLESS(!"an option without a row");
    return -1;
}

bool hl_given(const hl_invocation *inv, const char *name) { return inv->given[hl_option_index(inv->command, name)]; }

const char *hl_option_text(const hl_invocation *inv, const char *name) { return inv->text[hl_option_index(inv->command, name)]; }

void hl_exit_all(hl_invocation *inv, halo_status st)
{
    if (inv->ctx->rank != 0) fprintf(stderr, "halo: error: rank %d: %s\n", inv->ctx->rank, halo_error_message(inv->ctx));
    hl_comm_abort(inv->ctx, hl_exit_code(st));
}

int hl_print(hl_invocation *inv, hl_str *text)
{
    bool good = !text->failed && (inv->ctx->rank != 0 || !text->len || fwrite(text->s, 1, text->len, stdout) == text->len) && fflush(stdout) == 0;
    hl_str_free(text);
    if (good) return HL_EXIT_OK;
    (void)hl_fail(inv->ctx, HALO_ERR_IO, "cannot write to standard output");
    return HL_EXIT_FAILED;
}

int hl_print_json(hl_invocation *inv, hl_json *json)
{
    hl_str_add(&json->out, "\n");
    return hl_print(inv, &json->out);
}

/* --------------------------------------------------------------------------------------------------------- signals */

static volatile sig_atomic_t caught, grace; /* grace: seconds from SIGTERM to the end; 0: none */

static void on_alarm(int number)
{
    static const char text[] = "halo: error: no step has ended within 'stop_grace' after SIGTERM: ending without a checkpoint\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)written;
    (void)number;
    _exit(128 + SIGTERM);
}

static void on_signal(int number)
{
    if (caught && number == SIGINT) _exit(128 + number); /* the second Ctrl-C means now */
    if (number == SIGTERM && grace > 0 && caught != SIGTERM) alarm((unsigned)grace);
    caught = number;
}

void hl_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is a failed write with its cause, not the end */
}

int hl_signal_caught(void) { return caught; }

void hl_stop_within(double seconds)
{
    struct sigaction action = {.sa_handler = on_alarm};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    grace = (sig_atomic_t)fmin(ceil(seconds), 1e9);
    if (caught == SIGTERM && grace > 0) alarm((unsigned)grace);
}

void hl_stop_reached(void)
{
    grace = 0;
    alarm(0);
}

/* ----------------------------------------------------------------------------------------------------- command line */

static int usage(halo_context *ctx, const char *command, const char *format, ...) HALO_PRINTF(3, 4);
static int usage(halo_context *ctx, const char *command, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    (void)hl_fail(ctx, HALO_ERR_USAGE, "%s; see 'halo help%s%s'", text, *command ? " " : "", command);
    return HL_EXIT_USAGE;
}

static int unknown_option(halo_context *ctx, const hl_command *c, const char *word)
{
    const char *names[HL_OPTIONS_MAX + 4] = {"help", "quiet", "verbose", "json"};
    size_t n = c->json ? 4 : 3;
    for (int i = 0; i < c->options; i++) names[n++] = c->option[i].name;
    const char *near = hl_nearest(word, names, n);
    if (near) return usage(ctx, c->name, "unknown option '--%s' (did you mean '--%s'?)", word, near);
    return usage(ctx, c->name, "unknown option '--%s'", word);
}

/* Row of "--name" or "-n"; -1 when there is none. n: length of the name. */
static int match(const hl_command *c, const char *word, size_t n)
{
    for (int i = 0; i < c->options; i++) {
        if (word[1] != '-' && n == 2 && c->option[i].letter == word[1]) return i;
        if (word[1] == '-' && strlen(c->option[i].name) == n - 2 && strncmp(c->option[i].name, word + 2, n - 2) == 0) return i;
    }
    return -1;
}

static bool is_common(hl_invocation *inv, const char *word, bool *help)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return *help = true;
    if (strcmp(word, "--quiet") == 0 || strcmp(word, "-q") == 0) return inv->quiet = true;
    if (strcmp(word, "--verbose") == 0 || strcmp(word, "-v") == 0) return inv->verbose = true;
    if (inv->command->json && strcmp(word, "--json") == 0) return inv->json = true;
    return false;
}

static int parse_number(hl_invocation *inv, int row)
{
    const hl_option *o = &inv->command->option[row];
    char *end;
    const char *text = inv->text[row];
    int64_t n = inv->number[row] = strtoll(text, &end, 10);
    if (end == text || *end) return usage(inv->ctx, inv->command->name, "option '--%s' needs a whole number, not '%s'", o->name, text);
    if (n >= o->low && (o->high == 0 || n <= o->high)) return HL_EXIT_OK;
    if (o->high > 0) return usage(inv->ctx, inv->command->name, "option '--%s' is %s, must be from %" PRId64 " to %" PRId64, o->name, text, o->low, o->high);
    return usage(inv->ctx, inv->command->name, "option '--%s' is %s, must be %" PRId64 " or more", o->name, text, o->low);
}

/* One option at argv[*i]; *i moves over its value. */
static int parse_option(hl_invocation *inv, int argc, char **argv, int *i)
{
    const hl_command *c = inv->command;
    const char *word = argv[*i], *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    int row = match(c, word, equals ? (size_t)(equals - word) : strlen(word));
    if (row < 0) return unknown_option(inv->ctx, c, word + (word[1] == '-' ? 2 : 1));
    inv->given[row] = true;
    if (c->option[row].type == HL_OPT_FLAG) {
        if (equals) return usage(inv->ctx, c->name, "option '--%s' takes no value", c->option[row].name);
        return HL_EXIT_OK;
    }
    if (!equals && *i + 1 >= argc) return usage(inv->ctx, c->name, "option '--%s' needs a %s", c->option[row].name, c->option[row].arg);
    inv->text[row] = equals ? equals + 1 : argv[++*i];
    return c->option[row].type == HL_OPT_INT ? parse_number(inv, row) : HL_EXIT_OK;
}

static int check_needs(hl_invocation *inv)
{
    const hl_option *o = inv->command->option;
    for (int i = 0; i < inv->command->options; i++)
        if (inv->given[i] && o[i].needs && !hl_given(inv, o[i].needs)) return usage(inv->ctx, inv->command->name, "option '--%s' has no use without '--%s'", o[i].name, o[i].needs);
    return HL_EXIT_OK;
}

static int parse(hl_invocation *inv, int argc, char **argv, bool *help)
{
    bool only_args = false;
    for (int i = 0; i < argc; i++) {
        if (!only_args && strcmp(argv[i], "--") == 0) only_args = true;
        else if (!only_args && argv[i][0] == '-' && argv[i][1]) {
            if (is_common(inv, argv[i], help)) continue;
            int rc = parse_option(inv, argc, argv, &i);
            if (rc != HL_EXIT_OK) return rc;
        } else inv->arg[inv->args++] = argv[i];
    }
    if (*help) return HL_EXIT_OK;
    if (inv->args < inv->command->least) return usage(inv->ctx, inv->command->name, "'halo %s' needs %s", inv->command->name, inv->command->synopsis);
    if (inv->command->most >= 0 && inv->args > inv->command->most)
        return usage(inv->ctx, inv->command->name, "too many arguments: '%s'", inv->arg[inv->command->most]);
    return check_needs(inv);
}

/* Rank 0 speaks for all: what fails elsewhere is agreed on and logged there. user: the rank. */
static void print_log(void *user, halo_log_level level, const char *message)
{
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    if (*(const int *)user != 0) return;
    fprintf(stderr, "%shalo: %s%s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", names[level], message);
}

static int run_command(halo_context *ctx, const hl_command *c, int argc, char **argv)
{
    hl_invocation inv = {.command = c, .ctx = ctx};
    bool help = false;
    if (hl_calloc(ctx, (size_t)argc + 1, sizeof(*inv.arg), "arguments", &inv.arg) != HALO_OK) return HL_EXIT_FAILED;
    int rc = parse(&inv, argc, argv, &help);
    hl_context_log_level(ctx, inv.quiet ? HALO_LOG_ERROR : inv.verbose ? HALO_LOG_DEBUG : HALO_LOG_INFO);
    if (rc == HL_EXIT_OK && help) {
        hl_str text = {0};
        hl_help_command(c, &text);
        rc = hl_print(&inv, &text);
    } else if (rc == HL_EXIT_OK) rc = c->run(&inv);
    free(inv.arg);
    return rc;
}

static int unknown_command(halo_context *ctx, const char *word)
{
    const char *names[32];
    size_t n = 0;
    for (; hl_commands[n]; n++) names[n] = hl_commands[n]->name;
    const char *near = hl_nearest(word, names, n);
    if (near) return usage(ctx, "", "unknown command '%s' (did you mean '%s'?)", word, near);
    return usage(ctx, "", "unknown command '%s'", word);
}

static int run_words(halo_context *ctx, const hl_command *c, int argc, char **argv)
{
    hl_str text = {0};
    hl_invocation plain = {.ctx = ctx};
    if (argc < 2) {
        hl_help_all(&text);
        fputs(text.s ? text.s : "", stderr);
        hl_str_free(&text);
        return HL_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        hl_help_all(&text);
        return hl_print(&plain, &text);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        hl_str_addf(&text, "halo %s\n%s\n", halo_version(), halo_version_details());
        return hl_print(&plain, &text);
    }
    return c ? run_command(ctx, c, argc - 2, argv + 2) : unknown_command(ctx, argv[1]);
}

int main(int argc, char **argv)
{
    const hl_command *c = argc > 1 ? hl_command_find(argv[1]) : NULL;
    halo_context_options options = HALO_CONTEXT_OPTIONS_INIT;
    int rank = 0;
    halo_context *ctx;
    /* MPI is not asked: commands that do not compute together never start it. The first process says it, once, and its exit code counts */
    if (!(c && c->world) && hl_launched_rank(hl_process_variable, NULL) > 0) return HL_EXIT_OK;
    options.log = print_log;
    options.log_user = &rank;
    hl_io_own_process();
    halo_status st = c && c->world ? hl_world_create(&options, &ctx) : halo_context_create(&options, &ctx);
    if (st != HALO_OK) {
        fprintf(stderr, "halo: error: %s\n", halo_error_message(NULL));
        return hl_exit_code(st);
    }
    rank = ctx->rank;
    int rc = run_words(ctx, c, argc, argv);
    halo_context_destroy(ctx);
    return rc;
}
