/* verbs.c - every verb, once. Help, parsing and dispatch are read off this table; adding a
 * verb is one row, and one function where an operation and a rendering are not enough. */
#include "surface/cli/cli.h"

/* clang-format off */
#define OPTION_ACTOR { "actor", "WHO", OPTION_TEXT, "actor_ref", "who does it" }
#define OPTION_KEY \
    { "key", "KEY", OPTION_TEXT, "idempotency_key", \
      "repeated with the same key it is done once, and answered again" }
#define OPTION_PAYLOAD \
    { "payload", "JSON", OPTION_JSON, "payload", "kept with the entry; @FILE reads a file" }

static const struct cli_option define_options[] = {
    { "name", "NAME", OPTION_TEXT, NULL, "its name, if the file does not say (one file only)" },
    OPTION_KEY,
    { 0 },
};

static const struct cli_option check_options[] = {
    { "against", "NAME", OPTION_TEXT, NULL, "is it safe for the instances of NAME (or NAME@VERSION) under way?" },
    { 0 },
};

static const struct cli_option start_options[] = {
    { "input", "JSON", OPTION_JSON, "input", "what it begins with; @FILE reads a file" },
    { "subject", "REF", OPTION_TEXT, "subject_ref", "what it is about" },
    OPTION_ACTOR,
    { "correlation", "ID", OPTION_TEXT, "correlation_id", "what belongs together" },
    { "label", "K=V", OPTION_LABEL, "labels", "a label; any number of them" },
    { "declaration", "FILE", OPTION_FILE, "declaration", "a machine of its own (JSON or YAML), instead of a DEFINITION" },
    { "metadata", "JSON", OPTION_JSON, "instance_metadata", "kept with the instance as it is; @FILE reads a file" },
    { "at", "TIME", OPTION_SINCE, "instantiated_at", "when it began, if not now; 2h: so long ago" },
    { "test", NULL, OPTION_FLAG, "test", "its timers fire only when a test says so" },
    OPTION_KEY,
    { 0 },
};

static const struct cli_option fire_options[] = {
    OPTION_ACTOR,
    { "reason", "TEXT", OPTION_TEXT, "reason", "why; kept word for word" },
    OPTION_PAYLOAD,
    { "guard", NULL, OPTION_FLAG, "guard_satisfied", "assert that the guard is satisfied" },
    { "at", "TIME", OPTION_SINCE, "fired_at", "when it happened, if not now; 2h: so long ago" },
    { "expect", "N", OPTION_NUMBER, "expected_sequence", "only if the next entry would be number N" },
    OPTION_KEY,
    { 0 },
};

static const struct cli_option broadcast_options[] = {
    { "filter", "JSON", OPTION_JSON, "filter", "only to waits with this value" },
    OPTION_PAYLOAD, OPTION_ACTOR, OPTION_KEY, { 0 }
};
static const struct cli_option signal_options[] = { OPTION_PAYLOAD, OPTION_ACTOR, OPTION_KEY, { 0 } };

static const struct cli_option amend_options[] = { OPTION_ACTOR, OPTION_KEY, { 0 } };

static const struct cli_option redrive_options[] = {
    { "definition", "NAME[@V]", OPTION_TEXT, "definition", "run this one instead, with the flow's steps repaired" },
    { "from", "STEP", OPTION_TEXT, "from", "begin at this step, not where it failed" },
    OPTION_ACTOR,
    OPTION_KEY,
    { 0 },
};

static const struct cli_option approve_options[] = {
    { "reason", "TEXT", OPTION_TEXT, "reason", "why; kept word for word" },
    { "payload", "JSON", OPTION_JSON, "payload", "the step's result; @FILE reads a file" },
    OPTION_ACTOR,
    { 0 },
};

static const struct cli_option reject_options[] = {
    { "reason", "TEXT", OPTION_TEXT, "reason", "why; kept word for word" },
    OPTION_ACTOR,
    { 0 },
};

static const struct cli_option complete_options[] = {
    { "result", "JSON", OPTION_JSON, "result", "what came of it; @FILE reads a file" },
    OPTION_KEY,
    { 0 },
};

static const struct cli_option fail_options[] = {
    { "error", "JSON", OPTION_JSON, "error", "what went wrong; @FILE reads a file" },
    OPTION_KEY,
    { 0 },
};

