/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h -- everything a run can be told: the one table of configuration keys and the struct it fills. `halo help config` prints the table.
 */
#ifndef HL_SETTINGS_H
#define HL_SETTINGS_H

#include "base/config.h"

typedef enum hl_plan_setting { HL_SET_PLAN_MEASURE = 0, HL_SET_PLAN_FIXED } hl_plan_setting;
typedef enum hl_padding_setting { HL_PADDING_PUBLISHED = 0, HL_PADDING_PERIODIC } hl_padding_setting;
typedef enum hl_augment_setting { HL_AUGMENT_NONE = 0, HL_AUGMENT_CUBE, HL_AUGMENT_SHIFT, HL_AUGMENT_CUBE_SHIFT, HL_AUGMENT_FLIP } hl_augment_setting;
typedef enum hl_schedule_kind { HL_SCHEDULE_CONSTANT = 0, HL_SCHEDULE_STEP, HL_SCHEDULE_POLYNOMIAL, HL_SCHEDULE_COSINE } hl_schedule_kind;

typedef enum hl_volumes_setting { HL_VOLUMES_AUTO = 0, HL_VOLUMES_WINDOWS, HL_VOLUMES_WHOLE } hl_volumes_setting;

typedef enum hl_average { HL_AVERAGE_GRADIENTS = 0, HL_AVERAGE_PARAMETERS } hl_average;

/* As the choices of their keys. */
typedef enum hl_precision { HL_PRECISION_F32 = 0, HL_PRECISION_F64, HL_PRECISION_F16, HL_PRECISION_BF16 } hl_precision;
enum { HL_LOSS_SCALE_AUTO = 0 };

typedef struct hl_settings {
    const char *network_text; /* not a key: the network file that a checkpoint carries, used instead of `network` when not NULL */
    const struct hl_target *label; /* not a key, either: [labels] what a checkpoint says of its targets, for data that have none; NULL: such data are refused */
    int labels;
    const struct hl_target *like; /* nor this: [likes] the same, for the ranges of targets that were measured on the training data */
    int likes;
    bool check; /* no key either: the run is only tried out, and writes nothing */
    /* network */
    char network[HL_TEXT_MAX], variant[HL_TEXT_MAX], wiring[HL_TEXT_MAX];
    int64_t size[3];
    int64_t channels, outputs; /* -1: the variant's own; outputs: the data's */
    int64_t levels, first_channels; /* of unet3d; -1: its own */
    int upsampling;                 /* 1: trilinear */
    int64_t growth, kernel, stem, up_kernel; /* of fcdensenet; -1: its own */
    double keep;
    hl_words blocks;
    bool batch_norm, dropout;
    int padding; /* hl_padding_setting */
    /* run */
    int plan;
    int64_t batch, seed;
    char output[HL_TEXT_MAX], resume[HL_TEXT_MAX], backend[HL_TEXT_MAX], plan_cache[HL_TEXT_MAX];
    struct {
        char from[HL_TEXT_MAX];
        hl_words skip;
    } init;
    hl_words freeze;
    double stop_grace; /* seconds; -1: none */
    int64_t threads;
    int precision; /* hl_precision */
    int winograd; /* 0: auto; else the place in setup.c's list */
    int cpu_isa, cpu_bind;
    struct {
        bool tf32, deterministic, graphs, prepare;
        int nccl, mpi;
    } cuda;
    int layout;
    /* data */
    struct {
        char train[HL_TEXT_MAX], validation[HL_TEXT_MAX], test[HL_TEXT_MAX], format[HL_TEXT_MAX];
        int64_t crop[3], patch[3], patches; /* 0: none */
        double foreground;                  /* -1: as the loss is */
        hl_words classes;                   /* names; none: not given */
        hl_words spacing;                   /* three numbers, or none */
        struct {
            hl_words scale, gamma; /* two numbers, or none */
            double rotate, noise, share;
        } vary;
        struct {
            int64_t count, use; /* count -1: none */
            char patient[HL_TEXT_MAX];
        } folds;
        hl_words transform, zscore, window, split;
        int augment;
        bool synthetic;
        int64_t samples, prefetch;
        struct {
            char path[HL_TEXT_MAX], from[HL_TEXT_MAX]; /* from: of y alone */
            hl_words axes;
            bool periodic; /* of x alone */
        } x, y;
        hl_words scan_window, scan_stride, detector_crop, detector_bin; /* of data.x, when its axes are those of a scan */
        bool unit_dose;
        struct {
            char file[HL_TEXT_MAX];
            hl_map columns, range;
            int order;
        } targets;
    } data;
    struct {
        int64_t epochs, steps, accumulate, patience, validate_every, norm_samples;
        double max_time;
        int64_t log_every;
    } train;
    struct {
        int volumes;    /* hl_volumes_setting */
        double overlap; /* of windows */
    } predict;
    int loss;
    hl_words class_weights;
    int64_t ignore_label; /* -1: none */
    double huber_delta;
    struct {
        int name, larc, loss_scale;
        int64_t loss_scale_every;
        double lr, momentum, beta1, beta2, epsilon, weight_decay, dense_decay, trust, clip_norm, loss_scale_start;
    } optimizer;
    struct {
        int name;
        double warmup, warmup_start, end, power, factor;
        hl_words at; /* epochs of `step` */
        double epochs; /* length; -1: train.epochs */
        double delta_factor, delta_end; /* of huber_delta */
        int scale;            /* hl_rate_rule */
        int64_t base_batch;
    } schedule;
    struct {
        int64_t every, steps, keep;
    } checkpoint;
    struct {
        int64_t spatial[3], ranks; /* ranks -1: those that were started */
        char spatial_until[64];
    } parallel;
    struct {
        int group, orchestration, algorithm, wire, average;
        int64_t group_bytes, average_steps;
        double stall; /* seconds; -1: none */
        hl_words group_layers;
    } reduce;
    int64_t memory_limit, memory_slabs;
    bool memory_check;
} hl_settings;

/* data.zscore: a word, or two numbers. */
typedef enum hl_zscore { HL_ZSCORE_OF_SAMPLE = 0, HL_ZSCORE_OF_SET, HL_ZSCORE_GIVEN } hl_zscore;
hl_zscore hl_settings_zscore(const hl_settings *s);
/* Makes it [mean, std], of as many digits as are read back equal. */
void hl_settings_set_zscore(hl_settings *s, double mean, double std);

/* Whether class_weights are weights: part of hl_settings_load. */
halo_status hl_settings_check_classes(halo_context *ctx, const hl_settings *s);
/* Whether all that is set is of use, as other keys are: part of hl_settings_load (idle.c). Warnings only of keys that keys.where knows; refuse: errors where the keys contradict each other. */
halo_status hl_settings_check_idle(halo_context *ctx, hl_keys keys, const hl_settings *s, bool refuse);

hl_keys hl_settings_keys(void);

/* Defaults, then CONFIG (a YAML file, or the name of a zoo network), then each key=value. Checks that need more than one key are made here
 * ("schedule.warmup is longer than the run"). */
halo_status hl_settings_load(halo_context *ctx, const char *config, int overrides, char *const *override, hl_settings *out);
/* Defaults, then the text of a configuration, as checkpoints carry it; `name` is what errors call it. */
halo_status hl_settings_parse(halo_context *ctx, const char *name, const char *text, hl_settings *out);

/* Each key=value over settings that were parsed; together: and the checks of hl_settings_load, else warnings at most. */
halo_status hl_settings_override(halo_context *ctx, int overrides, char *const *override, bool together, hl_settings *s);

/* Whether the zoo has a network of this name. */
bool hl_is_zoo_name(const char *name);

#endif
