#include "fake.h"

#include <cstdlib>
#include <cstring>

Fake fake;

namespace {

bool any_capture = false;
void forbidden_in_capture() { if (any_capture) fake.capture_violations++; }

// Column-major product of f32 matrices. The tests store 16-bit types as zeros, which any type reads.
void product(bool ta, bool tb, int m, int n, int k, float alpha, const float * a, int64_t lda,
             const float * b, int64_t ldb, float beta, float * c, int64_t ldc) {
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < m; i++) {
            float sum = 0;
            for (int l = 0; l < k; l++) sum += (ta ? a[i * lda + l] : a[l * lda + i]) * (tb ? b[l * ldb + j] : b[j * ldb + l]);
            c[j * ldc + i] = alpha * sum + (beta ? beta * c[j * ldc + i] : 0);
        }
    }
}
bool t(hipblasOperation_t op) { return op == HIPBLAS_OP_T; }

} // namespace

struct FakeLt {};
struct FakeDesc { hipblasComputeType_t compute; int32_t ta, tb; };
struct FakeLayout { hipDataType type; int64_t rows, columns, ld; int32_t batch; int64_t stride; uint32_t mode; };
struct FakePreference { uint64_t workspace; };

extern "C" {

hipError_t hipMalloc(void ** memory, size_t size) {
    forbidden_in_capture();
    if (fake.out_of_memory) return hipErrorOutOfMemory;
    *memory = malloc(size);
    fake.allocated++;
    return hipSuccess;
}
hipError_t hipFree(void * memory) { free(memory); fake.allocated--; return hipSuccess; }
hipError_t hipGetLastError(void) { return hipSuccess; }
hipError_t hipMemcpyAsync(void * to, const void * from, size_t size, hipMemcpyKind, hipStream_t) {
    forbidden_in_capture();
    memcpy(to, from, size);
    return hipSuccess;
}
hipError_t hipStreamSynchronize(hipStream_t) { forbidden_in_capture(); fake.synchronizations++; return hipSuccess; }
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus * status) {
    any_capture = stream->capturing;
    *status = stream->capturing ? hipStreamCaptureStatusActive : hipStreamCaptureStatusNone;
    return hipSuccess;
}

