/* code_memory.c - what a code instance remembers: its state, what it has armed, what it awaits.
 *
 * Only entries change it. They carry the resulting state, so no handler runs here. */
#include "base/grow.h"
#include "base/node.h"
#include "code/code_int.h"
#include "model/interest.h"

bool code_introduce(void *memory, const struct identity *identity, struct arena *arena)
{
    struct code_memory *mine = memory;

    (void)arena;
    if (identity->id.size == ID_SIZE)
        memcpy(mine->id, identity->id.data, ID_SIZE);
    return true;
}

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

/* TIMER_AGAIN is there once for each attempt that waits for it. */
static uint32_t find_timer(const struct code_memory *memory, str name, uint32_t ordinal)
{
    uint32_t i = 0;

    while (i < memory->timer_count &&
           (memory->timers[i].ordinal != ordinal || !str_eq(memory->timers[i].name, name)))
        i++;
    return i;
}

static uint32_t find_signal(const struct code_memory *memory, str name)
{
    return FIND_ROW(memory->signals, memory->signal_count, name);
}

bool code_memory_has_timer(const struct code_memory *memory, str name)
{
    return find_timer(memory, name, 0) < memory->timer_count;
}

bool code_memory_is_retried(const struct code_memory *memory, uint32_t ordinal)
{
    return find_timer(memory, TIMER_AGAIN, ordinal) < memory->timer_count;
}

struct code_attempt *code_memory_call(const struct code_memory *memory, uint32_t ordinal)
{
    for (uint32_t i = 0; ordinal > 0 && i < memory->call_count; i++)
        if (memory->calls[i].ordinal == ordinal)
            return &memory->calls[i];
    return NULL;
}

