// A stand-in for libcuda.so.1: the part of the CUDA driver's interface that crate `gpu` calls.
//
// What a stream is given does not run at once. It waits until somebody waits for the stream, an event
// or the device, and then streams go on in an order that chance chooses, held only by the events that
// they wait for. So a missing wait on the host's side is seen as a wrong answer here, too.
//
// Settings, all from the environment:
//   EMULATED_SEED         seed of every schedule
//   EMULATED_CAPABILITY   compute capability times ten, 90 unless set
//   EMULATED_VERSION      version of the driver, 13000 unless set
//   EMULATED_MEMORY       bytes of device memory
//   EMULATED_FAIL_ALLOC   the n-th allocation and the next find no memory
//   EMULATED_FAIL_LAUNCH  the n-th kernel ends in a fault
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "machine.h"

using namespace emulated;

namespace {

enum Code {
    success = 0,
    invalid_value = 1,
    out_of_memory = 2,
    not_initialized = 3,
    invalid_device = 101,
    invalid_image = 200,
    no_binary = 209,
    invalid_handle = 400,
    not_found = 500,
    not_ready = 600,
    illegal_address = 700,
    already_registered = 712,
    out_of_resources = 701,
    launch_failed = 719,
    unknown = 999,
};

struct Event {
    uint64_t wanted = 0;
    uint64_t reached = 0;
    std::chrono::steady_clock::time_point at;
};

struct Operation {
    std::function<void()> action;
    Event* awaited = nullptr;
    uint64_t awaited_number = 0;
};

struct Stream {
    std::deque<Operation> queue;
};

struct Function {
    const KernelEntry* entry;
    int shared_max = 48 * 1024;
};

struct Module {
    std::string image;
    std::map<std::string, Function> functions;
};

std::recursive_mutex latch;
Stream default_stream;
std::set<Stream*> streams;
std::map<uintptr_t, size_t> device_memory;
std::map<uintptr_t, size_t> host_memory;
size_t used_bytes = 0;
long allocations = 0;
long launches = 0;
// An error of a kernel stays: every later call reports it, as on a device.
int sticky = success;
bool is_ready = false;

size_t memory_bytes() { return static_cast<size_t>(setting("EMULATED_MEMORY", 1L << 30)); }

Stream* stream_of(void* handle) { return handle ? static_cast<Stream*>(handle) : &default_stream; }

bool may_run(const Stream& stream) {
    if (stream.queue.empty()) return false;
    const Operation& first = stream.queue.front();
    // After a fault nothing is done any more, and what waits would wait for ever.
    return !first.awaited || sticky != success || first.awaited->reached >= first.awaited_number;
}

// Runs what waits, streams in an order by chance, until `is_enough` or nothing can go on.
void run_until(const std::function<bool()>& is_enough) {
    while (!is_enough()) {
        std::vector<Stream*> ready;
        for (Stream* stream : streams)
            if (may_run(*stream)) ready.push_back(stream);
        if (may_run(default_stream)) ready.push_back(&default_stream);
        if (ready.empty()) return;
        Stream* stream = ready[random_word() % ready.size()];
        Operation operation = std::move(stream->queue.front());
        stream->queue.pop_front();
        if (operation.action && sticky == success) operation.action();
    }
}

void run_all() {
    run_until([] { return false; });
}

int enqueue(void* stream, std::function<void()> action) {
    if (sticky) return sticky;
    stream_of(stream)->queue.push_back(Operation{std::move(action), nullptr, 0});
    return success;
}

// Whether `bytes` from `place` on lie in one allocation of `memory`.
bool lies_in(const std::map<uintptr_t, size_t>& memory, uintptr_t place, size_t bytes) {
    auto above = memory.upper_bound(place);
    if (above == memory.begin()) return false;
    auto found = std::prev(above);
    return place + bytes <= found->first + found->second;
}

int check_device(uintptr_t place, size_t bytes, const char* what) {
    if (bytes == 0 || lies_in(device_memory, place, bytes) || lies_in(host_memory, place, bytes)) return success;
    fprintf(stderr, "emulated: %s of %zu bytes leaves the memory of the device\n", what, bytes);
    return invalid_value;
}

size_t image_bytes(const void* image) {
    auto bytes = static_cast<const unsigned char*>(image);
    if (memcmp(bytes, "\177ELF", 4) != 0) return strlen(static_cast<const char*>(image));
    uint64_t sections_at, programs_at;
    uint16_t program_bytes, program_count, section_bytes, section_count;
    memcpy(&programs_at, bytes + 32, 8);
    memcpy(&sections_at, bytes + 40, 8);
    memcpy(&program_bytes, bytes + 54, 2);
    memcpy(&program_count, bytes + 56, 2);
    memcpy(&section_bytes, bytes + 58, 2);
    memcpy(&section_count, bytes + 60, 2);
    size_t sections_end = sections_at + static_cast<size_t>(section_bytes) * section_count;
    size_t programs_end = programs_at + static_cast<size_t>(program_bytes) * program_count;
    return sections_end > programs_end ? sections_end : programs_end;
}

void run_kernel(const Function& function, const std::vector<std::vector<unsigned char>>& values, const unsigned* grid,
                const unsigned* block, size_t shared) {
    std::vector<void*> parameters;
    for (const auto& value : values) parameters.push_back(const_cast<unsigned char*>(value.data()));
    launches += 1;
    if (launches == setting("EMULATED_FAIL_LAUNCH", -1)) {
        fprintf(stderr, "emulated: kernel %s fails, as was asked for\n", function.entry->name);
        sticky = launch_failed;
        return;
    }
    Launch launch{function.entry->call, parameters.data(), function.entry->name, {grid[0], grid[1], grid[2]},
                  {block[0], block[1], block[2]}, shared};
    Fault fault = run(launch);
    if (fault != Fault::none) sticky = static_cast<int>(fault);
}

int allocate(void** place, size_t bytes, std::map<uintptr_t, size_t>& memory, const char* kind) {
    if (bytes == 0) return invalid_value;
    // Once more after it, too, as the program may give memory back and ask again.
    long since = ++allocations - setting("EMULATED_FAIL_ALLOC", 1L << 60);
    if (since == 0 || since == 1) return out_of_memory;
    *place = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*place) return out_of_memory;
    memset(*place, 0xcd, bytes);
    memory[reinterpret_cast<uintptr_t>(*place)] = bytes;
    add_region(*place, bytes, kind);
    return success;
}

