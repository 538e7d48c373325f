/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nifti.h -- NIfTI-1, NIfTI-2 and Analyze 7.5 images, through nifticlib: what a header says, the bytes of an image, and writing an image in the place of another.
 *
 * An image is stored with x fastest. Its header says where the axes point in the patient; *RAS* is the order of axes that comes nearest to right, anterior, superior: axis k of RAS
 * is the stored axis axis[k], counted from its other end where flip[k]. Only header and place are ever changed, never values between voxels: an oblique image stays oblique.
 * No function is collective. Without nifticlib every function fails with HALO_ERR_UNSUPPORTED.
 */
#ifndef HL_IO_NIFTI_H
#define HL_IO_NIFTI_H

#include "io/convert.h"
#include "io/io.h"

enum { HL_NIFTI_RANK = 7, HL_NIFTI_HEADER = 540 };

typedef struct hl_nifti {
    char *header, *image;    /* the files; the same one of .nii */
    int version;             /* 1, 2; 0: Analyze 7.5, which has no orientation */
    bool swapped;            /* the file's byte order is not ours */
    bool packed;             /* the image is gzipped: reading any of it reads all of it */
    hl_number type;          /* as stored */
    int ndim;                /* as the header counts, 1 to 7 */
    int64_t dim[HL_NIFTI_RANK]; /* x y z t u v w; 1 from ndim on */
    int64_t elements, bytes; /* as stored */
    int64_t at, size;        /* of the image file: where its voxels begin, and its bytes */
    double slope, inter;     /* value = slope stored + inter; slope 0: as stored */
    double spacing[3];       /* of x y z, mm as a rule */
    double affine[3][4];     /* stored indices to RAS coordinates */
    const char *place;       /* what says so: "sform", "qform", or "" for none: axes are taken as stored */
    int axis[3];
    bool flip[3];
    unsigned char raw[HL_NIFTI_HEADER]; /* the header in our byte order */
} hl_nifti;

/* By the end of its name: .nii .hdr .img, each also with .gz. */
bool hl_is_nifti(const char *path);
/* The name without directory, ending and the _0000 that nnU-Net gives channels. */
void hl_nifti_case(const char *path, char *out, size_t size);
/* Whether both may be of one case: volume-7 and segmentation-7, case_7_0000 and case_7; the numbers in the names decide. */
bool hl_nifti_same_case(const char *a, const char *b);
/* Reads and checks a header, and that the image can have as many bytes as it claims. Nothing to be freed on failure. HALO_ERR_FORMAT: no such header, truncated, complex or coloured. */
halo_status hl_nifti_open(halo_context *ctx, const char *path, hl_nifti *nifti);
void hl_nifti_free(hl_nifti *nifti);
/* All the bytes of a packed image, as stored, and its checksum compared. */
halo_status hl_nifti_unpack(halo_context *ctx, const hl_nifti *nifti, void *out);
/* Where the stored axes point to, such as "LAS"; "???" where nothing says so. */
const char *hl_nifti_codes(const hl_nifti *nifti, char out[4]);
/* Extents D H W in RAS. */
void hl_nifti_extents(const hl_nifti *nifti, int64_t ext[3]);
/* Spacing of D H W in RAS. */
void hl_nifti_spacings(const hl_nifti *nifti, double spacing[3]);
/* Where an image lies, without its header. */
typedef struct hl_nifti_span {
    bool known;          /* the header says so */
    double corner[2][3]; /* of its first and last voxel in RAS */
    double spacing[3];   /* D H W in RAS */
} hl_nifti_span;
hl_nifti_span hl_nifti_span_of(const hl_nifti *nifti);
/* How far, in voxels of a, the two corners of b lie from those of a; 0 where one of them has no place. */
double hl_nifti_apart(const hl_nifti_span *a, const hl_nifti_span *b);

/* An image that is in RAS as it is stored, with its corner voxel at 0, and no file. ext and spacing D H W. */
halo_status hl_nifti_make(halo_context *ctx, const int64_t ext[3], const double spacing[3], hl_nifti *nifti);
/*
 * Writes one volume, data [D H W] in RAS, in the place of `like`: same version, axes, qform and sform, so that it overlays it. u1 i2 i4 f4 f8 as they are; .gz is packed. Complete or not
 * at all.
 */
halo_status hl_nifti_write(halo_context *ctx, const char *path, const hl_nifti *like, hl_number type, const void *data);

#endif
