// The plugin's entry point. ggml's own (renamed by route.h) makes the registry; here its lookup by
// name learns our functions, so that a program reaches them as it reaches ggml's.
#include "stats.h"

#include "ggml-backend-impl.h"

#include <cstring>

#if defined(GGML_BACKEND_DL)

extern "C" {
ggml_backend_reg_t audiocpp_ggml_backend_init(void);
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);
}

namespace {

void * (*function_of_ggml)(ggml_backend_reg_t registry, const char * name) = nullptr;

void * function_by_name(ggml_backend_reg_t registry, const char * name) {
    if (!strcmp(name, "audiocpp_blaslt_stats"))     return reinterpret_cast<void *>(audiocpp_blaslt_stats);
    if (!strcmp(name, "audiocpp_blaslt_stat_name")) return reinterpret_cast<void *>(audiocpp_blaslt_stat_name);
    if (!strcmp(name, "audiocpp_blaslt_f32"))       return reinterpret_cast<void *>(audiocpp_blaslt_f32);
    if (!strcmp(name, "audiocpp_blaslt_library"))   return reinterpret_cast<void *>(audiocpp_blaslt_library);
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
