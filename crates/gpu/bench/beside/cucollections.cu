// The hash tables of cuCollections beside the resident join of gpu-join: tuples of a key of 4 bytes and a row of
// 4 bytes are on the device, the table is built at a load factor of a half, and the results stay on the device.
//
//   map rows     `static_map::find` writes the build row of each probe row, or that there is none: 4 bytes a
//                probe row, and no pairs yet
//   map pairs    a kernel asks the map's device reference for each probe row and appends pairs of rows, with one
//                atomic addition for 256 probe rows (one thread a row only)
//   multiset     `static_multiset::retrieve` appends the rows of both sides: the library's own join
//
// Each is measured with the library's own settings and with others: threads that look together (g), slots read at
// once (s), linear probing and a cheaper hash. Building includes emptying the table, as in ours. Every case checks
// the number of results and each pair of keys, and that each probe row with a match is there.
#include <thrust/functional.h>

// CCCL 3, which comes with CUDA 13, has no `thrust::identity`; cuCollections of that time names it.
namespace thrust {
template <class T = void> struct identity {
    template <class Any> __host__ __device__ constexpr Any&& operator()(Any&& any) const {
        return static_cast<Any&&>(any);
    }
};
} // namespace thrust

#include <cuco/static_map.cuh>
#include <cuco/static_multiset.cuh>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

#include "measured.cuh"

constexpr u32 no_row = 0xffffffff;
constexpr double tuple_bytes = 8;
constexpr double load_factor = 0.5;

// A tuple has the key below and the row above.
__host__ __device__ inline u32 key_of(u64 tuple) { return (u32)tuple; }
__host__ __device__ inline u32 row_of(u64 tuple) { return (u32)(tuple >> 32); }
// Probe keys that match nothing have the top bit.
__host__ __device__ inline bool has_match(u64 tuple) { return !(tuple >> 31 & 1); }

struct KeyOf {
    __host__ __device__ u32 operator()(u64 tuple) const { return key_of(tuple); }
};
struct RowOf {
    __host__ __device__ u32 operator()(u64 tuple) const { return row_of(tuple); }
};
struct SameKey {
    __host__ __device__ bool operator()(u64 left, u64 right) const { return key_of(left) == key_of(right); }
};
// A hash of a tuple's key alone.
template <class Hash> struct KeyHash {
    Hash hash;
    __host__ __device__ constexpr KeyHash(u32 seed = 0) : hash{seed} {}
    __host__ __device__ constexpr u32 operator()(u64 tuple) const { return hash(key_of(tuple)); }
};

// Memory that the library asks for in each call comes from the driver's pool, so that it is not timed as if a
// program had none.
template <class T> struct PoolAllocator {
    using value_type = T;
    PoolAllocator() = default;
    template <class Other> PoolAllocator(const PoolAllocator<Other>&) noexcept {}
    T* allocate(std::size_t count) {
        void* start;
        must(cudaMallocAsync(&start, count * sizeof(T), 0), "device memory");
        return (T*)start;
    }
    void deallocate(T* start, std::size_t) { must(cudaFreeAsync(start, 0), "device memory"); }
};

void keep_pool() {
    cudaMemPool_t pool;
    u64 all = ~0ull;
    must(cudaDeviceGetDefaultMemPool(&pool, 0), "the pool of device memory");
    must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all), "the pool of device memory");
}

// As `join_tables` in data.rs.
__device__ u32 build_key(u64 row) { return (u32)(row * 0x2545f491ull) & 0x7fffffff; }

__global__ void make_tables(u64* build, u64* probe, u64 count, double match_percent, Random random) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x; row < count; row += stride) {
        build[row] = build_key(row) | row << 32;
        // Two words a row.
        bool is_match = random.fraction(2 * row + 1) * 100.0 < match_percent;
        u64 number = 2 * row + 2;
        u64 key = is_match ? build_key(random.below(number, count)) : random.below(number, 1ull << 31) | 1ull << 31;
        probe[row] = key | row << 32;
    }
}

// What is checked of results: a sum of rows notices a row that is there twice in place of another.
struct Checked {
    u64 count;
    u64 probe_row_sum;
    u64 wrong;
};

__device__ void add_checked(Checked* to, const Checked& seen) {
    atomicAdd(&to->count, seen.count);
    atomicAdd(&to->probe_row_sum, seen.probe_row_sum);
    atomicAdd(&to->wrong, seen.wrong);
}

__global__ void expect(const u64* probe, u64 count, Checked* to) {
    Checked seen{0, 0, 0};
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
        if (!has_match(probe[at])) continue;
        seen.count += 1;
        seen.probe_row_sum += at;
    }
    add_checked(to, seen);
}

// `rows_at(n, &build_row, &probe_row)` gives result n; a build row of `no_row` is none.
template <class RowsAt>
__global__ void check_results(const u64* build, const u64* probe, u64 rows, u64 count, RowsAt rows_at, Checked* to) {
    Checked seen{0, 0, 0};
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += stride) {
        u32 build_row, probe_row;
        rows_at(at, &build_row, &probe_row);
        if (build_row == no_row) continue;
        bool is_right = build_row < rows && probe_row < rows && key_of(build[build_row]) == key_of(probe[probe_row]);
        seen.count += 1;
        seen.probe_row_sum += probe_row;
        seen.wrong += !is_right;
    }
    add_checked(to, seen);
}

