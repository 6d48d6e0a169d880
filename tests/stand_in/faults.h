// What the stand-in pretends and which faults it has, read from the environment. See README.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stand_in {

// When a fault strikes: never, or from the n-th occasion on (the first is 1).
struct From {
    long first = 0;
    bool at(long occasion) const { return first > 0 && occasion >= first; }
};

struct Settings {
    int         devices = 1;
    bool        integrated = false;
    size_t      memory = size_t(4) << 30;   // total, in bytes; 0 = the device reports none
    size_t      limit = SIZE_MAX;           // allocations beyond so many bytes fail
    std::string description = "stand-in";
    std::string pci = "0000:03:00.0";       // of device 0; the bus number counts up
    std::vector<std::string> unsupported;   // names of ggml ops
    int         threads = 2;

    // Faults while the plugin is loaded.
    bool score_zero = false, registry_null = false, wrong_abi = false, abort_load = false;
    // Faults while a device is opened.
    bool open_fails = false, abort_open = false;
    // Faults while a graph is computed, from its n-th call on.
    From compute_fails, compute_aborts, compute_hangs;
    long compute_sleep_ms = 0;
    // Wrong numbers, from the n-th graph on.
    From zeros, nan, perturb;
    float perturb_by = 0;
    bool  stale_inputs = false;             // a second write to the same place is lost
    bool  hang_at_exit = false;
};

// Reads the environment once. A word that is not understood ends the process with a message: a
// test must not run without the fault that it asked for.
const Settings & settings();

} // namespace stand_in
