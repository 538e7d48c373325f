/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.hpp -- tensors on the simulated device for the tests of its numbers, and how far two of them are
 * apart. */
#pragma once
#include "check.hpp"
#include "number.hpp"
#include <cmath>
#include <cudnn.h>

using sim::Kind;

static inline double noise(int i)
{
    return (double)((i * 1103 + 12345) % 2003) / 1001.0 - 1;
}

/* A tensor on the device: values in logical order, where they lie, and a descriptor of them; cells between
 * them hold 77 and must keep it */
struct Tensor {
    cudnnDataType_t type;
    Kind kind;
    std::vector<int> extent, stride;
    std::vector<double> v;
    void *p = nullptr;
    size_t room = 0;
    cudnnTensorDescriptor_t d;

    size_t at(size_t i) const
    {
        size_t a = 0;
        for (int k = (int)extent.size() - 1; k >= 0; k--) {
            a += i % (size_t)extent[(size_t)k] * (size_t)stride[(size_t)k];
            i /= (size_t)extent[(size_t)k];
        }
        return a;
    }

    void write()
    {
        std::vector<char> host(room * sim::size_of(kind));
        for (size_t i = 0; i < room; i++) sim::store(kind, host.data(), i, 77);
        for (size_t i = 0; i < v.size(); i++) sim::store(kind, host.data(), at(i), v[i]);
        for (size_t i = 0; i < v.size(); i++) v[i] = sim::load(kind, host.data(), at(i)); /* as rounded */
        GOOD(cudaMemcpy(p, host.data(), host.size(), cudaMemcpyHostToDevice));
    }

    /* The values now; whatever lies between them is as it was */
    std::vector<double> read() const
    {
        std::vector<char> host(room * sim::size_of(kind)), ours(room, 0);
        std::vector<double> now(v.size());
        GOOD(cudaMemcpy(host.data(), p, host.size(), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < v.size(); i++) {
            now[i] = sim::load(kind, host.data(), at(i));
            ours[at(i)] = 1;
        }
        for (size_t i = 0; i < room; i++) HOLDS(ours[i] || sim::load(kind, host.data(), i) == 77);
        return now;
    }
};

static inline Tensor make(cudnnDataType_t type, std::vector<int> extent, bool last, int margin, int seed)
{
    static const Kind kinds[] = {Kind::f32, Kind::f64, Kind::f16};
    Tensor t;
    t.type = type;
    t.kind = type == CUDNN_DATA_BFLOAT16 ? Kind::bf16 : kinds[type];
    t.extent = extent;
    t.stride.resize(extent.size());
    int step = 1;
    if (last) t.stride[1] = 1, step = extent[1];
    for (size_t i = extent.size(); i-- > 0;) {
        if (i == 1 && last) continue;
        t.stride[i] = step;
        step *= extent[i] + (i >= 2 ? margin : 0);
    }
    t.room = (size_t)step;
    size_t n = 1;
    for (int e : extent) n *= (size_t)e;
    for (size_t i = 0; i < n; i++) t.v.push_back(noise((int)i + seed));
    GOOD(cudaMalloc(&t.p, t.room * sim::size_of(t.kind)));
    GOOD(cudnnCreateTensorDescriptor(&t.d));
    GOOD(cudnnSetTensorNdDescriptor(t.d, type, (int)extent.size(), extent.data(), t.stride.data()));
    t.write();
    return t;
}

/* max |a - b| over max |b| */
static inline double distance(const std::vector<double> &a, const std::vector<double> &b)
{
    double worst = 0, scale = 0;
    for (size_t i = 0; i < b.size(); i++) {
        double d = std::fabs(a[i] - b[i]);
        if (!(d <= worst)) worst = d;
        scale = std::fmax(scale, std::fabs(b[i]));
    }
    return worst / (scale > 0 ? scale : 1);
}
