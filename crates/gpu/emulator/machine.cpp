// The emulated device: fibers for threads, a seeded scheduler, and two detectors.
//
// Every thread of a block is a fiber on a stack of its own. A fiber runs until it waits (at a barrier
// or in a warp's collective), or until chance takes its turn away at an access to memory. So what a
// missing barrier or a missing atomic allows does happen, under one seed or another.
//
// The kernels are compiled with `-fsanitize=thread`, and the hooks that the compiler puts in front of
// each access lead here, not to the sanitizer's library. Each access must lie inside one region that
// the program has allocated, and must be ordered with the accesses of other threads to the same bytes:
// by a barrier of the block, by a collective of the warp, or because all of them are atomic.
#include "machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "emulated.h"
#include "fiber.h"

namespace emulated {
namespace {

constexpr unsigned warp_lanes = 32;

struct Region {
    unsigned char* base;
    size_t bytes;
    std::string kind;
    std::unique_ptr<Cell[]> cells;
    Cell* cell(size_t word) {
        if (!cells) cells.reset(new Cell[bytes / 4 + 2]);
        return &cells[word];
    }
};

struct Block;

struct Warp {
    unsigned arrived = 0;
    unsigned mask = 0;
    uint32_t turn = 0;
    unsigned long long values[2][warp_lanes] = {};
    std::vector<unsigned> waiting;
};

struct Thread {
    Fiber fiber;
    Block* block = nullptr;
    unsigned index = 0;
    uint32_t block_turn = 0;
    uint32_t warp_turn = 0;
    bool is_waiting = false;
    bool is_done = false;
};

struct Block {
    unsigned index = 0;
    std::vector<Thread*> threads;
    std::vector<Warp> warps;
    std::unique_ptr<unsigned char, void (*)(void*)> memory{nullptr, free};
    std::unique_ptr<Region> shared;
    unsigned arrived = 0;
    unsigned done = 0;
    uint32_t turn = 0;
    int any[2] = {0, 0};
    int count[2] = {0, 0};
};

enum class Order { by_chance, in_turn, backwards, run_on };

std::map<uintptr_t, std::unique_ptr<Region>> regions;
Region* last_region = nullptr;
std::vector<KernelEntry>& kernels() {
    static std::vector<KernelEntry> list;
    return list;
}

// A kernel that has touched memory more often than this goes on for ever, as one does that has lost a bound.
constexpr uint64_t accesses_max = 200'000'000;

const Launch* launch = nullptr;
uint32_t launch_number = 0;
uint64_t accesses = 0; // of the launch
Thread* self = nullptr;
Fiber scheduler;
std::vector<Thread*> runnable;
std::vector<Thread*> pool;
Fault fault = Fault::none;
Order order = Order::by_chance;
unsigned rarity = 64;

uint64_t state = 0;

void entry_of_fiber() {
    for (;;) {
        Thread* thread = self;
        launch->call(launch->parameters);
        thread->is_done = true;
        thread->block->done += 1;
        switch_fiber(thread->fiber, scheduler);
    }
}

void leave() { switch_fiber(self->fiber, scheduler); }

// Ends the launch: this fiber is never resumed.
[[noreturn]] void fail(Fault kind, const std::string& what) {
    fprintf(stderr, "emulated: kernel %s, block %u, thread %u: %s\n", launch->name, self->block->index, self->index,
            what.c_str());
    fault = kind;
    for (;;) leave();
}

void maybe_yield() {
    if (order != Order::run_on && random_word() % rarity == 0) {
        runnable.push_back(self);
        leave();
    }
}

Region* region_of(const unsigned char* place) {
    if (last_region && place >= last_region->base && place < last_region->base + last_region->bytes) return last_region;
    Region* shared = self->block->shared.get();
    if (shared && place >= shared->base && place < shared->base + shared->bytes) return shared;
    auto above = regions.upper_bound(reinterpret_cast<uintptr_t>(place));
    if (above == regions.begin()) return nullptr;
    Region* region = std::prev(above)->second.get();
    if (place >= region->base + region->bytes) return nullptr;
    last_region = region;
    return region;
}

// Whether what `earlier` tells of is ordered before an access that the running thread makes now.
bool is_ordered(const Trace& earlier) {
    if (earlier.launch != launch_number) return true;
    if (earlier.has_many_blocks || earlier.block != self->block->index) return false;
    if (self->block_turn > earlier.block_turn) return true;
    if (earlier.has_many_warps || earlier.thread / warp_lanes != self->index / warp_lanes) return false;
    if (self->warp_turn > earlier.warp_turn) return true;
    return earlier.thread == self->index && !earlier.has_many;
}

void note(Trace& trace, uint8_t bytes, bool is_atomic) {
    bool is_joined = trace.launch == launch_number && !is_ordered(trace);
    Trace next;
    next.launch = launch_number;
    next.thread = self->index;
    next.block = self->block->index;
    next.block_turn = self->block_turn;
    next.warp_turn = self->warp_turn;
    next.bytes = bytes;
    next.is_atomic = is_atomic;
    if (is_joined) {
        next.bytes |= trace.bytes;
        next.is_atomic = next.is_atomic && trace.is_atomic;
        next.has_many = true;
        next.has_many_blocks = trace.has_many_blocks || trace.block != next.block;
        next.has_many_warps = trace.has_many_warps || trace.thread / warp_lanes != next.thread / warp_lanes;
        next.block_turn = std::max(trace.block_turn, next.block_turn);
        next.warp_turn = std::max(trace.warp_turn, next.warp_turn);
    }
    trace = next;
}

std::string describe(const char* verb, size_t bytes, const Region* region, size_t offset) {
    char text[200];
    snprintf(text, sizeof text, "%s of %zu bytes at byte %zu of %zu in %s", verb, bytes, offset, region->bytes,
             region->kind.c_str());
    return text;
}

void check_word(Region* region, size_t word, uint8_t bytes, bool is_write, bool is_atomic, size_t size, size_t offset) {
    Cell* cell = region->cell(word);
    auto clashes = [&](const Trace& earlier) {
        return (earlier.bytes & bytes) && !(earlier.is_atomic && is_atomic) && !is_ordered(earlier);
    };
    if (clashes(cell->write)) {
        fail(Fault::launch_failed,
             describe(is_write ? "race: write" : "race: read", size, region, offset) + " with a write of thread " +
                 std::to_string(cell->write.thread) + " in block " + std::to_string(cell->write.block));
    }
    if (is_write && clashes(cell->read)) {
        fail(Fault::launch_failed, describe("race: write", size, region, offset) + " with a read of thread " +
                                       std::to_string(cell->read.thread) + " in block " +
                                       std::to_string(cell->read.block));
    }
    note(is_write ? cell->write : cell->read, bytes, is_atomic);
}

void access(const void* pointer, size_t size, bool is_write, bool is_atomic) {
    if (!self) return;
    if (++accesses > accesses_max) fail(Fault::launch_failed, "it goes on for ever");
    auto place = static_cast<const unsigned char*>(pointer);
    if (is_on_stack(self->fiber, place)) return;
    maybe_yield();
    Region* region = region_of(place);
    if (!region) {
        char text[100];
        snprintf(text, sizeof text, "%s of %zu bytes at %p, which is no memory of the device",
                 is_write ? "write" : "read", size, pointer);
        fail(Fault::illegal_address, text);
    }
    size_t offset = static_cast<size_t>(place - region->base);
    if (offset + size > region->bytes) {
        fail(Fault::illegal_address, "out of bounds: " + describe(is_write ? "write" : "read", size, region, offset));
    }
    if (reinterpret_cast<uintptr_t>(place) % size != 0) {
        fail(Fault::illegal_address, "misaligned: " + describe(is_write ? "write" : "read", size, region, offset));
    }
    for (size_t done = 0; done < size;) {
        size_t within = (offset + done) % 4;
        size_t here = std::min(4 - within, size - done);
        auto bytes = static_cast<uint8_t>(((1u << here) - 1) << within);
        check_word(region, (offset + done) / 4, bytes, is_write, is_atomic, size, offset);
        done += here;
    }
}

void wake(Thread* thread) {
    thread->is_waiting = false;
    runnable.push_back(thread);
}

// Waits until all threads of the block are here; returns which of the two accumulators was theirs.
unsigned wait_for_block(int predicate) {
    Block* block = self->block;
    unsigned half = block->turn & 1;
    block->any[half] |= predicate != 0;
    block->count[half] += predicate != 0;
    if (++block->arrived == block->threads.size()) {
        block->arrived = 0;
        block->turn += 1;
        block->any[block->turn & 1] = 0;
        block->count[block->turn & 1] = 0;
        for (Thread* thread : block->threads)
            if (thread != self && thread->is_waiting) wake(thread);
    } else {
        self->is_waiting = true;
        leave();
    }
    self->block_turn = block->turn;
    return half;
}

Thread* take() {
    size_t at = 0;
    switch (order) {
        case Order::by_chance: at = random_word() % runnable.size(); break;
        case Order::in_turn: at = 0; break;
        case Order::backwards:
        case Order::run_on: at = runnable.size() - 1; break;
    }
    Thread* thread = runnable[at];
    if (order == Order::in_turn) {
        runnable.erase(runnable.begin());
    } else {
        runnable[at] = runnable.back();
        runnable.pop_back();
    }
    return thread;
}

std::unique_ptr<Block> start(unsigned index, std::vector<Thread*>& idle) {
    auto block = std::make_unique<Block>();
    unsigned count = launch->block[0];
    block->index = index;
    block->warps.resize((count + warp_lanes - 1) / warp_lanes);
    if (launch->shared_bytes > 0) {
        // Of exactly the size of the launch, so that the address sanitizer sees its end, too.
        block->memory.reset(static_cast<unsigned char*>(malloc(launch->shared_bytes)));
        for (size_t at = 0; at < launch->shared_bytes; ++at)
            block->memory.get()[at] = static_cast<unsigned char>(random_word());
        block->shared.reset(new Region{block->memory.get(), launch->shared_bytes, "shared memory", nullptr});
    }
    for (unsigned at = 0; at < count; ++at) {
        Thread* thread = idle.back();
        idle.pop_back();
        prepare_fiber(thread->fiber, entry_of_fiber);
        thread->block = block.get();
        thread->index = at;
        thread->block_turn = thread->warp_turn = 0;
        thread->is_waiting = thread->is_done = false;
        block->threads.push_back(thread);
        runnable.push_back(thread);
    }
    return block;
}

void report_stuck(const std::vector<std::unique_ptr<Block>>& blocks) {
    for (const auto& block : blocks) {
        unsigned waiting = 0;
        for (const Thread* thread : block->threads) waiting += thread->is_waiting;
        fprintf(stderr, "emulated: kernel %s, block %u is stuck: %u threads wait, %u at a barrier, %u have ended\n",
                launch->name, block->index, waiting, block->arrived, block->done);
    }
    fault = Fault::launch_failed;
}

void run_blocks() {
    unsigned block_count = launch->grid[0];
    unsigned resident_max = 1 + static_cast<unsigned>(random_word() % 3);
    unsigned thread_count = launch->block[0];
    while (pool.size() < static_cast<size_t>(resident_max) * thread_count) pool.push_back(new Thread());
    std::vector<Thread*> idle(pool.begin(), pool.begin() + static_cast<long>(resident_max) * thread_count);
    std::vector<std::unique_ptr<Block>> blocks;
    unsigned next = 0;
    while (next < block_count || !blocks.empty()) {
        while (next < block_count && blocks.size() < resident_max) blocks.push_back(start(next++, idle));
        if (runnable.empty()) return report_stuck(blocks);
        self = take();
        switch_fiber(scheduler, self->fiber);
        Thread* ran = self;
        self = nullptr;
        if (fault != Fault::none) return;
        if (ran->is_done && ran->block->done == thread_count) {
            auto at = std::find_if(blocks.begin(), blocks.end(), [&](auto& one) { return one.get() == ran->block; });
            idle.insert(idle.end(), (*at)->threads.begin(), (*at)->threads.end());
            if (last_region == (*at)->shared.get()) last_region = nullptr;
            blocks.erase(at);
        }
    }
}

template <class T, class Change> T change_atomically(T* place, Change change) {
    access(place, sizeof(T), true, true);
    T old = *place;
    *place = change(old);
    maybe_yield();
    return old;
}

template <class T> T shuffled(unsigned mask, T value, unsigned source) {
    unsigned long long values[warp_lanes];
    collect(mask, value, values);
    return static_cast<T>(values[source % warp_lanes]);
}

} // namespace

uint64_t random_word() {
    if (state == 0) state = static_cast<uint64_t>(setting("EMULATED_SEED", 1)) * 0x9e3779b97f4a7c15u + 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du >> 16;
}

long setting(const char* name, long otherwise) {
    const char* text = getenv(name);
    return text ? atol(text) : otherwise;
}

void add_region(void* base, size_t bytes, const char* kind) {
    auto place = static_cast<unsigned char*>(base);
    regions[reinterpret_cast<uintptr_t>(base)].reset(new Region{place, bytes, kind, nullptr});
}

void remove_region(void* base) {
    last_region = nullptr;
    regions.erase(reinterpret_cast<uintptr_t>(base));
}

void register_kernel(const char* name, void (*call)(void**), const unsigned* sizes, unsigned parameter_count) {
    kernels().push_back(KernelEntry{name, call, sizes, parameter_count});
}

const KernelEntry* find_kernel(const char* name) {
    for (const auto& entry : kernels())
        if (strcmp(entry.name, name) == 0) return &entry;
    return nullptr;
}

Fault run(const Launch& what) {
    launch = &what;
    launch_number += 1;
    accesses = 0;
    fault = Fault::none;
    order = static_cast<Order>(random_word() % 4);
    rarity = 16u << random_word() % 6;
    runnable.clear();
    last_region = nullptr;
    run_blocks();
    self = nullptr;
    launch = nullptr;
    last_region = nullptr;
    return fault;
}

Index thread_index() { return Index{self->index, 0, 0}; }
Index block_index() { return Index{self->block->index, 0, 0}; }
Index block_size() { return Index{launch->block[0], 1, 1}; }
Index grid_size() { return Index{launch->grid[0], 1, 1}; }
unsigned lane() { return self->index % warp_lanes; }
unsigned char* shared_memory() { return self->block->shared ? self->block->shared->base : nullptr; }
void barrier() { wait_for_block(0); }

int barrier_or(int predicate) {
    Block* block = self->block;
    return block->any[wait_for_block(predicate)];
}

int barrier_count(int predicate) {
    Block* block = self->block;
    return block->count[wait_for_block(predicate)];
}

void collect(unsigned mask, unsigned long long value, unsigned long long* values) {
    Block* block = self->block;
    Warp& warp = block->warps[self->index / warp_lanes];
    unsigned bit = 1u << lane();
    unsigned lanes = std::min<unsigned>(warp_lanes, block->threads.size() - self->index / warp_lanes * warp_lanes);
    unsigned live = lanes == warp_lanes ? 0xffffffffu : (1u << lanes) - 1;
    mask &= live;
    if (!(mask & bit)) fail(Fault::launch_failed, "a lane that is not in the mask takes part in a collective");
    if (warp.arrived == 0) warp.mask = mask;
    if (warp.mask != mask) fail(Fault::launch_failed, "lanes of a warp differ in the mask of a collective");
    unsigned half = warp.turn & 1;
    warp.values[half][lane()] = value;
    warp.arrived |= bit;
    if (warp.arrived == mask) {
        warp.arrived = 0;
        warp.turn += 1;
        for (unsigned at : warp.waiting) wake(block->threads[at]);
        warp.waiting.clear();
    } else {
        warp.waiting.push_back(self->index);
        self->is_waiting = true;
        leave();
    }
    if (mask == live) self->warp_turn = warp.turn;
    for (unsigned at = 0; at < warp_lanes; ++at) values[at] = mask >> at & 1 ? warp.values[half][at] : 0;
}

} // namespace emulated

