/* SPDX-License-Identifier: Apache-2.0 */
/* str.h -- a growing string, for messages, tables and JSON. Appends never fail visibly: `failed` is set on lack of memory and checked at the end. */
#ifndef HL_STR_H
#define HL_STR_H

#include "base/base.h"

typedef struct hl_str {
    char *s; /* NULL or NUL-terminated; freed with hl_str_free */
    size_t len, cap;
    bool failed;
} hl_str;

void hl_str_add(hl_str *b, const char *text);
void hl_str_addn(hl_str *b, const char *text, size_t n);
void hl_str_addf(hl_str *b, const char *format, ...) HALO_PRINTF(2, 3);
/* The shortest text that reads back equal, in any locale. */
void hl_str_number(hl_str *b, double x);
/* Words, in lines of at most so many columns that begin with `indent` spaces, the last one ended; a line's end in the text is one here, two are an empty line. */
void hl_str_fold(hl_str *b, const char *text, int indent, int columns);
void hl_str_free(hl_str *b);

/* Nearest of `n` names to `word` by edit distance, or NULL when none is near (distance > 1/3 of the length + 1). */
const char *hl_nearest(const char *word, const char *const *names, size_t n);

/* The ending of a counted noun: "%d file%s", n, HL_S(n). */
#define HL_S(n) ((n) == 1 ? "" : "s")

#endif
