/* ops.c - every operation, once. HTTP routes, CLI verbs, pawl_call() and the reference are
 * read off this table. An operation without a path has no HTTP route. */
#include "api/ops_int.h"

/* clang-format off */
#define THE_INSTANCE { "instance_id", IN_PATH, OP_STRING, true, "the instance" }
#define THE_ACTOR { "actor_ref", IN_BODY, OP_STRING, false, "who does it; names that begin with pawl/ are reserved for the engine" }
#define END { NULL, IN_BODY, OP_STRING, false, NULL }

static const struct op_param definition_put_params[] = {
    { "name", IN_PATH, OP_STRING, true, "where it is put: 1..128 of A-Za-z0-9._/-" },
    { "text", IN_BODY, OP_STRING, false, "the definition, JSON or YAML, kept byte for byte" },
    { "format", IN_BODY, OP_STRING, false, "json or yaml; without it the text is looked at" },
    END,
};

#define EXPANDED                                                                                   \
    { "expanded", IN_QUERY, OP_BOOL, false, "true: with every transition, any `*` as the states it stands for" }

static const struct op_param definition_get_params[] = {
    { "name", IN_PATH, OP_STRING, true, "the definition" },
    { "version", IN_QUERY, OP_INTEGER, false, "which version; without it the newest" },
    EXPANDED,
    END,
};

static const struct op_param definition_export_params[] = {
    { "name", IN_PATH, OP_STRING, true, "the definition" },
    { "version", IN_QUERY, OP_INTEGER, false, "which version; without it the newest" },
    END,
};

#define THE_FORMAT { "format", IN_QUERY, OP_STRING, false, "text (the default), mermaid, dot, svg or json" }

static const struct op_param definition_graph_params[] = {
    { "name", IN_PATH, OP_STRING, true, "the definition" },
    { "version", IN_QUERY, OP_INTEGER, false, "which version; without it the newest" },
    THE_FORMAT,
    END,
};

static const struct op_param definition_list_params[] = {
    { "limit", IN_QUERY, OP_INTEGER, false, "rows of a page: 1..1000, default 100" },
    { "after", IN_QUERY, OP_STRING, false, "the page after this one's `next`" },
    END,
};

static const struct op_param definition_check_params[] = {
    { "text", IN_BODY, OP_STRING, false, "the definition, JSON or YAML" },
    { "format", IN_BODY, OP_STRING, false, "json or yaml; without it the text is looked at" },
    { "against", IN_QUERY, OP_STRING, false, "is it safe for the instances of this name (or name@version)?" },
    END,
};

static const struct op_param create_params[] = {
    { "definition", IN_BODY, OP_STRING, false, "name (newest version) or name@version; or else:" },
    { "declaration", IN_BODY, OP_JSON, false, "an inline machine, kept byte for byte" },
    { "input", IN_BODY, OP_JSON, false, "what it works on" },
    THE_ACTOR,
    { "subject_ref", IN_BODY, OP_STRING, false, "what it is about" },
    { "correlation_id", IN_BODY, OP_STRING, false, "what it belongs to" },
    { "labels", IN_BODY, OP_OBJECT, false, "strings to find it by" },
    { "instance_metadata", IN_BODY, OP_JSON, false, "anything but empty, never looked at" },
    { "instantiated_at", IN_BODY, OP_STRING, false, "RFC 3339, not in the future; default now" },
    { "test", IN_BODY, OP_BOOL, false, "its timers fire only by test.fire_timer" },
    END,
};

static const struct op_param fire_params[] = {
    THE_INSTANCE,
    { "action", IN_BODY, OP_STRING, true, "of a transition declared for the present state" },
    THE_ACTOR,
    { "guard_satisfied", IN_BODY, OP_JSON, false, "true asserts the transition's guard" },
    { "fired_at", IN_BODY, OP_STRING, false, "RFC 3339, not in the future; default now" },
    { "reason", IN_BODY, OP_STRING, false, "why, in words" },
    { "payload", IN_BODY, OP_JSON, false, "kept with the entry" },
    { "expected_sequence", IN_BODY, OP_INTEGER, false, "the next_sequence_number that was seen" },
    END,
};

