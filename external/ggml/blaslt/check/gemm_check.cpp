// Runs ggml matrix products on the first GPU and on the CPU and compares them; reads the route's
// counters by name through ggml's registry. For real hardware: HIP with hipBLASLt, or CUDA with
// cuBLASLt. Prints a table; timings are shown, never judged.
//
//   gemm_check PLUGIN_FOLDER [expect-off | expect-runs]
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

int checks = 0, failures = 0;
void check(bool ok, const std::string & what) {
    checks++;
    if (ok) return;
    failures++;
    printf("FAILED: %s\n", what.c_str());
}

struct Route {
    size_t (*stats)(uint64_t *, size_t) = nullptr;
    const char * (*stat_name)(size_t) = nullptr;
    const char * (*f32)(const char *) = nullptr;
    const char * (*library)() = nullptr;

    explicit Route(ggml_backend_reg_t registry) {
        const auto find = [&](const char * name) { return ggml_backend_reg_get_proc_address(registry, name); };
        stats     = reinterpret_cast<decltype(stats)>(find("audiocpp_blaslt_stats"));
        stat_name = reinterpret_cast<decltype(stat_name)>(find("audiocpp_blaslt_stat_name"));
        f32       = reinterpret_cast<decltype(f32)>(find("audiocpp_blaslt_f32"));
        library   = reinterpret_cast<decltype(library)>(find("audiocpp_blaslt_library"));
    }
    std::map<std::string, long> read() const {
        std::vector<uint64_t> values(stats(nullptr, 0));
        stats(values.data(), values.size());
        std::map<std::string, long> named;
        for (size_t i = 0; i < values.size(); i++) named[stat_name(i)] = long(values[i]);
        return named;
    }
};

// a [k, m, batch_a] times b [k, n, batch_b]; batch_a divides batch_b. With `permuted`, b is a view
// whose matrices interleave, as attention heads do.
struct Shape { int m, n, k, batch_a = 1, batch_b = 1; bool permuted = false; };

struct Result { std::vector<float> values; double microseconds; };

using Values = std::vector<float>;

Result run(ggml_backend_t backend, ggml_type type, const Shape & s, const Values & a_values, const Values & b_values, int repeats) {
    ggml_context * ctx = ggml_init({ size_t(1) << 20, nullptr, true });
    ggml_tensor * a = ggml_new_tensor_3d(ctx, type, s.k, s.m, s.batch_a);
    ggml_tensor * b = s.permuted ? ggml_new_tensor_3d(ctx, GGML_TYPE_F32, s.k, s.batch_b, s.n)
                                 : ggml_new_tensor_3d(ctx, GGML_TYPE_F32, s.k, s.n, s.batch_b);
    ggml_tensor * y = ggml_mul_mat(ctx, a, s.permuted ? ggml_permute(ctx, b, 0, 2, 1, 3) : b);
    ggml_cgraph * graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, backend);
    if (!buffer) { printf("out of memory\n"); exit(2); }
    std::vector<char> stored(ggml_nbytes(a));
    ggml_get_type_traits(type)->from_float_ref
        ? ggml_get_type_traits(type)->from_float_ref(a_values.data(), stored.data(), int64_t(a_values.size()))
        : (void) memcpy(stored.data(), a_values.data(), stored.size());
    ggml_backend_tensor_set(a, stored.data(), 0, stored.size());
    ggml_backend_tensor_set(b, b_values.data(), 0, ggml_nbytes(b));
    Result result{ Values(size_t(ggml_nelements(y))), 0 };
    // An output that nobody writes must not look right by chance.
    const Values poison(result.values.size(), NAN);
    ggml_backend_tensor_set(y, poison.data(), 0, ggml_nbytes(y));
    for (int i = 0; i < (repeats ? 3 : 1); i++) ggml_backend_graph_compute(backend, graph);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; i++) ggml_backend_graph_compute_async(backend, graph);
    ggml_backend_synchronize(backend);
    result.microseconds = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / std::max(1, repeats);
    ggml_backend_tensor_get(y, result.values.data(), 0, ggml_nbytes(y));
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return result;
}

double relative_error(const Values & got, const Values & wanted) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < got.size(); i++) {
        difference += std::pow(double(got[i]) - wanted[i], 2);
        size += std::pow(double(wanted[i]), 2);
    }
    return std::sqrt(difference / size);   // NaN stays NaN and fails every bound
}

