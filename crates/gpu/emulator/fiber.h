// Fibers: a stack each, and a switch that saves what the calling convention says must survive.
//
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace emulated {

constexpr size_t stack_bytes = 64 * 1024;

struct Fiber {
    unsigned char* stack = nullptr;
#if defined(__x86_64__)
    void* top = nullptr;
#else
    ucontext_t context;
#endif
};

inline bool is_on_stack(const Fiber& fiber, const unsigned char* place) {
    return place >= fiber.stack && place < fiber.stack + stack_bytes;
}

#if defined(__x86_64__)
extern "C" void emulated_switch(void** save, void* load);
asm(R"(
.text
.type emulated_switch, @function
emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulated_switch, .-emulated_switch
)");
#endif

inline void switch_fiber(Fiber& from, Fiber& to) {
#if defined(__x86_64__)
    emulated_switch(&from.top, to.top);
#else
    swapcontext(&from.context, &to.context);
#endif
}

inline void (*fiber_entry)() = nullptr;

inline void enter_fiber() {
    fiber_entry();
    abort();
}

inline void prepare_fiber(Fiber& fiber, void (*entry)()) {
    fiber_entry = entry;
    if (!fiber.stack) {
        void* memory = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) abort();
        fiber.stack = static_cast<unsigned char*>(memory);
    }
#if defined(__SANITIZE_ADDRESS__)
    // A fiber that a fault has ended leaves the marks of its frames behind.
    __asan_unpoison_memory_region(fiber.stack, stack_bytes);
#endif
#if defined(__x86_64__)
    // As after a call: the return address, at a place that is 8 bytes off a multiple of 16 on entry.
    auto top = reinterpret_cast<void**>(fiber.stack + stack_bytes - 64);
    top[0] = reinterpret_cast<void*>(&enter_fiber);
    top[1] = nullptr;
    fiber.top = top - 6;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter_fiber, 0);
#endif
}

} // namespace emulated
