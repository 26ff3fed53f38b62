/* pg_node.h - what the shards of one store share in one process: its name among the nodes, the
 * thread that keeps its lease, and the connections.
 *
 * However many shards there are, a process has at most NODE_LINKS connections that write,
 * NODE_LINKS that read and one that beats. It is made with the first shard that is opened, and ends
 * with the last one that is closed. */
#ifndef PAWL_STORE_POSTGRES_PG_NODE_H
#define PAWL_STORE_POSTGRES_PG_NODE_H

#include "cluster_rows.h"
#include <pthread.h>

#define NODE_LINKS 4u

struct waiting_commit;

/* Used by the thread that holds the lock. */
struct shared_link {
    pthread_mutex_t lock;
    struct pg_link link;
    pthread_mutex_t queue_lock; /* held for moments; of what follows */
    pthread_cond_t has_run;
    bool is_running;              /* a thread sends what waits */
    struct waiting_commit *queue; /* the oldest first: pg_train.c */
};
void shared_link_init(struct shared_link *shared);
void shared_link_fini(struct shared_link *shared); /* cuts the link off */

struct pg_node {
    const struct heap *heap;
    struct env *env; /* its own */
    struct scope kept;
    struct pg_url url;
    char name[NODE_MAX];
    const char *address;                  /* of an owner; NULL: none */
    uint32_t shards;                      /* that the store has; 0: not read yet */
    struct shared_link lanes[NODE_LINKS]; /* owners write */
    struct shared_link readers[NODE_LINKS];

    pthread_mutex_t lock; /* of what follows */
    uint32_t users;
    struct postgres_store *owners; /* each learns when the lease is over */
    struct pg_link beater;
    pthread_t beat_thread;
    bool is_beating;
    int stop_fd;         /* readable: the thread is to end */
    atomic_bool is_over; /* this incarnation was declared dead */
};

/* A new one, with one user. `rest` is the store's URL behind its scheme's colon. */
pawl_status pg_node_new(const struct store_options *options, struct scope *scope, str rest,
                        struct pg_node **out);
void pg_node_use(struct pg_node *node);
void pg_node_leave(struct pg_node *node); /* the last user's ends it */

/* A connection like those of the node. */
void pg_node_link(const struct pg_node *node, struct pg_link *link, int deadline_ms);
struct shared_link *pg_node_lane(struct pg_node *node, uint32_t shard);
struct shared_link *pg_node_reader(struct pg_node *node, uint32_t shard);

/* An owner of a shard: the first registers the node, and starts to beat. */
pawl_status pg_node_own(struct pg_node *node, struct pg_link *link, struct scope *scope,
                        const char *secret, struct postgres_store *store);
/* The last one's takes the node off the list. `link` may be cut off. */
void pg_node_disown(struct pg_node *node, struct pg_link *link, struct postgres_store *store);

#endif
