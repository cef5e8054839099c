// Hash join over host memory (gpu-join, sections 3 and 4).
//
//   build:  for each row r of the build table, in parallel
//               at = hash(key of r)
//               while compare-and-swap(table[at], empty -> r) finds the slot taken:  at = next(at)
//   probe:  for each row s of the probe table, in parallel
//               at = hash(key of s)
//               while table[at] is not empty:
//                   if its key is that of s:  append (row of table[at], row of s) to the results
//                   at = next(at)
//
// The table is open addressed, of a power of two of slots, at least twice the rows of the build table. The next slot is the next of the
// same sector of memory, around, until all have been looked at, and then that of the next sector.
// Both inputs are read once and in order, each warp 128 consecutive bytes or more at a time, from
// wherever they lie: pinned host memory through the unified address space, or device memory.
//
// Three ways to append. `direct`: one addition to the counter of all results a match. `cached`
// (section 4): a block collects results in shared memory and pays one addition for all that it
// flushes, which all of its threads then write side by side. `warped`: a warp does so by itself, without
// a barrier, and flushes whole lines of 128 bytes only, so that lines of the results stay aligned.
//
// Where no probe row has several partners, `partners` appends rows of the build table alone, in the order of the probe rows, and a bit
// for each probe row: 4 bytes and a bit in place of 8 bytes, and nothing that the host has to put in order.
//
// A part of the table may lie in host memory (the paper's future work): slots from `near_slots` on.
//
// Tables larger than the device's cache: `chosen.cuh` and `parts.cuh`.
#include "chosen.cuh"
#include "collect.cuh"
#include "parts.cuh"
#include "table.cuh"

// A result is a row of the build table below and a row of the probe table above.

// One row at a time: with several in flight, as `group.cu` has codes, an H100 inserts a tenth fewer from its own
// memory and a third fewer from that of the host.
template <class Input> __device__ __forceinline__ void build(const Rows& rows, const Table& table, u32* failed) {
    for (u64 at = thread_of_grid(); at < rows.count; at += threads_of_grid()) {
        typename Input::Key key;
        u32 row;
        Input::read(rows, at, key, row);
        if (is_valid(rows, at) && !insert(table, key, row)) atomicAdd(failed, 1u);
    }
}

template <class Input>
__device__ __forceinline__ void probe_direct(const Rows& rows, const Table& table, const Results& results) {
    for (u64 at = thread_of_grid(); at < rows.count; at += threads_of_grid()) {
        typename Input::Key key;
        u32 row, found;
        Input::read(rows, at, key, row);
        if (!is_valid(rows, at)) continue;
        Search slot = {home_of(table, key), 0};
        while (find(table, slot, key, found)) {
            u64 place = atomicAdd(results.count, 1ull);
            if (place < results.capacity) results.pairs[place] = (u64)row << 32 | found;
        }
    }
}

// Shared memory of `probe_cached`: the place that the flush was given, how many results wait, and they.
struct Cache {
    u64 place;
    u32 filled;
    u32 unused;
    u64 pairs[1];
};

// Writes what the block has collected; all threads call it together. `cached_max` bounds `filled`, as
// the threads that found no room have counted, too.
__device__ __forceinline__ void flush(Cache* cache, u32 cached_max, const Results& results) {
    u32 filled = cache->filled < cached_max ? cache->filled : cached_max;
    if (threadIdx.x == 0) cache->place = atomicAdd(results.count, (u64)filled);
    __syncthreads();
    for (u32 at = threadIdx.x; at < filled; at += blockDim.x) {
        u64 place = cache->place + at;
        if (place < results.capacity) __stcs(results.pairs + place, cache->pairs[at]);
    }
    if (threadIdx.x == 0) cache->filled = 0;
    __syncthreads();
}

template <class Input>
__device__ __forceinline__ void probe_cached(const Rows& rows, const Table& table, const Results& results,
                                             u32 cached_max) {
    Cache* cache = (Cache*)block_memory;
    if (threadIdx.x == 0) cache->filled = 0;
    __syncthreads();
    // All threads of a block go through the same number of turns, as they meet at barriers.
    for (u64 first = (u64)blockIdx.x * blockDim.x; first < rows.count; first += threads_of_grid()) {
        u64 at = first + threadIdx.x;
        typename Input::Key key = 0;
        u32 row = 0, found = 0;
        bool goes_on = at < rows.count && is_valid(rows, at);
        if (at < rows.count) Input::read(rows, at, key, row);
        Search slot = {home_of(table, key), 0};
        bool is_held = false; // a match that found no room
        do {
            while (is_held || goes_on) {
                if (!is_held && !(goes_on = find(table, slot, key, found))) break;
                u32 place = atomicAdd(&cache->filled, 1u);
                is_held = place >= cached_max;
                if (is_held) break;
                cache->pairs[place] = (u64)row << 32 | found;
            }
            if (!__syncthreads_or(is_held)) break;
            flush(cache, cached_max, results);
        } while (true);
    }
    __syncthreads();
    flush(cache, cached_max, results);
}

