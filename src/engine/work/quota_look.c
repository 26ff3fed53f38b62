/* quota_look.c - which limits an attempt has, and how they are shown.
 *
 * A limit's name is what it counts together: the definition, the step or the tool, the kind of
 * limit, and the key. All versions of a definition share it. */
#include "engine/parts.h"

/* ---- Which limits --------------------------------------------------------------------- */

static char *add_line(char *to, str text)
{
    memcpy(to, text.data, text.size);
    to[text.size] = '\n';
    return to + text.size + 1;
}

/* Made for each start: no buffer that grows. */
static str print_name(struct scope *scope, str of, str step, str kind, str key)
{
    size_t size = of.size + step.size + kind.size + key.size + 4;
    char *text = ARENA_ARRAY(&scope->arena, char, size), *to = text;

    if (!text)
        return STR_NONE;
    to = add_line(to, of);
    to = add_line(to, step);
    to = add_line(to, kind);
    add_line(to, key);
    return (str){ text, size - 1 };
}

static str text_of(str text)
{
    return text.data ? text : STR("");
}

static pawl_status add_quota(struct scope *scope, const struct quota *quota, struct quota_set *out)
{
    TRY_MEMORY(scope, quota->name.data);
    ASSERT(out->count < QUOTAS_MAX);
    out->items[out->count++] = *quota;
    return PAWL_OK;
}

pawl_status quotas_add_flow(struct scope *scope, str definition, const struct flow_quotas *quotas,
                               struct quota_set *out)
{
    out->priority = quotas->priority;
    for (uint32_t i = 0; i < quotas->count; i++) {
        const struct flow_quota *one = &quotas->items[i];

        TRY(add_quota(
            scope,
            &(struct quota){ .name = print_name(scope, definition, text_of(one->step),
                                                one->per_ms ? STR("rate") : STR("concurrency"),
                                                text_of(one->key)),
                             .max = one->max,
                             .per_ms = one->per_ms,
                             .is_of_flow = one->is_of_flow },
            out));
    }
    return PAWL_OK;
}

pawl_status quotas_add_tool(struct engine *engine, struct scope *scope, str tool,
                            struct quota_set *out)
{
    const struct tool_limits *limits = tool.data ? toolbox_limits(engine->toolbox, tool) : NULL;

    if (limits && limits->at_once)
        TRY(add_quota(
            scope,
            &(struct quota){ .name = print_name(scope, STR(""), tool, STR("concurrency"), STR("")),
                             .max = limits->at_once },
            out));
    if (limits && limits->rate)
        TRY(add_quota(
            scope,
            &(struct quota){ .name = print_name(scope, STR(""), tool, STR("rate"), STR("")),
                             .max = limits->rate,
                             .per_ms = limits->per_ms },
            out));
    return PAWL_OK;
}

/* It lives until the engine is closed. */
static pawl_status find_name(struct engine *engine, struct scope *scope, struct actor *actor)
{
    struct definition_slot *slot;
    struct head head;

    if (actor->name.data)
        return PAWL_OK;
    TRY(head_fixed(engine, scope, actor->instance, &head));
    TRY(definitions_get(engine, scope, head.definition, &slot));
    actor->name = slot->name;
    return PAWL_OK;
}

pawl_status quotas_of(struct engine *engine, struct actor *actor, uint32_t ordinal, str tool,
                      struct scope *scope, struct quota_set *out)
{
    struct flow_quotas quotas;

    *out = (struct quota_set){ 0 };
    if (flow_has_quotas(actor->definition, actor->memory)) {
        TRY(flow_quotas(actor->memory, ordinal, scope, &quotas));
        if (actor->instance) {
            TRY(find_name(engine, scope, actor));
            TRY(quotas_add_flow(scope, actor->name, &quotas, out));
        }
    }
    return quotas_add_tool(engine, scope, tool, out);
}

