/* SPDX-License-Identifier: Apache-2.0 */
/* write.c -- a graph as a network file: one line per layer, keys that have their default left out. */
#include "net/file.h"
#include "net/keys.h"

#include <stdio.h>

static bool has_default(const hl_layer_form *form, const hl_layer_key *key, const hl_layer *layer)
{
    hl_layer other = *layer;
    if (!hl_key_default(form, key, &other)) return false;
    hl_str is = {0}, would = {0};
    hl_key_format(key, layer, &is);
    hl_key_format(key, &other, &would);
    bool same = is.s && would.s && strcmp(is.s, would.s) == 0;
    hl_str_free(&is);
    hl_str_free(&would);
    return same;
}

static void write_inputs(const struct halo_network *net, int i, hl_str *out)
{
    const hl_layer *l = &net->layer[i];
    if (l->inputs == 1 && l->input[0] == i - 1) return;
    hl_str_add(out, ", from: ");
    if (l->inputs > 1) hl_str_add(out, "[");
    for (int k = 0; k < l->inputs; k++) hl_str_addf(out, "%s%s", k ? ", " : "", net->layer[l->input[k]].name);
    if (l->inputs > 1) hl_str_add(out, "]");
}

static void write_layer(const struct halo_network *net, int i, hl_str *out)
{
    const hl_layer *l = &net->layer[i];
    const hl_layer_form *form = hl_form_of(l);
    hl_str_addf(out, "  - %s: {name: %s", form->word, l->name);
    write_inputs(net, i, out);
    for (const hl_layer_key *k = form->keys; k->name; k++) {
        if (k->type == HL_KEY_LAYER || has_default(form, k, l)) continue;
        hl_str_addf(out, ", %s: ", k->name);
        hl_key_format(k, l, out);
    }
    hl_str_add(out, "}\n");
}

halo_status hl_network_to_yaml(const struct halo_network *net, hl_str *out)
{
    const int64_t *in = net->layer[0].out;
    hl_str_addf(out, "name: %s\n", net->name);
    hl_str_addf(out, "input: {channels: %" PRId64 ", size: [%" PRId64 ", %" PRId64 ", %" PRId64 "]}\n", in[0],
                in[1], in[2], in[3]);
    hl_str_add(out, "layers:\n");
    for (int i = 1; i < net->layers; i++) write_layer(net, i, out);
    return out->failed ? hl_fail(net->ctx, HALO_ERR_NOMEM, "out of memory: writing network '%s'", net->name)
                       : HALO_OK;
}

halo_status halo_network_text(const halo_network *net, char **text)
{
    hl_str out = {0};
    HL_TRY(hl_not_null(NULL, net, "net"));
    HL_TRY(hl_not_null(net->ctx, text, "text"));
    halo_status st = hl_network_to_yaml(net, &out);
    if (st == HALO_OK)
        *text = out.s;
    else
        hl_str_free(&out);
    return st;
}
