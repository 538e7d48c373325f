/* SPDX-License-Identifier: Apache-2.0 */
/* merge.cu -- statistics of norms as sums that ranks can add up, and back. */
#include "words.cuh"

HL_KERNEL(HL_BLOCK) merge_statistics(int64_t n, double *stat, const float *mean, int back)
{
    for (int64_t i = HL_INDEX; i < n; i += HL_STRIDE) {
        double *s = stat + 3 * i, r = mean ? (double)mean[i] : 0;
        if (!back) {
            double a = s[0] * (s[1] - r);
            s[2] += a * (s[1] - r);
            s[1] = a;
            continue;
        }
        double a = s[1];
        if (s[0] == 0) s[0] = 1;
        s[1] = r + a / s[0];
        s[2] -= a * a / s[0];
        if (s[2] < 0) s[2] = 0; /* NaN stays */
    }
}

extern "C" cudaError_t hl_cuda_merge_statistics(cudaStream_t stream, int64_t n, double *stat, const float *mean, int back)
{
    return HL_LAUNCH(merge_statistics, hl_grid(n), HL_BLOCK, 0, stream, n, HL_SPAN(stat, 3 * n), HL_SPAN(mean, n), back);
}