static const struct cli_option cancel_options[] = {
    { "correlation", "ID", OPTION_TEXT, "correlation_id", "all instances with this correlation id" },
    { "reason", "TEXT", OPTION_TEXT, "reason", "why; kept word for word" },
    OPTION_ACTOR,
    OPTION_KEY,
    { 0 },
};

#define OPTION_CONFIG \
    { "config", "FILE", OPTION_TEXT, NULL, "read this file; without it pawl.yaml, if it is here" }
#define OPTION_STUB \
    { "stub", "TOOL=ANSWER", OPTION_TEXT, NULL, \
      "what a tool answers instead: JSON, @FILE, or fail:REASON; given again: the next attempt's" }

#define OPTIONS_TRIAL \
    { "signal", "NAME[@AFTER]=JSON", OPTION_TEXT, NULL, \
      "with --test: sent once, as soon as it is awaited, or after so long (2d)" }, \
    { "fire", "ACTION[@AFTER][=JSON]", OPTION_TEXT, NULL, \
      "with --test: fired once, by the first machine that may; a child's too; its guard is satisfied" }, \
    { "complete", "STEP[@AFTER]=ANSWER", OPTION_TEXT, NULL, \
      "with --test: ends an external step, once: JSON, @FILE, or fail:REASON" }, \
    { "approve", "WHO", OPTION_TEXT, NULL, "with --test: who approves every gate; any number of them" }, \
    { "reject", "WHO", OPTION_TEXT, NULL, "with --test: who rejects every gate" }

#define OPTIONS_MODULE \
    { "module", "FILE", OPTION_TEXT, NULL, "load code types from a shared object; may be given again" }, \
    { "module-time", "MS", OPTION_NUMBER, NULL, "how long one turn of a module's code may take (5000)" }

static const struct cli_option resume_options[] = {
    { "reason", "TEXT", OPTION_TEXT, "reason", "why; kept word for word" },
    OPTION_ACTOR,
    OPTION_KEY,
    OPTION_CONFIG,
    OPTION_STUB,
    { "test", NULL, OPTION_FLAG, NULL, "of a store that `run --test` made: go on by its clock" },
    OPTIONS_TRIAL,
    OPTIONS_MODULE,
    { 0 },
};

static const struct cli_option held_options[] = {
    { "reason", "TEXT", OPTION_TEXT, "reason", "why; kept word for word" },
    OPTION_ACTOR,
    OPTION_KEY,
    { 0 },
};

static const struct cli_option list_options[] = {
    { "definition", "NAME", OPTION_TEXT, "definition", "of this definition (NAME or NAME@VERSION)" },
    { "kind", "KIND", OPTION_TEXT, "kind", "machine, flow or code" },
    { "state", "STATE", OPTION_TEXT, "state", "in this state" },
    { "status", "STATUS", OPTION_TEXT, "status", "running, waiting, paused, completed, failed, cancelled" },
    { "subject", "REF", OPTION_TEXT, "subject_ref", "about this" },
    { "correlation", "ID", OPTION_TEXT, "correlation_id", "belonging to this" },
    { "label", "K=V", OPTION_FILTER, "label.", "with this label; any number of them" },
    { "since", "TIME", OPTION_SINCE, "created_after", "created then or later; 7d: in the last 7 days" },
    { "until", "TIME", OPTION_UNTIL, "created_before", "created then or earlier; a day is included" },
    { "active", "true|false", OPTION_TEXT, "active", "true: has not ended; false: has" },
    { "ended-since", "TIME", OPTION_SINCE, "ended_after", "has ended then or later" },
    { "ended-until", "TIME", OPTION_UNTIL, "ended_before", "has ended then or earlier" },
    { "order", "ORDER", OPTION_TEXT, "order", "newest (the default) or oldest first" },
    { "limit", "N", OPTION_NUMBER, "limit", "how many, 1 to 1000" },
    { "after", "CURSOR", OPTION_TEXT, "after", "go on behind an earlier page" },
    { 0 },
};

static const struct cli_option stats_options[] = {
    { "definition", "NAME", OPTION_TEXT, "definition", "of this definition (NAME or NAME@VERSION)" },
    { 0 },
};