static const struct op_param cancel_params[] = {
    THE_INSTANCE,
    THE_ACTOR,
    { "reason", IN_BODY, OP_STRING, false, "why, in words" },
    END,
};

static const struct op_param amend_params[] = {
    THE_INSTANCE,
    { "definition", IN_BODY, OP_STRING, true, "what it goes on by: name (newest version) or name@version" },
    THE_ACTOR,
    END,
};

static const struct op_param redrive_params[] = {
    THE_INSTANCE,
    { "definition", IN_BODY, OP_STRING, false, "what it runs: name (newest version) or name@version; by default what the first one ran, of code the newest version" },
    { "from", IN_BODY, OP_STRING, false, "of a flow: the step to begin at; by default where the first one ended" },
    THE_ACTOR,
    END,
};

static const struct op_param cancel_many_params[] = {
    { "correlation_id", IN_BODY, OP_STRING, true, "all instances with this correlation id" },
    THE_ACTOR,
    { "reason", IN_BODY, OP_STRING, false, "why, in words" },
    END,
};

static const struct op_param one_instance_params[] = { THE_INSTANCE, END };

static const struct op_param instance_get_params[] = { THE_INSTANCE, EXPANDED, END };

static const struct op_param instance_graph_params[] = {
    THE_INSTANCE,
    THE_FORMAT,
    { "sequence_from", IN_QUERY, OP_INTEGER, false, "what entries from this number on did" },
    { "sequence_to", IN_QUERY, OP_INTEGER, false, "what entries up to this number did" },
    END,
};

static const struct op_param history_params[] = {
    THE_INSTANCE,
    { "transition_id", IN_QUERY, OP_STRING, false, "the one entry with this id" },
    { "from_state", IN_QUERY, OP_STRING, false, "entries that left this state" },
    { "to_state", IN_QUERY, OP_STRING, false, "entries that entered this state" },
    { "action", IN_QUERY, OP_STRING, false, "entries of this action" },
    { "actor_ref", IN_QUERY, OP_STRING, false, "entries by this actor" },
    { "sequence_from", IN_QUERY, OP_INTEGER, false, "the first number, inclusive" },
    { "sequence_to", IN_QUERY, OP_INTEGER, false, "the last number, inclusive" },
    { "fired_after", IN_QUERY, OP_STRING, false, "RFC 3339, inclusive" },
    { "fired_before", IN_QUERY, OP_STRING, false, "RFC 3339, inclusive" },
    { "sequence_number", IN_QUERY, OP_STRING, false, "the one entry with this number, or a range: 3..7" },
    { "fired_at", IN_QUERY, OP_STRING, false, "entries of this time or day (2026-05-01), or a range: TIME..TIME" },
    { "limit", IN_QUERY, OP_INTEGER, false, "entries of a page: 1..1000; without it all of them" },
    { "after", IN_QUERY, OP_STRING, false, "the page after this one's `next`" },
    END,
};

static const struct op_param list_params[] = {
    { "definition", IN_QUERY, OP_STRING, false, "of this name, or name@version" },
    { "kind", IN_QUERY, OP_STRING, false, "machine, flow or code" },
    { "state", IN_QUERY, OP_STRING, false, "in this state" },
    { "status", IN_QUERY, OP_STRING, false,
      "running, suspended, paused, completed, failed or cancelled" },
    { "subject_ref", IN_QUERY, OP_STRING, false, "about this subject" },
    { "correlation_id", IN_QUERY, OP_STRING, false, "with this correlation id" },
    { "created_after", IN_QUERY, OP_STRING, false, "RFC 3339, inclusive" },
    { "created_before", IN_QUERY, OP_STRING, false, "RFC 3339, inclusive" },
    { "active", IN_QUERY, OP_STRING, false, "true: has not ended; false: has" },
    { "ended_after", IN_QUERY, OP_STRING, false, "has ended then or later: RFC 3339" },
    { "ended_before", IN_QUERY, OP_STRING, false, "has ended then or earlier: RFC 3339" },
    { "order", IN_QUERY, OP_STRING, false, "newest (default) or oldest" },
    { "limit", IN_QUERY, OP_INTEGER, false, "rows of a page: 1..1000, default 100" },
    { "after", IN_QUERY, OP_STRING, false, "the page after this one's `next`" },
    END,
};

