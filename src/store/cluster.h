/* cluster.h - a store whose shards several nodes own in turn: who is there, who owns what, and the
 * verbs that change it. docs/internals/cluster.md has the rules by number.
 *
 * A node opens every shard as a member (store_options.member): it reads, and writes nothing until
 * it has claimed the shard. Between two nodes nothing but the epoch in the shard's row decides who
 * may write; beats and leases decide when another may claim.
 *
 * All verbs but claim and release are about the node, and take the home shard's store. None may
 * run beside another of the same node. */
#ifndef PAWL_STORE_CLUSTER_H
#define PAWL_STORE_CLUSTER_H

#include "store/store.h"

#define CLUSTER_SECRET_SIZE 32

struct cluster_node {
    str node, address, version; /* address data NULL: it has none */
    bool is_live;               /* its lease holds, by the database's clock */
    bool is_leaving;
    bool is_dead;   /* declared */
    int64_t age_ms; /* of its last beat */
    int32_t ttl_ms;
    uint64_t seen_home; /* position of the home shard that it has seen */
    str wants;          /* what it wants to be told at once: letters; data NULL: nothing */
};
struct cluster_shard {
    str node; /* its owner; data NULL: none */
    int64_t epoch;
    uint64_t pos, last_instance;
};
/* What a beat saw, in one moment; in the scope. */
struct cluster_view {
    bool is_over;               /* this incarnation was declared dead: nothing else is filled in */
    struct cluster_node *nodes; /* by name */
    uint32_t node_count;
    struct cluster_shard *shards; /* by number */
    uint32_t shard_count;
    int64_t now_ms; /* the database's wall clock */
};

struct cluster_me {
    const char *address, *secret; /* NULL: none */
    bool is_leaving;
    uint64_t seen_home;
    const char *wants; /* NULL: nothing */
};

/* Is the store one that nodes can share? */
bool cluster_is_possible(const struct store *home);
/* A name, for this incarnation; a node that was declared dead joins again under another one. */
pawl_status cluster_join(struct store *home, struct scope *scope, const struct cluster_me *me);
const char *cluster_name(const struct store *home);
int32_t cluster_ttl_ms(const struct store *home);
/* The secret that nodes sign with: who can read the database knows it. */
pawl_status cluster_secret(struct store *home, struct scope *scope,
                           uint8_t out[CLUSTER_SECRET_SIZE]);
pawl_status cluster_beat(struct store *home, struct scope *scope, const struct cluster_me *me,
                         struct cluster_view *out);
/* Dead, if its lease has run out, or its process is gone for certain. *is_dead: it is. */
pawl_status cluster_declare(struct store *home, struct scope *scope, str node, str address,
                            bool *is_dead);
/* Waits for a commit that is under way, and keeps out what has not begun. CONFLICT: another has
 * claimed it since it was `seen`. STORAGE_FAILURE, with "went backwards": the log lacks what this
 * node has acknowledged; it is not owned then. */
pawl_status cluster_claim(struct store *store, struct scope *scope,
                          const struct cluster_shard *seen);
/* The handle is a member's again, whatever comes out. `is_lost`: another has it already. */
pawl_status cluster_release(struct store *store, struct scope *scope, bool is_lost);
/* The node's row goes. */
void cluster_leave(struct store *home);

#endif
