// What a kernel sees of the emulated device: CUDA's words, as far as the kernels use them.
//
// A kernel source compiles unchanged with g++ when this header stands in for CUDA's own. Threads are
// fibers; every function here is a place at which another fiber may go on. Nothing in this file is
// instrumented: the bodies are in `machine.cpp`, which is compiled without the hooks.
#pragma once
#include <cstddef>
#include <cstdint>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct alignas(16) float4 { float x, y, z, w; };

namespace emulated {
struct Index { unsigned x, y, z; };
Index thread_index();
Index block_index();
Index block_size();
Index grid_size();
unsigned char* shared_memory();
void barrier();
int barrier_or(int predicate);
int barrier_count(int predicate);
// All lanes of `mask` give a value and see those of the others; `values` has 32 places.
void collect(unsigned mask, unsigned long long value, unsigned long long* values);
unsigned lane();
void register_kernel(const char* name, void (*call)(void**), const unsigned* sizes, unsigned parameter_count);

template <size_t... at> struct Places {};
template <size_t count, size_t... at> struct Count : Count<count - 1, count - 1, at...> {};
template <size_t... at> struct Count<0, at...> { using type = Places<at...>; };

template <class Signature, Signature kernel> struct Entry;
template <class... Arguments, void (*kernel)(Arguments...)> struct Entry<void (*)(Arguments...), kernel> {
    template <size_t... at> __attribute__((no_sanitize("thread"))) static void unpack(void** parameters, Places<at...>) {
        kernel(*static_cast<Arguments*>(parameters[at])...);
    }
    __attribute__((no_sanitize("thread"))) static void call(void** parameters) {
        unpack(parameters, typename Count<sizeof...(Arguments)>::type());
    }
    explicit Entry(const char* name) {
        static const unsigned sizes[] = {sizeof(Arguments)..., 0};
        register_kernel(name, &call, sizes, sizeof...(Arguments));
    }
};
} // namespace emulated

#define threadIdx (emulated::thread_index())
#define blockIdx (emulated::block_index())
#define blockDim (emulated::block_size())
#define gridDim (emulated::grid_size())
#define block_memory (emulated::shared_memory())
#define EMULATED_KERNEL(name) static emulated::Entry<decltype(&name), &name> entry_##name(#name);

inline void __syncthreads() { emulated::barrier(); }
inline int __syncthreads_or(int predicate) { return emulated::barrier_or(predicate); }
inline int __syncthreads_count(int predicate) { return emulated::barrier_count(predicate); }

void __syncwarp(unsigned mask = 0xffffffffu);
unsigned __ballot_sync(unsigned mask, int predicate);
int __any_sync(unsigned mask, int predicate);
int __all_sync(unsigned mask, int predicate);
unsigned __match_any_sync(unsigned mask, unsigned value);
unsigned __shfl_sync(unsigned mask, unsigned value, int source, int width = 32);
unsigned long long __shfl_sync(unsigned mask, unsigned long long value, int source, int width = 32);
unsigned __shfl_up_sync(unsigned mask, unsigned value, unsigned delta, int width = 32);
unsigned __shfl_down_sync(unsigned mask, unsigned value, unsigned delta, int width = 32);
unsigned long long __shfl_down_sync(unsigned mask, unsigned long long value, unsigned delta, int width = 32);
unsigned __shfl_xor_sync(unsigned mask, unsigned value, int lane_mask, int width = 32);
unsigned long long __shfl_xor_sync(unsigned mask, unsigned long long value, int lane_mask, int width = 32);

unsigned atomicAdd(unsigned* place, unsigned value);
unsigned long long atomicAdd(unsigned long long* place, unsigned long long value);
unsigned atomicCAS(unsigned* place, unsigned expected, unsigned value);
unsigned long long atomicCAS(unsigned long long* place, unsigned long long expected, unsigned long long value);
unsigned atomicExch(unsigned* place, unsigned value);
unsigned long long atomicExch(unsigned long long* place, unsigned long long value);
unsigned atomicMax(unsigned* place, unsigned value);
unsigned long long atomicMax(unsigned long long* place, unsigned long long value);
unsigned atomicMin(unsigned* place, unsigned value);
unsigned atomicOr(unsigned* place, unsigned value);
void __threadfence();
void __threadfence_system();

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(unsigned bits) { return __builtin_ffs(static_cast<int>(bits)); }
inline int __clz(unsigned bits) { return bits == 0 ? 32 : __builtin_clz(bits); }
template <class T> inline T __ldg(const T* place) { return *place; }
template <class T> inline T __ldcs(const T* place) { return *place; }
template <class T> inline void __stcs(T* place, T value) { *place = value; }
