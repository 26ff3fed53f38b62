/* stores_int.h - private to api: the list of stores beside the first. */
#ifndef PAWL_API_STORES_INT_H
#define PAWL_API_STORES_INT_H

#include "api/api.h"
#include "api/stores.h"
#include "base/guard.h"

#define STORES_OPEN_MAX    512u  /* stores that are open at once */
#define STORE_REST_MS      30000 /* unused for so long, it may be closed */
#define STORE_ADDRESS_SIZE 512
#define STORE_SECRET_SIZE  128
#define STORE_NEVER        INT64_MAX

/* The thread that set is_busy may change `p`, while it holds the lock of the list. */
struct member {
    struct member *next;
    pawl *p;        /* NULL: closed */
    bool is_busy;   /* a thread opens or closes it: wait for `changed` */
    bool is_pinned; /* handed out for good, or nowhere but in memory */
    uint32_t users;
    int64_t left_at_ms; /* when the last user left; monotonic, as the next */
    int64_t due_at_ms;  /* closed: when it has to be opened */
    struct clock_mark clock; /* of the engine that was closed last */
    const pawl_options *options;
    char name[STORE_NAME_MAX + 1];
    char address[STORE_ADDRESS_SIZE];
};

struct stores {
    struct guard lock;
    pthread_cond_t changed;
    struct member *first;
    uint32_t open_count;
    int64_t clock_offset_ms; /* the first store's clock minus the wall clock, when last read */
    pawl_options options; /* of the first */
    struct store_hooks hooks;
    char address[STORE_ADDRESS_SIZE];
    char secret[STORE_SECRET_SIZE]; /* "": none */
    size_t url_size;
    char url[];
};

static inline str stores_url(const struct stores *stores)
{
    return (str){ stores->url, stores->url_size };
}

int64_t stores_tick_ms(pawl *p);

/* ---- stores.c ---- */

struct member *member_find(const struct stores *stores, str name);
struct member *member_add(pawl *p, str name);                         /* NULL: no memory */
void member_wait(struct stores *stores, const struct member *member); /* while it is busy */
void member_set_free(struct stores *stores, struct member *member);
/* Open it if it is not; it is ours to use when this is OK. The lock is given up meanwhile. */
pawl_status member_use(pawl *p, struct scope *scope, struct member *member, bool must_exist);
/* Every store beside `p` that is open; none is closed meanwhile. Takes the lock. */
void stores_each_open(pawl *p, void (*visit)(void *context, pawl *p), void *context);
void member_log(void *context, pawl_log_level level, const char *event, const char *text);

/* ---- stores_tend.c ---- */

/* Close what was not used for so long. The lock is released meanwhile. */
void stores_close_resting(pawl *p, int64_t now_ms, int64_t rest_ms);

#endif
