/* code_memory.c - what a code instance remembers: its state, what it has armed, what it awaits.
 *
 * Only entries change it. They carry the resulting state, so no handler runs here. */
#include "base/grow.h"
#include "base/node.h"
#include "code/code_int.h"
#include "model/interest.h"

void *code_memory_new(const struct definition *definition, str input, struct arena *arena)
{
    struct code_memory *memory = ARENA_NEW(arena, struct code_memory);

    (void)definition;
    if (memory)
        memory->input = input;
    return memory;
}

str code_memory_state(const struct code_memory *memory)
{
    return (str){ memory->state.data, memory->state.size };
}

/* Where the row with this name is, or would be added. Every kind of row begins with its name. */
static uint32_t find_row(const void *rows, uint32_t count, size_t size, str name)
{
    const char *row = rows;
    uint32_t i = 0;

    for (; i < count && !str_eq(*(const str *)(const void *)row, name); i++)
        row += size;
    return i;
}

#define FIND_ROW(rows, count, name) find_row((rows), (count), sizeof *(rows), (name))

static uint32_t find_timer(const struct code_memory *memory, str name)
{
    return FIND_ROW(memory->timers, memory->timer_count, name);
}

static uint32_t find_signal(const struct code_memory *memory, str name)
{
    return FIND_ROW(memory->signals, memory->signal_count, name);
}

bool code_memory_has_timer(const struct code_memory *memory, str name)
{
    return find_timer(memory, name) < memory->timer_count;
}

static bool subscribes_to(const struct code_wait *wait, const struct event *signal)
{
    if (str_eq(wait->name, signal->name))
        return wait->value.data && event_is_for(signal, wait->value);
    return interest_fits(wait->name, signal->name, signal->filter) ||
           (signal->filter_written.data &&
            interest_fits(wait->name, signal->name, signal->filter_written));
}

bool code_memory_subscribes(const struct code_memory *memory, const struct event *signal)
{
    bool is_found = !signal->filter.data;

    for (uint32_t i = 0; i < memory->signal_count && !is_found; i++)
        is_found = subscribes_to(&memory->signals[i], signal);
    return is_found;
}

bool code_memory_has_wait(const struct code_memory *memory, str name)
{
    return find_signal(memory, name) < memory->signal_count;
}

bool code_memory_has_signal(const struct code_memory *memory, str name)
{
    return !interest_is(name) && code_memory_has_wait(memory, name);
}

pawl_status code_memory_keep(void *memory, str name, str payload, struct scope *scope,
                             struct arena *arena)
{
    struct code_memory *mine = memory;

    TRY_MEMORY(scope, GROW(arena, mine->kept, mine->kept_count, mine->kept_capacity));
    mine->kept[mine->kept_count] =
        (struct kept_signal){ arena_str(arena, name),
                              arena_str(arena, payload.data ? payload : STR("null")) };
    TRY_MEMORY(scope,
               mine->kept[mine->kept_count].name.data && mine->kept[mine->kept_count].payload.data);
    mine->kept_count++;
    return PAWL_OK;
}

const struct kept_signal *code_memory_kept(const struct code_memory *memory)
{
    for (uint32_t i = 0; i < memory->kept_count; i++)
        if (code_memory_has_signal(memory, memory->kept[i].name))
            return &memory->kept[i];
    return NULL;
}

static bool take_kept(struct code_memory *memory, str name)
{
    uint32_t at = FIND_ROW(memory->kept, memory->kept_count, name);

    if (at == memory->kept_count)
        return false;
    ARRAY_DROP(memory->kept, memory->kept_count, at);
    return true;
}

/* The memory's own copy of a name; data NULL if there is no memory for it. */
static str keep_name(struct code_memory *memory, str name, struct arena *arena)
{
    uint32_t at = FIND_ROW(memory->names, memory->name_count, name);

    if (at < memory->name_count)
        return memory->names[at];
    if (!GROW(arena, memory->names, memory->name_count, memory->name_capacity))
        return STR_NONE;
    memory->names[at] = arena_str(arena, name);
    memory->name_count += memory->names[at].data != NULL;
    return memory->names[at];
}

static bool arm(struct code_memory *memory, str name, int64_t due_at_ms, struct arena *arena)
{
    uint32_t at = find_timer(memory, name);
    str kept = keep_name(memory, name, arena);

    if (!kept.data || !GROW(arena, memory->timers, memory->timer_count, memory->timer_capacity))
        return false;
    memory->timers[at] = (struct code_timer){ kept, due_at_ms };
    memory->timer_count += at == memory->timer_count;
    return true;
}