uint32_t code_live_steps(const void *memory)
{
    return ((const struct code_memory *)memory)->call_count;
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

static bool arm(struct code_memory *memory, const struct effect *effect, struct arena *arena)
{
    uint32_t at = find_timer(memory, effect->name, effect->ordinal);
    str kept = keep_name(memory, effect->name, arena);

    if (!kept.data || !GROW(arena, memory->timers, memory->timer_count, memory->timer_capacity))
        return false;
    memory->timers[at] = (struct code_timer){ kept, effect->ordinal, effect->due_at_ms };
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

static void disarm(struct code_memory *memory, const struct effect *effect)
{
    uint32_t at = find_timer(memory, effect->name, effect->ordinal);

    if (at < memory->timer_count)
        ARRAY_DROP(memory->timers, memory->timer_count, at);
}

static void leave(struct code_memory *memory, str name)
{
    uint32_t at = find_signal(memory, name);

    if (at < memory->signal_count)
        ARRAY_DROP(memory->signals, memory->signal_count, at);
}

bool code_set_text(struct code_text *text, str value, struct arena *arena)
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

/* The one that ended with this entry and is tried again; else one more. NULL: no memory. */
static struct code_attempt *place_of_attempt(struct code_memory *memory,
                                             const struct effect *effect, struct arena *arena)
{
    for (uint32_t i = 0; effect->attempt > 1 && i < memory->call_count; i++)
        if (memory->calls[i].ordinal == 0 && memory->calls[i].plan == effect->plan)
            return &memory->calls[i];
    if (!GROW(arena, memory->calls, memory->call_count, memory->call_capacity))
        return NULL;
    memory->calls[memory->call_count] =
        (struct code_attempt){ .first_ordinal = effect->ordinal, .number = ++memory->numbers };
    return &memory->calls[memory->call_count++];
}

/* A later attempt of the same call keeps its arguments and its idempotency key. */
static bool begin_attempt(struct code_memory *memory, const struct effect *effect,
                          struct arena *arena)
{
    struct code_attempt *call = place_of_attempt(memory, effect, arena);

    if (!call)
        return false;
    call->ordinal = effect->ordinal;
    call->plan = effect->plan;
    call->attempt = effect->attempt;
    call->status = effect->status;
    call->child[0] = '\0';
    memory->ordinals = effect->ordinal > memory->ordinals ? effect->ordinal : memory->ordinals;
    return true;
}

static void set_attempt(struct code_memory *memory, const struct effect *effect)
{
    struct code_attempt *call = code_memory_call(memory, effect->ordinal);

    if (!call)
        return;
    if (effect->kind == EFFECT_END)
        call->ordinal = 0;
    else
        call->status = effect->kind == EFFECT_RUN ? STEP_RUNNING : STEP_READY;
}

static bool set_arguments(struct code_memory *memory, const struct effect *effect,
                          struct arena *arena)
{
    struct code_attempt *call = code_memory_call(memory, effect->ordinal);

    return !call || (code_set_text(&call->args, effect->state, arena) &&
                     code_set_text(&call->key, effect->name, arena));
}

/* Those that ended with the entry, and were not tried again. */
static void drop_ended(struct code_memory *memory)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < memory->call_count; i++)
        if (memory->calls[i].ordinal > 0)
            memory->calls[left++] = memory->calls[i];
    memory->call_count = left;
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
    struct code_attempt *call = code_memory_call(memory, effect->ordinal);

    if (!call || effect->name.size != ID_SIZE)
        return;
    memcpy(call->child, effect->name.data, ID_SIZE);
    call->child[ID_SIZE] = '\0';
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
        ok = arm(memory, effect, arena);
        break;
    case EFFECT_AWAIT:
        ok = await(memory, effect->name, effect->state, arena);
        break;
    case EFFECT_STATE:
        ok = code_set_text(&memory->state, effect->state, arena);
        break;
    case EFFECT_PLAN:
        return amend(definition, memory, effect, scope, arena);
    case EFFECT_REDUCE:
    case EFFECT_SNAPSHOT:
    case EFFECT_REDRIVE:
    case EFFECT_NOTE: /* journal.c */
    case EFFECT_SEND:
        break;
    case EFFECT_DISARM:
        disarm(memory, effect);
        break;
    case EFFECT_LEAVE:
        leave(memory, effect->name);
        break;
    case EFFECT_STEP:
        if (effect->ordinal == 0 || effect->plan >= plan_in_force(definition, memory)->step_count)
            return code_fail_entry(scope, "begins a call that its type does not have");
        ok = begin_attempt(memory, effect, arena);
        break;
    case EFFECT_CALL:
        ok = set_arguments(memory, effect, arena);
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

/* The texts of a place that was used before are used again. */
struct code_owed *code_memory_owe(struct code_memory *memory, pawl_event_kind kind, str name,
                                  str payload, struct arena *arena)
{
    struct code_owed *owed;
    uint32_t before = memory->owed_capacity;

    if (!GROW(arena, memory->owed, memory->owed_count, memory->owed_capacity))
        return NULL;
    if (memory->owed_capacity > before)
        memset(memory->owed + memory->owed_count, 0,
               sizeof *memory->owed * (memory->owed_capacity - memory->owed_count));
    owed = &memory->owed[memory->owed_count];
    owed->kind = kind;
    owed->call = memory->answered.call;
    memcpy(owed->child, memory->answered.child, sizeof owed->child);
    if (!code_set_text(&owed->name, name, arena) ||
        !code_set_text(&owed->payload, payload.data ? payload : STR("null"), arena))
        return NULL;
    memory->owed_count++;
    return owed;
}

/* The turn of the oldest one is taken. */
static void take_owed(struct code_memory *memory)
{
    struct code_owed first;

    if (memory->owed_count == 0)
        return;
    first = memory->owed[0];
    memmove(memory->owed, memory->owed + 1, sizeof first * (memory->owed_count - 1));
    memory->owed[--memory->owed_count] = first;
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
    TRY_MEMORY(scope, code_memory_owe(memory, kind, name, payload, arena) != NULL);
    return PAWL_OK;
}

/* Which call it was: before the entry's effects end it. */
static void note_answered(struct code_memory *memory, const struct entry_view *entry)
{
    const struct code_attempt *call = code_memory_call(memory, entry->ordinal);

    memory->answered = (struct code_owed){ .call = call ? call->number : 0 };
    if (call)
        memcpy(memory->answered.child, call->child, sizeof call->child);
}

static void end_waits(struct code_memory *memory)
{
    memory->timer_count = memory->signal_count = memory->call_count = 0;
}

pawl_status code_memory_fold(const struct definition *definition, void *memory,
                             const struct entry_view *entry, struct scope *scope,
                             struct arena *arena)
{
    struct code_memory *mine = memory;
    uint32_t count = entry->effects ? entry->effects->count : 0, begun = mine->numbers;
    bool is_taken = false, is_armed = false;

    for (uint32_t i = 0; i < count; i++) {
        const struct effect *effect = &entry->effects->items[i];

        TRY(apply_effect(definition, mine, effect, scope, arena));
        if ((effect->kind != EFFECT_ARM && effect->kind != EFFECT_DISARM) ||
            !str_eq(effect->name, TIMER_TURN))
            continue;
        is_taken = is_taken || effect->kind == EFFECT_DISARM;
        is_armed = effect->kind == EFFECT_ARM;
        if (is_armed && !is_taken)
            TRY(keep_owed(definition, mine, entry, scope, arena));
    }
    if (is_taken && is_armed) /* the next one's turn is owed still */
        take_owed(mine);
    else if (is_taken)
        mine->owed_count = 0;
    if (definition->states[definition->transitions[entry->transition].to].terminal != TERMINAL_NOT)
        end_waits(mine);
    drop_ended(mine);
    if (mine->numbers > begun)
        mine->first_call = begun + 1;
    return PAWL_OK;
}

pawl_status code_memory_apply(const struct definition *definition, void *memory,
                              const struct entry_view *entry, struct scope *scope,
                              struct arena *arena)
{
    struct code_memory *mine = memory;

    if (entry->transition >= definition->transition_count)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "an entry names transition %u, and its definition has %u; look closer "
                          "with 'pawl verify'",
                          entry->transition, definition->transition_count);
    note_answered(mine, entry);
    if (plan_in_force(definition, mine)->is_replayed)
        TRY(journal_apply(definition, mine, entry, scope, arena));
    return code_memory_fold(definition, memory, entry, scope, arena);
}

