/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_run.cpp -- collectives and messages as machines that are asked again and again whether they have
 * ended. A collective goes by chunks: each rank offers its chunk, waits for all offers, takes what it needs
 * from them (sums in rank order, so that all ranks get the same bits), and offers the next when all have
 * taken. A message goes by letters from one rank to another, and its send ends when the receiver has taken
 * the last one, as a send that nobody receives hangs on a GPU. Parts of a group that are messages go on side
 * by side, those to one peer in order; collectives in turn. Ranks whose calls do not fit together end with
 * both calls named.
 */
#include "nccl.hpp"
#include <algorithm>
#include <ctime>

namespace sim {

static const char *const action_names[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather",
                                           "ncclBroadcast", "ncclReduce",        "ncclSend",
                                           "ncclRecv"};

static double now()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- collectives */

/* Elements that the chunks run over */
static int64_t elements_of(const Comm *c, const Part &p)
{
    return p.action == Action::reduce_scatter ? p.count * c->ranks : p.count;
}

static void check_offers(Comm *c, const Part &p)
{
    for (int q = 0; q < c->ranks; q++) {
        const Offer &o = c->segment->offer[q];
        if (o.action == (int)p.action && o.type == (int)p.type && o.op == (int)p.op && o.root == p.peer &&
            o.count == p.count)
            continue;
        die("FATAL",
            "NCCL: the ranks' calls do not fit: rank %d is in %s of %lld elements (type %d, op %d, root %d), "
            "rank %d in %s of %lld (%d, %d, %d)",
            c->rank, action_names[(int)p.action], (long long)p.count, (int)p.type, (int)p.op, p.peer, q,
            action_names[o.action], (long long)o.count, o.type, o.op, o.root);
    }
}

static double combine(ncclRedOp_t op, double a, double b)
{
    switch (op) {
    case ncclProd:
        return a * b;
    case ncclMax:
        return std::isnan(a) || a > b ? a : b;
    case ncclMin:
        return std::isnan(a) || a < b ? a : b;
    default:
        return a + b; /* sum, average */
    }
}

static double reduced(Comm *c, const Part &p, int64_t i)
{
    double v = load(p.type, c->segment->offer[0].data, (size_t)i);
    for (int q = 1; q < c->ranks; q++)
        v = combine(p.op, v, load(p.type, c->segment->offer[q].data, (size_t)i));
    return p.op == ncclAvg ? v / c->ranks : v;
}

/* Takes elements [first, first + n) of the collective from the offers */
static void take(Comm *c, const Part &p, int64_t first, int64_t n)
{
    size_t item = size_of(p.type);
    char *out = (char *)p.out;
    int64_t shift = p.action == Action::reduce_scatter ? c->rank * p.count : 0;
    if (p.action == Action::all_gather) {
        for (int q = 0; q < c->ranks; q++)
            memcpy(out + (size_t)(q * p.count + first) * item, c->segment->offer[q].data, (size_t)n * item);
    } else if (p.action == Action::broadcast) {
        memcpy(out + (size_t)first * item, c->segment->offer[p.peer].data, (size_t)n * item);
    } else if (p.action != Action::reduce || p.peer == c->rank) {
        for (int64_t i = 0; i < n; i++)
            if (first + i >= shift && first + i - shift < p.count)
                store(p.type, out, (size_t)(first + i - shift), reduced(c, p, i));
    }
}

struct Collective {
    Part part;
    int64_t first = 0; /* of the chunk under way */
    bool offered = false;

    bool step(Comm *c) /* whether there was something to do */
    {
        Offer &mine = c->segment->offer[c->rank];
        size_t item = size_of(part.type);
        int64_t n = std::min((int64_t)(chunk_bytes / item), elements_of(c, part) - first);
        for (int q = 0; q < c->ranks; q++) {
            const Offer &o = c->segment->offer[q];
            if (offered ? o.wrote <= c->chunk : o.read < c->chunk) return false;
        }
        if (!offered) {
            mine.action = (int)part.action;
            mine.type = (int)part.type;
            mine.op = (int)part.op;
            mine.root = part.peer;
            mine.count = part.count;
            if (part.action != Action::broadcast || part.peer == c->rank)
                memcpy(mine.data, (const char *)part.in + (size_t)first * item, (size_t)n * item);
            mine.wrote = c->chunk + 1;
            offered = true;
            return true;
        }
        check_offers(c, part);
        take(c, part, first, n);
        mine.read = ++c->chunk;
        offered = false;
        first += n;
        return true;
    }