static const struct cli_option history_options[] = {
    { "action", "NAME", OPTION_TEXT, "action", "entries of this action" },
    { "actor", "WHO", OPTION_TEXT, "actor_ref", "by this actor" },
    { "from", "STATE", OPTION_TEXT, "from_state", "that left this state" },
    { "to", "STATE", OPTION_TEXT, "to_state", "that entered this state" },
    { "first", "N", OPTION_NUMBER, "sequence_from", "from this number on" },
    { "last", "N", OPTION_NUMBER, NULL, "the last N of them" },
    { "up-to", "N", OPTION_NUMBER, "sequence_to", "up to this number" },
    { "number", "N|N..M", OPTION_TEXT, "sequence_number", "this entry, or from one number to another" },
    { "since", "TIME", OPTION_SINCE, "fired_after", "that happened then or later; 7d: in the last 7 days" },
    { "until", "TIME", OPTION_UNTIL, "fired_before", "that happened then or earlier; a day is included" },
    { "fired", "TIME|TIME..TIME", OPTION_SPAN, "fired_at", "that happened then (a day: all of it; 7d: up to now), or from one time to another" },
    { "transition", "ID", OPTION_TEXT, "transition_id", "this one entry" },
    { "limit", "N", OPTION_NUMBER, "limit", "one page of so many: 1..1000" },
    { "after", "CURSOR", OPTION_TEXT, "after", "the page after this one" },
    { 0 },
};

static const struct cli_option show_options[] = {
    { "timeline", NULL, OPTION_FLAG, NULL, "how long each state was held, or each step took, as bars" },
    { 0 },
};

static const struct cli_option graph_options[] = {
    { "instance", "ID", OPTION_TEXT, NULL, "of this instance: the way it took, and where it stands" },
    { "format", "FORMAT", OPTION_TEXT, NULL, "text (the default), mermaid, dot, svg or json" },
    { 0 },
};

static const struct cli_option run_options[] = {
    { "input", "JSON", OPTION_JSON, "input", "what it begins with; @FILE reads a file" },
    { "subject", "REF", OPTION_TEXT, "subject_ref", "what it is about" },
    OPTION_ACTOR,
    { "correlation", "ID", OPTION_TEXT, "correlation_id", "what belongs together" },
    { "label", "K=V", OPTION_LABEL, "labels", "a label; any number of them" },
    { "name", "NAME", OPTION_TEXT, NULL, "the definition's name, if the file does not say" },
    { "with", "FILE", OPTION_TEXT, NULL, "a definition beside it, its children's; any number of them" },
    OPTION_CONFIG,
    OPTION_STUB,
    { "test", NULL, OPTION_FLAG, NULL,
      "use a virtual clock; timers fire immediately; in memory, unless --store names a store" },
    OPTIONS_MODULE,
    OPTIONS_TRIAL,
    { 0 },
};

static const struct cli_option verify_options[] = {
    { "definition", "NAME", OPTION_TEXT, NULL, "every instance of NAME or NAME@VERSION" },
    { "resume", NULL, OPTION_FLAG, NULL, "go on where a check of this store was stopped or killed" },
    { "limit", "N", OPTION_NUMBER, NULL, "stop after N records and keep the place (exit status 4)" },
    { "keep-every", "N", OPTION_NUMBER, NULL, "keep the place in FILE-verify every N records" },
    { 0 },
};

static const struct cli_option serve_options[] = {
    OPTION_CONFIG,
    { "listen", "HOST:PORT", OPTION_TEXT, NULL, "where to listen (127.0.0.1:7295; port 0: any free)" },
    { "test", NULL, OPTION_FLAG, NULL, "a virtual clock that only test.advance moves" },
    { "examples", NULL, OPTION_FLAG, NULL, "put the examples and begin a few instances" },
    { "host", "NAMES", OPTION_TEXT, NULL, "additional host names it accepts: a.example,b" },
    { "require-token", NULL, OPTION_FLAG, NULL, "callers on loopback need a token, too" },
    { "tls-cert", "FILE", OPTION_TEXT, NULL, "serve HTTPS with this certificate (PEM)" },
    { "tls-key", "FILE", OPTION_TEXT, NULL, "and its private key (PEM)" },
    { "allow-exec", NULL, OPTION_FLAG, NULL, "flows may run programs of this machine" },
    { "log-format", "FORMAT", OPTION_TEXT, NULL, "a line for each request on stderr: logfmt or json" },
    { "max-entries", "N", OPTION_NUMBER, NULL, "pause an instance that has N entries (10000000)" },
    { "max-live-steps", "N", OPTION_NUMBER, NULL, "pause an instance that needs more than N live steps (100000)" },
    OPTIONS_MODULE,
    { 0 },
};

