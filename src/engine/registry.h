/* registry.h - definitions, types of code, reduces and rights: what instances run by. Private to
 * src/engine.
 *
 * Rules:
 *  (1) Everything here is under the registry's own lock. The engine's may be held when it is taken,
 *      and is never taken under it.
 *  (2) A definition that was given to a caller lives until the engine is closed; one that a host
 *      rolled back is retired, not freed.
 *  (3) A type of code is added, never removed; the newest version of a type starts new
 *      instances. */
#ifndef PAWL_ENGINE_REGISTRY_H
#define PAWL_ENGINE_REGISTRY_H

#include "base/guard.h"
#include "engine/engine.h"
#include "flow/flow.h"

struct child_plan;
struct define_request;
struct head;
struct request;

struct definition_slot {
    struct definition *definition;
    struct scope scope; /* holds it */
    str name;
    uint32_t version;
    bool is_doubtful; /* attached: a rollback may have put another one in its place */
    uint8_t source_sha[SHA_SIZE], compiled_sha[SHA_SIZE];
    str rights; /* what its instances may create; data NULL: anything */
    struct definition_slot *next; /* of those that a rollback took back */
};

/* What the host does in our transaction (reduces.c). */
struct reducer {
    const char *name;
    pawl_reduce_fn run;
    void *context;
};

#define RESOLVED_KEPT 64u  /* references, by a hash of them ... */
#define RESOLVED_SIZE 152u /* ... and none that is longer */
/* Which definition a reference named when no later one was stored than `last` (definitions.c). */
struct resolved {
    char text[RESOLVED_SIZE]; /* the reference */
    uint32_t id, last;        /* id 0: none */
};
/* Instances of types of code that have a higher version now (renewals.c). */
struct renewal {
    uint32_t type, version; /* the one under way, by its index; the version that created them */
    uint64_t after;         /* the last instance that was looked at */
    uint32_t tries;         /* of this page that failed */
    _Atomic int64_t retry_ms; /* the store failed: not before, by the tick */
    _Atomic bool is_busy;   /* a thread is at it */
};

struct registry {
    struct guard lock;
    struct definition_slot **definitions; /* by id */
    uint32_t definition_capacity;
    struct definition_slot *retired; /* not found any more, but names in results point into them */
    struct resolved resolved[RESOLVED_KEPT]; /* an owner's: no other process stores definitions */
    uint64_t seen_pos; /* attached: the end of the log when the last definition was loaded */
    uint8_t seen_root[SHA_SIZE];
    struct arena code_arena; /* holds the copies below, until close */
    const struct code_binding **code_types;
    uint32_t code_count;
    struct reducer *reducers; /* in the order they were registered */
    uint32_t reducer_count;
    _Atomic bool has_renewals;
    struct renewal renewal;
};

/* definitions.c */
pawl_status definitions_get(struct engine *engine, struct scope *scope, uint32_t id,
                            struct definition_slot **out);
/* The definition that a reference (name or name@version) names, and what its creation records of
 * it. INVALID_REQUEST, NOT_KNOWN. */
pawl_status definitions_resolve(struct engine *engine, struct scope *scope, str text,
                                struct definition_row *row, struct definition_slot **out);
bool definitions_are_far(struct engine *engine, str text); /* the home shard has to be asked */
/* The definition of the instance that stands at `head`; a head that names no state of it is
 * STORAGE_FAILURE: the store is damaged. */
pawl_status definitions_of(struct engine *engine, struct scope *scope, const struct head *head,
                           struct definition_slot **out);
pawl_status definition_compile(struct scope *scope, str text, bool is_inline,
                               struct findings *findings, struct definition **out, str *name);
pawl_status definition_row_make(struct engine *engine, struct scope *scope, str source,
                                const struct definition *definition, struct definition_row *out);
pawl_status definition_put(struct engine *engine, struct scope *scope,
                           struct define_request *define);
/* The home shard's version of it, recorded here as well: in *row as it is here. */
pawl_status definition_copy(struct engine *engine, struct scope *scope, str name, uint32_t version,
                            struct definition_row *row);
void definitions_fini(struct engine *engine);

/* attach.c: what a host may have rolled back. */
pawl_status attached_check(struct engine *engine, struct scope *scope, uint32_t id);
pawl_status attached_note(struct engine *engine, struct scope *scope);
void attached_fini(struct engine *engine);
void definition_slot_free(struct engine *engine, struct definition_slot *slot);

/* code_types.c */
void definitions_bind(struct engine *engine,
                      struct definition_slot *slot); /* to its handler, if here */

/* references.c: warns of definitions that a text named `name` refers to and that are not stored. */
pawl_status references_check(struct engine *engine, struct scope *scope, str name,
                             struct findings *findings);
/* own_texts.c: puts what the text named `name` refers to, if that is a definition of ours. */
pawl_status own_texts_put(struct engine *engine, struct scope *scope, str name,
                          const struct findings *findings);
bool own_texts_have(str name);
bool references_are_known(struct engine *engine, struct scope *scope);
/* One more, with this message; without memory, which the arena shows, it is left out. */
struct finding;
void finding_add(struct scope *scope, struct findings *findings, struct finding finding,
                 const char *message);

/* reduces.c */
pawl_status reduces_of(struct engine *engine, struct scope *scope, const struct decision *decision,
                       const struct child_plan *child_plans, struct request *request);
bool reduces_any(const struct decision *decision);
bool reduces_failed(const struct request *request);
str error_as_json(struct scope *scope);
void reduces_fini(struct engine *engine);

/* rights.c: what may be created (model/rights.h); data NULL: anything. rights_of_instance(): by
 * this instance, now. rights_of_creation(): by an instance that a starter with these rights
 * creates. */
pawl_status rights_of_instance(struct engine *engine, struct scope *scope, uint64_t instance,
                               str *out);
pawl_status rights_of_creation(struct engine *engine, struct scope *scope, str starter,
                               const struct definition_row *row, str *out);
pawl_status rights_check(struct scope *scope, str rights, str reference); /* name or name@version;
                                                                              FORBIDDEN */
/* After a create record and after a define record, with space reserved. They write
 * nothing where there is no limit. */
struct starter;
pawl_status starter_record(struct engine *engine, struct scope *scope, struct head *head,
                           const struct starter *starter, int64_t at_ms);
/* In the drain: what the starter of an instance fixed, also of one of this very commit. */
pawl_status starter_now(struct engine *engine, struct scope *scope, uint64_t instance,
                        struct starter *out);
pawl_status rights_note(struct engine *engine, struct scope *scope,
                        const struct definition_row *row);

/* code_types.c: the definition of a type that is recorded with its first instance; OK if
 * `reference` (NAME or NAME@VERSION) names none. */
bool code_is_elsewhere(struct engine *engine, str reference);
bool code_is_put_when_used(struct engine *engine, str reference);
pawl_status code_put_when_used(struct engine *engine, struct scope *scope, str reference);

/* renewals.c: instances of code types that have a higher version now. */
void renewals_note(struct engine *engine, const struct code_binding *binding);
bool renewals_are_due(const struct engine *engine);
void renewals_run(struct engine *engine); /* a page */

/* create.c: by name or name@version. NOT_KNOWN. */
pawl_status definition_find_registered(struct engine *engine, struct scope *scope, str text,
                                       struct definition_row *row);

#endif