static const struct op_param find_params[] = {
    { "prefix", IN_QUERY, OP_STRING, false, "how its id begins; without it the newest instance" },
    END,
};

static const struct op_param counts_params[] = {
    { "definition", IN_QUERY, OP_STRING, false, "of this name, or name@version" },
    END,
};

static const struct op_param signal_params[] = {
    THE_INSTANCE,
    { "name", IN_BODY, OP_STRING, true, "the signal" },
    { "payload", IN_BODY, OP_JSON, false, "given to what awaits it" },
    THE_ACTOR,
    END,
};

static const struct op_param broadcast_params[] = {
    { "name", IN_BODY, OP_STRING, true, "the signal" },
    { "filter", IN_BODY, OP_JSON, false, "only to waits with this value" },
    { "payload", IN_BODY, OP_JSON, false, "given to what awaits it" },
    THE_ACTOR,
    END,
};

static const struct op_param advance_params[] = {
    { "by", IN_BODY, OP_STRING, true, "a duration: 500ms, 30s, 5m, 72h, 7d" },
    END,
};

static const struct op_param fire_timer_params[] = {
    THE_INSTANCE,
    { "name", IN_PATH, OP_STRING, true, "the timer" },
    END,
};

static const struct op_param sql_params[] = {
    { "text", IN_BODY, OP_STRING, true, "one SELECT over the pawl_... views" },
    { "timeout", IN_BODY, OP_STRING, false, "a duration after which it is stopped; default 30s" },
    END,
};

static const struct op_param alarm_set_params[] = {
    { "at", IN_BODY, OP_STRING, false, "when: RFC 3339; or else:" },
    { "after", IN_BODY, OP_STRING, false, "a duration from now: 30s, 5m, 7d" },
    { "operation", IN_BODY, OP_STRING, true, "what: one that changes something" },
    { "input", IN_BODY, OP_OBJECT, true, "its body, with the path's parameters beside it" },
    END,
};

static const struct op_param alarm_params[] = {
    { "alarm_id", IN_PATH, OP_STRING, true, "the alarm" },
    END,
};

static const struct op_param token_create_params[] = {
    { "scopes", IN_BODY, OP_STRING, true, "what it may do: read,write:order" },
    { "actor", IN_BODY, OP_STRING, false, "in whose name: every call with it has this actor_ref, another is forbidden" },
    { "expires", IN_BODY, OP_STRING, false, "a duration; default 90d" },
    { "name", IN_BODY, OP_STRING, false, "whose it is, for people" },
    END,
};

static const struct op_param token_params[] = {
    { "token_id", IN_PATH, OP_STRING, true, "the token, without its secret" },
    END,
};

static const struct op_param verify_params[] = {
    { "definition", IN_BODY, OP_STRING, false, "only instances of NAME or NAME@VERSION" },
    END,
};

#define FROM_WHERE                                                                                 \
    { "from", IN_QUERY, OP_STRING, false, "start: everything; without it only what is new" },      \
    { "after", IN_QUERY, OP_STRING, false, "behind this event's id; HTTP: Last-Event-ID" }

static const struct op_param events_params[] = { FROM_WHERE, END };
static const struct op_param instance_events_params[] = { THE_INSTANCE, FROM_WHERE, END };

