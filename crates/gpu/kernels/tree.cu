// Scans of a generalized search tree, level by level (gist-coprocessor, section 3).
//
// A node is some slots side by side, each a key and a child: a node of the level below or, in a leaf, a
// record. A query goes down to each child whose key is consistent with it. The predicates are compiled in.
//
// The paper queues query batches at nodes, tests the matrix of slots and queries of each, and merges the
// results on the host, which took over half of its time. Here a level's queue is a list of (node, query)
// pairs: a warp takes one and tests 32 slots at a time, and what it finds is the queue of the next level,
// compact and on the device already.
#include "collect.cuh"

struct Nodes {
    const uint2* nodes; // first slot, number of slots
    const void* keys;
    const u32* children;
};

// Rectangles that have a point in common: x0, y0, x1, y1, the ends inside. For R-trees.
struct Overlap {
    typedef float4 Key;
    static __device__ __forceinline__ bool is_consistent(const Key& key, const Key& query) {
        return key.x <= query.z && query.x <= key.z && key.y <= query.w && query.y <= key.w;
    }
};

struct alignas(16) Range {
    i64 from, to;
};

// Ranges of numbers that have a number in common, the ends inside. For B-trees.
struct Meet {
    typedef Range Key;
    static __device__ __forceinline__ bool is_consistent(const Key& key, const Key& query) {
        return key.from <= query.to && query.from <= key.to;
    }
};

// Boxes of some dimensions in whole numbers, all low ends and then all high ends, the ends inside. For the product's R-trees: whatever
// their numbers are, they come as places in the span of all boxes.
template <u32 dimensions>
struct Window {
    struct alignas(dimensions % 2 ? 8 : 16) Key {
        u32 low[dimensions], high[dimensions];
    };
    static __device__ __forceinline__ bool is_consistent(const Key& key, const Key& query) {
        bool meets = true;
        for (u32 of = 0; of < dimensions; ++of) {
            meets = meets && key.low[of] <= query.high[of] && query.low[of] <= key.high[of];
        }
        return meets;
    }
};

// A pair is a node below and a query above; in the results of the last level, a record below.
template <class Predicate>
__device__ __forceinline__ void scan(const Nodes& tree, const void* queries, const Results& from, const Results& to,
                                     u32 room) {
    typedef typename Predicate::Key Key;
    Collector collector(room);
    u64 queued = *from.count < from.capacity ? *from.count : from.capacity;
    for (u64 at = thread_of_grid() / 32; at < queued; at += threads_of_grid() / 32) {
        u64 pair = from.pairs[at];
        uint2 node = tree.nodes[(u32)pair];
        Key query = ((const Key*)queries)[pair >> 32];
        for (u32 first = 0; first < node.y; first += 32) {
            u32 slot = node.x + first + lane_of_thread();
            bool is_hit = false;
            u32 child = 0;
            if (first + lane_of_thread() < node.y) {
                is_hit = Predicate::is_consistent(((const Key*)tree.keys)[slot], query);
                child = tree.children[slot];
            }
            collector.add(to, is_hit, (pair >> 32) << 32 | child);
        }
    }
    collector.finish(to);
}

extern "C" __global__ void tree_overlap(Nodes tree, const void* queries, Results from, Results to, u32 room) {
    scan<Overlap>(tree, queries, from, to, room);
}

extern "C" __global__ void tree_meet(Nodes tree, const void* queries, Results from, Results to, u32 room) {
    scan<Meet>(tree, queries, from, to, room);
}

extern "C" __global__ void tree_windows_1(Nodes tree, const void* queries, Results from, Results to, u32 room) {
    scan<Window<1>>(tree, queries, from, to, room);
}

extern "C" __global__ void tree_windows_2(Nodes tree, const void* queries, Results from, Results to, u32 room) {
    scan<Window<2>>(tree, queries, from, to, room);
}

extern "C" __global__ void tree_windows_3(Nodes tree, const void* queries, Results from, Results to, u32 room) {
    scan<Window<3>>(tree, queries, from, to, room);
}

extern "C" __global__ void tree_windows_4(Nodes tree, const void* queries, Results from, Results to, u32 room) {
    scan<Window<4>>(tree, queries, from, to, room);
}

EMULATED_KERNEL(tree_overlap)
EMULATED_KERNEL(tree_meet)
EMULATED_KERNEL(tree_windows_1)
EMULATED_KERNEL(tree_windows_2)
EMULATED_KERNEL(tree_windows_3)
EMULATED_KERNEL(tree_windows_4)
