/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lend.cpp -- device memory in the hands of a library of the host's: an MPI that is given device addresses
 * reads and writes by itself, between a call that begins a message and the one that says it is over. To the
 * race check it is the host: what it takes must have been waited for, and until it is given back nothing may
 * be queued that touches it in a way that would matter.
 */
#include "sim.hpp"
#include <dlfcn.h>

namespace sim {

struct Loan {
    Touch touch;
    std::string who;
};

static std::vector<Loan> &loans()
{
    static auto *list = new std::vector<Loan>;
    return *list;
}

void check_lent(const std::string &what, const Touch &t)
{
    for (auto &l : loans())
        if ((l.touch.write || t.write) && overlap(l.touch, t))
            die("RACE", "'%s' is queued on bytes of allocation #%d that '%s' %s and has not given back", what.c_str(),
                find_block(l.touch.p)->id, l.who.c_str(), l.touch.write ? "writes" : "reads");
}

/* Every operation on the same bytes must be one that the host knows to have ended */
static void check_waited(const Block &b, const Touch &t, const char *who)
{
    for (auto &a : b.history)
        if ((a.touch.write || t.write) && !seen(host_clock, a.stream, a.seq) && overlap(a.touch, t))
            die("RACE",
                "'%s' %s bytes of allocation #%d that '%s' on stream %d touches, and the host has not waited "
                "for it",
                who, t.write ? "writes" : "reads", b.id, a.what.c_str(), a.stream);
}

static void *find(const void *p, size_t bytes)
{
    if (!is_device(p)) return nullptr;
    void *at = translate(p, bytes, false);
    if (!at)
        die("FATAL", "a library of the host's was given a device address: %s", why_not(p, bytes).c_str());
    return at;
}

void attach_borrower()
{
    static const cudasim_lender lender = {cudasim_lend, cudasim_give_back, cudasim_find};
    void *found = dlsym(RTLD_DEFAULT, "cudasim_borrower");
    if (found) ((void (*)(const cudasim_lender *))found)(&lender);
}

} // namespace sim

using namespace sim;

extern "C" void *cudasim_find(const void *p, size_t bytes)
{
    Lock lock;
    return find(p, bytes);
}

extern "C" void *cudasim_lend(const void *p, size_t bytes, int write, const char *who)
{
    Lock lock;
    void *at = find(p, bytes);
    if (!at || bytes == 0) return at;
    Touch t = span(p, bytes, write != 0);
    check_waited(*find_block(p), t, who);
    check_lent(who, t);
    loans().push_back({t, who});
    note("lend   %zu bytes to %s", bytes, who);
    return at;
}

extern "C" void cudasim_give_back(const void *p, const char *who)
{
    Lock lock;
    auto &list = loans();
    for (size_t i = 0; i < list.size(); i++)
        if (list[i].touch.p == p && list[i].who == who) {
            list.erase(list.begin() + (ptrdiff_t)i);
            return;
        }
}
