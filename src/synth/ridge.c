/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ridge.c -- w = (x'x + lambda 1)^-1 x'y by Cholesky (Hoerl & Kennard, "Ridge regression", 1970). The matrix
 * is a few hundred wide at most, so plain loops do.
 */
#include "synth/ridge.h"

/* In place: the lower triangle L of a = L L'. */
static bool cholesky(int n, double *a)
{
    for (int j = 0; j < n; j++) {
        double pivot = a[j * n + j];
        for (int k = 0; k < j; k++) pivot -= a[j * n + k] * a[j * n + k];
        if (!(pivot > 0.0)) return false;
        a[j * n + j] = sqrt(pivot);
        for (int i = j + 1; i < n; i++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = sum / a[j * n + j];
        }
    }
    return true;
}

/* Solves L L' x = b for one column of x[n, t], in place. */
static void substitute(int n, int t, const double *l, double *x)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) x[i * t] -= l[i * n + k] * x[k * t];
        x[i * t] /= l[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) x[i * t] -= l[k * n + i] * x[k * t];
        x[i * t] /= l[i * n + i];
    }
}

bool hl_ridge_solve(int f, int t, const double *gram, const double *moment, double lambda, double *scratch,
                    double *w)
{
    memcpy(scratch, gram, (size_t)f * (size_t)f * sizeof(double));
    for (int i = 0; i < f; i++) scratch[i * f + i] += lambda;
    if (!cholesky(f, scratch)) return false;
    memcpy(w, moment, (size_t)f * (size_t)t * sizeof(double));
    for (int j = 0; j < t; j++) substitute(f, t, scratch, w + j);
    return true;
}
