/* SPDX-License-Identifier: Apache-2.0 */
#include "net/model.h"

#include "base/context.h"

enum { HL_PARAM_ALIGN = 64 }; /* bytes */

static bool running(const hl_param_info *p)
{
    return p->role == HALO_RUN;
}

/* Frozen or other parameters from the last layer to the first, behind those that have places; a layer's own keep their order. Running statistics in layer
 * order, packed. */
static void lay_out_some(hl_model *m, bool frozen)
{
    int64_t unit = HL_PARAM_ALIGN / (int64_t)hl_dtype_size(m->dev->master);
    for (int layer = m->net->layers - 1; layer >= 0; layer--) {
        for (int i = 0; i < m->params; i++) {
            if (m->param[i].layer != layer || running(&m->param[i]) || m->param[i].frozen != frozen) continue;
            m->offset[i] = m->elements;
            m->elements += hl_round_up(m->param[i].count, unit);
        }
    }
    for (int i = 0; i < m->params; i++) {
        if (!running(&m->param[i]) || m->param[i].frozen != frozen) continue;
        m->offset[i] = m->running_elements;
        m->running_elements += m->param[i].count;
    }
}

static void lay_out(hl_model *m)
{
    lay_out_some(m, false);
    m->trained = m->elements;
    m->moving = m->running_elements;
    lay_out_some(m, true);
}

/* On a device with memory of its own: too little for all arrays is told before any of it is taken. What they need does not depend on the batch. */
static halo_status check_room(const hl_model *m)
{
    halo_device_info info;
    const double mib = 1048576;
    const size_t bytes = (size_t)m->elements * hl_dtype_size(m->dev->master), weights = bytes + (size_t)m->running_elements * sizeof(float), state = hl_model_state_bytes(m);
    const size_t all = hl_model_weight_bytes(m) + state;
    if (m->dev->ops->mpi_pointer) return HALO_OK;
    m->dev->ops->describe(m->dev, &info);
    if (info.memory_free == 0 || all <= info.memory_free) return HALO_OK;
    return hl_fail(m->ctx, HALO_ERR_NOMEM,
                   "the model of '%s' needs %.1f MiB on '%s' whatever the batch is: weights %.1f, gradients %.1f, the optimiser's state %.1f; and %.1f of its %.1f MiB are free: take a smaller network%s",
                   m->net->name, (double)all / mib, info.name, (double)weights / mib, m->has_optim ? (double)bytes / mib : 0, (double)state / mib, (double)info.memory_free / mib,
                   (double)info.memory_total / mib, m->has_state[0] ? ", an optimiser with less state ('optimizer.name'), or a device with more memory" : ", or a device with more memory");
}

static halo_status alloc_cleared(hl_model *m, size_t bytes, void **ptr)
{
    if (bytes == 0) return HALO_OK;
    HL_TRY(m->dev->ops->alloc(m->dev, bytes, ptr));
    HL_TRY(m->dev->ops->fill(m->dev, *ptr, 0, bytes, NULL));
    return HALO_OK;
}

static halo_status allocate(hl_model *m)
{
    size_t bytes = (size_t)m->elements * hl_dtype_size(m->dev->master);
    HL_TRY(check_room(m));
    HL_TRY(alloc_cleared(m, bytes, &m->base[HL_MASTER]));
    HL_TRY(alloc_cleared(m, (size_t)m->running_elements * sizeof(float), &m->running));
    if (m->has_optim) {
        HL_TRY(alloc_cleared(m, bytes, &m->base[HL_GRADIENT]));
        if (m->has_state[0]) HL_TRY(alloc_cleared(m, bytes, &m->base[HL_STATE1]));
        if (m->has_state[1]) HL_TRY(alloc_cleared(m, bytes, &m->base[HL_STATE2]));
        HL_TRY(alloc_cleared(m, (size_t)m->params * 2 * HL_NORM_NUMBERS * sizeof(double), &m->norms));
    }
    return m->dev->ops->wait(m->dev, NULL);
}

static halo_status set(hl_model *m, int param, hl_array a, halo_dtype type, const void *host);

/* In place. */
static void narrow(double *numbers, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)numbers[i];
        memcpy((char *)numbers + (size_t)i * sizeof(x), &x, sizeof(x));
    }
}