static bool await(struct code_memory *memory, str name, str value, struct arena *arena)
{
    uint32_t at = find_signal(memory, name);
    str kept = keep_name(memory, name, arena);
    str kept_value = value.data ? keep_name(memory, value, arena) : STR_NONE;

    if (!kept.data || (value.data && !kept_value.data) ||
        !GROW(arena, memory->signals, memory->signal_count, memory->signal_capacity))
        return false;
    memory->signals[at] = (struct code_wait){ kept, kept_value };
    memory->signal_count += at == memory->signal_count;
    return true;
}

static void disarm(struct code_memory *memory, str name)
{
    uint32_t at = find_timer(memory, name);

    if (at < memory->timer_count)
        ARRAY_DROP(memory->timers, memory->timer_count, at);
}

static void leave(struct code_memory *memory, str name)
{
    uint32_t at = find_signal(memory, name);

    if (at < memory->signal_count)
        ARRAY_DROP(memory->signals, memory->signal_count, at);
}

static bool set_text(struct code_text *text, str value, struct arena *arena)
{
    if (!text->data || value.size > text->capacity) {
        size_t capacity = value.size * 2 + 1;
        char *bigger = arena_alloc(arena, capacity);

        if (!bigger)
            return false;
        text->data = bigger;
        text->capacity = capacity;
    }
    if (value.size > 0)
        memcpy(text->data, value.data, value.size);
    text->size = value.size;
    return true;
}

/* A later attempt of the same call keeps its arguments and its idempotency key. */
static void begin_attempt(struct code_memory *memory, const struct effect *effect)
{
    uint32_t first = effect->attempt > 1 ? memory->call.first_ordinal : effect->ordinal;

    memory->call = (struct code_attempt){ .ordinal = effect->ordinal,
                                          .plan = effect->plan,
                                          .attempt = effect->attempt,
                                          .first_ordinal = first ? first : effect->ordinal,
                                          .status = effect->status };
    if (effect->attempt <= 1) {
        memory->args.data = NULL;
        memory->key.size = 0;
    }
    memory->child[0] = '\0';
    memory->ordinals = effect->ordinal > memory->ordinals ? effect->ordinal : memory->ordinals;
}

static void set_attempt(struct code_memory *memory, const struct effect *effect)
{
    struct code_attempt *call = &memory->call;

    if (call->ordinal != effect->ordinal)
        return;
    if (effect->kind == EFFECT_END)
        call->ordinal = 0;
    else
        call->status = effect->kind == EFFECT_RUN ? STEP_RUNNING : STEP_READY;
}

static pawl_status amend(const struct definition *definition, struct code_memory *memory,
                         const struct effect *effect, struct scope *scope, struct arena *arena)
{
    struct code_plan *plan = NULL;

    TRY(plan_amended(scope, plan_in_force(definition, memory), effect, arena, &plan));
    memory->plan = plan;
    return PAWL_OK;
}

/* A draft does not know the id yet: code_memory_restamp() brings it. */
static void note_child(struct code_memory *memory, const struct effect *effect)
{
    if (effect->name.size != ID_SIZE)
        return;
    memcpy(memory->child, effect->name.data, ID_SIZE);
    memory->child[ID_SIZE] = '\0';
}

pawl_status code_fail_entry(struct scope *scope, const char *does)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "an entry of a code instance %s; look closer with 'pawl verify'", does);
}

static pawl_status apply_effect(const struct definition *definition, struct code_memory *memory,
                                const struct effect *effect, struct scope *scope,
                                struct arena *arena)
{
    bool ok = true;

