/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures.c -- what a grid of ranks would hold, send and read, without them: the training program is compiled, up to where nothing is allocated, for each place
 * of a spatial group.
 */
#include "train/run.h"

static void add_place(hl_run *run, const hl_program_info *info, hl_figures *f)
{
    const hl_traffic *t = &info->traffic;
    const int64_t parts = hl_run_parts(run); /* of a step, each of which sends */
    const size_t bytes = info->peak_bytes + hl_message_bytes(t) + (size_t)hl_run_loader_bytes(run);
    if (bytes > f->peak_bytes_rank) f->peak_bytes_rank = bytes;
    for (int k = 0; k < 2; k++) {
        f->halo_bytes[k] = hl_max64(f->halo_bytes[k], t->halo_bytes[k] * parts);
        f->halo_bytes_group[k] += t->halo_bytes[k] * parts;
    }
    f->halo_messages = hl_max64(f->halo_messages, t->halo_messages * parts);
    f->gather_bytes = hl_max64(f->gather_bytes, t->gather_bytes * parts);
    f->read_bytes_sample = hl_max64(f->read_bytes_sample, hl_run_read_bytes(run));
}

/* As if this process were another of the group. */
static halo_status look_from(hl_run *run, int64_t number, hl_figures *f)
{
    const hl_grid own = run->grid;
    hl_program *keep = run->train, *p;
    hl_program_info info;
    run->grid = hl_grid_peer(&own, number);
    halo_status st = hl_run_outline(run, &p);
    if (st == HALO_OK) {
        run->train = p;
        hl_program_info_get(p, &info);
        add_place(run, &info, f);
        hl_program_destroy(p);
    }
    run->train = keep;
    run->grid = own;
    return st;
}

halo_status hl_run_figures(hl_run *run, hl_figures *f)
{
    *f = (hl_figures){.ranks = run->grid.data * hl_grid_group(&run->grid)};
    const bool narrow = run->set.reduce.wire >= 2; /* bf16, f16 */
    if (f->ranks > 1) f->reduce_bytes = hl_model_gradient_bytes(run->model) / (narrow ? (int64_t)hl_dtype_size(hl_model_dtype(run->model)) / 2 : 1);
    for (int64_t i = 0; i < hl_grid_group(&run->grid); i++) HL_TRY(look_from(run, i, f));
    return HALO_OK;
}
