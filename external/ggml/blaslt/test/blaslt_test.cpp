// Tests of the route on fake libraries (fake/): every decision, count and release, without a GPU.
// Built three times: ROCm 7 (hipBLASLt 1.2), ROCm 6.4 with its old enums, hipBLASLt 1.3 with
// pointer-array batches. The CUDA build of the same source runs on real hardware (gemm_check.cpp).
#define AUDIOCPP_BLASLT_IMPLEMENTATION
#include "../route.h"

#include "../context.h"
#include "../convert.h"
#include "../stats.h"
#include "fake/fake.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

static int failures = 0;
static void check(bool ok, const char * text, int line) {
    if (ok) return;
    failures++;
    fprintf(stderr, "line %d: %s\n", line, text);
}
#define CHECK(condition) check(condition, #condition, __LINE__)

static uint64_t stat(const char * name) {
    uint64_t values[blaslt::COUNTERS];
    const size_t n = audiocpp_blaslt_stats(values, blaslt::COUNTERS);
    for (size_t i = 0; i < n; i++) if (!strcmp(audiocpp_blaslt_stat_name(i), name)) return values[i];
    check(false, name, __LINE__);
    return 0;
}

// How counters moved since it was made.
struct Since {
    std::map<std::string, uint64_t> before;
    Since() { for (size_t i = 0; audiocpp_blaslt_stat_name(i); i++) before[audiocpp_blaslt_stat_name(i)] = stat(audiocpp_blaslt_stat_name(i)); }
    long operator[](const char * name) const { return long(stat(name)) - long(before.at(name)); }
};

constexpr float ONE = 1, ZERO = 0;

// An m x n product with k = 2 of ones: every result is 2.
struct Product {
    int m, n;
    alignas(16) float a[64] = {}, b[64] = {}, c[256] = {};
    Product(int m_, int n_) : m(m_), n(n_) { for (auto & x : a) x = 1; for (auto & x : b) x = 1; }
    bool right() const { for (int i = 0; i < m * n; i++) if (c[i] != 2) return false; return true; }
    bool run(FakeBlas & blas) {
        memset(c, 0, sizeof c);
        return audiocpp_Sgemm(&blas, HIPBLAS_OP_T, HIPBLAS_OP_N, m, n, 2, &ONE, a, 2, b, 2, &ZERO, c, m) == HIPBLAS_STATUS_SUCCESS && right();
    }
};

static void cache_is_bounded_and_least_recent_goes_first() {
    struct Hash { size_t operator()(int k) const { return size_t(k); } };
    blaslt::LruCache<int, int, Hash> cache(2);
    cache.insert(1, 10);
    cache.insert(2, 20);
    CHECK(*cache.find(1) == 10);
    CHECK(cache.insert(3, 30).second == 1);
    CHECK(cache.find(2) == nullptr && cache.find(1) && cache.find(3) && cache.size() == 2);
    blaslt::PlanKey a{}, b{};
    b.align_b = 4;
    CHECK(!(a == b) && blaslt::PlanKeyHash{}(a) != blaslt::PlanKeyHash{}(b));
    CHECK(blaslt::alignment(4096) == 16 && blaslt::alignment(24) == 8 && blaslt::alignment(6) == 2 && blaslt::alignment(0) == 16);
}

static void conversions() {
    CHECK(blaslt::hip_data_type(150) == HIP_R_16F && blaslt::hip_data_type(151) == HIP_R_32F && blaslt::hip_data_type(168) == HIP_R_16BF);
    CHECK(blaslt::hip_data_type(HIP_R_16BF) == HIP_R_16BF && blaslt::hip_data_type(155) == -1);
    CHECK(blaslt::half_to_float(0x3c00) == 1 && blaslt::half_to_float(0xc500) == -5 && blaslt::half_to_float(0) == 0);
    CHECK(blaslt::half_to_float(0x0001) == std::ldexp(1.0f, -24) && std::isinf(blaslt::half_to_float(0x7c00)));
    float x[32];
    const void * a[] = { x, x, x + 4, x + 4 }, * b[] = { x, x + 2, x + 4, x + 6 }, * c[] = { x, x + 8, x + 16, x + 24 };
    const blaslt::Run first = blaslt::next_run(a, b, c, 0, 4, 4, 4, 4), second = blaslt::next_run(a, b, c, 2, 4, 4, 4, 4);
    CHECK(first.count == 2 && first.stride_a == 0 && first.stride_b == 8 && first.stride_c == 32);
    CHECK(second.first == 2 && second.count == 2);
    const void * back[] = { x + 24, x + 16, x + 8, x };
    CHECK(blaslt::next_run(a, b, back, 0, 4, 4, 4, 4).count == 1);
    CHECK(blaslt::next_run(b, b, c, 0, 4, 4, 4, 4).count == 4);
}

