// Calls the route's functions directly on a GPU, to see what ggml cannot show at will: a product
// whose plan is not ready while a stream is being captured, and pointer arrays in each way.
#include "../matmul.h"
#include "../stats.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace blaslt;

namespace {

int checks = 0, failures = 0;
void check(bool ok, const char * what) {
    checks++;
    if (!ok) { failures++; printf("FAILED: %s\n", what); }
}
void gpu(GPU(Error_t) status, const char * what) {
    if (status != GPU(Success)) { printf("%s: %s\n", what, GPU(GetErrorString)(status)); exit(2); }
}
#define CALL(name, ...) gpu(GPU(name)(__VA_ARGS__), #name)

uint64_t stat(Counter counter) {
    uint64_t values[COUNTERS];
    audiocpp_blaslt_stats(values, COUNTERS);
    return values[counter];
}

constexpr int M = 48, N = 80, K = 64, BATCH = 6;
const float one = 1, zero = 0;

struct Matrices {
    float * a, * b, * c;
    std::vector<float> host_a, host_b;
    Matrices() : host_a(size_t(M) * K * BATCH), host_b(size_t(K) * N * BATCH) {
        for (size_t i = 0; i < host_a.size(); i++) host_a[i] = float(int(i * 7 % 13) - 6) / 8;
        for (size_t i = 0; i < host_b.size(); i++) host_b[i] = float(int(i * 5 % 11) - 5) / 8;
        void * p[3];
        const size_t sizes[3] = { host_a.size() * 4, host_b.size() * 4, size_t(M) * N * BATCH * 4 };
        for (int i = 0; i < 3; i++) CALL(Malloc, &p[i], sizes[i]);
        a = static_cast<float *>(p[0]), b = static_cast<float *>(p[1]), c = static_cast<float *>(p[2]);
        CALL(Memcpy, a, host_a.data(), sizes[0], GPU(MemcpyHostToDevice));
        CALL(Memcpy, b, host_b.data(), sizes[1], GPU(MemcpyHostToDevice));
        poison();
    }
    void poison() { CALL(Memset, c, 0xff, size_t(M) * N * BATCH * 4); }   // NaN
    // Whether matrix i of c is a[ia] * b[i]; sums of few-bit numbers, so exact in f32.
    bool right(int i, int ia, int m = M) const {
        std::vector<float> got(size_t(M) * N);
        CALL(Memcpy, got.data(), c + size_t(i) * M * N, got.size() * 4, GPU(MemcpyDeviceToHost));
        for (int x = 0; x < N; x++) {
            for (int y = 0; y < m; y++) {
                float sum = 0;
                for (int l = 0; l < K; l++) sum += host_a[size_t(ia) * M * K + size_t(l) * M + y] * host_b[size_t(i) * K * N + size_t(x) * K + l];
                if (got[size_t(x) * M + y] != sum) return false;
            }
        }
        return true;
    }
};

Status product(Blas blas, const Matrices & t, int m) {
    return audiocpp_Sgemm(blas, BLAS_ENUM(OP_N), BLAS_ENUM(OP_N), m, N, K, &one, t.a, M, t.b, K, &zero, t.c, M);
}

// Captures one product and replays it.
void capture(Blas blas, Stream stream, Matrices & t, int m, bool ready) {
    const uint64_t misses = stat(CAPTURE_MISSES), queries = stat(HEURISTIC_QUERIES), handles = stat(HANDLES);
    GPU(Graph_t) graph;
    GPU(GraphExec_t) instance;
    CALL(StreamBeginCapture, stream, GPU(StreamCaptureModeThreadLocal));   // the strict mode: an allocation would end it
    check(product(blas, t, m) == OK, "a product while capturing");
    CALL(StreamEndCapture, stream, &graph);
    check(stat(HEURISTIC_QUERIES) == queries && stat(HANDLES) == handles, "nothing is made while capturing");
    check((stat(CAPTURE_MISSES) == misses) == ready, ready ? "a ready plan is captured" : "a plan that is not ready goes to BLAS");
    CALL(GraphInstantiateWithFlags, &instance, graph, 0);
    t.poison();
    CALL(GraphLaunch, instance, stream);
    CALL(StreamSynchronize, stream);
    check(t.right(0, 0, m), "the replayed product");
    CALL(GraphExecDestroy, instance);
    CALL(GraphDestroy, graph);
}

void pointer_array(Blas blas, Stream stream, Matrices & t) {
    const float * a[BATCH], * b[BATCH];
    float * c[BATCH];
    for (int i = 0; i < BATCH; i++) a[i] = t.a + size_t(i / 2) * M * K, b[i] = t.b + size_t(i) * K * N, c[i] = t.c + size_t(i) * M * N;
    void * device;
    CALL(Malloc, &device, 3 * sizeof a);
    auto * pointers = static_cast<float **>(device);
    CALL(Memcpy, pointers, a, sizeof a, GPU(MemcpyHostToDevice));
    CALL(Memcpy, pointers + BATCH, b, sizeof b, GPU(MemcpyHostToDevice));
    CALL(Memcpy, pointers + 2 * BATCH, c, sizeof c, GPU(MemcpyHostToDevice));
    t.poison();
    const uint64_t native = stat(POINTER_ARRAY_NATIVE), runs = stat(POINTER_ARRAY_RUNS), done = stat(LT_CALLS);
    check(audiocpp_SgemmBatched(blas, BLAS_ENUM(OP_N), BLAS_ENUM(OP_N), M, N, K, &one, pointers, M, pointers + BATCH, K, &zero,
                                pointers + 2 * BATCH, M, BATCH) == OK, "a pointer-array batch");
    CALL(StreamSynchronize, stream);
    for (int i = 0; i < BATCH; i++) check(t.right(i, i / 2), "each matrix of the batch");
    printf("pointer array of %d: native +%d, runs +%d\n", BATCH, int(stat(POINTER_ARRAY_NATIVE) - native), int(stat(POINTER_ARRAY_RUNS) - runs));
    check(stat(LT_CALLS) == done + 1, "BLASLt did it");
    const bool was_native = stat(POINTER_ARRAY_NATIVE) == native + 1;
    check(was_native || stat(POINTER_ARRAY_RUNS) == runs + BATCH / 2, "two matrices a run");
    CALL(Free, device);
}

} // namespace

