/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.hpp -- for the simulator's own tests. The simulator reads its settings once, and a defect ends the
 * process: so each case runs in a child with an environment of its own, and its stderr is compared with what
 * it should say.
 */
#pragma once
#include "../tap.h"
#include "cudasim.h"
#include <cstring>
#include <cuda_runtime.h>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/* A call that must succeed: else the child ends with status 3 and the place */
#define GOOD(call) must_be_good((int)(call), __FILE__, __LINE__, #call)
static inline void must_be_good(int status, const char *file, int line, const char *call)
{
    if (status == 0) return;
    fprintf(stderr, "%s:%d: %s -> %d\n", file, line, call, status);
    _exit(3);
}
#define HOLDS(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                   \
            _exit(4);                                                                                        \
        }                                                                                                    \
    } while (0)

struct Outcome {
    bool ended_well;
    std::string said;
};

/* Runs the body in a child, with settings such as "CUDASIM_SEED=1 CUDASIM_SM=70" */
static inline Outcome in_child(const std::string &settings, const std::function<void()> &body)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends)) tap_bail("no pipe");
    pid_t child = fork();
    if (child < 0) tap_bail("no child");
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        for (size_t at = 0; at < settings.size();) {
            size_t end = settings.find(' ', at);
            std::string word = settings.substr(at, end - at);
            size_t equal = word.find('=');
            setenv(word.substr(0, equal).c_str(), word.c_str() + equal + 1, 1);
            at = end == std::string::npos ? settings.size() : end + 1;
        }
        body();
        _exit(0);
    }
    close(ends[1]);
    Outcome o;
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) o.said.append(buffer, (size_t)n);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    o.ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return o;
}

static inline void show(const Outcome &o)
{
    size_t at = 0;
    for (int lines = 0; at < o.said.size() && lines < 12; lines++) {
        size_t end = o.said.find('\n', at);
        tap_note("%s", o.said.substr(at, end - at).c_str());
        at = end == std::string::npos ? o.said.size() : end + 1;
    }
}

/* The child ends well, and no complaint was made */
static inline void clean(const char *claim, const std::string &settings, const std::function<void()> &body)
{
    Outcome o = in_child(settings, body);
    bool quiet = o.said.find("refused") == std::string::npos && o.said.find("FATAL") == std::string::npos;
    if (!tap_ok(o.ended_well && quiet, "%s", claim)) show(o);
}

/* The child ends well, having been told `text` on the way */
static inline void told(const char *claim, const std::string &settings, const char *text,
                        const std::function<void()> &body)
{
    Outcome o = in_child(settings, body);
    if (!tap_ok(o.ended_well && o.said.find(text) != std::string::npos, "%s", claim)) show(o);
}

/* The child is ended by the simulator (or a sanitizer), with one of two texts */
static inline void caught(const char *claim, const std::string &settings, const char *text,
                          const std::function<void()> &body, const char *or_text = nullptr)
{
    Outcome o = in_child(settings, body);
    bool named =
        o.said.find(text) != std::string::npos || (or_text && o.said.find(or_text) != std::string::npos);
    if (!tap_ok(!o.ended_well && named, "%s", claim)) show(o);
}

static inline float *device_floats(size_t n)
{
    void *p;
    GOOD(cudaMalloc(&p, n * sizeof(float)));
    return (float *)p;
}

static inline float *pinned_floats(size_t n)
{
    void *p;
    GOOD(cudaHostAlloc(&p, n * sizeof(float), cudaHostAllocDefault));
    return (float *)p;
}

static inline cudaStream_t new_stream()
{
    cudaStream_t s;
    GOOD(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

static inline cudaEvent_t new_event()
{
    cudaEvent_t e;
    GOOD(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    return e;
}

/* Copies to fresh device memory and back, waiting */
static inline float *upload(const std::vector<float> &v)
{
    float *p = device_floats(v.size());
    GOOD(cudaMemcpy(p, v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice));
    return p;
}

static inline std::vector<float> download(const float *p, size_t n)
{
    std::vector<float> v(n);
    GOOD(cudaMemcpy(v.data(), p, n * sizeof(float), cudaMemcpyDeviceToHost));
    return v;
}
