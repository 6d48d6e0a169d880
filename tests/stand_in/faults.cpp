#include "faults.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace stand_in {
namespace {

[[noreturn]] void refuse(const std::string & what, const std::string & value) {
    fprintf(stderr, "stand-in: %s: cannot understand '%s'\n", what.c_str(), value.c_str());
    fflush(stderr);
    _exit(96);   // not exit: settings may be half read, and exit handlers ask for them
}

std::string variable(const char * name) {
    const char * value = getenv(name);
    return value ? value : "";
}

std::vector<std::string> split(const std::string & text, char separator) {
    std::vector<std::string> parts;
    size_t begin = 0;
    while (begin <= text.size()) {
        size_t end = text.find(separator, begin);
        if (end == std::string::npos) end = text.size();
        if (end > begin) parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

unsigned long long number(const char * name, const std::string & text) {
    char * end = nullptr;
    unsigned long long value = strtoull(text.c_str(), &end, 10);
    if (text.empty() || *end) refuse(name, text);
    return value;
}

// "word", "word:3": the part after the colon, or 1.
From from(const std::vector<std::string> & parts) {
    return { parts.size() > 1 ? long(number("STAND_IN_FAULT", parts[1])) : 1 };
}

void fault(Settings & s, const std::string & text) {
    const auto parts = split(text, ':');
    const std::string & word = parts[0];
    if      (word == "score")          s.score_zero = true;
    else if (word == "registry")       s.registry_null = true;
    else if (word == "abi")            s.wrong_abi = true;
    else if (word == "abort-load")     s.abort_load = true;
    else if (word == "open")           s.open_fails = true;
    else if (word == "abort-open")     s.abort_open = true;
    else if (word == "compute")        s.compute_fails = from(parts);
    else if (word == "abort-compute")  s.compute_aborts = from(parts);
    else if (word == "hang-compute")   s.compute_hangs = from(parts);
    else if (word == "hang-exit")      s.hang_at_exit = true;
    else if (word == "zeros")          s.zeros = from(parts);
    else if (word == "nan")            s.nan = from(parts);
    else if (word == "stale")          s.stale_inputs = true;
    else if (word == "sleep" && parts.size() == 2) s.compute_sleep_ms = long(number("STAND_IN_FAULT", parts[1]));
    else if (word == "perturb" && (parts.size() == 2 || parts.size() == 3)) {
        s.perturb_by = strtof(parts[1].c_str(), nullptr);
        if (s.perturb_by == 0) refuse("STAND_IN_FAULT", text);
        s.perturb = { parts.size() == 3 ? long(number("STAND_IN_FAULT", parts[2])) : 1 };
    }
    else refuse("STAND_IN_FAULT", text);
}

Settings read() {
    Settings s;
    const std::string type = variable("STAND_IN_TYPE");
    if (type == "igpu") s.integrated = true;
    else if (!type.empty() && type != "gpu") refuse("STAND_IN_TYPE", type);

    const auto take = [](const char * name, auto & into) {
        const std::string text = variable(name);
        if (!text.empty()) into = std::decay_t<decltype(into)>(number(name, text));
    };
    take("STAND_IN_DEVICES", s.devices);
    take("STAND_IN_MEMORY", s.memory);
    take("STAND_IN_LIMIT", s.limit);
    take("STAND_IN_THREADS", s.threads);
    if (!variable("STAND_IN_DESCRIPTION").empty()) s.description = variable("STAND_IN_DESCRIPTION");
    if (!variable("STAND_IN_PCI").empty()) s.pci = variable("STAND_IN_PCI");
    s.unsupported = split(variable("STAND_IN_UNSUPPORTED"), ',');
    for (const auto & word : split(variable("STAND_IN_FAULT"), ',')) fault(s, word);
    return s;
}

} // namespace

const Settings & settings() {
    static const Settings read_once = read();
    return read_once;
}

} // namespace stand_in
