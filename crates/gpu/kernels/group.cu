// Grouped aggregation and dimension lookup in shared memory (gpu-contention).
//
// A grouping column holds codes from 0 on, so a group is a place in an array. Arrangements of it:
//   shared    one place a group, or, after the optimizer has rewritten the codes, one a clone
//   counts    rows only, one place of 32 bits a group; of more groups than there is room for, each block takes a part
//   private   a copy of every group for each of the 32 lanes, so that no two lanes of a warp meet
//   halves    sums of 64 bits as two of 32, in some copies; `held`: each thread keeps its commonest group to itself; `peers`: lanes of
//             a warp with equal groups add up first
//   global    in device memory, in several copies, each shared by some of the blocks
//   partitioned  for more groups than shared memory has room for: each pass takes a part of them
// A warp reads 32 consecutive codes, the chunk that the optimizer arranges; only `counts`, which has no clones, reads four a lane.
#include "device.cuh"

// The code of a row that does not count.
constexpr u32 uncounted = ~0u;

struct Codes {
    const u32* codes;
    const i64* values; // null pointer: rows are counted only
    u64 count;
};

// Where the aggregates end up. A clone is a slot whose group is `group_of_slot`; null pointer: the slot
// is the group.
struct Aggregates {
    const u32* group_of_slot;
    u64* counts;
    u64* sums;
    u32 slot_count;
    u32 group_count;
};

// Shared memory: sums first, as they are wider. Without values there are counts only.
__device__ __forceinline__ u32* shared_counts(const Codes& input, u32 place_count) {
    return (u32*)(block_memory + (input.values ? (u64)place_count * 8 : 0));
}

__device__ __forceinline__ void clear(const Codes& input, u32 place_count) {
    u32 words = place_count * (input.values ? 3 : 1);
    u32* all = (u32*)block_memory;
    for (u32 at = threadIdx.x; at < words; at += blockDim.x) all[at] = 0;
    __syncthreads();
}

__device__ __forceinline__ void add(const Codes& input, u64 at, u32 place, u32* counts, u64* sums) {
    atomicAdd(counts + place, 1u);
    if (input.values) atomicAdd(sums + place, (u64)__ldcs(input.values + at));
}

constexpr u32 rows_in_flight = 4;

// Gives each code to `take`, four loads ahead of their use.
template <class Take> __device__ __forceinline__ void for_each_code(const Codes& input, Take take) {
    u64 stride = threads_of_grid();
    u64 at = thread_of_grid();
    for (; at + (rows_in_flight - 1) * stride < input.count; at += rows_in_flight * stride) {
        u32 codes[rows_in_flight];
#pragma unroll
        for (u32 each = 0; each < rows_in_flight; ++each) codes[each] = __ldcs(input.codes + at + each * stride);
#pragma unroll
        for (u32 each = 0; each < rows_in_flight; ++each)
            if (codes[each] != uncounted) take(at + each * stride, codes[each]);
    }
    for (; at < input.count; at += stride) {
        u32 code = __ldcs(input.codes + at);
        if (code != uncounted) take(at, code);
    }
}

__device__ __forceinline__ u64 value_of(const Codes& input, u64 at) {
    return input.values ? (u64)__ldcs(input.values + at) : 0;
}

// Likewise with the value of each row, which is loaded ahead, too. Where there are no values, counts take longer for it.
template <class Take> __device__ __forceinline__ void for_each_row(const Codes& input, Take take) {
    u64 stride = threads_of_grid();
    u64 at = thread_of_grid();
    for (; at + (rows_in_flight - 1) * stride < input.count; at += rows_in_flight * stride) {
        u32 codes[rows_in_flight];
        u64 values[rows_in_flight];
#pragma unroll
        for (u32 each = 0; each < rows_in_flight; ++each) {
            codes[each] = __ldcs(input.codes + at + each * stride);
            values[each] = value_of(input, at + each * stride);
        }
#pragma unroll
        for (u32 each = 0; each < rows_in_flight; ++each)
            if (codes[each] != uncounted) take(codes[each], values[each]);
    }
    for (; at < input.count; at += stride) {
        u32 code = __ldcs(input.codes + at);
        if (code != uncounted) take(code, value_of(input, at));
    }
}

// A key of a grouping by columns that stay on the device: its range begins at `min` and has `width` places.
struct Key {
    const i64* values;
    i64 min;
    u32 width;
    u32 unused;
};

struct Keys {
    Key keys[4];
    u64 count;
};

