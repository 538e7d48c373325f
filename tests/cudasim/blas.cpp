/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blas.cpp -- the matrix products of the simulated cuBLAS: C = alpha op(A) op(B) + beta C, column by column,
 * in double, one or a batch of them at equal distances. f32 operands are rounded to TF32 where the math mode
 * or the compute type asks for it (the default does not) and the device has it. With beta = 0 the old C is
 * not read. Factors are read at the call, from host memory.
 */
#include "number.hpp"
#include "sim.hpp"
#include <cublas_v2.h>
#include <set>

struct cublasContext {
    cudaStream_t stream = nullptr;
    int device = 0;
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
    void *workspace = nullptr;
    size_t workspace_bytes = 0;
};

namespace sim {

static std::set<cublasHandle_t> &handles()
{
    static auto *set = new std::set<cublasHandle_t>;
    return *set;
}

static cublasStatus_t blas_refused(cublasStatus_t status, const char *what)
{
    refused("cuBLAS: needs %s", what);
    return status;
}
#define BLAS_NEED(condition, status)                                                                         \
    do {                                                                                                     \
        if (!(condition)) return ::sim::blas_refused(status, #condition);                                    \
    } while (0)

static Kind kind_of(cudaDataType_t t)
{
    switch (t) {
    case CUDA_R_32F:
        return Kind::f32;
    case CUDA_R_64F:
        return Kind::f64;
    case CUDA_R_16F:
        return Kind::f16;
    case CUDA_R_16BF:
        return Kind::bf16;
    default:
        return Kind::none;
    }
}

struct Matrix { /* rows x columns as stored, a leading dimension; in a batch each begins `step` elements after
                   the one before */
    const void *p;
    cudaDataType_t type;
    int rows, columns, leading;
    long long step;
};

struct Product {
    int m, n, k, batch;
    bool ta, tb;
    Matrix a, b, c;
    double alpha, beta;
    bool tf32;
};

static Touch touch_of(const Matrix &m, int batch, bool write)
{
    int64_t extent[3] = {batch, m.columns, m.rows}, stride[3] = {m.step, m.leading, 1};
    return strided(m.p, 3, extent, stride, (int64_t)size_of(kind_of(m.type)), write);
}

static std::vector<double> gather(const Matrix &m, const void *p, int64_t which, bool tf32)
{
    std::vector<double> v;
    Kind k = kind_of(m.type);
    for (int j = 0; j < m.columns; j++)
        for (int i = 0; i < m.rows; i++) {
            double d = load(k, p, (size_t)(which * m.step + (int64_t)j * m.leading + i));
            v.push_back(tf32 && k == Kind::f32 ? round_tf32(d) : d);
        }
    return v;
}

static void multiply(const Product &p, const void *a, const void *b, void *c)
{
    Kind kind = kind_of(p.c.type);
    for (int64_t which = 0; which < p.batch; which++) {
        std::vector<double> A = gather(p.a, a, which, p.tf32), B = gather(p.b, b, which, p.tf32);
        for (int j = 0; j < p.n; j++)
            for (int i = 0; i < p.m; i++) {
                double sum = 0;
                for (int l = 0; l < p.k; l++)
                    sum += A[(size_t)(p.ta ? (int64_t)i * p.k + l : (int64_t)l * p.m + i)] *
                           B[(size_t)(p.tb ? (int64_t)l * p.n + j : (int64_t)j * p.k + l)];
                size_t at = (size_t)(which * p.c.step + (int64_t)j * p.c.leading + i);
                store(kind, c, at, p.alpha * sum + (p.beta != 0 ? p.beta * load(kind, c, at) : 0));
            }
    }
}

static cublasStatus_t check(cublasHandle_t h, const Product &p)
{
    BLAS_NEED(handles().count(h), CUBLAS_STATUS_NOT_INITIALIZED);
    BLAS_NEED(h->device == current_device(), CUBLAS_STATUS_INVALID_VALUE);
    BLAS_NEED(p.m >= 0 && p.n >= 0 && p.k >= 0 && p.batch >= 0, CUBLAS_STATUS_INVALID_VALUE);
    BLAS_NEED(p.a.leading >= p.a.rows && p.b.leading >= p.b.rows && p.c.leading >= p.c.rows,
              CUBLAS_STATUS_INVALID_VALUE);
    Kind a = kind_of(p.a.type), c = kind_of(p.c.type);
    BLAS_NEED(a != Kind::none && c != Kind::none && p.a.type == p.b.type, CUBLAS_STATUS_NOT_SUPPORTED);
    BLAS_NEED(a == c || (c == Kind::f32 && a != Kind::f64), CUBLAS_STATUS_NOT_SUPPORTED);
    BLAS_NEED((a != Kind::bf16 && c != Kind::bf16) || settings().sm >= 80, CUBLAS_STATUS_ARCH_MISMATCH);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t product(cublasHandle_t h, const char *name, const Product &p)
{
    if (cublasStatus_t status = check(h, p)) return status;
    if (p.m == 0 || p.n == 0 || p.batch == 0) return CUBLAS_STATUS_SUCCESS;
    Touch ta = touch_of(p.a, p.batch, false), tb = touch_of(p.b, p.batch, false),
          tc = touch_of(p.c, p.batch, true);
    for (const Touch *t : {&ta, &tb, &tc}) {
        if (t->bytes == 0 || translate(t->p, t->bytes, false)) continue;
        return blas_refused(CUBLAS_STATUS_EXECUTION_FAILED, why_not(t->p, t->bytes).c_str());
    }
    const void *a = translate(ta.p, ta.bytes, false), *b = translate(tb.p, tb.bytes, false);
    void *c = translate(tc.p, tc.bytes, false);
    if (usable() || planted(CUDASIM_CUBLAS)) return CUBLAS_STATUS_EXECUTION_FAILED;
    Task task{name, {ta, tb, tc}, nullptr, nullptr, nullptr};
    if (h->workspace) task.touches.push_back(span(h->workspace, h->workspace_bytes, true));
    void *w = h->workspace ? translate(h->workspace, h->workspace_bytes, false) : nullptr;
    size_t bytes = h->workspace_bytes;
    task.run = [=] {
        if (w) memset(w, 0xff, bytes);
        multiply(p, a, b, c);
    };
    return enqueue(h->stream, std::move(task)) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

} // namespace sim

using namespace sim;

cublasStatus_t cublasCreate_v2(cublasHandle_t *h)
{
    Lock lock;
    if (usable() || planted(CUDASIM_CREATE)) return CUBLAS_STATUS_NOT_INITIALIZED;
    *h = new cublasContext;
    (*h)->device = current_device();
    handles().insert(*h);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t h)
{
    Lock lock;
    BLAS_NEED(handles().erase(h), CUBLAS_STATUS_NOT_INITIALIZED);
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}

/* As in cuBLAS, the workspace goes back to the library's own */
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream)
{
    Lock lock;
    BLAS_NEED(handles().count(h), CUBLAS_STATUS_NOT_INITIALIZED);
    Stream *s = resolve(stream);
    BLAS_NEED(s && s->device == h->device, CUBLAS_STATUS_INVALID_VALUE);
    h->stream = stream;
    h->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t h, cudaStream_t *stream)
{
    Lock lock;
    BLAS_NEED(handles().count(h), CUBLAS_STATUS_NOT_INITIALIZED);
    *stream = h->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t math)
{
    Lock lock;
    BLAS_NEED(handles().count(h), CUBLAS_STATUS_NOT_INITIALIZED);
    h->math = math;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t h, cublasMath_t *math)
{
    Lock lock;
    BLAS_NEED(handles().count(h), CUBLAS_STATUS_NOT_INITIALIZED);
    *math = h->math;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t h, cublasPointerMode_t mode)
{
    Lock lock;
    BLAS_NEED(handles().count(h), CUBLAS_STATUS_NOT_INITIALIZED);
    BLAS_NEED(mode == CUBLAS_POINTER_MODE_HOST, CUBLAS_STATUS_NOT_SUPPORTED);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t h, cublasAtomicsMode_t)
{
    Lock lock;
    BLAS_NEED(handles().count(h), CUBLAS_STATUS_NOT_INITIALIZED);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *workspace, size_t bytes)
{
    Lock lock;
    BLAS_NEED(handles().count(h), CUBLAS_STATUS_NOT_INITIALIZED);
    BLAS_NEED(bytes == 0 || translate(workspace, bytes, false), CUBLAS_STATUS_INVALID_VALUE);
    BLAS_NEED((uintptr_t)workspace % 256 == 0, CUBLAS_STATUS_INVALID_VALUE);
    h->workspace = bytes ? workspace : nullptr;
    h->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *version)
{
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "the operation succeeded";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library is not initialised";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter";
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return "a feature that the device does not have";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the GPU program failed to execute";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality is not supported";
    default:
        return "unknown status";
    }
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    return cublasGetStatusString(status);
}

static bool wants_tf32(cublasHandle_t h, cublasComputeType_t compute)
{
    if (settings().sm < 80) return false;
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return true;
    return compute == CUBLAS_COMPUTE_32F && handles().count(h) && h->math == CUBLAS_TF32_TENSOR_OP_MATH;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                                          int n, int k, const void *alpha, const void *a, cudaDataType_t at,
                                          int lda, long long int sa, const void *b, cudaDataType_t bt,
                                          int ldb, long long int sb, const void *beta, void *c,
                                          cudaDataType_t ct, int ldc, long long int sc, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t)
{
    Lock lock;
    bool f64 = compute == CUBLAS_COMPUTE_64F, fa = ta != CUBLAS_OP_N, fb = tb != CUBLAS_OP_N;
    BLAS_NEED(alpha && beta, CUBLAS_STATUS_INVALID_VALUE);
    BLAS_NEED(compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                  compute == CUBLAS_COMPUTE_32F_PEDANTIC || f64,
              CUBLAS_STATUS_NOT_SUPPORTED); /* sums in half are refused on purpose */
    BLAS_NEED(f64 == (at == CUDA_R_64F), CUBLAS_STATUS_NOT_SUPPORTED);
    Product p{m,
              n,
              k,
              batch,
              fa,
              fb,
              {a, at, fa ? k : m, fa ? m : k, lda, sa},
              {b, bt, fb ? n : k, fb ? k : n, ldb, sb},
              {c, ct, m, n, ldc, sc},
              f64 ? *(const double *)alpha : (double)*(const float *)alpha,
              f64 ? *(const double *)beta : (double)*(const float *)beta,
              wants_tf32(h, compute)};
    return product(h, "cublasGemm", p);
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType_t at, int lda, const void *b,
                            cudaDataType_t bt, int ldb, const void *beta, void *c, cudaDataType_t ct, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0, beta, c, ct,
                                      ldc, 0, 1, compute, algorithm);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                              int k, const float *alpha, const float *a, int lda, const float *b, int ldb,
                              const float *beta, float *c, int ldc)
{
    return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, CUDA_R_32F, lda, b, CUDA_R_32F, ldb, beta, c,
                        CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                              int k, const double *alpha, const double *a, int lda, const double *b, int ldb,
                              const double *beta, double *c, int ldc)
{
    return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, CUDA_R_64F, lda, b, CUDA_R_64F, ldb, beta, c,
                        CUDA_R_64F, ldc, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT);
}
