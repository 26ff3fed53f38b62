/* verify_int.h - private to evidence: what a check of a store remembers on its way.
 *
 * The log is read once, in order of position, and replayed into one `struct chain` per
 * instance; then the rows that follow from the log are compared with it. All reads go
 * through `scope`, which is emptied before every record, so what must last is copied.
 *
 * A finding is written into the report by verify_bad(), which returns STORAGE_FAILURE:
 * that status alone, wherever it comes from, ends in a report that is not valid. */
#ifndef PAWL_EVIDENCE_VERIFY_INT_H
#define PAWL_EVIDENCE_VERIFY_INT_H

#include "base/buf.h"
#include "base/grow.h"
#include "base/map.h"
#include "base/sha.h"
#include "evidence/evidence.h"
#include "model/decision.h"
#include "model/definition.h"
#include "store/store.h"

#define BATCH_SIZE       1024  /* records read before they are looked at */
#define VALUE_CACHE_SIZE 4096  /* a power of two */
#define REPLAYS_KEPT     16384 /* memories of flows at once; others are folded again when needed */

/* Ends a check that was asked to stop; becomes OK in the end. */
#define VERIFY_STOPPED PAWL_PAUSED

/* A definition, and what its row says. */
struct rules {
    uint32_t id, version;
    struct definition *definition; /* in verify.plans */
    str name;                      /* data NULL: inline */
    uint8_t source_sha[SHA_SIZE], compiled_sha[SHA_SIZE];
    const struct definition *flow; /* the same, prepared to be decided again; NULL: it is not */
    int64_t created_at_ms;
    bool is_defined; /* a define record was seen; inline: a create record */
};

/* The rows that effects have left behind. Of a timer, due_at_ms is as it was armed. */
struct fold {
    struct live_change *rows; /* their texts are on the heap: verify_live.c */
    uint32_t count, capacity;
};

/* What the log has told about one instance so far; number 0 is the store itself. */
struct chain {
    uint64_t number;
    uint64_t seq, pos;
    uint64_t flushed_pos;  /* its last position that is not after `flushed` */
    uint64_t skip_pos;     /* of its last entry whose seq is a multiple of SKIP_EVERY */
    struct fold *fold;     /* NULL: nothing is left behind */
    uint64_t paused_pos;   /* of the pause in force; 0: none */
    struct replay *replay; /* of a flow; NULL: not in memory now */
    bool is_blind;         /* a value was erased that its decisions were made from */
    bool is_opaque;        /* bodies were erased: what its effects leave behind is not known */
    uint64_t erased_pos;   /* of the last erase record that names it; 0: none */
    uint64_t snapshot_seq; /* of the last snapshot an entry tells of; 0: none */
    uint8_t snapshot_sha[SHA_SIZE];
    uint32_t rules; /* index */
    uint32_t state;
    uint8_t random[ID_RANDOM_SIZE];
    uint8_t hash[SHA_SIZE];
};

/* A flow under way, folded as the engine folds it. */
struct replay {
    struct arena arena; /* of all that follows but `turn` */
    void *memory;
    str input;
    size_t loaded_size; /* of the arena when the memory was last made small */
    struct payload_source payloads; /* what the memory does not keep, ... */
    struct verify *v;
    uint64_t pos;         /* ... up to the record at this position */
    bool is_unreadable;   /* that could not be read */
    struct scope turn; /* of `expected` */
    struct decision expected;
    uint32_t next; /* the first of its drafts that no entry has shown yet */
    uint32_t slot; /* in verify.replays */
};

struct known_value {
    uint64_t id;
    bool is_gone; /* it has no bytes */
    uint8_t commitment[SHA_SIZE];
};

/* A value that records use without its bytes, or that an erase record names: verify_erase.c. */
struct erasure {
    uint8_t commitment[SHA_SIZE];
    bool is_gone;        /* a row without bytes has this commitment */
    uint64_t used_pos;   /* of the last record that uses it; 0: none */
    uint64_t erased_pos; /* of the last erase record that names it; 0: none */
    uint32_t before;     /* the next one with the same first bytes, or MAP_NONE */
};