    switch (effect->kind) {
    case EFFECT_ARM:
        ok = arm(memory, effect->name, effect->due_at_ms, arena);
        break;
    case EFFECT_AWAIT:
        ok = await(memory, effect->name, effect->state, arena);
        break;
    case EFFECT_STATE:
        ok = set_text(&memory->state, effect->state, arena);
        break;
    case EFFECT_PLAN:
        return amend(definition, memory, effect, scope, arena);
    case EFFECT_REDUCE:
    case EFFECT_SNAPSHOT:
    case EFFECT_REDRIVE:
        break;
    case EFFECT_DISARM:
        disarm(memory, effect->name);
        break;
    case EFFECT_LEAVE:
        leave(memory, effect->name);
        break;
    case EFFECT_STEP:
        if (effect->ordinal == 0 || effect->plan >= plan_in_force(definition, memory)->step_count)
            return code_fail_entry(scope, "begins a call that its type does not have");
        begin_attempt(memory, effect);
        break;
    case EFFECT_CALL:
        ok = set_text(&memory->args, effect->state, arena) &&
             set_text(&memory->key, effect->name, arena);
        break;
    case EFFECT_READY:
    case EFFECT_RUN:
    case EFFECT_END:
        set_attempt(memory, effect);
        break;
    case EFFECT_VERSION:
        memory->version = effect->attempt;
        break;
    case EFFECT_SPAWN:
        note_child(memory, effect);
        break;
    case EFFECT_TAKE:
        if (!take_kept(memory, effect->name))
            return code_fail_entry(scope, "takes a signal that was not kept");
        break;
    }
    return ok ? PAWL_OK : scope_no_memory(scope);
}

bool code_memory_owe(struct code_memory *memory, pawl_event_kind kind, str name, str payload,
                     struct arena *arena)
{
    memory->owed.kind = kind;
    return set_text(&memory->owed.name, name, arena) &&
           set_text(&memory->owed.payload, payload.data ? payload : STR("null"), arena);
}

static pawl_event_kind owed_kind(const struct definition *definition,
                                 const struct code_memory *memory, const struct entry_view *entry)
{
    switch (entry->transition) {
    case LIFE_T_START:
        return PAWL_EVENT_START;
    case LIFE_T_TIMER:
        return PAWL_EVENT_TIMER;
    case LIFE_T_SIGNAL:
        return PAWL_EVENT_SIGNAL;
    case LIFE_T_STEP_COMPLETE:
        return PAWL_EVENT_CALL;
    case LIFE_T_CHILD:
        return PAWL_EVENT_CHILD;
    default:
        return entry->step > 0 && code_memory_spawns(definition, memory, entry->step - 1)
                   ? PAWL_EVENT_CHILD_FAILED
                   : PAWL_EVENT_CALL_FAILED;
    }
}

/* {"timer":NAME} or {"signal":NAME,"payload":VALUE}, as code_print_payload() wrote it. */
static pawl_status read_wakeup(struct scope *scope, const struct entry_view *entry, str *name,
                               str *payload)
{
    const char *key = entry->transition == LIFE_T_TIMER ? "timer" : "signal";
    struct node *root = NULL;
    const struct node *found = NULL, *value = NULL;
    pawl_status status = entry->payload.data ? node_read_json(scope, entry->payload, &root)
                                             : PAWL_STORAGE_FAILURE;

    if (status == PAWL_NO_MEMORY)
        return status;
    found = status == PAWL_OK ? node_find(root, key) : NULL;
    value = found ? node_find(root, "payload") : NULL;
    *name = found && found->kind == NODE_STRING ? found->text : STR("?"); /* it was erased */
    *payload = value ? value->raw : STR_NONE;
    return PAWL_OK;
}

/* The entry that arms TIMER_TURN is the event. */
static pawl_status keep_owed(const struct definition *definition, struct code_memory *memory,
                             const struct entry_view *entry, struct scope *scope,
                             struct arena *arena)
{
    pawl_event_kind kind = owed_kind(definition, memory, entry);
    str name = STR(""), payload = entry->payload;

    if (kind == PAWL_EVENT_START)
        payload = memory->input;
    else if (kind == PAWL_EVENT_TIMER || kind == PAWL_EVENT_SIGNAL)
        TRY(read_wakeup(scope, entry, &name, &payload));
    else
        name = code_step_name_now(definition, memory, entry->step > 0 ? entry->step - 1 : 0);
    TRY_MEMORY(scope, code_memory_owe(memory, kind, name, payload, arena));
    return PAWL_OK;
}

pawl_status code_memory_apply(const struct definition *definition, void *memory,
                              const struct entry_view *entry, struct scope *scope,
                              struct arena *arena)
{
    struct code_memory *mine = memory;
    uint32_t count = entry->effects ? entry->effects->count : 0;

    if (entry->transition >= definition->transition_count)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "an entry names transition %u, and its definition has %u; look closer "
                          "with 'pawl verify'",
                          entry->transition, definition->transition_count);
    for (uint32_t i = 0; i < count; i++) {
        const struct effect *effect = &entry->effects->items[i];

        TRY(apply_effect(definition, mine, effect, scope, arena));
        if (effect->kind == EFFECT_ARM && str_eq(effect->name, TIMER_TURN))
            TRY(keep_owed(definition, mine, entry, scope, arena));
    }
    if (definition->states[definition->transitions[entry->transition].to].terminal != TERMINAL_NOT)
        mine->timer_count = mine->signal_count = mine->call.ordinal = 0;
    return PAWL_OK;
}

