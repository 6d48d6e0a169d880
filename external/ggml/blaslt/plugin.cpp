// The plugin's entry point. ggml's own (renamed by route.h) makes the registry; here its lookup by
// name learns our functions, so that a program reaches them as it reaches ggml's.
#include "api.h"
#include "stats.h"

#include "ggml-backend-impl.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#if defined(GGML_BACKEND_DL)

extern "C" {
ggml_backend_reg_t audiocpp_ggml_backend_init(void);
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);
}

namespace {

void * (*function_of_ggml)(ggml_backend_reg_t registry, const char * name) = nullptr;

// What the runtime calls the GPU's instruction set; empty if it does not say.
std::string arch_of(int device) {
#if defined(GGML_USE_HIP)
    hipDeviceProp_t properties;
    return hipGetDeviceProperties(&properties, device) == hipSuccess ? properties.gcnArchName : "";
#else
    int major = 0, minor = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) return "";
    return "sm_" + std::to_string(major) + std::to_string(minor);
#endif
}

// The instruction set of a GPU by ggml's number: "gfx1151", "sm_90"; null if unknown.
const char * gpu_arch(size_t device) {
    static std::mutex lock;
    static std::map<size_t, std::string> known;
    std::lock_guard<std::mutex> guard(lock);
    auto entry = known.find(device);
    if (entry == known.end()) entry = known.emplace(device, arch_of(int(device))).first;
    return entry->second.empty() ? nullptr : entry->second.c_str();
}

void * function_by_name(ggml_backend_reg_t registry, const char * name) {
    if (!strcmp(name, "audiocpp_blaslt_stats"))     return reinterpret_cast<void *>(audiocpp_blaslt_stats);
    if (!strcmp(name, "audiocpp_blaslt_stat_name")) return reinterpret_cast<void *>(audiocpp_blaslt_stat_name);
    if (!strcmp(name, "audiocpp_blaslt_f32"))       return reinterpret_cast<void *>(audiocpp_blaslt_f32);
    if (!strcmp(name, "audiocpp_blaslt_library"))   return reinterpret_cast<void *>(audiocpp_blaslt_library);
    if (!strcmp(name, "audiocpp_gpu_arch"))         return reinterpret_cast<void *>(gpu_arch);
    return function_of_ggml ? function_of_ggml(registry, name) : nullptr;
}

} // namespace

ggml_backend_reg_t ggml_backend_init(void) {
    ggml_backend_reg_t registry = audiocpp_ggml_backend_init();
    if (registry && registry->iface.get_proc_address != function_by_name) {
        function_of_ggml = registry->iface.get_proc_address;
        registry->iface.get_proc_address = function_by_name;
    }
    return registry;
}

#endif
