#include "memory.h"
#include "faults.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

namespace stand_in {
namespace {

constexpr size_t ALIGNMENT = 128;

struct Block {
    Device * device;
    void *   base;
    std::mutex written_lock;
    std::set<const void *> written;   // places written to, kept for the fault `stale`
};

Block & block(ggml_backend_buffer_t buffer) { return *static_cast<Block *>(buffer->context); }

void free_buffer(ggml_backend_buffer_t buffer) {
    Block * b = &block(buffer);
    b->device->used -= buffer->size;
    free(b->base);
    delete b;
}
void * base(ggml_backend_buffer_t buffer) { return block(buffer).base; }
char * at(const ggml_tensor * tensor, size_t offset) { return static_cast<char *>(tensor->data) + offset; }

void memset_tensor(ggml_backend_buffer_t, ggml_tensor * tensor, uint8_t value, size_t offset, size_t size) {
    memset(at(tensor, offset), value, size);
}
void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor * tensor, const void * data, size_t offset, size_t size) {
    char * to = at(tensor, offset);
    if (settings().stale_inputs) {
        Block & b = block(buffer);
        std::lock_guard<std::mutex> lock(b.written_lock);
        if (!b.written.insert(to).second) return;
    }
    memcpy(to, data, size);
}
void get_tensor(ggml_backend_buffer_t, const ggml_tensor * tensor, void * data, size_t offset, size_t size) {
    memcpy(data, at(tensor, offset), size);
}
bool copy_tensor(ggml_backend_buffer_t, const ggml_tensor * from, ggml_tensor * to) {
    const bool readable = ggml_backend_buffer_is_host(from->buffer) || from->buffer->iface.get_base == base;
    if (!readable) return false;
    ggml_backend_tensor_set(to, from->data, 0, ggml_nbytes(from));
    return true;
}
void clear(ggml_backend_buffer_t buffer, uint8_t value) { memset(base(buffer), value, buffer->size); }

Device & device(ggml_backend_buffer_type_t type) { return *static_cast<Device *>(type->context); }

const char * type_name(ggml_backend_buffer_type_t type) { return device(type).name.c_str(); }

ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, size_t size) {
    Device & d = device(type);
    const Settings & s = settings();
    const size_t most = s.memory ? std::min(s.memory, s.limit) : s.limit;
    if (d.used + size > most) return nullptr;
    const size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    void * memory = aligned_alloc(ALIGNMENT, rounded);
    if (!memory) return nullptr;
    d.used += size;
    ggml_backend_buffer_i iface{};
    iface.free_buffer   = free_buffer;
    iface.get_base      = base;
    iface.memset_tensor = memset_tensor;
    iface.set_tensor    = set_tensor;
    iface.get_tensor    = get_tensor;
    iface.cpy_tensor    = copy_tensor;
    iface.clear         = clear;
    auto * b = new Block;
    b->device = &d;
    b->base = memory;
    return ggml_backend_buffer_init(type, iface, b, size);
}
size_t alignment(ggml_backend_buffer_type_t) { return ALIGNMENT; }
bool is_host(ggml_backend_buffer_type_t) { return false; }

} // namespace

void init_buffer_type(Device & d) {
    d.buffer_type.iface.get_name      = type_name;
    d.buffer_type.iface.alloc_buffer  = alloc_buffer;
    d.buffer_type.iface.get_alignment = alignment;
    d.buffer_type.iface.is_host       = is_host;
    d.buffer_type.device  = &d.device;
    d.buffer_type.context = &d;
}

} // namespace stand_in
