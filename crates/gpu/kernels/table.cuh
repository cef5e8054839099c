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

template <class Key> __device__ __forceinline__ bool insert(const Table& table, Key key, u32 row) {
    u64 at = home_of(table, key);
    for (u32 step = 0; step < table.steps_max; ++step) {
        if (claim(slot_of(table, at, words_of<Key>()), key, row)) return true;
        at = (at + 1) & table.mask;
    }
    return false;
}

// Goes on from slot `at` to the next row with this key; false at an empty slot. A table has at least
// as many empty slots as taken ones, so this ends. `Slots` are a table, or one of which a part is elsewhere.
template <class Slots> __device__ __forceinline__ bool find(const Slots& table, u64& at, u32 key, u32& row) {
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

template <class Slots> __device__ __forceinline__ bool find(const Slots& table, u64& at, u64 key, u32& row) {
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

// A row by itself, where rows are collected. One with a key of 32 bits is the tuple that its slot has.
template <class Key> struct Loose {
    Key key;
    u32 row;
};
