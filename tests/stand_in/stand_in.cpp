// A ggml backend plugin that registers as a GPU backend and computes on the CPU, with faults by
// environment (README.md). Its file name says which backend it stands in for.
#include "faults.h"
#include "memory.h"

#include "ggml-cpu.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <limits>
#include <memory>
#include <thread>

namespace stand_in {
namespace {

std::atomic<long> graphs{0}, nodes{0};

struct Stream { Device * device; ggml_backend_t cpu; };

[[noreturn]] void hang() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// --- Computing

bool is_result(const ggml_cgraph * graph, int i) {
    auto * g = const_cast<ggml_cgraph *>(graph);
    return i == ggml_graph_n_nodes(g) - 1 || (ggml_graph_node(g, i)->flags & GGML_TENSOR_FLAG_OUTPUT);
}

// Makes the graph's results wrong as the settings ask.
void spoil(ggml_cgraph * graph, long call) {
    const Settings & s = settings();
    if (!s.zeros.at(call) && !s.nan.at(call) && !s.perturb.at(call)) return;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        ggml_tensor * t = ggml_graph_node(graph, i);
        if (!is_result(graph, i) || t->type != GGML_TYPE_F32 || !ggml_is_contiguous(t)) continue;
        float * x = static_cast<float *>(t->data);
        for (int64_t j = 0; j < ggml_nelements(t); j++) {
            if (s.zeros.at(call))   x[j] = 0;
            if (s.perturb.at(call)) x[j] += s.perturb_by * std::max(1.0f, std::fabs(x[j])) * (j % 2 ? 1 : -1);
            if (s.nan.at(call) && j % 7 == 3) x[j] = std::numeric_limits<float>::quiet_NaN();
        }
    }
}

const char * stream_name(ggml_backend_t backend) {
    return static_cast<Stream *>(backend->context)->device->name.c_str();
}
void stream_free(ggml_backend_t backend) {
    auto * stream = static_cast<Stream *>(backend->context);
    ggml_backend_free(stream->cpu);
    delete stream;
    delete backend;
}
ggml_status compute(ggml_backend_t backend, ggml_cgraph * graph) {
    const Settings & s = settings();
    const long call = ++graphs;
    nodes += ggml_graph_n_nodes(graph);
    if (s.compute_aborts.at(call)) abort();
    if (s.compute_hangs.at(call)) hang();
    if (s.compute_fails.at(call)) return GGML_STATUS_FAILED;
    if (s.compute_sleep_ms) std::this_thread::sleep_for(std::chrono::milliseconds(s.compute_sleep_ms));
    const ggml_status status = ggml_backend_graph_compute(static_cast<Stream *>(backend->context)->cpu, graph);
    if (status == GGML_STATUS_SUCCESS) spoil(graph, call);
    return status;
}

// --- Devices

// The CPU backend is a plugin itself: it is reached through ggml's registry.
ggml_backend_dev_t cpu() {
    static ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return device;
}
Device & device(ggml_backend_dev_t d) { return *static_cast<Device *>(d->context); }

const char * device_name(ggml_backend_dev_t d) { return device(d).name.c_str(); }
const char * device_description(ggml_backend_dev_t d) { return device(d).description.c_str(); }
void device_memory(ggml_backend_dev_t d, size_t * free, size_t * total) {
    *total = settings().memory;
    *free = *total - std::min(*total, device(d).used.load());
}
enum ggml_backend_dev_type device_type(ggml_backend_dev_t) {
    return settings().integrated ? GGML_BACKEND_DEVICE_TYPE_IGPU : GGML_BACKEND_DEVICE_TYPE_GPU;
}
void device_props(ggml_backend_dev_t d, ggml_backend_dev_props * props) {
    *props = {};
    props->name = device_name(d);
    props->description = device_description(d);
    props->type = device_type(d);
    props->device_id = device(d).pci.c_str();
    device_memory(d, &props->memory_free, &props->memory_total);
}
ggml_backend_t device_open(ggml_backend_dev_t d, const char *) {
    if (settings().abort_open) abort();
    if (settings().open_fails || !cpu()) return nullptr;
    ggml_backend_t inner = ggml_backend_dev_init(cpu(), nullptr);
    if (!inner) return nullptr;
    auto set_threads = reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
        ggml_backend_dev_backend_reg(cpu()), "ggml_backend_set_n_threads"));
    if (set_threads) set_threads(inner, settings().threads);
    static ggml_guid guid = { 's', 't', 'a', 'n', 'd', '-', 'i', 'n' };
    ggml_backend_i iface{};
    iface.get_name = stream_name;
    iface.free = stream_free;
    iface.graph_compute = compute;
    return new ggml_backend{ &guid, iface, d, new Stream{ &device(d), inner } };
}
ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t d) { return &device(d).buffer_type; }
bool device_supports_op(ggml_backend_dev_t, const ggml_tensor * op) {
    for (const auto & name : settings().unsupported) {
        if (name == ggml_op_desc(op) || name == ggml_op_name(op->op)) return false;
    }
    return cpu() && ggml_backend_dev_supports_op(cpu(), op);
}
bool device_supports_buffer_type(ggml_backend_dev_t d, ggml_backend_buffer_type_t type) {
    return type == &device(d).buffer_type;
}

