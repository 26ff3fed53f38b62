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

uint64_t commitment_key(const uint8_t commitment[SHA_SIZE]); /* its first bytes, for a map */

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

/* The n-th of several calls that one key stands for: an id of its own, the same request. */
void key_part(struct sha *sha, const uint8_t key[KEY_SIZE], uint64_t n, uint8_t out[KEY_SIZE]);

/* ---- verify ---- */

struct store;
struct behavior;

enum verify_part { VERIFY_RECORDS, VERIFY_INSTANCES, VERIFY_VALUES }; /* what is being counted */

/* Rows that follow from the log, rebuilt. Differences are counted; `what` has the first of them. */
#define REBUILD_TOLD_MAX   20
#define REBUILD_WORDS_SIZE 320
struct rebuild_report {
    uint64_t heads, steps, timers, waits, pauses, kept, keys; /* rows that are there now */
    uint64_t differences;
    uint32_t told;
    char what[REBUILD_TOLD_MAX][REBUILD_WORDS_SIZE];
};

/* What to check, and which callbacks report progress. All zero: the whole store, no reports. */
struct verify_request {
    uint64_t instance;            /* this one alone; 0: not by number */
    str definition;               /* every instance of it; data NULL: not by definition */
    uint32_t version;             /* of that definition; 0: all */
    const struct behavior *flows; /* decide their histories again; NULL: effects are folded only */

    /* Now and then: how far it is. False: stop at the end of the commit. */
    bool (*progress)(void *context, enum verify_part part, uint64_t done, uint64_t all);

    /* The rest is for a whole store. */
    /* Reports objects of the host in the store's database; they are listed, not checked. */
    void (*foreign)(void *context, str type, str name, str table);
    bool log_alone;                 /* not the rows that follow from it */
    bool is_schema_known;           /* not whether its tables, indexes and views are pawl's */
    struct rebuild_report *rebuild; /* if the log is valid: rewrite its rows. For an owner. */
    uint64_t limit;      /* stop at the first end of a commit after so many records; 0: none */
    str checkpoint;      /* go on from here: what `keep` was given once; data NULL: begin */
    uint64_t keep_every; /* records; 0: as often as costs little */
    /* Keep the checkpoint, for a check to come; called every now and then, and when it stops. */
    void (*keep)(void *context, str checkpoint);
    void *context;
};

struct verify_report {
    bool valid;
    bool stopped; /* before the end: nothing wrong up to `pos` */
    uint64_t records, entries, instances;
    uint64_t pos, last;             /* the last record that was looked at; the last there was */
    uint64_t resumed;               /* the position it went on from; 0: from the beginning */
    char not_resumed[160];          /* why a checkpoint could not be used; "" */
    uint64_t bad_pos;               /* first bad record, 0: none or not a record */
    char bad_instance[ID_SIZE + 1]; /* "" if it concerns the store */
    uint64_t bad_seq;
    char what[256];         /* what is wrong, in words; "" if valid */
    uint8_t root[SHA_SIZE]; /* after the last commit; of a whole store that is valid */
};

/* Check what is asked for. Fails only where the store can't be read at all, or there is no such
 * instance or definition; a store that is read and wrong gives OK and !valid. */
pawl_status verify_run(struct store *store, const struct heap *heap,
                       const struct verify_request *request, struct verify_report *report,
                       pawl_error *error);

#endif
