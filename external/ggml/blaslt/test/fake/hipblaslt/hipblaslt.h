// hipBLASLt as the route sees it, on the CPU (fake.cpp).
#pragma once
#include <hipblas/hipblas.h>

#ifndef HIPBLASLT_VERSION_MAJOR
#define HIPBLASLT_VERSION_MAJOR 1
#define HIPBLASLT_VERSION_MINOR 2
#endif
#define HIPBLASLT_VERSION_PATCH 0

typedef struct FakeLt *         hipblasLtHandle_t;
typedef struct FakeDesc *       hipblasLtMatmulDesc_t;
typedef struct FakeLayout *     hipblasLtMatrixLayout_t;
typedef struct FakePreference * hipblasLtMatmulPreference_t;
typedef struct { uint8_t data[16]; } hipblasLtMatmulAlgo_t;
typedef struct { hipblasLtMatmulAlgo_t algo; size_t workspaceSize; hipblasStatus_t state; } hipblasLtMatmulHeuristicResult_t;
typedef enum { HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 0, HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 1,
               HIPBLASLT_MATRIX_LAYOUT_BATCH_MODE = 7 } hipblasLtMatrixLayoutAttribute_t;
typedef enum { HIPBLASLT_BATCH_MODE_STRIDED = 0, HIPBLASLT_BATCH_MODE_POINTER_ARRAY = 1 } hipblasLtBatchMode_t;
typedef enum { HIPBLASLT_MATMUL_DESC_TRANSA = 0, HIPBLASLT_MATMUL_DESC_TRANSB = 1 } hipblasLtMatmulDescAttributes_t;
typedef enum { HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1 } hipblasLtMatmulPreferenceAttributes_t;

extern "C" {
hipblasStatus_t hipblasLtCreate(hipblasLtHandle_t * handle);
hipblasStatus_t hipblasLtDestroy(hipblasLtHandle_t handle);
hipblasStatus_t hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t *, hipblasComputeType_t, hipDataType scale);
hipblasStatus_t hipblasLtMatmulDescDestroy(hipblasLtMatmulDesc_t);
hipblasStatus_t hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t, hipblasLtMatmulDescAttributes_t, const void *, size_t);
hipblasStatus_t hipblasLtMatrixLayoutCreate(hipblasLtMatrixLayout_t *, hipDataType, uint64_t rows, uint64_t columns, int64_t ld);
hipblasStatus_t hipblasLtMatrixLayoutDestroy(hipblasLtMatrixLayout_t);
hipblasStatus_t hipblasLtMatrixLayoutSetAttribute(hipblasLtMatrixLayout_t, hipblasLtMatrixLayoutAttribute_t, const void *, size_t);
hipblasStatus_t hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t *);
hipblasStatus_t hipblasLtMatmulPreferenceDestroy(hipblasLtMatmulPreference_t);
hipblasStatus_t hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t, hipblasLtMatmulPreferenceAttributes_t, const void *, size_t);
hipblasStatus_t hipblasLtMatmulAlgoGetHeuristic(hipblasLtHandle_t, hipblasLtMatmulDesc_t, hipblasLtMatrixLayout_t a,
    hipblasLtMatrixLayout_t b, hipblasLtMatrixLayout_t c, hipblasLtMatrixLayout_t d, hipblasLtMatmulPreference_t,
    int requested, hipblasLtMatmulHeuristicResult_t *, int * returned);
hipblasStatus_t hipblasLtMatmul(hipblasLtHandle_t, hipblasLtMatmulDesc_t, const void * alpha, const void * a,
    hipblasLtMatrixLayout_t, const void * b, hipblasLtMatrixLayout_t, const void * beta, const void * c,
    hipblasLtMatrixLayout_t, void * d, hipblasLtMatrixLayout_t, const hipblasLtMatmulAlgo_t *, void * workspace,
    size_t workspace_size, hipStream_t);
}
