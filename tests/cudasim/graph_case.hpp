/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_case.hpp -- a convolution with bias and relu as a graph of cuDNN, call by call, one of which may be
 * spoilt: for tests of the simulated library, and to hold it beside the real one.
 */
#pragma once
#include <cstring>
#include <cudnn.h>
#include <vector>

enum Spoil { right, dropped, wrong_type, one_less, other_value, unfinished, twice };

struct GraphCase {
    int pass = 0; /* forward, backward data, backward filter */
    cudnnDataType_t type = CUDNN_DATA_FLOAT, bias_type = CUDNN_DATA_FLOAT, between = CUDNN_DATA_FLOAT;
    bool last = false, bias = true, relu = true;
    double slope = 0;
    std::vector<int64_t> x{2, 3, 5, 6, 7}, w{4, 3, 3, 3, 3}, y{2, 4, 4, 6, 8}, b{1, 4, 1, 1, 1};
    std::vector<int64_t> x_stride, y_stride; /* empty: packed */
    std::vector<int64_t> low{0, 1, 1}, high{1, 1, 2}, stride{1, 1, 1}, dilation{1, 1, 1};
    int64_t align = 16;
    cudnnHandle_t handle = nullptr;

    /* what is wrong with the `nth` call that sets this attribute (with `unfinished` and `twice`: descriptor
     * of this kind); the other value is taken in place of the right one's first bytes */
    Spoil spoil = right;
    int spoilt = 0, nth = 0;
    int64_t value = 0;
    size_t value_bytes = 8;

    std::vector<cudnnBackendDescriptor_t> made;

