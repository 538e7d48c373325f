/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queues.c -- queues beside the default one, memory of the host's that copies reach, and links of one rank, on each device that has them: what follows comes after, what is done is
 * there, and a link of one device changes nothing. The defects that this would not find the simulated device does (tests/cudasim).
 */
#include "backend/backend.h"
#include "base/clock.h"
#include "base/context.h"
#include "tests/check.h"
#include "tests/tap.h"
#include "tensor/operand.h"

enum { N = 3000 };

static halo_context *ctx;

/* Whether it happens within a minute; no claim about when. */
static bool comes_to_be_done(halo_device *dev, halo_queue *queue)
{
    bool all = false;
    for (double start = hl_now(); !all && hl_now() - start < 60;) check_status(ctx, dev->ops->done(dev, queue, &all), "done");
    return all;
}

/* Up on one queue, within the device on the default one, down on the other. */
static bool round_trip(halo_device *dev)
{
    const halo_device_ops *ops = dev->ops;
    const size_t bytes = N * sizeof(float);
    halo_queue *up, *down;
    void *from, *to, *x, *y;
    bool same = true;
    check_status(ctx, ops->queue(dev, &up), "queue");
    check_status(ctx, ops->queue(dev, &down), "queue");
    check_status(ctx, ops->pin(dev, bytes, &from), "pin");
    check_status(ctx, ops->pin(dev, bytes, &to), "pin");
    check_status(ctx, ops->alloc(dev, bytes, &x), "alloc");
    check_status(ctx, ops->alloc(dev, bytes, &y), "alloc");
    for (int i = 0; i < N; i++) ((float *)from)[i] = (float)i;
    check_status(ctx, ops->copy(dev, x, from, bytes, up), "copy");
    check_status(ctx, ops->follow(dev, NULL, up), "follow");
    check_status(ctx, ops->copy(dev, y, x, bytes, NULL), "copy");
    check_status(ctx, ops->fill(dev, y, 0, sizeof(float), NULL), "fill");
    check_status(ctx, ops->follow(dev, down, NULL), "follow");
    check_status(ctx, ops->copy(dev, to, y, bytes, down), "copy");
    if (!comes_to_be_done(dev, down)) return false;
    for (int i = 0; i < N; i++) same = same && ((float *)to)[i] == (float)i;
    ((float *)to)[0] = 1; /* both are the host's again */
    check_status(ctx, ops->wait(dev, up), "wait");
    ((float *)from)[0] = 1;
    ops->release(dev, y);
    ops->release(dev, x);
    ops->unpin(dev, to);
    ops->unpin(dev, from);
    ops->unqueue(dev, down);
    ops->unqueue(dev, up);
    return same;
}

static bool alone(halo_device *dev)
{
    const halo_device_ops *ops = dev->ops;
    const halo_operand o = hl_operand_flat(HALO_F32, N);
    unsigned char id[HALO_LINK_ID];
    float x[N], y[N];
    halo_link *link;
    void *p;
    for (int i = 0; i < N; i++) x[i] = (float)(i * 7 % 100);
    check_status(ctx, ops->link_id(dev, id), "link_id");
    check_status(ctx, ops->link(dev, id, 1, 0, &link), "link");
    check_status(ctx, ops->alloc(dev, sizeof(x), &p), "alloc");
    check_status(ctx, ops->upload(dev, &o, p, HALO_F32, x), "upload");
    check_status(ctx, ops->link_scatter(dev, link, p, HALO_F32, N, NULL), "link_scatter");
    check_status(ctx, ops->link_gather(dev, link, p, HALO_F32, N, NULL), "link_gather");
    check_status(ctx, ops->link_sum(dev, link, p, HALO_F32, N, NULL), "link_sum");
    check_status(ctx, ops->download(dev, &o, p, HALO_F32, y), "download");
    ops->release(dev, p);
    ops->unlink(dev, link);
    return memcmp(x, y, sizeof(x)) == 0;
}

int main(void)
{
    int tried = 0;
    check_status(NULL, halo_context_create(NULL, &ctx), "context");
    ctx->log = NULL; /* a device that is not there */
    for (const halo_backend *const *b = hl_backends(); *b; b++) {
        halo_device *dev;
        halo_device_options o = {0};
        if (hl_device_open(ctx, (*b)->name, &o, &dev) != HALO_OK) continue;
        if (dev->ops->queue) {
            tap_ok(round_trip(dev), "%s: three queues, one after the other", (*b)->name);
            tried++;
        }
        if (dev->ops->link) tap_ok(alone(dev), "%s: a link of one device changes nothing", (*b)->name);
        dev->ops->close(dev);
    }
    if (tried == 0) tap_skip("no device here has queues");
    halo_context_destroy(ctx);
    return tap_done();
}
