#include "stats.h"
#include "api.h"
#include "settings.h"

#include <cstring>

namespace blaslt {

std::atomic<uint64_t> counters[COUNTERS];

} // namespace blaslt

extern "C" {

size_t audiocpp_blaslt_stats(uint64_t * values, size_t count) {
    for (size_t i = 0; values && i < count && i < blaslt::COUNTERS; i++) values[i] = blaslt::counters[i];
    return blaslt::COUNTERS;
}

const char * audiocpp_blaslt_stat_name(size_t index) {
    static const char * const names[] = {
        "lt_calls", "blas_calls", "disabled", "no_algorithm", "errors", "capture_misses", "refused",
        "heuristic_queries", "cache_hits", "evictions", "pointer_array_native", "pointer_array_runs",
        "plans", "handles", "workspace_bytes",
    };
    static_assert(sizeof names / sizeof *names == blaslt::COUNTERS, "one name a counter");
    return index < blaslt::COUNTERS ? names[index] : nullptr;
}

const char * audiocpp_blaslt_f32(const char * mode) {
    std::atomic<bool> & fast = blaslt::fast_f32();
    const bool before = fast;
    if (mode && !strcmp(mode, "fast")) fast = true;
    if (mode && !strcmp(mode, "exact")) fast = false;
    return before ? "fast" : "exact";
}

const char * audiocpp_blaslt_library(void) { return BLASLT_LIBRARY; }

}
