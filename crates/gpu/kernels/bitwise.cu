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

// Points in the order of a dense directory: a place for each pair of prefixes, row by row. For the product's indexes, whose
// coordinates have up to 64 bits; how many of them are kept, their owner knows.
//
// As a prefix is a place, no query looks at clusters that it does not meet: what its edge crosses in a row is two stretches of
// clusters that follow each other, and so are their chunks. What lies between them answers as a whole, which the host knows by itself.
struct Directory {
    const u32* chunk_of; // the first chunk of each cluster, and the end of the last one's
    const uint2* chunks; // x: the first point. y: the cluster. One more at the end
    const u32* suffixes[2]; // of the prefix that is a row, and of that within; with a word more than needed at the end
    u64 row_clusters;
    u32 suffix_bits[2];
};

// Kept bits of which a point may answer, from x to y, and of those those that do in any case, from x to before y.
struct Asked {
    ulonglong2 may[2], must[2];
};

// From a first to before an end.
struct Span {
    u64 first, end;
    __device__ __forceinline__ bool has(u64 at) const { return first <= at && at < end; }
};

// The prefixes that may answer, and those of which every suffix does.
__device__ __forceinline__ Span hit_by(const Asked& query, u32 side, u32 bits) {
    return Span{query.may[side].x >> bits, (query.may[side].y >> bits) + 1};
}

__device__ __forceinline__ Span whole_in(const Asked& query, u32 side, u32 bits) {
    return Span{(query.must[side].x + ((1ull << bits) - 1)) >> bits, query.must[side].y >> bits};
}

// Queues a stretch of chunks (below) for a query (above).
__device__ __forceinline__ void queue_chunks(Collector& collector, const Results& queue, u64 number, u32 first, u32 end) {
    for (u64 of_warp = first; of_warp < end; of_warp += 32) {
        u64 chunk = of_warp + lane_of_thread();
        collector.add(queue, chunk < end, number << 32 | chunk);
    }
}

// A warp a query and every `parts`th row of it.
extern "C" __global__ void bitwise_select(Directory points, const Asked* queries, u64 query_count, Results queue, u32 parts,
                                          u32 room) {
    Collector collector(room);
    for (u64 work = thread_of_grid() / 32; work < query_count * parts; work += threads_of_grid() / 32) {
        u64 number = work / parts;
        Asked query = queries[number];
        Span rows = hit_by(query, 0, points.suffix_bits[0]), clusters = hit_by(query, 1, points.suffix_bits[1]);
        Span whole_rows = whole_in(query, 0, points.suffix_bits[0]);
        Span whole = whole_in(query, 1, points.suffix_bits[1]);
        for (u64 row = rows.first + work % parts; row < rows.end; row += parts) {
            const u32* chunk_of = points.chunk_of + row * points.row_clusters;
            bool has_whole = whole_rows.has(row) && whole.first < whole.end;
            queue_chunks(collector, queue, number, chunk_of[clusters.first], chunk_of[has_whole ? whole.first : clusters.end]);
            if (has_whole) queue_chunks(collector, queue, number, chunk_of[whole.end], chunk_of[clusters.end]);
        }
    }
    collector.finish(queue);
}

constexpr u32 group_lanes = 8; // about the points of a cluster

// Some lanes a queued pair. A result is, from the top, 22 bits of the query, 32 of the chunk, 9 of the point in it, and one that says
// whether it needs no second look.
extern "C" __global__ void bitwise_test(Directory points, const Asked* queries, Results queue, Results results, u32 room) {
    Collector collector(room);
    u64 queued = *queue.count < queue.capacity ? *queue.count : queue.capacity;
    u32 lane = lane_of_thread() % group_lanes;
    u64 step = threads_of_grid() / group_lanes;
    // All lanes of a warp go on together.
    for (u64 of_warp = thread_of_grid() / 32 * (32 / group_lanes); of_warp < queued; of_warp += step) {
        u64 at = of_warp + lane_of_thread() / group_lanes;
        u64 pair = at < queued ? queue.pairs[at] : 0;
        u32 chunk = (u32)pair;
        Asked query = queries[pair >> 32];
        uint2 known = points.chunks[chunk];
        u32 count = at < queued ? points.chunks[chunk + 1].x - known.x : 0;
        u64 prefixes[2] = {known.y / points.row_clusters, known.y % points.row_clusters};
        for (u32 place = lane; __ballot_sync(all_lanes, place < count) != 0; place += group_lanes) {
            bool is_hit = place < count, is_sure = true;
            if (is_hit) {
                for (u32 side = 0; side < 2; ++side) {
                    u32 bits = points.suffix_bits[side];
                    u64 kept = prefixes[side] << bits | read_bits(points.suffixes[side], ((u64)known.x + place) * bits, bits);
                    is_hit = is_hit && query.may[side].x <= kept && kept <= query.may[side].y;
                    is_sure = is_sure && query.must[side].x <= kept && kept < query.must[side].y;
                }
            }
            collector.add(results, is_hit, pair >> 32 << 42 | (u64)chunk << 10 | place << 1 | (is_sure ? 1 : 0));
        }
    }
    collector.finish(results);
}

EMULATED_KERNEL(bitwise_prune)
EMULATED_KERNEL(bitwise_scan)
EMULATED_KERNEL(bitwise_select)
EMULATED_KERNEL(bitwise_test)
