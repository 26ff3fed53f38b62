/* pawl.c - pawl.h's functions: validate, open a scope, call the engine.
 *
 * Nothing is decided here. Texts that end in NUL become views; results become texts that live
 * as long as the header says. */
#include "api/shards.h"
#include "api/typed_args.h"
#include "api/world.h"
#include "base/limits.h"
#include "store/sqlite.h"
#include "tool/tool.h"
#include <stdio.h>

/* ---- Definitions ---- */

pawl_status pawl_define(pawl *p, const char *text, size_t size, pawl_defined *out,
                        pawl_error *error)
{
    struct scope scope;
    struct defined defined;
    pawl_status status;

    TRY(API_NEED(error, GIVEN(p), GIVEN(text)));
    api_enter(p, &scope);
    status = engine_define(p->engine, &scope, STR_NONE, (str){ text, size }, STR_NONE, NULL,
                           &defined);
    if (!status && out) {
        *out = (pawl_defined){ .version = defined.version, .is_new = defined.is_new };
        sha_hex(defined.sha256, SHA_SIZE, out->sha256);
        snprintf(out->name, sizeof out->name, "%.*s", STR_ARG(defined.name));
    }
    return api_leave(&scope, status, error);
}

/* ---- Instances ---- */

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

static pawl_status check_fire(struct scope *scope, const pawl_fire_args *from,
                              struct fire_args *out)
{
    struct node *payload;

    TRY(check_ref(scope, "actor_ref", out->actor));
    TRY(check_utf8(scope, "reason", supplied(from->reason)));
    TRY(defect_status(scope, time_defect(scope, "fired_at", str_of(from->fired_at),
                                         &out->has_fired_at, &out->fired_at_ms)));
    return check_json(scope, "payload", out->payload, &payload);
}

/* What is wrong with attribution and time is reported in its place, after the others. */
static void fire_args_of(struct scope *scope, const char *id, const pawl_fire_args *from,
                         struct fire_args *out)
{
    *out = (struct fire_args){ .id = str_of(id),
                               .action = str_of(from->action),
                               .actor = supplied(from->actor_ref),
                               .reason = told(supplied(from->reason)),
                               .payload = supplied(from->payload),
                               .guard_satisfied = from->guard_satisfied,
                               .has_expected = from->expected_sequence != 0,
                               .expected_sequence = from->expected_sequence > INT64_MAX
                                                        ? INT64_MAX
                                                        : (int64_t)from->expected_sequence };
    out->late_status = check_fire(scope, from, out);
    out->late_words = late_words(scope, out->late_status);
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
    pawl_status status;

    TRY(API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(args)));
    api_enter(p, &scope);
    fire_args_of(&scope, id, args, &fire);
    status = fire_key(&scope, id, args, &fire);
    if (!status)
        status = engine_fire(shard_of_id(p, fire.id)->engine, &scope, &fire, &fired);
    if (!status && out)
        fired_of(&fired, out);
    return api_leave(&scope, status, error);
}

#define IDS_AHEAD 16

pawl_status pawl_fire_batch(pawl *p, pawl_batch_fire *fires, size_t count, pawl_error *error)
{
    struct scope scope;
    struct batch_fire *batch;
    pawl_status status = PAWL_OK;

    TRY(API_NEED(error, GIVEN(p), { "fires", fires || count == 0 }));
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
    for (size_t i = 0; i < count && !status; i++)
        status = fire_key(&scope, fires[i].id, &fires[i].args, &batch[i].args);
    if (!status)
        status = shards_fire(p, &scope, batch, count);
    for (size_t i = 0; i < count && !status; i++) {
        fires[i].status = batch[i].status;
        if (!batch[i].status)
            fired_of(&batch[i].fired, &fires[i].fired);
    }
    return api_leave(&scope, status, error);
}

pawl_status pawl_cancel(pawl *p, const char *id, const char *actor_ref, const char *reason,
                        pawl_fired *out, pawl_error *error)
{
    struct scope scope;
    struct fire_args cancel;
    struct fired fired;
    pawl_status status;

    TRY(API_NEED(error, GIVEN(p), GIVEN(id)));
    api_enter(p, &scope);
    fire_args_of(&scope, id, &(pawl_fire_args){ .actor_ref = actor_ref, .reason = reason },
                 &cancel);
    cancel.is_cancel = true;
    status = engine_fire(shard_of_id(p, cancel.id)->engine, &scope, &cancel, &fired);
    if (!status && out)
        fired_of(&fired, out);
    return api_leave(&scope, status, error);
}

