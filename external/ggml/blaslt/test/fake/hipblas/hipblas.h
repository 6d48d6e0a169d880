// hipBLAS as the route sees it: types, and GEMM on the CPU (fake.cpp).
#pragma once
#include <hip/hip_runtime_api.h>

typedef struct FakeBlas * hipblasHandle_t;
typedef enum { HIPBLAS_STATUS_SUCCESS = 0, HIPBLAS_STATUS_INVALID_VALUE = 3, HIPBLAS_STATUS_NOT_SUPPORTED = 7 } hipblasStatus_t;
typedef enum { HIPBLAS_OP_N = 111, HIPBLAS_OP_T = 112 } hipblasOperation_t;
typedef enum { HIPBLAS_COMPUTE_16F = 0, HIPBLAS_COMPUTE_32F = 2, HIPBLAS_COMPUTE_32F_FAST_TF32 = 6 } hipblasComputeType_t;
typedef enum { HIPBLAS_GEMM_DEFAULT = 160 } hipblasGemmAlgo_t;
typedef enum { HIPBLAS_R_16F = 150, HIPBLAS_R_32F = 151, HIPBLAS_R_16B = 168 } hipblasDatatype_t;
typedef int64_t hipblasStride;

#if HIP_VERSION >= 60500000
typedef hipDataType          FakeDataType;
typedef hipblasComputeType_t FakeComputeType;
#else
typedef hipblasDatatype_t    FakeDataType;
typedef hipblasDatatype_t    FakeComputeType;
#endif

extern "C" {
hipblasStatus_t hipblasGetStream(hipblasHandle_t handle, hipStream_t * stream);
hipblasStatus_t hipblasDestroy(hipblasHandle_t handle);
hipblasStatus_t hipblasGemmEx(hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, int m, int n, int k,
    const void * alpha, const void * a, FakeDataType, int lda, const void * b, FakeDataType, int ldb,
    const void * beta, void * c, FakeDataType, int ldc, FakeComputeType, hipblasGemmAlgo_t);
hipblasStatus_t hipblasGemmStridedBatchedEx(hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, int m, int n, int k,
    const void * alpha, const void * a, FakeDataType, int lda, hipblasStride, const void * b, FakeDataType, int ldb, hipblasStride,
    const void * beta, void * c, FakeDataType, int ldc, hipblasStride, int batch, FakeComputeType, hipblasGemmAlgo_t);
hipblasStatus_t hipblasGemmBatchedEx(hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, int m, int n, int k,
    const void * alpha, const void * a[], FakeDataType, int lda, const void * b[], FakeDataType, int ldb,
    const void * beta, void * c[], FakeDataType, int ldc, int batch, FakeComputeType, hipblasGemmAlgo_t);
hipblasStatus_t hipblasSgemm(hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, int m, int n, int k,
    const float * alpha, const float * a, int lda, const float * b, int ldb, const float * beta, float * c, int ldc);
hipblasStatus_t hipblasSgemmStridedBatched(hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, int m, int n, int k,
    const float * alpha, const float * a, int lda, long long, const float * b, int ldb, long long,
    const float * beta, float * c, int ldc, long long, int batch);
hipblasStatus_t hipblasSgemmBatched(hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, int m, int n, int k,
    const float * alpha, const float * const a[], int lda, const float * const b[], int ldb,
    const float * beta, float * const c[], int ldc, int batch);
}