using namespace emulated;

void __syncwarp(unsigned mask) { unsigned long long values[32]; collect(mask, 0, values); }

unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned long long values[32];
    collect(mask, predicate != 0, values);
    unsigned bits = 0;
    for (unsigned at = 0; at < 32; ++at) bits |= static_cast<unsigned>(values[at]) << at;
    return bits;
}

int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

unsigned __match_any_sync(unsigned mask, unsigned value) {
    unsigned long long values[32];
    collect(mask, value | 1ull << 32, values);
    unsigned bits = 0;
    for (unsigned at = 0; at < 32; ++at) bits |= unsigned(values[at] == (value | 1ull << 32)) << at;
    return bits;
}

unsigned __shfl_sync(unsigned mask, unsigned value, int source, int) { return shuffled(mask, value, source); }
unsigned long long __shfl_sync(unsigned mask, unsigned long long value, int source, int) {
    return shuffled(mask, value, source);
}
unsigned __shfl_up_sync(unsigned mask, unsigned value, unsigned delta, int) {
    unsigned at = lane();
    return shuffled(mask, value, at >= delta ? at - delta : at);
}
unsigned __shfl_down_sync(unsigned mask, unsigned value, unsigned delta, int) {
    unsigned at = lane();
    return shuffled(mask, value, at + delta < 32 ? at + delta : at);
}
unsigned long long __shfl_down_sync(unsigned mask, unsigned long long value, unsigned delta, int) {
    unsigned at = lane();
    return shuffled(mask, value, at + delta < 32 ? at + delta : at);
}
unsigned __shfl_xor_sync(unsigned mask, unsigned value, int with, int) {
    return shuffled(mask, value, lane() ^ static_cast<unsigned>(with));
}
unsigned long long __shfl_xor_sync(unsigned mask, unsigned long long value, int with, int) {
    return shuffled(mask, value, lane() ^ static_cast<unsigned>(with));
}

