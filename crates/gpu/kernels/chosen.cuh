// Launches that take some of the rows of an input: those of a window of the table's slots, or those that pass its filter.
//
// A table that is larger than the device's cache is built, and may be probed, by windows of its slots that fit the cache:
//
//   for each window, in order, each by a launch of its own
//       for each tile of 256 rows, by a warp
//           queue += the rows whose home slot is in the window
//           while the queue has a row for each lane:  take them and insert or look for them, as above
//
// All rows are read for each window, in order; what is met at random is in the cache. An insertion may step over the end of its window.
//
// A probe that is to match few rows looks at a filter first, which the cache holds: a word for each 8 slots, in which each key of the
// table with its home slot there has set two of 32 bits. Only rows that find both go to the queue.
#pragma once
#include "collect.cuh"
#include "table.cuh"

// The rows that a launch takes: those of a window, which have passed the filter.
struct Chosen {
    const u32* filter; // null pointer: none
    u32 window_bits;   // slots of a window are 2 to the power of it
    u32 window;
};

// Slots for which the filter has a word.
constexpr u32 word_slots = 8;

// The two bits of a key, by another hash than its slot.
__device__ __forceinline__ u32 filter_bits(u64 key) {
    u32 hash = (u32)(key ^ key >> 32) * 0x9e3779b1u;
    return 1u << (hash >> 27) | 1u << (hash >> 22 & 31);
}

template <class Key> __device__ __forceinline__ void add_to_filter(const Table& table, u32* filter, Key key) {
    atomicOr(filter + home_of(table, key) / word_slots, filter_bits(key));
}

// The filter of a table that is complete: keys are near their home slots, so that their words are those of neighbours.
__device__ __forceinline__ void make_filter(const Table& table, u32* filter, u32) {
    for (u64 at = thread_of_grid(); at <= table.mask; at += threads_of_grid()) {
        u64 tuple = __ldcs(slot_of(table, at, 1));
        if (tuple != empty) add_to_filter(table, filter, (u32)tuple);
    }
}

__device__ __forceinline__ void make_filter(const Table& table, u32* filter, u64) {
    for (u64 at = thread_of_grid(); at <= table.mask; at += threads_of_grid()) {
        ulonglong2 slot = *(const ulonglong2*)slot_of(table, at, 2);
        if (slot.x != empty) add_to_filter(table, filter, slot.y);
    }
}

// A warp's queue has room for a tile, and for a row less than it has lanes.
constexpr u32 queue_rows = tile_rows + 32;

// Calls `work` with the rows that are chosen, one a lane; all lanes of a warp do so together, and the last time some have none.
// `queue` is that of the warp, in shared memory.
template <class Input, class Work>
__device__ __forceinline__ void for_chosen(const Rows& rows, const Table& table, const Chosen& chosen,
                                           Loose<typename Input::Key>* queue, Work work) {
    typedef typename Input::Key Key;
    u32 lane = lane_of_thread();
    u32 filled = 0;
    for (u64 tile = thread_of_grid() / 32; tile * tile_rows < rows.count; tile += threads_of_grid() / 32) {
        Key keys[tile_words];
        u32 numbers[tile_words], filters[tile_words], taken = 0;
#pragma unroll
        for (u32 word = 0; word < tile_words; ++word) {
            u64 at = tile * tile_rows + word * 32 + lane;
            keys[word] = 0;
            numbers[word] = 0;
            if (at < rows.count) Input::read(rows, at, keys[word], numbers[word]);
        }
#pragma unroll
        for (u32 word = 0; word < tile_words; ++word) {
            u64 at = tile * tile_rows + word * 32 + lane;
            u64 home = home_of(table, keys[word]);
            bool is_in = at < rows.count && home >> chosen.window_bits == chosen.window && is_valid(rows, at);
            filters[word] = is_in && chosen.filter ? __ldg(chosen.filter + home / word_slots) : ~0u;
            taken |= (u32)is_in << word;
        }
#pragma unroll
        for (u32 word = 0; word < tile_words; ++word) {
            u32 bits = filter_bits(keys[word]);
            bool is_taken = (taken >> word & 1) && (filters[word] & bits) == bits;
            u32 having = __ballot_sync(all_lanes, is_taken);
            if (is_taken) queue[filled + __popc(having & ((1u << lane) - 1))] = {keys[word], numbers[word]};
            filled += __popc(having);
        }
        __syncwarp();
        for (; filled >= 32; filled -= 32) {
            Loose<Key> next = queue[filled - 32 + lane];
            work(true, next.key, next.row);
        }
        __syncwarp();
    }
    Loose<Key> last = {0, 0};
    if (lane < filled) last = queue[lane];
    work(lane < filled, last.key, last.row);
}

template <class Input>
__device__ __forceinline__ void build_chosen(const Rows& rows, const Table& table, const Chosen& chosen, u32* failed) {
    typedef typename Input::Key Key;
    Loose<Key>* queue = (Loose<Key>*)block_memory + warp_of_thread() * queue_rows;
    for_chosen<Input>(rows, table, chosen, queue, [&](bool has_one, Key key, u32 row) {
        if (has_one && !insert(table, key, row)) atomicAdd(failed, 1u);
    });
}

// `room` is that of one warp for results, which are before the queues.
template <class Input>
__device__ __forceinline__ void probe_chosen(const Rows& rows, const Table& table, const Chosen& chosen,
                                             const Results& results, u32 room) {
    typedef typename Input::Key Key;
    Collector collector(room);
    u64* queues = (u64*)block_memory + (u64)(blockDim.x / 32) * room;
    Loose<Key>* queue = (Loose<Key>*)queues + warp_of_thread() * queue_rows;
    for_chosen<Input>(rows, table, chosen, queue, [&](bool goes_on, Key key, u32 row) {
        Search slot = {home_of(table, key), 0};
        u32 found = 0;
        do {
            if (goes_on) goes_on = find(table, slot, key, found);
        } while (collector.add(results, goes_on, (u64)row << 32 | found));
    });
    collector.finish(results);
}
