/* station_int.h - private to station*.c, forward.c and signed.c: what a node knows. */
#ifndef PAWL_API_STATION_INT_H
#define PAWL_API_STATION_INT_H

#include "api/station.h"
#include "base/guard.h"
#include "model/membership.h"
#include "peer/peer.h"

/* What the last beat saw, for as long as someone looks at it. */
struct station_map {
    struct scope scope;
    struct cluster_view view;
    uint32_t users;
};

struct station_shard {
    pawl *p;
    struct station *node;
    _Atomic bool is_ours; /* as is_open, for those who hold another lock */
    bool is_open;    /* owned, and ready for calls; the rest is the keeper's */
    uint32_t users;  /* calls that rely on it */
    bool is_refused; /* it went backwards: left alone */
    int64_t free_ms; /* since when it has no live owner, by the tick; 0: it has */
    uint64_t claims, losses;
};

#define SENDERS_MAX  64u
#define WINDOW_WORDS 64u /* of 64 numbers each */
/* Which numbers of a sender have been seen. */
struct sender {
    char node[NODE_NAME_MAX];
    uint64_t highest, seen[WINDOW_WORDS];
};

struct station {
    pawl *home;
    struct env *env;
    struct cluster_me me;
    char address[NODE_ADDRESS_MAX], secret[128];
    uint8_t key[CLUSTER_SECRET_SIZE];
    struct peers *peers;
    int32_t ttl_ms;

    pthread_mutex_t store_lock; /* of the verbs about the node */
    struct guard lock;          /* of what follows */
    pthread_cond_t changed;
    uint64_t change; /* grows whenever it is signalled */
    struct station_map *map;
    char name[NODE_NAME_MAX];
    bool is_over; /* declared dead: the keeper gives all up and joins again */
    bool is_leaving, is_suspicious;
    bool is_stopping;
    uint64_t calm_hash;
    int64_t calm_since_ms;
    int64_t skew_ms;       /* of the machine's clock to the database's */
    int64_t correction_ms; /* what this node adds to its machine's clock */
    bool is_corrected;     /* it was measured once */
    bool skew_was_told, is_away;
    uint64_t beats, failed_beats, forwarded, repeated;
    _Atomic int64_t sent_ms;  /* when the last beat that was answered was sent; 0: none */
    _Atomic uint64_t counter; /* of signed requests */
    struct sender senders[SENDERS_MAX];
    uint32_t sender_count;

    int beat_fd; /* an eventfd: beat now */
    pthread_t beater, keeper, nudger;
    bool has_beater, has_keeper, has_nudger;

    /* station_nudge.c */
    int nudge_fd;              /* an eventfd: there is news */
    _Atomic unsigned news;     /* that others are to be told */
    _Atomic unsigned wanted;   /* by any of them */
    _Atomic int streams;       /* that are open here */
    _Atomic int64_t roamed_ms; /* when a claim last waited here, by the tick */
    pthread_mutex_t roam_lock;
    struct roaming *roaming; /* claims that wait here for steps of other nodes */
    uint32_t count;
    struct station_shard shards[];
};

struct station_shard *station_shard_of(pawl *p);
struct station_map *station_map_use(struct station *node); /* NULL: none yet */
void station_map_leave(struct station *node, struct station_map *map);
void station_changed(struct station *node); /* under its lock */
int64_t station_tick_ms(const struct station *node);

/* station_beat.c */
void station_beat(struct station *node);
void *station_beat_thread(void *node);
/* station_keep.c: one look at every shard; true: something was done. */
bool station_keep(struct station *node);
void *station_keep_thread(void *node);

/* station_nudge.c: what this node sends to others before their next beat. */
enum station_news {
    NEWS_OWNERS = 1u,  /* a shard has another owner, or none */
    NEWS_STEPS = 2u,   /* steps wait that no claim here waits for */
    NEWS_COMMITS = 4u, /* the log has grown */
};
void station_tell(struct station *node, unsigned news); /* any lock may be held */
bool station_nudge_start(struct station *node);
void station_nudge_stop(struct station *node); /* the stopping flag is set */
void station_note_wants(struct station *node, const struct cluster_view *view);
const char *station_wants(struct station *node); /* NULL: nothing */

/* roaming.c: claims that wait here look at the other nodes. */
void roaming_wake_all(struct station *node);

#endif
