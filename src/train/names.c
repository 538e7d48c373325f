/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c -- which of many tensors, in a line that a person reads: layers instead of their tensors where all of one are meant, and runs of numbers as such:
 *
 *     conv1/weights conv1/bias conv2/weights conv2/bias fc3/bias        conv1 to conv2, fc3/bias
 */
#include "train/names.h"

#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES_MAX = 12, ROOM = 160 };

/* "conv1/weights": 5. */
static size_t layer_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) : strlen(name);
}

static bool of_layer(const char *name, const char *layer, size_t length)
{
    return layer_length(name) == length && memcmp(name, layer, length) == 0;
}

/* There is such a layer, and all of its tensors are meant. */
static bool whole(const hl_names *v, const char *layer, size_t length)
{
    bool any = false;
    for (int i = 0; i < v->n; i++) {
        if (!of_layer(v->name[i], layer, length)) continue;
        if (!v->pick[i]) return false;
        any = true;
    }
    return any;
}

static void leave_out(hl_names *v, const char *layer, size_t length)
{
    for (int i = 0; i < v->n; i++)
        if (of_layer(v->name[i], layer, length)) v->pick[i] = false;
}

/* "conv1", or "conv1 to conv7" while the next number is there as a whole; `name` begins with the first layer's. */
static void layer_entry(hl_names *v, const char *name, char *entry)
{
    char first[ROOM / 2 - 4], next[ROOM / 2 - 4];
    size_t stem = layer_length(name);
    snprintf(first, sizeof(first), "%.*s", (int)stem, name);
    snprintf(entry, ROOM, "%s", first);
    leave_out(v, first, strlen(first));
    while (stem > 0 && first[stem - 1] >= '0' && first[stem - 1] <= '9') stem--;
    if (!first[stem] || strlen(first + stem) > 9) return;
    for (int64_t number = strtoll(first + stem, NULL, 10) + 1;; number++) {
        snprintf(next, sizeof(next), "%.*s%" PRId64, (int)stem, first, number);
        if (!whole(v, next, strlen(next))) return;
        leave_out(v, next, strlen(next));
        snprintf(entry, ROOM, "%s to %s", first, next);
    }
}

void hl_names_text(hl_names *v, hl_str *out)
{
    int entries = 0;
    for (int i = 0; i < v->n; i++) {
        char entry[ROOM];
        if (!v->pick[i]) continue;
        if (whole(v, v->name[i], layer_length(v->name[i]))) {
            layer_entry(v, v->name[i], entry);
        } else {
            snprintf(entry, sizeof(entry), "%s", v->name[i]);
            v->pick[i] = false;
        }
        if (entries++ < ENTRIES_MAX) hl_str_addf(out, "%s%s", entries > 1 ? ", " : "", entry);
    }
    if (entries > ENTRIES_MAX) hl_str_addf(out, " and %d more", entries - ENTRIES_MAX);
}