void code_memory_restamp(void *memory, const struct effect_list *effects)
{
    struct code_memory *mine = memory;

    for (uint32_t i = 0; i < effects->count; i++) {
        const struct effect *effect = &effects->items[i];
        uint32_t at = find_timer(mine, effect->name, effect->ordinal);

        if (effect->kind == EFFECT_SPAWN)
            note_child(mine, effect);
        if (effect->kind == EFFECT_ARM && at < mine->timer_count)
            mine->timers[at].due_at_ms = effect->due_at_ms;
    }
}

/* [ORD,PLAN,ATTEMPT,FIRST,STATUS,ARGS,NUMBER,KEY,CHILD], the last two as texts. */
static void print_call(const struct code_attempt *call, struct buf *out)
{
    json_open(out, '[');
    json_u64(out, call->ordinal);
    json_u64(out, call->plan);
    json_u64(out, call->attempt);
    json_u64(out, call->first_ordinal);
    json_u64(out, call->status);
    json_raw(out, (str){ call->args.data, call->args.size });
    json_u64(out, call->number);
    json_str(out, (str){ call->key.size > 0 ? call->key.data : "", call->key.size });
    json_text(out, call->child);
    json_close(out, ']');
}

/* "calls":[ORDINALS,NUMBERS,FIRST_CALL,CALL,...], if it ever called anything. */
static void print_calls(const struct code_memory *memory, struct buf *out)
{
    if (memory->ordinals == 0)
        return;
    json_put_open(out, "calls", '[');
    json_u64(out, memory->ordinals);
    json_u64(out, memory->numbers);
    json_u64(out, memory->first_call);
    for (uint32_t i = 0; i < memory->call_count; i++)
        print_call(&memory->calls[i], out);
    json_close(out, ']');
}

static void print_one_owed(const struct code_owed *owed, struct buf *out)
{
    json_u64(out, owed->kind);
    json_str(out, (str){ owed->name.data, owed->name.size });
    json_raw(out, (str){ owed->payload.data, owed->payload.size });
    if (owed->call > 0) {
        json_u64(out, owed->call);
        json_text(out, owed->child);
    }
}

/* "owed":[KIND,NAME,PAYLOAD], while there is one; of an answer CALL and CHILD behind them. Those
 * after it are "owed_more":[[...],...]. */
static void print_owed(const struct code_memory *memory, struct buf *out)
{
    if (!code_memory_has_timer(memory, TIMER_TURN) || memory->owed_count == 0)
        return;
    json_put_open(out, "owed", '[');
    print_one_owed(&memory->owed[0], out);
    json_close(out, ']');
    if (memory->owed_count == 1)
        return;
    json_put_open(out, "owed_more", '[');
    for (uint32_t i = 1; i < memory->owed_count; i++) {
        json_open(out, '[');
        print_one_owed(&memory->owed[i], out);
        json_close(out, ']');
    }
    json_close(out, ']');
}

/* [NAME,DUE], and behind it the ordinal of an attempt. */
static void print_timer(const struct code_timer *timer, struct buf *out)
{
    json_open(out, '[');
    json_str(out, timer->name);
    json_i64(out, timer->due_at_ms);
    if (timer->ordinal > 0)
        json_u64(out, timer->ordinal);
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
    for (uint32_t i = 0; i < mine->timer_count; i++)
        print_timer(&mine->timers[i], out);
    json_close(out, ']');
    json_put_open(out, "signals", '[');
    for (uint32_t i = 0; i < mine->signal_count; i++)
        print_wait(&mine->signals[i], out);
    json_close(out, ']');
    print_kept(mine, out);
    print_calls(mine, out);
    print_owed(mine, out);
    journal_print(mine, out);
    print_plan(mine, out);
    json_opt_u64(out, "version", mine->version);
    json_close(out, '}');
}
