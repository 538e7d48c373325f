/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnn_graph.hpp -- the graph API of the simulated cuDNN: descriptors are attributes until they are finalised,
 * when dnn_graph.cpp makes of them what they stand for. One that is an attribute of another is copied into
 * it: it may be destroyed then.
 */
#pragma once
#include "dnn_conv.hpp"

namespace sim {

struct Node; /* a descriptor */
using NodeRef = std::shared_ptr<const Node>;

struct Attribute {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<char> bytes;
    std::vector<NodeRef> nodes; /* of type BACKEND_DESCRIPTOR */
};

/* A tensor of a graph */
struct GraphTensor {
    cudnnTensorStruct t;
    int64_t id = 0, align = 0;
    bool is_virtual = false;
};

/* relu(b + a pass of the convolution of x by w), the first two where they are there */
struct Fused {
    Pass pass;
    GraphTensor x, w, y, b;
    GraphTensor &result() { return pass == forward ? y : pass == backward_data ? x : w; }
    const GraphTensor &result() const { return pass == forward ? y : pass == backward_data ? x : w; }
    cudnnConvolutionStruct c; /* its padding is that of the low sides */
    int high[3];
    bool bias = false, relu = false;
    double slope = 0;
};

struct Engine {
    int id;
    std::vector<cudnnBackendNumericalNote_t> notes;
    size_t workspace;
    cudnnMathType_t math;
    bool exact; /* sums in one order */
};

struct Node {
    cudnnBackendDescriptorType_t kind;
    bool final = false;
    std::map<int, Attribute> set;
    std::vector<Engine> engines;        /* heuristics: all; a configuration, an engine, a plan: its one */
    std::shared_ptr<const Fused> fused; /* of a graph, and of what is made from it */
    cudnnHandle_t handle = nullptr;

    const Attribute *find(int name) const
    {
        auto at = set.find(name);
        return at == set.end() ? nullptr : &at->second;
    }
    template <class T> T value(int name, int i = 0, T otherwise = T()) const
    {
        const Attribute *a = find(name);
        return a ? ((const T *)a->bytes.data())[i] : otherwise;
    }
    NodeRef node(int name, int i = 0) const
    {
        const Attribute *a = find(name);
        return a && i < (int)a->nodes.size() ? a->nodes[(size_t)i] : nullptr;
    }
};

/* dnn_graph.cpp */
cudnnStatus_t finalise(Node &n);
GraphTensor tensor_of(const Node &n);
/* dnn_engine.cpp: engines for a graph in a mode of the heuristics, the best first */
std::vector<Engine> engines_for(const Fused &f, cudnnBackendHeurMode_t mode);
void note_fused(const Fused &f);
cudnnStatus_t execute(cudnnHandle_t handle, const Node &plan, const Node &pack);

} // namespace sim
