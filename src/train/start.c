/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c -- a run that begins with the parameters of another: `init: {from: FILE, skip: [fc3*]}`.
 *
 * Tensors of one name and one shape are taken; those that a pattern of `skip` matches, and those that the file has not, stay as they were initialised; one of the
 * same name and another shape is an error unless it is skipped. Running statistics of norms are tensors like others. Optimiser, position and random numbers
 * are those of a new run. A run that was resumed has all this behind it.
 *
 * Rank 0 reads and decides; what it took is broadcast tensor by tensor, in double, which holds every f32 exactly.
 */
#include "base/file.h"
#include "train/names.h"
#include "train/run.h"

#include <fnmatch.h>
#include <stdio.h>
#include <sys/stat.h>

typedef enum fate { FATE_TAKEN = 0, FATE_SKIPPED, FATE_ABSENT, FATES } fate;

/* A tensor of the file. */
typedef struct tensor {
    char name[HL_NAME_MAX * 2];
    halo_dtype type;
    int ndim;
    int64_t dim[5];
    bool matched; /* the network has one of this name, or it is skipped */
} tensor;

typedef struct start {
    hl_run *run;
    const hl_param_info *param;
    int params;
    unsigned char *fate; /* [params] */
    /* rank 0's alone */
    char *path;
    hl_ckpt *file;
    tensor *tensor;
    size_t tensors, cap;
} start;

/* ------------------------------------------------------------------------------------------------------------ the file */

static halo_status collect(void *user, const char *name, halo_dtype type, int ndim, const int64_t *dim)
{
    static const char below[] = "parameters/";
    start *s = user;
    name += *name == '/';
    if (strncmp(name, below, sizeof(below) - 1) != 0) return HALO_OK;
    HL_TRY(hl_grow(s->run->ctx, &s->tensor, &s->cap, s->tensors + 1, sizeof(*s->tensor), "a checkpoint's tensors"));
    tensor *t = &s->tensor[s->tensors++];
    *t = (tensor){.type = type, .ndim = ndim};
    snprintf(t->name, sizeof(t->name), "%s", name + sizeof(below) - 1);
    for (int i = 0; i < ndim && i < (int)HL_COUNT(t->dim); i++) t->dim[i] = dim[i];
    return HALO_OK;
}

/* A file, or the best (else the newest) checkpoint of a run's directory. */
static halo_status find_file(halo_context *ctx, const char *from, char **path)
{
    struct stat about;
    if (stat(from, &about) != 0 || !S_ISDIR(about.st_mode)) return hl_strdup(ctx, from, path);
    HL_TRY(hl_rundir_find(ctx, from, path));
    return *path ? HALO_OK : hl_fail(ctx, HALO_ERR_IO, "'init.from': '%s' holds no checkpoint that is whole", from);
}

static halo_status open_file(start *s)
{
    HL_TRY(find_file(s->run->ctx, s->run->set.init.from, &s->path));
    HL_TRY(hl_ckpt_open(s->run->ctx, s->path, &s->file));
    return hl_ckpt_list(s->file, collect, s);
}

/* ---------------------------------------------------------------------------------------------------------- what is taken */

static tensor *find_tensor(const start *s, const char *name)
{
    for (size_t i = 0; i < s->tensors; i++)
        if (strcmp(s->tensor[i].name, name) == 0) return &s->tensor[i];
    return NULL;
}

static halo_status check_tensor(const start *s, const hl_param_info *p, const tensor *t)
{
    bool same = t->ndim == p->ndim && memcmp(t->dim, p->dim, (size_t)p->ndim * sizeof(*p->dim)) == 0;
    if (same && (t->type == HALO_F32 || t->type == HALO_F64)) return HALO_OK;
    if (same) return hl_fail(s->run->ctx, HALO_ERR_FORMAT, "'%s': '%s' holds %s, expected f32 or f64", s->path, p->name, hl_dtype_name(t->type));
    return hl_fail(s->run->ctx, HALO_ERR_SHAPE, "'%s': '%s' is %s there and %s in network '%s'; with '%.*s' in 'init.skip' it begins anew", s->path, p->name,
                   hl_shape_print(t->dim, (int)hl_min64(t->ndim, (int64_t)HL_COUNT(t->dim))).s, hl_shape_print(p->dim, p->ndim).s, s->run->net->name,
                   (int)strcspn(p->name, "/"), p->name);
}

