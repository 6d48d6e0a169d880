// What the route holds for one stream: a BLASLt handle, a workspace and its plans.
#pragma once
#include "api.h"
#include "plan_cache.h"
#include "stats.h"

#include <memory>
#include <mutex>

namespace blaslt {

constexpr size_t WORKSPACE_BYTES_PER_STREAM = size_t(32) << 20;
constexpr size_t PLANS_PER_STREAM = 512;

// A GEMM made ready, or the record that BLASLt cannot do this one.
class Plan {
  public:
    Plan() = default;
    Plan(Plan && other) noexcept;
    Plan & operator=(Plan &&) = delete;
    ~Plan();

    LT(MatmulDesc_t)   desc{};
    LT(MatrixLayout_t) a{}, b{}, c{};
    LT(MatmulHeuristicResult_t) algorithm{};
    // LT_CALLS if the plan is good, else why it is not: NO_ALGORITHM or ERRORS.
    Counter verdict = NO_ALGORITHM;
};

// One handle a stream: hipBLASLt's own locks and stream limit are per handle.
class StreamContext {
  public:
    // Null if the library refuses or the workspace cannot be allocated.
    static std::shared_ptr<StreamContext> create(Stream stream);
    ~StreamContext();
    StreamContext(const StreamContext &) = delete;

    std::mutex mutex;   // held while plans are looked up and used
    LT(Handle_t) handle{};
    void * workspace = nullptr;
    Stream stream;
    LruCache<PlanKey, Plan, PlanKeyHash> plans{ PLANS_PER_STREAM };

  private:
    explicit StreamContext(Stream s) : stream(s) {}
};

// The context of the stream that `blas` works on; made unless `capturing`. Null if there is none.
std::shared_ptr<StreamContext> context_of(Blas blas, Stream stream, bool capturing);

} // namespace blaslt