int attribute_of(int which) {
    switch (which) {
        case 1: return 1024;                              // threads of a block
        case 8: return 48 * 1024;                         // shared memory of a block
        case 10: return 32;                               // lanes of a warp
        case 13: return 1000000;                          // clock, kHz
        case 16: return 2;                                // multiprocessors
        case 19: return 1;                                // maps host memory
        case 36: return 1000000;                          // clock of memory, kHz
        case 37: return 64;                               // width of the memory bus
        case 38: return 1 << 20;                          // L2, bytes
        case 39: return 2048;                             // threads of a multiprocessor
        case 40: return 1;                                // copy engines
        case 41: return 1;                                // unified addresses
        case 75: return static_cast<int>(setting("EMULATED_CAPABILITY", 90) / 10);
        case 76: return static_cast<int>(setting("EMULATED_CAPABILITY", 90) % 10);
        case 81: return 228 * 1024;                       // shared memory of a multiprocessor
        case 97: return static_cast<int>(shared_bytes_max); // shared memory of a block, if asked for
        default: return 0;
    }
}

} // namespace

#define LATCHED std::lock_guard<std::recursive_mutex> guard(latch)

extern "C" {

int cuInit(unsigned) {
    is_ready = true;
    return success;
}
int cuDriverGetVersion(int* version) {
    *version = static_cast<int>(setting("EMULATED_VERSION", 13000));
    return success;
}
int cuDeviceGetCount(int* count) {
    *count = 1;
    return is_ready ? success : not_initialized;
}
int cuDeviceGet(int* device, int ordinal) {
    *device = 0;
    return ordinal == 0 ? success : invalid_device;
}
int cuDeviceGetName(char* name, int bytes, int) {
    snprintf(name, static_cast<size_t>(bytes), "emulated device");
    return success;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
    *bytes = memory_bytes();
    return success;
}
int cuDeviceGetAttribute(int* value, int which, int) {
    *value = attribute_of(which);
    return success;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
    *context = &default_stream;
    return success;
}
int cuDevicePrimaryCtxRelease_v2(int) { return success; }
int cuCtxSetCurrent(void*) { return success; }
int cuCtxSynchronize() {
    LATCHED;
    run_all();
    return sticky;
}
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    LATCHED;
    *total_bytes = memory_bytes();
    *free_bytes = *total_bytes - used_bytes;
    return sticky;
}
int cuMemAlloc_v2(uintptr_t* place, size_t bytes) {
    LATCHED;
    if (sticky) return sticky;
    if (used_bytes + bytes > memory_bytes()) return out_of_memory;
    void* memory = nullptr;
    int code = allocate(&memory, bytes, device_memory, "device memory");
    if (code == success) used_bytes += bytes;
    *place = reinterpret_cast<uintptr_t>(memory);
    return code;
}
int cuMemFree_v2(uintptr_t place) {
    LATCHED;
    run_all();
    auto found = device_memory.find(place);
    if (found == device_memory.end()) return invalid_value;
    used_bytes -= found->second;
    device_memory.erase(found);
    remove_region(reinterpret_cast<void*>(place));
    free(reinterpret_cast<void*>(place));
    return sticky;
}
int cuMemHostAlloc(void** place, size_t bytes, unsigned) {
    LATCHED;
    if (sticky) return sticky;
    return allocate(place, bytes, host_memory, "pinned host memory");
}
int cuMemFreeHost(void* place) {
    LATCHED;
    run_all();
    if (host_memory.erase(reinterpret_cast<uintptr_t>(place)) == 0) return invalid_value;
    remove_region(place);
    free(place);
    return sticky;
}
int cuMemHostRegister_v2(void* place, size_t bytes, unsigned) {
    LATCHED;
    if (sticky) return sticky;
    // Whole pages are pinned, each once.
    auto page_of = [](uintptr_t at) { return at / 4096; };
    auto first = reinterpret_cast<uintptr_t>(place);
    for (const auto& other : host_memory)
        if (page_of(other.first) <= page_of(first + bytes - 1) && page_of(first) <= page_of(other.first + other.second - 1))
            return already_registered;
    host_memory[first] = bytes;
    add_region(place, bytes, "registered host memory");
    return success;
}
int cuMemHostUnregister(void* place) {
    LATCHED;
    run_all();
    if (host_memory.erase(reinterpret_cast<uintptr_t>(place)) == 0) return invalid_value;
    remove_region(place);
    return sticky;
}
int cuMemHostGetDevicePointer_v2(uintptr_t* device, void* host, unsigned) {
    LATCHED;
    if (!lies_in(host_memory, reinterpret_cast<uintptr_t>(host), 1)) return invalid_value;
    *device = reinterpret_cast<uintptr_t>(host);
    return success;
}
int cuMemcpyHtoDAsync_v2(uintptr_t to, const void* from, size_t bytes, void* stream) {
    LATCHED;
    if (int code = check_device(to, bytes, "copy to the device")) return code;
    return enqueue(stream, [=] { memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
int cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t bytes, void* stream) {
    LATCHED;
    if (int code = check_device(from, bytes, "copy from the device")) return code;
    return enqueue(stream, [=] { memcpy(to, reinterpret_cast<void*>(from), bytes); });
}
int cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t bytes, void* stream) {
    LATCHED;
    if (int code = check_device(from, bytes, "copy")) return code;
    if (int code = check_device(to, bytes, "copy")) return code;
    return enqueue(stream, [=] { memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
}
int cuMemsetD8Async(uintptr_t place, unsigned char value, size_t bytes, void* stream) {
    LATCHED;
    if (int code = check_device(place, bytes, "fill")) return code;
    return enqueue(stream, [=] { memset(reinterpret_cast<void*>(place), value, bytes); });
}
int cuModuleLoadData(void** module, const void* image) {
    LATCHED;
    if (sticky) return sticky;
    bool is_elf = memcmp(image, "\177ELF", 4) == 0;
    if (is_elf && setting("EMULATED_CAPABILITY", 90) != 90) return no_binary;
    if (!is_elf && memcmp(image, "//", 2) != 0) return invalid_image;
    *module = new Module{std::string(static_cast<const char*>(image), image_bytes(image)), {}};
    return success;
}
int cuModuleUnload(void* module) {
    LATCHED;
    run_all();
    delete static_cast<Module*>(module);
    return success;
}
// A kernel counts only if the binary has it, too: else a binary older than its source would go unseen.
int cuModuleGetFunction(void** function, void* module, const char* name) {
    LATCHED;
    auto loaded = static_cast<Module*>(module);
    const KernelEntry* entry = find_kernel(name);
    if (!entry || loaded->image.find(name) == std::string::npos) {
        fprintf(stderr, "emulated: there is no kernel %s in the %s\n", name, entry ? "binary" : "sources");
        return not_found;
    }
    *function = &loaded->functions.emplace(name, Function{entry}).first->second;
    return success;
}
int cuFuncSetAttribute(void* function, int which, int value) {
    if (which != 8) return success;
    if (value > static_cast<int>(shared_bytes_max)) return invalid_value;
    static_cast<Function*>(function)->shared_max = value;
    return success;
}
int cuFuncGetAttribute(int* value, int, void*) {
    *value = 0;
    return success;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, void*, int threads, size_t shared) {
    int by_threads = 2048 / (threads > 0 ? threads : 1);
    int by_memory = shared == 0 ? 32 : static_cast<int>(228 * 1024 / (shared + 1024));
    *count = by_threads < by_memory ? by_threads : by_memory;
    return success;
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** parameters, void**) {
    LATCHED;
    if (sticky) return sticky;
    auto kernel = static_cast<Function*>(function);
    bool is_flat = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
    if (!is_flat || grid_x == 0 || block_x == 0 || block_x > threads_max) return invalid_value;
    if (static_cast<int>(shared) > kernel->shared_max) return invalid_value;
    std::vector<std::vector<unsigned char>> values;
    for (unsigned at = 0; at < kernel->entry->parameter_count; ++at) {
        auto bytes = static_cast<unsigned char*>(parameters[at]);
        // 16 bytes at least, so that a value may be read as any type of a parameter.
        std::vector<unsigned char> value(kernel->entry->sizes[at] < 16 ? 16 : kernel->entry->sizes[at]);
        memcpy(value.data(), bytes, kernel->entry->sizes[at]);
        values.push_back(value);
    }
    std::vector<unsigned> grid{grid_x, 1, 1}, block{block_x, 1, 1};
    return enqueue(stream, [=] { run_kernel(*kernel, values, grid.data(), block.data(), shared); });
}
int cuStreamCreate(void** stream, unsigned) {
    LATCHED;
    if (sticky) return sticky;
    auto made = new Stream();
    streams.insert(made);
    *stream = made;
    return success;
}
int cuStreamDestroy_v2(void* stream) {
    LATCHED;
    run_all();
    streams.erase(static_cast<Stream*>(stream));
    delete static_cast<Stream*>(stream);
    return success;
}
int cuStreamSynchronize(void* handle) {
    LATCHED;
    Stream* stream = stream_of(handle);
    run_until([=] { return stream->queue.empty(); });
    return sticky;
}
int cuStreamWaitEvent(void* handle, void* event, unsigned) {
    LATCHED;
    auto awaited = static_cast<Event*>(event);
    stream_of(handle)->queue.push_back(Operation{nullptr, awaited, awaited->wanted});
    return sticky;
}
int cuEventCreate(void** event, unsigned) {
    *event = new Event();
    return success;
}
int cuEventRecord(void* handle, void* stream) {
    LATCHED;
    auto event = static_cast<Event*>(handle);
    uint64_t number = ++event->wanted;
    return enqueue(stream, [=] {
        event->reached = number;
        event->at = std::chrono::steady_clock::now();
    });
}
int cuEventSynchronize(void* handle) {
    LATCHED;
    auto event = static_cast<Event*>(handle);
    uint64_t number = event->wanted;
    run_until([=] { return event->reached >= number; });
    return sticky;
}
int cuEventQuery(void* handle) {
    LATCHED;
    auto event = static_cast<Event*>(handle);
    if (sticky) return sticky;
    return event->reached >= event->wanted ? success : not_ready;
}
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
    LATCHED;
    auto span = static_cast<Event*>(end)->at - static_cast<Event*>(start)->at;
    *milliseconds = std::chrono::duration<float, std::milli>(span).count();
    return sticky;
}
int cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
    return cuEventElapsedTime(milliseconds, start, end);
}
int cuEventDestroy_v2(void* event) {
    LATCHED;
    run_all();
    delete static_cast<Event*>(event);
    return success;
}
int cuGetErrorName(int code, const char** name) {
    switch (code) {
        case out_of_memory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
        case illegal_address: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
        case launch_failed: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
        case no_binary: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; break;
        case invalid_value: *name = "CUDA_ERROR_INVALID_VALUE"; break;
        case not_found: *name = "CUDA_ERROR_NOT_FOUND"; break;
        default: *name = "CUDA_ERROR"; break;
    }
    return success;
}
int cuGetErrorString(int code, const char** text) {
    *text = code == out_of_memory ? "out of memory" : "an error of the emulated device";
    return success;
}
}
