/* ops_steps.c - instance.steps: every attempt of every step, in creation order; step.list: live
 * steps of all instances, or all of one.
 *
 * What a step was given is not stored: templates are replaced again, with the memory as it
 * was right after the entry that made the attempt. */
#include "api/ops_int.h"
#include "base/limits.h"
#include "engine/workers.h"
#include "flow/flow.h"

struct fold {
    const struct op_call *call;
    str id;
    const struct definition *definition;
    void *memory;
    struct flow_call *given; /* by ordinal - 1 */
    uint32_t count;
    struct waiting *waiting; /* what it waits for; read if a step of it is pending */
    uint32_t waiting_count;
};

static pawl_status read_given(struct fold *fold, const struct effect_list *effects)
{
    struct scope *scope = fold->call->scope;

    for (uint32_t i = 0; i < effects->count; i++) {
        const struct effect *effect = &effects->items[i];
        pawl_status status;

        if (effect->kind != EFFECT_STEP || effect->ordinal == 0 || effect->ordinal > fold->count)
            continue;
        status = work_call(fold->definition, fold->memory, effect->ordinal, scope,
                           &fold->given[effect->ordinal - 1]);
        if (status != PAWL_OK && status != PAWL_LEASE_LOST)
            return status;
    }
    return PAWL_OK;
}

static pawl_status apply_entry(struct fold *fold, const struct entry *entry)
{
    const struct record *record = entry->record;
    struct scope *scope = fold->call->scope;
    struct effect_list effects = { 0 };
    struct entry_view view = {
        .transition = (uint32_t)record->what,
        .step = record->step,
        .ordinal = record->ordinal,
        .attempt = record->attempt,
        .payload = entry->payload,
        .reason = entry->reason,
        .actor = entry->actor,
        .effects = &effects,
        .at_ms = record->at_ms,
    };
    pawl_status status = PAWL_OK;

    if (record->body.data)
        status = effects_read(scope, record->body, &effects);
    if (status == PAWL_OK)
        status = behavior_of(fold->definition->kind)
                     ->apply(fold->definition, fold->memory, &view, scope, &scope->arena);
    return status == PAWL_OK ? read_given(fold, &effects) : status;
}

void *memory_of(const struct definition *definition, const struct instance_view *view,
                struct arena *arena)
{
    struct identity identity = { .id = str_of(view->id),
                                 .definition = view->definition_name,
                                 .version = view->version,
                                 .subject = view->subject,
                                 .correlation = view->correlation,
                                 .creator = view->created_by,
                                 .labels = view->labels };
    const struct behavior *behavior = behavior_of(definition->kind);
    void *memory =
        behavior->memory_new(definition, view->input.data ? view->input : STR("{}"), arena);

    if (memory && behavior->introduce && !behavior->introduce(memory, &identity, arena))
        return NULL;
    return memory;
}

static pawl_status fold_history(struct fold *fold)
{
    struct scope *scope = fold->call->scope;
    struct engine *engine = op_engine(fold->call);
    str id = fold->id;
    struct history history = { 0 };
    struct instance_view view;
    pawl_status status = engine_get(engine, scope, id, &view);

    if (status == PAWL_OK)
        status = engine_history(engine, scope, id, &(struct history_query){ 0 }, &history);
    if (status != PAWL_OK)
        return status;
    fold->given = ARENA_ARRAY(&scope->arena, struct flow_call, fold->count);
    fold->memory = memory_of(fold->definition, &view, &scope->arena);
    if (!fold->given || !fold->memory)
        return scope_no_memory(scope);
    for (size_t i = 0; i < history.count && status == PAWL_OK; i++)
        status = apply_entry(fold, &history.entries[i]);
    return status;
}

static void print_instant(struct buf *out, const char *key, int64_t at_ms)
{
    json_key(out, key);
    if (at_ms != 0)
        json_time(out, at_ms);
    else
        json_null(out);
}