/* An archive record, and the places of what it moved: verify_gone.c. */
struct archived {
    uint64_t pos;
    uint64_t expected, seen; /* places that name it */
    uint32_t first, count;   /* of the instances that it names, in `departed` */
    bool is_read;            /* the log has come to it */
};

/* An instance that an archive record names. */
struct departed {
    uint64_t number;
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t pos;           /* of the archive record */
    uint8_t last[SHA_SIZE]; /* the hash of its last record */
    bool is_seen;           /* ... was the hash of a place */
    uint32_t before;        /* one with the same first bytes of `last`, or MAP_NONE */
};

struct verify {
    struct store *store;
    const struct heap *heap;
    const struct verify_request *request;
    struct scope scope; /* every read; emptied before each record */
    struct scope plans; /* definitions */
    struct arena batch; /* bodies and keys of the records of a batch */
    struct record *records;
    uint32_t record_count;
    struct sha *sha, *root_sha;
    struct buf body; /* of a creation or a definition */

    bool whole;           /* the store, not one instance */
    struct store_tip tip; /* as it was at the beginning */
    uint64_t pos;         /* the last record that was checked */
    int64_t at_ms;        /* and its time, those of other stores left aside */
    int64_t peak_ms;      /* the latest record time so far */
    uint64_t imported;    /* records of another store that are still to come */
    uint64_t import_pos;  /* of the import record that announced them, until the one behind them */
    uint8_t root[SHA_SIZE];
    bool in_commit; /* records were added to root_sha that have no root yet */

    struct chain *chains; /* [0] is the store's own */
    uint32_t chain_count, chain_capacity;
    struct map chain_map; /* number -> index */
    struct rules *rules;
    uint32_t rules_count, rules_capacity;
    struct map rules_map;       /* id -> index */
    struct known_value *values; /* by id % VALUE_CACHE_SIZE */
    uint64_t *checked;          /* one bit per value id */
    size_t checked_count;       /* of words */
    struct erasure *erasures;
    uint32_t erasure_count, erasure_capacity;
    struct map erasure_map; /* the first bytes of a commitment -> index */
    struct archived *archived; /* in the order in which places name them */
    uint32_t archived_count, archived_capacity;
    struct map archived_map; /* position -> index */
    struct departed *departed;
    uint32_t departed_count, departed_capacity;
    struct map departed_map, last_map; /* number -> the last index; commitment_key(last) -> index */
    struct key_row *keys;   /* that were used in the last 7 days */
    uint32_t key_count, key_capacity;
    struct standing_row *standing; /* tokens and alarms in force; their ids are on the heap */
    uint32_t firing_count;     /* how many of them are firing alarms */
    uint32_t standing_count, standing_capacity;

    uint32_t *replays;    /* [REPLAYS_KEPT] indices of chains, 0: free */
    uint32_t replay_next; /* the slot to be taken next */
    uint32_t undecided;   /* replays whose decision is not complete */

    uint64_t begun_pos, kept_pos; /* where this check began; the last checkpoint */
    bool in_log;                  /* nothing but the log is looked at: it may stop here */
    bool stop_asked;
    struct verify_report *report;
    uint64_t where_pos, where_instance, where_seq; /* what is being looked at */
};

/* Of an instance, not of the store itself. */
static inline const struct definition *chain_definition(const struct verify *v,
                                                        const struct chain *chain)
{
    return v->rules[chain->rules].definition;
}

static inline bool chain_has_ended(const struct verify *v, const struct chain *chain)
{
    return chain_definition(v, chain)->states[chain->state].terminal != TERMINAL_NOT;
}

