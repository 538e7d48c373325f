/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.cpp -- races, by vector clocks. A clock says of each stream how many of its operations are known to
 * come before. An operation's clock is that of its stream: everything earlier there, all that events and the
 * default stream made it wait for, and all that the host had waited for. Two operations that touch a common
 * byte, one of them writing, race if neither is in the other's clock. The check happens when an operation is
 * queued and so depends on no schedule: a missing wait is found even when the values come out right.
 * The host is one participant: its threads are taken to synchronise among each other, so that a race between
 * two host threads' streams is missed after either has waited. (Lamport, Time, clocks, and the ordering of
 * events in a distributed system, 1978; Mattern, Virtual time and global states of distributed systems, 1988)
 */
#include "sim.hpp"

namespace sim {

Clock &host_clock = *new Clock;

void join(Clock &into, const Clock &from)
{
    if (into.size() < from.size()) into.resize(from.size());
    for (size_t i = 0; i < from.size(); i++)
        if (into[i] < from[i]) into[i] = from[i];
}

bool seen(const Clock &clock, int stream, uint64_t seq)
{
    return stream < (int)clock.size() && seq <= clock[(size_t)stream];
}

void check_race(int stream, uint64_t seq, const Clock &clock, const std::string &what, const Touch &t)
{
    Block *b = t.bytes ? find_block(t.p) : nullptr;
    if (!b) return;
    check_lent(what, t);
    std::vector<Access> kept;
    for (auto &a : b->history) {
        if (seen(host_clock, a.stream, a.seq)) continue; /* ended, as all that comes will know */
        bool same = a.stream == stream && a.seq == seq;
        if (!same && (a.touch.write || t.write) && !seen(clock, a.stream, a.seq) && overlap(a.touch, t))
            die("RACE",
                "'%s' on stream %d and '%s' on stream %d touch the same bytes of allocation #%d, and nothing "
                "orders them: an event wait or a "
                "synchronisation is missing",
                what.c_str(), stream, a.what.c_str(), a.stream, b->id);
        bool covered = a.stream == stream && !same && (t.write || !a.touch.write) && t.box.empty() &&
                       a.touch.p >= t.p &&
                       (const char *)a.touch.p + a.touch.bytes <= (const char *)t.p + t.bytes;
        if (!covered || same)
            kept.push_back(std::move(a)); /* what races with a covered access races with this one too */
    }
    kept.push_back({t, stream, seq, what});
    b->history = std::move(kept);
}

} // namespace sim