/* Of a gate that waits: since when, until when, and for whom. */
static void print_gate(const struct fold *fold, const struct flow_attempt *attempt, struct buf *out)
{
    for (uint32_t i = 0; attempt->status == STEP_PENDING && i < fold->waiting_count; i++) {
        const struct waiting *gate = &fold->waiting[i];

        if (!gate->approval.data || gate->ordinal != attempt->ordinal)
            continue;
        print_instant(out, "waiting_since", attempt->created_at_ms);
        print_instant(out, "waiting_until", gate->has_until ? gate->until_ms : 0);
        json_key(out, "approval");
        json_raw(out, gate->approval);
        json_key(out, "approved_by");
        flow_print_approved(fold->memory, attempt->ordinal, out);
    }
}

static void print_step(const struct fold *fold, const struct flow_attempt *attempt,
                       const struct flow_call *given, struct buf *out)
{
    str id = fold->id;

    json_open(out, '{');
    json_key(out, "step_id");
    buf_fmt(out, "\"%.*s.%u\"", STR_ARG(id), attempt->ordinal);
    json_key(out, "instance_id");
    json_str(out, id);
    json_key(out, "name");
    json_str(out, fold->definition->kind == KIND_FLOW
                      ? flow_step_name_now(fold->memory, attempt->plan)
                      : work_step_name(fold->definition, attempt->plan));
    json_key(out, "tool");
    json_str(out, given->tool);
    json_key(out, "status");
    json_text(out, step_status_name(attempt->status));
    json_key(out, "attempt");
    json_u64(out, attempt->attempt);
    json_key(out, "args");
    json_raw(out, given->args);
    json_key(out, "result");
    json_raw(out, attempt->result);
    json_key(out, "error");
    json_raw(out, attempt->error);
    print_instant(out, "ready_at", attempt->ready_at_ms);
    print_instant(out, "started_at", attempt->started_at_ms);
    print_instant(out, "completed_at", attempt->completed_at_ms);
    print_gate(fold, attempt, out);
    json_close(out, '}');
}

static bool has_pending(const struct flow_attempts *attempts)
{
    for (uint32_t i = 0; i < attempts->count; i++)
        if (attempts->items[i].status == STEP_PENDING)
            return true;
    return false;
}

static pawl_status read_steps(struct fold *fold, struct flow_attempts *attempts)
{
    const struct op_call *call = fold->call;
    pawl_status status =
        engine_steps(op_engine(call), call->scope, fold->id, attempts, &fold->definition);

    fold->count = attempts->count;
    if (status == PAWL_OK && attempts->count > 0)
        status = fold_history(fold);
    if (status == PAWL_OK && has_pending(attempts))
        status = engine_why(op_engine(call), call->scope, fold->id, &fold->waiting,
                            &fold->waiting_count);
    return status;
}

pawl_status op_instance_steps(struct op_call *call, struct buf *out)
{
    struct fold fold = { .call = call, .id = op_text(call, "instance_id") };
    struct flow_attempts attempts = { 0 };
    pawl_status status = read_steps(&fold, &attempts);

    if (status != PAWL_OK)
        return status;
    json_open(out, '{');
    json_key(out, "steps");
    json_open(out, '[');
    for (uint32_t i = 0; i < attempts.count; i++)
        print_step(&fold, &attempts.items[i], &fold.given[attempts.items[i].ordinal - 1], out);
    json_close(out, ']');
    json_close(out, '}');
    return PAWL_OK;
}

/* ---- step.list ---- */

struct listing {
    const struct op_call *call;
    str status, tool;
    bool live_only;
    uint64_t instance; /* the cursor: what was told last */
    uint32_t ordinal, limit, count;
    bool is_full;
};

static bool fits(const struct listing *listing, const struct flow_attempt *attempt, str tool)
{
    if (listing->live_only && attempt->status > STEP_RUNNING)
        return false;
    if (listing->tool.data && !str_eq(listing->tool, tool))
        return false;
    return !listing->status.data || str_is(listing->status, step_status_name(attempt->status));
}

/* Those of one instance, behind the cursor. What stands in the scope while it is read goes with
 * the call; a page is bounded. */
