/* SPDX-License-Identifier: Apache-2.0 */
/* predict_plot.h -- pictures of predicted volumes: input, truth and prediction side by side. */
#ifndef HL_PREDICT_PLOT_H
#define HL_PREDICT_PLOT_H

#include "train/run.h"

typedef struct hl_plotter hl_plotter;

/* Of the first `most` samples, DIR/000000.png ...: the middle plane along D, of x the middle channel, of the targets the first. Truth and prediction have one scale of colours; a truth that is unknown is left out. */
halo_status hl_plotter_open(halo_context *ctx, const char *directory, int64_t most, hl_source *source, hl_plotter **plotter);
/* Boxes of samples, those of one before those of the next. */
halo_status hl_plotter_box(hl_plotter *plotter, const hl_prediction *p);
/* Writes the last sample and frees; NULL is allowed. */
halo_status hl_plotter_close(hl_plotter *plotter, bool write);

#endif
