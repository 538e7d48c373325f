/* SPDX-License-Identifier: Apache-2.0 */
/* halo help: pages about commands, configuration keys and network files; man pages and completion for the build. */
#include "cli/commands.h"
#include "net/keys.h"
#include "train/settings.h"

static const hl_option options[] = {
    {.name = "man", .help = "print the man page instead"},
    {.name = "completion", .help = "print the bash completion"},
};

static void zoo_help(hl_str *out)
{
    hl_str_add(out, "Networks of the zoo, with their variants ('network: NAME', 'variant: NAME'):\n");
    for (int i = 0; halo_network_zoo_name(i); i++) {
        hl_str_addf(out, "  %s:", halo_network_zoo_name(i));
        for (int v = 0; halo_network_zoo_variant(i, v); v++) hl_str_addf(out, " %s", halo_network_zoo_variant(i, v));
        hl_str_add(out, "\n");
    }
    hl_str_add(out, "\nA network file of your own ('network: ./mine.yaml'; 'halo explain NAME --yaml' prints one to begin with):\n\n"
                    "  name: mine\n  input: {channels: 1, size: 32}\n  layers:\n    - conv: {name: conv1, filters: 16, padding: same}\n"
                    "    - leaky_relu: {name: act1}\n    - add: {from: [conv1, act1]}\n\nEach layer takes the one before it, or those named in 'from'. "
                    "The layers and their keys:\n\n");
}

static int help(hl_invocation *inv)
{
    hl_str text = {0};
    const char *topic = inv->args ? inv->arg[0] : NULL;
    const hl_command *c = topic ? hl_command_find(topic) : NULL;
    if (hl_given(inv, "completion")) hl_completion(&text);
    else if (hl_given(inv, "man") && (c || !topic || strcmp(topic, "halo") == 0)) hl_man_page(c, &text);
    else if (!topic) hl_help_all(&text);
    else if (c) hl_help_command(c, &text);
    else if (strcmp(topic, "config") == 0) {
        hl_str_add(&text, "Configuration keys. In a file they nest ('train: {epochs: 40}'); on the command line they are dotted\n"
                          "('train.epochs=40').\n\n");
        hl_config_help(hl_settings_keys(), &text);
    } else if (strcmp(topic, "networks") == 0) {
        zoo_help(&text);
        hl_network_help(&text);
    }
    else {
        (void)hl_fail(inv->ctx, HALO_ERR_USAGE, "no help on '%s'; 'halo help' lists the commands, and there are 'config' and 'networks'", topic);
        return HL_EXIT_USAGE;
    }
    return hl_print(inv, &text);
}

const hl_command hl_command_help = {
    .name = "help",
    .synopsis = "[COMMAND | config | networks]",
    .summary = "explain a command, the configuration keys, or network files",
    .details = "Prints what a command does and its options, every configuration key with type, default and meaning, or the networks of the "
               "zoo and the grammar of network files.",
    .option = options,
    .options = HL_COUNT(options),
    .most = 1,
    .run = help,
};
