/* membership.h - the nodes of a store that several processes serve: who should own which shard,
 * when a lease may be trusted, what a clock is off by. Pure: every node comes to the same answer
 * from the same rows. docs/internals/cluster.md has the rules by number. */
#ifndef PAWL_MODEL_MEMBERSHIP_H
#define PAWL_MODEL_MEMBERSHIP_H

#include "base/str.h"

#define NODES_MAX 64u /* that are looked at */

#define CLAIM_LATE_MS  2000  /* a shard without an owner is left to its heir for so long */
#define CALM_LEASES    3     /* nothing is handed over while nodes come and go */
#define SKEW_WARN_MS   250   /* between a node's clock and the database's */
#define BEATS_OF_A_TTL 6
#define SHARD_NO_NODE  UINT32_MAX

/* ---- Leases ---- */

/* Rule 2: what a node remembers is true until 0.8 of its lease after it *sent* the last beat
 * that was answered, by a clock that cannot be set. */
bool lease_holds(int64_t sent_ms, int64_t now_ms, int32_t ttl_ms);

/* ---- Who should own what ---- */

struct node_member {
    str node;
    bool may_own; /* it is up, beats, and is not leaving */
};

/* The heir of each shard: its owner, as long as that has no more than its part (the shards
 * divided by the nodes, rounded up); of the others the node of the highest weight that still has
 * room. `owners` and `out`: a place in `members`, or SHARD_NO_NODE. `members` are in order of
 * their names. Without `spread` one node has them all: the owner of the first one that has an
 * owner. */
void shards_assign(const struct node_member *members, uint32_t member_count, const uint32_t *owners,
                   bool spread, uint32_t *out, uint32_t shards);
/* Rendezvous: each pair of a node and a shard has its weight. */
uint64_t shard_weight(str node, uint32_t shard);

/* ---- What to do about a shard ---- */

enum shard_act {
    SHARD_LEAVE,   /* nothing */
    SHARD_DECLARE, /* its owner's lease has run out: declare that dead, and look again */
    SHARD_CLAIM,
    SHARD_HAND_OVER
};
struct shard_look {
    bool has_owner, is_mine, is_owner_live, am_heir, is_leaving; /* is_leaving: this node is */
    int64_t free_ms; /* so long it has been seen without a live owner */
    int64_t calm_ms, calm_after_ms; /* so long the nodes have been the same; and have to be */
};
enum shard_act shard_decide(const struct shard_look *look);

/* ---- Clocks ---- */

/* What this node's wall clock has to be moved by to show the database's time, from one question
 * that was sent and answered at these times; false: the answer took too long to say. */
/* How far a node's wall clock is ahead of its machine's from now on. It was `by_ms`; the last beat
 * was answered after `answer_ms`, and found it `left_ms` behind the database's. Small differences
 * go slowly, so that nothing sees a jump. */
int64_t clock_correction(int64_t by_ms, int64_t left_ms, int64_t answer_ms, bool is_first);
bool clock_difference(int64_t sent_ms, int64_t answered_ms, int64_t database_ms, int64_t *out);

#endif
