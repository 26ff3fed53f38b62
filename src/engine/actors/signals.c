/* signals.c - a signal reaches what awaits it: in one instance, or in all.
 *
 * Where a definition says so, one that nothing awaits is kept: a control record of the instance's
 * chain, no entry, until a wait takes it. */
#include "base/node.h"
#include "engine/parts.h"
#include "model/canonical.h"
#include "model/fire.h"
#include "model/interest.h"
#include "model/words.h"
#include <stdio.h>

#define BROADCAST_AT_ONCE 256u
#define SENT_TOGETHER     ACTORS_AT_ONCE

/* ---- recording a kept signal ---- */

pawl_status batch_keep_signal(struct engine *engine, struct scope *scope, struct head *head,
                              const struct draft *draft, int64_t at_ms, const uint8_t *key)
{
    str body = json_object_of(&scope->arena, "name", draft->keep);
    struct commitments commitments = { 0 };
    struct record *record;
    uint64_t actor;

    ASSERT_DRAINING(engine);
    TRY_MEMORY(scope, body.data);
    TRY(intern(engine, scope, draft->actor, &actor, &commitments.actor));
    record = batch_record(engine, CONTROL_KEEP_SIGNAL, head, at_ms, body, key);
    record->actor = actor;
    record->payload = batch_new_value(engine, draft->payload, false, &commitments.payload);
    batch_seal(engine, head, record, body, &commitments);
    return PAWL_OK;
}

pawl_status signal_kept_name(struct scope *scope, const struct record *record, str *out)
{
    struct node *body = NULL;
    const struct node *name = NULL;
    pawl_status status = node_read_json(scope, record->body, &body);

    if (status == PAWL_NO_MEMORY)
        return status;
    if (!status)
        name = node_find(body, "name");
    if (!name || name->kind != NODE_STRING)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the record at position %llu does not name its signal: run pawl verify",
                          (unsigned long long)record->pos);
    *out = name->text;
    return PAWL_OK;
}

/* ---- to one ---- */

/* Could the instance keep it? An amend may have changed that: then its plan in force decides. */
static bool may_keep(const struct engine *engine, const struct definition *definition, str name)
{
    return definition->kind == KIND_CODE ||
           (definition->kind == KIND_FLOW && (engine->actors.has_amends || flow_keeps(definition, name)));
}

static pawl_status signal_new(struct engine *engine, struct scope *scope, str id,
                              const struct event *event, const uint8_t *key, bool *is_kept)
{
    struct definition_slot *slot;
    struct head head;

    TRY(engine_locate(engine, scope, id, &head, &slot));
    TRY(fire_check_open(slot->definition, &(struct standing){ .state = head.state }, scope));
    if ((head.flags & HEAD_PAUSED) && !may_keep(engine, slot->definition, event->name))
        return pause_refusal(scope);
    if (slot->definition->kind == KIND_MACHINE)
        return scope_fail(scope, PAWL_NOT_AWAITING,
                          "a machine awaits no signals; fire one of its actions");
    return mail_signal(engine, scope, head.instance, event, key, is_kept);
}

pawl_status engine_signal(struct engine *engine, struct scope *scope, str id, str name, str payload,
                          str actor, const char *late, const uint8_t *key, bool *is_kept)
{
    struct event event = {
        .kind = EVENT_SIGNAL, .name = name, .payload = payload, .actor = actor, .late = late
    };
    struct record record;
    pawl_status status;

    if (!name.data || str_is_blank(name))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "name: expected the name of a signal, found nothing");
    *is_kept = false;
    status = signal_new(engine, scope, id, &event, key, is_kept);
    if (keys_explain(engine, scope, key, &status, &record)) {
        *is_kept = record.what == CONTROL_KEEP_SIGNAL; /* as it was answered the first time */
        return PAWL_OK;
    }
    if (status && status != PAWL_NOT_KNOWN && !status_is_ours(status))
        refused_signals_note(engine, id, name, scope->error.message);
    else if (!status)
        refused_signals_drop(engine, id, name);
    return status;
}

/* ---- to all that await it or keep it ---- */

/* A part of the key for each, so that an instance that has had it does not get it again. */
static pawl_status share_key(struct scope *scope, const uint8_t *key, const uint64_t *numbers,
                             uint32_t count, const uint8_t **out)
{
    uint8_t *keys = key ? arena_alloc(&scope->arena, (size_t)count * KEY_SIZE) : NULL;
    struct sha *sha = keys ? sha_new(scope->arena.heap) : NULL;

    if (key && !sha)
        return scope_no_memory(scope);
    for (uint32_t i = 0; sha && i < count; i++)
        key_part(sha, key, numbers[i], keys + (size_t)i * KEY_SIZE);
    sha_free(sha);
    *out = keys;
    return PAWL_OK;
}

/* Together, so that instances that are asleep are restored with one look at the store, and share
 * commits. How many were sent: fewer than `count` if there was no memory. */
static uint32_t send_some(struct engine *engine, const uint64_t *numbers, uint32_t count,
                          const struct event *event, const uint8_t *keys, str trace,
                          struct mail_group *group)
{
    struct mail *mails[SENT_TOGETHER];
    uint32_t made = 0;

    ASSERT_LOCKED(engine);
    while (made < count) {
        struct mail *mail = mail_to(engine, numbers[made], event);

        if (!mail)
            break;
        mail->key = keys ? keys + (size_t)made * KEY_SIZE : NULL;
        mail->group = group;
        mail->own.trace = trace;
        mails[made++] = mail;
    }
    group->left += made;
    mail_send_all(engine, mails, made);
    return made;
}

