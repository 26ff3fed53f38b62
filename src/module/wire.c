/* wire.c - a turn's request and answer as JSON. */
#include "module/module_int.h"
#include <stdio.h>

static void print_list(struct buf *out, const char *key, str items)
{
    json_put_open(out, key, '[');
    buf_str(out, items);
    json_close(out, ']');
}

/* What comes next for code that is replayed; and, unless the child has it, all before. */
static void print_journal(const struct turn_request *request, uint64_t keep, uint64_t have,
                          struct buf *out)
{
    const struct turn_journal *journal = request->journal;

    json_opt_str(out, "id", journal->id.size > 0 ? journal->id : STR_NONE);
    json_put_u64(out, "keep", keep);
    if (have) {
        json_put_u64(out, "have", have);
    } else {
        json_opt_raw(out, "state", request->state);
        print_list(out, "events", journal->before);
        json_put_raw(out, "open", journal->open);
    }
    print_list(out, "fresh", journal->fresh);
}

void wire_print_request(const char *type, const struct turn_request *request, uint64_t keep,
                        uint64_t have, struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "type", type);
    if (request->journal) {
        json_put_i64(out, "at", request->at_ms);
        print_journal(request, keep, have, out);
        json_close(out, '}');
        return;
    }
    json_put_u64(out, "kind", request->kind);
    json_put_i64(out, "at", request->at_ms);
    json_opt_u64(out, "from", request->from_version);
    json_opt_u64(out, "strict", request->is_strict);
    json_opt_u64(out, "event", request->may_have_event);
    json_opt_u64(out, "check", request->is_check);
    json_opt_str(out, "name", request->name);
    json_opt_str(out, "child", request->child_id);
    json_opt_raw(out, "payload", request->payload);
    json_opt_raw(out, "state", request->state);
    json_opt_raw(out, "declared", request->declared);
    json_opt_u64(out, "call", request->call);
    json_opt_u64(out, "first", request->first_call);
    json_opt_u64(out, "open_calls", request->open_calls);
    json_close(out, '}');
}

/* 0 if there is no such member. */
static bool number_of(const struct node *root, const char *key, int64_t least, int64_t most,
                      int64_t *out)
{
    const struct node *node = node_find(root, key);

    *out = 0;
    return (!node || node_to_i64(node, out)) && *out >= least && *out <= most;
}

bool wire_read_request(const struct node *root, struct turn_request *out)
{
    int64_t kind, from, at_ms, is_strict, may_have_event, is_check, call, first, open_calls;

    if (!number_of(root, "kind", PAWL_EVENT_START, PAWL_EVENT_RENEW, &kind) ||
        !number_of(root, "from", 0, UINT32_MAX, &from) ||
        !number_of(root, "strict", 0, 1, &is_strict) ||
        !number_of(root, "event", 0, 1, &may_have_event) ||
        !number_of(root, "check", 0, 1, &is_check) ||
        !number_of(root, "call", 0, UINT32_MAX, &call) ||
        !number_of(root, "first", 0, UINT32_MAX, &first) ||
        !number_of(root, "open_calls", 0, UINT32_MAX, &open_calls) ||
        !number_of(root, "at", INT64_MIN, INT64_MAX, &at_ms))
        return false;
    *out = (struct turn_request){ .kind = (pawl_event_kind)kind,
                                  .at_ms = at_ms,
                                  .from_version = (uint32_t)from,
                                  .is_strict = is_strict,
                                  .may_have_event = may_have_event,
                                  .is_check = is_check,
                                  .call = (uint32_t)call,
                                  .first_call = (uint32_t)first,
                                  .open_calls = (uint32_t)open_calls,
                                  .name = node_text(root, "name"),
                                  .child_id = node_text(root, "child"),
                                  .payload = node_raw(root, "payload"),
                                  .state = node_raw(root, "state"),
                                  .declared = node_raw(root, "declared") };
    return true;
}

static void print_effects(struct buf *out, const char *key, const struct effect_list *list)
{
    if (list->count == 0)
        return;
    json_key(out, key);
    effects_print(list, out);
}