static const struct cli_option alarm_options[] = {
    { "at", "TIME", OPTION_DUE, "at", "when; 2h: from now on, as --after says" },
    { "after", "DURATION", OPTION_TEXT, "after", "or how long from now: 30s, 5m, 7d" },
    { "input", "JSON", OPTION_JSON, "input", "the operation's input, instance_id and all" },
    OPTION_KEY,
    { 0 },
};

static const struct cli_option sql_options[] = {
    { "timeout", "DURATION", OPTION_TEXT, "timeout", "stop the statement after this; default 30s" },
    { 0 },
};

static const struct cli_option doctor_options[] = {
    { "full", NULL, OPTION_FLAG, NULL, "read the whole file, however large it is" },
    { "rebuild", NULL, OPTION_FLAG, NULL, "make the rows that follow from the history anew; nobody may own the store" },
    { "accept-head", NULL, OPTION_FLAG, NULL, "accept the history as it is now, though FILE-head remembers another; the store must have no owner" },
    { "accept-clock", NULL, OPTION_FLAG, NULL, "set a store's clock that is ahead to this machine's; the store must have no owner" },
    { 0 },
};

static const struct cli_option export_options[] = {
    { "definitions", NULL, OPTION_FLAG, NULL, "definitions alone, every version" },
    { "output", "FILE", OPTION_TEXT, NULL, "into this file, not to standard output" },
    { 0 },
};

static const struct cli_option token_options[] = {
    { "scope", "LIST", OPTION_TEXT, "scopes", "read, write, work, define, test, admin, all; write:order: of order only" },
    { "expires", "DURATION", OPTION_TEXT, "expires", "after this; default 90d" },
    { "actor", "WHO", OPTION_TEXT, "actor", "everything done with it is done by WHO; it cannot name another" },
    { "name", "TEXT", OPTION_TEXT, "name", "whose it is, for people" },
    { 0 },
};

static const struct cli_option demo_options[] = {
    { "fast", NULL, OPTION_FLAG, NULL, "without pauses for reading" },
    { "keep", NULL, OPTION_FLAG, NULL, "leave its folder where it is" },
    { 0 },
};

#define BEGIN "Begin"
#define WORK  "Work with instances"
#define LOOK  "Look"
#define TRUST "Trust, and serve"
#define MANY  CLI_OPERANDS_MAX