Values random_values(size_t n, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    Values values(n);
    for (float & v : values) v = normal(generator);
    return values;
}

// `tf32`: f32 products may round their operands to TF32's 11 bits (2.4e-4 each on average).
double bound(ggml_type type, bool tf32) {
    if (type == GGML_TYPE_F32) return tf32 ? 2e-3 : 1e-5;
    return type == GGML_TYPE_F16 ? 4e-3 : 2e-2;   // ggml's own half-precision products are within these
}

struct Bench {
    ggml_backend_t gpu, cpu;
    const Route * route;
    // ggml puts its cuBLAS handle into TF32 mode; for HIP it leaves hipBLAS's mode alone. So a call
    // that the route leaves to cuBLAS (switched off, or not planned when a graph is captured) is
    // held to TF32's bound; what the route computes itself, to the exact one.
    bool blas_uses_tf32;
    unsigned seed = 1;

    // Compares one shape; returns how the counters moved.
    std::map<std::string, long> compare(ggml_type type, const Shape & s, bool fast, int repeats) {
        const Values a = random_values(size_t(s.m) * s.k * s.batch_a, seed++), b = random_values(size_t(s.n) * s.k * s.batch_b, seed++);
        const auto before = route->read();
        const Result got = run(gpu, type, s, a, b, repeats);
        auto moved = route->read();
        for (auto & [name, value] : moved) value -= before.at(name);
        const Result wanted = run(cpu, type, s, a, b, 0);
        const double error = relative_error(got.values, wanted.values);
        const double flops = 2.0 * s.m * s.n * s.k * s.batch_b;
        char line[256];
        snprintf(line, sizeof line, "%-4s m%-5d n%-7d k%-5d batch %2d/%-2d%s", ggml_type_name(type), s.m, s.n, s.k, s.batch_a, s.batch_b, s.permuted ? " permuted" : "");
        printf("%-52s %9.1f us %7.1f TFLOP/s  error %.1e  lt %ld blas %ld heuristics %ld hits %ld native %ld runs %ld\n", line,
               got.microseconds, flops / got.microseconds / 1e6, error, moved["lt_calls"], moved["blas_calls"],
               moved["heuristic_queries"], moved["cache_hits"], moved["pointer_array_native"], moved["pointer_array_runs"]);
        const bool left_to_blas = moved["blas_calls"] > 0;
        check(error < bound(type, fast || (left_to_blas && blas_uses_tf32)), std::string("error of ") + line);
        return moved;
    }
};

const std::vector<Shape> shapes = {
    { 1280, 1500, 1280 }, { 5120, 1500, 1280 }, { 1280, 1500, 5120 }, { 512, 3000, 1536 }, { 4096, 2048, 4096 },
    { 1024, 20000, 192 },                                      // convolution as a product
    { 64, 1500, 64, 20, 20 }, { 1500, 1500, 64, 20, 20 },      // attention heads
    { 33, 77, 129, 3, 3 }, { 1, 301, 515 }, { 17, 65, 1000 },  // odd sizes
    { 4, 9500000, 4 },                                         // skinny: zeros were seen from hipBLASLt here
};
const std::vector<Shape> pointer_shapes = {
    { 64, 200, 128, 4, 16 },              // grouped attention: one matrix for four
    { 96, 160, 64, 8, 8, true },          // interleaved heads
    { 48, 96, 80, 2, 6, true },
};

void products(Bench & bench, bool off) {
    for (ggml_type type : { GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16 }) {
        for (const Shape & s : shapes) {
            auto moved = bench.compare(type, s, false, 30);
            const long calls = moved["lt_calls"] + moved["blas_calls"];
            if (!calls) continue;   // ggml took one of its own kernels
            const long reasons = moved["disabled"] + moved["no_algorithm"] + moved["errors"] + moved["capture_misses"] + moved["refused"];
            check(reasons == moved["blas_calls"], "each call left to BLAS has a reason");
            if (off) check(moved["lt_calls"] == 0 && moved["disabled"] == calls, "the route is off");
            else {
                check(moved["lt_calls"] > 0 || moved["refused"] > 0 || moved["no_algorithm"] > 0, "BLASLt or a stated refusal");
                check(moved["heuristic_queries"] <= 1, "one query a shape");
                check(moved["cache_hits"] >= calls - 1, "the plan is kept");
                check(moved["errors"] == 0, "no errors");
            }
        }
    }
}

