/* SPDX-License-Identifier: Apache-2.0 */
/* dnn_conv.hpp -- one convolution problem, and the three directions in which it is run. */
#pragma once
#include "dnn.hpp"
#include <cstdio>

namespace sim {

enum Pass { forward, backward_data, backward_filter };

struct Problem {
    Pass pass;
    cudnnTensorDescriptor_t x,
        y; /* y is dy backward; the output's descriptor among x, w, y is that of the pass */
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t c;
};

/* dnn_algorithm.cpp: whether strides grow in the order of the layout, leaving gaps only where it need not be
 * packed; a dimension of extent 1 may have any stride */
bool lies(const cudnnTensorStruct &d, bool last, bool with_batch, bool packed);
/* The file of CUDASIM_PROBLEMS, what is asked for, to put to the real library; or null */
FILE *problems();
const char *type_name(cudnnDataType_t type);
/* Whether this cuDNN takes the problem; an algorithm of it, and the workspace that one needs */
cudnnStatus_t check_problem(const Problem &p);
cudnnStatus_t check_algorithm(const Problem &p, int algorithm, size_t *workspace);
bool deterministic(Pass pass, int algorithm);

/* dnn_conv.cpp: the sums of a pass, in double, in the logical order of its output (y, x or w) */
std::vector<double> convolve(const Problem &p, const void *x, const void *w, const void *y);
/* The last bit that a sum by atomics leaves to chance */
void disturb(std::vector<double> &v);
/* A problem whose descriptors are copies: they may change before the operation runs */
struct Kept {
    cudnnTensorStruct x, y;
    cudnnFilterStruct w;
    cudnnConvolutionStruct c;
    Pass pass;
    explicit Kept(const Problem &p) : x(*p.x), y(*p.y), w(*p.w), c(*p.c), pass(p.pass) {}
    Problem problem() const
    {
        return {pass, const_cast<cudnnTensorStruct *>(&x), const_cast<cudnnTensorStruct *>(&y),
                const_cast<cudnnFilterStruct *>(&w), const_cast<cudnnConvolutionStruct *>(&c)};
    }
};

} // namespace sim
