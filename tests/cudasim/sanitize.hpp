/* SPDX-License-Identifier: Apache-2.0 */
/* sanitize.hpp -- what the simulator tells the sanitizers, where it is built with one: SIM_ASAN, SIM_TSAN are
 * 1 then. */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SIM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIM_TSAN 1
#endif
#endif
#ifndef SIM_ASAN
#define SIM_ASAN 0
#endif
#ifndef SIM_TSAN
#define SIM_TSAN 0
#endif

#if SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define SIM_POISON(p, n)   __asan_poison_memory_region(p, n)
#define SIM_UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define SIM_POISON(p, n)   ((void)(p), (void)(n))
#define SIM_UNPOISON(p, n) ((void)(p), (void)(n))
#endif
/* What the simulator does itself, between Begin and End, is no access of a CUDA thread to the thread
 * sanitizer */
#if SIM_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
#define SIM_TSAN_CODE(...)  __VA_ARGS__
#define SIM_TSAN_NOT_INSIDE __attribute__((no_sanitize("thread")))
struct SimUnseen {
    SimUnseen() { begin(); }
    ~SimUnseen() { end(); }
    static void begin()
    {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    static void end()
    {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
};
#else
#define SIM_TSAN_CODE(...)
#define SIM_TSAN_NOT_INSIDE
struct SimUnseen {
    SimUnseen() {}
    ~SimUnseen() {}
    static void begin() {}
    static void end() {}
};
#endif
