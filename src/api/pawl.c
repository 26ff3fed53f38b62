/* pawl.c - pawl.h's functions: validate, open a scope, call the engine.
 *
 * Nothing is decided here. Texts that end in NUL become views; results become texts that live
 * as long as the header says. */
#include "api/api.h"
#include "api/key.h"
#include "base/limits.h"
#include "base/node.h"
#include "base/time.h"
#include "tool/tool.h"
#include <stdio.h>

/* ---- Definitions ---- */

pawl_status pawl_define(pawl *p, const char *text, size_t size, pawl_defined *out,
                        pawl_error *error)
{
    struct scope scope;
    struct defined defined;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(text));

    if (status)
        return status;
    api_enter(p, &scope);
    status = engine_define(p->engine, &scope, STR_NONE, (str){ text, size }, NULL, &defined);
    if (!status && out) {
        *out = (pawl_defined){ .version = defined.version, .is_new = defined.is_new };
        sha_hex(defined.sha256, SHA_SIZE, out->sha256);
        snprintf(out->name, sizeof out->name, "%.*s", STR_ARG(defined.name));
    }
    return api_leave(&scope, status, error);
}

/* ---- Instances ---- */

/* null, missing and "" count as not supplied (D27). */
static str supplied(const char *text)
{
    return text && *text ? str_of(text) : STR_NONE;
}

static pawl_status check_utf8(struct scope *scope, const char *what, str text)
{
    if (!text.data || str_is_utf8(text, false))
        return PAWL_OK;
    return scope_fail(scope, PAWL_INVALID_REQUEST, "%s: expected UTF-8, found other bytes", what);
}

static pawl_status check_ref(struct scope *scope, const char *what, str text)
{
    pawl_status status = check_utf8(scope, what, text);

    if (status || !text.data)
        return status;
    if (str_is_blank(text))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "%s: expected a name, found only white space", what);
    return PAWL_OK;
}

static pawl_status check_json(struct scope *scope, const char *what, str text, bool is_object)
{
    struct node *node;
    pawl_status status = PAWL_OK;

    if (!text.data)
        return PAWL_OK;
    status = node_read_json(scope, text, &node);
    if (status == PAWL_INVALID_REQUEST) {
        char words[300];

        snprintf(words, sizeof words, "%.*s", 280, scope->error.message);
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s: %s", what, words);
    }
    if (!status && is_object && node->kind != NODE_OBJECT)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "%s: expected an object, found %s", what,
                          node_kind_name(node->kind));
    return status;
}

static pawl_status check_labels(struct scope *scope, str text)
{
    struct node *node, *member;
    pawl_status status = check_json(scope, "labels", text, true);

    if (status || !text.data)
        return status;
    status = node_read_json(scope, text, &node);
    for (member = status ? NULL : node->first; member; member = member->next)
        if (member->kind != NODE_STRING)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "labels.%.*s: expected a string, found %s", STR_ARG(member->key),
                              node_kind_name(member->kind));
    return status;
}

/* Metadata that says nothing is a mistake (D5). */
static pawl_status check_metadata(struct scope *scope, str text)
{
    struct node *node;
    pawl_status status = check_json(scope, "instance_metadata", text, false);

    if (status || !text.data)
        return status;
    status = node_read_json(scope, text, &node);
    if (!status && !node->first &&
        (node->kind == NODE_OBJECT || node->kind == NODE_ARRAY ||
         (node->kind == NODE_STRING && node->text.size == 0)))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "instance_metadata is empty: leave it out, or say something");
    return status;
}

static pawl_status read_time(struct scope *scope, const char *what, const char *text, bool *has,
                             int64_t *out)
{
    *has = text && *text;
    if (*has && !time_parse(str_of(text), out))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "%s: expected a time like 2026-05-01T00:00:00Z, found '%.40s'", what,
                          text);
    return PAWL_OK;
}

/* A bad value is reported in its place: after a bad declaration (D14). */
static void create_args_of(struct scope *scope, const pawl_create_args *from,
                           struct create_args *out)
{
    pawl_status status;

