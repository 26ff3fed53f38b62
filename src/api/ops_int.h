/* ops_int.h - private to api: what the handlers share, and their prototypes. */
#ifndef PAWL_API_OPS_INT_H
#define PAWL_API_OPS_INT_H

#include "api/api.h"
#include "api/typed_args.h"
#include "api/op_handlers.h" /* made from describe/ */
#include "api/ops.h"

/* ---- Reading the input; it has the right types already ---- */

/* The text of a member; data is NULL if it is absent. */
str op_text(const struct op_call *call, const char *name);

/* The same, but "" counts as not supplied. */
str op_ref(const struct op_call *call, const char *name);

/* The exact bytes of a JSON member; data is NULL if it is absent. */
str op_json(const struct op_call *call, const char *name);

bool op_is_true(const struct op_call *call, const char *name);

/* Not a field, or not a filter, of the operation; names those that are. */
pawl_status op_unknown(struct scope *scope, const struct op *op, str name, bool is_filter,
                       bool labels);
/* For op->flags & OP_ANY_QUERY: every key is one of the table's or, with `labels`, begins
 * with "label."; none comes twice, none is blank. Else INVALID_QUERY. */
pawl_status query_check(const struct op_call *call, bool labels);
pawl_status query_count(const struct op_call *call, const char *name, bool *has, uint64_t *out);
pawl_status query_limit(const struct op_call *call, uint32_t *out);
/* The filter `definition`, a name or name@version; neither is changed where it is not given. */
pawl_status query_definition(const struct op_call *call, str *name, uint32_t *version);
/* Two ends of a span, NAME_after and NAME_before. */
pawl_status query_span(const struct op_call *call, const char *after, const char *before,
                       struct time_span *out);
/* INVALID_QUERY: "the filter NAME: expected ..., found ...". */
pawl_status query_refuse(const struct op_call *call, const char *name, const char *expected);
bool query_time_of(str text, int64_t *out);
/* Entries sequence_from to sequence_to, into the bounds of the query. */
pawl_status history_bounds(const struct op_call *call, struct history_query *query);
pawl_status query_flag(const struct op_call *call, const char *name, bool *out); /* true, false */

/* ---- Values that are checked last: a sentence about the first defect, or NULL ---- */

const char *op_ref_defect(const struct op_call *call, const char *name);
str op_told(const struct op_call *call, const char *name); /* data NULL: nothing, or white space */

/* ---- Shared ---- */

/* An input that came whole (path, query and body in one object, and perhaps an idempotency_key),
 * checked against the table. who NULL: a local caller. */
pawl_status op_prepare_whole(pawl *p, const struct op *op, struct node *input,
                             const struct op_principal *who, struct scope *scope,
                             struct op_call *out);
/* Runs the handler, with the brackets of its answer. */
pawl_status op_handle(struct op_call *call, struct buf *out);
/* op_start() of a call without a waiter. */
pawl_status op_perform(struct op_call *call, struct buf *out, struct op_answer *answer);

/* Is the value what the row says? NULL: it is missing. `where` is put before its name.
 * INVALID_REQUEST. */
pawl_status op_check_value(struct scope *scope, const struct op_param *param,
                           const struct node *node, const char *where);

/* An object inside an input, checked as `as` would check its own: types, unknown fields, what is
 * missing. `where` is put before names: "claim.". INVALID_REQUEST. */
pawl_status op_check_part(struct scope *scope, const struct op *as, const struct node *part,
                          const char *where);

/* op_start() in this process, whatever node owns the shard. */
pawl_status op_start_here(struct op_call *call, struct buf *out, struct op_answer *answer,
                          bool *waits);

/* op_go_on() of what waits in this process. */
pawl_status op_go_on_here(struct op_call *call, bool is_stopping, struct buf *out,
                          struct op_answer *answer, bool *waits);
/* ops_work.c: INVALID_REQUEST, before anything is done. */
pawl_status op_check_claim(struct op_call *call);
pawl_status op_check_turn(struct op_call *call);
/* roaming.c: of a claim that looks at other nodes too. */
pawl_status roaming_go_on(struct op_call *call, bool is_stopping, struct buf *out,
                          struct op_answer *answer, bool *waits);

