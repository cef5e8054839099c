// The emulated device from inside: memory regions with a shadow, faults, and the launch of a grid.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulated {

// What one word of memory remembers of the launch under way, for the race detector.
struct Trace {
    uint32_t launch = 0;
    uint32_t thread = 0;
    uint32_t block = 0;
    uint32_t block_turn = 0;
    uint32_t warp_turn = 0;
    uint8_t bytes = 0;
    bool is_atomic = false;
    bool has_many = false;       // several threads that nothing orders
    bool has_many_warps = false; // ... of several warps
    bool has_many_blocks = false;
};

struct Cell {
    Trace write;
    Trace read;
};

enum class Fault : int { none = 0, illegal_address = 700, launch_failed = 719 };

// Memory that kernels may touch.
void add_region(void* base, size_t bytes, const char* kind);
void remove_region(void* base);

struct Launch {
    void (*call)(void**);
    void** parameters;
    const char* name;
    unsigned grid[3];
    unsigned block[3];
    size_t shared_bytes;
};

// Runs a grid to its end. On a fault it says what and where on standard error.
Fault run(const Launch& launch);

struct KernelEntry {
    const char* name;
    void (*call)(void**);
    const unsigned* sizes;
    unsigned parameter_count;
};
const KernelEntry* find_kernel(const char* name);

// The seed of all schedules, from EMULATED_SEED.
uint64_t random_word();
long setting(const char* name, long otherwise);

constexpr size_t shared_bytes_max = 227 * 1024;
constexpr unsigned threads_max = 1024;

} // namespace emulated
