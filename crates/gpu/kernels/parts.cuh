// Building and probing by parts: rows are put in order by the window of the table that they belong to, and each window is then built or
// probed in the shared memory of one block.
//
//   scatter  for each tile of rows, by a block
//                put the tile in order by parts, in shared memory
//                for each part:  places = what an addition to its cursor gives,  rows of the tile -> places
//   fill     for each part, by a block
//                insert its rows into an empty window in shared memory
//                write the window to the table, in order
//   over     insert the rows that are over, into the table
//   probe    for each part, by a block
//                read the window from the table, in order
//                look for its rows there, and behind the window's end in the table
//            look for the rows that are over, in the table
//
// A part has room for an eighth more rows than it has if keys spread well. What a tile has for a part without room is over, and so is a
// row that steps over the end of its window: these follow the parts, in no order. Device memory is read and written in order but for the
// runs of a tile, and the table is not emptied before it is filled.
#pragma once
#include "collect.cuh"
#include "table.cuh"

// The parts of a table. Part p has its rows from `p * room` on.
struct Parts {
    u32* cursors; // the rows that each part was to have; behind them, the number of those that are over
    u32* ends;    // of a part that was to have more than it has room for: the rows that it has
    u32 window_bits; // slots of a window are 2 to the power of it
    u32 count;
    u32 room;
    u32 unused;
};

__device__ __forceinline__ u32 rows_of_part(const Parts& parts, u32 part) {
    u32 wanted = parts.cursors[part];
    return wanted <= parts.room ? wanted : parts.ends[part];
}

// Places for rows that are over.
__device__ __forceinline__ u32 take_over(const Parts& parts, u32 count) {
    return parts.count * parts.room + atomicAdd(parts.cursors + parts.count, count);
}

template <class Key> __device__ __forceinline__ u32 part_of(const Table& table, const Parts& parts, Key key) {
    return (u32)(home_of(table, key) >> parts.window_bits);
}

// The sum of `own` over the threads of the block before this one; all of them call it together. `sums` has a place for each warp.
__device__ __forceinline__ u32 sum_before(u32 own, u32* sums) {
    u32 sum = own;
    for (u32 step = 1; step < 32; step *= 2) {
        u32 other = __shfl_up_sync(all_lanes, sum, step);
        if (lane_of_thread() >= step) sum += other;
    }
    if (lane_of_thread() == 31) sums[warp_of_thread()] = sum;
    __syncthreads();
    u32 before = sum - own;
    for (u32 warp = 0; warp < warp_of_thread(); ++warp) before += sums[warp];
    __syncthreads();
    return before;
}

// Rows that a thread has of a tile.
constexpr u32 thread_rows = 16;

template <class Input>
__device__ __forceinline__ void scatter(const Rows& rows, const Table& table, const Parts& parts,
                                        Loose<typename Input::Key>* out) {
    typedef typename Input::Key Key;
    u64 block_rows = (u64)blockDim.x * thread_rows;
    Loose<Key>* sorted = (Loose<Key>*)block_memory;
    u32* begins = (u32*)(sorted + block_rows); // of the tile's parts in `sorted`; their counts, first
    u32* places = begins + parts.count;        // of a part's rows in `out`, less their places in `sorted`
    u32* sums = places + parts.count;
    u32* filled = sums + 32;
    u32 each = (parts.count + blockDim.x - 1) / blockDim.x;
    u32 first_part = threadIdx.x * each;
    u32 end_part = first_part + each < parts.count ? first_part + each : parts.count;
    for (u64 tile = blockIdx.x; tile * block_rows < rows.count; tile += gridDim.x) {
        for (u32 part = threadIdx.x; part < parts.count; part += blockDim.x) begins[part] = 0;
        __syncthreads();
        Key keys[thread_rows];
        u32 numbers[thread_rows], taken = 0;
        u32 ranks[thread_rows / 2] = {}; // two a word: a tile has fewer than 2^16 rows
#pragma unroll
        for (u32 turn = 0; turn < thread_rows; ++turn) {
            u64 at = tile * block_rows + turn * blockDim.x + threadIdx.x;
            keys[turn] = 0;
            numbers[turn] = 0;
            if (at >= rows.count) continue;
            Input::read(rows, at, keys[turn], numbers[turn]);
            taken |= (u32)is_valid(rows, at) << turn;
        }
#pragma unroll
        for (u32 turn = 0; turn < thread_rows; ++turn)
            if (taken >> turn & 1)
                ranks[turn / 2] |= atomicAdd(begins + part_of(table, parts, keys[turn]), 1u) << turn % 2 * 16;
        __syncthreads();
        u32 own = 0;
        for (u32 part = first_part; part < end_part; ++part) own += begins[part];
        u32 begin = sum_before(own, sums);
        for (u32 part = first_part; part < end_part; ++part) {
            u32 count = begins[part];
            begins[part] = begin;
            if (count > 0) {
                u32 place = atomicAdd(parts.cursors + part, count);
                bool has_room = place + count <= parts.room;
                // The first of those that are over tells where the part ends.
                if (!has_room && place <= parts.room) parts.ends[part] = place;
                places[part] = (has_room ? part * parts.room + place : take_over(parts, count)) - begin;
            }
            begin += count;
        }
        if (threadIdx.x + 1 == blockDim.x) *filled = begin;
        __syncthreads();
#pragma unroll
        for (u32 turn = 0; turn < thread_rows; ++turn)
            if (taken >> turn & 1)
                sorted[begins[part_of(table, parts, keys[turn])] + (ranks[turn / 2] >> turn % 2 * 16 & 0xffff)] = {keys[turn], numbers[turn]};
        __syncthreads();
        for (u32 at = threadIdx.x; at < *filled; at += blockDim.x) {
            Loose<Key> row = sorted[at];
            out[places[part_of(table, parts, row.key)] + at] = row;
        }
    }
}

