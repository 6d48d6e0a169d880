// One set of names for hipBLASLt and cuBLASLt, and for their runtimes. Names and enum values are
// all that differs between the two in what is used here.
#pragma once
#define AUDIOCPP_BLASLT_IMPLEMENTATION
#include "route.h"
#include "convert.h"

#if defined(GGML_USE_HIP)

#include <hip/hip_runtime_api.h>
#include <hipblaslt/hipblaslt.h>
#if __has_include(<hipblaslt/hipblaslt-version.h>)
#include <hipblaslt/hipblaslt-version.h>
#endif
#define GPU(name)      hip##name
#define LT(name)       hipblasLt##name
#define LT_ENUM(name)  HIPBLASLT_##name
#define BLAS_ENUM(name) HIPBLAS_##name
#define DATA_TYPE(name) HIP_##name
#define BLASLT_NAME    "hipBLASLt"
#define BLASLT_MAJOR   HIPBLASLT_VERSION_MAJOR
#define BLASLT_MINOR   HIPBLASLT_VERSION_MINOR
#define BLASLT_PATCH   HIPBLASLT_VERSION_PATCH
// Pointer-array batches came with 1.3.0.
#define BLASLT_POINTER_ARRAY (HIPBLASLT_VERSION_MAJOR > 1 || (HIPBLASLT_VERSION_MAJOR == 1 && HIPBLASLT_VERSION_MINOR >= 3))

#else

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#define GPU(name)      cuda##name
#define LT(name)       cublasLt##name
#define LT_ENUM(name)  CUBLASLT_##name
#define BLAS_ENUM(name) CUBLAS_##name
#define DATA_TYPE(name) CUDA_##name
#define BLASLT_NAME    "cuBLASLt"
#define BLASLT_MAJOR   CUBLAS_VER_MAJOR
#define BLASLT_MINOR   CUBLAS_VER_MINOR
#define BLASLT_PATCH   CUBLAS_VER_PATCH
#define BLASLT_POINTER_ARRAY (CUBLAS_VER_MAJOR >= 13)

#endif

#define BLASLT_TEXT_(x) #x
#define BLASLT_TEXT(x)  BLASLT_TEXT_(x)
#define BLASLT_LIBRARY  BLASLT_NAME " " BLASLT_TEXT(BLASLT_MAJOR) "." BLASLT_TEXT(BLASLT_MINOR) "." BLASLT_TEXT(BLASLT_PATCH)

namespace blaslt {

using Status    = AUDIOCPP_BLAS(Status_t);
using Operation = AUDIOCPP_BLAS(Operation_t);
using Blas      = AUDIOCPP_BLAS(Handle_t);
using Stream    = GPU(Stream_t);
// What BLASLt calls a type: also under ROCm below 6.5, where hipBLAS has another enum.
using LtDataType = decltype(DATA_TYPE(R_32F));

constexpr Status OK = BLAS_ENUM(STATUS_SUCCESS);

// GPU kernels with wide loads may assume 16-byte aligned matrices. cuBLASLt is told the true
// alignment; hipBLASLt has no such attribute.
#if defined(GGML_USE_HIP)
constexpr bool tells_alignment = false;
#else
constexpr bool tells_alignment = true;
#endif

} // namespace blaslt
