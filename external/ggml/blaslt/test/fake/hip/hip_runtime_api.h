// A HIP runtime in ordinary memory, for testing the route without a GPU (fake.h).
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifndef HIP_VERSION
#define HIP_VERSION 70200000
#endif

typedef struct FakeStream * hipStream_t;
typedef enum { hipSuccess = 0, hipErrorOutOfMemory = 2 } hipError_t;
typedef enum { hipStreamCaptureStatusNone = 0, hipStreamCaptureStatusActive = 1 } hipStreamCaptureStatus;
typedef enum { hipMemcpyDeviceToHost = 2 } hipMemcpyKind;
typedef enum { HIP_R_32F = 0, HIP_R_64F = 1, HIP_R_16F = 2, HIP_R_8I = 3, HIP_R_16BF = 14 } hipDataType;

extern "C" {
hipError_t hipMalloc(void ** memory, size_t size);
hipError_t hipFree(void * memory);
hipError_t hipGetLastError(void);
hipError_t hipMemcpyAsync(void * to, const void * from, size_t size, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus * status);
}