static void plans_are_made_once_and_bounded() {
    FakeStream stream;
    FakeBlas blas{ &stream };
    Since since;
    Product p(3, 4);
    for (int i = 0; i < 5; i++) CHECK(p.run(blas));
    CHECK(since["lt_calls"] == 5 && since["blas_calls"] == 0);
    CHECK(since["heuristic_queries"] == 1 && since["cache_hits"] == 4 && since["plans"] == 1);
    CHECK(since["handles"] == 1 && since["workspace_bytes"] == 32 << 20);
    const int shapes = int(blaslt::PLANS_PER_STREAM) + 40;
    for (int i = 0; i < shapes; i++) {
        const float alpha = 1;
        alignas(16) static float a[4096], b[4], c[2048];
        CHECK(audiocpp_Sgemm(&blas, HIPBLAS_OP_T, HIPBLAS_OP_N, i + 1, 1, 1, &alpha, a, 1, b, 1, &ZERO, c, i + 1) == HIPBLAS_STATUS_SUCCESS);
    }
    CHECK(since["plans"] == long(blaslt::PLANS_PER_STREAM) && since["evictions"] == 41);
    audiocpp_BlasDestroy(&blas);
    CHECK(since["plans"] == 0 && since["handles"] == 0 && since["workspace_bytes"] == 0);
    CHECK(fake.objects == 0 && fake.handles == 0 && fake.allocated == 0);
}

static void refusals_go_to_blas_and_are_remembered() {
    FakeStream stream;
    FakeBlas blas{ &stream };
    Since since;
    Product none(2, 2), error(3, 3), broken(5, 5), fine(6, 6);
    fake.no_algorithm = true;
    CHECK(none.run(blas) && none.run(blas));
    CHECK(since["no_algorithm"] == 2 && since["heuristic_queries"] == 1);
    fake.no_algorithm = false;
    fake.heuristic_error = true;
    CHECK(error.run(blas) && error.run(blas));
    CHECK(since["errors"] == 2 && since["heuristic_queries"] == 2);
    fake.heuristic_error = false;
    fake.matmul_error = true;
    CHECK(broken.run(blas));
    fake.matmul_error = false;
    CHECK(broken.run(blas));   // the answer was kept
    CHECK(since["errors"] == 4 && since["blas_calls"] == 6 && since["lt_calls"] == 0);
    CHECK(fine.run(blas) && since["lt_calls"] == 1);
    // An address off by one element is not 16-byte aligned: hipBLASLt is not trusted with it.
    CHECK(audiocpp_Sgemm(&blas, HIPBLAS_OP_T, HIPBLAS_OP_N, 2, 2, 2, &ONE, fine.a + 1, 2, fine.b, 2, &ZERO, fine.c, 2) == HIPBLAS_STATUS_SUCCESS);
    CHECK(since["refused"] == 1);
    CHECK(since["disabled"] + since["no_algorithm"] + since["errors"] + since["capture_misses"] + since["refused"] == since["blas_calls"]);
    audiocpp_BlasDestroy(&blas);
}

static void nothing_is_made_while_capturing() {
    FakeStream stream;
    FakeBlas blas{ &stream };
    Since since;
    Product known(2, 3), fresh(3, 2);
    stream.capturing = true;
    CHECK(known.run(blas) && since["capture_misses"] == 1 && since["handles"] == 0);
    stream.capturing = false;
    CHECK(known.run(blas));
    stream.capturing = true;
    CHECK(known.run(blas) && since["lt_calls"] == 2);
    CHECK(fresh.run(blas) && since["capture_misses"] == 2 && since["heuristic_queries"] == 1);
    stream.capturing = false;
    CHECK(fresh.run(blas) && since["lt_calls"] == 3);
    CHECK(fake.capture_violations == 0);
    audiocpp_BlasDestroy(&blas);
}

static void out_of_memory_is_kept_as_a_refusal() {
    FakeStream stream;
    FakeBlas blas{ &stream };
    Since since;
    Product p(2, 2);
    fake.out_of_memory = true;
    CHECK(p.run(blas) && since["errors"] == 1 && since["handles"] == 0);
    fake.out_of_memory = false;
    CHECK(p.run(blas) && since["lt_calls"] == 0);
    audiocpp_BlasDestroy(&blas);
    CHECK(p.run(blas) && since["lt_calls"] == 1);
    audiocpp_BlasDestroy(&blas);
}

