/* heads.h - where each instance stands, in memory (heads.c). Private to src/engine. */
#ifndef PAWL_ENGINE_HEADS_H
#define PAWL_ENGINE_HEADS_H

#include "base/heap.h"
#include "model/record.h"

#define SKIP_UNKNOWN UINT64_MAX
#define HEAD_DIRTY   1u  /* its row lags behind */
#define HEAD_RAW     2u  /* read from the tail: `state` is the transition that led to it */
#define HEAD_FRESH   4u  /* RAW, and the last record is no entry: the state is the initial one */
#define HEAD_NOW     16u /* in a batch: its row is written with this commit, never later */
#define HEAD_PAUSED  32u /* it is held (pause.c) */
#define HEAD_CHILD   64u /* it has a parent, which may wait for its end (family.c) */
#define HEAD_TOLD    128u /* the machine that started it may want to know of its end */
#define HEAD_TEST    8u  /* a test instance: its timers never fire by themselves */

struct head {
    uint64_t instance, pos;
    uint64_t skip; /* position of the last entry whose seq is a multiple of 64; 0: none */
    uint32_t definition, seq;
    uint8_t hash[SHA_SIZE];
    uint8_t random[ID_RANDOM_SIZE];
    uint16_t state;
    uint8_t flags;
    uint8_t recent; /* for eviction: touched since the hand passed */
};

struct heads {
    bool is_whole; /* every head whose row lags is here: else rows may not be trusted */
    const struct heap *heap;
    struct head **chunks; /* of HEAD_CHUNK heads */
    uint32_t chunk_count, count, hand;
    uint32_t *slots; /* index + 1; 0: empty */
    uint32_t slot_count;
    uint32_t *free_list; /* places that were released */
    uint32_t free_count, free_capacity;
    uint32_t dirty_capacity; /* of the three below */
    uint64_t *dirty;         /* instances whose rows lag, since the present cycle began */
    uint32_t dirty_count;
    uint64_t *cycle; /* those being swept now, in order of number */
    uint32_t cycle_count, cycle_next;
    uint64_t cycle_pos; /* the log's end when the cycle began */
    uint64_t *scratch;  /* for sorting */
};

uint8_t head_flags(const struct instance_row *fixed, bool is_paused);
/* A head from its row and what creation fixed. Its last record has the hash. */
struct head head_of_rows(const struct head_row *row, const struct instance_row *fixed);
struct head_row row_of_head(const struct head *head);

bool heads_init(struct heads *heads, const struct heap *heap);
void heads_fini(struct heads *heads);
void heads_clear(struct heads *heads);
struct head *heads_find(struct heads *heads, uint64_t instance);
/* A hint that these will be asked for next; at most HEADS_EXPECTED at a time is sensible. */
#define HEADS_EXPECTED 32u
void heads_expect(const struct heads *heads, const uint64_t *instances, uint32_t count);
struct head *heads_add(struct heads *heads,
                       const struct head *head);               /* or replaces; NULL: no memory */
/* Adds a head that was read, if rows may be trusted, it is unknown and there is room for it. */
void heads_learn(struct heads *heads, const struct head *head);
/* It need not be remembered; one whose row lags stays nevertheless. */
void heads_release(struct heads *heads, uint64_t instance);
/* There is no such instance any more. There is room for its place. */
void heads_leave(struct heads *heads, uint64_t instance);
bool heads_mark_dirty(struct heads *heads, struct head *head); /* false: no memory */
uint32_t heads_lag(const struct heads *heads);
/* Up to `limit` rows to write next, in order; their marks are taken off. When a cycle ends,
 * *flushed is the position up to which rows are right, else 0. Copies: RAW ones are made whole by
 * the caller. */
uint32_t heads_slice(struct heads *heads, uint32_t limit, uint64_t end_pos, struct head *out,
                     uint64_t *flushed);

#endif
