// Results of kernels: a warp collects them in shared memory and writes whole lines.
#pragma once
#include "device.cuh"

struct Results {
    u64* pairs;
    u64* count; // goes on counting when `pairs` is full
    u64 capacity;
};

constexpr u32 line_pairs = 16; // 128 bytes

// Writes the first `count` of the `filled` results of a warp and moves what remains to the front.
__device__ __forceinline__ void flush_warp(u64* pairs, u32 count, u32 filled, const Results& results) {
    u32 lane = lane_of_thread();
    u64 place = 0;
    if (lane == 0) place = atomicAdd(results.count, (u64)count);
    place = __shfl_sync(all_lanes, place, 0);
    __syncwarp();
    for (u32 at = lane; at < count; at += 32)
        if (place + at < results.capacity) __stcs(results.pairs + place + at, pairs[at]);
    u64 rest = lane < filled - count ? pairs[count + lane] : 0;
    __syncwarp();
    if (lane < filled - count) pairs[lane] = rest;
    __syncwarp();
}

// The room of one warp in `block_memory`: `room` results, at least 32 and a line. All lanes of the warp call
// its functions together.
struct Collector {
    u64* pairs;
    u32 room;
    u32 filled;

    __device__ __forceinline__ explicit Collector(u32 room_of_warp)
        : pairs((u64*)block_memory + (u64)warp_of_thread() * room_of_warp), room(room_of_warp), filled(0) {}

    // Takes a result from each lane that has one; returns whether any has.
    __device__ __forceinline__ bool add(const Results& results, bool has_one, u64 result) {
        u32 having = __ballot_sync(all_lanes, has_one);
        if (having == 0) return false;
        if (has_one) pairs[filled + __popc(having & ((1u << lane_of_thread()) - 1))] = result;
        filled += __popc(having);
        if (filled + 32 > room) {
            u32 whole = filled / line_pairs * line_pairs;
            flush_warp(pairs, whole, filled, results);
            filled -= whole;
        }
        return true;
    }

    __device__ __forceinline__ void finish(const Results& results) {
        if (filled > 0) flush_warp(pairs, filled, filled, results);
        filled = 0;
    }
};