static const struct op_param batch_params[] = {
    { "text", IN_BODY, OP_STRING, false, "lines of {\"operation\": NAME, \"input\": {...}}" },
    END,
};

#define THE_STEP { "step_id", IN_PATH, OP_STRING, true, "the step" }
#define THE_LEASE { "lease", IN_BODY, OP_STRING, false, "the token that step.claim gave" }

static const struct op_param instance_steps_params[] = {
    THE_INSTANCE,
    { "limit", IN_QUERY, OP_INTEGER, false, "steps of a page: 1..1000; without it all of them" },
    { "after", IN_QUERY, OP_STRING, false, "the page after this `next` or step_id" },
    { "without_args", IN_QUERY, OP_STRING, false, "true: args are null; in a long history they cost the most" },
    END,
};

static const struct op_param step_list_params[] = {
    { "status", IN_QUERY, OP_STRING, false, "pending, ready, running; of one instance also done, failed, cancelled" },
    { "tool", IN_QUERY, OP_STRING, false, "of this tool" },
    { "instance_id", IN_QUERY, OP_STRING, false, "of this instance" },
    { "limit", IN_QUERY, OP_INTEGER, false, "rows of a page: 1..1000, default 100" },
    { "after", IN_QUERY, OP_STRING, false, "the page after this one's `next`" },
    END,
};

static const struct op_param claim_params[] = {
    { "tools", IN_BODY, OP_JSON, true, "a list of tools that the worker serves" },
    { "worker", IN_BODY, OP_STRING, true, "who works; a token with an actor allows only ACTOR and ACTOR/ANYTHING" },
    { "max", IN_BODY, OP_INTEGER, false, "how many at most: 1..1000, default 1" },
    { "wait", IN_BODY, OP_STRING, false, "how long to wait for one, default 0s" },
    { "lease", IN_BODY, OP_STRING, false, "how long it may take, default 120s" },
    END,
};

static const struct op_param complete_params[] = {
    THE_STEP,
    THE_LEASE,
    { "result", IN_BODY, OP_JSON, false, "what came of it" },
    END,
};

static const struct op_param fail_params[] = {
    THE_STEP,
    THE_LEASE,
    { "error", IN_BODY, OP_JSON, false, "what went wrong" },
    { "retry", IN_BODY, OP_BOOL, false, "false ends the step's attempts" },
    END,
};

static const struct op_param heartbeat_params[] = {
    THE_STEP,
    THE_LEASE,
    { "extend", IN_BODY, OP_STRING, false, "by how long; without it by the lease's own length" },
    END,
};

static const struct op_param complete_many_params[] = {
    { "steps", IN_BODY, OP_JSON, true, "a list of {step_id, lease, result} or {step_id, lease, error, retry}" },
    { "claim", IN_BODY, OP_JSON, false, "as step.claim takes it: what to work on next" },
    END,
};

static const struct op_param approve_params[] = {
    THE_STEP,
    THE_ACTOR,
    { "reason", IN_BODY, OP_STRING, false, "why, in words" },
    { "payload", IN_BODY, OP_JSON, false, "the step's result; without it \"approved\"" },
    END,
};

static const struct op_param reject_params[] = {
    THE_STEP,
    THE_ACTOR,
    { "reason", IN_BODY, OP_STRING, false, "why, in words: the step's error" },
    END,
};

static const struct op_param store_put_params[] = {
    { "store", IN_PATH, OP_STRING, true, "its name: 1..128 of A-Za-z0-9._-, a letter or digit first" },
    END,
};

static const struct op_param no_params[] = { END };

