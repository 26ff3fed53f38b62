/* cluster_rows.h - who owns a shard: the rows of pawl_node and pawl_shard, and the statements that
 * change them. Each is one round trip on a connection of the caller's, so that a node with many
 * shards uses the same ones.
 *
 * A node beats; a node whose lease has run out is declared dead in its own row before its shards
 * are claimed; a claim raises the epoch, which every commit checks. Safety of writes depends on the
 * epoch alone, never on a clock. */
#ifndef PAWL_STORE_POSTGRES_CLUSTER_ROWS_H
#define PAWL_STORE_POSTGRES_CLUSTER_ROWS_H

#include "link.h"
#include "store/store.h"

#define SHARDS_MAX       1024u
#define LEASE_MS         3000
#define LEASE_MS_MIN     500
#define LEASE_MS_MAX     600000
#define BEATS_OF_A_LEASE 6
#define PG_URL_MAX       4000
#define NODE_MAX         80

enum pg_node_state { NODE_UP = 1, NODE_LEAVING = 2, NODE_DEAD = 3 };

/* A shard's row, and what else a tip has. */
struct shard_row {
    bool is_there;
    int64_t epoch;
    str node;             /* its owner; data NULL: none */
    str address;          /* of that node; data NULL: it has none, or its row is gone */
    bool is_owner_live;   /* its lease holds */
    struct store_tip tip; /* but for `changes` */
};

/* A name for this process: HOST-PID/RANDOM. */
void node_name(struct env *env, char out[NODE_MAX]);

pawl_status node_register(struct pg_link *link, struct scope *scope, const char *node,
                          const char *address, const char *secret, int32_t ttl_ms);
/* *is_over: this incarnation was declared dead. */
pawl_status node_beat(struct pg_link *link, struct scope *scope, const char *node, bool *is_over);
/* Dead, if its lease has run out by the database's clock. *is_dead: it is, or its row is gone. */
pawl_status node_declare(struct pg_link *link, struct scope *scope, str node, bool *is_dead);
/* Is it certain that a live node's process has ended? Its port refuses connections, and none of its
 * sessions is there. One that was stopped, or cut off, refuses nothing: its lease is waited for. */
pawl_status node_is_gone(struct pg_link *link, struct scope *scope, str node, str address,
                         bool *is_gone);
/* Dead, whatever its lease says: of one that is gone. */
pawl_status node_bury(struct pg_link *link, struct scope *scope, str node);
pawl_status node_leave(struct pg_link *link, struct scope *scope, const char *node);

pawl_status shard_read(struct pg_link *link, struct scope *scope, uint32_t shard,
                       struct shard_row *out);
/* For a writer that shares the store: begins a transaction that holds the row. */
pawl_status shard_lock(struct pg_link *link, struct scope *scope, uint32_t shard,
                       struct shard_row *out);
/* Epoch + 1 for `node`, if the epoch is still `seen`; else CONFLICT. It waits for a commit that is
 * under way, and after a while ends the sessions of `old` (an application_name, or NULL) that hold
 * the row. */
pawl_status shard_claim(struct pg_link *link, struct scope *scope, uint32_t shard, int64_t seen,
                        const char *node, const char *old, struct shard_row *out);
/* To no owner; a shard of another epoch is left alone. */
pawl_status shard_release(struct pg_link *link, struct scope *scope, uint32_t shard, int64_t epoch);
/* Is the row's owner dead, or gone? Then its row says so from now on. */
pawl_status shard_look_at_owner(struct pg_link *link, struct scope *scope,
                                const struct shard_row *row, bool *is_dead);
/* A shared writer, in its transaction: the dead owner is no more. */
pawl_status shard_take_from_dead(struct pg_link *link, struct scope *scope, struct shard_row *row,
                                 uint32_t shard);

#endif
