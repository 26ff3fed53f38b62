/* queries.h - what callers read: where instances are, their histories, what they wait for. Private
 * to src/engine.
 *
 * Rules:
 *  (1) A query returns what was committed, and nothing past the tip.
 *  (2) It holds the lock only to copy a head, never while it reads the store.
 *  (3) It writes nothing. */
#ifndef PAWL_ENGINE_QUERIES_H
#define PAWL_ENGINE_QUERIES_H

#include "engine/explain.h"
#include "engine/heads.h"

struct definition_slot;

/* story.c: an instance and its newest records, of one moment, in one read. */
struct whole_log {
    struct engine *engine;
    struct scope *scope;
    struct instance_log log;
    struct head head;
    struct definition_slot *slot;
    const struct definition *now; /* in force */
    bool is_whole;                /* the first entry is among the records */
};
/* With so many entries of a machine; 0: to explain what it waits for, for which some records are
 * enough. NOT_KNOWN. */
pawl_status whole_log_read(struct engine *engine, struct scope *scope, str id, uint32_t entries_max,
                           struct whole_log *out);

/* Who paused it, which it is. */
pawl_status whole_log_pause(const struct whole_log *whole, struct pause_view *out);

/* why.c. At least the first `max` of them are complete. */
pawl_status why_list(const struct whole_log *whole, uint32_t max, struct waiting **out,
                     uint32_t *count);

const struct live_step *live_step_of(const struct live *live, uint32_t ordinal); /* NULL: none */

/* causes.c: why what they wait for has not come; of the first `max`. */
pawl_status why_causes(const struct whole_log *whole, uint32_t max, struct waiting *waiting,
                       uint32_t count);

/* gates.c: of those among them that wait for an approval, for whom and until when, by the plan and
 * the live rows; then since when and who has approved, by the records that were read and those
 * before them. */
pawl_status gates_rules(const struct whole_log *whole, struct waiting *waiting, uint32_t count);
pawl_status gates_progress(const struct whole_log *whole, struct waiting *waiting, uint32_t count);

/* read.c */
enum instance_status status_of(const struct definition *definition, uint32_t state, bool is_paused,
                               const struct live *live);
/* The first entry says whether the instance runs another one again: its payload; or it is looked
 * for. */
pawl_status read_retry_of(struct scope *scope, str payload, struct instance_view *out);
pawl_status find_retry_of(struct engine *engine, struct scope *scope,
                          const struct instance_row *row, struct instance_view *out);
pawl_status read_successor(struct engine *engine, struct scope *scope, struct instance_view *out);
/* NOT_KNOWN: the instance has no entry, or it is not behind the creation. */
pawl_status read_first_entry(struct engine *engine, struct scope *scope,
                             const struct instance_row *row, struct record *out);

/* entries.c */
struct value_texts { /* the last values read: actors repeat; emptied with the scope */
    uint64_t ids[2];
    str texts[2];
};
/* The words for a record that names no transition. */
pawl_status entry_refuse(struct scope *scope, uint64_t pos);
/* What an entry says by itself and who made it; then its payload and reason. */
pawl_status entry_open(struct engine *engine, struct scope *scope,
                       const struct definition *definition, const struct record *record,
                       struct value_texts *texts, struct entry *out);
pawl_status entry_fill(struct engine *engine, struct scope *scope, struct value_texts *texts,
                       struct entry *entry);
void engine_tell_watchers(struct engine *engine);

/* read.c */
/* From the record at `pos` back through an instance's records, some thousands at most, until `see`
 * returns true. It keeps no text of a record. */
pawl_status records_look_back(struct engine *engine, struct scope *scope, uint64_t pos,
                              record_sight see, void *context);
/* The same much further, for explanations: what `see` is given has no texts, and neither ordinal
 * nor attempt (chain_query.with_texts). */
pawl_status chain_look_back(struct engine *engine, struct scope *scope, uint64_t pos,
                            record_sight see, void *context);
pawl_status value_text(struct engine *engine, struct scope *scope, uint64_t id, str *out);
/* Who erased it, if its last record says that it was. */
pawl_status read_erased(struct engine *engine, struct scope *scope, const struct record *last,
                        struct instance_view *out);
pawl_status engine_locate(struct engine *engine, struct scope *scope, str id, struct head *out,
                          struct definition_slot **slot);
pawl_status ref_check(struct scope *scope, const char *what, str ref); /* at most LIMIT_ACTION */
pawl_status id_check(struct scope *scope, str id, uint64_t *number, uint8_t random[ID_RANDOM_SIZE]);

#endif
