// Range queries over points of which the device has the upper bits (bitwise-distribution, sections 3 and 4).
//
// A coordinate of 32 bits is a prefix, a suffix and a residual. Points with one prefix are a cluster; the
// prefixes and, packed one after the other, the suffixes are on the device, the residuals stay on the host.
// So the device knows of a point the cell that it lies in, and answers a little too much: the host looks at
// the residuals of those that are marked as unsure.
//
// The paper gives each (query, cluster) to a thread, which may find nothing to do or a large cluster. Here
// one kernel looks at prefixes only and queues the pairs that are not empty, and a second one gives each
// queued pair to a warp. Clusters are cut into chunks beforehand, so that no warp has much more than others.
#include "collect.cuh"

// x and y: the prefix. z: the first point. w: how many.
typedef uint4 Chunk;
// x to y and z to w, both ends inside: the rectangle.
typedef uint4 Query;

struct Points {
    const Chunk* chunks;
    const u32* suffixes; // with a word more than needed at the end
    u64 chunk_count;
    u32 prefix_bits;
    u32 suffix_bits;
};

constexpr u64 sure = 1ull << 63;

// How a cell of which `bits` upper bits are known lies to a range.
struct Relation {
    bool overlaps;
    bool is_inside;
};

__device__ __forceinline__ Relation relate(u32 cell, u32 bits, u32 from, u32 to) {
    u64 low = (u64)cell << (32 - bits);
    u64 high = low + ((1ull << (32 - bits)) - 1);
    return Relation{low <= to && high >= from, low >= from && high <= to};
}

// `bits` bits from bit `at` on.
__device__ __forceinline__ u32 read_bits(const u32* words, u64 at, u32 bits) {
    u64 pair = words[at / 32] | (u64)words[at / 32 + 1] << 32;
    return (u32)(pair >> at % 32 & ((1ull << bits) - 1));
}

// Queues chunk (below) and query (above) of each pair whose prefix does not rule it out.
extern "C" __global__ void bitwise_prune(Points points, const Query* queries, u64 query_count, Results queue,
                                         u32 room) {
    Collector collector(room);
    u64 pair_count = points.chunk_count * query_count;
    for (u64 first = thread_of_grid() - lane_of_thread(); first < pair_count; first += threads_of_grid()) {
        u64 pair = first + lane_of_thread();
        bool is_queued = false;
        u64 chunk = pair % points.chunk_count, number = pair / points.chunk_count;
        if (pair < pair_count) {
            Chunk prefix = points.chunks[chunk];
            Query query = queries[number];
            is_queued = relate(prefix.x, points.prefix_bits, query.x, query.y).overlaps &&
                        relate(prefix.y, points.prefix_bits, query.z, query.w).overlaps;
        }
        collector.add(queue, is_queued, number << 32 | chunk);
    }
    collector.finish(queue);
}

// A warp a queued pair. A result is a point below, its query above, and the top bit if it needs no second look.
extern "C" __global__ void bitwise_scan(Points points, const Query* queries, Results queue, Results results,
                                        u32 room) {
    Collector collector(room);
    u64 queued = *queue.count < queue.capacity ? *queue.count : queue.capacity;
    u32 bits = points.prefix_bits + points.suffix_bits;
    for (u64 at = thread_of_grid() / 32; at < queued; at += threads_of_grid() / 32) {
        u64 pair = queue.pairs[at];
        Chunk chunk = points.chunks[(u32)pair];
        Query query = queries[pair >> 32];
        for (u32 first = 0; first < chunk.w; first += 32) {
            u32 place = first + lane_of_thread();
            bool is_hit = false, is_sure = false;
            if (place < chunk.w) {
                u64 bit = (u64)(chunk.z + place) * 2 * points.suffix_bits;
                u32 x = read_bits(points.suffixes, bit, points.suffix_bits);
                u32 y = read_bits(points.suffixes, bit + points.suffix_bits, points.suffix_bits);
                u32 cell_x = (u32)((u64)chunk.x << points.suffix_bits | x);
                u32 cell_y = (u32)((u64)chunk.y << points.suffix_bits | y);
                Relation across = relate(cell_x, bits, query.x, query.y);
                Relation along = relate(cell_y, bits, query.z, query.w);
                is_hit = across.overlaps && along.overlaps;
                is_sure = across.is_inside && along.is_inside;
            }
            collector.add(results, is_hit, (pair >> 32) << 32 | (chunk.z + place) | (is_sure ? sure : 0));
        }
    }
    collector.finish(results);
}

EMULATED_KERNEL(bitwise_prune)
EMULATED_KERNEL(bitwise_scan)