    *out = (struct create_args){ .definition = str_of(from->definition),
                                 .declaration = str_of(from->declaration),
                                 .input = supplied(from->input),
                                 .labels = supplied(from->labels),
                                 .metadata = supplied(from->instance_metadata),
                                 .actor = supplied(from->actor_ref),
                                 .subject = supplied(from->subject_ref),
                                 .correlation = supplied(from->correlation_id),
                                 .test = from->test };
    status = check_json(scope, "input", out->input, false);
    if (!status)
        status = check_metadata(scope, out->metadata);
    if (!status)
        status = check_labels(scope, out->labels);
    if (!status)
        status = check_ref(scope, "actor_ref", out->actor);
    if (!status)
        status = check_ref(scope, "subject_ref", out->subject);
    if (!status)
        status = check_ref(scope, "correlation_id", out->correlation);
    if (!status)
        status = read_time(scope, "instantiated_at", from->instantiated_at,
                           &out->has_instantiated_at, &out->instantiated_at_ms);
    out->late_status = status;
    out->late_words = status ? arena_text(&scope->arena, str_of(scope->error.message)) : NULL;
}

#define TEXT_MEMBER(name, text)                                                                    \
    {                                                                                              \
        STR_INIT(name), supplied(text), true                                                       \
    }
#define JSON_MEMBER(name, text)                                                                    \
    {                                                                                              \
        STR_INIT(name), supplied(text), false                                                      \
    }
#define MEMBER_COUNT(members) (uint32_t)(sizeof(members) / sizeof *(members))

static pawl_status create_key(struct scope *scope, const pawl_create_args *args,
                              struct create_args *out)
{
    struct key_member members[] = {
        TEXT_MEMBER("definition", args->definition),
        JSON_MEMBER("declaration", args->declaration),
        JSON_MEMBER("input", args->input),
        TEXT_MEMBER("actor_ref", args->actor_ref),
        TEXT_MEMBER("subject_ref", args->subject_ref),
        TEXT_MEMBER("correlation_id", args->correlation_id),
        JSON_MEMBER("labels", args->labels),
        JSON_MEMBER("instance_metadata", args->instance_metadata),
        TEXT_MEMBER("instantiated_at", args->instantiated_at),
        JSON_MEMBER("test", args->test ? "true" : NULL),
    };

    if (!args->idempotency_key)
        return PAWL_OK;
    return key_of_members(scope, STR_NONE, str_of(args->idempotency_key), "instance.create",
                          members, MEMBER_COUNT(members), &out->key);
}

pawl_status pawl_create(pawl *p, const pawl_create_args *args, pawl_id *out, pawl_error *error)
{
    struct scope scope;
    struct create_args create;
    struct created created;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(args), GIVEN(out));

    if (status)
        return status;
    api_enter(p, &scope);
    create_args_of(&scope, args, &create);
    status = create_key(&scope, args, &create);
    if (!status)
        status = engine_create(p->engine, &scope, &create, &created);
    if (!status)
        memcpy(out->text, created.id, sizeof out->text);
    return api_leave(&scope, status, error);
}

static pawl_status fire_key(struct scope *scope, const char *id, const pawl_fire_args *args,
                            struct fire_args *out)
{
    char expected[24];
    struct key_member members[] = {
        TEXT_MEMBER("instance_id", id),
        TEXT_MEMBER("action", args->action),
        TEXT_MEMBER("actor_ref", args->actor_ref),
        JSON_MEMBER("guard_satisfied", args->guard_satisfied ? "true" : NULL),
        TEXT_MEMBER("fired_at", args->fired_at),
        TEXT_MEMBER("reason", args->reason),
        JSON_MEMBER("payload", args->payload),
        { STR_INIT("expected_sequence"), STR_NONE, false },
    };

    if (!args->idempotency_key)
        return PAWL_OK;
    snprintf(expected, sizeof expected, "%llu", (unsigned long long)args->expected_sequence);
    members[7].value = args->expected_sequence ? str_of(expected) : STR_NONE;
    return key_of_members(scope, STR_NONE, str_of(args->idempotency_key), "instance.fire", members,
                          MEMBER_COUNT(members), &out->key);
}

