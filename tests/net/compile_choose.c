/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing, on a device made for the purpose: the reference backend with a convolution that has several
 * implementations, of which one is slow, one is a reference, and which read an image of the weights (here:
 * the weights negated) instead of the weights.
 */
#include "tests/net/small.h"
#include "tests/tap.h"

#include <time.h>

static halo_context *ctx;

enum { NEGATED = 7 };

static const halo_op_class *ref_class[HALO_OP_KINDS]; /* the real ones */
static halo_layout slow_layout, reference_layout;     /* HALO_LAYOUTS: none */
static int images_made;

static halo_layout layout_of(const halo_op_desc *desc)
{
    return desc->t[desc->kind == HALO_OP_CONV_FWD ? HALO_X : HALO_DY].layout;
}

static void sleep_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

/* ----------------------------------------------------------------------------------- convolution, forward */

typedef struct plan {
    halo_plan *inner;
    halo_op_desc desc;
    int id;
    double *weights;
    int64_t n;
} plan;

static int candidates(halo_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    static const char *const names[3] = {"loops", "slow", "fast"};
    int n = ref_class[desc->kind]->candidates(dev, desc, out);
    if (n == 0) return 0;
    halo_candidate base = out[0];
    bool only_loops = layout_of(desc) == reference_layout;
    for (int i = 0; i < (only_loops ? 1 : 3); i++) {
        out[i] = base;
        snprintf(out[i].impl, sizeof(out[i].impl), "%s", names[i]);
        out[i].id = i;
        out[i].reference = i == 0;
        out[i].image = NEGATED;
        out[i].image_bytes = (size_t)hl_operand_box_elements(&desc->t[HALO_WT]) * sizeof(double);
    }
    return only_loops ? 1 : 3;
}

