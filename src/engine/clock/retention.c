/* retention.c - what an instance holds is erased, or it moves into the archive file, when its
 * definition says so, some time after its end.
 *
 * What the server's settings say of a name decides, else its newest version, for all its
 * instances. An owner looks through them in the order of their numbers, a page at a time, at
 * intervals that are short beside the time that they are kept. What is on hold stays, and is looked
 * at again. Nothing is remembered: what is due follows from the instance's end, and what was erased
 * has a row that says so. */
#include "base/node_own.h"
#include "engine/keeping.h"
#include "engine/parts.h"
#include "model/retention_key.h"
#include <stdio.h>

#define PAGE        256u
#define DEFINITIONS 32u /* whose texts are read at once */
#define EVERY_MIN   1000
#define EVERY_MAX   3600000
#define PART        10 /* of the time that they are kept, between two looks */
#define ACTOR       STR("pawl/retention")

struct retention_policy {
    char name[LIMIT_NAME + 1];
    struct retention kept;
    uint64_t last; /* the number that was looked at last */
    bool is_over;  /* in this look */
};

/* ---- policies ---- */

static pawl_status add_policy(struct engine *engine, struct scope *scope, str name,
                              struct retention kept)
{
    struct clock *clock = &engine->clock;
    struct retention_policy *policy;

    TRY_MEMORY(scope, HEAP_GROW(engine->heap, clock->policies, clock->policy_capacity,
                                clock->policy_count + 1));
    policy = &clock->policies[clock->policy_count++];
    *policy = (struct retention_policy){ .kept = kept };
    (void)snprintf(policy->name, sizeof policy->name, "%.*s", STR_ARG(name));
    return PAWL_OK;
}

/* Settings come before what the definition says; code says nothing. */
static struct retention kept_by(const struct engine *engine, struct scope *scope, str name,
                                str source)
{
    const struct node *given = engine->clock.retention_given;

    for (given = given ? given->first : NULL; given; given = given->next)
        if (str_eq(given->key, name))
            return retention_of(given);
    return retention_read(scope, source);
}

pawl_status retention_init(struct engine *engine, struct scope *scope)
{
    struct scope *kept = &engine->clock.retention_scope;
    const char *text = engine->options.retention;
    pawl_status status;

    scope_init(kept, engine->heap, LIMIT_SCOPE);
    if (!text)
        return PAWL_OK;
    status = node_read_own(kept, str_of(text), &engine->clock.retention_given);
    if (status)
        scope->error = kept->error;
    return status;
}

typedef pawl_status policy_fn(void *context, struct scope *scope, str name, struct retention kept);

/* Each name whose newest version has a policy. */
static pawl_status each_policy(struct engine *engine, struct scope *scope, policy_fn *fn,
                               void *context)
{
    char after[LIMIT_NAME + 1] = "";
    struct definition_row *rows, row;
    uint32_t count;

    do {
        scope_clear(scope);
        TRY(store_definitions(engine->store, scope, str_of(after), DEFINITIONS, &rows, &count));
        for (uint32_t i = 0; i < count; i++) {
            struct retention kept;

            TRY(store_definition(engine->store, scope, rows[i].id, &row));
            kept = kept_by(engine, scope, rows[i].name, row.source);
            if (kept.after_ms)
                TRY(fn(context, scope, rows[i].name, kept));
        }
        if (count)
            (void)snprintf(after, sizeof after, "%.*s", STR_ARG(rows[count - 1].name));
    } while (count == DEFINITIONS);
    return PAWL_OK;
}

static pawl_status remember(void *context, struct scope *scope, str name, struct retention kept)
{
    return add_policy(context, scope, name, kept);
}

static int64_t interval_ms(const struct clock *clock)
{
    int64_t every_ms = EVERY_MAX;

    for (uint32_t i = 0; i < clock->policy_count; i++)
        if (clock->policies[i].kept.after_ms / PART < every_ms)
            every_ms = clock->policies[i].kept.after_ms / PART;
    return every_ms < EVERY_MIN ? EVERY_MIN : every_ms;
}

/* ---- what is due ---- */

static struct list_query retention_query(str name, int64_t after_ms, int64_t now_ms, uint64_t last)
{
    struct time_span until = { .has_before = true, .before_ms = now_ms - after_ms };

    return (struct list_query){ .definition = name,
                                .has_ended = true,
                                .ended = until,
                                .oldest_first = true,
                                .after = last,
                                .limit = PAGE };
}

/* What leaves for the archive: a child goes with the instance that began it, and what was erased
 * leaves nevertheless. */
static pawl_status archive_state(struct engine *engine, struct scope *scope, uint64_t number,
                                 bool *is_child)
{
    struct instance_row row;

    TRY(store_instance(engine->store, scope, number, &row));
    *is_child = row.parent != 0;
    return PAWL_OK;
}