static void print_calls(struct buf *out, const struct turn_answer *answer)
{
    if (answer->call_count == 0)
        return;
    json_put_open(out, "calls", '[');
    for (uint32_t i = 0; i < answer->call_count; i++) {
        const struct turn_call *call = &answer->calls[i];

        json_open(out, '{');
        json_put_str(out, "name", call->name);
        json_opt_raw(out, "args", call->args);
        json_opt_str(out, "key", call->key);
        json_opt_u64(out, "spawn", call->is_spawn + (call->is_spawn && call->is_abandoned));
        json_close(out, '}');
    }
    json_close(out, ']');
}

void wire_print_answer(const struct turn_answer *answer, struct buf *out)
{
    json_open(out, '{');
    json_put_u64(out, "end", answer->end);
    json_opt_raw(out, "value", answer->value);
    json_opt_raw(out, "state", answer->state);
    json_opt_raw(out, "migrated", answer->migrated);
    print_effects(out, "timers", &answer->timers);
    print_effects(out, "signals", &answer->signals);
    print_effects(out, "reduces", &answer->reduces);
    print_effects(out, "subscriptions", &answer->subscriptions);
    print_effects(out, "dropped", &answer->dropped);
    print_effects(out, "sends", &answer->sends);
    print_calls(out, answer);
    json_opt_u64(out, "keeps", answer->keeps);
    json_opt_raw(out, "note", answer->note);
    json_opt_str(out, "problem", answer->problem);
    json_opt_str(out, "misfit", answer->misfit);
    json_opt_u64(out, "renewed",
                 (answer->is_renewed ? 1u : 0) + (answer->is_moved ? 2u : 0) +
                     (answer->is_bare ? 4u : 0));
    json_close(out, '}');
}

void wire_print_failure(const pawl_error *error, struct buf *out)
{
    json_open(out, '{');
    json_put_u64(out, "status", error->status);
    json_put_text(out, "message", error->message);
    json_close(out, '}');
}

static pawl_status fail_garbled(struct scope *scope)
{
    return scope_fail(scope, PAWL_NOT_KNOWN,
                      "a module's process gave an answer that cannot be read; is it another pawl?");
}

/* They come from another process, not from the store. */
static pawl_status read_list(struct scope *scope, str list, struct effect_list *out)
{
    pawl_status status = effects_read(scope, list, out);

    return status == PAWL_STORAGE_FAILURE ? fail_garbled(scope) : status;
}

static pawl_status read_effects(struct scope *scope, const struct node *root, const char *key,
                                enum effect_kind kind, struct effect_list *out)
{
    str list = node_raw(root, key);

    if (!list.data)
        return PAWL_OK;
    TRY(read_list(scope, list, out));
    for (uint32_t i = 0; i < out->count; i++)
        if (out->items[i].kind != kind)
            return fail_garbled(scope);
    return PAWL_OK;
}

/* What a turn may name: an effect by which it waits, or stops to. */
static pawl_status read_dropped(struct scope *scope, const struct node *root,
                                struct effect_list *out)
{
    str list = node_raw(root, "dropped");

    if (!list.data)
        return PAWL_OK;
    TRY(read_list(scope, list, out));
    for (uint32_t i = 0; i < out->count; i++)
        if (out->items[i].kind != EFFECT_DISARM && out->items[i].kind != EFFECT_LEAVE &&
            out->items[i].kind != EFFECT_END)
            return fail_garbled(scope);
    return PAWL_OK;
}

static pawl_status read_call(struct scope *scope, const struct node *node, struct turn_call *out)
{
    const struct node *name = node_find(node, "name");
    int64_t spawn;

    if (node->kind != NODE_OBJECT || !name || name->kind != NODE_STRING ||
        !number_of(node, "spawn", 0, 2, &spawn))
        return fail_garbled(scope);
    *out = (struct turn_call){ .name = name->text,
                               .args = node_raw(node, "args"),
                               .key = node_text(node, "key"),
                               .is_spawn = spawn > 0,
                               .is_abandoned = spawn == 2 };
    if (!out->args.data)
        out->args = STR("null");
    return out->key.size > LIMIT_CALL_KEY ? fail_garbled(scope) : PAWL_OK;
}

