/* SPDX-License-Identifier: Apache-2.0 */
/* ridge.h -- linear regression with a quadratic penalty. */
#ifndef HL_SYNTH_RIDGE_H
#define HL_SYNTH_RIDGE_H

#include "base/base.h"

/*
 * Coefficients of targets y[n, t] on features x[n, f], both with mean 0: w[f, t] minimises |x w - y|^2 +
 * lambda |w|^2. gram = x'x [f, f] and moment = x'y [f, t] are given, so that several lambda cost one pass
 * over the data. scratch: [f, f]. False when the matrix is not positive definite (lambda = 0 and dependent
 * features).
 */
bool hl_ridge_solve(int f, int t, const double *gram, const double *moment, double lambda, double *scratch,
                    double *w);

#endif