static halo_status make_plan(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                             halo_plan **out)
{
    plan *p = check_alloc(1, sizeof(*p));
    p->desc = *desc;
    p->id = choice->id;
    p->n = hl_operand_box_elements(&desc->t[HALO_WT]);
    p->weights = check_alloc(p->n, sizeof(double));
    HL_TRY(ref_class[desc->kind]->plan(dev, desc, choice, &p->inner));
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status run(halo_plan *opaque, const halo_op_args *args)
{
    plan *p = (plan *)opaque;
    halo_op_args inner = *args;
    const double *image = args->ptr[HALO_WT];
    for (int64_t i = 0; i < p->n; i++) p->weights[i] = -image[i];
    inner.ptr[HALO_WT] = p->weights;
    if (p->id == 1) sleep_a_little();
    if (layout_of(&p->desc) == slow_layout) sleep_a_little();
    return ref_class[p->desc.kind]->run(p->inner, &inner);
}

static void destroy(halo_plan *opaque)
{
    plan *p = (plan *)opaque;
    if (!p) return;
    ref_class[p->desc.kind]->destroy(p->inner);
    free(p->weights);
    free(p);
}

/* -------------------------------------------------------------------------------------------------- image */

static int image_candidates(halo_device *dev, const halo_op_desc *desc, halo_candidate *out)
{
    (void)dev;
    *out = (halo_candidate){.impl = "negate"};
    return desc->image == NEGATED;
}

static halo_status image_plan(halo_device *dev, const halo_op_desc *desc, const halo_candidate *choice,
                              halo_plan **out)
{
    (void)dev, (void)choice;
    plan *p = check_alloc(1, sizeof(*p));
    p->n = hl_operand_box_elements(&desc->t[HALO_X]);
    *out = (halo_plan *)p;
    return HALO_OK;
}

static halo_status image_run(halo_plan *opaque, const halo_op_args *args)
{
    const double *master = args->ptr[HALO_X];
    double *image = args->ptr[HALO_Y];
    for (int64_t i = 0; i < ((plan *)opaque)->n; i++) image[i] = -master[i];
    images_made++;
    return HALO_OK;
}

static void image_destroy(halo_plan *opaque)
{
    free(opaque);
}

static const halo_op_class conv_fwd = {HALO_OP_CONV_FWD, candidates, make_plan, run, destroy};
static const halo_op_class conv_bwd_data = {HALO_OP_CONV_BWD_DATA, candidates, make_plan, run, destroy};
static const halo_op_class conv_image = {HALO_OP_CONV_IMAGE, image_candidates, image_plan, image_run,
                                         image_destroy};

/* -------------------------------------------------------------------------------------------------- tests */

typedef struct rig {
    halo_network *net;
    hl_model *model;
    hl_program *program;
} rig;

static rig start(halo_device *dev, const small_network *s, hl_plan_mode mode)
{
    rig r = {.net = small_build(ctx, s)};
    hl_optim_spec sgd = small_sgd();
    hl_compile_options options = small_options(2);
    options.plan = mode;
    check_status(ctx, hl_model_create(ctx, dev, r.net, &sgd, &r.model), s->name);
    check_status(ctx, hl_compile(r.model, &options, &r.program), s->name);
    return r;
}

static void end(rig *r)
{
    hl_program_destroy(r->program);
    hl_model_destroy(r->model);
    halo_network_destroy(r->net);
}

/* True when every convolution got this implementation. */
static bool all_convolutions(const hl_program *p, const char *impl)
{
    int n = 0, good = 0;
    for (int i = 0; i < p->steps; i++) {
        if (p->step[i].desc.kind != HALO_OP_CONV_FWD && p->step[i].desc.kind != HALO_OP_CONV_BWD_DATA)
            continue;
        n++;
        good += strcmp(p->step[i].choice.impl, impl) == 0;
    }
    return n > 0 && n == good;
}

static void check_choices(halo_device *dev)
{
    static const halo_layout two[] = {HALO_NCDHW, HALO_NDHWC, HALO_LAYOUTS};
    dev->layouts = two;
    slow_layout = reference_layout = HALO_LAYOUTS;
    rig r = start(dev, &small_networks[0], HL_PLAN_FIXED);
    tap_ok(all_convolutions(r.program, "slow") && r.program->layout == HALO_NCDHW,
           "fixed: the first that is not a reference, the first layout");
    end(&r);
    slow_layout = HALO_NCDHW;
    r = start(dev, &small_networks[0], HL_PLAN_MEASURE);
    tap_ok(all_convolutions(r.program, "fast") && r.program->layout == HALO_NDHWC,
           "measured: the faster of each, in the layout that is faster in all");
    end(&r);
    slow_layout = HALO_NDHWC;
    r = start(dev, &small_networks[0], HL_PLAN_MEASURE);
    tap_ok(all_convolutions(r.program, "fast") && r.program->layout == HALO_NCDHW, "and the other way round");
    end(&r);
    reference_layout = HALO_NCDHW;
    r = start(dev, &small_networks[0], HL_PLAN_FIXED);
    tap_ok(r.program->layout == HALO_NDHWC, "a layout that has only reference implementations is left alone");
    hl_program_info info, plain;
    hl_program_info_get(r.program, &info);
    end(&r);
    reference_layout = HALO_LAYOUTS;
    r = start(dev, &small_networks[0], HL_PLAN_FIXED);
    hl_program_info_get(r.program, &plain);
    tap_ok(info.references == plain.references, "and references are counted");
    end(&r);
}

/* Images are made when the weights changed, once for all passes of a convolution, by each program that uses
 * them. */
static void check_images(halo_device *dev, halo_device *ref)
{
    slow_layout = reference_layout = HALO_LAYOUTS;
    rig a = start(dev, &small_networks[0], HL_PLAN_FIXED), b = start(ref, &small_networks[0], HL_PLAN_FIXED);
    small_data d = small_fill(a.net, 2, 4);
    hl_step_options step = {.lr = 0.05, .update = true};
    hl_step_result ra, rb;
    images_made = 0;
    small_step(ctx, a.program, &d);
    small_step(ctx, a.program, &d);
    tap_ok(images_made == 2, "two steps without update: %d images of two convolutions", images_made);
    bool equal = true;
    for (int i = 0; i < 3; i++) {
        check_status(ctx, hl_program_train(a.program, &d.batch, &step, &ra), "a step");
        check_status(ctx, hl_program_train(b.program, &d.batch, &step, &rb), "a step");
        equal = equal && ra.loss == rb.loss;
    }
    tap_ok(images_made == 6 && equal && small_equal(ctx, a.model, b.model),
           "three updates: %d images, and the same training", images_made);
    hl_compile_options options = small_options(2);
    hl_program *eval;
    options.training = false;
    check_status(ctx, hl_compile(a.model, &options, &eval), "evaluation");
    check_status(ctx, hl_program_evaluate(eval, &d.batch, NULL, &ra), "evaluation");
    check_status(ctx, hl_program_train(b.program, &d.batch, &step, &rb), "a step");
    tap_ok(ra.loss == rb.loss, "another program of the model has images of its own: %.6f %.6f", ra.loss,
           rb.loss);
    double *w = small_get(ctx, a.model, 0, HL_MASTER);
    w[0] += 1;
    check_status(ctx, hl_model_set(a.model, 0, HL_MASTER, w), "set");
    check_status(ctx, hl_program_evaluate(eval, &d.batch, NULL, &rb), "evaluation");
    tap_ok(rb.loss != ra.loss, "weights set from outside reach the images");
    free(w);
    hl_program_info info;
    hl_program_info_get(a.program, &info);
    tap_ok(info.weight_bytes == hl_model_weight_bytes(a.model) + a.program->image_bytes &&
               a.program->image_bytes > 0,
           "images count as weights");
    hl_program_destroy(eval);
    small_free(&d);
    end(&a);
    end(&b);
}

static void check_times(halo_device *dev)
{
    slow_layout = HALO_NCDHW;
    rig r = start(dev, &small_networks[0], HL_PLAN_FIXED);
    small_data d = small_fill(r.net, 2, 4);
    hl_op_info info;
    int timed = 0, slow = 0;
    hl_program_op(r.program, 0, &info);
    bool untimed = isnan(info.seconds);
    check_status(ctx, hl_program_time(r.program, true), "timing");
    for (int i = 0; i < 3; i++) small_step(ctx, r.program, &d);
    for (int i = 0; i < r.program->steps; i++) {
        hl_program_op(r.program, i, &info);
        timed += info.seconds >= 0;
        slow += info.seconds >= 3e-3;
    }
    tap_ok(untimed && timed > 10 && slow == 3, "%d steps were timed, %d slow ones", timed, slow);
    small_free(&d);
    end(&r);
}

int main(void)
{
    halo_context_options o = HALO_CONTEXT_OPTIONS_INIT;
    const halo_device_options f64 = {.compute = HALO_F64};
    halo_device *ref;
    check_status(NULL, halo_context_create(&o, &ctx), "context");
    check_status(ctx, hl_device_open(ctx, "ref", &f64, &ref), "device");
    const halo_op_class *classes[HALO_OP_KINDS];
    memcpy(ref_class, ref->classes, sizeof(ref_class));
    memcpy(classes, ref->classes, sizeof(classes));
    classes[HALO_OP_CONV_FWD] = &conv_fwd;
    classes[HALO_OP_CONV_BWD_DATA] = &conv_bwd_data;
    classes[HALO_OP_CONV_IMAGE] = &conv_image;
    halo_device made = *ref;
    made.classes = classes;
    check_choices(&made);
    check_images(&made, ref);
    check_times(&made);
    ref->ops->close(ref);
    halo_context_destroy(ctx);
    return tap_done();
}