pawl_status pawl_signal(pawl *p, const char *id, const char *name, const char *payload,
                        const char *actor_ref, pawl_error *error)
{
    struct scope scope;
    struct node *node;
    const char *late; /* what is wrong with the actor is reported when nothing else is */
    bool is_kept;
    pawl_status status;

    TRY(API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(name)));
    api_enter(p, &scope);
    late = late_words(&scope, check_ref(&scope, "actor_ref", supplied(actor_ref)));
    status = check_json(&scope, "payload", supplied(payload), &node);
    if (!status)
        status = check_utf8(&scope, "name", str_of(name));
    if (!status)
        status = engine_signal(shard_of_id(p, str_of(id))->engine, &scope, str_of(id), str_of(name),
                               supplied(payload), supplied(actor_ref), late, NULL, &is_kept);
    return api_leave(&scope, status, error);
}

pawl_status pawl_current(pawl *p, const char *id, const char **out, pawl_error *error)
{
    struct scope scope;
    str state;
    pawl_status status;

    TRY(API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(out)));
    api_enter(p, &scope);
    status = engine_current(shard_of_id(p, str_of(id))->engine, &scope, str_of(id), &state);
    if (!status)
        *out = state.data;
    return api_leave(&scope, status, error);
}

static pawl_status read_declaration(pawl *p, struct scope *scope, const char *id, char **out,
                                    size_t *size)
{
    str text;

    TRY(engine_declaration(shard_of_id(p, str_of(id))->engine, scope, str_of(id), &text));
    *out = heap_new(&p->heap, text.size + 1);
    TRY_MEMORY(scope, *out);
    memcpy(*out, text.data, text.size);
    if (size)
        *size = text.size;
    return PAWL_OK;
}

pawl_status pawl_declaration(pawl *p, const char *id, char **out, size_t *size, pawl_error *error)
{
    struct scope scope;
    pawl_status status = API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(out));

    if (out)
        *out = NULL;
    if (status)
        return status;
    api_enter(p, &scope);
    return api_leave(&scope, read_declaration(p, &scope, id, out, size), error);
}

/* ---- Tools, time ---- */

pawl_status pawl_tool_register(pawl *p, const char *name, pawl_tool_fn fn, void *context,
                               pawl_error *error)
{
    pawl_error unused;

    TRY(API_NEED(error, GIVEN(p), GIVEN(name), { "fn", fn != NULL }));
    for (uint32_t i = 0; i < shards_count(p); i++) {
        struct engine *engine = shard_at(p, i)->engine;

        TRY(toolbox_register(engine_toolbox(engine), name, fn, context, error ? error : &unused));
        engine_tools_changed(engine);
    }
    return PAWL_OK;
}

int64_t pawl_next_due(pawl *p)
{
    const struct panic_hook *outer;
    int64_t left_ms;

    if (!p || reduce_is_under_way())
        return -1;
    outer = panic_set(&p->panic);
    left_ms = shards_next_due_ms(p);
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
    fd = shards_fd(p);
    panic_set(outer);
    return fd;
}

pawl_status pawl_run_due_within(pawl *p, uint32_t budget, pawl_error *error)
{
    struct scope scope;
    pawl_status status = PAWL_OK;

    TRY(API_NEED(error, GIVEN(p)));
    api_enter(p, &scope);
    for (uint32_t i = 0; i < shards_count(p) && status == PAWL_OK; i++)
        status = engine_tick(shard_at(p, i)->engine, &scope, budget, NULL);
    return api_leave(&scope, status, error);
}

pawl_status pawl_run_due(pawl *p, pawl_error *error)
{
    TRY(API_NEED(error, GIVEN(p)));
    return pawl_run_due_within(p, 0, error);
}

pawl_status pawl_test_advance(pawl *p, int64_t by_ms, pawl_error *error)
{
    struct scope scope;

    TRY(API_NEED(error, GIVEN(p)));
    api_enter(p, &scope);
    return api_leave(&scope, shards_advance(p, &scope, by_ms), error);
}

pawl_status world_take_turns(pawl *p, const char *id, uint32_t turns, int64_t most_ms,
                             int64_t *out_moved_ms, pawl_error *error)
{
    struct scope scope;

    api_enter(p, &scope);
    return api_leave(
        &scope, shards_advance_turns(p, &scope, str_of(id), turns, most_ms, out_moved_ms), error);
}

pawl_status pawl_test_fire_timer(pawl *p, const char *id, const char *name, pawl_error *error)
{
    struct scope scope;

    TRY(API_NEED(error, GIVEN(p), GIVEN(id), GIVEN(name)));
    api_enter(p, &scope);
    return api_leave(&scope,
                     engine_fire_timer(shard_of_id(p, str_of(id))->engine, &scope, str_of(id),
                                       str_of(name), NULL),
                     error);
}

/* Texts handed over hold no NUL but their last byte, so that their size is known. */
void pawl_free(pawl *p, void *text)
{
    if (p && text)
        heap_free(&p->heap, text, strlen(text) + 1);
}
