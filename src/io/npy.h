/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h -- the header of a NumPy array file. Pure functions. */
#ifndef HL_IO_NPY_H
#define HL_IO_NPY_H

#include "io/convert.h"

enum { HL_NPY_RANK = 32, HL_NPY_START = 12 }; /* most dimensions; bytes that say how long the header is */

typedef struct hl_npy {
    hl_number type;
    bool swap;      /* the file's byte order is not ours */
    bool truth;     /* bytes that stand for true and false: what is not 0 is 1 */
    bool fortran;   /* the first axis runs fastest */
    int ndim;
    int64_t dim[HL_NPY_RANK]; /* as NumPy prints them */
    int64_t elements, bytes;  /* of data */
    size_t header;            /* where the data begin */
} hl_npy;

/* Length of the header, from the first HL_NPY_START bytes of a file; 0: it is no NPY file, or of a version that is not known. */
size_t hl_npy_length(const void *start, size_t bytes);
/* Parses a whole header of that length. False: `wrong` says why. */
bool hl_npy_parse(const void *header, size_t bytes, hl_npy *out, char *wrong, size_t size);

#endif
