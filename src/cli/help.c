/* SPDX-License-Identifier: Apache-2.0 */
/* help.c -- --help, man pages and completion, all made from the rows of command.h. */
#include "cli/command.h"

#include <stdio.h>

typedef struct common { const char *name, *help; char letter; } common;

/* Options without a command. */
static const common alone[] = {
    {"help", "print this page", 'h'},
    {"version", "print the version, the libraries of this build and their licences", 'V'},
};

static const common commons[] = {
    {"help", "print this page", 'h'},
    {"quiet", "errors only", 'q'},
    {"verbose", "say more", 'v'},
};

static void option_row(char letter, const char *name, const char *arg, const char *help, hl_str *out)
{
    char left[64];
    if (letter) snprintf(left, sizeof(left), "-%c, --%s%s%s", letter, name, arg ? " " : "", arg ? arg : "");
    else snprintf(left, sizeof(left), "    --%s%s%s", name, arg ? " " : "", arg ? arg : "");
    hl_str_addf(out, "  %-24s %s\n", left, help);
}

void hl_help_all(hl_str *out)
{
    hl_str tail = {0};
    hl_str_add(out, "usage: halo COMMAND [ARGUMENTS]\n       halo --version | --help\n\nTrains 3-D convolutional networks on scientific volumes.\n\n");
    for (int i = 0; hl_commands[i]; i++) hl_str_addf(out, "  %-24s %s\n", hl_commands[i]->name, hl_commands[i]->summary);
    hl_str_add(out, "\n");
    for (size_t i = 0; i < HL_COUNT(alone); i++) option_row(alone[i].letter, alone[i].name, NULL, alone[i].help, out);
    hl_str_add(&tail, "'halo help COMMAND' tells more; 'halo help config' lists every configuration key, 'halo help networks' the networks and the "
                      "layers of a network file. Exit codes: ");
    hl_exit_text(&tail);
    hl_str_add(&tail, ".");
    hl_str_add(out, "\n");
    hl_str_fold(out, tail.s ? tail.s : "", 0, 78);
    hl_str_free(&tail);
}

static void option_rows(const hl_command *c, hl_str *out, void (*row)(char, const char *, const char *, const char *, hl_str *))
{
    for (int i = 0; i < c->options; i++) row(c->option[i].letter, c->option[i].name, c->option[i].arg, c->option[i].help, out);
    if (c->json) row(0, "json", NULL, "print one JSON object on stdout; logs go to stderr", out);
    for (size_t i = 0; i < HL_COUNT(commons); i++) row(commons[i].letter, commons[i].name, NULL, commons[i].help, out);
}

void hl_help_command(const hl_command *c, hl_str *out)
{
    hl_str_addf(out, "usage: halo %s%s%s\n\n", c->name, *c->synopsis ? " " : "", c->synopsis);
    hl_str_fold(out, c->details, 0, 78);
    hl_str_add(out, "\n");
    option_rows(c, out, option_row);
}

/* ------------------------------------------------------------------------------------------------------- man pages */

static void roff(const char *text, hl_str *out)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\'')) hl_str_add(out, "\\&");
        if (*text == '-') hl_str_add(out, "\\-");
        else if (*text == '\\') hl_str_add(out, "\\e");
        else if (*text == '\n') hl_str_add(out, "\n.br\n");
        else hl_str_addn(out, text, 1);
        start = *text == '\n';
    }
    hl_str_add(out, "\n");
}

static void man_row(char letter, const char *name, const char *arg, const char *help, hl_str *out)
{
    hl_str_add(out, ".TP\n");
    if (letter) hl_str_addf(out, "\\fB\\-%c\\fR, ", letter);
    hl_str_addf(out, "\\fB\\-\\-%s\\fR%s%s%s\n", name, arg ? " \\fI" : "", arg ? arg : "", arg ? "\\fR" : "");
    roff(help, out);
}

static void man_head(const char *page, const char *summary, hl_str *out)
{
    hl_str_addf(out, ".TH %s 1 \"\" \"halo %s\" \"halo manual\"\n.SH NAME\n%s \\- ", page, halo_version(), page);
    roff(summary, out);
    hl_str_add(out, ".SH SYNOPSIS\n");
}

void hl_man_page(const hl_command *c, hl_str *out)
{
    char page[64] = "halo";
    if (c) snprintf(page, sizeof(page), "halo-%s", c->name);
    man_head(page, c ? c->summary : "train 3-D convolutional networks on scientific volumes", out);
    if (!c) {
        hl_str_add(out, "\\fBhalo\\fR \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n.SH COMMANDS\n");
        for (int i = 0; hl_commands[i]; i++) {
            hl_str_addf(out, ".TP\n\\fBhalo\\-%s\\fR(1)\n", hl_commands[i]->name);
            roff(hl_commands[i]->summary, out);
        }
        hl_str_add(out, ".SH OPTIONS\n");
        for (size_t i = 0; i < HL_COUNT(alone); i++) man_row(alone[i].letter, alone[i].name, NULL, alone[i].help, out);
        hl_str_add(out, ".SH EXIT STATUS\n");
        hl_exit_text(out);
        hl_str_add(out, ".\n");
        return;
    }
    hl_str_addf(out, "\\fBhalo %s\\fR ", c->name);
    roff(c->synopsis, out);
    hl_str_add(out, ".SH DESCRIPTION\n");
    roff(c->details, out);
    hl_str_add(out, ".SH OPTIONS\n");
    option_rows(c, out, man_row);
    hl_str_add(out, ".SH EXIT STATUS\n");
    hl_exit_text(out);
    hl_str_add(out, ".\n.SH SEE ALSO\n\\fBhalo\\fR(1)\n");
}

/* ------------------------------------------------------------------------------------------------------ completion */

void hl_completion(hl_str *out)
{
    hl_str_add(out, "# bash completion of halo; made from its option table\n_halo()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
                    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='");
    for (int i = 0; hl_commands[i]; i++) hl_str_addf(out, "%s%s", i ? " " : "", hl_commands[i]->name);
    for (size_t i = 0; i < HL_COUNT(alone); i++) hl_str_addf(out, " --%s", alone[i].name);
    hl_str_add(out, "'\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (int i = 0; hl_commands[i]; i++) {
        const hl_command *c = hl_commands[i];
        hl_str_addf(out, "        %s) words='--help --quiet --verbose%s", c->name, c->json ? " --json" : "");
        for (int k = 0; k < c->options; k++) hl_str_addf(out, " --%s", c->option[k].name);
        hl_str_add(out, "' ;;\n");
    }
    hl_str_add(out, "        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n}\n"
                    "complete -o filenames -F _halo halo\n");
}
