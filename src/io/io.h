/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.h -- samples in, checkpoints out.
 *
 * A *source* is a set of samples, of equal shape unless patches are taken of them, with random access: (x [C D H W] in the file's own type, y [T] float). Formats: CosmoUniverse
 * HDF5 (one file per universe, cut into sub-volumes), halo's own HDF5, any arrays of HDF5, NPY and NPZ files, synthetic. A *loader* walks a source in a seeded global order on its own
 * thread, transforms and augments, and hands out batches. All functions are not collective: each rank has its own source and loader; what a
 * rank gets is decided by the loader's options: which samples by (rank, ranks), and which cells of them.
 */
#ifndef HL_IO_H
#define HL_IO_H

#include "base/base.h"
#include "base/config.h"
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
    int64_t ext[4];        /* C D H W of a sample (after cropping), or of a patch where only patches are taken; the samples' own are hl_source_extents's then */
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

/* Where a window of a diffraction scan lies. */
typedef struct hl_window_place {
    int64_t offset[2];           /* of its first position in the scan, along sy and sx */
    double step[2], pixel[2];    /* of the scan, of the patterns as they are read; 0: unknown */
    char step_units[32], pixel_units[32];
} hl_window_place;

/* Bytes read from files since a source was opened: of data, and of what HDF5 needs to find them. */
typedef struct hl_read_count { _Atomic int64_t data, other; } hl_read_count;

/* The cells [lo, lo + ext) of a volume, D H W. Beyond its border they are those of the other side: whoever asks for them has periodic axes. */
typedef struct hl_cells { int64_t lo[3], ext[3]; } hl_cells;

/* A part of such cells that lies inside the volume, and its place: the cell `at` of an array of extents `into`. */
typedef struct hl_cut { int64_t lo[3], ext[3], at[3], into[3]; } hl_cut;

typedef struct hl_source_ops { /* one static const table per format */
    const char *name;
    /* Thread-safe after open: the loader's thread and the caller may both read. The cut to its place in x [C, into], in info.dtype. */
    halo_status (*read)(hl_source *s, int64_t sample, const hl_cut *cut, void *x);
    /* Targets that are volumes: the cut to its place in y [targets, into]; numbers: y [targets], whatever the cut. */
    halo_status (*target)(hl_source *s, int64_t sample, const hl_cut *cut, float *y);
    int64_t (*group_of)(hl_source *s, int64_t sample);
    /* Writes a printable id ("ics_2019-03_a123.hdf5#5") */
    void (*id_of)(hl_source *s, int64_t sample, char *out, size_t size);
    void (*close)(hl_source *s);
    /* OPTIONAL: the NIfTI image that a sample is, of which a prediction takes place and orientation; NULL: it is none, or a part of one. */
    const char *(*image_of)(hl_source *s, int64_t sample);
    /* OPTIONAL: where a window of a scan lies; false: samples are none. */
    bool (*place_of)(hl_source *s, int64_t sample, hl_window_place *place);
    /* OPTIONAL: a number of each sample, out [samples], such as its dose. HALO_ERR_FORMAT where it has none of that name. */
    halo_status (*column)(hl_source *s, const char *name, double *out);
    /* OPTIONAL: D H W of a sample, after cropping; NULL: all have those of hl_source.box. */
    void (*extents)(hl_source *s, int64_t sample, int64_t ext[3]);
    /* OPTIONAL: of a sample's voxels, D H W, in mm as a rule. */
    halo_status (*spacing)(hl_source *s, int64_t sample, double spacing[3]);
} hl_source_ops;

struct hl_source { /* every source begins with this */
    const hl_source_ops *ops;
    halo_context *ctx;
    hl_source_info info;
    hl_read_count count;
    int64_t box[3];          /* D H W of every sample, unless ops->extents says otherwise; set by hl_source_open */
    struct hl_known *known;  /* what was once found out of whole samples (known.h); NULL: nothing yet */
};

/* How files that were not written for halo are to be read: which arrays they have and what their axes are, in the words of the configuration (data.x, data.y, data.targets). */
typedef struct hl_array_options {
    const char *x, *y;      /* dataset or member; empty: the only one there is. Of y: empty and y_from empty: there is none */
    hl_words x_axes, y_axes;
    bool periodic;
    const char *y_from;     /* other files that have y; empty: those of x */
    const char *table;      /* a text table of targets, a row for each file or sample; empty: none */
    hl_map columns, range;  /* which columns are targets, and what is stored as -1 and +1 */
    int order;              /* of the files that a table's rows belong to: hl_file_order */
    bool classes;           /* targets are class numbers: they stay as they are */
    hl_words scan_window, scan_stride, detector_crop, detector_bin; /* of a scan, whose axes are sy, sx, h, w: one or two numbers each, or none */
    bool unit_dose;         /* each window over its mean */
    const hl_target *like;  /* [likes] of the training data: ranges that are measured are theirs, by name; NULL: measured here */
    int likes;
    int64_t expect[4];      /* C D H W that the network takes, for errors; 0: any */
    bool hinted, same;      /* what there is to say of files of this kind was said; of these very files, which were looked at before */
} hl_array_options;

typedef enum hl_file_order { HL_ORDER_AUTO = 0, HL_ORDER_NAME, HL_ORDER_NUMBER } hl_file_order;

typedef struct hl_source_options {
    const char *path;       /* file or directory */
    const char *format;     /* "auto", "cosmouniverse", "halo", "arrays", ... */
    const hl_array_options *array; /* of arrays; NULL: nothing is said of them */
    int64_t crop[3];        /* sub-volume extents D H W; 0 = whole */
    double spacing[3];      /* D H W to which samples are resampled, with `patch`; 0 = as they are */
    int64_t patch[3];       /* D H W of the patches that alone are taken: samples may differ in their extents then, and info.ext are these; 0 = samples are taken as they are */
    int64_t channels;       /* channels the network expects; 0 = as the file; fewer than the file's: the first ones */
    int64_t size[3];        /* extents the network expects, for errors and synthetic; 0 = any */
    int64_t group_first, group_count; /* only these universes, in file order: splits of one directory; count 0 = to the end */
    int64_t outputs;        /* targets the network has; 0 = any */
    int64_t classes;        /* synthetic: the target is a class number from 0 to classes - 1; 0 = numbers of any size */
    int64_t target_ext[3];  /* synthetic: D H W of the targets; 0 = numbers */
    const hl_target *label; /* [labels] what the targets are where the files have none, of extents target_ext (0 = numbers); NULL: such files have none */
    int labels;
    bool synthetic;         /* no file: random volumes, targets a function of the volume, of (seed, global index) alone */
    int64_t synthetic_samples;
    uint64_t seed;
} hl_source_options;

halo_status hl_source_open(halo_context *ctx, const hl_source_options *options, hl_source **source);
void hl_source_close(hl_source *source);
/* The cells x_cells of a sample to x [C, ext], in info.dtype, and y_cells of its targets to y [targets, ext] (numbers: y [targets]). NULL cells: all. x or y may be
 * NULL. Thread-safe. */
halo_status hl_source_read(hl_source *source, int64_t sample, const hl_cells *x_cells, void *x, const hl_cells *y_cells, float *y);
/* D H W of a sample. */
void hl_source_extents(hl_source *source, int64_t sample, int64_t ext[3]);
/* Bytes that reading cost so far, counted where the files are read; data: without what finds them. */
static inline int64_t hl_source_bytes(const hl_source *source) { return source ? source->count.data + source->count.other : 0; }
static inline int64_t hl_source_data_bytes(const hl_source *source) { return source ? source->count.data : 0; }

/* ----------------------------------------------------------------------------------------------------------- loader */

/* Applied in the order listed. Means and deviations are each sample's own, but those of HL_STANDARD are given in the loader's options. */
typedef enum hl_transform { HL_LOG1P = 0, HL_OVER_MEAN, HL_ZSCORE, HL_STANDARD, HL_CLIP, HL_TRANSFORMS } hl_transform;

/* Random changes of a sample, each of them with the probability `share`. All 0: none. */
typedef struct hl_vary {
    double rotate;             /* turned by up to so many degrees about each axis, about the middle */
    double scale[2], gamma[2]; /* made larger by a factor, and values to a power, between these; 0: not */
    double noise;              /* of a standard deviation of up to this */
    double share;
} hl_vary;

typedef struct hl_loader_options {
    int64_t batch;         /* samples of one global step */
    int rank, ranks;       /* this rank takes its share of each global batch (first blocks one larger); those that hold parts of the same samples are one here */
    hl_cells x, y;         /* what it takes of each sample, and of targets that are volumes; extents 0: all. Of the sample as it is turned and shifted */
    hl_cells own;          /* where x is not all: those of x that count in sums over a sample. Every cell is some rank's own, and of one only */
    bool shuffle;          /* permutation = f(seed, epoch) of the global list, then split */
    bool drop_last;        /* training drops the last partial batch; evaluation pads it with weight 0 */
    hl_transform transform[4];
    int transforms;
    double mean, std;      /* of HL_STANDARD; std above 0 */
    double window[2];      /* of HL_CLIP, rising: what becomes 0 and 1, after values beyond are clipped to them */
    int64_t classes;       /* targets must be class numbers from 0 to classes - 1; 0: any number */
    bool ignores;          /* or this one, of cells that do not count */
    int64_t ignore;
    hl_vary vary;          /* drawn by (seed, epoch, global sample id); of patches of each */
    bool flip;             /* 8 of the symmetries of the cube, of any extents */
    bool cube;             /* the 48 symmetries of the cube, drawn by (seed, epoch, global sample id); only where D = H = W */
    bool shift;            /* random periodic shifts; only where info.whole_periodic */
    bool patch;            /* a sample is a patch of info.ext that is drawn from one by (seed, epoch, sample, number); what lies beyond a small one is 0 */
    int64_t patches;       /* patches of each sample in an epoch, with `patch`; 0 = 1 */
    double foreground;     /* share of them whose middle is a cell of a class above 0, as far as the sample goes */
    uint64_t seed;
    int prefetch;          /* batches read ahead by the loader's thread; 0 = none, in the caller's thread */
    bool stored;           /* samples leave as they are stored, in memory that `device` pins, with the numbers with which it prepares them; where patches are cut, as the cutter makes them. Not where transforms
                            * are pending (hl_loader_pending) */
    halo_device *device;
    int64_t first, count;  /* sub-range of samples, count 0 = all */
} hl_loader_options;

/* Of values: how many, their mean and the sum of squares of what differs from it. */
typedef struct hl_moments { double n, mean, sum; } hl_moments;

typedef struct hl_loaded { /* valid until the next call of hl_loader_next */
    int64_t samples;       /* of this rank, padding samples included */
    int64_t first_sample;  /* global index in the batch of the first one */
    float *x;              /* [samples, C, D, H, W] transformed, but for what hl_loader_pending says; D H W: of the cells asked for. NULL where samples leave as they are stored */
    float *y;              /* [samples, T], or [samples, T, D, H, W] where targets are volumes, turned and shifted as x is, or, with `stored`, not yet */
    void *stored;          /* or x [samples, C, cells] in stored_type, each sample in the order of its own axes, */
    halo_dtype stored_type;
    double *numbers;       /* and [2, samples, HALO_SAMPLE_NUMBERS] of HALO_OP_PREPARE: of x, then of targets that are volumes */
    uint64_t serial;       /* another one for every batch of this loader, above 0 */
    hl_moments *moments;   /* [samples]: of the own cells, where transforms are pending; 0 for padding */
    double *weight;        /* [samples]: 1, or 0 for padding */
    int64_t *id;           /* [samples]: sample number in the source, -1 for padding */
    double weight_sum;     /* over all ranks */
    double seconds_waited; /* how long the caller waited for this batch */
    bool last;             /* of the epoch */
} hl_loaded;

typedef struct hl_loader hl_loader;

halo_status hl_loader_create(halo_context *ctx, hl_source *source, const hl_loader_options *options, hl_loader **loader);
int64_t hl_loader_steps(const hl_loader *loader); /* per epoch */
int64_t hl_loader_samples(const hl_loader *loader); /* of this rank's batches, padding included */
/* Starts epoch `epoch` at step `step` (resume). */
halo_status hl_loader_start(hl_loader *loader, int64_t epoch, int64_t step);
/* Next batch of the epoch; *batch NULL at its end. A NaN or infinity in a sample: HALO_ERR_NONFINITE naming file, sample and voxel. */
halo_status hl_loader_next(hl_loader *loader, const hl_loaded **batch);
/* What hl_loader_next will give, where it is ready by now, else NULL: its samples may already be sent on their way. Nothing of it changes until it was given and another after it. */
const hl_loaded *hl_loader_peek(hl_loader *loader);
/* Type of the values that leave a loader with these options and `stored`, of a source that has them in this type. */
halo_dtype hl_loader_stored_type(const hl_loader_options *options, halo_dtype source);
void hl_loader_destroy(hl_loader *loader);

/*
 * A transform that needs a whole sample cannot be done by a loader that reads a part. It and those after it are left to who can ask the ranks that hold the other
 * parts: from the transform number hl_loader_pending on, which is *transforms where nothing is left. Each in turn: moments of the own cells (of the first, they
 * are in hl_loaded), merged over these ranks (hl_moments_merge, in one order on all), then hl_loader_apply. HALO_ERR_NONFINITE as hl_loader_next.
 */
int hl_loader_pending(const hl_loader *loader, int *transforms);
bool hl_loader_needs(const hl_loader *loader, int transform); /* whether this one needs moments */
void hl_loader_moments(const hl_loader *loader, const hl_loaded *batch, hl_moments *moments);
halo_status hl_loader_apply(hl_loader *loader, const hl_loaded *batch, int transform, const hl_moments *all);
/* Both together, by Chan, Golub and LeVeque (Algorithms for computing the sample variance, 1983). */
hl_moments hl_moments_merge(hl_moments a, hl_moments b);

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
/* Begins the next sample, of extents D H W where they are not those of all (NULL); an HDF5 file can have one extent only. Then its cells, box by box (C D H W), in any order. */
halo_status hl_volumes_add(hl_volumes *volumes, const char *id, const char *image, int64_t group, const int64_t ext[3]);
halo_status hl_volumes_put(hl_volumes *volumes, const int64_t lo[4], const int64_t ext[4], const float *prediction);
/* Where the sample that was begun last lies in its scan: `scan_offset` [sample, 2], and its pixel sizes as attributes of the prediction. All samples have it, or none. */
halo_status hl_volumes_place(hl_volumes *volumes, const hl_window_place *place);
/*
 * Or as NIfTI images, each in the place of its scan: hl_volumes_create_images makes the directory, hl_volumes_add takes the scan's path in `image`, else NULL, and writes the volume before as
 * CASE.nii.gz, the case being the id without its ending; of several channels CASE_NAME.nii.gz each. Bytes where all values are whole numbers from 0 to 255, else float32. Images that are written stay when another fails.
 */
halo_status hl_volumes_create_images(halo_context *ctx, const char *directory, const int64_t ext[4], const hl_target *target, hl_volumes **volumes);
/* Or as ID.npy each, [C, D, H, W] of bytes or float32 as above, of whatever extents hl_volumes_add says. */
halo_status hl_volumes_create_arrays(halo_context *ctx, const char *directory, const int64_t ext[4], const hl_target *target, hl_volumes **volumes);
/* Volumes of other extents than their scan's are resampled to it: numbers from 0 to 255 take the nearest, others are interpolated. */
void hl_volumes_resample(hl_volumes *volumes);
/* Closes and frees; the file stands under its name when `commit`, else nothing is left of it. NULL is allowed. */
halo_status hl_volumes_close(hl_volumes *volumes, bool commit);

/* What `halo inspect` prints of a data file or directory: text, and members of the JSON object that the caller has opened, from one description. */
halo_status hl_data_inspect(halo_context *ctx, const char *path, hl_str *text, hl_json *json);

#endif
