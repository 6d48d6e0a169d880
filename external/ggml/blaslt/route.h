// Force-included (-include) into every source of ggml-hip, or of ggml-cuda for tests on NVIDIA
// hardware. Sends ggml's GEMM calls to the functions of entry.cpp, which try hipBLASLt (cuBLASLt)
// and fall back to the library that ggml meant. No ggml source is changed: ggml maps cublasX to
// hipblasX, and the macros here, defined after the library's header was read, map hipblasX to ours.
#pragma once
#if defined(__cplusplus)

#if defined(GGML_USE_HIP)
// ggml's own header wants this before the first HIP header.
#define HIP_DISABLE_WARP_SYNC_BUILTINS 1
#include <hipblas/hipblas.h>
#define AUDIOCPP_BLAS(name) hipblas##name
#if HIP_VERSION >= 60500000
typedef hipDataType          audiocpp_blas_data_type;
typedef hipblasComputeType_t audiocpp_blas_compute_type;
#else
typedef hipblasDatatype_t    audiocpp_blas_data_type;
typedef hipblasDatatype_t    audiocpp_blas_compute_type;
#endif
typedef hipblasGemmAlgo_t    audiocpp_blas_gemm_algo;
#else
#include <cublas_v2.h>
#define AUDIOCPP_BLAS(name) cublas##name
typedef cudaDataType_t       audiocpp_blas_data_type;
typedef cublasComputeType_t  audiocpp_blas_compute_type;
typedef cublasGemmAlgo_t     audiocpp_blas_gemm_algo;
#endif

extern "C" {
AUDIOCPP_BLAS(Status_t) audiocpp_GemmEx(
    AUDIOCPP_BLAS(Handle_t) handle, AUDIOCPP_BLAS(Operation_t) op_a, AUDIOCPP_BLAS(Operation_t) op_b,
    int m, int n, int k, const void * alpha,
    const void * a, audiocpp_blas_data_type type_a, int lda,
    const void * b, audiocpp_blas_data_type type_b, int ldb, const void * beta,
    void * c, audiocpp_blas_data_type type_c, int ldc,
    audiocpp_blas_compute_type compute, audiocpp_blas_gemm_algo algo);
AUDIOCPP_BLAS(Status_t) audiocpp_GemmStridedBatchedEx(
    AUDIOCPP_BLAS(Handle_t) handle, AUDIOCPP_BLAS(Operation_t) op_a, AUDIOCPP_BLAS(Operation_t) op_b,
    int m, int n, int k, const void * alpha,
    const void * a, audiocpp_blas_data_type type_a, int lda, long long stride_a,
    const void * b, audiocpp_blas_data_type type_b, int ldb, long long stride_b, const void * beta,
    void * c, audiocpp_blas_data_type type_c, int ldc, long long stride_c, int batch,
    audiocpp_blas_compute_type compute, audiocpp_blas_gemm_algo algo);
AUDIOCPP_BLAS(Status_t) audiocpp_GemmBatchedEx(
    AUDIOCPP_BLAS(Handle_t) handle, AUDIOCPP_BLAS(Operation_t) op_a, AUDIOCPP_BLAS(Operation_t) op_b,
    int m, int n, int k, const void * alpha,
    const void * const * a, audiocpp_blas_data_type type_a, int lda,
    const void * const * b, audiocpp_blas_data_type type_b, int ldb, const void * beta,
    void * const * c, audiocpp_blas_data_type type_c, int ldc, int batch,
    audiocpp_blas_compute_type compute, audiocpp_blas_gemm_algo algo);
AUDIOCPP_BLAS(Status_t) audiocpp_Sgemm(
    AUDIOCPP_BLAS(Handle_t) handle, AUDIOCPP_BLAS(Operation_t) op_a, AUDIOCPP_BLAS(Operation_t) op_b,
    int m, int n, int k, const float * alpha, const float * a, int lda,
    const float * b, int ldb, const float * beta, float * c, int ldc);
AUDIOCPP_BLAS(Status_t) audiocpp_SgemmStridedBatched(
    AUDIOCPP_BLAS(Handle_t) handle, AUDIOCPP_BLAS(Operation_t) op_a, AUDIOCPP_BLAS(Operation_t) op_b,
    int m, int n, int k, const float * alpha, const float * a, int lda, long long stride_a,
    const float * b, int ldb, long long stride_b, const float * beta,
    float * c, int ldc, long long stride_c, int batch);
AUDIOCPP_BLAS(Status_t) audiocpp_SgemmBatched(
    AUDIOCPP_BLAS(Handle_t) handle, AUDIOCPP_BLAS(Operation_t) op_a, AUDIOCPP_BLAS(Operation_t) op_b,
    int m, int n, int k, const float * alpha, const float * const * a, int lda,
    const float * const * b, int ldb, const float * beta, float * const * c, int ldc, int batch);
AUDIOCPP_BLAS(Status_t) audiocpp_BlasDestroy(AUDIOCPP_BLAS(Handle_t) handle);
}

#if !defined(AUDIOCPP_BLASLT_IMPLEMENTATION)
#if defined(GGML_USE_HIP)
#define hipblasGemmEx              audiocpp_GemmEx
#define hipblasGemmStridedBatchedEx audiocpp_GemmStridedBatchedEx
#define hipblasGemmBatchedEx       audiocpp_GemmBatchedEx
#define hipblasSgemm               audiocpp_Sgemm
#define hipblasSgemmStridedBatched audiocpp_SgemmStridedBatched
#define hipblasSgemmBatched        audiocpp_SgemmBatched
#define hipblasDestroy             audiocpp_BlasDestroy
#else
// cublas_v2.h defines these two as macros.
#undef cublasSgemm
#undef cublasDestroy
#define cublasGemmEx               audiocpp_GemmEx
#define cublasGemmStridedBatchedEx audiocpp_GemmStridedBatchedEx
#define cublasGemmBatchedEx        audiocpp_GemmBatchedEx
#define cublasSgemm                audiocpp_Sgemm
#define cublasSgemmStridedBatched  audiocpp_SgemmStridedBatched
#define cublasSgemmBatched         audiocpp_SgemmBatched
#define cublasDestroy              audiocpp_BlasDestroy
#endif
// The plugin's entry point is ours too (plugin.cpp): it adds our functions to those that ggml's
// registry answers for by name.
#define ggml_backend_init audiocpp_ggml_backend_init
#endif

#endif // __cplusplus
