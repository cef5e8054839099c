//! Kernels broken on purpose: the checks must notice each.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::machine::{Build, Machine, crate_folder};
use crate::program::HEADERS;

/// One change of a source: what it is, the text that is there once, and what takes its place.
type Mutation = (&'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const MUTATIONS: [Mutation; 98] = [
    ("table", "insertion without compare-and-swap",
        "return atomicCAS(slot, empty, (u64)row << 32 | key) == empty;",
        "if (*slot != empty) return false;\n    *slot = (u64)row << 32 | key;\n    return true;"),
    ("table", "a wide key written before its slot is won",
        "if (atomicCAS(slot, empty, (u64)row) != empty) return false;\n    slot[1] = key;",
        "slot[1] = key;\n    if (atomicCAS(slot, empty, (u64)row) != empty) return false;"),
    ("table", "an insertion that overwrites what collides",
        "return atomicCAS(slot, empty, (u64)row << 32 | key) == empty;",
        "atomicExch(slot, (u64)row << 32 | key);\n    return true;"),
    ("table", "a search that stops at the first other key",
        "        if ((u32)tuple == key) {",
        "        if ((u32)tuple != key) return false;\n        if ((u32)tuple == key) {"),
    ("table", "wide keys compared by half",
        "if (slot.y == key) {", "if ((u32)slot.y == (u32)key) {"),
    ("table", "slots that do not wrap around",
        "return place_after<Key>(home, step) & table.mask;", "return (void)table, place_after<Key>(home, step);"),
    ("table", "an insertion that leaves a sector before it is full",
        "constexpr Place within = sector_slots<Key>() - 1;", "constexpr Place within = 0;"),
    ("table", "a slot of a sector that is left out",
        "has(sector.low) | has(sector.high) << 1", "has(sector.low)"),
    ("join", "a search that ends with its first sector",
        "goes_on = is_full(sector);", "goes_on = false;"),
    ("join", "sectors that do not wrap around",
        "place = (place + sector_slots<Key>()) & table.mask;", "place = place + sector_slots<Key>();"),
    ("join", "one row of a sector at the most",
        "slots &= slots - 1;", "slots = 0;"),
    ("join", "validity ignored where sectors are read",
        "u32 row = 0;\n        bool goes_on = at < rows.count && is_valid(rows, at);",
        "u32 row = 0;\n        bool goes_on = at < rows.count;"),
    ("table", "the far part begins one slot late",
        "table.far + (at - table.near_slots) * words", "table.far + (at + 1 - table.near_slots) * words"),
    ("join", "validity ignored in a build",
        "if (is_valid(rows, at) && !insert(table, key, row))", "if (!insert(table, key, row))"),
    ("table", "validity read from the wrong bit",
        "u64 bit = at + rows.first_bit;", "u64 bit = at;"),
    ("join", "a row too many in a direct probe",
        "const Results& results) {\n    for (u64 at = thread_of_grid(); at < rows.count;",
        "const Results& results) {\n    for (u64 at = thread_of_grid(); at <= rows.count;"),
    ("collect", "results counted without an atomic operation",
        "if (lane == 0) place = atomicAdd(results.count, (u64)count);",
        "if (lane == 0) { place = *results.count; *results.count += count; }"),
    ("join", "results written without a look at the room",
        "if (place < results.capacity) results.pairs[place] = (u64)row << 32 | found;",
        "results.pairs[place] = (u64)row << 32 | found;"),
    ("join", "one result more than the cache has room for",
        "is_held = place >= cached_max;", "is_held = place > cached_max;"),
    ("join", "no barrier before the flush writes",
        "if (threadIdx.x == 0) cache->place = atomicAdd(results.count, (u64)filled);\n    __syncthreads();",
        "if (threadIdx.x == 0) cache->place = atomicAdd(results.count, (u64)filled);"),
    ("join", "no barrier after the flush",
        "if (threadIdx.x == 0) cache->filled = 0;\n    __syncthreads();\n}",
        "if (threadIdx.x == 0) cache->filled = 0;\n}"),
    ("join", "no barrier before the first result",
        "if (threadIdx.x == 0) cache->filled = 0;\n    __syncthreads();\n    // All",
        "if (threadIdx.x == 0) cache->filled = 0;\n    // All"),
    ("collect", "a warp that overruns its room",
        "if (filled + 32 > room) {", "if (filled + 16 > room) {"),
    ("collect", "what remains in a warp's room is lost",
        "if (lane < filled - count) pairs[lane] = rest;", "if (lane + 1 < filled - count) pairs[lane] = rest;"),
    ("join", "a second partner that is not told",
        "if (has_one && find(table, slot, keys[word], other)) atomicAdd(out.repeated, 1u);", "(void)other;"),
    ("join", "partners that are not in the order of their rows",
        "if (has_one) collected[filled + __popc(having & ((1u << lane) - 1))] = found;",
        "if (has_one) collected[filled + __popc(having >> lane) - 1] = found;"),
    ("join", "partners collected beyond those that there are",
        "filled += __popc(having);\n            if (lane == word) bits = having;",
        "filled += 32;\n            if (lane == word) bits = having;"),
    ("join", "tiles that take each other's place",
        "if (lane == 0) start = atomicAdd(out.count, (u64)filled);", "if (lane == 0) { start = *out.count; *out.count += filled; }"),
    ("join", "validity ignored where partners are looked for",
        "at < rows.count && is_valid(rows, at) && find(", "at < rows.count && find("),
    ("join", "no barrier before aggregates are added up",
        "if (!groups.is_shared) return;\n    __syncthreads();", "if (!groups.is_shared) return;"),
    ("chosen", "the last rows of an input left out",
        "tile * tile_rows < rows.count; tile +=", "(tile + 1) * tile_rows <= rows.count; tile +="),
    ("chosen", "rows taken for each window",
        "home >> chosen.window_bits == chosen.window", "true"),
    ("chosen", "what remains in a queue is lost",
        "work(lane < filled, last.key, last.row);", "work(lane + 1 < filled, last.key, last.row);"),
    ("chosen", "validity ignored where rows are chosen",
        " && is_valid(rows, at);\n            filters", ";\n            filters"),
    ("chosen", "no barrier before a queue is read",
        "        __syncwarp();\n        for (; filled >= 32", "        for (; filled >= 32"),
    ("chosen", "bits of a filter in another word",
        "atomicOr(filter + home_of(table, key) / word_slots,", "atomicOr(filter + (home_of(table, key) / word_slots ^ 1),"),
    ("chosen", "bits of a filter without atomic operations",
        "atomicOr(filter + home_of(table, key) / word_slots, filter_bits(key));",
        "filter[home_of(table, key) / word_slots] |= filter_bits(key);"),
    ("chosen", "a filter asked for another key",
        "u32 bits = filter_bits(keys[word]);", "u32 bits = filter_bits(keys[word] + 1);"),
    ("chosen", "the last half of a table without a filter",
        "at <= table.mask; at += threads_of_grid()) {\n        u64 tuple",
        "at < table.mask / 2; at += threads_of_grid()) {\n        u64 tuple"),
    ("parts", "sums without the warp before",
        "warp < warp_of_thread(); ++warp", "warp + 1 < warp_of_thread(); ++warp"),
    ("parts", "no barrier before a tile's rows are counted",
        "begins[part] = 0;\n        __syncthreads();", "begins[part] = 0;"),
    ("parts", "no barrier before a tile is in order",
        "{keys[turn], numbers[turn]};\n        __syncthreads();", "{keys[turn], numbers[turn]};"),
    ("parts", "insertions that stay in their window",
        "at = place_after<Key>(home, ++step);", "at = place_after<Key>(home, ++step) & (slots - 1);"),
    ("parts", "no barrier before a window is written",
        "        __syncthreads();\n        u64 first_slot", "        u64 first_slot"),
    ("parts", "a window without its last slot",
        "at < slots * words; at += blockDim.x)\n            slot_of", "at < (slots - 1) * words; at += blockDim.x)\n            slot_of"),
    ("parts", "the end of a window taken for that of the search",
        "return within < table.slots ? table.held + within * words : slot_of((const Table&)table, at, words);",
        "return table.held + within % table.slots * words;"),
    ("parts", "no barrier before a window is searched",
        "[at % words];\n        __syncthreads();", "[at % words];"),
    ("parts", "no barrier before the next window",
        "            }\n        }\n        __syncthreads();\n    }\n    u32 count", "            }\n        }\n    }\n    u32 count"),
    ("parts", "places of a part that two tiles take",
        "u32 place = atomicAdd(parts.cursors + part, count);",
        "u32 place = parts.cursors[part];\n                parts.cursors[part] += count;"),
    ("parts", "validity ignored where rows are scattered",
        "taken |= (u32)is_valid(rows, at) << turn;", "taken |= 1u << turn;"),
    ("parts", "a part that is full beyond its room",
        "bool has_room = place + count <= parts.room;", "bool has_room = place <= parts.room;"),
    ("parts", "a part that is full without an end",
        "if (!has_room && place <= parts.room) parts.ends[part] = place;", ""),
    ("parts", "the end of a part told by the last tile",
        "if (!has_room && place <= parts.room) parts.ends[part] = place;", "if (!has_room) parts.ends[part] = place;"),
    ("parts", "rows that are over are lost",
        "if (at >= slots) rows[take_over(parts, 1)] = own[turn];", ""),
    ("parts", "rows that are over are not looked for",
        "bool goes_on = at < count;\n        if (goes_on) own", "bool goes_on = false;\n        if (goes_on) own"),
    ("group", "no barrier after clearing",
        "all[at] = 0;\n    __syncthreads();", "all[at] = 0;"),
    ("group", "no barrier before aggregates are added up",
        "counts, sums); });\n    __syncthreads();\n    for (u32 slot", "counts, sums); });\n    for (u32 slot"),
    ("group", "a carry that is lost",
        "(before + lower < lower ? 1 : 0)", "(before & 0)"),
    ("group", "a carry told by the wrong half",
        "before + lower < lower", "before + lower < before + 1"),
    ("group", "halves without atomic operations",
        "u32 before = atomicAdd(low + place, lower);", "u32 before = low[place];\n        low[place] = before + lower;"),
    ("group", "upper halves that overwrite each other",
        "if (upper != 0) atomicAdd(high + place, upper);", "if (upper != 0) high[place] += upper;"),
    ("group", "no barrier before halves are added up",
        "u32 copy_count) {\n        __syncthreads();", "u32 copy_count) {"),
    ("group", "a copy of the halves that is left out",
        "place < (slot + 1) * copy_count; ++place", "place + 1 < (slot + 1) * copy_count; ++place"),
    ("group", "slots of groups that do not wrap around",
        "at < out.slot_count - first ? first + at : first + at - out.slot_count", "first + at"),
    ("group", "what a thread holds is lost at the end",
        "    if (rows > 0) halves.add(input, held * copy_count + copy, rows, sum);\n    halves.give", "    halves.give"),
    ("group", "what a thread holds is lost with the majority",
        "            if (rows > 0) halves.add(input, held * copy_count + copy, rows, sum);\n            held = code;",
        "            held = code;"),
    ("group", "peers of which every second is left out",
        "above &= __ballot_sync(all_lanes, rank % 2 == 0);", "above &= __ballot_sync(all_lanes, rank % 2 == 1);"),
    ("group", "every peer adds the sum",
        "bool is_first = lane + 1 == (u32)__ffs(peers);", "bool is_first = true;"),
    ("group", "lanes behind the end that do not take part",
        "u32 peers = __match_any_sync(all_lanes, codes[each]);",
        "if (codes[each] == uncounted) continue;\n            u32 peers = __match_any_sync(all_lanes, codes[each]);"),
    ("group", "counts without atomic operations",
        "atomicAdd(counts + place, 1u);", "counts[place] += 1;"),
    ("group", "a code too many",
        "        if (code != uncounted) take(at, code);\n    }",
        "        if (code != uncounted) take(at, code);\n    }\n    if (at == input.count) take(at, 0);"),
    ("group", "a row too many",
        "        if (code != uncounted) take(code, value_of(input, at));\n    }",
        "        if (code != uncounted) take(code, value_of(input, at));\n    }\n    if (at == input.count) take(0, 7);"),
    ("group", "lanes that share a copy",
        "code * 32 + lane, counts", "code * 32 + lane + 1, counts"),
    ("group", "clones taken for groups",
        "continue;\n        u32 group = out.group_of_slot ? out.group_of_slot[slot] : slot;", "continue;\n        u32 group = slot;"),
    ("group", "a copy that is not merged",
        "for (u32 copy = 1; copy < copy_count; ++copy)", "for (u32 copy = 2; copy < copy_count; ++copy)"),
    ("group", "a row chosen by its neighbour's bit",
        "if (rows[at / 64] >> at % 64 & 1) {", "if (rows[at / 64] >> (at ^ 1) % 64 & 1) {"),
    ("group", "keys that are not kept apart",
        "code = code * of.width + ", "code = code + "),
    ("group", "a place behind the last",
        "if (place >= of.width) {", "if (place > of.width) {"),
    ("group", "rows that do not count taken for a group",
        "        if (code != uncounted) take(at, code);", "        take(at, code);"),
    ("group", "rows that do not count with their values",
        "        if (code != uncounted) take(code, value_of(input, at));", "        take(code, value_of(input, at));"),
    ("group", "an extreme without an atomic operation",
        "atomicMax(places + code, word);", "if (places[code] < word) places[code] = word;"),
    ("group", "an extreme of values as they are",
        "u64 word = (u64)__ldcs(input.values + at) ^ flip;", "u64 word = (u64)__ldcs(input.values + at) ^ (flip & 1);"),
    ("bitwise", "cells taken for points",
        "((1ull << (32 - bits)) - 1)", "0"),
    ("bitwise", "every hit is sure",
        "is_sure = across.is_inside && along.is_inside;", "is_sure = true;"),
    ("bitwise", "a point too many",
        "if (place < chunk.w) {", "if (place <= chunk.w) {"),
    ("bitwise", "queued pairs beyond the queue's room",
        "*queue.count < queue.capacity ? *queue.count : queue.capacity;\n    u32 bits", "*queue.count;\n    u32 bits"),
    ("bitwise", "what a warp still holds is lost",
        "collector.add(queue, is_queued, number << 32 | chunk);\n    }\n    collector.finish(queue);",
        "collector.add(queue, is_queued, number << 32 | chunk);\n    }"),
    ("bitwise", "an edge's first chunk left out",
        "for (u64 of_warp = first; of_warp < end", "for (u64 of_warp = first + 1; of_warp < end"),
    ("bitwise", "what lies beyond the whole clusters is forgotten",
        "if (has_whole) queue_chunks(collector, queue, number, chunk_of[whole.end], chunk_of[clusters.end]);", ""),
    ("bitwise", "rows that several parts look at",
        "u64 row = rows.first + work % parts;", "u64 row = rows.first;"),
    ("bitwise", "a cluster whole that is not",
        "(query.must[side].x + ((1ull << bits) - 1)) >> bits", "query.must[side].x >> bits"),
    ("bitwise", "the end of what must answer taken for the last",
        "kept < query.must[side].y", "kept <= query.must[side].y"),
    ("bitwise", "points beyond those of a group of lanes",
        "__ballot_sync(all_lanes, place < count) != 0;", "__ballot_sync(all_lanes, place < count) != 0 && place < group_lanes;"),
    ("tree", "high ends taken for low ones",
        "key.low[of] <= query.high[of]", "key.low[of] <= query.low[of]"),
    ("tree", "a dimension left out",
        "for (u32 of = 0; of < dimensions; ++of)", "for (u32 of = dimensions > 1; of < dimensions; ++of)"),
    ("tree", "only the first 32 slots of a node",
        "first < node.y; first += 32", "first < node.y && first < 32; first += 32"),
    ("tree", "rectangles that touch are apart",
        "key.x <= query.z && query.x <= key.z", "key.x <= query.x && query.x <= key.z"),
    ("roof", "additions without atomic operations",
        "atomicAdd(counts + place, 1u);", "counts[place] += 1;"),
];