const struct op ops[] = {
    { "definition.put", "PUT", "/v1/definitions/{name}", OP_WRITES | OP_KEY_IN_RECORD | OP_TEXT_BODY,
      201,
      "Put a definition: a new version unless this very text is the newest",
      definition_put_params, op_definition_put, "define" },
    { "definition.get", "GET", "/v1/definitions/{name}", OP_QUICK | OP_FIXED, 200,
      "A definition with its text as supplied", definition_get_params, op_definition_get, "read" },
    { "definition.graph", "GET", "/v1/graphs/{name}", OP_RAW_ANSWER | OP_FIXED, 200,
      "A picture of a definition: text, Mermaid, Graphviz, SVG or JSON",
      definition_graph_params, op_definition_graph, "read" },
    { "definition.export", "GET", "/v1/export/{name}", OP_RAW_ANSWER, 200,
      "A definition as a line of an export file", definition_export_params, op_definition_export, "admin" },
    { "definition.list", "GET", "/v1/definitions", OP_ANY_QUERY, 200,
      "The newest version of every definition", definition_list_params, op_definition_list, "read" },
    { "definition.check", "POST", "/v1/definitions/check", OP_TEXT_BODY, 200,
      "Errors and warnings of a definition, with line and column; puts nothing",
      definition_check_params, op_definition_check, "define" },
    { "instance.create", "POST", "/v1/instances", OP_WRITES | OP_KEY_IN_RECORD, 201,
      "Create an instance of a definition or of an inline machine",
      create_params, op_instance_create, "write" },
    { "instance.list", "GET", "/v1/instances", OP_ANY_QUERY, 200,
      "Instances, filtered; label.K=V filters by a label", list_params, op_instance_list, "read" },
    { "instance.find", "GET", "/v1/instances/find", OP_QUICK, 200,
      "Which instance's id begins so, if only one does; or the newest", find_params, op_instance_find, "read" },
    { "instance.counts", "GET", "/v1/instances/counts", OP_ANY_QUERY, 200,
      "How many instances are in each state and status", counts_params, op_instance_counts, "read" },
    { "instance.get", "GET", "/v1/instances/{instance_id}", OP_QUICK, 200,
      "Everything about an instance, with what it can do now",
      instance_get_params, op_instance_get, "read" },
    { "instance.current", "GET", "/v1/instances/{instance_id}/current", OP_QUICK, 200,
      "The present state", one_instance_params, op_instance_current, "read" },
    { "instance.fire", "POST", "/v1/instances/{instance_id}/fire", OP_WRITES | OP_KEY_IN_RECORD, 200,
      "Fire an action of a machine", fire_params, op_instance_fire, "write" },
    { "instance.history", "GET", "/v1/instances/{instance_id}/history", OP_ANY_QUERY, 200,
      "The entries, oldest first", history_params, op_instance_history, "read" },
    { "instance.declaration", "GET", "/v1/instances/{instance_id}/declaration",
      OP_RAW_ANSWER | OP_QUICK | OP_FIXED, 200,
      "The exact bytes that were supplied", one_instance_params, op_instance_declaration, "read" },
    { "instance.why", "GET", "/v1/instances/{instance_id}/why", OP_QUICK, 200,
      "What it is waiting for", one_instance_params, op_instance_why, "read" },
    { "instance.variables", "GET", "/v1/instances/{instance_id}/variables", 0, 200,
      "The tracked variables of a code instance", one_instance_params, op_instance_variables, "read" },
    { "instance.steps", "GET", "/v1/instances/{instance_id}/steps", OP_ANY_QUERY, 200,
      "Every attempt of every step, in creation order", instance_steps_params, op_instance_steps, "read" },
    { "instance.graph", "GET", "/v1/instances/{instance_id}/graph", OP_RAW_ANSWER, 200,
      "A picture of its definition with the way it took and where it stands",
      instance_graph_params, op_instance_graph, "read" },
    { "instance.export", "GET", "/v1/instances/{instance_id}/export", OP_RAW_ANSWER, 200,
      "Its definition, its row and every record with its values and hash, a line each",
      one_instance_params, op_instance_export, "admin" },
    { "instance.cancel", "POST", "/v1/instances/{instance_id}/cancel", OP_WRITES | OP_KEY_IN_RECORD, 200,
      "Cancel by the declared transition into a cancel terminal",
      cancel_params, op_instance_cancel, "write" },
    { "instance.pause", "POST", "/v1/instances/{instance_id}/pause", OP_WRITES | OP_KEY_IN_RECORD,
      200, "Hold it: it takes nothing but cancel until it is resumed", cancel_params,
      op_instance_pause, "write" },
    { "instance.resume", "POST", "/v1/instances/{instance_id}/resume", OP_WRITES | OP_KEY_IN_RECORD,
      200, "Let a paused instance go on; what fell due meanwhile happens now", cancel_params,
      op_instance_resume, "write" },
    { "instance.amend", "POST", "/v1/instances/{instance_id}/amend", OP_WRITES | OP_KEY_IN_RECORD,
      200, "A flow under way goes on by another definition from its next step", amend_params,
      op_instance_amend, "write" },
    { "instance.redrive", "POST", "/v1/instances/{instance_id}/redrive", OP_WRITES | OP_KEY_IN_RECORD,
      201, "Run a failed or cancelled flow again from where it failed, code from its beginning, as a new instance",
      redrive_params, op_instance_redrive, "write" },
    { "instance.cancel_many", "POST", "/v1/cancel", OP_WRITES, 200,
      "Cancel every instance with a correlation id; those that cannot be are counted as refused",
      cancel_many_params, op_instance_cancel_many, "write" },
    { "instance.verify", "POST", "/v1/instances/{instance_id}/verify", 0, 200,
      "Check its records, its rows and, for a flow, its decisions",
      one_instance_params, op_instance_verify, "read" },
    { "step.list", "GET", "/v1/steps", OP_ANY_QUERY, 200,
      "Live steps of all instances, or every step of one", step_list_params, op_step_list, "read" },
    { "step.claim", "POST", "/v1/steps/claim", OP_WRITES, 200,
      "Ready steps of some tools, with a lease for each", claim_params, op_step_claim, "work" },
    { "step.complete_many", "POST", "/v1/steps/complete", OP_WRITES, 200,
      "A worker's whole turn: answers, and what to work on next",
      complete_many_params, op_step_complete_many, "work" },
    { "step.complete", "POST", "/v1/steps/{step_id}/complete", OP_WRITES | OP_KEY_IN_RECORD, 200,
      "The result of a step, by whoever holds its lease, or of an external step",
      complete_params, op_step_complete, "work" },
    { "step.fail", "POST", "/v1/steps/{step_id}/fail", OP_WRITES | OP_KEY_IN_RECORD, 200,
      "The failure of a step; its retry policy applies", fail_params, op_step_fail, "work" },
    { "step.heartbeat", "POST", "/v1/steps/{step_id}/heartbeat", OP_WRITES, 200,
      "Still working on it: the lease is extended", heartbeat_params, op_step_heartbeat, "work" },
    { "step.approve", "POST", "/v1/steps/{step_id}/approve", OP_WRITES | OP_KEY_IN_RECORD, 200,
      "Approve a gate", approve_params, op_step_approve, "write" },
    { "step.reject", "POST", "/v1/steps/{step_id}/reject", OP_WRITES | OP_KEY_IN_RECORD, 200,
      "Reject a gate: the step fails with the reason", reject_params, op_step_reject, "write" },
    { "signal.send", "POST", "/v1/instances/{instance_id}/signals", OP_WRITES | OP_KEY_IN_RECORD, 202,
      "Send a signal to an instance that awaits it", signal_params, op_signal_send, "write" },
    { "signal.broadcast", "POST", "/v1/signals", OP_WRITES, 202,
      "Send a signal to every instance that awaits or keeps it", broadcast_params, op_signal_broadcast, "write" },
    { "test.advance", "POST", "/v1/test/advance", OP_WRITES, 200,
      "Move the test clock; answers when nothing more is due", advance_params, op_test_advance, "test" },
    { "test.fire_timer", "POST", "/v1/test/instances/{instance_id}/timers/{name}/fire", OP_WRITES | OP_KEY_IN_RECORD,
      200, "Fire a timer of a test instance", fire_timer_params, op_test_fire_timer, "test" },
    { "test.signal", "POST", "/v1/test/instances/{instance_id}/signals", OP_WRITES | OP_KEY_IN_RECORD, 202,
      "Send a signal to a test instance", signal_params, op_test_signal, "test" },
    { "alarm.set", "POST", "/v1/alarms", OP_WRITES | OP_KEY_IN_RECORD, 201,
      "Do an operation later, once", alarm_set_params, op_alarm_set, "write" },
    { "alarm.cancel", "DELETE", "/v1/alarms/{alarm_id}", OP_WRITES | OP_KEY_IN_RECORD, 200,
      "Take an alarm back that has not fired", alarm_params, op_alarm_cancel, "write" },
    { "alarm.list", "GET", "/v1/alarms", 0, 200, "Alarms that have not fired, next first",
      no_params, op_alarm_list, "read" },
    { "token.create", "POST", "/v1/tokens", OP_WRITES | OP_NO_KEY, 201,
      "Make a token; its secret is told this once", token_create_params, op_token_create, "admin" },
    { "token.list", "GET", "/v1/tokens", 0, 200, "The tokens in force, without their secrets",
      no_params, op_token_list, "admin" },
    { "token.revoke", "DELETE", "/v1/tokens/{token_id}", OP_WRITES | OP_KEY_IN_RECORD, 200,
      "End a token, at once", token_params, op_token_revoke, "admin" },
    { "batch", "POST", "/v1/batch", OP_WRITES | OP_TEXT_BODY, 200,
      "Many operations, a line each; the answers in their order", batch_params, op_batch, "any" },
    { "events", "GET", "/v1/events", OP_ANY_QUERY | OP_STREAM | OP_QUICK, 200,
      "Every entry as it is recorded, as server-sent events", events_params, op_events, "read" },
    { "instance.events", "GET", "/v1/instances/{instance_id}/events",
      OP_ANY_QUERY | OP_STREAM | OP_QUICK, 200,
      "The entries of one instance as they are recorded", instance_events_params, op_events, "read" },
    { "store.list", "GET", "/v1/stores", OP_FIRST_STORE, 200, "The stores: default, and those that were put",
      no_params, op_store_list, "read" },
    { "store.put", "PUT", "/v1/stores/{store}", OP_WRITES | OP_FIRST_STORE, 201,
      "Make a store, if there is none of that name: every route is also under /v1/stores/NAME",
      store_put_params, op_store_put, "admin" },
    { "store.info", "GET", "/v1/info", 0, 200,
      "What the store is: versions, records, clock, what is overdue", no_params, op_store_info, "read" },
    { "store.sql", NULL, NULL, 0, 200, "Read-only SQL, for people at the machine itself",
      sql_params, op_store_sql, "admin" },
    { "store.verify", "POST", "/v1/verify", 0, 200,
      "Check every record of the store, or every instance of a definition",
      verify_params, op_store_verify, "admin" },
    { "metrics.get", "GET", "/metrics", OP_QUICK | OP_FIGURES, 200,
      "What has been counted, for Prometheus", no_params, op_metrics, "read" },
    { "openapi.get", "GET", "/openapi.json", OP_FIXED, 200, "All of this, as an OpenAPI document",
      no_params, op_openapi, "any" },
    { "health.get", "GET", "/healthz", OP_QUICK, 200, "Report whether the store works, and what is wrong", no_params, op_health, "none" },
    { 0 },
};
/* clang-format on */

const struct op *op_find(str name)
{
    for (const struct op *op = ops; op->name; op++)
        if (str_is(name, op->name))
            return op;
    return NULL;
}
