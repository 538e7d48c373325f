/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trap.cpp -- a fault on an address of ours is explained before the process dies of it: which allocation, who
 * touched it. Other faults go to whoever handled them before (a sanitizer, or the default).
 */
#include "sim.hpp"
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace sim {

const char *running_kernel;
static struct sigaction before;

/* Not safe in a signal handler by the letter; the process is about to end, and the fault is in code that is
 * not ours */
static void trap(int, siginfo_t *info, void *)
{
    std::string why = explain_address((const char *)info->si_addr);
    if (!why.empty()) {
        why = "cudasim: FATAL: " + why + "\n";
        if (write(STDERR_FILENO, why.data(), why.size()) < 0) _exit(2);
    }
    sigaction(SIGSEGV, &before, nullptr); /* the access is tried again, and dies */
}

void install_trap()
{
    static bool installed;
    if (installed) return;
    installed = true;
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = trap;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before);
}

} // namespace sim
