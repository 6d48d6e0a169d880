// Switches and counts of the fake libraries, for the test to turn and read.
#pragma once
#include <hipblaslt/hipblaslt.h>

struct FakeStream { bool capturing = false; };
struct FakeBlas   { FakeStream * stream; };

struct Fake {
    bool out_of_memory = false;
    bool no_algorithm = false;       // "success" with nothing found
    bool heuristic_error = false;    // error, and the count left as it was
    bool matmul_error = false;
    bool no_fast_f32 = false;        // no algorithm for the TF32 compute type
    // Counts of calls and of live objects.
    int blas_gemms = 0, lt_gemms = 0, pointer_array_gemms = 0, heuristics = 0, synchronizations = 0;
    int allocated = 0, handles = 0, objects = 0;
    int capture_violations = 0;      // allocations and waits while a stream was being captured
    // Of the last Lt product.
    hipblasComputeType_t compute = HIPBLAS_COMPUTE_32F;
    float alpha = 0, beta = 0;
};
extern Fake fake;