/* *is_done: it was erased, or is not for itself to leave. */
static pawl_status retention_state(struct engine *engine, struct scope *scope, uint64_t number,
                                   bool is_archive, bool *is_done, bool *is_held)
{
    struct standing_row row;
    char id[ID_SIZE + 1];
    pawl_status status = PAWL_NOT_KNOWN;

    TRY(engine_id_of(engine, scope, number, id));
    *is_done = false;
    if (is_archive)
        TRY(archive_state(engine, scope, number, is_done));
    else
        status = store_standing(engine->store, scope, CONTROL_ERASE, str_of(id), &row);
    *is_done = *is_done || status == PAWL_OK;
    if (status == PAWL_NOT_KNOWN)
        status = store_standing(engine->store, scope, CONTROL_HOLD, str_of(id), &row);
    *is_held = !*is_done && status == PAWL_OK;
    return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
}

static pawl_status end_page(struct engine *engine, struct scope *scope,
                            const struct retention_policy *policy, const uint64_t *numbers,
                            uint32_t count)
{
    char reason[TIME_TEXT_SIZE + 32], after[TIME_TEXT_SIZE];
    uint64_t moved = 0;
    struct erased erased;

    duration_print(policy->kept.after_ms, after);
    (void)snprintf(reason, sizeof reason, "retention: %s after its end", after);
    if (policy->kept.is_archive) {
        TRY(engine->options.archive(engine->options.alarm_context, engine, scope, numbers, count,
                                    ACTOR, str_of(reason), &moved));
        atomic_fetch_add(&engine->clock.retention_archived, moved);
        return PAWL_OK;
    }
    TRY(engine_erase(
        engine, scope,
        &(struct erase_args){
            .numbers = numbers, .count = count, .actor = ACTOR, .reason = str_of(reason) },
        &erased));
    atomic_fetch_add(&engine->clock.retention_erased, erased.instances);
    return PAWL_OK;
}

static pawl_status look_at_page(struct engine *engine, struct scope *scope,
                                struct retention_policy *policy, int64_t now_ms)
{
    struct list_query query =
        retention_query(str_of(policy->name), policy->kept.after_ms, now_ms, policy->last);
    uint64_t *numbers, due[PAGE];
    uint32_t count, due_count = 0;
    bool is_done, is_held;

    TRY(store_list(engine->store, scope, &query, &numbers, &count));
    for (uint32_t i = 0; i < count; i++) {
        TRY(retention_state(engine, scope, numbers[i], policy->kept.is_archive, &is_done,
                            &is_held));
        atomic_fetch_add(&engine->clock.retention_held, is_held);
        if (!is_done && !is_held)
            due[due_count++] = numbers[i];
    }
    if (due_count)
        TRY(end_page(engine, scope, policy, due, due_count));
    if (count)
        policy->last = numbers[count - 1];
    policy->is_over = count < PAGE;
    return PAWL_OK;
}

static void begin_look(struct clock *clock)
{
    for (uint32_t i = 0; i < clock->policy_count; i++) {
        clock->policies[i].last = 0;
        clock->policies[i].is_over = false;
    }
    atomic_store(&clock->retention_held, 0);
}

static bool is_at_end(const struct clock *clock)
{
    for (uint32_t i = 0; i < clock->policy_count; i++)
        if (!clock->policies[i].is_over)
            return false;
    return true;
}

/* One page of one definition. */
static pawl_status look(struct engine *engine, struct scope *scope, int64_t now_ms)
{
    struct clock *clock = &engine->clock;

    if (is_at_end(clock))
        begin_look(clock);
    for (uint32_t i = 0; i < clock->policy_count; i++)
        if (!clock->policies[i].is_over)
            return look_at_page(engine, scope, &clock->policies[i], now_ms);
    return PAWL_OK;
}

static void next_look(struct engine *engine, int64_t at_ms)
{
    guard_lock(&engine->lock);
    engine->clock.retention_ms = at_ms;
    guard_unlock(&engine->lock);
}

static pawl_status read_policies(struct engine *engine, struct scope *scope)
{
    engine->clock.policy_count = 0;
    guard_lock(&engine->lock);
    engine->clock.retention_is_stale = false;
    guard_unlock(&engine->lock);
    return each_policy(engine, scope, remember, engine);
}

static void work_through(struct engine *engine, struct scope *scope, bool is_stale, int64_t now_ms)
{
    const struct clock *clock = &engine->clock;
    pawl_status status = is_stale ? read_policies(engine, scope) : PAWL_OK;

    if (!status && clock->policy_count) {
        scope_clear(scope);
        status = look(engine, scope, now_ms);
    }
    if (status)
        engine_log(engine, PAWL_LOG_WARN, "retention.failed", scope->error.message);
    if (!clock->policy_count)
        next_look(engine, status ? now_ms + EVERY_MAX : INT64_MAX);
    else
        next_look(engine, status || is_at_end(clock) ? now_ms + interval_ms(clock) : now_ms);
}