static bool skipped(const start *s, const hl_param_info *p)
{
    const hl_words *skip = &s->run->set.init.skip;
    for (int i = 0; i < skip->n; i++)
        if (hl_param_matches(s->run->net, p, skip->word[i])) return true;
    return false;
}

static halo_status decide_one(start *s, int i)
{
    const hl_param_info *p = &s->param[i];
    tensor *t = find_tensor(s, p->name);
    if (t) t->matched = true;
    s->fate[i] = skipped(s, p) ? FATE_SKIPPED : t ? FATE_TAKEN : FATE_ABSENT;
    return s->fate[i] == FATE_TAKEN ? check_tensor(s, p, t) : HALO_OK;
}

/* A pattern that matches nothing here or there is a slip of the pen. */
static halo_status check_pattern(start *s, const char *pattern)
{
    bool used = false;
    for (int i = 0; i < s->params; i++) used = used || hl_param_matches(s->run->net, &s->param[i], pattern);
    for (size_t i = 0; i < s->tensors; i++) {
        char layer[HL_NAME_MAX * 2];
        snprintf(layer, sizeof(layer), "%.*s", (int)strcspn(s->tensor[i].name, "/"), s->tensor[i].name);
        if (fnmatch(pattern, s->tensor[i].name, 0) != 0 && fnmatch(pattern, layer, 0) != 0) continue;
        used = s->tensor[i].matched = true;
    }
    if (used) return HALO_OK;
    return hl_fail(s->run->ctx, HALO_ERR_USAGE, "'init.skip' has '%s', which matches nothing in network '%s' nor in '%s'", pattern, s->run->net->name, s->path);
}

/* Of rank 0. */
static halo_status decide(start *s)
{
    bool any = false;
    HL_TRY(open_file(s));
    for (int i = 0; i < s->run->set.init.skip.n; i++) HL_TRY(check_pattern(s, s->run->set.init.skip.word[i]));
    for (int i = 0; i < s->params; i++) {
        HL_TRY(decide_one(s, i));
        any = any || s->fate[i] == FATE_TAKEN;
    }
    if (any) return HALO_OK;
    return hl_fail(s->run->ctx, HALO_ERR_USAGE, "'init.from': nothing of '%s' is taken: no tensor that is not skipped has the name of one of network '%s'", s->path,
                   s->run->net->name);
}

/* -------------------------------------------------------------------------------------------------------------- taking */

/* Of rank 0: the values as doubles. */
static halo_status read_one(const start *s, const hl_param_info *p, double *host)
{
    char name[HL_NAME_MAX * 3];
    const tensor *t = find_tensor(s, p->name);
    snprintf(name, sizeof(name), "parameters/%s", p->name);
    if (t->type == HALO_F64) return hl_ckpt_get(s->file, name, t->type, p->ndim, p->dim, host);
    float *narrow;
    HL_TRY(hl_calloc(s->run->ctx, (size_t)p->count, sizeof(*narrow), "a checkpoint's tensor", &narrow));
    halo_status st = hl_ckpt_get(s->file, name, t->type, p->ndim, p->dim, narrow);
    for (int64_t i = 0; i < p->count && st == HALO_OK; i++) host[i] = (double)narrow[i];
    free(narrow);
    return st;
}

static halo_status take_one(const start *s, int i, double *host)
{
    const hl_param_info *p = &s->param[i];
    halo_context *ctx = s->run->ctx;
    HL_AGREE(ctx, ctx->rank == 0 ? read_one(s, p, host) : HALO_OK);
    HL_TRY(hl_comm_broadcast(ctx, host, (size_t)p->count * sizeof(*host), 0));
    return hl_agree(ctx, hl_model_set(s->run->model, i, HL_MASTER, host));
}

static halo_status take(const start *s)
{
    halo_context *ctx = s->run->ctx;
    int64_t most = 1;
    double *host;
    HL_TRY(hl_comm_broadcast(ctx, s->fate, (size_t)s->params, 0));
    for (int i = 0; i < s->params; i++) most = hl_max64(most, s->param[i].count);
    HL_AGREE(ctx, hl_calloc(ctx, (size_t)most, sizeof(*host), "a checkpoint's tensor", &host));
    halo_status st = HALO_OK;
    for (int i = 0; i < s->params && st == HALO_OK; i++)
        if (s->fate[i] == FATE_TAKEN) st = take_one(s, i, host);
    free(host);
    return st;
}