/* Masters of f32 are narrowed here: a device with memory of its own would hold what it is to convert beside them. */
static halo_status initialise(hl_model *m)
{
    int64_t most = 0;
    for (int i = 0; i < m->params; i++) most = hl_max64(most, m->param[i].count);
    double *host;
    HL_TRY(hl_calloc(m->ctx, (size_t)most, sizeof(double), "initial parameters", &host));
    halo_status st = HALO_OK;
    for (int i = 0; i < m->params && st == HALO_OK; i++) {
        hl_param_init(m->net, &m->param[i], m->ctx->seed, host);
        if (m->dev->master == HALO_F32) narrow(host, m->param[i].count);
        st = set(m, i, HL_MASTER, m->dev->master == HALO_F32 ? HALO_F32 : HALO_F64, host);
    }
    free(host);
    return st;
}

static void want_state(hl_model *m, const hl_optim_spec *optim)
{
    m->has_optim = optim != NULL;
    if (!optim) return;
    m->optim = *optim;
    m->optim.freeze = NULL;
    if (m->optim.update.lr_factor == 0) m->optim.update.lr_factor = 1;
    bool adam = optim->update.kind == HALO_ADAM || optim->update.kind == HALO_ADAMW;
    m->has_state[0] = adam || optim->update.momentum != 0;
    m->has_state[1] = adam;
}

static halo_status create(halo_context *ctx, halo_device *dev, const struct halo_network *net,
                          const hl_optim_spec *optim, bool outline, hl_model **model)
{
    hl_model *m;
    HL_TRY(hl_calloc(ctx, 1, sizeof(*m), "model", &m));
    halo_status st;
    m->ctx = ctx;
    m->dev = dev;
    m->net = net;
    m->version = 1;
    want_state(m, optim);
    m->scaler = hl_scaler_begin(&m->optim.scaling);
    HL_GOTO(st, hl_graph_params(net, &m->param, &m->params), destroy);
    if (optim && optim->freeze && optim->freeze->n > 0) HL_GOTO(st, hl_model_freeze(m, optim->freeze), destroy);
    HL_GOTO(st, hl_calloc(ctx, (size_t)m->params, sizeof(*m->offset), "parameter offsets", &m->offset),
            destroy);
    lay_out(m);
    if (!outline) HL_GOTO(st, allocate(m), destroy);
    if (!outline) HL_GOTO(st, initialise(m), destroy);
    *model = m;
    return HALO_OK;

destroy:
    hl_model_destroy(m);
    return st;
}

halo_status hl_model_create(halo_context *ctx, halo_device *dev, const struct halo_network *net,
                            const hl_optim_spec *optim, hl_model **model)
{
    return create(ctx, dev, net, optim, false, model);
}

halo_status hl_model_outline(halo_context *ctx, halo_device *dev, const struct halo_network *net,
                             const hl_optim_spec *optim, hl_model **model)
{
    return create(ctx, dev, net, optim, true, model);
}

void hl_model_destroy(hl_model *m)
{
    if (!m) return;
    for (int a = 0; a < HL_ARRAYS; a++)
        if (m->base[a]) m->dev->ops->release(m->dev, m->base[a]);
    if (m->running) m->dev->ops->release(m->dev, m->running);
    if (m->norms) m->dev->ops->release(m->dev, m->norms);
    free(m->staged);
    free(m->offset);
    free(m->param);
    free(m);
}

int hl_model_params(const hl_model *m, const hl_param_info **list)
{
    if (list) *list = m->param;
    return m->params;
}

const char *hl_array_name(hl_array a)
{
    static const char *const names[HL_ARRAYS] = {"value", "gradient", "m", "v"};
    return names[a];
}

bool hl_model_has(const hl_model *m, int param, hl_array a)
{
    if (running(&m->param[param])) return a == HL_MASTER;
    return m->base[a] != NULL;
}

void *hl_model_address(const hl_model *m, int param, int array)
{
    if (array >= HL_ARRAYS)
        return (double *)m->norms + HL_NORM_NUMBERS * ((array == HL_MODEL_WEIGHT_NORM ? m->params : 0) + param);
    if (running(&m->param[param])) return (float *)m->running + m->offset[param];
    return (char *)m->base[array] + (size_t)m->offset[param] * hl_dtype_size(m->dev->master);
}

halo_dtype hl_model_array_dtype(const hl_model *m, int param, int array)
{
    if (array >= HL_ARRAYS) return HALO_F64;
    return running(&m->param[param]) ? HALO_F32 : m->dev->master;
}

