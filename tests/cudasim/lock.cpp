/* SPDX-License-Identifier: Apache-2.0 */
/* lock.cpp -- the one lock of the simulator, taken by each call of the program, and given up while something
 * waits for others. */
#include "sim.hpp"
#include <time.h>

namespace sim {

static std::mutex &mutex()
{
    static std::mutex *m = new std::mutex; /* never destroyed: threads may outlive the static objects */
    return *m;
}

Lock::Lock()
{
    mutex().lock();
}

Lock::~Lock()
{
    mutex().unlock();
}

void unlocked(const std::function<void()> &body)
{
    mutex().unlock();
    body();
    mutex().lock();
}

void pause()
{
    unlocked([] {
        struct timespec nap = {0, 50000};
        nanosleep(&nap, nullptr);
    });
}

} // namespace sim