unsigned atomicAdd(unsigned* place, unsigned value) {
    return change_atomically(place, [=](unsigned old) { return old + value; });
}
unsigned long long atomicAdd(unsigned long long* place, unsigned long long value) {
    return change_atomically(place, [=](unsigned long long old) { return old + value; });
}
unsigned atomicCAS(unsigned* place, unsigned expected, unsigned value) {
    return change_atomically(place, [=](unsigned old) { return old == expected ? value : old; });
}
unsigned long long atomicCAS(unsigned long long* place, unsigned long long expected, unsigned long long value) {
    return change_atomically(place, [=](unsigned long long old) { return old == expected ? value : old; });
}
unsigned atomicExch(unsigned* place, unsigned value) {
    return change_atomically(place, [=](unsigned) { return value; });
}
unsigned long long atomicExch(unsigned long long* place, unsigned long long value) {
    return change_atomically(place, [=](unsigned long long) { return value; });
}
unsigned atomicMax(unsigned* place, unsigned value) {
    return change_atomically(place, [=](unsigned old) { return std::max(old, value); });
}
unsigned long long atomicMax(unsigned long long* place, unsigned long long value) {
    return change_atomically(place, [=](unsigned long long old) { return std::max(old, value); });
}
unsigned atomicMin(unsigned* place, unsigned value) {
    return change_atomically(place, [=](unsigned old) { return std::min(old, value); });
}
unsigned atomicOr(unsigned* place, unsigned value) {
    return change_atomically(place, [=](unsigned old) { return old | value; });
}
void __threadfence() {}
void __threadfence_system() {}

// The hooks of `-fsanitize=thread`.
#define HOOKS(size)                                                                                                    \
    void __tsan_read##size(void* place) { access(place, size, false, false); }                                        \
    void __tsan_write##size(void* place) { access(place, size, true, false); }                                        \
    void __tsan_unaligned_read##size(void* place) { access(place, size, false, false); }                              \
    void __tsan_unaligned_write##size(void* place) { access(place, size, true, false); }
extern "C" {
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* place, size_t bytes) {
    for (size_t at = 0; at < bytes; ++at) access(static_cast<char*>(place) + at, 1, false, false);
}
void __tsan_write_range(void* place, size_t bytes) {
    for (size_t at = 0; at < bytes; ++at) access(static_cast<char*>(place) + at, 1, true, false);
}
}