// The group of each row whose bit is set in `rows`: the places of its keys in their ranges, one behind the other. Keys that are in
// no place are counted.
extern "C" __global__ void group_codes(Keys keys, const u64* rows, u64 count, u32* codes, u32* outside) {
    for (u64 at = thread_of_grid(); at < count; at += threads_of_grid()) {
        u32 code = uncounted;
        if (rows[at / 64] >> at % 64 & 1) {
            code = 0;
            for (u64 key = 0; key < keys.count; ++key) {
                const Key& of = keys.keys[key];
                u64 place = (u64)__ldcs(of.values + at) - (u64)of.min;
                if (place >= of.width) {
                    atomicAdd(outside, 1u);
                    code = uncounted;
                    break;
                }
                code = code * of.width + (u32)place;
            }
        }
        codes[at] = code;
    }
}

extern "C" __global__ void group_shared(Codes input, Aggregates out) {
    u64* sums = (u64*)block_memory;
    u32* counts = shared_counts(input, out.slot_count);
    clear(input, out.slot_count);
    for_each_code(input, [&](u64 at, u32 code) { add(input, at, code, counts, sums); });
    __syncthreads();
    for (u32 slot = threadIdx.x; slot < out.slot_count; slot += blockDim.x) {
        if (counts[slot] == 0) continue;
        u32 group = out.group_of_slot ? out.group_of_slot[slot] : slot;
        atomicAdd(out.counts + group, (u64)counts[slot]);
        if (input.values) atomicAdd(out.sums + group, sums[slot]);
    }
}

// Counts of the codes from `part * part_groups` on, where `part` is the block's place among `part_count` neighbours, which read the
// same codes at about the same time. Each lane has 16 codes on their way, read four at a time: where the counts of one block fill
// shared memory, its 1,024 threads alone have to keep device memory busy. Blocks end at about the same time, begin at different groups
// and add 32 bits to `counts`, eight neighbours to a sector of device memory.
extern "C" __global__ void __launch_bounds__(1024, 2) group_counts(const u32* codes, u64 count, u32* counts, u32 group_count,
                                                                   u32 part_count, u32 part_groups) {
    u32 first = blockIdx.x % part_count * part_groups;
    u32 here = group_count - first < part_groups ? group_count - first : part_groups;
    u32 neighbours = blockIdx.x / part_count;
    u32 blocks = gridDim.x / part_count;
    u32* places = (u32*)block_memory;
    for (u32 at = threadIdx.x; at < (here + 3) / 4; at += blockDim.x) ((uint4*)places)[at] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    auto take = [&](u32 code) {
        if (code - first < here) atomicAdd(places + (code - first), 1u);
    };
    const uint4* quads = (const uint4*)codes;
    u64 quad_count = count / 4;
    u64 stride = (u64)blocks * blockDim.x;
    u64 at = (u64)neighbours * blockDim.x + threadIdx.x;
    auto take_four = [&](const uint4& quad) { take(quad.x), take(quad.y), take(quad.z), take(quad.w); };
    for (; at + (rows_in_flight - 1) * stride < quad_count; at += rows_in_flight * stride) {
        uint4 read[rows_in_flight];
#pragma unroll
        for (u32 each = 0; each < rows_in_flight; ++each) read[each] = __ldcs(quads + at + each * stride);
#pragma unroll
        for (u32 each = 0; each < rows_in_flight; ++each) take_four(read[each]);
    }
    for (; at < quad_count; at += stride) take_four(__ldcs(quads + at));
    u64 behind = quad_count * 4 + threadIdx.x;
    if (neighbours == 0 && behind < count) take(codes[behind]);
    __syncthreads();
    u32 begin = (u32)((u64)neighbours * here / blocks) & ~31u;
    for (u32 turn = threadIdx.x; turn < here; turn += blockDim.x) {
        u32 place = turn < here - begin ? begin + turn : begin + turn - here;
        if (places[place] != 0) atomicAdd(counts + first + place, places[place]);
    }
}

// Place of a group for a lane: 32 neighbours a group, so the bank is the lane.
extern "C" __global__ void group_private(Codes input, Aggregates out) {
    u64* sums = (u64*)block_memory;
    u32 place_count = out.group_count * 32;
    u32* counts = shared_counts(input, place_count);
    u32 lane = lane_of_thread();
    clear(input, place_count);
    for_each_code(input, [&](u64 at, u32 code) { add(input, at, code * 32 + lane, counts, sums); });
    __syncthreads();
    // A warp adds up one group at a time.
    for (u32 group = warp_of_thread(); group < out.group_count; group += blockDim.x / 32) {
        u64 count = sum_of_warp(counts[group * 32 + lane]);
        u64 sum = input.values ? sum_of_warp(sums[group * 32 + lane]) : 0;
        if (lane != 0 || count == 0) continue;
        atomicAdd(out.counts + group, count);
        if (input.values) atomicAdd(out.sums + group, sum);
    }
}

// Sums as halves: a place has the lower half of its sum, the upper half and its count, each in an array of its own.
struct Halves {
    u32* low;
    u32* high;
    u32* counts;

