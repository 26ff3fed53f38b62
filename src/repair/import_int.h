/* import_int.h - private to the import: what was read, and a commit made of it. */
#ifndef PAWL_REPAIR_IMPORT_INT_H
#define PAWL_REPAIR_IMPORT_INT_H

#include "base/map.h"
#include "base/node.h"
#include "env/env.h"
#include "evidence/evidence.h"
#include "repair/import.h"
#include "repair/owned.h"
#include "store/store.h"

/* In rows and records that were read, the id of a value is its place here + 1. */
struct carried_value {
    uint8_t commitment[SHA_SIZE], salt[SALT_SIZE];
    str bytes; /* data NULL: erased */
    bool interned;
    bool is_named; /* an `erased` line names it */
};

struct carried_definition {
    struct definition_row row; /* row.id: in the store that is built for */
    struct definition *loaded;
    bool is_there;
};

struct carried_instance {
    struct instance_row row;
    char id[ID_SIZE + 1], parent[ID_SIZE + 1];
    uint32_t definition;               /* its place */
    uint64_t record_count, said_count; /* read; said by the file to be there */
    uint8_t last_hash[SHA_SIZE];
    bool is_there;
    bool is_taken; /* into the shard that is built for */
    bool is_erased; /* an `erased` line says so */
    /* While a commit is made: */
    uint64_t pos, seq, skip;
    uint64_t amended; /* the position of its last amend; 0: none */
    str redrives;     /* the id of the instance that it runs again; data NULL: none ... */
    uint64_t started; /* ... and the position of the start that says so */
    uint32_t state;
    uint8_t hash[SHA_SIZE];
};

struct carried_record {
    struct record record;
    uint32_t instance; /* its place */
    uint64_t position; /* in the store that it comes from: records keep that order */
};

/* A record whose body was erased in part, by its hash, as an `erased` line names it. */
struct carried_body {
    uint8_t hash[SHA_SIZE], now[SHA_SIZE]; /* now: what it hashes to; while a commit is made */
    bool is_used;
};

/* A timer that is armed, and due by the wall clock `by_ms` later than its entry says. */
struct carried_moved {
    uint32_t instance; /* its place */
    uint32_t ordinal;
    str name;
    int64_t by_ms;
};

struct import {
    struct scope *scope;
    struct env *env;
    struct owned *owned; /* where it goes */
    struct sha *sha;
    struct carried_value *values;
    struct carried_definition *definitions;
    struct carried_instance *instances;
    struct carried_record *records;
    struct carried_moved *moved;
    struct carried_body *bodies;
    uint32_t body_count, body_capacity;
    struct map by_body; /* the first 8 bytes of a hash -> its place */
    uint32_t moved_count, moved_capacity;
    uint32_t value_count, value_capacity, definition_count, definition_capacity;
    uint32_t instance_count, instance_capacity, record_count, record_capacity;
    struct map by_commitment; /* the first 8 bytes -> place of a value */
    struct map by_number;     /* of an instance -> its place */
    uint64_t line;
    int64_t not_before_ms; /* of the store's clock */
};

/* A commit in the making, for one store. */
struct building {
    struct import *import;
    struct store *store;
    const struct store_tip *tip;
    struct scope *scope;
    struct record *records;
    struct value *values;
    uint64_t *value_ids;   /* by place; 0: nothing that is built names it yet */
    uint32_t erased_count; /* of the values that were built */
    struct definition_row *definitions;
    struct instance_row *instances;
    struct head_row *heads;
    struct live_change *live;
    struct key_row *keys;
    struct standing_change *standing; /* of flows that were amended */
    uint32_t record_count, value_count, definition_count, instance_count, head_count, live_count,
        key_count, standing_count;
    uint32_t live_capacity;
    int64_t now_ms;     /* of this store */
    int64_t offset_ms;  /* how far its clock is ahead of the wall clock */
    uint64_t store_pos; /* the store's own chain */
    uint8_t store_hash[SHA_SIZE];
};

/* import_live.c: what this record, the instance's last, changes in live rows. */
pawl_status import_live(struct building *b, struct carried_instance *instance,
                        const struct record *record);

/* import_moved.c: timers whose due time has moved since they were armed. */
void import_sort_moved(struct import *import);
int64_t import_moved_ms(const struct building *b, const struct carried_instance *instance,
                        const struct live_change *timer);
void import_print_moved(const struct building *b, struct buf *out);

/* import_own.c: records of the store's own chain. */
struct record *import_next_record(struct building *b); /* only its position is set */
pawl_status import_add_define(struct building *b, const struct definition_row *row);
pawl_status import_add_begin(struct building *b, uint32_t count);
pawl_status import_add_clock(struct building *b);
pawl_status import_add_end(struct building *b);
pawl_status import_add_erase(struct building *b);

/* import_build.c: the commit that puts what is taken into a store that ends at `tip`. INVALID_
 * REQUEST: a hash does not check. The texts are the import's; rows live in `scope`. */
pawl_status import_build(struct import *import, struct store *store, const struct store_tip *tip,
                         struct scope *scope, struct commit *out);

#endif