int32_t quotas_priority(struct engine *engine, const struct actor *actor, uint32_t ordinal)
{
    struct flow_quotas quotas = { 0 };
    struct scope scope;

    if (!flow_has_quotas(actor->definition, actor->memory))
        return 0;
    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    if (flow_quotas(actor->memory, ordinal, &scope, &quotas))
        quotas.priority = 0;
    scope_fini(&scope);
    return quotas.priority;
}

/* ---- Before a start ----------------------------------------------------------------------- */

static enum quota_verdict take(struct engine *engine, const struct quota_step *step)
{
    enum quota_verdict verdict;

    guard_lock(&engine->lock);
    verdict = quotas_take(engine, step);
    guard_unlock(&engine->lock);
    return verdict;
}

pawl_status quotas_admit(struct engine *engine, struct actor *actor, const struct job *job,
                         const struct quota_step *step, struct scope *scope)
{
    struct quota_step own = *step;
    enum quota_verdict verdict;
    struct quota_set set;

    TRY(quotas_of(engine, actor, step->ordinal, job->call.tool, scope, &set));
    if (set.count == 0)
        return PAWL_OK;
    own.quotas = &set;
    verdict = take(engine, &own);
    if (verdict == QUOTA_NO_MEMORY)
        return scope_no_memory(scope);
    return verdict == QUOTA_TAKEN
               ? PAWL_OK
               : scope_fail(scope, PAWL_LEASE_LOST, "step '%.*s' waits for its limit", STR_ARG(job->call.step));
}

/* While an instance is created it has no number: its first step starts after that. */
pawl_status quotas_of_next(struct engine *engine, struct actor *actor, const struct job *job,
                           struct scope *scope, struct quota_set *out, bool *may_take)
{
    bool is_limited = flow_has_quotas(actor->definition, actor->memory) ||
                      toolbox_limits(engine->toolbox, job->call.tool);

    *out = (struct quota_set){ 0 };
    *may_take = !is_limited || actor->instance;
    return is_limited && actor->instance
               ? quotas_of(engine, actor, job->ordinal, job->call.tool, scope, out)
               : PAWL_OK;
}

bool quotas_admit_next(struct engine *engine, const struct actor *actor, uint32_t ordinal,
                       const struct quota_set *set)
{
    struct quota_step step = { .instance = actor->instance, .ordinal = ordinal, .quotas = set };

    return set->count == 0 || take(engine, &step) == QUOTA_TAKEN;
}

/* ---- For people ----------------------------------------------------------------------------- */

/* The parts of a bucket's name. */
static str next_line(str *rest)
{
    str line = str_before(*rest, '\n');

    *rest = str_from(*rest, line.size < rest->size ? line.size + 1 : line.size);
    return line;
}

static void print_bucket(const struct quota_bucket *bucket, struct buf *out)
{
    str rest = bucket->name, definition = next_line(&rest), step = next_line(&rest);
    str kind = next_line(&rest);

    json_open(out, '{');
    json_put_str(out, "limit", kind);
    if (definition.size)
        json_put_str(out, "definition", definition);
    if (step.size)
        json_put_str(out, definition.size ? "step" : "tool", step);
    if (rest.size)
        json_put_raw(out, "key", rest);
    json_put_u64(out, "max", bucket->max);
    if (bucket->per_ms)
        json_put_i64(out, "per_ms", bucket->per_ms);
    json_close(out, '}');
}

pawl_status quotas_explain(struct engine *engine, struct scope *scope, uint64_t instance,
                           uint32_t ordinal, str *out)
{
    const struct quota_bucket *bucket;
    struct buf buf;

    *out = STR_NONE;
    buf_init(&buf, scope->arena.heap, 0);
    guard_lock(&engine->lock);
    bucket = quotas_blocking(engine, instance, ordinal);
    if (bucket)
        print_bucket(bucket, &buf);
    guard_unlock(&engine->lock);
    if (bucket)
        *out = buf_take(&buf, &scope->arena);
    return bucket && !out->data ? scope_no_memory(scope) : PAWL_OK;
}
