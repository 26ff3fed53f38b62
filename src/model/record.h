/* record.h - what the log holds. docs/format.md is the page that freezes it.
 *
 * Most records are entries: one declared transition of one instance, numbered 1..N.
 * The others are control records, never shown as history. All are chained. */
#ifndef PAWL_MODEL_RECORD_H
#define PAWL_MODEL_RECORD_H

#include "base/ids.h"
#include "base/sha.h"
#include "base/str.h"

/* Control records: the numbers are part of the format. */
#define CONTROL_MAP(X)                                                                             \
    X(CREATE, -1, "create") /* an instance begins; seq 0 */                                        \
    X(DEFINE, -2, "define") /* a definition version was put */                                     \
    X(PAUSE, -3, "pause")                                                                          \
    X(RESUME, -4, "resume")                                                                        \
    X(ALARM, -5, "alarm")                                                                          \
    X(KEEP_SIGNAL, -6, "keep-signal") /* a buffered signal */                                      \
    X(TOKEN, -7, "token")                                                                          \
    X(ERASE, -8, "erase")                                                                          \
    X(KEYED, -9, "keyed")      /* an accepted keyed call without an entry */                       \
    X(IMPORT, -10, "import")   /* how many records of another store follow, with their times */    \
    X(CLOCK, -11, "clock")     /* the store's clock minus the wall clock, from here on */          \
    X(RIGHTS, -12, "rights")   /* what the starter may create, right behind the creation */        \
    X(HOLD, -13, "hold")       /* an instance is kept: it is neither erased nor archived */        \
    X(ARCHIVE, -14, "archive") /* instances that were moved into an archive file */                \
    X(GONE, -15, "gone")       /* the place of a record that was moved: seq is its archive record */

enum control {
#define X(name, number, text) CONTROL_##name = (number),
    CONTROL_MAP(X)
#undef X
};

#define RECORD_GUARD 1u /* flags: the guard was asserted */
#define RECORD_ERASED                                                                              \
    2u /* flags: its body, or its instance's row, has lost what could be private */
#define SKIP_EVERY 64u  /* every 64th entry points back to the one 64 before it */
#define SALT_SIZE 16
#define STORE_ID_SIZE 16
#define KEY_ID_SIZE 16  /* of an idempotency key: scoped by store and principal */
#define KEY_SIZE (KEY_ID_SIZE + SHA_SIZE) /* with the hash of the request it came with */
#define KEY_KEPT_MS ((int64_t)7 * 24 * 3600 * 1000) /* an accepted call is remembered so long */

struct record {
    uint64_t pos;       /* 1.. in commit order */
    uint64_t instance;  /* its number; 0: the store itself */
    uint64_t seq;       /* entries 1..N; a control record has the seq of the entry before it */
    uint64_t prev;      /* position of this instance's previous record; 0: none */
    uint64_t skip;      /* where seq % 64 == 0: position of entry seq - 64, or 0; else 0 */
    int32_t what;       /* >= 0: index of the transition; < 0: enum control */
    uint32_t flags;
    int64_t at_ms;      /* when it was recorded, by the store's clock: never goes back */
    int64_t fired_at_ms; /* entries, create: as supplied, or the wall clock; else at_ms */
    uint32_t step, ordinal, attempt; /* flows: plan index + 1, number of its row, attempt */
    uint64_t actor, payload, reason; /* ids of values; 0: absent */
    str body;           /* effects as JSON (effect.h), or a control record's body, or data NULL */
    str key;            /* idempotency: 16 bytes of key id, 32 of request hash; data NULL: none */
    uint8_t hash[SHA_SIZE];
    bool has_root;      /* the last record of a commit */
    uint8_t root[SHA_SIZE];
};

/* A value that may have to be erased one day: the log knows only its commitment. */
struct value {
    uint64_t id;
    uint8_t commitment[SHA_SIZE]; /* SHA-256(salt || bytes) */
    uint8_t salt[SALT_SIZE];
    str bytes;                    /* data NULL: erased, with its salt */
    bool interned;                /* found again by its bytes: actors and subjects */
};

/* A record whose body has lost what could be private: erased_body.h. Its hash stays what it was. */
struct redaction {
    uint64_t pos;
    uint32_t flags; /* as it has them now */
    str body;       /* data NULL: it has none */
};

/* A record whose instance was moved into an archive file: of what it was its place, time, hash and
 * root stay. */
struct departure {
    uint64_t pos;
    uint64_t archived; /* the archive record that names the instance */
    str key;           /* as it had one; data NULL: none */
};

/* What creation fixed. Value ids are 0 where absent. */
struct instance_row {
    uint64_t number;
    uint8_t random[ID_RANDOM_SIZE];
    uint32_t definition;      /* id of the definition version */
    int64_t instantiated_at_ms;
    uint64_t created_pos;
    uint64_t creator, subject, input, metadata; /* values */
    uint64_t parent;          /* instance number, or 0 */
    str correlation;          /* data NULL: none */
    str labels;               /* JSON object text; data NULL: none */
    bool test;
};

/* Where an instance stands: derived from its last record. */
struct head_row {
    uint64_t instance;
    uint64_t seq, pos;
    uint32_t state;
    bool paused; /* when read: a pause is in force */
};

/* Which record a key was used for: follows from the log. */
struct key_row {
    uint8_t id[KEY_ID_SIZE];
    int64_t at_ms; /* of that record */
    uint64_t pos;
};

/* A token or an alarm in force, or the state of the clock. Follows from the log. */
struct standing_row {
    int32_t what; /* of its records: CONTROL_TOKEN, CONTROL_ALARM, CONTROL_CLOCK */
    str id;
    int64_t due_at_ms; /* 0: never; CLOCK_WALL: the offset; CLOCK_TEST: the time */
    uint64_t pos;      /* of the record that began it */
    int64_t firing_ms; /* an alarm over many: at_ms of its `firing` record; 0: none */
    bool wall;         /* ALARM: due by the wall clock; else by the store's */
};

/* The ids of the clock rows, each with its last recorded value. */
#define CLOCK_WALL "wall"
#define CLOCK_TEST "test"
/* A due time of at least this is never, and no shift of the clock moves it. */
#define DUE_NEVER_MS (INT64_C(1) << 62)
/* A wall clock that differs from the expected time by more has jumped. */
#define CLOCK_JUMP_MS 1000
/* An import moves no timer by as much as this. */
#define MOVED_MAX_MS (INT64_C(1) << 60)

struct definition_row {
    uint32_t id;
    str name;          /* data NULL: inline */
    uint32_t version;  /* 0: inline */
    int kind;          /* enum definition_kind */
    str source, compiled;
    uint8_t source_sha[SHA_SIZE], compiled_sha[SHA_SIZE];
    int64_t created_at_ms;
    str rights; /* what its instances may create (rights.h); no column: its define record says it */
};

#endif