    __device__ __forceinline__ Halves(const Codes& input, u32 place_count)
        : low((u32*)block_memory), high(low + place_count), counts(shared_counts(input, place_count)) {}

    // Shared memory adds 32 bits by itself; an addition of 64 bits is a loop of compare-and-swap there, in which threads that meet
    // at a place hold up each other. Of the additions to a lower half, those that go past its end carry: each sees that it does by
    // what was there before it, so the halves are right once all additions are done.
    __device__ __forceinline__ void add(const Codes& input, u32 place, u32 rows, u64 sum) {
        atomicAdd(counts + place, rows);
        if (!input.values) return;
        u32 lower = (u32)sum;
        u32 before = atomicAdd(low + place, lower);
        u32 upper = (u32)(sum >> 32) + (before + lower < lower ? 1 : 0);
        if (upper != 0) atomicAdd(high + place, upper);
    }

    // Adds what the block has to `out`; the copies of a slot are neighbours. Blocks, which end at about the same time, begin at
    // different slots.
    __device__ __forceinline__ void give(const Codes& input, const Aggregates& out, u32 copy_count) {
        __syncthreads();
        u32 first = blockIdx.x * blockDim.x % out.slot_count;
        for (u32 at = threadIdx.x; at < out.slot_count; at += blockDim.x) {
            u32 slot = at < out.slot_count - first ? first + at : first + at - out.slot_count;
            u64 count = 0, sum = 0;
            for (u32 place = slot * copy_count; place < (slot + 1) * copy_count; ++place) {
                count += counts[place];
                if (input.values) sum += (u64)high[place] << 32 | low[place];
            }
            if (count == 0) continue;
            u32 group = out.group_of_slot ? out.group_of_slot[slot] : slot;
            atomicAdd(out.counts + group, count);
            if (input.values) atomicAdd(out.sums + group, sum);
        }
    }
};

// Lanes take the copies of a group in turn.
extern "C" __global__ void __launch_bounds__(1024, 2) group_halves(Codes input, Aggregates out, u32 copy_count) {
    Halves halves(input, out.slot_count * copy_count);
    clear(input, out.slot_count * copy_count);
    u32 copy = lane_of_thread() % copy_count;
    for_each_row(input, [&](u32 code, u64 value) { halves.add(input, code * copy_count + copy, 1, value); });
    halves.give(input, out, copy_count);
}

// Likewise, but a thread keeps the rows of one group to itself: of the one that has the majority of what it has read, if any has
// (the vote of Boyer and Moore).
extern "C" __global__ void __launch_bounds__(1024, 2) group_held(Codes input, Aggregates out, u32 copy_count) {
    Halves halves(input, out.slot_count * copy_count);
    clear(input, out.slot_count * copy_count);
    u32 copy = lane_of_thread() % copy_count;
    u32 held = uncounted, votes = 0, rows = 0;
    u64 sum = 0;
    for_each_row(input, [&](u32 code, u64 value) {
        if (code == held) {
            votes += 1;
            rows += 1;
            sum += value;
        } else if (votes > 0) {
            votes -= 1;
            halves.add(input, code * copy_count + copy, 1, value);
        } else {
            if (rows > 0) halves.add(input, held * copy_count + copy, rows, sum);
            held = code;
            votes = rows = 1;
            sum = value;
        }
    });
    if (rows > 0) halves.add(input, held * copy_count + copy, rows, sum);
    halves.give(input, out, copy_count);
}

// The sum over the lanes `peers`, of which this is one, in the lowest of them: in each turn, every second of those that are left is
// added to the one before it.
__device__ __forceinline__ u64 sum_of_peers(u32 peers, u64 value) {
    u32 lane = lane_of_thread();
    u32 rank = __popc(peers & ((1u << lane) - 1));
    u32 above = peers & (0xfffffffeu << lane);
    while (__any_sync(all_lanes, above != 0)) {
        u32 next = __ffs(above);
        u64 other = __shfl_sync(all_lanes, value, next > 0 ? next - 1 : lane);
        if (next > 0) value += other;
        above &= __ballot_sync(all_lanes, rank % 2 == 0);
        rank /= 2;
    }
    return value;
}