static pawl_status list_instance(struct listing *listing, str id, uint64_t number, struct buf *out)
{
    struct fold fold = { .call = listing->call, .id = id };
    struct flow_attempts attempts = { 0 };
    uint32_t from = number == listing->instance ? listing->ordinal : 0;
    pawl_status status = read_steps(&fold, &attempts);

    for (uint32_t i = 0; i < attempts.count && status == PAWL_OK; i++) {
        const struct flow_attempt *attempt = &attempts.items[i];
        const struct flow_call *given = &fold.given[attempt->ordinal - 1];

        if (attempt->ordinal <= from || !fits(listing, attempt, given->tool))
            continue;
        if (listing->count == listing->limit) {
            listing->is_full = true;
            return PAWL_OK;
        }
        print_step(&fold, attempt, given, out);
        listing->count++;
        listing->instance = number;
        listing->ordinal = attempt->ordinal;
    }
    return status;
}

static pawl_status list_all(struct listing *listing, struct buf *out)
{
    struct engine *engine = op_engine(listing->call);
    struct scope *scope = listing->call->scope;
    uint64_t after = listing->instance > 0 ? listing->instance - 1 : 0, *numbers;
    uint32_t count;
    pawl_status status;

    do {
        status = engine_stepping(engine, scope, after, LIMIT_LIST, &numbers, &count);
        for (uint32_t i = 0; i < count && status == PAWL_OK && !listing->is_full; i++) {
            char *id = arena_alloc(&scope->arena, ID_SIZE + 1);

            after = numbers[i];
            status = id ? engine_id_of(engine, scope, after, id) : scope_no_memory(scope);
            if (status == PAWL_OK)
                status = list_instance(listing, str_of(id), after, out);
        }
    } while (status == PAWL_OK && !listing->is_full && count == LIMIT_LIST);
    return status;
}

static bool is_status(str text)
{
    for (enum step_status status = STEP_PENDING; status <= STEP_CANCELLED; status++)
        if (str_is(text, step_status_name(status)))
            return true;
    return false;
}

/* A cursor: the instance's number and the step's ordinal. */
static bool read_cursor(str text, struct listing *listing)
{
    const char *dash = memchr(text.data, '-', text.size);
    size_t size = dash ? (size_t)(dash - text.data) : 0;
    uint64_t ordinal = 0;

    if (!dash || !str_to_u64((str){ text.data, size }, &listing->instance) ||
        !str_to_u64(str_from(text, size + 1), &ordinal) || ordinal > UINT32_MAX)
        return false;
    listing->ordinal = (uint32_t)ordinal;
    return true;
}

static pawl_status read_listing(struct listing *listing)
{
    const struct op_call *call = listing->call;
    str after = op_text(call, "after");
    bool of_one = op_text(call, "instance_id").data != NULL;
    pawl_status status = query_check(call, false);

    listing->status = op_text(call, "status");
    listing->tool = op_text(call, "tool");
    listing->live_only = !of_one;
    if (status == PAWL_OK)
        status = query_limit(call, &listing->limit);
    if (status == PAWL_OK && listing->status.data && !is_status(listing->status))
        status =
            scope_fail(call->scope, PAWL_INVALID_QUERY,
                       "the filter 'status': expected pending, ready, running, done, failed or "
                       "cancelled, found '%.*s'",
                       STR_ARG(listing->status));
    if (status == PAWL_OK && after.data && !read_cursor(after, listing))
        status = scope_fail(call->scope, PAWL_INVALID_QUERY,
                            "the filter 'after': expected a cursor that `next` gave");
    return status;
}

pawl_status op_step_list(struct op_call *call, struct buf *out)
{
    struct listing listing = { .call = call };
    str id = op_text(call, "instance_id");
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number = 0;
    pawl_status status = read_listing(&listing);

    json_open(out, '{');
    json_key(out, "steps");
    json_open(out, '[');
    if (status == PAWL_OK && id.data) {
        (void)id_parse(id, &number, random);
        status = list_instance(&listing, id, number, out);
    } else if (status == PAWL_OK) {
        status = list_all(&listing, out);
    }
    json_close(out, ']');
    json_key(out, "next");
    if (listing.is_full)
        buf_fmt(out, "\"%llu-%u\"", (unsigned long long)listing.instance, listing.ordinal);
    else
        json_null(out);
    json_close(out, '}');
    return status;
}
