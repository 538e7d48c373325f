/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle.c -- keys that are set and that nothing reads. A row says of some keys which values of which others they need:
 *
 *     {"optimizer.beta1|optimizer.beta2", "optimizer.name", "adam|adamw"}
 *
 * Values are as a file has them, words are patterns with '|' between them, "!" in front of all: any but these; of several other keys one is enough. A key with its default
 * is never told of. As a rule it is a warning, since a key of the command line may have put another aside that the file still explains; it is an error where the two
 * together cannot be what somebody wants.
 */
#include "base/context.h"
#include "train/settings.h"

#include <fnmatch.h>
#include <stdio.h>

#define ZOO "cosmoflow|unet3d|fcdensenet"
#define EMPTY "\\[\\]"
#define OF_CLASSES "cross_entropy|dice|dice_ce"

static const struct rule {
    const char *keys, *need, *values;
    bool refuse;
} rules[] = {
    {"variant|wiring|levels|first_channels|growth|kernel|blocks|stem|up_kernel|keep", "network", ZOO, false},
    {"padding|batch_norm|dropout|upsampling", "network", ZOO, true}, /* which would be another network than the one that was meant */
    {"batch_norm|dropout", "network", "!unet3d", false},
    {"init.skip", "init.from", "!none", false},
    {"plan_cache", "plan", "measure", false},
    {"winograd|cpu.*", "backend", "auto|cpu", false},
    {"cuda.*", "backend", "auto|cuda", false},
    {"cuda.tf32", "precision", "f32", false},
    {"data.train|data.validation|data.test|data.split|data.folds.*|data.format|data.crop|data.spacing|data.x.*|data.y.*|data.targets.*|data.scan_*|data.detector_*|data.unit_dose", "data.synthetic", "false", false},
    {"data.samples", "data.synthetic", "true", false},
    {"data.folds.use|data.folds.patient", "data.folds.count", "!none", true},
    {"data.patches|data.foreground|data.spacing", "data.patch", "!none", true},
    {"predict.*", "data.patch", "!none", false},
    {"data.zscore", "data.transform", "*z-score*", true},
    {"data.window", "data.transform", "*window*", true},
    {"data.vary.share", "data.vary.rotate|data.vary.scale|data.vary.gamma|data.vary.noise", "!0|" EMPTY, false},
    {"data.scan_*|data.detector_*|data.unit_dose", "data.x.axes|data.format", "*sy*|scan", false},
    {"data.targets.columns|data.targets.range", "data.targets.file|data.y.path|data.y.from|data.y.axes", "!none|" EMPTY, false},
    {"data.classes|data.foreground|class_weights|ignore_label", "loss", OF_CLASSES, true},
    {"huber_delta|schedule.delta_factor|schedule.delta_end", "loss", "huber", false},
    {"schedule.delta_end", "schedule.delta_factor", "!1", false},
    {"train.patience|train.validate_every", "data.validation|data.split|data.folds.count|data.synthetic", "!none|false|" EMPTY, false},
    {"optimizer.momentum", "optimizer.name", "sgd|nesterov", false},
    {"optimizer.beta1|optimizer.beta2|optimizer.epsilon", "optimizer.name", "adam|adamw", false},
    {"optimizer.trust", "optimizer.larc", "!off", false},
    {"optimizer.loss_scale_*", "optimizer.loss_scale", "!none", false},
    {"optimizer.loss_scale_*", "optimizer.loss_scale|precision", "backoff|logmax|f16", false},
    {"optimizer.loss_scale_every", "optimizer.loss_scale", "!logmax", false},
    {"schedule.warmup_start", "schedule.warmup", "!0", false},
    {"schedule.end|schedule.epochs", "schedule.name", "polynomial|cosine", false},
    {"schedule.power", "schedule.name", "polynomial", false},
    {"schedule.at|schedule.factor", "schedule.name", "step", false},
    {"schedule.base_batch", "schedule.scale", "!none", false},
    {"parallel.spatial_until", "parallel.spatial", "!1", false},
    {"reduce.group.bytes", "reduce.group", "bytes", false},
    {"reduce.group.layers", "reduce.group", "layers", false},
    {"reduce.average.parameters", "reduce.average", "parameters", false},
    {"memory.slabs", "memory.limit", "!none", false},
};

static bool matches(const char *patterns, const char *text)
{
    char one[HL_WORD_MAX];
    for (int i = 0; hl_choice(patterns, i, one, sizeof(one)); i++)
        if (fnmatch(one, text, 0) == 0) return true;
    return false;
}

/* Whether a row's other keys have one of the values that its keys need; if not, `why` says which they have. */
static halo_status has_need(halo_context *ctx, const struct rule *r, hl_keys keys, const hl_settings *s, bool *has, hl_str *why)
{
    const bool other = *r->values == '!';
    *has = false;
    for (size_t i = 0; i < keys.n && !*has; i++) {
        hl_str value = {0};
        if (!matches(r->need, keys.key[i].name)) continue;
        hl_config_value(&keys.key[i], s, &value);
        if (value.s) *has = matches(r->values + other, value.s) != other;
        hl_str_addf(why, "%s'%s' is %s", why->len ? " and " : "", keys.key[i].name, value.s ? value.s : "");
        hl_str_free(&value);
    }
    HL_BUG_UNLESS(why->failed || why->len > 0); /* a row's other keys are keys */
    return why->failed ? hl_fail(ctx, HALO_ERR_NOMEM, "out of memory: a message") : HALO_OK;
}

static bool same(const hl_key *key, const hl_settings *a, const hl_settings *b)
{
    hl_str x = {0}, y = {0};
    hl_config_value(key, a, &x);
    hl_config_value(key, b, &y);
    bool equal = x.s && y.s && strcmp(x.s, y.s) == 0;
    hl_str_free(&x);
    hl_str_free(&y);
    return equal;
}

static halo_status tell(halo_context *ctx, hl_keys keys, size_t i, bool refuse, const char *why)
{
    hl_str text = {0};
    halo_status st = HALO_OK;
    if (keys.where) hl_where_add(&keys.where[i], &text);
    hl_str_addf(&text, "'%s' has no use: %s", keys.key[i].name, why);
    if (refuse) st = hl_fail(ctx, HALO_ERR_USAGE, "%s", text.s ? text.s : "");
    else if (keys.where && keys.where[i].name && ctx->rank == 0) HL_WARN(ctx, "%s", text.s ? text.s : "");
    hl_str_free(&text);
    return st;
}

static halo_status check_rule(halo_context *ctx, const struct rule *r, hl_keys keys, const hl_settings *s, const hl_settings *defaults, bool refuse)
{
    hl_str why = {0};
    bool has;
    halo_status st = has_need(ctx, r, keys, s, &has, &why);
    for (size_t i = 0; i < keys.n && st == HALO_OK && !has; i++)
        if (matches(r->keys, keys.key[i].name) && !same(&keys.key[i], s, defaults)) st = tell(ctx, keys, i, refuse && r->refuse, why.s);
    hl_str_free(&why);
    return st;
}

halo_status hl_settings_check_idle(halo_context *ctx, hl_keys keys, const hl_settings *s, bool refuse)
{
    hl_settings *defaults;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*defaults), "settings", &defaults));
    halo_status st = hl_config_defaults(ctx, keys, defaults);
    for (size_t i = 0; i < HL_COUNT(rules) && st == HALO_OK; i++) st = check_rule(ctx, &rules[i], keys, s, defaults, refuse);
    free(defaults);
    return st;
}