// Rows that a thread has in flight.
constexpr u32 rows_in_flight = 4;

template <class Key>
__device__ __forceinline__ void fill_parts(const Table& table, const Parts& parts, Loose<Key>* rows) {
    constexpr u32 words = words_of<Key>();
    u32 slots = 1u << parts.window_bits;
    u64* held = (u64*)block_memory;
    for (u32 part = blockIdx.x; part < parts.count; part += gridDim.x) {
        u32 start = part * parts.room, end = start + rows_of_part(parts, part);
        for (u32 at = threadIdx.x; at < slots * words; at += blockDim.x) held[at] = empty;
        __syncthreads();
        for (u32 first = start + threadIdx.x; first < end; first += blockDim.x * rows_in_flight) {
            Loose<Key> own[rows_in_flight];
#pragma unroll
            for (u32 turn = 0; turn < rows_in_flight; ++turn)
                if (first + turn * blockDim.x < end) own[turn] = rows[first + turn * blockDim.x];
#pragma unroll
            for (u32 turn = 0; turn < rows_in_flight; ++turn) {
                if (first + turn * blockDim.x >= end) continue;
                u32 home = (u32)home_of(table, own[turn].key) & (slots - 1);
                u32 at = home, step = 0;
                while (at < slots && !claim(held + at * words, own[turn].key, own[turn].row))
                    at = place_after<Key>(home, ++step);
                if (at >= slots) rows[take_over(parts, 1)] = own[turn];
            }
        }
        __syncthreads();
        u64 first_slot = (u64)part << parts.window_bits;
        for (u32 at = threadIdx.x; at < slots * words; at += blockDim.x)
            slot_of(table, first_slot + at / words, words)[at % words] = held[at];
        __syncthreads();
    }
}

// Gives up after the first insertion that fails, as those that follow may go through as many slots.
template <class Key>
__device__ __forceinline__ void insert_over(const Table& table, const Parts& parts, const Loose<Key>* rows, u32* failed) {
    u32 count = parts.cursors[parts.count];
    const Loose<Key>* over = rows + parts.count * parts.room;
    for (u64 at = thread_of_grid(); at < count && atomicAdd(failed, 0u) == 0; at += threads_of_grid())
        if (!insert(table, over[at].key, over[at].row)) atomicAdd(failed, 1u);
}

// A table of which one window is in shared memory.
struct WindowedTable : Table {
    u64* held;
    u64 first_slot;
    u64 slots;
};

__device__ __forceinline__ u64* slot_of(const WindowedTable& table, u64 at, u32 words) {
    u64 within = at - table.first_slot;
    return within < table.slots ? table.held + within * words : slot_of((const Table&)table, at, words);
}

// `room` is that of one warp for results, which are before the window.
template <class Key>
__device__ __forceinline__ void probe_parts(const Table& table, const Parts& parts, const Loose<Key>* rows,
                                            const Results& results, u32 room) {
    constexpr u32 words = words_of<Key>();
    Collector collector(room);
    WindowedTable windowed;
    (Table&)windowed = table;
    // Slots of two words are read whole.
    windowed.held = (u64*)block_memory + ((u64)(blockDim.x / 32) * room + 1) / 2 * 2;
    windowed.slots = 1ull << parts.window_bits;
    for (u32 part = blockIdx.x; part < parts.count; part += gridDim.x) {
        u32 start = part * parts.room, end = start + rows_of_part(parts, part);
        windowed.first_slot = (u64)part << parts.window_bits;
        if (start == end) continue;
        for (u32 at = threadIdx.x; at < windowed.slots * words; at += blockDim.x)
            windowed.held[at] = slot_of(table, windowed.first_slot + at / words, words)[at % words];
        __syncthreads();
        for (u32 first = start + warp_of_thread() * 32; first < end; first += blockDim.x * rows_in_flight) {
            Loose<Key> own[rows_in_flight];
#pragma unroll
            for (u32 turn = 0; turn < rows_in_flight; ++turn) {
                u32 at = first + turn * blockDim.x + lane_of_thread();
                own[turn] = {0, 0};
                if (at < end) own[turn] = rows[at];
            }
#pragma unroll
            for (u32 turn = 0; turn < rows_in_flight; ++turn) {
                bool goes_on = first + turn * blockDim.x + lane_of_thread() < end;
                Search slot = {home_of(table, own[turn].key), 0};
                u32 found = 0;
                do {
                    if (goes_on) goes_on = find(windowed, slot, own[turn].key, found);
                } while (collector.add(results, goes_on, (u64)own[turn].row << 32 | found));
            }
        }
        __syncthreads();
    }
    u32 count = parts.cursors[parts.count];
    const Loose<Key>* over = rows + parts.count * parts.room;
    for (u64 first = thread_of_grid() - lane_of_thread(); first < count; first += threads_of_grid()) {
        u64 at = first + lane_of_thread();
        Loose<Key> own = {0, 0};
        bool goes_on = at < count;
        if (goes_on) own = over[at];
        Search slot = {home_of(table, own.key), 0};
        u32 found = 0;
        do {
            if (goes_on) goes_on = find(table, slot, own.key, found);
        } while (collector.add(results, goes_on, (u64)own.row << 32 | found));
    }
    collector.finish(results);
}
