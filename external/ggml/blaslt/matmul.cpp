#include "matmul.h"
#include "context.h"
#include "settings.h"

#include <algorithm>
#include <vector>

namespace blaslt {
namespace {

// hipBLASLt was seen to answer "success" with zeros for a dimension of millions beside tiny ones
// (m=4, n=9.5 million, k=4 on gfx1201): above this, hipBLAS has it.
#if defined(GGML_USE_HIP)
constexpr int LONGEST_DIMENSION = 1 << 22;
#else
constexpr int LONGEST_DIMENSION = INT32_MAX;
#endif

bool is_capturing(Stream stream) {
    GPU(StreamCaptureStatus) status{};
    return GPU(StreamIsCapturing)(stream, &status) == GPU(Success) && status != GPU(StreamCaptureStatusNone);
}

int element_size(int32_t type) {
    if (type == int32_t(DATA_TYPE(R_32F))) return 4;
    if (type == int32_t(DATA_TYPE(R_16F)) || type == int32_t(DATA_TYPE(R_16BF))) return 2;
    return 0;
}

PlanKey key_of(const Gemm & g, bool fast) {
    const bool f32 = g.type_a == int32_t(DATA_TYPE(R_32F)) && g.type_b == g.type_a;
    PlanKey key{};
    key.op_a = int32_t(g.op_a), key.op_b = int32_t(g.op_b);
    key.m = g.m, key.n = g.n, key.k = g.k;
    key.lda = g.lda, key.ldb = g.ldb, key.ldc = g.ldc;
    key.type_a = g.type_a, key.type_b = g.type_b, key.type_c = g.type_c;
    key.compute = int32_t(f32 && fast ? BLAS_ENUM(COMPUTE_32F_FAST_TF32) : BLAS_ENUM(COMPUTE_32F));
    key.batch = g.batch;
    key.pointer_array = g.pointer_array;
    key.stride_a = g.stride_a, key.stride_b = g.stride_b, key.stride_c = g.stride_c;
    // The matrices behind a pointer array are not known here; ggml cuts them out of tensors at
    // element granularity, so only that can be promised.
    const auto align = [&](const void * p, int32_t type, int64_t stride) {
        if (g.pointer_array) return uint8_t(element_size(type));
        // With a batch of one, or matrices repeated, the distance is 0 and aligned.
        return std::min(alignment(reinterpret_cast<uintptr_t>(p)), alignment(uint64_t(stride) * uint64_t(element_size(type))));
    };
    key.align_a = align(g.a, g.type_a, g.stride_a);
    key.align_b = align(g.b, g.type_b, g.stride_b);
    key.align_c = align(g.c, g.type_c, g.stride_c);
    return key;
}

bool make_layout(LT(MatrixLayout_t) * layout, const PlanKey & key, int32_t type, int64_t rows, int64_t columns,
                 int64_t ld, int64_t stride) {
    if (LT(MatrixLayoutCreate)(layout, LtDataType(type), uint64_t(rows), uint64_t(columns), ld) != OK) {
        *layout = nullptr;
        return false;
    }
    if (key.batch == 1 && !key.pointer_array) return true;
    if (LT(MatrixLayoutSetAttribute)(*layout, LT_ENUM(MATRIX_LAYOUT_BATCH_COUNT), &key.batch, sizeof key.batch) != OK) {
        return false;
    }
#if BLASLT_POINTER_ARRAY
    if (key.pointer_array) {
        const uint32_t mode = LT_ENUM(BATCH_MODE_POINTER_ARRAY);
        return LT(MatrixLayoutSetAttribute)(*layout, LT_ENUM(MATRIX_LAYOUT_BATCH_MODE), &mode, sizeof mode) == OK;
    }
#endif
    return LT(MatrixLayoutSetAttribute)(*layout, LT_ENUM(MATRIX_LAYOUT_STRIDED_BATCH_OFFSET), &stride, sizeof stride) == OK;
}

bool describe(Plan & plan, const PlanKey & key) {
    const bool plain_a = key.op_a == int32_t(BLAS_ENUM(OP_N)), plain_b = key.op_b == int32_t(BLAS_ENUM(OP_N));
    if (LT(MatmulDescCreate)(&plan.desc, decltype(BLAS_ENUM(COMPUTE_32F))(key.compute), DATA_TYPE(R_32F)) != OK) {
        plan.desc = nullptr;
        return false;
    }
    return LT(MatmulDescSetAttribute)(plan.desc, LT_ENUM(MATMUL_DESC_TRANSA), &key.op_a, sizeof key.op_a) == OK
        && LT(MatmulDescSetAttribute)(plan.desc, LT_ENUM(MATMUL_DESC_TRANSB), &key.op_b, sizeof key.op_b) == OK
        && make_layout(&plan.a, key, key.type_a, plain_a ? key.m : key.k, plain_a ? key.k : key.m, key.lda, key.stride_a)
        && make_layout(&plan.b, key, key.type_b, plain_b ? key.k : key.n, plain_b ? key.n : key.k, key.ldb, key.stride_b)
        && make_layout(&plan.c, key, key.type_c, key.m, key.n, key.ldc, key.stride_c);
}

bool set_preference(LT(MatmulPreference_t) preference, const PlanKey & key) {
    const uint64_t workspace = WORKSPACE_BYTES_PER_STREAM;
    if (LT(MatmulPreferenceSetAttribute)(preference, LT_ENUM(MATMUL_PREF_MAX_WORKSPACE_BYTES), &workspace, sizeof workspace) != OK) {
        return false;
    }
#if !defined(GGML_USE_HIP)
    const uint32_t a = key.align_a, b = key.align_b, c = key.align_c;
    return LT(MatmulPreferenceSetAttribute)(preference, LT_ENUM(MATMUL_PREF_MIN_ALIGNMENT_A_BYTES), &a, sizeof a) == OK
        && LT(MatmulPreferenceSetAttribute)(preference, LT_ENUM(MATMUL_PREF_MIN_ALIGNMENT_B_BYTES), &b, sizeof b) == OK
        && LT(MatmulPreferenceSetAttribute)(preference, LT_ENUM(MATMUL_PREF_MIN_ALIGNMENT_C_BYTES), &c, sizeof c) == OK
        && LT(MatmulPreferenceSetAttribute)(preference, LT_ENUM(MATMUL_PREF_MIN_ALIGNMENT_D_BYTES), &c, sizeof c) == OK;
#else
    (void) key;
    return true;
#endif
}

// Asks the library once. A plan with another verdict than LT_CALLS is the cached "no".
Plan make_plan(LT(Handle_t) handle, const PlanKey & key) {
    Plan plan;
    plan.verdict = ERRORS;
    count(HEURISTIC_QUERIES);
    LT(MatmulPreference_t) preference{};
    if (!describe(plan, key) || LT(MatmulPreferenceCreate)(&preference) != OK) return plan;
    // The library may say "success" and return nothing, or leave the count alone on failure.
    int found = 0;
    const bool set = set_preference(preference, key);
    const Status status = LT(MatmulAlgoGetHeuristic)(
        handle, plan.desc, plan.a, plan.b, plan.c, plan.c, preference, 1, &plan.algorithm, &found);
    LT(MatmulPreferenceDestroy)(preference);
    if (status == BLAS_ENUM(STATUS_NOT_SUPPORTED) || (status == OK && found == 0)) {
        plan.verdict = NO_ALGORITHM;
    } else if (set && status == OK && plan.algorithm.state == OK
               && plan.algorithm.workspaceSize <= WORKSPACE_BYTES_PER_STREAM) {
        plan.verdict = LT_CALLS;
    }
    return plan;
}

// Looks up or makes the plan and launches it. LT_CALLS, or the reason why not.
Counter launch(StreamContext & context, const Gemm & g, bool capturing, bool fast) {
    const PlanKey key = key_of(g, fast);
    if (!tells_alignment && !g.pointer_array && std::min({ key.align_a, key.align_b, key.align_c }) < 16) return REFUSED;
    std::lock_guard<std::mutex> lock(context.mutex);
    Plan * plan = context.plans.find(key);
    if (plan) {
        count(CACHE_HITS);
    } else {
        // Making one may load kernels, which must not happen inside a graph.
        if (capturing) return CAPTURE_MISSES;
        const auto [made, dropped] = context.plans.insert(key, make_plan(context.handle, key));
        count(PLANS);
        count(EVICTIONS, dropped);
        uncount(PLANS, dropped);
        plan = made;
    }
    if (plan->verdict != LT_CALLS) return plan->verdict;
    const Status status = LT(Matmul)(context.handle, plan->desc, &g.alpha, g.a, plan->a, g.b, plan->b, &g.beta,
        g.c, plan->c, g.c, plan->c, &plan->algorithm.algo, context.workspace, WORKSPACE_BYTES_PER_STREAM, context.stream);
    if (status != OK) {
        plan->verdict = ERRORS;
        (void) GPU(GetLastError)();   // or ggml would take the error for its own
    }
    return plan->verdict;
}

Counter launch(StreamContext & context, const Gemm & g, bool capturing) {
    const bool f32 = g.type_a == int32_t(DATA_TYPE(R_32F)) && g.type_b == g.type_a;
    const bool fast = f32 && fast_f32();
    const Counter result = launch(context, g, capturing, fast);
    // A GPU without the fast mode still has the exact one.
    return fast && result != LT_CALLS ? launch(context, g, capturing, false) : result;
}

// A pointer array without a native call: its pointers are fetched from the GPU, and each run of
// evenly spaced matrices becomes one strided call.
Counter launch_runs(StreamContext & context, const Gemm & g, bool capturing) {
    if (capturing) return CAPTURE_MISSES;   // fetching has to wait for the stream
    if (g.beta != 0) return REFUSED;        // a refusal in the middle could not be done over
    const size_t n = size_t(g.batch);
    std::vector<const void *> pointers(3 * n);
    const void * const arrays[3] = { g.a, g.b, g.c };
    for (size_t i = 0; i < 3; i++) {
        if (GPU(MemcpyAsync)(&pointers[i * n], arrays[i], n * sizeof(void *), GPU(MemcpyDeviceToHost), context.stream)
            != GPU(Success)) return ERRORS;
    }
    if (GPU(StreamSynchronize)(context.stream) != GPU(Success)) return ERRORS;
    const void * const * a = &pointers[0], * const * b = &pointers[n], * const * c = &pointers[2 * n];
    const int size_a = element_size(g.type_a), size_b = element_size(g.type_b), size_c = element_size(g.type_c);
    for (int first = 0; first < g.batch;) {
        const Run run = next_run(a, b, c, first, g.batch, size_a, size_b, size_c);
        Gemm one = g;
        one.pointer_array = false;
        one.a = a[first], one.b = b[first], one.c = const_cast<void *>(c[first]);
        one.stride_a = run.stride_a / size_a, one.stride_b = run.stride_b / size_b, one.stride_c = run.stride_c / size_c;
        one.batch = run.count;
        const Counter result = launch(context, one, capturing);
        if (result != LT_CALLS) return result;   // the plain BLAS then does the whole batch
        count(POINTER_ARRAY_RUNS);
        first += run.count;
    }
    return LT_CALLS;
}

Counter attempt(const Gemm & g) {
    if (!enabled()) return DISABLED;
    const bool known = element_size(g.type_a) && element_size(g.type_b) && element_size(g.type_c);
    const bool sane = g.m > 0 && g.n > 0 && g.k > 0 && g.batch > 0 && std::max(g.m, g.n) <= LONGEST_DIMENSION;
    if (!known || !sane) return REFUSED;
    Stream stream{};
    if (AUDIOCPP_BLAS(GetStream)(g.blas, &stream) != OK) return ERRORS;
    const bool capturing = is_capturing(stream);
    const auto context = context_of(g.blas, stream, capturing);
    if (!context) return capturing ? CAPTURE_MISSES : ERRORS;
    if (!g.pointer_array) return launch(*context, g, capturing);
    if (native_pointer_array() && launch(*context, g, capturing) == LT_CALLS) {
        count(POINTER_ARRAY_NATIVE);
        return LT_CALLS;
    }
    return launch_runs(*context, g, capturing);
}

} // namespace

bool try_gemm(const Gemm & gemm) {
    const Counter result = attempt(gemm);
    if (result == LT_CALLS) {
        count(LT_CALLS);
        return true;
    }
    count(result);
    count(BLAS_CALLS);
    return false;
}

} // namespace blaslt
