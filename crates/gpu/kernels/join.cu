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
// The table is open addressed, of a power of two of slots, at least twice the rows of the build table.
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
#include "collect.cuh"

constexpr u64 empty = ~0ull;

// A table of 32-bit keys has slots of one word: key below, row above. One of 64-bit keys has two
// words a slot: row, then key; the row is what is swapped in, so any key is allowed.
struct Table {
    u64* near;
    u64* far;
    u64 near_slots;
    u64 mask;
    u32 is_mixed;  // else the hash is the low bits of the key, as in the paper
    u32 steps_max; // an insertion that needs more gives up
};

// `keys` are tuples (key below, row above), or a column whose rows are numbered from `first_row` on.
// `valid` has a bit a row, lowest first, as Arrow's buffers have; null pointer: all are valid.
struct Rows {
    const void* keys;
    const unsigned char* valid;
    u64 count;
    u32 first_row;
    u32 first_bit;
};

// A result is a row of the build table below and a row of the probe table above.

__device__ __forceinline__ u32 mix(u32 key) {
    key ^= key >> 16;
    key *= 0x85ebca6bu;
    key ^= key >> 13;
    key *= 0xc2b2ae35u;
    return key ^ key >> 16;
}

__device__ __forceinline__ u64 mix(u64 key) {
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdull;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53ull;
    return key ^ key >> 33;
}

__device__ __forceinline__ bool is_valid(const Rows& rows, u64 at) {
    if (!rows.valid) return true;
    u64 bit = at + rows.first_bit;
    return rows.valid[bit / 8] >> bit % 8 & 1;
}

// The three forms of an input: how row `at` is read, and how a slot of the table is compared.
struct Tuples {
    typedef u32 Key;
    static __device__ __forceinline__ void read(const Rows& rows, u64 at, u32& key, u32& row) {
        u64 tuple = __ldcs((const u64*)rows.keys + at);
        key = (u32)tuple;
        row = (u32)(tuple >> 32);
    }
};

struct Column32 {
    typedef u32 Key;
    static __device__ __forceinline__ void read(const Rows& rows, u64 at, u32& key, u32& row) {
        key = __ldcs((const u32*)rows.keys + at);
        row = rows.first_row + (u32)at;
    }
};

struct Column64 {
    typedef u64 Key;
    static __device__ __forceinline__ void read(const Rows& rows, u64 at, u64& key, u32& row) {
        key = __ldcs((const u64*)rows.keys + at);
        row = rows.first_row + (u32)at;
    }
};

template <class Key> __device__ __forceinline__ u64 home_of(const Table& table, Key key) {
    return (table.is_mixed ? (u64)mix(key) : (u64)key) & table.mask;
}

__device__ __forceinline__ u64* slot_of(const Table& table, u64 at, u32 words) {
    return at < table.near_slots ? table.near + at * words : table.far + (at - table.near_slots) * words;
}

__device__ __forceinline__ bool insert(const Table& table, u32 key, u32 row) {
    u64 tuple = (u64)row << 32 | key;
    u64 at = home_of(table, key);
    for (u32 step = 0; step < table.steps_max; ++step) {
        if (atomicCAS(slot_of(table, at, 1), empty, tuple) == empty) return true;
        at = (at + 1) & table.mask;
    }
    return false;
}

__device__ __forceinline__ bool insert(const Table& table, u64 key, u32 row) {
    u64 at = home_of(table, key);
    for (u32 step = 0; step < table.steps_max; ++step) {
        u64* slot = slot_of(table, at, 2);
        if (atomicCAS(slot, empty, (u64)row) == empty) {
            slot[1] = key;
            return true;
        }
        at = (at + 1) & table.mask;
    }
    return false;
}

// Goes on from slot `at` to the next row with this key; false at an empty slot. A table has at least
// as many empty slots as taken ones, so this ends.
__device__ __forceinline__ bool find(const Table& table, u64& at, u32 key, u32& row) {
    for (;;) {
        u64 tuple = *slot_of(table, at, 1);
        if (tuple == empty) return false;
        at = (at + 1) & table.mask;
        if ((u32)tuple == key) {
            row = (u32)(tuple >> 32);
            return true;
        }
    }
}