void pointer_arrays(Bench & bench, bool runs) {
    for (ggml_type type : { GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_BF16 }) {
        for (const Shape & s : pointer_shapes) {
            auto moved = bench.compare(type, s, false, 10);
            if (moved["lt_calls"] + moved["blas_calls"] == 0) continue;
            if (runs) check(moved["pointer_array_native"] == 0, "pointer arrays are taken apart");
        }
    }
}

void fast_f32(Bench & bench) {
    const Shape s{ 1024, 1024, 2048 };
    check(!strcmp(bench.route->f32("fast"), "exact"), "exact is the default");
    bench.compare(GGML_TYPE_F32, s, true, 50);
    check(!strcmp(bench.route->f32("exact"), "fast"), "fast was in force");
    bench.compare(GGML_TYPE_F32, s, false, 50);
}

// More shapes than a stream keeps plans for.
void bounded_cache(Bench & bench) {
    const auto before = bench.route->read();
    const Values ones(size_t(1200) * 64, 1.0f);
    for (int i = 0; i < 600; i++) {
        const Result r = run(bench.gpu, GGML_TYPE_F32, { 64, 200 + i, 64 }, ones, ones, 0);
        if (r.values[0] != 64 || r.values.back() != 64) { check(false, "a product of ones"); break; }
    }
    const auto after = bench.route->read();
    printf("600 shapes: plans %ld, evictions %ld\n", after.at("plans"), after.at("evictions") - before.at("evictions"));
    check(after.at("plans") <= 512 * after.at("handles"), "the cache is bounded");
    check(after.at("evictions") > before.at("evictions"), "old plans went");
}

// The same graph often enough for ggml to capture it as a GPU graph: replays make no calls.
void captured(Bench & bench) {
    const auto before = bench.route->read();
    const Shape s{ 256, 384, 512 };
    const Values a = random_values(size_t(s.m) * s.k, 7), b = random_values(size_t(s.n) * s.k, 8);
    const Result many = run(bench.gpu, GGML_TYPE_F16, s, a, b, 200);
    const Result once = run(bench.cpu, GGML_TYPE_F16, s, a, b, 0);
    const auto after = bench.route->read();
    const long calls = after.at("lt_calls") + after.at("blas_calls") - before.at("lt_calls") - before.at("blas_calls");
    printf("203 runs of one graph: %ld GEMM calls, %ld capture misses\n", calls, after.at("capture_misses") - before.at("capture_misses"));
    check(relative_error(many.values, once.values) < bound(GGML_TYPE_F16, false), "the graph's result");
    check(after.at("capture_misses") == before.at("capture_misses"), "the plan was ready when the graph was captured");
}

} // namespace

int main(int argc, char ** argv) {
    if (argc < 2) { fprintf(stderr, "usage: gemm_check PLUGIN_FOLDER [expect-off | expect-runs]\n"); return 2; }
    const std::string expect = argc > 2 ? argv[2] : "";
    ggml_backend_load_all_from_path(argv[1]);
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU);
    if (!device) device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_IGPU);
    if (!device) { printf("no GPU\n"); return 2; }
    const Route route(ggml_backend_dev_backend_reg(device));
    if (!route.stats || !route.stat_name || !route.f32 || !route.library) { printf("the plugin has no BLASLt route\n"); return 2; }
    printf("%s, %s, %s\n", ggml_backend_dev_name(device), ggml_backend_dev_description(device), route.library());
    const bool is_cuda = !strcmp(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device)), "CUDA");
    Bench bench{ ggml_backend_dev_init(device, nullptr), ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr), &route, is_cuda };
    const auto set_threads = reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(ggml_backend_get_device(bench.cpu)), "ggml_backend_set_n_threads"));
    if (set_threads) set_threads(bench.cpu, int(std::max(1u, std::thread::hardware_concurrency())));
    const bool off = expect == "expect-off";
    products(bench, off);
    pointer_arrays(bench, expect == "expect-runs");
    captured(bench);
    if (!off) {
        fast_f32(bench);
        bounded_cache(bench);
        check(route.read().at("handles") > 0, "a handle is held");
    }
    ggml_backend_free(bench.gpu);
    const auto freed = route.read();
    check(freed.at("handles") == 0 && freed.at("workspace_bytes") == 0 && freed.at("plans") == 0, "all is freed with the backend");
    ggml_backend_free(bench.cpu);
    for (const auto & [name, value] : freed) printf("%s %ld; ", name.c_str(), value);
    printf("\n%d checks, %d failures\n", checks, failures);
    return failures != 0;
}
