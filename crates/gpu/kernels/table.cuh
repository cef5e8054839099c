// A join's inputs and its hash table: how rows are read, and how a row is inserted and found.
#pragma once
#include "device.cuh"

// Rows that a warp takes at a time.
constexpr u32 tile_rows = 256;
constexpr u32 tile_words = tile_rows / 32;

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

// Words of a slot for keys of this type.
template <class Key> __device__ constexpr u32 words_of() { return sizeof(Key) / sizeof(u32); }

// Puts a row into a slot that is free; whether it was.
__device__ __forceinline__ bool claim(u64* slot, u32 key, u32 row) {
    return atomicCAS(slot, empty, (u64)row << 32 | key) == empty;
}

__device__ __forceinline__ bool claim(u64* slot, u64 key, u32 row) {
    if (atomicCAS(slot, empty, (u64)row) != empty) return false;
    slot[1] = key;
    return true;
}

// The words of a sector, of which memory gives a whole one at least.
constexpr u32 sector_words = 4;

template <class Key> __device__ constexpr u32 sector_slots() { return sector_words / words_of<Key>(); }

// The slot at a step of the way from a home slot on: all slots of its sector, from it on and around, and then those of the next.
template <class Key, class Place> __device__ __forceinline__ Place place_after(Place home, u32 step) {
    constexpr Place within = sector_slots<Key>() - 1;
    return ((home & ~within) + (step & ~within)) | ((home + step) & within);
}

template <class Key> __device__ __forceinline__ u64 place_of(const Table& table, u64 home, u32 step) {
    return place_after<Key>(home, step) & table.mask;
}

template <class Key> __device__ __forceinline__ bool insert(const Table& table, Key key, u32 row) {
    u64 home = home_of(table, key);
    for (u32 step = 0; step < table.steps_max; ++step)
        if (claim(slot_of(table, place_of<Key>(table, home, step), words_of<Key>()), key, row)) return true;
    return false;
}

// How far a search has come.
struct Search {
    u64 home;
    u32 step;
};

// Goes on to the next row with this key; false at an empty slot. A table has at least as many empty slots as taken
// ones, so this ends. `Slots` are a table, or one of which a part is elsewhere.
template <class Slots> __device__ __forceinline__ bool find(const Slots& table, Search& at, u32 key, u32& row) {
    for (;;) {
        u64 tuple = *slot_of(table, place_of<u32>(table, at.home, at.step), 1);
        if (tuple == empty) return false;
        at.step += 1;
        if ((u32)tuple == key) {
            row = (u32)(tuple >> 32);
            return true;
        }
    }
}

template <class Slots> __device__ __forceinline__ bool find(const Slots& table, Search& at, u64 key, u32& row) {
    for (;;) {
        ulonglong2 slot = *(const ulonglong2*)slot_of(table, place_of<u64>(table, at.home, at.step), 2);
        if (slot.x == empty) return false;
        at.step += 1;
        if (slot.y == key) {
            row = (u32)slot.x;
            return true;
        }
    }
}

// The slots of a sector of a table that nothing changes any more. An insertion leaves no empty slot in a sector before it goes on to the
// next, so that a search that looks at whole sectors does not ask for the order of their slots.
template <class Key> struct Sector {
    ulonglong2 low, high;

    // Of its first slot.
    __device__ __forceinline__ void read(const Table& table, u64 first) {
        const ulonglong2* place = (const ulonglong2*)slot_of(table, first, words_of<Key>());
        low = __ldg(place);
        high = __ldg(place + 1);
    }
};

__device__ __forceinline__ bool is_full(const Sector<u32>& sector) {
    return sector.low.x != empty && sector.low.y != empty && sector.high.x != empty && sector.high.y != empty;
}

__device__ __forceinline__ bool is_full(const Sector<u64>& sector) { return sector.low.x != empty && sector.high.x != empty; }

// The slots that have this key, a bit each.
__device__ __forceinline__ u32 slots_with(const Sector<u32>& sector, u32 key) {
    auto has = [&](u64 tuple) { return (u32)(tuple != empty && (u32)tuple == key); };
    return has(sector.low.x) | has(sector.low.y) << 1 | has(sector.high.x) << 2 | has(sector.high.y) << 3;
}

__device__ __forceinline__ u32 slots_with(const Sector<u64>& sector, u64 key) {
    auto has = [&](const ulonglong2& slot) { return (u32)(slot.x != empty && slot.y == key); };
    return has(sector.low) | has(sector.high) << 1;
}

// The row of the first of these slots.
__device__ __forceinline__ u32 first_row_of(const Sector<u32>& sector, u32 slots) {
    return (u32)((slots & 1 ? sector.low.x : slots & 2 ? sector.low.y : slots & 4 ? sector.high.x : sector.high.y) >> 32);
}

__device__ __forceinline__ u32 first_row_of(const Sector<u64>& sector, u32 slots) {
    return (u32)(slots & 1 ? sector.low.x : sector.high.x);
}

// A row by itself, where rows are collected. One with a key of 32 bits is the tuple that its slot has.
template <class Key> struct Loose {
    Key key;
    u32 row;
};
