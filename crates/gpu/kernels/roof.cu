// What the machine can do at most: the bounds that the operators are held against, and the micro
// benchmarks of gpu-join (Table 1, Figures 7 to 9).
#include "device.cuh"

// Reads `count` pieces of 16 bytes in order and leaves a checksum.
extern "C" __global__ void roof_read(const uint4* from, u64 count, u64* checksum) {
    u64 own = 0;
    u64 stride = threads_of_grid();
    u64 at = thread_of_grid();
    for (; at + 3 * stride < count; at += 4 * stride) {
        uint4 first = __ldcs(from + at), second = __ldcs(from + at + stride);
        uint4 third = __ldcs(from + at + 2 * stride), fourth = __ldcs(from + at + 3 * stride);
        own += (u64)first.x + first.y + first.z + first.w + second.x + second.y + second.z + second.w;
        own += (u64)third.x + third.y + third.z + third.w + fourth.x + fourth.y + fourth.z + fourth.w;
    }
    for (; at < count; at += stride) {
        uint4 piece = __ldcs(from + at);
        own += (u64)piece.x + piece.y + piece.z + piece.w;
    }
    own = sum_of_warp(own);
    if (lane_of_thread() == 0) atomicAdd(checksum, own);
}

// Reads words of `read_bytes` (4 or 8) a lane, as the join's inputs are read.
extern "C" __global__ void roof_read_words(const void* from, u64 count, u32 is_wide, u64* checksum) {
    u64 own = 0;
    for (u64 at = thread_of_grid(); at < count; at += threads_of_grid())
        own += is_wide ? __ldcs((const u64*)from + at) : (u64)__ldcs((const u32*)from + at);
    own = sum_of_warp(own);
    if (lane_of_thread() == 0) atomicAdd(checksum, own);
}

extern "C" __global__ void roof_write(u64* to, u64 count, u64 value) {
    for (u64 at = thread_of_grid(); at < count; at += threads_of_grid()) __stcs(to + at, value + at);
}

// Reads words and writes as many elsewhere: both ways of the bus at a time, as a join does of which every row matches.
extern "C" __global__ void roof_exchange(const u64* from, u64* to, u64 count) {
    for (u64 at = thread_of_grid(); at < count; at += threads_of_grid()) __stcs(to + at, __ldcs(from + at));
}

// Additions in shared memory: lane l of turn t adds to place (l * spread + t) mod `places`. A spread of 1
// meets no bank twice, one of 32 meets a single bank, one of 0 a single place. `operand` is what each lane adds; 0: a 1 that the compiler
// sees, for which it counts lanes.
extern "C" __global__ void roof_shared_atomics(u32 turns, u32 spread, u32 places, u32 operand, u64* checksum) {
    u32* counts = (u32*)block_memory;
    for (u32 at = threadIdx.x; at < places; at += blockDim.x) counts[at] = 0;
    __syncthreads();
    u32 place = (lane_of_thread() * spread + warp_of_thread()) % places;
    for (u32 turn = 0; turn < turns; ++turn) {
        if (operand == 0) {
            atomicAdd(counts + place, 1u);
        } else {
            atomicAdd(counts + place, operand);
        }
        place = place + 1 < places ? place + 1 : 0;
    }
    __syncthreads();
    u64 own = 0;
    for (u32 at = threadIdx.x; at < places; at += blockDim.x) own += counts[at];
    own = sum_of_warp(own);
    if (lane_of_thread() == 0) atomicAdd(checksum, own);
}

