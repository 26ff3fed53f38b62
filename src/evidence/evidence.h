/* evidence.h - hashes over records, and the check of a whole store.
 *
 * The functions of chain.c are pure. verify.c reads a store by its verbs alone, on its own
 * path: it decides nothing, repairs nothing, and names the first record that is wrong.
 * docs/format.md says what each hash covers; tools/verify.py is a second reader of that page. */
#ifndef PAWL_EVIDENCE_EVIDENCE_H
#define PAWL_EVIDENCE_EVIDENCE_H

#include "base/scope.h"
#include "model/record.h"

void value_commit(struct sha *sha, const uint8_t salt[SALT_SIZE], str bytes, uint8_t out[SHA_SIZE]);

/* Commitments that enter a record's hash; NULL: absent. */
struct commitments {
    const uint8_t *actor, *payload, *reason;
};

/* What a creation record's hash covers beside the record: from the rows that hold it. */
struct creation_facts {
    const uint8_t *source_sha, *compiled_sha;
    str name; /* empty: inline */
    uint32_t version;
    const uint8_t *subject, *input, *metadata; /* commitments; NULL: absent */
    str correlation, labels;
    str parent_id; /* 26 characters, or empty */
    bool test;
};

/* The body that a creation record's hash covers, into `out` (binary, see format.md). */
struct buf;
void creation_body(const struct creation_facts *facts, struct buf *out);

/* hash of a record: previous hash of its instance (32 zero bytes for the first), the
 * instance's id (26 characters, or 26 times '0' for the store itself), then the fields.
 * `body` is record->body, except for a creation, where it is creation_body(). */
void record_hash(struct sha *sha, const uint8_t prev[SHA_SIZE], const char id[ID_SIZE],
                 const struct record *record, str body, const struct commitments *commitments,
                 uint8_t out[SHA_SIZE]);

/* The root before the first commit, and after each: H(previous root, hashes in order). */
void root_first(struct sha *sha, const uint8_t store_id[STORE_ID_SIZE], uint8_t out[SHA_SIZE]);
void root_begin(struct sha *sha, const uint8_t prev[SHA_SIZE]);
void root_add(struct sha *sha, const uint8_t hash[SHA_SIZE]);
void root_end(struct sha *sha, uint8_t out[SHA_SIZE]);

/* An idempotency key and the request it came with, as they ride in a record. */
void key_make(struct sha *sha, str principal, str key, str operation, str request,
              uint8_t out[KEY_SIZE]);

/* ---- verify ---- */

struct store;

struct verify_report {
    bool valid;
    uint64_t records, entries, instances;
    uint64_t bad_pos;               /* first bad record, 0: none or not a record */
    char bad_instance[ID_SIZE + 1]; /* "" if it concerns the store */
    uint64_t bad_seq;
    char what[256]; /* what is wrong, in words; "" if valid */
};

/* Check the whole store, or one instance (number != 0). `progress` may be NULL; it is
 * called now and then with the position reached and the last one. Fails only where the
 * store can't be read; a store that is read and wrong gives OK and !valid. */
pawl_status verify_store(struct store *store, const struct heap *heap, uint64_t instance,
                         void (*progress)(void *context, uint64_t pos, uint64_t last),
                         void *context, struct verify_report *report, pawl_error *error);

#endif
