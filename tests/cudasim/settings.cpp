/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.cpp -- the simulator's settings, read from the environment at the first call, and its random
 * numbers. The first call also says, once for each process, that this is a simulation.
 */
#include "sim.hpp"
#include <cstdio>
#include <cstdlib>
#include <cudnn_version.h>
#include <nccl.h>
#include <unistd.h>

namespace sim {

static long long number(const char *name, long long otherwise)
{
    const char *value = getenv(name);
    char *end;
    if (!value || !*value) return otherwise;
    long long n = strtoll(value, &end, 10);
    if (*end) die("FATAL", "%s=%s is not a number", name, value);
    return n;
}

static std::vector<int> numbers(const char *name)
{
    std::vector<int> list;
    const char *at = getenv(name);
    char *end;
    for (; at && *at; at = end) {
        long n = strtol(at, &end, 10);
        if (end == at) break;
        list.push_back((int)n);
        while (*end == ' ' || *end == ',') end++;
    }
    return list;
}

static Settings read()
{
    Settings s;
    s.devices = (int)number("CUDASIM_DEVICES", 1);
    s.sm = (int)number("CUDASIM_SM", 80);
    s.images = numbers("CUDASIM_IMAGES");
    s.driver = (int)number("CUDASIM_DRIVER", CUDART_VERSION);
    s.cudnn = (int)number("CUDASIM_CUDNN", CUDNN_VERSION);
    s.nccl = (int)number("CUDASIM_NCCL", NCCL_VERSION_CODE);
    s.elements = number("CUDASIM_CUDNN_ELEMENTS", 2147483647);
    s.memory = (size_t)number("CUDASIM_MEMORY", 8LL << 30);
    s.lazy = !getenv("CUDASIM_SEED");
    s.seed = (uint64_t)number("CUDASIM_SEED", 0);
    s.strict = number("CUDASIM_STRICT", 0) != 0;
    s.verbose = number("CUDASIM_VERBOSE", 0) != 0;
    s.timeout = (double)number("CUDASIM_TIMEOUT", 60);
    if (s.sm != 70 && s.sm != 75 && s.sm != 80 && s.sm != 86 && s.sm != 89 && s.sm != 90)
        die("FATAL", "CUDASIM_SM=%d is none of 70, 75, 80, 86, 89, 90", s.sm);
    std::string order = s.lazy ? "operations run as late as they may"
                               : text("random order from seed %llu", (unsigned long long)s.seed);
    fprintf(stderr,
            "cudasim: %d simulated device(s) of sm_%d, %s; nothing measured here is a figure of a GPU\n",
            s.devices, s.sm, order.c_str());
    attach_borrower();
    return s;
}

const Settings &settings()
{
    static const Settings *s = new Settings(read()); /* never destroyed: a thread may outlive static objects */
    return *s;
}

uint64_t draw(uint64_t n)
{
    static auto *generator = new std::mt19937_64{settings().seed};
    return settings().lazy || n < 2 ? 0 : (*generator)() % n;
}

} // namespace sim