// By whole sectors of the table. `room` is that of one warp. One row at a time, too: two, four and eight in flight keep fewer threads, and
// an H200 looks for 2 to 23 % fewer rows.
template <class Input>
__device__ __forceinline__ void probe_warped(const Rows& rows, const Table& table, const Results& results, u32 room) {
    typedef typename Input::Key Key;
    Collector collector(room);
    for (u64 first = thread_of_grid() - lane_of_thread(); first < rows.count; first += threads_of_grid()) {
        u64 at = first + lane_of_thread();
        Key key = 0;
        u32 row = 0;
        bool goes_on = at < rows.count && is_valid(rows, at);
        if (at < rows.count) Input::read(rows, at, key, row);
        u64 place = home_of(table, key) & ~(u64)(sector_slots<Key>() - 1);
        while (__any_sync(all_lanes, goes_on)) {
            Sector<Key> sector = {{empty, empty}, {empty, empty}};
            if (goes_on) sector.read(table, place);
            goes_on = is_full(sector);
            place = (place + sector_slots<Key>()) & table.mask;
            u32 slots = slots_with(sector, key);
            while (collector.add(results, slots != 0, (u64)row << 32 | first_row_of(sector, slots))) slots &= slots - 1;
        }
    }
    collector.finish(results);
}

// Results of a join in which no probe row has two partners. Tile `t` has its bits, lowest first, from word `t * tile_words` of `bits`
// on, and its partners from `starts[t]` on in `rows`, which has room for one a row.
struct Partners {
    u32* bits;
    u32* starts;
    u32* rows;
    u64* count;
    u32* repeated; // rows with more than one
};

template <class Input>
__device__ __forceinline__ void probe_partners(const Rows& rows, const Table& table, const Partners& out) {
    u32* collected = (u32*)block_memory + warp_of_thread() * tile_rows;
    u32 lane = lane_of_thread();
    for (u64 tile = thread_of_grid() / 32; tile * tile_rows < rows.count; tile += threads_of_grid() / 32) {
        u32 filled = 0, bits = 0;
        typename Input::Key keys[tile_words];
#pragma unroll
        for (u32 word = 0; word < tile_words; ++word) {
            u64 at = tile * tile_rows + word * 32 + lane;
            u32 row;
            keys[word] = 0;
            if (at < rows.count) Input::read(rows, at, keys[word], row);
        }
#pragma unroll
        for (u32 word = 0; word < tile_words; ++word) {
            u64 at = tile * tile_rows + word * 32 + lane;
            Search slot = {home_of(table, keys[word]), 0};
            u32 found = 0, other;
            bool has_one = at < rows.count && is_valid(rows, at) && find(table, slot, keys[word], found);
            if (has_one && find(table, slot, keys[word], other)) atomicAdd(out.repeated, 1u);
            u32 having = __ballot_sync(all_lanes, has_one);
            if (has_one) collected[filled + __popc(having & ((1u << lane) - 1))] = found;
            filled += __popc(having);
            if (lane == word) bits = having;
        }
        u64 start = 0;
        if (lane == 0) start = atomicAdd(out.count, (u64)filled);
        start = __shfl_sync(all_lanes, start, 0);
        __syncwarp();
        if (lane < tile_words) __stcs(out.bits + tile * tile_words + lane, bits);
        if (lane == 0) out.starts[tile] = (u32)start;
        for (u32 at = lane; at < filled; at += 32) __stcs(out.rows + start + at, collected[at]);
        __syncwarp();
    }
}

// What a fused group-by needs: the group of each row of the build table and the values of the probe table.
struct Groups {
    const u32* codes;  // null pointer: one group
    const i64* values; // null pointer: rows are counted only
    u64* counts;
    u64* sums;
    u32 group_count;
    u32 is_shared; // aggregates of a block are in shared memory
};

