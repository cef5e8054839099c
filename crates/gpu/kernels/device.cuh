// What all kernels share. Compiled by nvcc for a device, and by g++ for the emulated one (emulator/).
//
// Rules that keep both true: dynamic shared memory is `block_memory` and nothing else; grids and blocks
// have one dimension; a collective of a warp is reached by all of its lanes; what threads of one launch
// share without a barrier between them, they touch by atomic operations only.
#pragma once

#ifdef __CUDACC__
extern __shared__ __align__(16) unsigned char block_memory[];
#define EMULATED_KERNEL(name)
#else
#include "emulated.h"
#endif

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

constexpr u32 all_lanes = 0xffffffffu;

__device__ __forceinline__ u32 lane_of_thread() { return threadIdx.x & 31; }
__device__ __forceinline__ u32 warp_of_thread() { return threadIdx.x >> 5; }
__device__ __forceinline__ u64 thread_of_grid() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ u64 threads_of_grid() { return (u64)gridDim.x * blockDim.x; }

// The sum over the lanes of a warp, in lane 0.
__device__ __forceinline__ u64 sum_of_warp(u64 value) {
    for (u32 step = 16; step > 0; step /= 2) value += __shfl_down_sync(all_lanes, value, step);
    return value;
}
