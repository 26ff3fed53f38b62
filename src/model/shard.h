/* shard.h - a store that is several shards: what belongs to which of them, and the formats that
 * outlive a release (tests/vectors/shards.json). Pure.
 *
 * Each shard is a store as docs/format.md describes it, with a log, a root and an id of its own.
 * Numbers of instances tell their shard, and so do ids of alarms. */
#ifndef PAWL_MODEL_SHARD_H
#define PAWL_MODEL_SHARD_H

#include "base/buf.h"
#include "base/sha.h"
#include "base/str.h"
#include "model/record.h"

#define SHARDS_MAX 1024u
#define SHARD_HOME 0u /* it decides the versions of definitions, and has the tokens */

bool shards_are_valid(uint64_t count); /* 1, or a power of two up to SHARDS_MAX */

/* ---- Which shard? ---- */

uint32_t shard_of_number(uint64_t number, uint32_t shards);
/* By the first 32 bits of the key's id. */
uint32_t shard_of_key(const uint8_t key[KEY_ID_SIZE], uint32_t shards);
/* By the first four hexadecimal digits of its id. False: it has none. */
bool shard_of_alarm(str id, uint32_t shards, uint32_t *out);
/* Changes the first 16 bits of an alarm's id so that they tell this shard. */
void shard_mark_alarm(uint8_t id[2], uint32_t shard, uint32_t shards);

/* ---- Identity ---- */

/* The first 16 bytes of H("pawl.shard.1" || store_id || varint shard || varint shards). */
void shard_store_id(struct sha *sha, const uint8_t store_id[STORE_ID_SIZE], uint32_t shard,
                    uint32_t shards, uint8_t out[STORE_ID_SIZE]);

struct shard_tip {
    uint64_t pos;
    uint8_t root[SHA_SIZE];
};
/* H("pawl.cluster.1" || store_id || varint shards || for each: varint pos || root). */
void shards_root(struct sha *sha, const uint8_t store_id[STORE_ID_SIZE],
                 const struct shard_tip *tips, uint32_t shards, uint8_t out[SHA_SIZE]);

/* ---- Cursors ---- */

/* A position, or a number, of each shard. */
struct shard_vector {
    uint32_t count;
    uint64_t at[SHARDS_MAX]; /* below 2^63 */
};
/* "v" and base32 of: varint count, then for each shard the zigzag varint of its difference to the
 * one before. A vector has one text. */
#define SHARD_VECTOR_TEXT (1 + (2 + SHARDS_MAX * 10) * 8 / 5 + 2)
void shard_vector_print(const struct shard_vector *vector, struct buf *out);
bool shard_vector_parse(str text, struct shard_vector *out); /* false: it is no such text */

#endif