/* ---------------------------------------------------------------------------------------------------------- what is said */

/* "what: conv1 to conv7 (14 tensors, 123 values)"; nothing where there are none. `pick` is used up. */
static halo_status say(const start *s, const char *what, bool *pick)
{
    const char **name;
    int tensors = 0;
    int64_t values = 0;
    hl_str text = {0};
    HL_TRY(hl_calloc(s->run->ctx, (size_t)s->params + 1, sizeof(*name), "names", &name));
    for (int i = 0; i < s->params; i++) {
        name[i] = s->param[i].name;
        tensors += pick[i];
        values += pick[i] ? s->param[i].count : 0;
    }
    hl_names v = {.n = s->params, .name = name, .pick = pick};
    hl_names_text(&v, &text);
    if (text.s && tensors > 0) HL_INFO(s->run->ctx, "%s: %s (%d tensor%s, %" PRId64 " value%s)", what, text.s, tensors, HL_S(tensors), values, HL_S(values));
    hl_str_free(&text);
    free(name);
    return HALO_OK;
}

/* Tensors of the file that the network has no use for. */
static halo_status say_unused(const start *s)
{
    const char **name;
    bool *pick = NULL;
    int n = 0;
    hl_str text = {0};
    halo_status st;
    HL_TRY(hl_calloc(s->run->ctx, s->tensors + 1, sizeof(*name), "names", &name));
    HL_GOTO(st, hl_calloc(s->run->ctx, s->tensors + 1, sizeof(*pick), "names", &pick), free_name);
    for (size_t i = 0; i < s->tensors; i++) {
        name[i] = s->tensor[i].name;
        pick[i] = !s->tensor[i].matched;
        n += pick[i];
    }
    hl_names v = {.n = (int)s->tensors, .name = name, .pick = pick};
    hl_names_text(&v, &text);
    if (text.s && n > 0) HL_INFO(s->run->ctx, "init: not in this network: %s (%d tensor%s)", text.s, n, HL_S(n));
    hl_str_free(&text);
    free(pick);
free_name:
    free(name);
    return st;
}

static halo_status say_fates(const start *s, bool *pick)
{
    static const char *const what[FATES] = {NULL, "init: skipped", "init: not in the file, left as initialised"};
    char taken[HL_TEXT_MAX + 64];
    snprintf(taken, sizeof(taken), "init: taken from '%.*s'", HL_TEXT_MAX, s->path);
    for (int f = 0; f < FATES; f++) {
        for (int i = 0; i < s->params; i++) pick[i] = s->fate[i] == f;
        HL_TRY(say(s, f == FATE_TAKEN ? taken : what[f], pick));
    }
    return say_unused(s);
}

static halo_status say_frozen(const start *s, bool *pick)
{
    for (int i = 0; i < s->params; i++) pick[i] = s->param[i].frozen;
    return say(s, "frozen", pick);
}

/* ----------------------------------------------------------------------------------------------------------------- all */

static halo_status start_from(start *s)
{
    halo_context *ctx = s->run->ctx;
    HL_AGREE(ctx, hl_calloc(ctx, (size_t)s->params + 1, sizeof(*s->fate), "fates of tensors", &s->fate));
    HL_AGREE(ctx, ctx->rank == 0 ? decide(s) : HALO_OK);
    return take(s);
}

static halo_status say_all(const start *s)
{
    bool *pick;
    HL_TRY(hl_calloc(s->run->ctx, (size_t)s->params + 1, sizeof(*pick), "names", &pick));
    halo_status st = s->path ? say_fates(s, pick) : HALO_OK;
    if (st == HALO_OK) st = say_frozen(s, pick);
    free(pick);
    return st;
}

halo_status hl_run_start_from(hl_run *run)
{
    start s = {.run = run};
    s.params = hl_model_params(run->model, &s.param);
    halo_status st = *run->set.init.from && run->at.step == 0 ? start_from(&s) : HALO_OK;
    if (st == HALO_OK) st = hl_agree(run->ctx, run->ctx->rank == 0 ? say_all(&s) : HALO_OK);
    if (s.file) (void)hl_ckpt_close(s.file, false);
    free(s.tensor);
    free(s.path);
    free(s.fate);
    return st;
}
