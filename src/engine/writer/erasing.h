/* erasing.h - what is to be erased, gathered before it is written: erase_plan.c, erase.c. Private
 * to src/engine.
 *
 * An instance that has ended does not change, but for what is erased of it. So it is read without
 * the drain, a slice at a time, and the drain only writes. */
#ifndef PAWL_ENGINE_ERASING_H
#define PAWL_ENGINE_ERASING_H

#include "base/map.h"
#include "engine/keeping.h"

#define ERASE_SLICE     2048u             /* values and bodies of one commit */
#define ERASE_INSTANCES 256u              /* likewise */
#define ERASE_BYTES     ((size_t)8 << 20) /* of the bodies that it writes again */

/* An instance of a slice; with `is_done` nothing of it is left behind the slice. */
struct erase_target {
    uint64_t number;
    str id;
    bool is_done;
};

/* What one commit erases. Its texts are in `scope`. */
struct erase_slice {
    struct scope scope;
    struct value *values;
    struct redaction *bodies;
    uint8_t (
        *hashes)[2][SHA_SIZE]; /* of the bodies: the record's hash, and what it hashes to now */
    struct instance_row *cleared;
    struct erase_target *targets;
    uint32_t value_count, value_capacity, body_count, body_capacity, hash_capacity, cleared_count,
        cleared_capacity, target_count, target_capacity;
    struct map value_ids; /* each once */
    size_t bytes;
};

struct erasing {
    struct engine *engine;
    struct scope reading; /* emptied for each record; has the error of what failed */
    const struct erase_args *args;
    struct erased *out;
    struct sha *sha;
    struct erase_slice slice;
    struct map seen;   /* numbers of instances that were taken up */
    struct map gone;   /* those of which nothing is left, or will be behind the next slice */
    uint64_t *waiting; /* children that are still to be erased */
    uint32_t waiting_count, waiting_capacity;
    uint64_t oldest_pos; /* of the creations, to look for what the store itself kept */
};

/* Gathers what one instance has, and asks erase_flush() for room when a slice is full. */
pawl_status erase_gather(struct erasing *erasing, uint64_t number);
/* What the store's own chain keeps of them: answers to keys, orders of alarms. */
pawl_status erase_gather_beside(struct erasing *erasing);
/* A value of which nothing but the commitment is to stay; one without bytes is passed over. */
pawl_status erase_add_value(struct erasing *erasing, uint64_t id);
bool erase_is_full(const struct erase_slice *slice);
pawl_status erase_flush(struct erasing *erasing);

#endif
