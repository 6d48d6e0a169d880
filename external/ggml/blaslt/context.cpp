#include "context.h"
#include "matmul.h"
#include "settings.h"

#include "ggml-impl.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace blaslt {
namespace {

std::string variable(const char * name) {
    const char * value = getenv(name);
    return value ? value : "";
}

// True, false, or `otherwise` with a word about it.
bool choice(const char * name, const char * yes, const char * no, bool otherwise) {
    const std::string value = variable(name);
    if (value == yes) return true;
    if (value == no) return false;
    if (!value.empty()) {
        GGML_LOG_WARN("%s=%s: expected %s or %s; taken as %s\n", name, value.c_str(), yes, no, otherwise ? yes : no);
    }
    return otherwise;
}

std::mutex contexts_mutex;
// ggml makes one BLAS handle a device and stream; the pair stays right if that changes.
using Contexts = std::map<std::pair<Blas, Stream>, std::shared_ptr<StreamContext>>;
Contexts & contexts() {
    // Never destroyed: at exit the GPU runtime may be gone before our turn comes.
    static Contexts * all = new Contexts;
    return *all;
}

} // namespace

bool enabled() {
    static const bool on = choice("AUDIOCPP_BLASLT", "1", "0", true);
    return on;
}

std::atomic<bool> & fast_f32() {
    static std::atomic<bool> fast{ choice("AUDIOCPP_BLASLT_F32", "fast", "exact", false) };
    return fast;
}

bool native_pointer_array() {
    static const bool native = choice("AUDIOCPP_BLASLT_POINTER_ARRAY", "native", "runs", true);
    return BLASLT_POINTER_ARRAY && native;
}

Plan::Plan(Plan && other) noexcept
    : desc(other.desc), a(other.a), b(other.b), c(other.c), algorithm(other.algorithm), verdict(other.verdict) {
    other.desc = nullptr;
    other.a = other.b = other.c = nullptr;
}

Plan::~Plan() {
    if (c) LT(MatrixLayoutDestroy)(c);
    if (b) LT(MatrixLayoutDestroy)(b);
    if (a) LT(MatrixLayoutDestroy)(a);
    if (desc) LT(MatmulDescDestroy)(desc);
}

std::shared_ptr<StreamContext> StreamContext::create(Stream stream) {
    std::shared_ptr<StreamContext> made(new StreamContext(stream));
    if (LT(Create)(&made->handle) != OK) {
        made->handle = nullptr;
        GGML_LOG_WARN("%s: no handle; GEMM goes through the plain BLAS library\n", BLASLT_LIBRARY);
        return nullptr;
    }
    count(HANDLES);
    if (GPU(Malloc)(&made->workspace, WORKSPACE_BYTES_PER_STREAM) != GPU(Success)) {
        made->workspace = nullptr;
        (void) GPU(GetLastError)();   // or ggml would take the error for its own
        GGML_LOG_WARN("%s: no memory for the workspace; GEMM goes through the plain BLAS library\n", BLASLT_LIBRARY);
        return nullptr;
    }
    count(WORKSPACE_BYTES, WORKSPACE_BYTES_PER_STREAM);
    GGML_LOG_DEBUG("GEMM through %s, f32 %s\n", BLASLT_LIBRARY, fast_f32() ? "fast" : "exact");
    return made;
}

StreamContext::~StreamContext() {
    uncount(PLANS, plans.size());
    if (workspace) {
        (void) GPU(Free)(workspace);
        uncount(WORKSPACE_BYTES, WORKSPACE_BYTES_PER_STREAM);
    }
    if (handle) {
        LT(Destroy)(handle);
        uncount(HANDLES);
    }
}

std::shared_ptr<StreamContext> context_of(Blas blas, Stream stream, bool capturing) {
    std::lock_guard<std::mutex> lock(contexts_mutex);
    const auto key = std::make_pair(blas, stream);
    const auto found = contexts().find(key);
    if (found != contexts().end()) return found->second;
    if (capturing) return nullptr;
    // A refusal is kept as well: it would be the same the next time.
    return contexts()[key] = StreamContext::create(stream);
}

void release(Blas blas) {
    Contexts gone;   // freed after the lock is
    std::lock_guard<std::mutex> lock(contexts_mutex);
    for (auto it = contexts().begin(); it != contexts().end();) {
        if (it->first.first != blas) { ++it; continue; }
        gone.insert(*it);
        it = contexts().erase(it);
    }
}

} // namespace blaslt
