// One matrix product, and the function that tries to have BLASLt do it.
#pragma once
#include "api.h"

namespace blaslt {

// C = alpha * op(A) * op(B) + beta * C, column-major, as BLAS has it. With `pointer_array` the
// three addresses are arrays of `batch` pointers in GPU memory.
struct Gemm {
    Blas blas;
    Operation op_a, op_b;
    int m, n, k;
    float alpha, beta;
    const void * a; int32_t type_a; int64_t lda, stride_a;
    const void * b; int32_t type_b; int64_t ldb, stride_b;
    void *       c; int32_t type_c; int64_t ldc, stride_c;
    int  batch;
    bool pointer_array;
};

// True if BLASLt took it. False leaves the output untouched and has counted the reason; the caller
// then calls the ordinary BLAS.
bool try_gemm(const Gemm & gemm);

// Frees what belongs to a BLAS handle: BLASLt handles, workspaces and plans of its streams.
void release(Blas blas);

} // namespace blaslt