__device__ __forceinline__ bool find(const Table& table, u64& at, u64 key, u32& row) {
    for (;;) {
        ulonglong2 slot = *(const ulonglong2*)slot_of(table, at, 2);
        if (slot.x == empty) return false;
        at = (at + 1) & table.mask;
        if (slot.y == key) {
            row = (u32)slot.x;
            return true;
        }
    }
}

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
        u64 slot = home_of(table, key);
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
        u64 slot = home_of(table, key);
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

// `room` is that of one warp.
template <class Input>
__device__ __forceinline__ void probe_warped(const Rows& rows, const Table& table, const Results& results, u32 room) {
    Collector collector(room);
    for (u64 first = thread_of_grid() - lane_of_thread(); first < rows.count; first += threads_of_grid()) {
        u64 at = first + lane_of_thread();
        typename Input::Key key = 0;
        u32 row = 0, found = 0;
        bool goes_on = at < rows.count && is_valid(rows, at);
        if (at < rows.count) Input::read(rows, at, key, row);
        u64 slot = home_of(table, key);
        do {
            if (goes_on) goes_on = find(table, slot, key, found);
        } while (collector.add(results, goes_on, (u64)row << 32 | found));
    }
    collector.finish(results);
}

// Rows of the probe table that a warp takes at a time.
constexpr u32 tile_rows = 256;
constexpr u32 tile_words = tile_rows / 32;

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
            u64 slot = home_of(table, keys[word]);
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

__device__ __forceinline__ void add_to_filter(const Table& table, u32* filter, u32 key) {
    atomicOr(filter + home_of(table, key) / word_slots, filter_bits(key));
}

__device__ __forceinline__ void add_to_filter(const Table& table, u32* filter, u64 key) {
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

template <class Key> struct Queued {
    Key key;
    u32 row;
};

// A warp's queue has room for a tile, and for a row less than it has lanes.
constexpr u32 queue_rows = tile_rows + 32;

// Calls `work` with the rows that are chosen, one a lane; all lanes of a warp do so together, and the last time some have none.
// `queue` is that of the warp, in shared memory.
template <class Input, class Work>
__device__ __forceinline__ void for_chosen(const Rows& rows, const Table& table, const Chosen& chosen,
                                           Queued<typename Input::Key>* queue, Work work) {
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
            Queued<Key> next = queue[filled - 32 + lane];
            work(true, next.key, next.row);
        }
        __syncwarp();
    }
    Queued<Key> last = {0, 0};
    if (lane < filled) last = queue[lane];
    work(lane < filled, last.key, last.row);
}

template <class Input>
__device__ __forceinline__ void build_chosen(const Rows& rows, const Table& table, const Chosen& chosen, u32* failed) {
    typedef typename Input::Key Key;
    Queued<Key>* queue = (Queued<Key>*)block_memory + warp_of_thread() * queue_rows;
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
    Queued<Key>* queue = (Queued<Key>*)queues + warp_of_thread() * queue_rows;
    for_chosen<Input>(rows, table, chosen, queue, [&](bool goes_on, Key key, u32 row) {
        u64 slot = home_of(table, key);
        u32 found = 0;
        do {
            if (goes_on) goes_on = find(table, slot, key, found);
        } while (collector.add(results, goes_on, (u64)row << 32 | found));
    });
    collector.finish(results);
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
        u64 slot = home_of(table, key);
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
    EMULATED_KERNEL(join_build_##form)                                                                                 \
    EMULATED_KERNEL(join_direct_##form)                                                                                \
    EMULATED_KERNEL(join_cached_##form)                                                                                \
    EMULATED_KERNEL(join_warped_##form)                                                                                \
    EMULATED_KERNEL(join_partners_##form)                                                                              \
    EMULATED_KERNEL(join_grouped_##form)                                                                               \
    EMULATED_KERNEL(join_build_chosen_##form)                                                                          \
    EMULATED_KERNEL(join_chosen_##form)                                                                                \
    EMULATED_KERNEL(join_filter_##form)

JOIN_KERNELS(tuples, Tuples)
JOIN_KERNELS(column32, Column32)
JOIN_KERNELS(column64, Column64)