    bool ended(const Comm *c) const { return !offered && first >= elements_of(c, part); }
};

/* --- messages */

struct Message {
    Part part;
    size_t done = 0;
    bool waiting = false; /* a letter is under way */

    size_t bytes() const { return (size_t)part.count * size_of(part.type); }

    bool ended() const { return !waiting && done >= bytes(); }

    bool step(Comm *c)
    {
        bool send = part.action == Action::send;
        Letter &l =
            c->segment->letter[send ? c->rank * c->ranks + part.peer : part.peer * c->ranks + c->rank];
        size_t n = std::min(letter_bytes, bytes() - done);
        if (send && waiting) {
            if (l.read != l.wrote) return false;
            waiting = false;
            done += n;
        } else if (send) {
            if (l.read != l.wrote) return false;
            memcpy(l.data, (const char *)part.in + done, n);
            l.bytes = (int64_t)bytes();
            l.wrote++;
            waiting = true;
        } else {
            if (l.wrote == l.read) return false;
            if (l.bytes != (int64_t)bytes())
                die("FATAL", "NCCL: rank %d sends %lld bytes and rank %d receives %zu", part.peer,
                    (long long)l.bytes, c->rank, bytes());
            memcpy((char *)part.out + done, l.data, n);
            done += n;
            l.read++;
        }
        return true;
    }
};

/* --- an operation */

struct Operation {
    Comm *comm;
    uint64_t ticket;
    std::vector<Collective> collectives;
    std::vector<Message> messages;
    double since = -1; /* nothing moved since then */

    /* The first unfinished message of each direction and peer */
    bool move_messages()
    {
        bool moved = false;
        for (size_t i = 0; i < messages.size(); i++) {
            bool first = !messages[i].ended();
            for (size_t j = 0; j < i && first; j++)
                first = messages[j].ended() || messages[j].part.action != messages[i].part.action ||
                        messages[j].part.peer != messages[i].part.peer;
            while (first && !messages[i].ended() && messages[i].step(comm)) moved = true;
        }
        return moved;
    }

    bool move_collectives()
    {
        bool moved = false;
        while (!collectives.empty()) {
            if (collectives.front().ended(comm))
                collectives.erase(collectives.begin());
            else if (!collectives.front().step(comm))
                break;
            moved = true;
        }
        return moved;
    }

    bool ended() const
    {
        return collectives.empty() &&
               std::all_of(messages.begin(), messages.end(), [](const Message &m) { return m.ended(); });
    }

    std::string missing() const
    {
        std::string list;
        for (int q = 0; q < comm->ranks && !collectives.empty(); q++)
            if (comm->segment->offer[q].wrote <= comm->chunk) list += " " + std::to_string(q);
        for (auto &m : messages)
            if (!m.ended()) list += " " + std::to_string(m.part.peer);
        return list;
    }

    void watch()
    {
        if (since < 0) since = now();
        if (comm->async == ncclSuccess && now() - since > 0.5 && peer_lost(comm))
            comm->async = ncclRemoteError;
        if (now() - since > settings().timeout)
            die("FATAL", "NCCL: rank %d waits in operation %llu of its communicator for rank(s)%s",
                comm->rank, (unsigned long long)ticket, missing().c_str());
    }

    bool poll()
    {
        if (comm->aborted || comm->segment->aborted) {
            if (!comm->aborted) comm->async = ncclRemoteError;
            comm->serving = std::max(comm->serving, ticket + 1);
            return true;
        }
        if (comm->serving != ticket) {
            watch();
            return false;
        }
        bool moved = false;
        while (move_messages() || move_collectives()) moved = true;
        if (moved) since = -1;
        if (!ended()) {
            watch();
            return false;
        }
        comm->serving++;
        return true;
    }
};

Poll begin(Comm *c, const std::vector<Part> &parts)
{
    auto operation = std::make_shared<Operation>();
    operation->comm = c;
    operation->ticket = c->tickets++;
    for (auto &p : parts) {
        if (p.action == Action::send || p.action == Action::receive) {
            if (p.count > 0) operation->messages.push_back({p});
        } else {
            operation->collectives.push_back({p});
        }
    }
    return [operation] { return operation->poll(); };
}

} // namespace sim