// --- Registry

// "libggml-hip.so" stands in for ROCm, and so on.
const char * registry_name_of_this_file() {
    Dl_info info{};
    dladdr(reinterpret_cast<void *>(&registry_name_of_this_file), &info);
    const char * file = info.dli_fname ? info.dli_fname : "";
    if (strstr(file, "ggml-cuda")) return "CUDA";
    if (strstr(file, "ggml-vulkan")) return "Vulkan";
    if (strstr(file, "ggml-metal")) return "Metal";
    return "ROCm";
}

// PCI bus id of the i-th device: `first` with its bus number raised by i.
std::string pci_of(const std::string & first, int i) {
    unsigned domain, bus, slot, function;
    if (sscanf(first.c_str(), "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) return first;
    char text[32];
    snprintf(text, sizeof text, "%04x:%02x:%02x.%x", domain, bus + unsigned(i), slot, function);
    return text;
}

ggml_backend_reg registry{};

const std::vector<std::unique_ptr<Device>> & devices() {
    static const auto all = [] {
        std::vector<std::unique_ptr<Device>> made;
        for (int i = 0; i < settings().devices; i++) {
            auto d = std::make_unique<Device>();
            d->name = registry_name_of_this_file() + std::to_string(i);
            d->description = settings().description;
            d->pci = pci_of(settings().pci, i);
            init_buffer_type(*d);
            ggml_backend_device_i & iface = d->device.iface;
            iface.get_name        = device_name;
            iface.get_description = device_description;
            iface.get_memory      = device_memory;
            iface.get_type        = device_type;
            iface.get_props       = device_props;
            iface.init_backend    = device_open;
            iface.get_buffer_type = device_buffer_type;
            iface.supports_op     = device_supports_op;
            iface.supports_buft   = device_supports_buffer_type;
            d->device.reg = &registry;
            d->device.context = d.get();
            made.push_back(std::move(d));
        }
        return made;
    }();
    return all;
}

const char * registry_name(ggml_backend_reg_t) { return registry_name_of_this_file(); }
size_t registry_count(ggml_backend_reg_t) { return devices().size(); }
ggml_backend_dev_t registry_device(ggml_backend_reg_t, size_t i) {
    return i < devices().size() ? &devices()[i]->device : nullptr;
}

// For tests: how many graphs, and nodes in them, ran here.
long graphs_computed() { return graphs; }
long nodes_computed() { return nodes; }

// The functions of the hipBLASLt route (external/ggml/blaslt/stats.h), with two counters.
size_t blaslt_stats(uint64_t * values, size_t count) {
    const uint64_t all[] = { uint64_t(nodes), 0 };
    for (size_t i = 0; values && i < count && i < 2; i++) values[i] = all[i];
    return 2;
}
const char * blaslt_stat_name(size_t i) {
    static const char * const names[] = { "lt_calls", "blas_calls" };
    return i < 2 ? names[i] : nullptr;
}
const char * blaslt_f32(const char * mode) {
    static std::atomic<bool> fast{false};
    const bool before = fast;
    if (mode) fast = !strcmp(mode, "fast");
    return before ? "fast" : "exact";
}
const char * blaslt_library() { return "hipBLASLt stand-in"; }
const char * gpu_arch(size_t) { return getenv("STAND_IN_ARCH"); }

void * registry_function(ggml_backend_reg_t, const char * name) {
    if (!strcmp(name, "stand_in_graphs")) return reinterpret_cast<void *>(graphs_computed);
    if (!strcmp(name, "stand_in_nodes")) return reinterpret_cast<void *>(nodes_computed);
    if (strcmp(registry_name_of_this_file(), "ROCm")) return nullptr;
    if (!strcmp(name, "audiocpp_blaslt_stats"))     return reinterpret_cast<void *>(blaslt_stats);
    if (!strcmp(name, "audiocpp_blaslt_stat_name")) return reinterpret_cast<void *>(blaslt_stat_name);
    if (!strcmp(name, "audiocpp_blaslt_f32"))       return reinterpret_cast<void *>(blaslt_f32);
    if (!strcmp(name, "audiocpp_blaslt_library"))   return reinterpret_cast<void *>(blaslt_library);
    if (!strcmp(name, "audiocpp_gpu_arch"))         return reinterpret_cast<void *>(gpu_arch);
    return nullptr;
}

__attribute__((destructor)) void at_exit() {
    if (settings().hang_at_exit) hang();
}

} // namespace
} // namespace stand_in

extern "C" {
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);
GGML_BACKEND_API int ggml_backend_score(void);
}

ggml_backend_reg_t ggml_backend_init(void) {
    using namespace stand_in;
    if (settings().abort_load) abort();
    if (settings().registry_null) return nullptr;
    registry.api_version = settings().wrong_abi ? GGML_BACKEND_API_VERSION - 1 : GGML_BACKEND_API_VERSION;
    registry.iface = { registry_name, registry_count, registry_device, registry_function };
    return &registry;
}

int ggml_backend_score(void) { return stand_in::settings().score_zero ? 0 : 1; }