void code_memory_restamp(void *memory, const struct effect_list *effects)
{
    struct code_memory *mine = memory;

    for (uint32_t i = 0; i < effects->count; i++) {
        const struct effect *effect = &effects->items[i];
        uint32_t at = find_timer(mine, effect->name);

        if (effect->kind == EFFECT_SPAWN)
            note_child(mine, effect);
        if (effect->kind == EFFECT_ARM && at < mine->timer_count)
            mine->timers[at].due_at_ms = effect->due_at_ms;
    }
}

/* "call":[ORDINALS,ORD,PLAN,ATTEMPT,FIRST,STATUS,ARGS], if it ever called anything; and CHILD, the
 * id, if that is known. */
static void print_call(const struct code_memory *memory, struct buf *out)
{
    const struct code_attempt *call = &memory->call;

    if (memory->ordinals == 0)
        return;
    json_put_open(out, "call", '[');
    json_u64(out, memory->ordinals);
    json_u64(out, call->ordinal);
    json_u64(out, call->plan);
    json_u64(out, call->attempt);
    json_u64(out, call->first_ordinal);
    json_u64(out, call->status);
    json_raw(out, (str){ memory->args.data, memory->args.size });
    if (memory->child[0])
        json_text(out, memory->child);
    json_close(out, ']');
}

/* "key":KEY, if the call has one of its own. */
static void print_key(const struct code_memory *memory, struct buf *out)
{
    if (memory->key.size == 0)
        return;
    json_put_str(out, "key", (str){ memory->key.data, memory->key.size });
}

/* "owed":[KIND,NAME,PAYLOAD], while there is one. */
static void print_owed(const struct code_memory *memory, struct buf *out)
{
    if (!code_memory_has_timer(memory, TIMER_TURN))
        return;
    json_put_open(out, "owed", '[');
    json_u64(out, memory->owed.kind);
    json_str(out, (str){ memory->owed.name.data, memory->owed.name.size });
    json_raw(out, (str){ memory->owed.payload.data, memory->owed.payload.size });
    json_close(out, ']');
}

/* NAME, or [NAME,VALUE]. */
static void print_wait(const struct code_wait *wait, struct buf *out)
{
    if (!wait->value.data) {
        json_str(out, wait->name);
        return;
    }
    json_open(out, '[');
    json_str(out, wait->name);
    json_raw(out, wait->value);
    json_close(out, ']');
}

static void print_kept(const struct code_memory *memory, struct buf *out)
{
    if (memory->kept_count == 0)
        return;
    json_put_open(out, "kept", '[');
    for (uint32_t i = 0; i < memory->kept_count; i++) {
        json_open(out, '[');
        json_str(out, memory->kept[i].name);
        json_raw(out, memory->kept[i].payload);
        json_close(out, ']');
    }
    json_close(out, ']');
}

/* "plan":[REGISTRATION,STEPS], after an amend that brought one. */
static void print_plan(const struct code_memory *memory, struct buf *out)
{
    if (!memory->plan)
        return;
    json_put_open(out, "plan", '[');
    json_raw(out, memory->plan->source);
    plan_print_steps(memory->plan, out);
    json_close(out, ']');
}

void code_memory_print(const struct definition *definition, const void *memory, struct buf *out)
{
    const struct code_memory *mine = memory;

    (void)definition;
    json_open(out, '{');
    json_put_raw(out, "state", code_memory_state(mine));
    json_put_open(out, "timers", '[');
    for (uint32_t i = 0; i < mine->timer_count; i++) {
        json_open(out, '[');
        json_str(out, mine->timers[i].name);
        json_i64(out, mine->timers[i].due_at_ms);
        json_close(out, ']');
    }
    json_close(out, ']');
    json_put_open(out, "signals", '[');
    for (uint32_t i = 0; i < mine->signal_count; i++)
        print_wait(&mine->signals[i], out);
    json_close(out, ']');
    print_kept(mine, out);
    print_call(mine, out);
    print_key(mine, out);
    print_owed(mine, out);
    print_plan(mine, out);
    json_opt_u64(out, "version", mine->version);
    json_close(out, '}');
}