void retention_run(struct engine *engine, const struct moment *now)
{
    struct scope scope;
    bool is_due, is_stale;

    guard_lock(&engine->lock);
    is_stale = engine->clock.retention_is_stale;
    is_due = engine->options.own && (is_stale || engine->clock.retention_ms <= now->at_ms);
    guard_unlock(&engine->lock);
    if (!is_due)
        return;
    scope_init(&scope, engine->heap, LIMIT_SCOPE);
    work_through(engine, &scope, is_stale, now->at_ms);
    scope_fini(&scope);
}

void retention_fini(struct engine *engine)
{
    heap_free(engine->heap, engine->clock.policies,
              sizeof *engine->clock.policies * engine->clock.policy_capacity);
    scope_fini(&engine->clock.retention_scope);
}

void retention_changed(struct engine *engine, str text)
{
    guard_lock(&engine->lock);
    if (engine->options.own &&
        (engine->clock.retention_ms != INT64_MAX || engine->clock.retention_given ||
         memmem(text.data, text.size, "retention", strlen("retention")))) {
        engine->clock.retention_is_stale = true;
        engine->clock.retention_ms = clock_at(engine);
        if (engine->clock.retention_ms < engine->clock.next_due_ms)
            engine->clock.next_due_ms = engine->clock.retention_ms;
        shell_changed(engine);
        engine_set_wakeup(engine);
    }
    guard_unlock(&engine->lock);
}

/* ---- for readers ---- */

struct telling {
    struct engine *engine;
    struct retained *rows;
    uint32_t count, capacity, max;
    struct scope *out;
    int64_t now_ms;
};

static pawl_status count_page(struct telling *work, struct scope *page, struct retained *row,
                              uint64_t *last, uint32_t *count)
{
    struct list_query query = retention_query(row->definition, row->after_ms, work->now_ms, *last);
    uint64_t *numbers;
    struct record record;
    struct head_row head;
    bool is_done, is_held;

    TRY(store_list(work->engine->store, page, &query, &numbers, count));
    for (uint32_t i = 0; i < *count; i++) {
        pawl_status status =
            retention_state(work->engine, page, numbers[i], row->is_archive, &is_done, &is_held);

        if (status == PAWL_NOT_KNOWN) /* it was moved since it was listed */
            continue;
        TRY(status);
        row->erased += is_done && !row->is_archive;
        row->held += is_held;
        row->due += !is_done && !is_held;
        if (is_done || is_held || row->oldest_due_ms)
            continue;
        TRY(store_head(work->engine->store, page, numbers[i], false, &head));
        TRY(store_record(work->engine->store, page, head.pos, &record));
        row->oldest_due_ms = record.at_ms + row->after_ms;
    }
    *last = *count ? numbers[*count - 1] : *last;
    return PAWL_OK;
}

static pawl_status tell(void *context, struct scope *scope, str name, struct retention kept)
{
    struct telling *work = context;
    struct retained *row;

    TRY_MEMORY(scope, GROW(&work->out->arena, work->rows, work->count, work->capacity));
    row = &work->rows[work->count++];
    *row = (struct retained){ .definition = arena_str(&work->out->arena, name),
                              .after_ms = kept.after_ms,
                              .is_archive = kept.is_archive };
    return row->definition.data ? PAWL_OK : scope_no_memory(scope);
}

static pawl_status count_all(struct telling *work, struct scope *page)
{
    for (uint32_t i = 0; i < work->count; i++) {
        struct retained *row = &work->rows[i];
        uint64_t last = 0;
        uint32_t count, seen = 0;

        do {
            scope_clear(page);
            TRY(count_page(work, page, row, &last, &count));
            seen += count;
        } while (count == PAGE && seen < work->max);
        row->has_more = count == PAGE;
    }
    return PAWL_OK;
}

pawl_status engine_retained(struct engine *engine, struct scope *scope, uint32_t max,
                            struct retained **out, uint32_t *count)
{
    struct telling work = {
        .engine = engine, .max = max, .out = scope, .now_ms = engine_now_ms(engine)
    };
    struct scope page;
    pawl_status status;

    scope_init(&page, engine->heap, LIMIT_SCOPE);
    status = each_policy(engine, &page, tell, &work);
    if (!status)
        status = count_all(&work, &page);
    *out = work.rows;
    *count = work.count;
    return scope_leave(&page, scope, status);
}

void engine_keeping(struct engine *engine, bool is_begun)
{
    if (is_begun)
        guard_lock(&engine->clock.keeping);
    else
        guard_unlock(&engine->clock.keeping);
}