hipblasStatus_t hipblasGetStream(hipblasHandle_t handle, hipStream_t * stream) { *stream = handle->stream; return HIPBLAS_STATUS_SUCCESS; }
hipblasStatus_t hipblasDestroy(hipblasHandle_t) { return HIPBLAS_STATUS_SUCCESS; }
hipblasStatus_t hipblasSgemm(hipblasHandle_t, hipblasOperation_t ta, hipblasOperation_t tb, int m, int n, int k,
    const float * alpha, const float * a, int lda, const float * b, int ldb, const float * beta, float * c, int ldc) {
    fake.blas_gemms++;
    product(t(ta), t(tb), m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasSgemmStridedBatched(hipblasHandle_t h, hipblasOperation_t ta, hipblasOperation_t tb, int m, int n, int k,
    const float * alpha, const float * a, int lda, long long sa, const float * b, int ldb, long long sb,
    const float * beta, float * c, int ldc, long long sc, int batch) {
    for (int i = 0; i < batch; i++) hipblasSgemm(h, ta, tb, m, n, k, alpha, a + i * sa, lda, b + i * sb, ldb, beta, c + i * sc, ldc);
    fake.blas_gemms -= batch - 1;
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasSgemmBatched(hipblasHandle_t h, hipblasOperation_t ta, hipblasOperation_t tb, int m, int n, int k,
    const float * alpha, const float * const a[], int lda, const float * const b[], int ldb,
    const float * beta, float * const c[], int ldc, int batch) {
    for (int i = 0; i < batch; i++) hipblasSgemm(h, ta, tb, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc);
    fake.blas_gemms -= batch - 1;
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasGemmEx(hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, int, int, int, const void *,
    const void *, FakeDataType, int, const void *, FakeDataType, int, const void *, void *, FakeDataType, int,
    FakeComputeType, hipblasGemmAlgo_t) { fake.blas_gemms++; return HIPBLAS_STATUS_SUCCESS; }
hipblasStatus_t hipblasGemmStridedBatchedEx(hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, int, int, int, const void *,
    const void *, FakeDataType, int, hipblasStride, const void *, FakeDataType, int, hipblasStride, const void *, void *,
    FakeDataType, int, hipblasStride, int, FakeComputeType, hipblasGemmAlgo_t) { fake.blas_gemms++; return HIPBLAS_STATUS_SUCCESS; }
hipblasStatus_t hipblasGemmBatchedEx(hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, int, int, int, const void *,
    const void * [], FakeDataType, int, const void * [], FakeDataType, int, const void *, void * [],
    FakeDataType, int, int, FakeComputeType, hipblasGemmAlgo_t) { fake.blas_gemms++; return HIPBLAS_STATUS_SUCCESS; }

hipblasStatus_t hipblasLtCreate(hipblasLtHandle_t * handle) {
    forbidden_in_capture();
    *handle = new FakeLt;
    fake.handles++;
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasLtDestroy(hipblasLtHandle_t handle) { delete handle; fake.handles--; return HIPBLAS_STATUS_SUCCESS; }
hipblasStatus_t hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t * desc, hipblasComputeType_t compute, hipDataType) {
    *desc = new FakeDesc{ compute, HIPBLAS_OP_N, HIPBLAS_OP_N };
    fake.objects++;
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasLtMatmulDescDestroy(hipblasLtMatmulDesc_t desc) { delete desc; fake.objects--; return HIPBLAS_STATUS_SUCCESS; }
hipblasStatus_t hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t desc, hipblasLtMatmulDescAttributes_t which, const void * value, size_t size) {
    memcpy(which == HIPBLASLT_MATMUL_DESC_TRANSA ? &desc->ta : &desc->tb, value, size);
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasLtMatrixLayoutCreate(hipblasLtMatrixLayout_t * layout, hipDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
    // The library refuses numbers that are no hipDataType.
    if (type != HIP_R_32F && type != HIP_R_16F && type != HIP_R_16BF) return HIPBLAS_STATUS_INVALID_VALUE;
    *layout = new FakeLayout{ type, int64_t(rows), int64_t(columns), ld, 1, 0, 0 };
    fake.objects++;
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasLtMatrixLayoutDestroy(hipblasLtMatrixLayout_t layout) { delete layout; fake.objects--; return HIPBLAS_STATUS_SUCCESS; }
hipblasStatus_t hipblasLtMatrixLayoutSetAttribute(hipblasLtMatrixLayout_t l, hipblasLtMatrixLayoutAttribute_t which, const void * value, size_t size) {
    void * to = which == HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? static_cast<void *>(&l->batch)
              : which == HIPBLASLT_MATRIX_LAYOUT_BATCH_MODE ? static_cast<void *>(&l->mode) : &l->stride;
    memcpy(to, value, size);
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t * p) { *p = new FakePreference{ 0 }; fake.objects++; return HIPBLAS_STATUS_SUCCESS; }
hipblasStatus_t hipblasLtMatmulPreferenceDestroy(hipblasLtMatmulPreference_t p) { delete p; fake.objects--; return HIPBLAS_STATUS_SUCCESS; }
hipblasStatus_t hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t p, hipblasLtMatmulPreferenceAttributes_t, const void * value, size_t size) {
    memcpy(&p->workspace, value, size);
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasLtMatmulAlgoGetHeuristic(hipblasLtHandle_t, hipblasLtMatmulDesc_t desc, hipblasLtMatrixLayout_t,
    hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t, hipblasLtMatmulPreference_t p,
    int, hipblasLtMatmulHeuristicResult_t * result, int * returned) {
    forbidden_in_capture();
    fake.heuristics++;
    if (fake.heuristic_error) return HIPBLAS_STATUS_INVALID_VALUE;
    const bool none = fake.no_algorithm || (fake.no_fast_f32 && desc->compute == HIPBLAS_COMPUTE_32F_FAST_TF32);
    *returned = none ? 0 : 1;
    result->workspaceSize = p->workspace;
    result->state = HIPBLAS_STATUS_SUCCESS;
    return HIPBLAS_STATUS_SUCCESS;
}
hipblasStatus_t hipblasLtMatmul(hipblasLtHandle_t, hipblasLtMatmulDesc_t desc, const void * alpha, const void * a,
    hipblasLtMatrixLayout_t la, const void * b, hipblasLtMatrixLayout_t lb, const void * beta, const void *,
    hipblasLtMatrixLayout_t, void * d, hipblasLtMatrixLayout_t ld, const hipblasLtMatmulAlgo_t *, void *, size_t, hipStream_t) {
    if (fake.matmul_error) return HIPBLAS_STATUS_INVALID_VALUE;
    fake.lt_gemms++;
    fake.compute = desc->compute;
    fake.alpha = *static_cast<const float *>(alpha), fake.beta = *static_cast<const float *>(beta);
    if (la->type != HIP_R_32F) return HIPBLAS_STATUS_SUCCESS;
    const bool ta = desc->ta == HIPBLAS_OP_T, tb = desc->tb == HIPBLAS_OP_T, pointers = la->mode == HIPBLASLT_BATCH_MODE_POINTER_ARRAY;
    if (pointers) fake.pointer_array_gemms++;
    for (int i = 0; i < ld->batch; i++) {
        const auto at = [&](const void * base, const FakeLayout * l) {
            return pointers ? static_cast<float * const *>(base)[i] : static_cast<float *>(const_cast<void *>(base)) + i * l->stride;
        };
        product(ta, tb, int(ld->rows), int(ld->columns), int(ta ? la->rows : la->columns), *static_cast<const float *>(alpha),
                at(a, la), la->ld, at(b, lb), lb->ld, *static_cast<const float *>(beta), at(d, ld), ld->ld);
    }
    return HIPBLAS_STATUS_SUCCESS;
}

}