int64_t hl_model_array_count(const hl_model *m, int param, int array)
{
    return array >= HL_ARRAYS ? HL_NORM_NUMBERS : m->param[param].count;
}

static halo_operand flat(const hl_model *m, int param, hl_array a)
{
    HL_BUG_UNLESS(param >= 0 && param < m->params && hl_model_has(m, param, a));
    return hl_operand_flat(hl_model_array_dtype(m, param, a), m->param[param].count);
}

static halo_status get(hl_model *m, int param, hl_array a, halo_dtype type, void *host)
{
    halo_operand o = flat(m, param, a);
    HL_TRY(m->dev->ops->wait(m->dev, NULL));
    return m->dev->ops->download(m->dev, &o, hl_model_address(m, param, a), type, host);
}

static halo_status set(hl_model *m, int param, hl_array a, halo_dtype type, const void *host)
{
    halo_operand o = flat(m, param, a);
    if (a == HL_MASTER) m->version++;
    HL_TRY(m->dev->ops->wait(m->dev, NULL));
    return m->dev->ops->upload(m->dev, &o, hl_model_address(m, param, a), type, host);
}

halo_status hl_model_get(hl_model *m, int param, hl_array a, double *host)
{
    return get(m, param, a, HALO_F64, host);
}
halo_status hl_model_set(hl_model *m, int param, hl_array a, const double *host)
{
    return set(m, param, a, HALO_F64, host);
}
halo_status hl_model_get_raw(hl_model *m, int param, hl_array a, void *host)
{
    return get(m, param, a, m->dev->master, host);
}
halo_status hl_model_set_raw(hl_model *m, int param, hl_array a, const void *host)
{
    return set(m, param, a, m->dev->master, host);
}

halo_dtype hl_model_dtype(const hl_model *m)
{
    return m->dev->master;
}

int64_t hl_model_gradient_bytes(const hl_model *m)
{
    return m->trained * (int64_t)hl_dtype_size(m->dev->master);
}

halo_status hl_model_gradient_range(hl_model *m, void **ptr, int64_t *elements)
{
    if (!m->has_optim)
        return hl_fail(m->ctx, HALO_ERR_USAGE, "the model of '%s' is for evaluation and has no gradients",
                       m->net->name);
    if (!m->dev->ops->mpi_pointer && !m->staged)
        HL_TRY(hl_calloc(m->ctx, (size_t)m->trained, hl_dtype_size(m->dev->master), "gradients on their way between device and ranks", &m->staged));
    *ptr = m->staged ? m->staged : m->dev->ops->mpi_pointer(m->dev, m->base[HL_GRADIENT]);
    *elements = m->trained;
    return HALO_OK;
}

static char *staged_at(const hl_model *m, int param)
{
    return (char *)m->staged + (size_t)m->offset[param] * hl_dtype_size(m->dev->master);
}

halo_status hl_model_stage_out(hl_model *m, int param)
{
    return m->staged ? hl_model_get_raw(m, param, HL_GRADIENT, staged_at(m, param)) : HALO_OK;
}

halo_status hl_model_stage_in(hl_model *m, int param)
{
    return m->staged ? hl_model_set_raw(m, param, HL_GRADIENT, staged_at(m, param)) : HALO_OK;
}

int64_t hl_model_steps(const hl_model *m)
{
    return m->steps;
}
hl_scaler hl_model_scaler(const hl_model *m) { return m->scaler; }
void hl_model_set_scaler(hl_model *m, const hl_scaler *scaler) { m->scaler = *scaler; }

void hl_model_set_steps(hl_model *m, int64_t t)
{
    m->steps = t;
}

size_t hl_model_weight_bytes(const hl_model *m)
{
    size_t bytes = (size_t)m->elements * hl_dtype_size(m->dev->master);
    return bytes * (m->has_optim ? 2 : 1) + (size_t)m->running_elements * sizeof(float);
}

size_t hl_model_state_bytes(const hl_model *m)
{
    size_t bytes = (size_t)m->elements * hl_dtype_size(m->dev->master);
    return bytes * (size_t)(m->has_state[0] + m->has_state[1]) +
           (m->has_optim ? (size_t)m->params * 2 * HL_NORM_NUMBERS * sizeof(double) : 0);
}
