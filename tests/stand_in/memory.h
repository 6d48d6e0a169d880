// Device memory of the stand-in: ordinary memory that is not called host memory, so that the
// engine's copies to and from a device really happen.
#pragma once
#include "ggml-backend-impl.h"

#include <atomic>
#include <string>

namespace stand_in {

struct Device {
    std::string name, description, pci;
    std::atomic<size_t> used{0};
    ggml_backend_buffer_type buffer_type{};
    ggml_backend_device device{};
};

// Fills in `device.buffer_type`.
void init_buffer_type(Device & device);

} // namespace stand_in