    cudnnStatus_t set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t of, int64_t n, const void *v)
    {
        if (spoil == right || spoil == unfinished || spoil == twice || (int)name != spoilt || nth-- != 0)
            return cudnnBackendSetAttribute(d, name, of, n, v);
        std::vector<char> bytes((const char *)v, (const char *)v + (size_t)n * 8);
        if (spoil == dropped) return CUDNN_STATUS_SUCCESS;
        if (spoil == wrong_type) of = of == CUDNN_TYPE_INT64 ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_INT64;
        if (spoil == one_less) n--;
        if (spoil == other_value) memcpy(bytes.data(), &value, value_bytes);
        return cudnnBackendSetAttribute(d, name, of, n, bytes.data());
    }

    cudnnStatus_t create(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *d)
    {
        cudnnStatus_t s = cudnnBackendCreateDescriptor(kind, d);
        if (!s) made.push_back(*d);
        return s;
    }

    cudnnStatus_t finish(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t d)
    {
        if ((spoil == unfinished || spoil == twice) && (int)kind == spoilt && nth-- == 0) {
            if (spoil == unfinished) return CUDNN_STATUS_SUCCESS;
            if (cudnnStatus_t s = cudnnBackendFinalize(d)) return s;
        }
        return cudnnBackendFinalize(d);
    }

    std::vector<int64_t> packed(const std::vector<int64_t> &extent) const
    {
        std::vector<int64_t> s(extent.size());
        int64_t step = last ? extent[1] : 1;
        if (last) s[1] = 1;
        for (size_t i = extent.size(); i-- > 0;) {
            if (i == 1 && last) continue;
            s[i] = step;
            step *= extent[i];
        }
        return s;
    }

    cudnnStatus_t tensor(int64_t id, cudnnDataType_t t, const std::vector<int64_t> &extent,
                         const std::vector<int64_t> &strides, bool is_virtual, cudnnBackendDescriptor_t *d)
    {
        const std::vector<int64_t> step = strides.empty() ? packed(extent) : strides;
        const int64_t n = (int64_t)extent.size(), bytes = is_virtual ? 16 : align;
        cudnnStatus_t s = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR, d);
        if (!s) s = set(*d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t);
        if (!s) s = set(*d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, n, extent.data());
        if (!s) s = set(*d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, n, step.data());
        if (!s) s = set(*d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
        if (!s) s = set(*d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &bytes);
        if (!s) s = set(*d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
        return s ? s : finish(CUDNN_BACKEND_TENSOR_DESCRIPTOR, *d);
    }

    cudnnStatus_t window(cudnnBackendDescriptor_t *d)
    {
        const int64_t rank = (int64_t)low.size();
        const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
        const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
        cudnnStatus_t s = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, d);
        if (!s) s = set(*d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &rank);
        if (!s) s = set(*d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
        if (!s) s = set(*d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
        if (!s) s = set(*d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, rank, low.data());
        if (!s) s = set(*d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, rank, high.data());
        if (!s) s = set(*d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, rank, stride.data());
        if (!s) s = set(*d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, rank, dilation.data());
        return s ? s : finish(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, *d);
    }

    /* The pass writes `to` */
    cudnnStatus_t convolution(cudnnBackendDescriptor_t to, cudnnBackendDescriptor_t *d)
    {
        static const cudnnBackendDescriptorType_t kinds[] = {
            CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
        static const cudnnBackendAttributeName_t names[3][6] = {
            {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
            {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
            {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
        const cudnnBackendAttributeName_t *name = names[pass];
        const float one = 1, zero = 0;
        cudnnBackendDescriptor_t xd = to, wd = to, yd = to, c;
        cudnnStatus_t s = CUDNN_STATUS_SUCCESS;
        if (pass != 1) s = tensor('x', type, x, x_stride, false, &xd);
        if (!s && pass != 2) s = tensor('w', type, w, {}, false, &wd);
        if (!s && pass != 0) s = tensor('y', type, y, y_stride, false, &yd);
        if (!s) s = window(&c);
        if (!s) s = create(kinds[pass], d);
        if (!s) s = set(*d, name[0], CUDNN_TYPE_FLOAT, 1, &one);
        if (!s) s = set(*d, name[1], CUDNN_TYPE_FLOAT, 1, &zero);
        if (!s) s = set(*d, name[2], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c);
        if (!s) s = set(*d, name[3], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &xd);
        if (!s) s = set(*d, name[4], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &wd);
        if (!s) s = set(*d, name[5], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &yd);
        return s ? s : finish(kinds[pass], *d);
    }

    /* with = null: relu */
    cudnnStatus_t pointwise(cudnnBackendDescriptor_t from, cudnnBackendDescriptor_t with,
                            cudnnBackendDescriptor_t to, cudnnBackendDescriptor_t *d)
    {
        const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
        const cudnnPointwiseMode_t mode = with ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_RELU_FWD;
        const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
        cudnnBackendDescriptor_t p;
        cudnnStatus_t s = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &p);
        if (!s) s = set(p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
        if (!s) s = set(p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &sums);
        if (!s && !with)
            s = set(p, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
        if (!s && !with) s = set(p, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, 1, &slope);
        if (!s) s = finish(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, p);
        if (!s) s = create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, d);
        if (!s)
            s = set(*d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &p);
        if (!s) s = set(*d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &from);
        if (!s && with)
            s = set(*d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &with);
        if (!s) s = set(*d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
        return s ? s : finish(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, *d);
    }

    cudnnStatus_t graph(cudnnBackendDescriptor_t *d)
    {
        const int n = bias + relu;
        cudnnBackendDescriptor_t step[3], op[3], bd = nullptr;
        cudnnStatus_t s = CUDNN_STATUS_SUCCESS;
        const std::vector<int64_t> &written = pass == 0 ? y : pass == 1 ? x : w, none;
        const std::vector<int64_t> &strides = pass == 0 ? y_stride : pass == 1 ? x_stride : none;
        for (int i = 0; i < n && !s; i++) s = tensor(100 + i, between, written, {}, true, &step[i]);
        if (!s) s = tensor("yxw"[pass], type, written, strides, false, &step[n]);
        if (!s) s = convolution(step[0], &op[0]);
        if (!s && bias) s = tensor('b', bias_type, b, {}, false, &bd);
        if (!s && bias) s = pointwise(step[0], bd, step[1], &op[1]);
        if (!s && relu) s = pointwise(step[n - 1], nullptr, step[n], &op[n]);
        if (!s) s = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, d);
        if (!s && handle) s = set(*d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        if (!s) s = set(*d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n + 1, op);
        return s ? s : finish(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, *d);
    }

    void drop()
    {
        for (cudnnBackendDescriptor_t d : made) cudnnBackendDestroyDescriptor(d);
        made.clear();
    }
};