/* verify.c */
pawl_status verify_bad(struct verify *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* TRY() for what must be there: NOT_KNOWN from the store becomes a finding with these words. */
#define TRY_FOUND(v, call, ...)                                                                    \
    do {                                                                                           \
        pawl_status tried = (call);                                                                \
        if (tried != PAWL_OK)                                                                      \
            return tried == PAWL_NOT_KNOWN ? verify_bad(v, __VA_ARGS__) : tried;                   \
    } while (0)
void verify_at(struct verify *v, uint64_t pos, uint64_t instance, uint64_t seq);
pawl_status verify_catch_up(struct verify *v); /* check what was appended meanwhile */
/* Tell how far it is, at every so many; VERIFY_STOPPED if that is far enough. */
pawl_status verify_tell(struct verify *v, enum verify_part part, uint64_t done, uint64_t all);
void verify_forget_chain(struct verify *v, struct chain *chain); /* what it holds */

/* verify_record.c */
pawl_status verify_record(struct verify *v, const struct record *record);
struct chain *verify_find_chain(struct verify *v, uint64_t number); /* NULL if unknown */
/* The record's hash, from that of the record before it in its chain. `what`: "record". */
pawl_status verify_hash(struct verify *v, const uint8_t before[SHA_SIZE], const char id[ID_SIZE],
                        const struct record *record, str body, const char *what);
#define STORE_CHAIN_ID "00000000000000000000000000" /* of the store itself */

/* verify_value.c: the commitment of a value, after it was checked against its bytes. */
pawl_status verify_value(struct verify *v, uint64_t id, uint8_t out[SHA_SIZE]);
pawl_status verify_all_values(struct verify *v);

/* verify_erase.c: values without bytes, and the erase records that name them. */
pawl_status verify_use_erased(struct verify *v, const uint8_t commitment[SHA_SIZE]);
/* `record` has lost a part of its body, and hashes to `now`. */
pawl_status verify_use_erased_body(struct verify *v, const struct record *record,
                                   const uint8_t now[SHA_SIZE]);
pawl_status verify_erase(struct verify *v, const struct record *record);
pawl_status verify_erased_rows(struct verify *v);
pawl_status verify_all_erasures(struct verify *v);
pawl_status verify_erasures_of_one(struct verify *v);
pawl_status verify_put_erasure(struct verify *v, const struct erasure *erasure);
void verify_forget_erasures(struct verify *v);

/* verify_definition.c */
pawl_status verify_definition(struct verify *v, uint32_t id, uint32_t *out_index);
pawl_status verify_define(struct verify *v, const struct record *record);
/* An instance is created. If its definition is inline and new, this record defines it. */
pawl_status verify_inline(struct verify *v, uint32_t rules, const struct record *record);
pawl_status verify_all_definitions(struct verify *v);

/* verify_import.c: times along the log, and the records that have times of their own. */
pawl_status verify_time(struct verify *v, const struct record *record);
/* The body of an import record, and how many records of another store it announces. */
struct node;
pawl_status verify_import_body(struct verify *v, const struct record *record, struct node **body,
                               uint64_t *count);

/* verify_gone.c: instances that were moved into an archive file. */
pawl_status verify_gone(struct verify *v, const struct record *record);    /* a place */
pawl_status verify_archive(struct verify *v, const struct record *record); /* who names places */
/* It was moved by a record up to here, or behind it; NULL: it was not. */
const struct departed *verify_departed(const struct verify *v, uint64_t number,
                                       const uint8_t random[ID_RANDOM_SIZE]);
pawl_status verify_all_archived(struct verify *v);
pawl_status verify_archive_rows(struct verify *v);
void verify_drop_archived(struct verify *v);

/* verify_moved.c: how far an import moves the timers that it brings. */
pawl_status verify_moved(struct verify *v, const struct node *body);

/* verify_keys.c */
pawl_status verify_note_key(struct verify *v, const struct record *record);
pawl_status verify_all_keys(struct verify *v);

/* verify_clock.c */
pawl_status verify_clock_time(struct verify *v, const struct record *record);
pawl_status verify_note_clock(struct verify *v, const struct record *record);

/* verify_standing.c */
pawl_status verify_note_standing(struct verify *v, const struct record *record);
pawl_status verify_note_redrive(struct verify *v, const struct record *record);
pawl_status verify_note_rights(struct verify *v, const struct record *record, str name,
                               uint32_t version); /* of the version, from its define record */
pawl_status verify_note_amend(struct verify *v, const struct chain *chain,
                              const struct record *record);
/* The position of the last amend with a plan that was noted; 0: none. */
uint64_t verify_amended_at(const struct verify *v, const struct chain *chain);
pawl_status verify_all_standing(struct verify *v);
/* One more that is in force; its id is copied. */
pawl_status verify_put_standing(struct verify *v, const struct standing_row *row);
int64_t verify_firing_since(const struct verify *v); /* INT64_MAX: no alarm is firing */
pawl_status verify_replace_standing(struct verify *v, const struct standing_row *row);
void verify_end_standing(struct verify *v, int32_t what, str id); /* if it is in force */
void verify_drop_standing(struct verify *v);

/* verify_amend.c: a flow goes on by another definition. */
pawl_status verify_amend(struct verify *v, const struct chain *chain, const struct record *record);

/* verify_code.c: a code instance goes on by another registration. */
pawl_status verify_amend_code(struct verify *v, const struct chain *chain,
                              const struct record *record);

/* verify_live.c */
pawl_status verify_put_row(struct verify *v, struct chain *chain, struct live_change row);
pawl_status verify_fold(struct verify *v, struct chain *chain, const struct record *record);
pawl_status verify_fold_effects(struct verify *v, struct chain *chain,
                                const struct effect_list *effects, int64_t at_ms);
struct live_change *verify_find_timer(struct chain *chain, uint32_t ordinal,
                                    str name); /* NULL: not armed */
void verify_drop_fold(struct verify *v, struct chain *chain);
pawl_status verify_live(struct verify *v, const struct chain *chain);

/* verify_deadline.c */
pawl_status verify_first_timers(struct verify *v, struct chain *chain, const struct record *record);
pawl_status verify_machine_body(struct verify *v, const struct chain *chain,
                                const struct record *record);

/* verify_rows.c: heads, live rows and instance rows, against what the log says. */
pawl_status verify_rows_of(struct verify *v, uint32_t chain_index);
pawl_status verify_all_rows(struct verify *v);
/* The snapshot of an instance: is it missing, or the one that an entry tells of? */
pawl_status verify_snapshot(struct verify *v, const struct chain *chain, struct snapshot_row *row,
                            bool *is_right);

/* verify_schema.c: what only a store in a database has. */
pawl_status verify_schema(struct verify *v);
pawl_status verify_tables(struct verify *v);

/* rebuild.c: after the log was read */
pawl_status verify_rebuild(struct verify *v);

/* verify_instance.c */
struct path {
    uint64_t *positions; /* of an instance's records, the last first; on the heap */
    uint32_t count, capacity;
};
/* From the record at `pos` back along `prev`; `scope` is cleared. */
pawl_status verify_walk_back(struct verify *v, struct scope *scope, uint64_t number, uint64_t pos,
                             struct path *path);
pawl_status verify_one_instance(struct verify *v, uint64_t number);
pawl_status verify_instances_of(struct verify *v, str definition, uint32_t version);

/* verify_replay.c: flows decided once more. */
pawl_status verify_plan(struct verify *v, struct rules *rules);
pawl_status verify_replay(struct verify *v, struct chain *chain, const struct record *record);
/* verify_fold.c: an entry as the behavior sees it (`effects` is filled and pointed to), folded; and
 * a memory that was let go, or of a check that goes on. */
pawl_status verify_view_entry(struct verify *v, struct scope *scope, const struct record *record,
                              struct effect_list *effects, struct entry_view *out, bool *is_erased);
pawl_status verify_fold_entry(struct verify *v, const struct chain *chain, struct scope *scope,
                              const struct entry_view *entry);
pawl_status verify_restore(struct verify *v, struct chain *chain);
/* Between two decisions: the memory takes no more than it needs. */
pawl_status verify_make_small(struct verify *v, struct chain *chain);
pawl_status verify_replay_signal(struct verify *v, struct chain *chain,
                                 const struct record *record);
pawl_status verify_replay_over(struct verify *v, const struct chain *chain);
pawl_status verify_all_replays_over(struct verify *v);
void verify_drop_replay(struct verify *v, struct chain *chain);

/* verify_checkpoint.c: what a check remembers, written down and read again. */
void verify_keep_checkpoint(struct verify *v);
pawl_status verify_resume(struct verify *v); /* VERIFY_STOPPED: it can't be used */

#endif