// Four products, the first matrix shared by two each, as grouped attention has it.
static void pointer_arrays() {
    FakeStream stream;
    FakeBlas blas{ &stream };
    Since since;
    alignas(16) float a[2 * 4], b[4 * 4], c[4 * 4] = {};
    for (int i = 0; i < 8; i++) a[i] = float(i);
    for (int i = 0; i < 16; i++) b[i] = float(i % 4 == 0 || i % 4 == 3);   // identity matrices
    const float * as[] = { a, a, a + 4, a + 4 }, * bs[] = { b, b + 4, b + 8, b + 12 };
    float * cs[] = { c, c + 4, c + 8, c + 12 };
    const auto run = [&] { return audiocpp_SgemmBatched(&blas, HIPBLAS_OP_N, HIPBLAS_OP_N, 2, 2, 2, &ONE, as, 2, bs, 2, &ZERO, cs, 2, 4); };
    CHECK(run() == HIPBLAS_STATUS_SUCCESS);
    for (int i = 0; i < 16; i++) CHECK(c[i] == float(i / 8 * 4 + i % 4));
    CHECK(since["lt_calls"] == 1 && since["blas_calls"] == 0);
#if BLASLT_POINTER_ARRAY
    CHECK(since["pointer_array_native"] == 1 && fake.pointer_array_gemms == 1 && fake.synchronizations == 0);
#else
    CHECK(since["pointer_array_runs"] == 2 && fake.synchronizations == 1);
    stream.capturing = true;
    CHECK(run() == HIPBLAS_STATUS_SUCCESS && since["capture_misses"] == 1 && fake.capture_violations == 0);
    stream.capturing = false;
#endif
    audiocpp_BlasDestroy(&blas);
}

static void f32_modes_and_types() {
    FakeStream stream;
    FakeBlas blas{ &stream };
    Since since;
    Product p(4, 4);
    CHECK(p.run(blas) && fake.compute == HIPBLAS_COMPUTE_32F);
    CHECK(!strcmp(audiocpp_blaslt_f32("fast"), "exact") && !strcmp(audiocpp_blaslt_f32("quick"), "fast"));
    CHECK(p.run(blas) && fake.compute == HIPBLAS_COMPUTE_32F_FAST_TF32 && since["plans"] == 2);
    fake.no_fast_f32 = true;
    Product other(4, 5);
    CHECK(other.run(blas) && fake.compute == HIPBLAS_COMPUTE_32F && since["blas_calls"] == 0);
    fake.no_fast_f32 = false;
    audiocpp_blaslt_f32("exact");
    // A 16-bit computation has half scalars; BLASLt does it in f32.
    const uint16_t half_three = 0x4200, zero = 0;
#if HIP_VERSION >= 60500000
    const auto half = HIP_R_16F, bf16 = HIP_R_16BF;
    const auto compute16 = HIPBLAS_COMPUTE_16F, compute32 = HIPBLAS_COMPUTE_32F;
#else
    const auto half = HIPBLAS_R_16F, bf16 = HIPBLAS_R_16B, compute16 = HIPBLAS_R_16F, compute32 = HIPBLAS_R_32F;
#endif
    const long before = since["lt_calls"];
    CHECK(audiocpp_GemmEx(&blas, HIPBLAS_OP_T, HIPBLAS_OP_N, 4, 4, 2, &half_three, p.a, half, 2, p.b, half, 2, &zero, p.c, half, 4, compute16, HIPBLAS_GEMM_DEFAULT) == HIPBLAS_STATUS_SUCCESS);
    CHECK(fake.alpha == 3 && fake.beta == 0);
    CHECK(audiocpp_GemmStridedBatchedEx(&blas, HIPBLAS_OP_T, HIPBLAS_OP_N, 4, 4, 2, &ONE, p.a, bf16, 2, 8, p.b, bf16, 2, 8, &ZERO, p.c, bf16, 4, 16, 2, compute32, HIPBLAS_GEMM_DEFAULT) == HIPBLAS_STATUS_SUCCESS);
    CHECK(since["lt_calls"] == before + 2 && fake.compute == HIPBLAS_COMPUTE_32F && since["blas_calls"] == 0);
    // Far longer than hipBLASLt is trusted with; an empty matrix would do nothing.
    CHECK(audiocpp_GemmEx(&blas, HIPBLAS_OP_T, HIPBLAS_OP_N, 4, 9500000, 4, &ONE, p.a, half, 4, p.b, half, 4, &ZERO, p.c, half, 4, compute32, HIPBLAS_GEMM_DEFAULT) == HIPBLAS_STATUS_SUCCESS);
    CHECK(since["refused"] == 1);
    audiocpp_BlasDestroy(&blas);
}

int main() {
    cache_is_bounded_and_least_recent_goes_first();
    conversions();
    plans_are_made_once_and_bounded();
    refusals_go_to_blas_and_are_remembered();
    nothing_is_made_while_capturing();
    out_of_memory_is_kept_as_a_refusal();
    pointer_arrays();
    f32_modes_and_types();
    CHECK(fake.objects == 0 && fake.handles == 0 && fake.allocated == 0);
    CHECK(!strncmp(audiocpp_blaslt_library(), "hipBLASLt 1.", 12));
    printf("%s: %d failures\n", audiocpp_blaslt_library(), failures);
    return failures != 0;
}
