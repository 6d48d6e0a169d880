// The functions that ggml's GEMM calls land on (route.h): BLASLt first, then the call ggml meant.
#include "matmul.h"

#include <cstring>

using namespace blaslt;

namespace {

// Scalars have the compute type: half for a 16-bit computation, which BLASLt then does in f32.
float scalar(const void * value, audiocpp_blas_compute_type compute) {
#if defined(GGML_USE_HIP) && HIP_VERSION < 60500000
    const bool half = compute == HIPBLAS_R_16F;
#else
    const bool half = compute == BLAS_ENUM(COMPUTE_16F);
#endif
    if (!half) {
        float f;
        memcpy(&f, value, sizeof f);
        return f;
    }
    uint16_t h;
    memcpy(&h, value, sizeof h);
    return half_to_float(h);
}

int32_t data_type(audiocpp_blas_data_type type) { return hip_data_type(int32_t(type)); }

constexpr int32_t F32 = int32_t(DATA_TYPE(R_32F));

} // namespace

extern "C" {

Status audiocpp_GemmStridedBatchedEx(
    Blas handle, Operation op_a, Operation op_b, int m, int n, int k, const void * alpha,
    const void * a, audiocpp_blas_data_type type_a, int lda, long long stride_a,
    const void * b, audiocpp_blas_data_type type_b, int ldb, long long stride_b, const void * beta,
    void * c, audiocpp_blas_data_type type_c, int ldc, long long stride_c, int batch,
    audiocpp_blas_compute_type compute, audiocpp_blas_gemm_algo algo) {
    const Gemm gemm{ handle, op_a, op_b, m, n, k, scalar(alpha, compute), scalar(beta, compute),
        a, data_type(type_a), lda, stride_a, b, data_type(type_b), ldb, stride_b,
        c, data_type(type_c), ldc, stride_c, batch, false };
    if (try_gemm(gemm)) return OK;
    return AUDIOCPP_BLAS(GemmStridedBatchedEx)(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, stride_a,
        b, type_b, ldb, stride_b, beta, c, type_c, ldc, stride_c, batch, compute, algo);
}

Status audiocpp_GemmEx(
    Blas handle, Operation op_a, Operation op_b, int m, int n, int k, const void * alpha,
    const void * a, audiocpp_blas_data_type type_a, int lda,
    const void * b, audiocpp_blas_data_type type_b, int ldb, const void * beta,
    void * c, audiocpp_blas_data_type type_c, int ldc,
    audiocpp_blas_compute_type compute, audiocpp_blas_gemm_algo algo) {
    const Gemm gemm{ handle, op_a, op_b, m, n, k, scalar(alpha, compute), scalar(beta, compute),
        a, data_type(type_a), lda, 0, b, data_type(type_b), ldb, 0, c, data_type(type_c), ldc, 0, 1, false };
    if (try_gemm(gemm)) return OK;
    return AUDIOCPP_BLAS(GemmEx)(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta,
        c, type_c, ldc, compute, algo);
}

Status audiocpp_GemmBatchedEx(
    Blas handle, Operation op_a, Operation op_b, int m, int n, int k, const void * alpha,
    const void * const * a, audiocpp_blas_data_type type_a, int lda,
    const void * const * b, audiocpp_blas_data_type type_b, int ldb, const void * beta,
    void * const * c, audiocpp_blas_data_type type_c, int ldc, int batch,
    audiocpp_blas_compute_type compute, audiocpp_blas_gemm_algo algo) {
    const auto out = const_cast<void **>(c);
    const Gemm gemm{ handle, op_a, op_b, m, n, k, scalar(alpha, compute), scalar(beta, compute),
        a, data_type(type_a), lda, 0, b, data_type(type_b), ldb, 0, out, data_type(type_c), ldc, 0, batch, true };
    if (try_gemm(gemm)) return OK;
    return AUDIOCPP_BLAS(GemmBatchedEx)(handle, op_a, op_b, m, n, k, alpha, const_cast<const void **>(a), type_a, lda,
        const_cast<const void **>(b), type_b, ldb, beta, out, type_c, ldc, batch, compute, algo);
}

Status audiocpp_Sgemm(
    Blas handle, Operation op_a, Operation op_b, int m, int n, int k, const float * alpha, const float * a, int lda,
    const float * b, int ldb, const float * beta, float * c, int ldc) {
    const Gemm gemm{ handle, op_a, op_b, m, n, k, *alpha, *beta, a, F32, lda, 0, b, F32, ldb, 0, c, F32, ldc, 0, 1, false };
    if (try_gemm(gemm)) return OK;
    return AUDIOCPP_BLAS(Sgemm)(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

Status audiocpp_SgemmStridedBatched(
    Blas handle, Operation op_a, Operation op_b, int m, int n, int k, const float * alpha, const float * a, int lda,
    long long stride_a, const float * b, int ldb, long long stride_b, const float * beta,
    float * c, int ldc, long long stride_c, int batch) {
    const Gemm gemm{ handle, op_a, op_b, m, n, k, *alpha, *beta, a, F32, lda, stride_a, b, F32, ldb, stride_b,
        c, F32, ldc, stride_c, batch, false };
    if (try_gemm(gemm)) return OK;
    return AUDIOCPP_BLAS(SgemmStridedBatched)(handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b,
        beta, c, ldc, stride_c, batch);
}

Status audiocpp_SgemmBatched(
    Blas handle, Operation op_a, Operation op_b, int m, int n, int k, const float * alpha, const float * const * a,
    int lda, const float * const * b, int ldb, const float * beta, float * const * c, int ldc, int batch) {
    const Gemm gemm{ handle, op_a, op_b, m, n, k, *alpha, *beta, a, F32, lda, 0, b, F32, ldb, 0,
        const_cast<float **>(c), F32, ldc, 0, batch, true };
    if (try_gemm(gemm)) return OK;
    return AUDIOCPP_BLAS(SgemmBatched)(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch);
}

Status audiocpp_BlasDestroy(Blas handle) {
    release(handle);
    return AUDIOCPP_BLAS(Destroy)(handle);
}

}
