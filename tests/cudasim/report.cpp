/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.cpp -- how the simulator speaks: defects of the program under test end it, calls that CUDA would
 * refuse are refused with the reason on stderr; the last error of each thread, the sticky error of a device
 * whose operation failed, and the faults that a test planted.
 */
#include "sim.hpp"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sim {

static thread_local cudaError_t last_error = cudaSuccess;
static cudaError_t sticky = cudaSuccess;

/* One write for each line: several processes share stderr */
static void say(const char *head, const char *kind, const char *fmt, va_list args)
{
    char line[1024];
    int at = snprintf(line, sizeof(line), "cudasim: %s%s", head, kind);
    at += vsnprintf(line + at, sizeof(line) - (size_t)at - 1, fmt, args);
    if (at > (int)sizeof(line) - 2) at = (int)sizeof(line) - 2;
    line[at] = '\n';
    line[at + 1] = 0;
    fputs(line, stderr);
    fflush(stderr);
}

void die(const char *kind, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(kind, ": ", fmt, args);
    va_end(args);
    abort();
}

void refused(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("refused", ": ", fmt, args);
    va_end(args);
}

void note(const char *fmt, ...)
{
    if (!settings().verbose) return;
    va_list args;
    va_start(args, fmt);
    say("", "", fmt, args);
    va_end(args);
}

cudaError_t failed(cudaError_t e)
{
    return last_error = e;
}

cudaError_t fail(cudaError_t e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("refused", ": ", fmt, args);
    va_end(args);
    return failed(e);
}

std::string text(const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    return line;
}

cudaError_t usable()
{
    const Settings &s = settings();
    if (s.driver < CUDART_VERSION / 1000 * 1000) return failed(cudaErrorInsufficientDriver);
    if (s.devices == 0) return failed(cudaErrorNoDevice);
    if (sticky) return failed(sticky);
    return cudaSuccess;
}

void break_device(const char *what)
{
    refused("'%s' failed as it ran: the device answers cudaErrorLaunchFailure from now on", what);
    sticky = cudaErrorLaunchFailure;
}

/* --- faults: kinds by name for the environment, a count and the number of the call to fail for each */
static const char *const fault_names[CUDASIM_FAULTS] = {"malloc", "hostalloc", "launch", "copy",  "execute",
                                                        "cudnn",  "cublas",    "nccl",   "create"};
struct Faults {
    int64_t count[CUDASIM_FAULTS] = {}, at[CUDASIM_FAULTS] = {};
    Faults();
};

Faults::Faults()
{
    for (const char *word = getenv("CUDASIM_FAIL"); word && *word;) {
        const char *colon = strchr(word, ':'), *comma = strchr(word, ',');
        int kind = 0;
        while (kind < CUDASIM_FAULTS && (!colon || strncmp(fault_names[kind], word, (size_t)(colon - word)) ||
                                         fault_names[kind][colon - word]))
            kind++;
        if (kind == CUDASIM_FAULTS) die("FATAL", "CUDASIM_FAIL: no kind of fault in '%s'", word);
        at[kind] = strtoll(colon + 1, nullptr, 10);
        word = comma ? comma + 1 : nullptr;
    }
}

static Faults &faults()
{
    static Faults f;
    return f;
}

bool planted(enum cudasim_fault what)
{
    Faults &f = faults();
    if (++f.count[what] != f.at[what]) return false;
    refused("a planted fault: %s number %lld", fault_names[what], (long long)f.count[what]);
    return true;
}

} // namespace sim

using namespace sim;

extern "C" void cudasim_fail(enum cudasim_fault what, int64_t nth)
{
    Lock lock;
    faults().at[what] = nth > 0 ? faults().count[what] + nth : 0;
}

extern "C" int64_t cudasim_count(enum cudasim_fault what)
{
    Lock lock;
    return faults().count[what];
}

cudaError_t cudaGetLastError(void)
{
    if (sticky) return sticky;
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

cudaError_t cudaPeekAtLastError(void)
{
    return sticky ? sticky : last_error;
}

/* The errors that this device gives, with CUDA's own numbers; the sentences are ours */
#define ERRORS(X)                                                                                            \
    X(cudaSuccess, "no error")                                                                               \
    X(cudaErrorInvalidValue, "invalid argument")                                                             \
    X(cudaErrorMemoryAllocation, "out of memory")                                                            \
    X(cudaErrorInvalidConfiguration, "invalid configuration of a launch")                                    \
    X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")           \
    X(cudaErrorInvalidDeviceFunction, "invalid device function")                                             \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                               \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                                      \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device")           \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                             \
    X(cudaErrorNotReady, "device not ready")                                                                 \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                                   \
    X(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                              \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                                                  \
    X(cudaErrorNotSupported, "operation not supported")                                                      \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")                 \
    X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")          \
    X(cudaErrorStreamCaptureUnmatched, "the capture was not begun on this stream")                           \
    X(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                                  \
    X(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")            \
    X(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing stream") \
    X(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream")     \
    X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
#define NAME(code, sentence)                                                                                 \
    case code:                                                                                               \
        return #code;
        ERRORS(NAME)
    default:
        return "unrecognized error code";
    }
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
#define SENTENCE(code, sentence)                                                                             \
    case code:                                                                                               \
        return sentence;
        ERRORS(SENTENCE)
    default:
        return "unrecognized error code";
    }
}
