// Counters of what the route did, for tests and for `doctor`.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace blaslt {

enum Counter {
    LT_CALLS,             // GEMM calls that BLASLt did
    BLAS_CALLS,           // GEMM calls left to hipBLAS (cuBLAS), for one of the reasons below
    DISABLED,             // ... the route is off
    NO_ALGORITHM,         // ... BLASLt has no kernel for the shape (its answer is cached)
    ERRORS,               // ... BLASLt answered with an error
    CAPTURE_MISSES,       // ... a graph was being captured and the plan was not ready
    REFUSED,              // ... the shape or pointers are outside what we trust BLASLt with
    HEURISTIC_QUERIES,
    CACHE_HITS,
    EVICTIONS,
    POINTER_ARRAY_NATIVE, // pointer-array batches that BLASLt took as they are
    POINTER_ARRAY_RUNS,   // strided calls made for the other pointer-array batches
    // Not counts but present amounts.
    PLANS,
    HANDLES,
    WORKSPACE_BYTES,
    COUNTERS
};

extern std::atomic<uint64_t> counters[COUNTERS];

inline void count(Counter counter, uint64_t by = 1) { counters[counter].fetch_add(by, std::memory_order_relaxed); }
inline void uncount(Counter counter, uint64_t by = 1) { counters[counter].fetch_sub(by, std::memory_order_relaxed); }

} // namespace blaslt

#if defined(_WIN32)
#define BLASLT_EXPORT __declspec(dllexport)
#else
#define BLASLT_EXPORT __attribute__((visibility("default")))
#endif

extern "C" {
// Fills `values` with up to `count` counters, in the order of their names; returns how many there are.
BLASLT_EXPORT size_t audiocpp_blaslt_stats(uint64_t * values, size_t count);
// The name of a counter; null past the last.
BLASLT_EXPORT const char * audiocpp_blaslt_stat_name(size_t index);
// f32 products: "exact" or "fast". Returns the mode in force before; any other text, null among
// them, changes nothing.
BLASLT_EXPORT const char * audiocpp_blaslt_f32(const char * mode);
// The library behind the route and its version: "hipBLASLt 1.2.2".
BLASLT_EXPORT const char * audiocpp_blaslt_library(void);
}