// Tables of one size on the device, and where results go.
struct Tables {
    u64 rows;
    std::string name;
    Buffer<u64> build, probe, results;
    Buffer<Checked> checked{1};
    Checked expected;

    Tables(u64 millions, double match_percent)
        : rows(millions * million), build(rows), probe(rows), results(rows) {
        char text[64];
        snprintf(text, sizeof text, "%llu M rows each, %g %%, resident, ", millions, match_percent);
        name = text;
        make_tables<<<blocks_for(rows), block_threads>>>(build.start(), probe.start(), rows, match_percent, {1});
        checked.fill_bytes(0);
        expect<<<blocks_for(rows), block_threads>>>(probe.start(), rows, checked.start());
        expected = checked.read()[0];
    }

    template <class RowsAt> void check(u64 count, RowsAt rows_at) {
        checked.fill_bytes(0);
        check_results<<<blocks_for(rows), block_threads>>>(build.start(), probe.start(), rows, count, rows_at,
                                                           checked.start());
        Checked seen = checked.read()[0];
        must_hold(seen.count == expected.count, std::to_string(seen.count) + " matches, where there are " +
                                                    std::to_string(expected.count));
        must_hold(seen.wrong == 0 && seen.probe_row_sum == expected.probe_row_sum, "wrong pairs of rows");
    }
};

struct Spans {
    std::vector<double> build_ms, probe_ms;
};

void add_lines(Report& report, const Tables& tables, const std::string& what, const Spans& spans) {
    double bytes = tables.rows * tuple_bytes;
    std::vector<double> whole_ms;
    for (int run = 0; run < runs; ++run) whole_ms.push_back(spans.build_ms[run] + spans.probe_ms[run]);
    std::string name = tables.name + what;
    report.add(name, "build", "GB/s", billions_a_second(bytes, spans.build_ms));
    report.add(name, "probe", "GB/s", billions_a_second(bytes, spans.probe_ms));
    report.add(name, "end to end", "GB/s", billions_a_second(2 * bytes, whole_ms));
}

// A map's layout: keys and values of 4 bytes, which it swaps in as one word of 8.
using Pair = cuco::pair<u32, u32>;
static_assert(sizeof(Pair) == sizeof(u64), "a tuple is a pair of key and row");

template <int Threads, int Slots, class Hash>
using Map = cuco::static_map<u32, u32, cuco::extent<u32>, cuda::thread_scope_device, cuda::std::equal_to<u32>,
                             cuco::linear_probing<Threads, Hash>, PoolAllocator<Pair>, cuco::storage<Slots>>;

template <class Probing, int Slots>
using Multiset = cuco::static_multiset<u64, cuco::extent<u32>, cuda::thread_scope_device, SameKey, Probing,
                                       PoolAllocator<u64>, cuco::storage<Slots>>;

using PlainHash = cuco::default_hash_function<u32>;
using CheapHash = cuco::murmurhash3_fmix_32<u32>;

constexpr u32 rows_a_lane = 8;

// Appends pairs of rows, the build row above. A warp takes 256 probe rows and finds its place with one addition.
template <class Ref>
__global__ void append_pairs(Ref map, const u64* probe, u64 count, u64* pairs, u64* pair_count) {
    u32 lane = threadIdx.x & 31;
    u64 begin = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / 32 * (32 * rows_a_lane);
    u32 build_rows[rows_a_lane], matching_lanes[rows_a_lane], total = 0;
#pragma unroll
    for (u32 each = 0; each < rows_a_lane; ++each) {
        u64 at = begin + each * 32 + lane;
        bool is_match = false;
        if (at < count) {
            auto place = map.find(key_of(probe[at]));
            is_match = place != map.end();
            if (is_match) build_rows[each] = place->second;
        }
        matching_lanes[each] = __ballot_sync(0xffffffff, is_match);
        total += __popc(matching_lanes[each]);
    }
    u64 to = 0;
    if (lane == 0 && total > 0) to = atomicAdd(pair_count, (u64)total);
    to = __shfl_sync(0xffffffff, to, 0);
#pragma unroll
    for (u32 each = 0; each < rows_a_lane; ++each) {
        u64 probe_row = begin + each * 32 + lane;
        if (matching_lanes[each] >> lane & 1) {
            u64 place = to + __popc(matching_lanes[each] & ((1u << lane) - 1));
            pairs[place] = (u64)build_rows[each] << 32 | probe_row;
        }
        to += __popc(matching_lanes[each]);
    }
}