// Visits places of 8 bytes at random, four at a time a thread, of an array of a power of two of them, as a hash table's slots are met:
// each is a sector of 32 bytes, in the cache or in memory. `swaps` of 0 reads them; else it is what takes the place of the number before
// it. The checksum has what was read, or how many swaps took place.
extern "C" __global__ void roof_sectors(u64* words, u64 mask, u32 swaps, u32 turns, u64* checksum) {
    u64 own = 0;
    u64 state = thread_of_grid() * 4 * turns;
    for (u32 turn = 0; turn < turns; ++turn) {
        u64 found[4];
#pragma unroll
        for (u32 each = 0; each < 4; ++each) {
            u64 at = ++state * 0x9e3779b97f4a7c15ull;
            at = (at ^ at >> 30) * 0xbf58476d1ce4e5b9ull;
            u64* word = words + (at >> 32 & mask);
            found[each] = swaps ? atomicCAS(word, (u64)swaps - 1, (u64)swaps) == swaps - 1 : *word;
        }
#pragma unroll
        for (u32 each = 0; each < 4; ++each) own += found[each];
    }
    own = sum_of_warp(own);
    if (lane_of_thread() == 0) atomicAdd(checksum, own);
}

// The order in which a thread visits the words of an array (gpu-join, Table 1).
enum Pattern { coalesced = 0, apart = 1, random_order = 2 };

__device__ __forceinline__ u64 next_place(u64 at, u64 words, u32 pattern, u64 threads, u64& state) {
    if (pattern == coalesced) return at + threads < words ? at + threads : at + threads - words;
    if (pattern == apart) return at + 1 < words ? at + 1 : 0;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % words;
}

__device__ __forceinline__ u64 first_place(u64 words, u32 pattern, u64& state) {
    u64 thread = thread_of_grid();
    state = (thread + 1) * 0x9e3779b97f4a7c15ull | 1;
    if (pattern == coalesced) return thread % words;
    u64 share = words / threads_of_grid();
    return pattern == apart ? thread * (share > 0 ? share : 1) % words : (state ^ state >> 29) % words;
}

// Writes the successor of each word into it, for reads that depend on one another.
template <class Word> __device__ __forceinline__ void link(Word* words, u64 count, u32 pattern, u64 threads) {
    for (u64 at = thread_of_grid(); at < count; at += threads_of_grid()) {
        u64 state = (at + 1) * 0x9e3779b97f4a7c15ull | 1;
        words[at] = (Word)next_place(at, count, pattern, threads, state);
    }
}

template <class Word>
__device__ __forceinline__ void visit(Word* words, u64 count, u32 pattern, u32 operation, u32 turns, u64* checksum) {
    u64 state;
    u64 at = first_place(count, pattern, state);
    u64 own = 0;
    for (u32 turn = 0; turn < turns; ++turn) {
        if (operation == 0) { // read, the next place is what was read
            at = words[at];
            own += at;
            continue;
        }
        if (operation == 1) own += words[at];
        if (operation == 2) words[at] = (Word)turn;
        if (operation == 3) own += atomicCAS(words + at, (Word)turn, (Word)at);
        at = next_place(at, count, pattern, threads_of_grid(), state);
    }
    own = sum_of_warp(own);
    if (lane_of_thread() == 0 && checksum) atomicAdd(checksum, own);
}

extern "C" __global__ void roof_link32(u32* words, u64 count, u32 pattern, u64 threads) {
    link(words, count, pattern, threads);
}
extern "C" __global__ void roof_link64(u64* words, u64 count, u32 pattern, u64 threads) {
    link(words, count, pattern, threads);
}
extern "C" __global__ void roof_visit32(u32* words, u64 count, u32 pattern, u32 operation, u32 turns, u64* checksum) {
    visit(words, count, pattern, operation, turns, checksum);
}
extern "C" __global__ void roof_visit64(u64* words, u64 count, u32 pattern, u32 operation, u32 turns, u64* checksum) {
    visit(words, count, pattern, operation, turns, checksum);
}

EMULATED_KERNEL(roof_read)
EMULATED_KERNEL(roof_read_words)
EMULATED_KERNEL(roof_write)
EMULATED_KERNEL(roof_exchange)
EMULATED_KERNEL(roof_shared_atomics)
EMULATED_KERNEL(roof_sectors)
EMULATED_KERNEL(roof_link32)
EMULATED_KERNEL(roof_link64)
EMULATED_KERNEL(roof_visit32)
EMULATED_KERNEL(roof_visit64)