static pawl_status read_calls(struct scope *scope, const struct node *root, struct turn_answer *out)
{
    const struct node *list = node_find(root, "calls");

    if (!list)
        return PAWL_OK;
    if (list->kind != NODE_ARRAY)
        return fail_garbled(scope);
    out->calls = ARENA_ARRAY(&scope->arena, struct turn_call, list->count + 1u);
    TRY_MEMORY(scope, out->calls);
    for (const struct node *node = list->first; node; node = node->next)
        TRY(read_call(scope, node, &out->calls[out->call_count++]));
    out->call_capacity = list->count + 1u;
    return PAWL_OK;
}

/* A mistake of the code: its turn is kept, and taken again when it is put right. */
static void hold_too_large(struct scope *scope, struct turn_answer *answer)
{
    const struct turn_call *call = answer->calls, *end = call + answer->call_count;
    char words[200];

    while (call < end && call->args.size <= LIMIT_TEXT)
        call++;
    if (call < end)
        (void)snprintf(words, sizeof words, "the arguments of '%.*s' are over %u bytes",
                       call->name.size < 100 ? (int)call->name.size : 100, call->name.data,
                       LIMIT_TEXT);
    else if (answer->value.size > LIMIT_TEXT)
        (void)snprintf(words, sizeof words, "its %s is over %u bytes",
                       answer->end == TURN_FAILS ? "error" : "result", LIMIT_TEXT);
    else
        return;
    *answer = (struct turn_answer){ .end = TURN_HOLDS,
                                    .problem = arena_str(&scope->arena, str_of(words)) };
}

bool wire_is_need(str text)
{
    return str_starts(text, STR("{\"need\":"));
}

pawl_status wire_read_answer(struct scope *scope, str text, struct turn_answer *out)
{
    struct turn_answer answer = { 0 };
    struct node *root;
    int64_t number;
    bool ok = true;
    pawl_status status = node_read_json(scope, text, &root);

    if (status != PAWL_OK)
        return status == PAWL_NO_MEMORY ? status : fail_garbled(scope);
    if (number_of(root, "status", 1, PAWL_NO_MEMORY, &number))
        return scope_fail(scope, (pawl_status)number, "%.*s", STR_ARG(node_text(root, "message")));
    ok = node_find(root, "end") && number_of(root, "end", TURN_WAITS, TURN_HOLDS, &number);
    answer.end = ok ? (enum turn_end)number : TURN_FAILS;
    answer.value = node_raw(root, "value");
    answer.state = node_raw(root, "state");
    answer.migrated = node_raw(root, "migrated");
    answer.note = node_raw(root, "note");
    answer.problem = node_text(root, "problem");
    answer.misfit = node_text(root, "misfit");
    ok = ok && number_of(root, "keeps", 0, 1, &number);
    answer.keeps = ok && number == 1;
    ok = ok && number_of(root, "renewed", 0, 7, &number);
    answer.is_renewed = ok && (number & 1) != 0;
    answer.is_moved = ok && (number & 2) != 0;
    answer.is_bare = ok && (number & 4) != 0;
    TRY(read_effects(scope, root, "timers", EFFECT_ARM, &answer.timers));
    TRY(read_effects(scope, root, "signals", EFFECT_AWAIT, &answer.signals));
    TRY(read_effects(scope, root, "reduces", EFFECT_REDUCE, &answer.reduces));
    TRY(read_effects(scope, root, "subscriptions", EFFECT_AWAIT, &answer.subscriptions));
    TRY(read_effects(scope, root, "sends", EFFECT_SEND, &answer.sends));
    TRY(read_dropped(scope, root, &answer.dropped));
    TRY(read_calls(scope, root, &answer));
    ok = ok && (!answer.state.data || answer.state.data[0] == '{') &&
         (!answer.migrated.data || answer.migrated.data[0] == '{');
    if (!ok)
        return fail_garbled(scope);
    hold_too_large(scope, &answer);
    *out = answer;
    return scope->arena.failed ? scope_no_memory(scope) : PAWL_OK;
}