template <int Threads, int Slots, class Hash>
void measure_map(Report& report, Tables& tables, const std::string& layout) {
    u64 rows = tables.rows;
    Map<Threads, Slots, Hash> map((u32)rows, load_factor, cuco::empty_key<u32>{no_row},
                                  cuco::empty_value<u32>{no_row});
    auto pairs = (const Pair*)tables.build.start();
    Spans spans;
    spans.build_ms = milliseconds([&] {
        map.clear_async();
        map.insert_async(pairs, pairs + rows);
    });
    report.add(tables.name + "map, " + layout, "load factor", "", {(double)rows / map.capacity()});

    tables.results.fill_bytes(0x7f);
    auto keys = thrust::make_transform_iterator((const u64*)tables.probe.start(), KeyOf{});
    u32* found = (u32*)tables.results.start();
    spans.probe_ms = milliseconds([&] { map.find_async(keys, keys + rows, found); });
    std::string what = "map rows, " + layout;
    tables.check(rows, [found] __device__(u64 at, u32* build_row, u32* probe_row) {
        *build_row = found[at];
        *probe_row = (u32)at;
    });
    add_lines(report, tables, what, spans);

    if constexpr (Threads == 1) {
        tables.results.fill_bytes(0x7f);
        Buffer<u64> pair_count(1);
        u64* packed = tables.results.start();
        u64 warps = (rows + 32 * rows_a_lane - 1) / (32 * rows_a_lane);
        u32 blocks = (u32)((warps * 32 + block_threads - 1) / block_threads);
        spans.probe_ms = milliseconds([&] {
            must(cudaMemsetAsync(pair_count.start(), 0, sizeof(u64)), "a counter");
            append_pairs<<<blocks, block_threads>>>(map.ref(cuco::find), (const u64*)tables.probe.start(), rows,
                                                    packed, pair_count.start());
        });
        what = "map pairs, " + layout;
        tables.check(pair_count.read()[0], [packed] __device__(u64 at, u32* build_row, u32* probe_row) {
            *build_row = row_of(packed[at]);
            *probe_row = (u32)packed[at];
        });
        add_lines(report, tables, what, spans);
    }
}

template <class Probing, int Slots>
void measure_multiset(Report& report, Tables& tables, const std::string& layout) {
    u64 rows = tables.rows;
    Multiset<Probing, Slots> set((u32)rows, load_factor, cuco::empty_key<u64>{~0ull}, SameKey{}, Probing{});
    const u64* build = tables.build.start();
    const u64* probe = tables.probe.start();
    Spans spans;
    spans.build_ms = milliseconds([&] {
        set.clear_async();
        set.insert_async(build, build + rows);
    });
    std::string what = "multiset, " + layout;
    report.add(tables.name + what, "load factor", "", {(double)rows / set.capacity()});

    tables.results.fill_bytes(0x7f);
    u32* probe_rows = (u32*)tables.results.start();
    u32* build_rows = probe_rows + rows;
    auto to_probe = thrust::make_transform_output_iterator(probe_rows, RowOf{});
    auto to_build = thrust::make_transform_output_iterator(build_rows, RowOf{});
    u64 count = 0;
    spans.probe_ms = milliseconds([&] {
        auto ends = set.retrieve(probe, probe + rows, to_probe, to_build);
        count = (u64)(ends.first - to_probe);
    });
    tables.check(count, [=] __device__(u64 at, u32* build_row, u32* probe_row) {
        *build_row = build_rows[at];
        *probe_row = probe_rows[at];
    });
    add_lines(report, tables, what, spans);
}

template <int Threads, int Slots, class Hash>
void try_map(Report& report, Tables& tables, const std::string& layout) {
    auto work = [&] { measure_map<Threads, Slots, Hash>(report, tables, layout); };
    report.measure(tables.name + "map, " + layout, work);
}

template <class Probing, int Slots> void try_multiset(Report& report, Tables& tables, const std::string& layout) {
    auto work = [&] { measure_multiset<Probing, Slots>(report, tables, layout); };
    report.measure(tables.name + "multiset, " + layout, work);
}

template <int Threads, int Slots> void try_layout(Report& report, Tables& tables) {
    using Probing = cuco::linear_probing<Threads, KeyHash<CheapHash>>;
    std::string layout = "g" + std::to_string(Threads) + " s" + std::to_string(Slots);
    try_map<Threads, Slots, CheapHash>(report, tables, layout);
    try_multiset<Probing, Slots>(report, tables, layout);
}

void try_layouts(Report& report, Tables& tables) {
    try_map<4, 1, PlainHash>(report, tables, "as it comes");
    try_multiset<cuco::double_hashing<4, KeyHash<PlainHash>>, 2>(report, tables, "as it comes");
    try_layout<1, 1>(report, tables);
    try_layout<1, 2>(report, tables);
    try_layout<1, 4>(report, tables);
    try_layout<2, 2>(report, tables);
}

void measure(Report& report) {
    keep_pool();
    std::vector<u64> sizes = {1};
    if (!report.is_small()) sizes.insert(sizes.end(), {16, 64});
    for (u64 millions : sizes) {
        for (double match_percent : {3.0, 100.0}) {
            Tables tables(millions, match_percent);
            try_layouts(report, tables);
        }
    }
}

int main(int count, char** words) { return run_program(count, words, measure); }