/* spread.c: is the call about this shard? A call over all may be one node's part of it. */
bool op_has_shard(const struct op_call *call, uint32_t shard);
/* Several nodes add up what the call does: the numbers that the handler prints. */
bool spread_is_sum(const struct op_call *call);
pawl_status spread_sum(struct op_call *call, struct buf *out);

struct engine *op_engine(const struct op_call *call);
pawl_status require_known(const struct op_call *call); /* instance_id names an instance */

/* "name" or "name@version" as the store has it; NOT_KNOWN. */
pawl_status definition_resolve(const struct op_call *call, str reference,
                               struct definition_row *out);
/* The members `name` and `version`; NOT_KNOWN, INVALID_REQUEST. */
pawl_status definition_asked(const struct op_call *call, struct definition_row *out);
bool definition_reference(str reference, str *name, uint32_t *version); /* version 0: none given */

/* The member `against` of definition.check: what engine_compare() says, null if the text has
 * errors; nothing if it was not asked for. NOT_KNOWN. */
pawl_status print_against(const struct op_call *call, bool has_errors, struct buf *out);

/* ops_redrive.c: the steps that an instance need not run again, as a JSON list; data NULL: none. */
pawl_status read_reused(const struct op_call *call, str id, str *out);

void fire_read(const struct op_call *call, struct fire_args *out);
pawl_status create_read(const struct op_call *call, struct create_args *out);
/* Each of these prints members. */
void print_created(const struct created *created, struct buf *out);
/* The same, with warnings of what the input lacks. */
void print_created_warned(struct scope *scope, const struct created *created, str input,
                          struct buf *out);
void print_fired(const struct fired *fired, struct buf *out);

/* As instance.history prints it; with `instance_id` first where `with_id`. */
void print_entry(str id, const struct entry *entry, bool with_id, struct buf *out);
void print_instance(const struct instance_view *view, struct buf *out); /* its members */
void print_waiting(const struct op_call *call, str id, const struct waiting *waiting,
                   struct buf *out); /* as instance.why */
/* The picture of a flow as instance.graph prints it as JSON. ops_graph.c */
pawl_status print_story_graph(struct op_call *call, const struct story *story, struct buf *out);
/* The member `transitions`: the compiled table, with each `*` replaced by the states it means. */
void print_transitions(const struct definition *definition, struct buf *out);

#define OP_BATCH_TYPE "application/x-ndjson"

/* ---- Alarms ---- */

/* Would this input pass the checks of the table? INVALID_REQUEST. */
pawl_status op_check(struct scope *scope, const struct op *op, str input_json);
/* Runs an operation with a whole input and an idempotency key. FORBIDDEN: `who` has scopes, and
 * none allows it. */
pawl_status op_call_keyed(pawl *p, const struct op *op, str input_json,
                          const struct op_principal *who, str key, struct scope *scope,
                          struct buf *out);

/* ---- Tokens ---- */

bool scopes_are_valid(str list);
/* May the caller apply this operation, which lists instances, to those of `definition`? */
bool op_allows(const struct op_call *call, str definition);
/* What the caller may create; with `defines`, what the definitions it puts may (model/rights.h). */
pawl_status op_rights(const struct op_call *call, bool defines, str *out);
pawl_status token_secret(struct op_call *call, char secret[65], char hash[2 * SHA_SIZE + 1]);

/* The member `name`: a cursor (events.h). paging.c */
struct shard_vector;
void print_cursor(const struct shard_vector *at, const char *name, struct buf *out);

/* ---- Lists in pieces ---- */

/* Without the filter `limit`, {MEMBER: [all]}; with it {MEMBER: [...], next: CURSOR or null}. */
struct paging {
    bool has_limit, has_begun;
    uint32_t limit;
    uint64_t count; /* items that were printed */
    size_t bytes, item_at;
    str reused; /* JSON, a member beside the items; data NULL: none */
};
pawl_status paging_read(const struct op_call *call, struct paging *out); /* INVALID_QUERY */
void paging_begin(struct paging *page, const char *member, struct buf *out); /* the first time */
bool paging_is_full(const struct paging *page); /* one more item belongs to the next page */
void paging_item(struct paging *page, struct buf *out); /* before each item, */
void paging_note(struct paging *page, const struct buf *out); /* and behind it */
void paging_end(const struct paging *page, const char *next, struct buf *out);

/* Can its answer be asked for page by page? */
bool op_has_pages(const struct op *op);

#endif