/// Seeds until one notices.
const SEEDS: u64 = 10;

/// What the checks of a file's kernels are called.
fn subjects_of(kernel: &str) -> &'static [&'static str] {
    match kernel {
        "join" => &["join"],
        "group" => &["groups", "lookup"],
        "bitwise" => &["bitwise", "directory"],
        "tree" => &["tree", "windows"],
        _ => &["roofs"],
    }
}

pub fn check_all() {
    let machine = Machine::of(Build::Races);
    machine.check(&[], 1, SEEDS).expect("nothing is noticed where nothing is broken");
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let unnoticed: Vec<&str> = std::thread::scope(|scope| {
        let work = || {
            let mut unnoticed = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((kernel, what, from, to)) = MUTATIONS.get(number).copied() else { return unnoticed };
                // A header is tried where the join uses it.
                let header = format!("{kernel}.cuh");
                let (file, kernel) = if HEADERS.contains(&header.as_str()) {
                    (header, "join")
                } else {
                    (format!("{kernel}.cu"), kernel)
                };
                let source = fs::read_to_string(crate_folder().join("kernels").join(&file)).expect("a source");
                assert_eq!(source.matches(from).count(), 1, "{file} has this once: {from}");
                let broken = machine.with_kernel(kernel, &file, &source.replace(from, to), number);
                let passes = |subject: &&str| broken.run(&["check", subject, "1", &SEEDS.to_string()], &[]).is_ok();
                if subjects_of(kernel).iter().all(passes) {
                    unnoticed.push(what);
                }
            }
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("no mutation is out of date")).collect()
    });
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:#?}");
}