// Join and group-by by the same threads (section 4, operator pipelining). One group: each thread adds up
// its own. Several: in shared memory where they fit, one addition to the total a block and group.
template <class Input>
__device__ __forceinline__ void probe_grouped(const Rows& rows, const Table& table, const Groups& groups) {
    u64* shared_sums = (u64*)block_memory;
    u64* shared_counts = shared_sums + groups.group_count;
    if (groups.is_shared) {
        for (u32 at = threadIdx.x; at < 2 * groups.group_count; at += blockDim.x) shared_sums[at] = 0;
        __syncthreads();
    }
    u64* sums = groups.is_shared ? shared_sums : groups.sums;
    u64* counts = groups.is_shared ? shared_counts : groups.counts;
    u64 own_count = 0, own_sum = 0;
    for (u64 at = thread_of_grid(); at < rows.count; at += threads_of_grid()) {
        typename Input::Key key;
        u32 row, found;
        Input::read(rows, at, key, row);
        if (!is_valid(rows, at)) continue;
        Search slot = {home_of(table, key), 0};
        u64 matched = 0;
        u64 value = groups.values ? (u64)__ldcs(groups.values + at) : 0;
        while (find(table, slot, key, found)) {
            matched += 1;
            if (!groups.codes) continue;
            u32 group = groups.codes[found];
            atomicAdd(counts + group, 1ull);
            if (groups.values) atomicAdd(sums + group, value);
        }
        own_count += matched;
        own_sum += matched * value;
    }
    if (!groups.codes) {
        own_count = sum_of_warp(own_count);
        own_sum = sum_of_warp(own_sum);
        if (lane_of_thread() == 0 && own_count > 0) {
            atomicAdd(counts, own_count);
            atomicAdd(sums, own_sum);
        }
    }
    if (!groups.is_shared) return;
    __syncthreads();
    for (u32 at = threadIdx.x; at < groups.group_count; at += blockDim.x) {
        if (shared_counts[at] == 0) continue;
        atomicAdd(groups.counts + at, shared_counts[at]);
        atomicAdd(groups.sums + at, shared_sums[at]);
    }
}

#define JOIN_KERNELS(form, Input)                                                                                      \
    extern "C" __global__ void join_build_##form(Rows rows, Table table, u32* failed) {                                \
        build<Input>(rows, table, failed);                                                                             \
    }                                                                                                                  \
    extern "C" __global__ void join_direct_##form(Rows rows, Table table, Results results) {                           \
        probe_direct<Input>(rows, table, results);                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void join_cached_##form(Rows rows, Table table, Results results, u32 cached_max) {           \
        probe_cached<Input>(rows, table, results, cached_max);                                                         \
    }                                                                                                                  \
    extern "C" __global__ void join_warped_##form(Rows rows, Table table, Results results, u32 cached_max) {           \
        probe_warped<Input>(rows, table, results, cached_max);                                                         \
    }                                                                                                                  \
    extern "C" __global__ void join_partners_##form(Rows rows, Table table, Partners out) {                            \
        probe_partners<Input>(rows, table, out);                                                                       \
    }                                                                                                                  \
    extern "C" __global__ void join_grouped_##form(Rows rows, Table table, Groups groups) {                            \
        probe_grouped<Input>(rows, table, groups);                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void join_build_chosen_##form(Rows rows, Table table, Chosen chosen, u32* failed) {          \
        build_chosen<Input>(rows, table, chosen, failed);                                                              \
    }                                                                                                                  \
    extern "C" __global__ void join_chosen_##form(Rows rows, Table table, Chosen chosen, Results results, u32 room) {  \
        probe_chosen<Input>(rows, table, chosen, results, room);                                                       \
    }                                                                                                                  \
    extern "C" __global__ void join_filter_##form(Table table, u32* filter) {                                          \
        make_filter(table, filter, Input::Key());                                                                      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(1024)                                                                 \
        join_scatter_##form(Rows rows, Table table, Parts parts, Loose<Input::Key>* out) {                             \
        scatter<Input>(rows, table, parts, out);                                                                       \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(1024)                                                                 \
        join_fill_parts_##form(Table table, Parts parts, Loose<Input::Key>* rows) {                                    \
        fill_parts<Input::Key>(table, parts, rows);                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void join_over_##form(Table table, Parts parts, Loose<Input::Key>* rows, u32* failed) {      \
        insert_over<Input::Key>(table, parts, rows, failed);                                                           \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(1024) join_probe_parts_##form(                                        \
        Table table, Parts parts, Loose<Input::Key>* rows, Results results, u32 room) {                                \
        probe_parts<Input::Key>(table, parts, rows, results, room);                                                    \
    }                                                                                                                  \
    EMULATED_KERNEL(join_build_##form)                                                                                 \
    EMULATED_KERNEL(join_direct_##form)                                                                                \
    EMULATED_KERNEL(join_cached_##form)                                                                                \
    EMULATED_KERNEL(join_warped_##form)                                                                                \
    EMULATED_KERNEL(join_partners_##form)                                                                              \
    EMULATED_KERNEL(join_grouped_##form)                                                                               \
    EMULATED_KERNEL(join_build_chosen_##form)                                                                          \
    EMULATED_KERNEL(join_chosen_##form)                                                                                \
    EMULATED_KERNEL(join_filter_##form)                                                                                \
    EMULATED_KERNEL(join_scatter_##form)                                                                               \
    EMULATED_KERNEL(join_fill_parts_##form)                                                                            \
    EMULATED_KERNEL(join_over_##form)                                                                                  \
    EMULATED_KERNEL(join_probe_parts_##form)

JOIN_KERNELS(tuples, Tuples)
JOIN_KERNELS(column32, Column32)
JOIN_KERNELS(column64, Column64)
