/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdio.h>

static bool reserve(hl_str *b, size_t more)
{
    if (b->failed) return false;
    if (b->len + more + 1 <= b->cap) return true;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < b->len + more + 1) cap *= 2;
    char *s = realloc(b->s, cap);
    if (!s) {
        b->failed = true;
        return false;
    }
    b->s = s;
    b->cap = cap;
    return true;
}

void hl_str_addn(hl_str *b, const char *text, size_t n)
{
    if (!reserve(b, n)) return;
    memcpy(b->s + b->len, text, n);
    b->len += n;
    b->s[b->len] = '\0';
}

void hl_str_add(hl_str *b, const char *text) { hl_str_addn(b, text, strlen(text)); }

void hl_str_addf(hl_str *b, const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    if (n >= 0 && reserve(b, (size_t)n)) {
        vsnprintf(b->s + b->len, (size_t)n + 1, format, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void hl_str_number(hl_str *b, double x)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    for (char *p = text; *p; p++)
        if (*p == ',') *p = '.'; /* the caller's locale may have a decimal comma */
    hl_str_add(b, text);
}

void hl_str_fold(hl_str *b, const char *text, int indent, int columns)
{
    int column = indent;
    hl_str_addf(b, "%*s", indent, "");
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (column > indent && column + (int)n + 1 > columns) {
            hl_str_addf(b, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            hl_str_add(b, " ");
            column++;
        }
        hl_str_addn(b, text, n);
        column += (int)n;
        text += n;
        if (*text == '\n') {
            hl_str_addf(b, "%s\n%*s", text[1] == '\n' ? "\n" : "", text[1] ? indent : 0, "");
            column = indent;
        }
        while (*text == ' ' || *text == '\n') text++;
    }
    hl_str_add(b, "\n");
}

void hl_str_free(hl_str *b)
{
    free(b->s);
    *b = (hl_str){0};
}

/* Levenshtein distance, one row at a time; words longer than the row count as far. */
static size_t distance(const char *a, const char *b)
{
    enum { MOST = 64 };
    size_t row[MOST + 1], la = strlen(a), lb = strlen(b);
    if (la > MOST || lb > MOST) return MOST;
    for (size_t j = 0; j <= lb; j++) row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]), least = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < least ? replaced : least;
        }
    }
    return row[lb];
}

const char *hl_nearest(const char *word, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 2;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, names[i]);
        if (d < least) {
            least = d;
            best = names[i];
        }
    }
    return best;
}
