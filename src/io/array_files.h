/* SPDX-License-Identifier: Apache-2.0 */
/* array_files.h -- arrays of one name in many files: which files, what they agree on, a bounded number of them open. */
#ifndef HL_IO_ARRAY_FILES_H
#define HL_IO_ARRAY_FILES_H

#include "io/axes.h"
#include "io/files.h"
#include "io/nifti.h"

/*
 * As hl_files_find, of any kind: a directory's *.h5 *.hdf5 *.he5 *.nc *.npy *.npz *.nii *.nii.gz *.hdr *.hdr.gz, or a pattern with * ? [ (sorted by name as well). `order` NUMBER: digits in names count as numbers.
 */
halo_status hl_array_files_find(halo_context *ctx, const char *path, hl_file_order order, hl_files *files);
/* The file whose format is that of all: of a directory in which there are HDF5 files too, the first of those. */
const char *hl_files_deciding(const hl_files *files);
/* Whether the order by name and that by number are the same. False: *before comes before *after by name alone. */
bool hl_array_files_order_is_plain(const hl_files *files, const char **before, const char **after);

/* Appends "; no WHAT for 'a.nii', 'b.nii' and 3 others": the images of which nothing in `with` is the same case. Nothing where each has one, or files are no NIfTI images. */
void hl_files_add_unpaired(const hl_files *files, const char *what, const hl_files *with, hl_str *text);

typedef struct hl_array_slot {
    int64_t file; /* index, of part k of a file that many times the files later; -1: free */
    uint64_t used;
    hl_array *array;
} hl_array_slot;

typedef struct hl_array_set {
    halo_context *ctx;
    char name[HL_TEXT_MAX]; /* of the array in each file; several with commas between them are its parts */
    int parts;            /* arrays that together are a sample, one behind the other as channels; 1 as a rule */
    hl_files more;        /* parts 1, 2 ... of each file where they are files of their own: [files, parts - 1]; else none */
    hl_axes axes;         /* n = 0: not known yet */
    hl_files files;
    hl_read_count *count;
    int64_t *first;       /* [files + 1] samples before each file */
    hl_view view;         /* of the first file; all have it but for N, and with `varied` for D H W */
    hl_number type;
    bool varied;          /* files may differ in extents and type */
    bool mixed;           /* they do in type */
    int64_t (*ext)[3];    /* [files] D H W, with `varied` */
    hl_nifti_span *span;  /* [files] where NIfTI images lie, what hl_array_set_scan saw; others have none */
    char *scratch;
    size_t capacity;
    uint64_t clock;
    hl_array_slot slot[HL_OPEN_MOST];
} hl_array_set;

void hl_array_set_init(hl_array_set *set, halo_context *ctx, const char *name, hl_read_count *count);
void hl_array_set_close(hl_array_set *set);
/* Valid until the next get. Other arrays let go of what they keep. */
halo_status hl_array_set_get(hl_array_set *set, int64_t file, hl_array **array);
/* Opens every file once: all have the type and shape of the first, but for the number of samples, and with `varied` for extents and type. Sets first, ext, span, view and type; the axes are known. */
halo_status hl_array_set_scan(hl_array_set *set);
/* Images CASE_0000, CASE_0001 ... are the `parts` channels of a case each: leaves the first of each in files, the others in more. HALO_ERR_SHAPE: a channel is missing. */
halo_status hl_array_set_pair(hl_array_set *set, int parts);
/* The file of a sample. */
int64_t hl_array_set_file(const hl_array_set *set, int64_t sample);
halo_status hl_array_set_read(hl_array_set *set, int64_t sample, int64_t channels, const hl_cut *cut, halo_dtype to, void *out);

#endif
