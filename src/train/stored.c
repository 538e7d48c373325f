/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.c -- which samples go to the device as they are stored (cuda.prepare): all that a loader hands out, where the device can be reached without waiting and no rank has to ask others what a whole sample's
 * mean is. What interpolates, or depends on the sample as a whole in another way (patches of a sample, data.vary), is done by the loader; what it makes is turned on the device all the same.
 */
#include "io/cutter.h"
#include "io/stored.h"
#include "train/run.h"

static bool wanted(const hl_run *run, const hl_loader_options *o, const hl_source_info *info)
{
    const halo_device *dev = run->dev;
    bool whole = false;
    for (int k = 0; k < o->transforms; k++) whole = whole || hl_transform_whole(o->transform[k]);
    if (!run->set.cuda.prepare || !dev || !dev->ops->pin || !dev->ops->queue || !dev->classes[HALO_OP_PREPARE]) return false;
    if (hl_target_volumes(info) && run->net->layer[run->net->layers - 1].rows > 1) return false;
    return !(whole && hl_grid_split(&run->grid));
}

hl_stored hl_run_stored(hl_run *run, bool training)
{
    hl_loader_options o = {.patch = training && hl_run_patches(&run->set)};
    hl_stored s = {.type = HALO_NONE};
    hl_source *mine = NULL, *source = run->source[HL_TRAIN];
    for (int i = 0; i < HL_SPLITS && !source; i++) source = run->source[i];
    hl_run_transforms(&run->set, &o);
    if (training) o.vary = hl_run_vary(&run->set);
    if (!training && hl_run_patches(&run->set)) return s; /* windows are no loader's */
    if (!source) source = mine = hl_run_look(run);
    if (source && wanted(run, &o, &source->info)) {
        s = (hl_stored){.type = hl_loader_stored_type(&o, source->info.dtype), .targets = hl_target_volumes(&source->info)};
        s.transforms = o.patch || hl_varies(&o.vary) ? 0 : o.transforms;
        for (int k = 0; k < s.transforms; k++) s.transform[k] = hl_transform_stored(o.transform[k]);
    }
    hl_source_close(mine);
    return s;
}

void hl_run_store(const hl_run *run, const hl_program *program, const hl_source *source, hl_loader_options *o)
{
    o->stored = hl_program_lands(program) && hl_loader_stored_type(o, source->info.dtype) == hl_program_stored(program)->type;
    o->device = run->dev;
}

hl_batch hl_batch_of(const hl_loaded *b)
{
    if (!b->numbers) return (hl_batch){.dtype = HALO_F32, .x = b->x, .y = b->y, .weight = b->weight, .first_sample = b->first_sample};
    return (hl_batch){.dtype = b->stored_type, .x = b->stored, .y = b->y, .weight = b->weight, .first_sample = b->first_sample, .numbers = b->numbers,
                      .numbers_y = b->numbers + b->samples * HALO_SAMPLE_NUMBERS, .serial = b->serial};
}