/* What is wrong with attribution and time is reported in its place, after the others. */
static void fire_args_of(struct scope *scope, const char *id, const pawl_fire_args *from,
                         struct fire_args *out)
{
    pawl_status status;

    *out = (struct fire_args){ .id = str_of(id),
                               .action = str_of(from->action),
                               .actor = supplied(from->actor_ref),
                               .reason = supplied(from->reason),
                               .payload = supplied(from->payload),
                               .guard_satisfied = from->guard_satisfied,
                               .has_expected = from->expected_sequence != 0,
                               .expected_sequence = from->expected_sequence > INT64_MAX
                                                        ? INT64_MAX
                                                        : (int64_t)from->expected_sequence };
    if (out->reason.data && str_is_blank(out->reason))
        out->reason = STR_NONE;
    status = check_ref(scope, "actor_ref", out->actor);
    if (!status)
        status = check_utf8(scope, "reason", out->reason);
    if (!status)
        status =
            read_time(scope, "fired_at", from->fired_at, &out->has_fired_at, &out->fired_at_ms);
    if (!status)
        status = check_json(scope, "payload", out->payload, false);
    out->late_status = status;
    out->late_words = status ? arena_text(&scope->arena, str_of(scope->error.message)) : NULL;
}

static void fired_of(const struct fired *from, pawl_fired *out)
{
    *out = (pawl_fired){ .new_state = from->new_state.data, .sequence_number = from->seq };
    _Static_assert(sizeof from->transition_id == sizeof out->transition_id, "one size");
    memcpy(out->transition_id, from->transition_id, sizeof out->transition_id);
}

pawl_status pawl_fire(pawl *p, const char *id, const pawl_fire_args *args, pawl_fired *out,
                      pawl_error *error)
{
    struct scope scope;
    struct fire_args fire;
    struct fired fired;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(args));

    if (status)
        return status;
    api_enter(p, &scope);
    fire_args_of(&scope, id, args, &fire);
    status = fire_key(&scope, id, args, &fire);
    if (!status)
        status = engine_fire(p->engine, &scope, &fire, &fired);
    if (!status && out)
        fired_of(&fired, out);
    return api_leave(&scope, status, error);
}

static pawl_status batch_keys(struct scope *scope, const pawl_batch_fire *fires,
                              struct batch_fire *out, size_t count)
{
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < count && !status; i++)
        status = fire_key(scope, fires[i].id, &fires[i].args, &out[i].args);
    return status;
}

#define IDS_AHEAD 16

pawl_status pawl_fire_batch(pawl *p, pawl_batch_fire *fires, size_t count, pawl_error *error)
{
    struct scope scope;
    struct batch_fire *batch;
    pawl_status status = API_NEED(error, GIVEN(p), { "fires", fires || count == 0 });

    if (status)
        return status;
    api_enter(p, &scope);
    if (count > LIMIT_BATCH)
        return api_leave(&scope,
                         scope_fail(&scope, PAWL_TOO_LARGE,
                                    "expected at most %u fires in a batch, found %zu", LIMIT_BATCH,
                                    count),
                         error);
    batch = ARENA_ARRAY(&scope.arena, struct batch_fire, count + 1);
    if (!batch)
        return api_leave(&scope, scope_no_memory(&scope), error);
    for (size_t i = 0; i < count; i++) {
        if (i + IDS_AHEAD < count) /* ids lie anywhere: waiting for each would take longest */
            __builtin_prefetch(fires[i + IDS_AHEAD].id);
        fire_args_of(&scope, fires[i].id, &fires[i].args, &batch[i].args);
    }
    status = batch_keys(&scope, fires, batch, count);
    if (!status)
        status = engine_fire_batch(p->engine, &scope, batch, count);
    for (size_t i = 0; i < count && !status; i++) {
        fires[i].status = batch[i].status;
        if (!batch[i].status)
            fired_of(&batch[i].fired, &fires[i].fired);
    }
    return api_leave(&scope, status, error);
}