const struct verb verbs[] = {
    { "init", BEGIN, "", 0, 0, "create the store", NULL,
      "pawl init\npawl --store sqlite:orders.db init\n", .run = verb_init },
    { "demo", BEGIN, "", 0, 0, "see all of it in a minute, in a folder of its own", demo_options,
      "pawl demo\n", .run = verb_demo },
    { "check", BEGIN, "FILE...", 1, MANY, "check definitions without storing them", check_options,
      "pawl check examples/order.yaml\npawl check new-order.yaml --against order\n", .run = verb_check },
    { "define", BEGIN, "FILE...", 1, MANY, "put definitions (YAML or JSON) into the store", define_options,
      "pawl define examples/order.yaml\npawl define draft.yaml --name order\n", .run = verb_define },
    { "run", BEGIN, "FILE|NAME", 1, 1,
      "start a file's definition, one of the store or a code type, run it to its end here", run_options,
      "pawl run examples/report.yaml --input '{\"month\":\"May\"}'    exit 0 by success, 1 otherwise\n"
      "pawl run countdown --input '{\"from\":3,\"every\":\"1s\"}'    a name, unless there is a file called so\n"
      "pawl run counter --module ./flows.so --test\n"
      "pawl run examples/payment.yaml --test --signal paid='{\"amount\":12}'\n"
      "pawl run examples/trip.yaml --with examples/booking.yaml --test --fire confirm --fire confirm@1d\n"
      "pawl run examples/research.yaml --stub knowledge_search=fail:busy --stub knowledge_search='[]' ...\n",
      "instance.create", .run = verb_run },

    { "start", WORK, "[DEFINITION]", 0, 1, "create an instance", start_options,
      "pawl start order --subject A-17 --actor ann\npawl start order@1 --label region=eu\n"
      "pawl start --declaration batch.json --metadata '{\"batch\":7}' --at 2026-05-01T09:30:00Z\n"
      "pawl start countdown --input '{\"from\":3,\"every\":\"1s\"}'\n",
      "instance.create", { "definition" }, .run = verb_start },
    { "fire", WORK, "ID ACTION", 2, 2, "fire an action of a machine", fire_options,
      "pawl fire @last pay --actor ann\npawl fire @last release --guard --reason 'batch 7 is good'\n",
      "instance.fire", { "instance_id", "action" }, .render = render_fired },
    { "signal", WORK, "ID NAME", 2, 2, "send a signal to a flow or code instance", signal_options,
      "pawl signal @last add --payload 5\npawl signal @last stop\n",
      "signal.send", { "instance_id", "name" }, .render = render_signalled },
    { "broadcast", WORK, "NAME", 1, 1, "send a signal to every instance that awaits or keeps it", broadcast_options,
      "pawl broadcast day-over\npawl broadcast kill --filter '\"wolf\"' --payload 1\n",
      "signal.broadcast", { "name" }, .render = render_signalled },
    { "approve", WORK, "STEP_ID", 1, 1, "approve a gate of a flow; an ID, if one gate of it waits", approve_options,
      "pawl approve @last --actor ann\npawl approve 7.1 --actor ann       step 1 of instance number 7\n",
      "step.approve", { "step_id" }, .render = render_status },
    { "reject", WORK, "STEP_ID", 1, 1, "reject a gate of a flow: its step fails", reject_options,
      "pawl reject @last --actor ann --reason 'too dear'\n",
      "step.reject", { "step_id" }, .render = render_status },
    { "complete", WORK, "STEP_ID", 1, 1, "give the result of an external step", complete_options,
      "pawl complete @last --result '{\"signed\":true}'\npawl complete 7.1 --result 3\n",
      "step.complete", { "step_id" }, .render = render_status },
    { "fail", WORK, "STEP_ID", 1, 1, "say that an external step failed; its retries apply", fail_options,
      "pawl fail 7.1 --error '\"no ink\"'\n",
      "step.fail", { "step_id" }, .render = render_status },
    { "cancel", WORK, "[ID]", 0, 1, "cancel an instance, or all that belong together", cancel_options,
      "pawl cancel @last --reason 'no longer wanted'\npawl cancel --correlation C-9\n",
      "instance.cancel", { "instance_id" }, .run = verb_cancel },
    { "pause", WORK, "ID", 1, 1, "hold an instance until resume; end the programs of its idempotent steps", held_options,
      "pawl pause @last --reason audit\n",
      "instance.pause", { "instance_id" }, .render = render_status },
    { "resume", WORK, "ID", 1, 1, "clear a pause, go on and run it to its end here", resume_options,
      "pawl resume @last\n", NULL, { "instance_id" }, .run = verb_resume },

    { "amend", WORK, "ID DEFINITION", 2, 2, "let a running flow go on by another version", amend_options,
      "pawl amend @last research\npawl amend @last research@3 --actor ann\n",
      "instance.amend", { "instance_id", "definition" }, .render = render_amended },

    { "redrive", WORK, "ID", 1, 1, "run a failed flow again from where it failed, code from its beginning", redrive_options,
      "pawl redrive @last\npawl redrive @last --definition research@3 --from summarize\n", "instance.redrive", { "instance_id" }, .run = verb_start },

    { "alarm", WORK, "set|list|cancel [OPERATION|ID]", 1, 2, "do an operation later, once", alarm_options,
      "pawl alarm set instance.fire --after 5m --input '{\"instance_id\":\"0000...\",\"action\":\"pay\"}'\n"
      "pawl alarm list\n", .run = verb_alarm },

    { "list", LOOK, "", 0, 0, "list instances, newest first", list_options,
      "pawl list\npawl list --status waiting --definition order --label region=eu\npawl list --since yesterday\n",
      "instance.list", .render = render_list },
    { "stats", LOOK, "", 0, 0, "count instances by status and by state", stats_options,
      "pawl stats\npawl stats --definition order\n",
      "instance.counts", .render = render_counts },
    { "show", LOOK, "ID", 1, 1, "see one instance: where it stands, how it came there, what next", show_options,
      "pawl show @last\npawl show 7\npawl show @last --timeline\n",
      "instance.get", { "instance_id" }, .run = verb_show },
    { "current", LOOK, "ID", 1, 1, "print the present state", NULL,
      "pawl current @last\n", "instance.current", { "instance_id" }, .render = render_current },
    { "declaration", LOOK, "ID", 1, 1, "print the declaration it was created with, byte for byte", NULL,
      "pawl declaration @last > declaration.json\n", "instance.declaration", { "instance_id" }, .run = verb_declaration },
    { "history", LOOK, "ID", 1, 1, "read what was recorded", history_options,
      "pawl history @last\npawl history @last --last 5\npawl history @last --number 3..7\n"
      "pawl history @last --actor ann --since 2026-05-01\npawl history @last --since 2h\n",
      "instance.history", { "instance_id" }, .run = verb_history },
    { "why", LOOK, "ID", 1, 1, "ask what an instance waits for", NULL,
      "pawl why @last\n", "instance.why", { "instance_id" }, .render = render_why },
    { "watch", LOOK, "[ID]", 0, 1, "see what happens as it happens, of all instances or of one", NULL,
      "pawl watch                    until Ctrl-C or q\n"
      "pawl watch @last              until it ends: exit 0 by success, 1 otherwise\n"
      "pawl watch | grep pay         off a terminal: a line for each entry\n",
      .run = verb_watch },
    { "graph", LOOK, "[NAME|FILE]", 0, 1, "draw a definition, or the way an instance took", graph_options,
      "pawl graph order\npawl graph examples/order.yaml --format svg > order.svg\n"
      "pawl graph --instance @last --format mermaid\n", .run = verb_graph },
    { "sql", LOOK, "QUERY", 1, 1, "read the store's tables and views with SQL", sql_options,
      "pawl sql 'select name, version from pawl_definitions'\n"
      "pawl sql 'select count(*) from pawl_history'\n"
      "pawl sql --timeout 10m 'select actor_ref, count(*) from pawl_history group by 1'\n",
      "store.sql", { "text" }, .run = verb_sql },

    { "verify", TRUST, "[ID]", 0, 1,
      "check an instance, a definition's, or the whole store", verify_options,
      "pawl verify\npawl verify @last\npawl verify --definition order@2\n"
      "pawl verify --resume               after Ctrl-C, or a kill\n"
      "pawl verify --resume --limit 100000    a slice a night: 0 valid, 1 not, 4 not yet\n",
      NULL, { "instance_id" }, .run = verb_verify },
    { "doctor", TRUST, "", 0, 0, "look after the store: owner, disk, clock, versions, integrity", doctor_options,
      "pawl doctor\npawl doctor --rebuild\npawl doctor --accept-head          after an older copy was restored\npawl doctor --accept-clock\n", .run = verb_doctor },
    { "export", TRUST, "[ID...]", 0, MANY, "definitions, and instances with their history and hashes, as lines", export_options,
      "pawl export --output store.ndjson\npawl export @last > one.ndjson\npawl export --definitions\n", .run = verb_export },
    { "import", TRUST, "FILE", 1, 1, "take an export in; ids and hashes stay what they are", NULL,
      "pawl --store sqlite:copy.db import store.ndjson\npawl export | pawl --store sqlite:copy.db import -\n", .run = verb_import },
    { "token", TRUST, "create|list|revoke [ID]", 1, 2, "who may call the server from elsewhere", token_options,
      "pawl token create --scope read,write:order --expires 30d\npawl token revoke 0123456789abcdef\n",
      .run = verb_token },
    { "stores", TRUST, "[list | create NAME]", 0, 2, "the stores of a server or a file; make one", NULL,
      "pawl stores\npawl stores create tenant-7\n"
      "pawl --store http://127.0.0.1:7295/v1/stores/tenant-7 list    through a server\n"
      "pawl --store sqlite:pawl.db-stores/tenant-7.db list           its file\n",
      .run = verb_stores },
    { "completion", TRUST, "bash|zsh|fish", 1, MANY, "a script that completes verbs, options, names and ids", NULL,
      "pawl completion zsh > ~/.zsh/functions/_pawl\n"
      "pawl completion fish > ~/.config/fish/completions/pawl.fish\neval \"$(pawl completion bash)\"\n", .run = verb_completion },
    { "serve", TRUST, "", 0, 0, "own the store and serve it over HTTP", serve_options,
      "pawl serve\npawl --store sqlite:orders.db serve --listen 127.0.0.1:8000\n"
      "kill -HUP PID                 # of the server: load its modules again\n", .run = verb_serve },
    { 0 },
};
/* clang-format on */

const struct verb *verb_find(const char *name)
{
    for (const struct verb *verb = verbs; verb->name; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}
