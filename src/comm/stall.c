/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c -- see stall.h. */
#include "comm/stall.h"

#include "base/clock.h"
#include "comm/orchestrate.h"

#include <stdio.h>

enum { HL_STALL_RANKS_MAX = 8, HL_STALL_GROUPS_MAX = 6 };

struct hl_stall {
    hl_transport *transport;
    int groups, words;    /* words of groups; an answer has one more, the step */
    uint64_t *answer;     /* [words + 1]: this rank's */
    hl_request replying;  /* with `answer` */
    bool asking;
    double asked;         /* clock */
    int first, peers;     /* asked are the ranks first .. first + peers - 1, without this one */
    int question;
    hl_request *out;      /* [peers] */
    uint64_t *heard;      /* [peers][words + 1] */
    bool *answered;       /* [peers] */
};

halo_status hl_stall_create(halo_context *ctx, hl_transport *t, int groups, hl_stall **out)
{
    hl_stall *s;
    halo_status st;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*s), "a stall detector", &s));
    s->transport = t;
    s->groups = groups;
    s->words = (groups + 63) / 64;
    s->first = t->rank == 0 ? 1 : 0;
    s->peers = t->rank == 0 ? t->ranks - 1 : 1;
    size_t peers = (size_t)hl_max64(1, s->peers), words = (size_t)s->words + 1;
    HL_GOTO(st, hl_calloc(ctx, words, sizeof(uint64_t), "a stall detector", &s->answer), undo);
    HL_GOTO(st, hl_calloc(ctx, peers, sizeof(*s->out), "a stall detector", &s->out), undo);
    HL_GOTO(st, hl_calloc(ctx, peers * words, sizeof(uint64_t), "a stall detector", &s->heard), undo);
    HL_GOTO(st, hl_calloc(ctx, peers, sizeof(bool), "a stall detector", &s->answered), undo);
    *out = s;
    return HALO_OK;
undo:
    hl_stall_destroy(s);
    return st;
}

void hl_stall_destroy(hl_stall *s)
{
    if (!s) return;
    free(s->answer);
    free(s->out);
    free(s->heard);
    free(s->answered);
    free(s);
}

static size_t answer_bytes(const hl_stall *s) { return ((size_t)s->words + 1) * sizeof(uint64_t); }

/* Takes a message that probe has seen. */
static halo_status take(hl_transport *t, void *buffer, size_t bytes, int from, int tag)
{
    hl_request r;
    HL_TRY(t->ops->irecv(t, buffer, bytes, from, tag, &r));
    return hl_transport_wait(t, &r);
}

halo_status hl_stall_answer(hl_stall *s, const hl_stall_view *view)
{
    hl_transport *t = s->transport;
    bool free_again = true;
    int from, question;
    HL_TRY(t->ops->test(t, &s->replying, &free_again));
    if (!free_again) return HALO_OK;
    HL_TRY(t->ops->probe(t, -1, HL_TAG_QUERY, &from));
    if (from < 0) return HALO_OK;
    HL_TRY(take(t, &question, sizeof(question), from, HL_TAG_QUERY));
    s->answer[0] = view->step;
    memcpy(s->answer + 1, view->complete, (size_t)s->words * sizeof(uint64_t));
    return t->ops->isend(t, s->answer, answer_bytes(s), from, HL_TAG_ANSWER, &s->replying);
}

halo_status hl_stall_ask(hl_stall *s)
{
    if (s->asking) return HALO_OK;
    s->asking = true;
    s->asked = hl_now();
    memset(s->answered, 0, (size_t)s->peers * sizeof(bool));
    for (int i = 0; i < s->peers; i++)
        HL_TRY(s->transport->ops->isend(s->transport, &s->question, sizeof(s->question), s->first + i, HL_TAG_QUERY, &s->out[i]));
    return HALO_OK;
}

halo_status hl_stall_collect(hl_stall *s, double patience, bool *done)
{
    hl_transport *t = s->transport;
    int from, missing = 0;
    for (int i = 0; i < s->peers; i++) { /* lets the questions go out */
        bool out;
        HL_TRY(t->ops->test(t, &s->out[i], &out));
    }
    for (;;) {
        HL_TRY(t->ops->probe(t, -1, HL_TAG_ANSWER, &from));
        if (from < s->first || from >= s->first + s->peers) break;
        HL_TRY(take(t, s->heard + (size_t)(from - s->first) * ((size_t)s->words + 1), answer_bytes(s), from, HL_TAG_ANSWER));
        s->answered[from - s->first] = true;
    }
    for (int i = 0; i < s->peers; i++) missing += !s->answered[i];
    *done = missing == 0 || hl_now() - s->asked >= patience;
    if (*done && missing == 0) s->asking = false; /* else late answers would be taken for those of the next question */
    return HALO_OK;
}

static void append(char *text, size_t size, const char *what)
{
    size_t n = strlen(text);
    if (n < size) snprintf(text + n, size - n, "%s", what);
}

/* " group 2 (conv3), group 4 (conv1)" of the groups that this peer lacks; false: none. */
static bool lacking(const hl_stall *s, int peer, uint64_t step, const uint64_t *awaited, const char *(*name)(void *user, int g), void *user, char *text,
                    size_t size)
{
    const uint64_t *heard = s->heard + (size_t)peer * ((size_t)s->words + 1);
    int found = 0;
    text[0] = 0;
    if (heard[0] > step) return false;
    for (int g = 0; g < s->groups; g++) {
        uint64_t bit = UINT64_C(1) << (g % 64);
        bool has = heard[0] == step && (heard[1 + g / 64] & bit);
        if (!(awaited[g / 64] & bit) || has || ++found > HL_STALL_GROUPS_MAX) continue;
        char one[96];
        snprintf(one, sizeof(one), "%s group %d (%s)", found > 1 ? "," : "", g, name(user, g));
        append(text, size, one);
    }
    if (found > HL_STALL_GROUPS_MAX) append(text, size, " and more");
    return found > 0;
}

bool hl_stall_describe(const hl_stall *s, uint64_t step, const uint64_t *awaited, const char *(*name)(void *user, int g), void *user, char *text, size_t size)
{
    int named = 0;
    text[0] = 0;
    for (int i = 0; i < s->peers; i++) {
        char groups[512], line[640];
        if (s->answered[i] && !lacking(s, i, step, awaited, name, user, groups, sizeof(groups))) continue;
        if (++named > HL_STALL_RANKS_MAX) continue;
        if (s->answered[i])
            snprintf(line, sizeof(line), "%srank %d withholds%s", named > 1 ? "; " : "", hl_transport_known_as(s->transport, s->first + i), groups);
        else
            snprintf(line, sizeof(line), "%srank %d does not answer", named > 1 ? "; " : "", hl_transport_known_as(s->transport, s->first + i));
        append(text, size, line);
    }
    if (named > HL_STALL_RANKS_MAX) {
        char more[48];
        snprintf(more, sizeof(more), "; %d more ranks", named - HL_STALL_RANKS_MAX);
        append(text, size, more);
    }
    return named > 0;
}
