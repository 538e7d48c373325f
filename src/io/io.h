/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.h -- samples in, checkpoints out.
 *
 * A *source* is a set of samples of equal shape with random access: (x [C D H W] in the file's own type, y [T] float). Formats: CosmoUniverse
 * HDF5 (one file per universe, cut into sub-volumes), halo's own HDF5, synthetic. A *loader* walks a source in a seeded global order on its own
 * thread, transforms and augments, and hands out batches. All functions are not collective: each rank has its own source and loader; what a
 * rank gets is decided by (rank, ranks) in the loader's options.
 */
#ifndef HL_IO_H
#define HL_IO_H

#include "base/base.h"
#include "base/json.h"
#include <halo/backend.h>

/* ----------------------------------------------------------------------------------------------------------- source */

typedef struct hl_target {
    char name[64];
    double low, high;  /* physical value at stored -1 and +1: physical = (low + high)/2 + y (high - low)/2; NaN when unknown (then y is physical) */
    double mean, std;  /* z-score used by the file, NaN when none: physical = mean + y std */
} hl_target;

typedef struct hl_source_info {
    char description[256]; /* "12 universes of 64^3 x 4 int16 in 'dir' (CosmoUniverse), 8 crops of 32^3 each" */
    int64_t samples;
    int64_t ext[4];        /* C D H W of a sample (after cropping) */
    halo_dtype dtype;      /* of x as delivered by read; native byte order */
    int targets;           /* numbers, or volumes: channels of y */
    hl_target *target;     /* [targets], owned by the source */
    int64_t target_ext[3]; /* D H W of each target: 1 1 1 for numbers */
    int64_t groups;        /* universes; sample s belongs to group_of(s) */
    bool whole_periodic;   /* a sample is a whole periodic box: random shifts are allowed */
    bool unlabelled;       /* targets are described, but their values are not known: y is 0 */
} hl_source_info;

/* Numbers that a sample has for its targets: y is [targets, D, H, W]. */
static inline int64_t hl_target_values(const hl_source_info *i)
{
    return i->targets * i->target_ext[0] * i->target_ext[1] * i->target_ext[2];
}
/* Whether the targets are volumes. */
static inline bool hl_target_volumes(const hl_source_info *i) { return hl_target_values(i) != i->targets; }

typedef struct hl_source hl_source;

typedef struct hl_source_ops { /* one static const table per format */
    const char *name;
    /* Thread-safe after open: the loader's thread and the caller may both read. x: host array of C D H W in info.dtype; y: [targets, D, H, W], hl_target_values
     * of them. */
    halo_status (*read)(hl_source *s, int64_t sample, void *x, float *y);
    int64_t (*group_of)(hl_source *s, int64_t sample);
    /* Writes a printable id ("ics_2019-03_a123.hdf5#5") */
    void (*id_of)(hl_source *s, int64_t sample, char *out, size_t size);
    void (*close)(hl_source *s);
} hl_source_ops;

struct hl_source { /* every source begins with this */
    const hl_source_ops *ops;
    halo_context *ctx;
    hl_source_info info;
};

typedef struct hl_source_options {
    const char *path;       /* file or directory */
    const char *format;     /* "auto", "cosmouniverse", "halo", ... */
    int64_t crop[3];        /* sub-volume extents D H W; 0 = whole */
    int64_t channels;       /* channels the network expects; 0 = as the file; fewer than the file's: the first ones */
    int64_t size[3];        /* extents the network expects, for errors and synthetic; 0 = any */
    int64_t group_first, group_count; /* only these universes, in file order: splits of one directory; count 0 = to the end */
    int64_t outputs;        /* targets the network has; 0 = any */
    int64_t target_ext[3];  /* synthetic: D H W of the targets; 0 = numbers */
    const hl_target *label; /* [labels] what the targets are where the files have none, of extents target_ext (0 = numbers); NULL: such files have none */
    int labels;
    bool synthetic;         /* no file: random volumes, targets a function of the volume, of (seed, global index) alone */
    int64_t synthetic_samples;
    uint64_t seed;
} hl_source_options;

halo_status hl_source_open(halo_context *ctx, const hl_source_options *options, hl_source **source);
void hl_source_close(hl_source *source);

/* ----------------------------------------------------------------------------------------------------------- loader */

/* Applied in the order listed. Means and deviations are each sample's own, but those of HL_STANDARD are given in the loader's options. */
typedef enum hl_transform { HL_LOG1P = 0, HL_OVER_MEAN, HL_ZSCORE, HL_STANDARD, HL_TRANSFORMS } hl_transform;

typedef struct hl_loader_options {
    int64_t batch;         /* samples of one global step */
    int rank, ranks;       /* this rank takes its share of each global batch (first blocks one larger) */
    bool shuffle;          /* permutation = f(seed, epoch) of the global list, then split */
    bool drop_last;        /* training drops the last partial batch; evaluation pads it with weight 0 */
    hl_transform transform[4];
    int transforms;
    double mean, std;      /* of HL_STANDARD; std above 0 */
    bool cube;             /* the 48 symmetries of the cube, drawn by (seed, epoch, global sample id); only where D = H = W */
    bool shift;            /* random periodic shifts; only where info.whole_periodic */
    uint64_t seed;
    int prefetch;          /* batches read ahead by the loader's thread; 0 = none, in the caller's thread */
    int64_t first, count;  /* sub-range of samples, count 0 = all */
} hl_loader_options;

typedef struct hl_loaded { /* valid until the next call of hl_loader_next */
    int64_t samples;       /* of this rank, padding samples included */
    int64_t first_sample;  /* global index in the batch of the first one */
    float *x;              /* [samples, C, D, H, W] transformed */
    float *y;              /* [samples, T], or [samples, T, D, H, W] where targets are volumes, turned and shifted as x is */
    double *weight;        /* [samples]: 1, or 0 for padding */
    int64_t *id;           /* [samples]: sample number in the source, -1 for padding */
    double weight_sum;     /* over all ranks */
    double seconds_waited; /* how long the caller waited for this batch */
    bool last;             /* of the epoch */
} hl_loaded;

typedef struct hl_loader hl_loader;

halo_status hl_loader_create(halo_context *ctx, hl_source *source, const hl_loader_options *options, hl_loader **loader);
int64_t hl_loader_steps(const hl_loader *loader); /* per epoch */
/* Starts epoch `epoch` at step `step` (resume). */
halo_status hl_loader_start(hl_loader *loader, int64_t epoch, int64_t step);
/* Next batch of the epoch; *batch NULL at its end. A NaN or infinity in a sample: HALO_ERR_NONFINITE naming file, sample and voxel. */
halo_status hl_loader_next(hl_loader *loader, const hl_loaded **batch);
void hl_loader_destroy(hl_loader *loader);

/* Element `i` of the permutation of [0, n) for (seed, epoch): Fisher-Yates by counter-based numbers. `order` has room for n. */
void hl_permutation(uint64_t seed, int64_t epoch, int64_t n, int64_t *order);

/* ------------------------------------------------------------------------------------------------- checkpoint files */

/*
 * An HDF5 file: groups and datasets by name, attributes for scalars. Written under a temporary name, fsynced, renamed; each dataset has a
 * checksum attribute (crc32c of its bytes) verified on load. The training loop decides the names; see doc/formats.md.
 */
typedef struct hl_ckpt hl_ckpt;
halo_status hl_ckpt_create(halo_context *ctx, const char *path, hl_ckpt **file);
halo_status hl_ckpt_open(halo_context *ctx, const char *path, hl_ckpt **file);
/* Whether a checkpoint of this version can be opened at `path`; reports nothing. */
bool hl_ckpt_is(const char *path);
halo_status hl_ckpt_put(hl_ckpt *file, const char *name, halo_dtype type, int ndim, const int64_t *dim, const void *data);
/* Fails when type or dims differ, naming both. */
halo_status hl_ckpt_get(hl_ckpt *file, const char *name, halo_dtype type, int ndim, const int64_t *dim, void *data);
bool hl_ckpt_has(hl_ckpt *file, const char *name);
halo_status hl_ckpt_put_int(hl_ckpt *file, const char *name, int64_t value);
halo_status hl_ckpt_get_int(hl_ckpt *file, const char *name, int64_t *value);
halo_status hl_ckpt_put_number(hl_ckpt *file, const char *name, double value);
halo_status hl_ckpt_get_number(hl_ckpt *file, const char *name, double *value);
halo_status hl_ckpt_put_string(hl_ckpt *file, const char *name, const char *value);
halo_status hl_ckpt_get_string(hl_ckpt *file, const char *name, char **value); /* freed by the caller */
/* Calls back for every dataset, name order. */
halo_status hl_ckpt_list(hl_ckpt *file, halo_status (*visit)(void *user, const char *name, halo_dtype type, int ndim, const int64_t *dim), void *user);
/* Reads everything against its checksums; the first damaged dataset is named. */
halo_status hl_ckpt_verify(hl_ckpt *file);
/* Closes; a file being created is committed (fsync, rename) when `commit`, else removed. */
halo_status hl_ckpt_close(hl_ckpt *file, bool commit);

/* ------------------------------------------------------------------------------------------------------------ process */

/*
 * For a program, which owns its process, before anything else of io; never for the library: HDF5 leaves out its clean-up at exit. Every file of halo's
 * is closed by halo, and that clean-up, after a damaged file was met, prints that it loops.
 */
void hl_io_own_process(void);

/* -------------------------------------------------------------------------------------------------------- volumes, CSV */

/*
 * Predicted volumes as an HDF5 file, sample by sample: `prediction` [sample, C, D, H, W] float32 with the attribute `names` [C], `id` [sample] and
 * `group` [sample] (doc/formats.md). Written under a temporary name, fsynced, renamed.
 */
typedef struct hl_volumes hl_volumes;
halo_status hl_volumes_create(halo_context *ctx, const char *path, const int64_t ext[4], const hl_target *target, hl_volumes **volumes);
halo_status hl_volumes_add(hl_volumes *volumes, const float *prediction, const char *id, int64_t group);
/* Closes and frees; the file stands under its name when `commit`, else nothing is left of it. NULL is allowed. */
halo_status hl_volumes_close(hl_volumes *volumes, bool commit);

/* What `halo inspect` prints of a data file or directory: text, and members of the JSON object that the caller has opened, from one description. */
halo_status hl_data_inspect(halo_context *ctx, const char *path, hl_str *text, hl_json *json);

#endif
