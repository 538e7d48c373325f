/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freeze.c -- parameters that training leaves as they are: no gradient is reduced, no norm measured, no step taken and nothing decayed.
 *
 * A layer all of whose parameters are frozen has no gradient of its weights either, and where nothing before it is trained backward ends there. A batch norm
 * all of whose parameters are frozen is a fixed function of its input: it uses its running statistics in training as in evaluation, and these stay too.
 */
#include "net/model.h"

#include "base/context.h"

#include <fnmatch.h>

bool hl_param_matches(const struct halo_network *net, const hl_param_info *p, const char *pattern)
{
    return fnmatch(pattern, p->name, 0) == 0 || fnmatch(pattern, net->layer[p->layer].name, 0) == 0;
}

bool hl_model_trains(const hl_model *m, int layer)
{
    for (int i = 0; i < m->params; i++)
        if (m->param[i].layer == layer && m->param[i].trainable) return true;
    return false;
}

static halo_status freeze_matching(hl_model *m, const char *pattern)
{
    bool any = false;
    for (int i = 0; i < m->params; i++) {
        hl_param_info *p = &m->param[i];
        if (p->role == HALO_RUN || !hl_param_matches(m->net, p, pattern)) continue;
        any = p->frozen = true;
        p->trainable = false;
    }
    if (any) return HALO_OK;
    return hl_fail(m->ctx, HALO_ERR_USAGE, "'freeze' has '%s', which matches no layer with parameters of network '%s'", pattern, m->net->name);
}

halo_status hl_model_freeze(hl_model *m, const hl_words *patterns)
{
    bool left = false;
    for (int i = 0; i < patterns->n; i++) HL_TRY(freeze_matching(m, patterns->word[i]));
    for (int i = 0; i < m->params; i++) {
        hl_param_info *p = &m->param[i];
        if (p->role == HALO_RUN) p->frozen = !hl_model_trains(m, p->layer);
        left = left || p->trainable;
    }
    return left ? HALO_OK : hl_fail(m->ctx, HALO_ERR_USAGE, "'freeze' leaves nothing of network '%s' to train", m->net->name);
}
