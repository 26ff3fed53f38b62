/* queries.h - what callers read: where instances are, their histories, what they wait for. Private
 * to src/engine.
 *
 * Rules:
 *  (1) A query returns what was committed, and nothing past the tip.
 *  (2) It holds the lock only to copy a head, never while it reads the store.
 *  (3) It writes nothing. */
#ifndef PAWL_ENGINE_QUERIES_H
#define PAWL_ENGINE_QUERIES_H

#include "engine/engine.h"
#include "engine/heads.h"

struct definition_slot;

/* read.c. NOT_KNOWN: the instance has no entry, or it is not behind the creation. */
/* gates.c: what is known of those among them that wait for an approval. */
pawl_status why_gates(struct engine *engine, struct scope *scope, const struct head *head,
                      const struct definition *definition, const struct live *live,
                      struct waiting *waiting, uint32_t count);
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
void engine_tell_watcher(struct engine *engine);

/* read.c */
/* From the record at `pos` back through an instance's records, some thousands at most, until `see`
 * returns true. It keeps no text of a record. */
pawl_status records_look_back(struct engine *engine, struct scope *scope, uint64_t pos,
                              record_sight see, void *context);
pawl_status value_text(struct engine *engine, struct scope *scope, uint64_t id, str *out);
pawl_status engine_locate(struct engine *engine, struct scope *scope, str id, struct head *out,
                          struct definition_slot **slot);
pawl_status ref_check(struct scope *scope, const char *what, str ref); /* at most LIMIT_ACTION */
pawl_status id_check(struct scope *scope, str id, uint64_t *number, uint8_t random[ID_RANDOM_SIZE]);

#endif