int main() {
    Matrices t;
    Stream stream;
    Blas blas;
    CALL(StreamCreate, &stream);
    if (AUDIOCPP_BLAS(Create)(&blas) != OK || AUDIOCPP_BLAS(SetStream)(blas, stream) != OK) { printf("no BLAS handle\n"); return 2; }
    printf("%s\n", audiocpp_blaslt_library());
    check(product(blas, t, M - 8) == OK, "a first product");
    CALL(StreamSynchronize, stream);
    check(t.right(0, 0, M - 8), "its result");
    capture(blas, stream, t, M - 8, true);
    // With a workspace given, the plain BLAS has nothing to allocate while capturing either.
    void * workspace;
    CALL(Malloc, &workspace, size_t(32) << 20);
    AUDIOCPP_BLAS(SetWorkspace)(blas, workspace, size_t(32) << 20);
    // Its kernel is loaded beforehand: loading may wait for the GPU, which a capture forbids.
    check(AUDIOCPP_BLAS(Sgemm)(blas, BLAS_ENUM(OP_N), BLAS_ENUM(OP_N), M, N, K, &one, t.a, M, t.b, K, &zero, t.c, M) == OK, "plain BLAS");
    CALL(StreamSynchronize, stream);
    check(t.right(0, 0), "its result");
    capture(blas, stream, t, M, false);
    check(product(blas, t, M) == OK, "the same product outside");
    capture(blas, stream, t, M, true);
    pointer_array(blas, stream, t);
    audiocpp_BlasDestroy(blas);
    CALL(Free, workspace);
    check(stat(HANDLES) == 0 && stat(WORKSPACE_BYTES) == 0 && stat(PLANS) == 0, "all is freed with the handle");
    printf("%d checks, %d failures\n", checks, failures);
    return failures != 0;
}
