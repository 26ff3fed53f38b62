/* wire.c - a turn's request and answer as JSON. */
#include "module/module_int.h"

static void print_raw(struct buf *out, const char *key, str json)
{
    if (!json.data)
        return;
    json_put_raw(out, key, json);
}

static void print_str(struct buf *out, const char *key, str text)
{
    if (!text.data)
        return;
    json_put_str(out, key, text);
}

static void print_flag(struct buf *out, const char *key, bool is_set)
{
    if (!is_set)
        return;
    json_put_bool(out, key, true);
}

void wire_print_request(const char *type, const struct turn_request *request, struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "type", type);
    json_put_u64(out, "kind", request->kind);
    json_put_i64(out, "at", request->at_ms);
    json_put_u64(out, "from", request->from_version);
    print_flag(out, "strict", request->is_strict);
    print_flag(out, "event", request->may_have_event);
    print_flag(out, "check", request->is_check);
    print_str(out, "name", request->name);
    print_str(out, "child", request->child_id);
    print_raw(out, "payload", request->payload);
    print_raw(out, "state", request->state);
    print_raw(out, "declared", request->declared);
    json_close(out, '}');
}

static str raw_of(const struct node *root, const char *key)
{
    const struct node *node = node_find(root, key);

    return node ? node->raw : STR_NONE;
}

static str text_of(const struct node *root, const char *key)
{
    const struct node *node = node_find(root, key);

    return node && node->kind == NODE_STRING ? node->text : STR_NONE;
}

static bool flag_of(const struct node *root, const char *key)
{
    const struct node *node = node_find(root, key);

    return node && node->kind == NODE_BOOL && node->truth;
}

static bool number_of(const struct node *root, const char *key, int64_t least, int64_t most,
                      int64_t *out)
{
    const struct node *node = node_find(root, key);

    return node && node_to_i64(node, out) && *out >= least && *out <= most;
}

bool wire_read_request(const struct node *root, struct turn_request *out)
{
    int64_t kind, from, at_ms;

    if (!number_of(root, "kind", PAWL_EVENT_START, PAWL_EVENT_RENEW, &kind) ||
        !number_of(root, "from", 0, UINT32_MAX, &from) ||
        !number_of(root, "at", INT64_MIN, INT64_MAX, &at_ms))
        return false;
    *out = (struct turn_request){ .kind = (pawl_event_kind)kind,
                                  .at_ms = at_ms,
                                  .from_version = (uint32_t)from,
                                  .is_strict = flag_of(root, "strict"),
                                  .may_have_event = flag_of(root, "event"),
                                  .is_check = flag_of(root, "check"),
                                  .name = text_of(root, "name"),
                                  .child_id = text_of(root, "child"),
                                  .payload = raw_of(root, "payload"),
                                  .state = raw_of(root, "state"),
                                  .declared = raw_of(root, "declared") };
    return true;
}

static void print_waits(const struct turn_answer *answer, struct buf *out)
{
    json_key(out, "timers");
    effects_print(&answer->timers, out);
    json_key(out, "signals");
    effects_print(&answer->signals, out);
    json_key(out, "reduces");
    effects_print(&answer->reduces, out);
    json_key(out, "subscriptions");
    effects_print(&answer->subscriptions, out);
}

void wire_print_answer(const struct turn_answer *answer, struct buf *out)
{
    json_open(out, '{');
    json_put_u64(out, "end", answer->end);
    print_raw(out, "value", answer->value);
    print_raw(out, "state", answer->state);
    print_raw(out, "migrated", answer->migrated);
    print_waits(answer, out);
    print_str(out, "call", answer->call);
    print_raw(out, "args", answer->args);
    print_str(out, "key", answer->key);
    json_put_u64(out, "spawn", answer->is_spawn + (answer->is_spawn && answer->is_abandoned));
    print_str(out, "problem", answer->problem);
    print_str(out, "misfit", answer->misfit);
    json_put_u64(out, "renewed", (answer->is_renewed ? 1u : 0) + (answer->is_moved ? 2u : 0) +
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

static pawl_status read_effects(struct scope *scope, const struct node *root, const char *key,
                                enum effect_kind kind, struct effect_list *out)
{
    pawl_status status = effects_read(scope, raw_of(root, key), out);

    for (uint32_t i = 0; status == PAWL_OK && i < out->count; i++)
        if (out->items[i].kind != kind)
            return fail_garbled(scope);
    return status;
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
        return scope_fail(scope, (pawl_status)number, "%.*s", STR_ARG(text_of(root, "message")));
    ok = number_of(root, "end", TURN_WAITS, TURN_HOLDS, &number);
    answer.end = ok ? (enum turn_end)number : TURN_FAILS;
    answer.value = raw_of(root, "value");
    answer.state = raw_of(root, "state");
    answer.migrated = raw_of(root, "migrated");
    answer.call = text_of(root, "call");
    answer.args = raw_of(root, "args");
    answer.key = text_of(root, "key");
    answer.problem = text_of(root, "problem");
    answer.misfit = text_of(root, "misfit");
    ok = ok && number_of(root, "spawn", 0, 2, &number);
    answer.is_spawn = ok && number > 0;
    answer.is_abandoned = ok && number == 2;
    ok = ok && number_of(root, "renewed", 0, 7, &number);
    answer.is_renewed = ok && (number & 1) != 0;
    answer.is_moved = ok && (number & 2) != 0;
    answer.is_bare = ok && (number & 4) != 0;
    TRY(read_effects(scope, root, "timers", EFFECT_ARM, &answer.timers));
    TRY(read_effects(scope, root, "signals", EFFECT_AWAIT, &answer.signals));
    TRY(read_effects(scope, root, "reduces", EFFECT_REDUCE, &answer.reduces));
    TRY(read_effects(scope, root, "subscriptions", EFFECT_AWAIT, &answer.subscriptions));
    if (!ok)
        return fail_garbled(scope);
    *out = answer;
    return PAWL_OK;
}
