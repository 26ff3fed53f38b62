/* renewals.c - a code type is registered with a higher version: instances under way are brought to
 * it (src/code/renew.c), so that those that wait long wait for what the new build has at their
 * place.
 *
 * A page at a time, between timers. An event that comes first brings its instance over itself. */
#include "base/node_own.h"
#include "code/code.h"
#include "engine/parts.h"
#include <stdatomic.h>

#define RENEW_TRIES 5u /* of a page; then the next start tries again */

/* The next type with a version of its own; NULL: no more. */
static const struct code_binding *find_type(struct engine *engine)
{
    struct registry *registry = &engine->registry;
    uint32_t *type = &registry->renewal.type;
    const struct code_binding *binding;

    guard_lock(&registry->lock);
    while (*type < registry->code_count && registry->code_types[*type]->type->version <= 1)
        ++*type;
    binding = *type < registry->code_count ? registry->code_types[*type] : NULL;
    if (!binding)
        registry->has_renewals = false;
    guard_unlock(&registry->lock);
    return binding;
}

static void go_on(struct engine *engine, bool is_type_over)
{
    struct renewal *renewal = &engine->registry.renewal;

    renewal->after = 0;
    renewal->version = is_type_over ? 0 : renewal->version + 1;
    renewal->type += is_type_over;
}

/* Keeps those of `numbers` that were not brought to it before. One that cannot be read is kept: its
 * own event finds out why, and the others go on. */
static uint32_t keep_behind(struct engine *engine, struct scope *scope, uint32_t version,
                            uint64_t *numbers, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct head head = { .instance = numbers[i] };
        struct instance_row row;
        uint32_t before = 0; /* the version that it was brought to */
        pawl_status status = store_instance(engine->store, scope, numbers[i], &row);

        if (!status) {
            memcpy(head.random, row.random, ID_RANDOM_SIZE);
            status = amended_code_version(engine, scope, &head, &before);
        }
        if (status || before < version)
            numbers[kept++] = numbers[i];
    }
    return kept;
}

/* The next page. A page that failed is tried again, a few times: one that is damaged must not stop
 * the others, and those that were brought over are passed over. */
static void turn_page(struct engine *engine, pawl_status status, uint64_t last, bool is_last)
{
    struct renewal *renewal = &engine->registry.renewal;

    renewal->tries = status ? renewal->tries + 1 : 0;
    if (status && renewal->tries < RENEW_TRIES)
        return;
    renewal->tries = 0;
    if (is_last)
        go_on(engine, false);
    else
        renewal->after = last;
}

/* Instances that one version of the definition created. */
static pawl_status renew_page(struct engine *engine, struct scope *scope,
                              const struct code_binding *binding)
{
    struct renewal *renewal = &engine->registry.renewal;
    struct list_query query = { .definition = str_of(binding->type->name),
                                .version = renewal->version,
                                .is_active = true,
                                .oldest_first = true,
                                .after = renewal->after,
                                .limit = WAKES_AT_ONCE };
    uint64_t *numbers, last;
    uint32_t count;
    bool is_last;
    pawl_status status;

    TRY(store_list(engine->store, scope, &query, &numbers, &count));
    is_last = count < WAKES_AT_ONCE;
    last = count > 0 ? numbers[count - 1] : 0;
    count = keep_behind(engine, scope, binding->type->version, numbers, count);
    status = mail_wake_all(engine, scope, numbers, count);
    turn_page(engine, status, last, is_last);
    return status;
}

/* A shard has the versions that were used in it. */
static bool has_later(struct engine *engine, struct scope *scope, str name, uint32_t version)
{
    struct definition_row newest;

    return engine->options.home &&
           store_find_definition(engine->store, scope, name, 0, NULL, &newest) == PAWL_OK &&
           newest.version > version;
}

/* One step: a type, a version of it, or a page of its instances. */
static pawl_status renew_some(struct engine *engine, struct scope *scope,
                              const struct code_binding *binding)
{
    struct renewal *renewal = &engine->registry.renewal;
    struct definition_row row;
    struct definition_slot *slot;
    str name = str_of(binding->type->name);
    pawl_status status;

    renewal->version += renewal->version == 0;
    status = store_find_definition(engine->store, scope, name, renewal->version, NULL, &row);
    if (status == PAWL_NOT_KNOWN) {
        go_on(engine, !has_later(engine, scope, name, renewal->version));
        return PAWL_OK;
    }
    TRY(status);
    TRY(definitions_get(engine, scope, row.id, &slot));
    if (slot->definition->kind == KIND_CODE &&
        code_version(slot->definition) < binding->type->version)
        return renew_page(engine, scope, binding);
    go_on(engine, false);
    return PAWL_OK;
}

void renewals_note(struct engine *engine, const struct code_binding *binding)
{
    if (binding->type->version > 1)
        engine->registry.has_renewals = true;
}

bool renewals_are_due(const struct engine *engine)
{
    return engine->registry.has_renewals && engine->env->tick_ms(engine->env) >= engine->registry.renewal.retry_ms;
}

void renewals_run(struct engine *engine)
{
    const struct code_binding *binding;
    struct scope scope;
    pawl_status status;

    if (!renewals_are_due(engine) || atomic_exchange(&engine->registry.renewal.is_busy, true))
        return;
    binding = find_type(engine);
    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    status = binding ? renew_some(engine, &scope, binding) : PAWL_OK;
    if (status) {
        engine_log(engine, PAWL_LOG_WARN, "renewal.failed", scope.error.message);
        engine->registry.renewal.retry_ms = engine->env->tick_ms(engine->env) + RETRY_STORE_MS;
    }
    scope_fini(&scope);
    engine->registry.renewal.is_busy = false;
}