/* How many were sent, and answered. */
static uint32_t send_page(struct engine *engine, const uint64_t *numbers, uint32_t count,
                          const struct event *event, const uint8_t *keys, struct scope *scope,
                          struct mail_group *group)
{
    uint32_t sent = 0, some;

    guard_lock(&engine->lock);
    do {
        some = count - sent < SENT_TOGETHER ? count - sent : SENT_TOGETHER;
        some = send_some(engine, numbers + sent, some, event,
                         keys ? keys + (size_t)sent * KEY_SIZE : NULL, scope->trace, group);
        sent += some;
    } while (some == SENT_TOGETHER && sent < count);
    while (group->left)
        shell_wait(engine);
    guard_unlock(&engine->lock);
    return sent;
}

/* Sent to a page of instances at once. Each decides by itself whether it awaits it, or keeps it. */
static pawl_status broadcast_page(struct engine *engine, const uint64_t *numbers, uint32_t count,
                                  const struct event *event, const uint8_t *key,
                                  struct scope *scope, struct refusals *refusals,
                                  struct broadcast *out)
{
    struct mail_group group = { .refusals = refusals };
    uint32_t sent;
    const uint8_t *keys = NULL;

    TRY(share_key(scope, key, numbers, count, &keys));
    sent = send_page(engine, numbers, count, event, keys, scope, &group);
    out->delivered += sent - group.refused - group.kept;
    out->kept += group.kept;
    out->full += group.full;
    if (sent < count)
        return scope_no_memory(scope);
    scope->error = group.error;
    return group.error.status;
}

/* Page by page, in the order of their numbers: each instance is asked once, also if it begins to
 * await the signal meanwhile. */
static pawl_status broadcast_all(struct engine *engine, struct scope *page,
                                 struct wait_query *query, const struct event *event,
                                 const uint8_t *key, struct refusals *refusals,
                                 struct broadcast *out)
{
    uint64_t *numbers;
    uint32_t count;
    pawl_status status;

    do {
        scope_clear(page);
        status = store_waiting(engine->store, page, query, &numbers, &count);
        if (!status && count > 0) {
            query->after = numbers[count - 1];
            status = broadcast_page(engine, numbers, count, event, key, page, refusals, out);
        }
    } while (!status && count == BROADCAST_AT_ONCE);
    return status;
}

static void log_refused(struct engine *engine, struct scope *scope, str name, uint64_t instance,
                        const char *reason)
{
    struct instance_row row;
    char id[ID_SIZE + 1] = "?", line[LIMIT_NAME + sizeof(pawl_error) + 64];

    scope_clear(scope);
    if (!store_instance(engine->store, scope, instance, &row))
        id_print(row.number, row.random, id);
    (void)snprintf(line, sizeof line, "%s: a broadcast of '%.*s' does not fit: %s", id,
                   STR_ARG(words_shown(name)), reason);
    engine_log(engine, PAWL_LOG_WARN, "signal.refused", line);
}

/* Some by name, and how many more there are. */
static void log_refusals(struct engine *engine, struct scope *scope, str name,
                         const struct refusals *refusals)
{
    char line[LIMIT_NAME + 96];

    for (uint32_t i = 0; i < refusals->count && i < REFUSALS_NAMED; i++)
        log_refused(engine, scope, name, refusals->instances[i], refusals->reasons[i].message);
    if (refusals->count <= REFUSALS_NAMED)
        return;
    (void)snprintf(line, sizeof line, "a broadcast of '%.*s' does not fit %llu instances more",
                   STR_ARG(words_shown(name)),
                   (unsigned long long)(refusals->count - REFUSALS_NAMED));
    engine_log(engine, PAWL_LOG_WARN, "signal.refused", line);
}

/* Its canonical text; and the text as sent, where it differs: older programs kept that. */
static pawl_status read_filter(struct scope *scope, str filter, struct event *event,
                               struct wait_query *query)
{
    struct node *node = NULL;

    TRY(filter.data ? node_read_json(scope, filter, &node) : PAWL_OK);
    if (node)
        TRY(canonical_print(scope, node, &event->filter));
    if (node && !str_eq(event->filter, filter)) {
        event->filter_written = query->or_filter = filter;
        query->or_also = interest_name(&scope->arena, event->name, filter);
    }
    query->filter = event->filter;
    query->also = interest_name(&scope->arena, event->name, event->filter);
    return query->also.data && !query->or_filter.data == !query->or_also.data
               ? PAWL_OK
               : scope_no_memory(scope);
}

pawl_status engine_broadcast(struct engine *engine, struct scope *scope, str name, str filter,
                             str payload, str actor, const uint8_t *key, struct broadcast *out)
{
    struct event event = {
        .kind = EVENT_SIGNAL, .name = name, .payload = payload, .actor = actor
    };
    struct wait_query query = { .name = name, .limit = BROADCAST_AT_ONCE };
    struct refusals refusals = { .count = 0 };
    struct scope page;
    pawl_status status;

    *out = (struct broadcast){ 0 };
    if (!name.data || str_is_blank(name))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "name: expected the name of a signal, found nothing");
    TRY(read_filter(scope, filter, &event, &query));
    scope_init(&page, engine->heap, LIMIT_SCOPE);
    page.trace = scope->trace;
    status = broadcast_all(engine, &page, &query, &event, key, &refusals, out);
    out->refused = refusals.count;
    scope->error = status ? page.error : scope->error;
    log_refusals(engine, &page, name, &refusals);
    scope_fini(&page);
    return status;
}