// One place a group, to which one lane of those in a warp that have the group adds the rows of all. All lanes go through the same
// number of turns, as they meet in them.
extern "C" __global__ void __launch_bounds__(1024, 2) group_peers(Codes input, Aggregates out) {
    Halves halves(input, out.slot_count);
    clear(input, out.slot_count);
    u32 lane = lane_of_thread();
    u64 stride = threads_of_grid();
    for (u64 first = thread_of_grid() - lane; first < input.count; first += rows_in_flight * stride) {
        u32 codes[rows_in_flight];
        u64 values[rows_in_flight];
#pragma unroll
        for (u32 each = 0; each < rows_in_flight; ++each) {
            u64 at = first + each * stride + lane;
            codes[each] = at < input.count ? __ldcs(input.codes + at) : uncounted;
            values[each] = at < input.count ? value_of(input, at) : 0;
        }
#pragma unroll
        for (u32 each = 0; each < rows_in_flight; ++each) {
            u32 peers = __match_any_sync(all_lanes, codes[each]);
            u64 sum = input.values ? sum_of_peers(peers, values[each]) : 0;
            bool is_first = lane + 1 == (u32)__ffs(peers);
            if (is_first && codes[each] != uncounted) halves.add(input, codes[each], __popc(peers), sum);
        }
    }
    halves.give(input, out, 1);
}

// `out` has `copy_count` copies one after the other; `group_merge` adds them up.
extern "C" __global__ void group_global(Codes input, Aggregates out, u32 copy_count) {
    u64 offset = (u64)(blockIdx.x % copy_count) * out.group_count;
    for_each_code(input, [&](u64 at, u32 code) {
        atomicAdd(out.counts + offset + code, 1ull);
        if (input.values) atomicAdd(out.sums + offset + code, (u64)__ldcs(input.values + at));
    });
}

// Adds the copies 1.. to copy 0.
extern "C" __global__ void group_merge(Aggregates out, u32 copy_count) {
    for (u64 group = thread_of_grid(); group < out.group_count; group += threads_of_grid()) {
        u64 count = out.counts[group], sum = out.sums[group];
        for (u32 copy = 1; copy < copy_count; ++copy) {
            count += out.counts[(u64)copy * out.group_count + group];
            sum += out.sums[(u64)copy * out.group_count + group];
        }
        out.counts[group] = count;
        out.sums[group] = sum;
    }
}

// Each block takes the groups from `part * part_groups` on, where `part` is its place among `part_count`
// neighbours; the neighbours read the same codes.
extern "C" __global__ void group_partitioned(Codes input, Aggregates out, u32 part_count, u32 part_groups) {
    u32 part = blockIdx.x % part_count;
    u32 first = part * part_groups;
    u32 here = out.group_count - first < part_groups ? out.group_count - first : part_groups;
    u64* sums = (u64*)block_memory;
    u32* counts = shared_counts(input, part_groups);
    clear(input, part_groups);
    u64 stride = (u64)(gridDim.x / part_count) * blockDim.x;
    for (u64 at = (u64)(blockIdx.x / part_count) * blockDim.x + threadIdx.x; at < input.count; at += stride) {
        u32 place = input.codes[at] - first;
        if (place < here) add(input, at, place, counts, sums);
    }
    __syncthreads();
    for (u32 place = threadIdx.x; place < here; place += blockDim.x) {
        if (counts[place] == 0) continue;
        atomicAdd(out.counts + first + place, (u64)counts[place]);
        if (input.values) atomicAdd(out.sums + first + place, sums[place]);
    }
}

// The largest value of each group, in device memory: `places` hold words whose order without a sign is that of the values, 0
// before the first. `flip` makes such words of values, the sign's bit for the largest, all other bits for the smallest.
extern "C" __global__ void group_extreme(Codes input, u64* places, u64 flip) {
    for_each_code(input, [&](u64 at, u32 code) {
        u64 word = (u64)__ldcs(input.values + at) ^ flip;
        atomicMax(places + code, word);
    });
}

// Foreign-key join with a total: SELECT SUM(D.B) FROM F, D WHERE F.A = D.A, D's column in shared memory.
// `group_of_slot` and `slot_count` are those of the clones that the codes of F name.
extern "C" __global__ void dimension_sum(Codes input, const u32* dimension, const u32* group_of_slot, u32 slot_count,
                                         u64* total) {
    u32* column = (u32*)block_memory;
    for (u32 slot = threadIdx.x; slot < slot_count; slot += blockDim.x)
        column[slot] = dimension[group_of_slot ? group_of_slot[slot] : slot];
    __syncthreads();
    u64 own = 0;
    for_each_code(input, [&](u64, u32 code) { own += column[code]; });
    own = sum_of_warp(own);
    if (lane_of_thread() == 0) atomicAdd(total, own);
}

EMULATED_KERNEL(group_codes)
EMULATED_KERNEL(group_shared)
EMULATED_KERNEL(group_counts)
EMULATED_KERNEL(group_private)
EMULATED_KERNEL(group_halves)
EMULATED_KERNEL(group_held)
EMULATED_KERNEL(group_peers)
EMULATED_KERNEL(group_global)
EMULATED_KERNEL(group_merge)
EMULATED_KERNEL(group_partitioned)
EMULATED_KERNEL(group_extreme)
EMULATED_KERNEL(dimension_sum)