/* Like fire: what is wrong with the values comes after what the instance says to it. */
static void cancel_args_of(struct scope *scope, const char *id, const char *actor_ref,
                           const char *reason, struct fire_args *out)
{
    pawl_status status;

    *out = (struct fire_args){ .id = str_of(id), .actor = supplied(actor_ref), .is_cancel = true };
    if (reason && !str_is_blank(str_of(reason)))
        out->reason = str_of(reason);
    status = check_ref(scope, "actor_ref", out->actor);
    if (!status)
        status = check_utf8(scope, "reason", out->reason);
    out->late_status = status;
    out->late_words = status ? arena_text(&scope->arena, str_of(scope->error.message)) : NULL;
}

pawl_status pawl_cancel(pawl *p, const char *id, const char *actor_ref, const char *reason,
                        pawl_fired *out, pawl_error *error)
{
    struct scope scope;
    struct fire_args cancel;
    struct fired fired;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(id));

    if (status)
        return status;
    api_enter(p, &scope);
    cancel_args_of(&scope, id, actor_ref, reason, &cancel);
    status = engine_fire(p->engine, &scope, &cancel, &fired);
    if (!status && out)
        fired_of(&fired, out);
    return api_leave(&scope, status, error);
}

pawl_status pawl_signal(pawl *p, const char *id, const char *name, const char *payload,
                        const char *actor_ref, pawl_error *error)
{
    struct scope scope;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(name));

    if (status)
        return status;
    api_enter(p, &scope);
    status = check_json(&scope, "payload", supplied(payload), false);
    if (!status)
        status = engine_signal(p->engine, &scope, str_of(id), str_of(name), supplied(payload),
                               supplied(actor_ref), NULL);
    return api_leave(&scope, status, error);
}

pawl_status pawl_current(pawl *p, const char *id, const char **out, pawl_error *error)
{
    struct scope scope;
    str state;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(out));

    if (status)
        return status;
    api_enter(p, &scope);
    status = engine_current(p->engine, &scope, str_of(id), &state);
    if (!status)
        *out = state.data;
    return api_leave(&scope, status, error);
}

/* ---- Tools, time ---- */

pawl_status pawl_tool_register(pawl *p, const char *name, pawl_tool_fn fn, void *context,
                               pawl_error *error)
{
    pawl_error unused;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(name), { "fn", fn != NULL });

    if (!status)
        status =
            toolbox_register(engine_toolbox(p->engine), name, fn, context, error ? error : &unused);
    if (!status)
        engine_tools_changed(p->engine);
    return status;
}

int64_t pawl_next_due(pawl *p)
{
    const struct panic_hook *outer;
    int64_t left_ms;

    if (!p)
        return -1;
    outer = panic_set(&p->panic);
    left_ms = engine_next_due_ms(p->engine);
    panic_set(outer);
    return left_ms;
}

int pawl_fd(pawl *p)
{
    const struct panic_hook *outer;
    int fd;

    if (!p)
        return -1;
    outer = panic_set(&p->panic);
    fd = engine_bell(p->engine);
    panic_set(outer);
    return fd;
}

pawl_status pawl_run_due(pawl *p, pawl_error *error)
{
    struct scope scope;
    pawl_status status = API_NEED(error, GIVEN(p));

    if (status)
        return status;
    api_enter(p, &scope);
    return api_leave(&scope, engine_run_due(p->engine, &scope), error);
}

pawl_status pawl_test_advance(pawl *p, int64_t by_ms, pawl_error *error)
{
    struct scope scope;
    pawl_status status = API_NEED(error, GIVEN(p));

    if (status)
        return status;
    api_enter(p, &scope);
    return api_leave(&scope, engine_advance(p->engine, &scope, by_ms), error);
}

pawl_status pawl_test_fire_timer(pawl *p, const char *id, const char *name, pawl_error *error)
{
    struct scope scope;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(name));

    if (status)
        return status;
    api_enter(p, &scope);
    return api_leave(&scope, engine_fire_timer(p->engine, &scope, str_of(id), str_of(name), NULL),
                     error);
}

/* Texts handed over hold no NUL but their last byte, so that their size is known. */
void pawl_free(pawl *p, void *text)
{
    if (p && text)
        heap_free(&p->heap, text, strlen(text) + 1);
}
