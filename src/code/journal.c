/* journal.c - the events of an instance whose code is replayed.
 *
 * Such code keeps no variables: its turn is given every event since the last checkpoint, and comes
 * to the same place again. The events follow from the entries, so they are recorded once. A `state`
 * effect is a checkpoint: what was before it is not given any more.
 *
 * An event is a JSON object: {"kind":K,"at":MS,"name":S,"payload":JSON,"call":N,"child":ID,
 * "owed":1,"seq":N,"note":JSON}. One of kind 0 says that the turn of the owed ones before it was
 * taken. */
#include "base/limits.h"
#include "code/code_int.h"

struct journal_event {
    uint32_t kind; /* of pawl_event_kind; 0: a turn that was owed was taken */
    int64_t at_ms;
    str name, payload;
    uint32_t call;
    str child, note;
    bool is_owed;
    uint32_t seq; /* of the entry, which is not known before it is recorded; 0: not known */
};

/* For a table of what a process still has, and not for more. */
uint64_t journal_chain(uint64_t mark, str text)
{
    mark ^= UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < text.size; i++)
        mark = (mark ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001b3);
    return mark;
}

/* Without what closes it, so that a note can follow. */
static void print_event(const struct journal_event *event, struct buf *out)
{
    json_open(out, '{');
    json_put_u64(out, "kind", event->kind);
    json_put_i64(out, "at", event->at_ms);
    json_opt_str(out, "name", event->name);
    json_opt_raw(out, "payload", event->payload);
    json_opt_u64(out, "call", event->call);
    json_opt_str(out, "child", event->child);
    json_opt_u64(out, "owed", event->is_owed);
}

/* ---- An entry as an event -------------------------------------------------------------------- */

static const struct effect *find_effect(const struct effect_list *effects, enum effect_kind kind,
                                        str name)
{
    for (uint32_t i = 0; effects && i < effects->count; i++)
        if (effects->items[i].kind == kind && str_eq(effects->items[i].name, name))
            return &effects->items[i];
    return NULL;
}

/* Does the attempt of the entry end with it, and is not tried again? */
static bool ends_call(const struct entry_view *entry)
{
    bool ends = false;

    for (uint32_t i = 0; entry->effects && i < entry->effects->count; i++) {
        const struct effect *effect = &entry->effects->items[i];

        if (effect->kind == EFFECT_STEP && effect->attempt > 1)
            return false;
        ends = ends || (effect->kind == EFFECT_END && effect->ordinal == entry->ordinal);
    }
    return ends;
}

/* {"timer":NAME} or {"signal":NAME,"payload":VALUE}; false: it is no event of the code. */
static pawl_status read_wakeup(struct scope *scope, const struct entry_view *entry,
                               struct journal_event *out, bool *is_event)
{
    bool is_timer = entry->transition == LIFE_T_TIMER;
    struct node *root = NULL;
    const struct node *name, *value;
    pawl_status status =
        entry->payload.data ? node_read_json(scope, entry->payload, &root) : PAWL_STORAGE_FAILURE;

    if (status == PAWL_NO_MEMORY)
        return status;
    name = status == PAWL_OK ? node_find(root, is_timer ? "timer" : "signal") : NULL;
    value = name ? node_find(root, "payload") : NULL;
    out->kind = is_timer ? PAWL_EVENT_TIMER : PAWL_EVENT_SIGNAL;
    out->name = name && name->kind == NODE_STRING ? name->text : STR("?"); /* it was erased */
    out->payload = value ? value->raw : STR_NONE;
    if (is_timer && str_eq(out->name, TIMER_TURN)) {
        out->kind = 0;
        out->name = STR_NONE;
    }
    *is_event = out->kind != PAWL_EVENT_SIGNAL || !name ||
                find_effect(entry->effects, EFFECT_LEAVE, out->name);
    return PAWL_OK;
}

static void read_answer(const struct definition *definition, const struct code_memory *memory,
                        const struct entry_view *entry, struct journal_event *out)
{
    const struct code_attempt *call = code_memory_call(memory, entry->ordinal);
    bool is_child = call && code_memory_spawns(definition, memory, call->plan);
    bool has_failed =
        entry->transition != LIFE_T_STEP_COMPLETE && entry->transition != LIFE_T_CHILD;

    out->kind = is_child     ? has_failed ? PAWL_EVENT_CHILD_FAILED : PAWL_EVENT_CHILD
                : has_failed ? PAWL_EVENT_CALL_FAILED
                             : PAWL_EVENT_CALL;
    out->payload = entry->payload;
    if (!call)
        return;
    out->name = code_step_name_now(definition, memory, call->plan);
    out->call = call->number;
    if (is_child && call->child[0])
        out->child = str_of(call->child);
}

static pawl_status read_entry(const struct definition *definition, const struct code_memory *memory,
                              const struct entry_view *entry, struct scope *scope,
                              struct journal_event *out, bool *is_event)
{
    *is_event = true;
    switch (entry->transition) {
    case LIFE_T_START:
        out->kind = PAWL_EVENT_START;
        out->payload = memory->input;
        return PAWL_OK;
    case LIFE_T_TIMER:
    case LIFE_T_SIGNAL:
        return read_wakeup(scope, entry, out, is_event);
    case LIFE_T_STEP_COMPLETE:
    case LIFE_T_STEP_FAIL:
    case LIFE_T_STEP_TIMEOUT:
    case LIFE_T_CHILD:
        *is_event = ends_call(entry);
        read_answer(definition, memory, entry, out);
        return PAWL_OK;
    default:
        *is_event = false;
        return PAWL_OK;
    }
}

/* ---- The memory ------------------------------------------------------------------------------ */

static bool append(struct code_text *text, str more, struct arena *arena)
{
    size_t need = text->size + more.size + 1;
    bool is_first = text->size == 0;

    if (need > text->capacity || !text->data) {
        size_t capacity = need * 2;
        char *bigger = arena_alloc(arena, capacity);

        if (!bigger)
            return false;
        if (!is_first)
            memcpy(bigger, text->data, text->size);
        text->data = bigger;
        text->capacity = capacity;
    }
    if (!is_first)
        text->data[text->size++] = ',';
    memcpy(text->data + text->size, more.data, more.size);
    text->size += more.size;
    return true;
}

static void set_taken(struct code_journal *journal)
{
    journal->taken = journal->count;
    journal->taken_size = journal->events.size;
    journal->taken_mark = journal->mark;
}

static pawl_status add_event(struct code_journal *journal, const struct journal_event *event,
                             struct scope *scope, struct arena *arena)
{
    struct buf buf;
    bool ok;

    buf_init(&buf, scope->arena.heap, LIMIT_SCOPE);
    print_event(event, &buf);
    if (event->kind != 0)
        journal->mark = journal_chain(journal->mark, buf_view(&buf));
    json_opt_u64(&buf, "seq", event->seq);
    if (event->note.data) {
        json_put_raw(&buf, "note", event->note);
        journal->mark = journal_chain(journal->mark, event->note);
    }
    json_close(&buf, '}');
    ok = !buf.failed && append(&journal->events, buf_view(&buf), arena);
    journal->count += ok;
    if (ok && !event->is_owed)
        set_taken(journal);
    buf_fini(&buf);
    return ok ? PAWL_OK : scope_no_memory(scope);
}

static void begin_at(struct code_journal *journal, str checkpoint)
{
    journal->events.size = 0;
    journal->count = 0;
    journal->mark = journal_chain(0, checkpoint);
    set_taken(journal);
}

pawl_status journal_apply(const struct definition *definition, struct code_memory *memory,
                          const struct entry_view *entry, struct scope *scope, struct arena *arena)
{
    const struct effect *note = effects_first(entry->effects, EFFECT_NOTE);
    const struct effect *state = effects_first(entry->effects, EFFECT_STATE);
    struct journal_event event = { .at_ms = entry->at_ms, .seq = entry->seq };
    bool is_event;

    TRY(read_entry(definition, memory, entry, scope, &event, &is_event));
    event.is_owed = find_effect(entry->effects, EFFECT_ARM, TIMER_TURN) != NULL;
    if (note)
        event.note = note->state;
    if (is_event)
        TRY(add_event(&memory->journal, &event, scope, arena));
    if (state)
        begin_at(&memory->journal, state->state);
    return PAWL_OK;
}

/* ---- A snapshot ------------------------------------------------------------------------------ */

/* "journal":[COUNT,TAKEN,TAKEN_SIZE,"MARK","TAKEN_MARK",EVENT,...], where there is one. */
void journal_print(const struct code_memory *memory, struct buf *out)
{
    const struct code_journal *journal = &memory->journal;

    if (journal->mark == 0)
        return;
    json_put_open(out, "journal", '[');
    json_u64(out, journal->count);
    json_u64(out, journal->taken);
    json_u64(out, journal->taken_size);
    buf_fmt(out, ",\"%016llx\",\"%016llx\"", (unsigned long long)journal->mark,
            (unsigned long long)journal->taken_mark);
    if (journal->events.size > 0) {
        buf_byte(out, ',');
        buf_str(out, (str){ journal->events.data, journal->events.size });
    }
    json_close(out, ']');
}

static bool read_mark(const struct node *node, uint64_t *out)
{
    *out = 0;
    if (!node || node->kind != NODE_STRING || node->text.size != 16)
        return false;
    for (size_t i = 0; i < 16; i++) {
        const char *digits = "0123456789abcdef", *found = strchr(digits, node->text.data[i]);

        if (!found || !*found)
            return false;
        *out = *out << 4 | (uint64_t)(found - digits);
    }
    return true;
}

/* The text of the events as it was printed: from the first to the end of the list. */
static str events_of(const struct node *list)
{
    const struct node *first = node_at(list, 5);
    const char *end = list->raw.data + list->raw.size - 1;

    return first ? (str){ first->raw.data, (size_t)(end - first->raw.data) } : STR("");
}

pawl_status journal_load(struct scope *scope, const struct node *root, struct code_memory *memory,
                         struct arena *arena)
{
    const struct node *list = node_find(root, "journal");
    struct code_journal *journal = &memory->journal;
    uint32_t size = 0;
    str events;

    if (!list)
        return PAWL_OK;
    if (list->kind != NODE_ARRAY || list->count < 5 ||
        !node_to_u32(list->first, UINT32_MAX, &journal->count) ||
        !node_to_u32(node_at(list, 1), journal->count, &journal->taken) ||
        !node_to_u32(node_at(list, 2), UINT32_MAX, &size) ||
        !read_mark(node_at(list, 3), &journal->mark) ||
        !read_mark(node_at(list, 4), &journal->taken_mark) || journal->count != list->count - 5)
        return code_fail_entry(scope, "has a snapshot whose journal is damaged");
    events = events_of(list);
    if (size > events.size)
        return code_fail_entry(scope, "has a snapshot whose journal is damaged");
    journal->taken_size = size;
    TRY_MEMORY(scope, code_set_text(&journal->events, events, arena));
    return PAWL_OK;
}

/* ---- A turn ---------------------------------------------------------------------------------- */

static void print_names(struct buf *out, const struct code_memory *memory)
{
    json_put_open(out, "timers", '[');
    for (uint32_t i = 0; i < memory->timer_count; i++)
        if (memory->timers[i].name.data[0] != '~')
            json_str(out, memory->timers[i].name);
    json_close(out, ']');
    json_put_open(out, "signals", '[');
    for (uint32_t i = 0; i < memory->signal_count; i++)
        if (memory->signals[i].name.data[0] != '~')
            json_str(out, memory->signals[i].name);
    json_close(out, ']');
}

/* {"timers":[NAME,...],"signals":[NAME,...],"calls":[[NUMBER,NAME],...]} before the event: what
 * code that is replayed must have come to. */
static pawl_status print_open(struct code_work *work, str *out)
{
    const struct code_memory *memory = work->memory;
    struct buf buf;

    buf_init(&buf, work->scope->arena.heap, LIMIT_SCOPE);
    json_open(&buf, '{');
    print_names(&buf, memory);
    json_put_open(&buf, "calls", '[');
    for (uint32_t i = 0; i < memory->call_count; i++) {
        json_open(&buf, '[');
        json_u64(&buf, memory->calls[i].number);
        json_str(&buf, code_step_name_now(work->definition, memory, memory->calls[i].plan));
        json_close(&buf, ']');
    }
    json_close(&buf, ']');
    json_close(&buf, '}');
    *out = buf_take(&buf, &work->scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(work->scope);
}

static pawl_status print_fresh(struct code_work *work, const struct cause *cause,
                               struct turn_journal *out)
{
    const struct journal_event event = { .kind = cause->kind,
                                         .at_ms = work->event->at_ms,
                                         .name = cause->name,
                                         .payload = cause->payload,
                                         .call = cause->attempt ? cause->attempt->number : 0,
                                         .child = cause->child_id };
    struct buf buf;

    buf_init(&buf, work->scope->arena.heap, LIMIT_SCOPE);
    print_event(&event, &buf);
    out->fresh_mark = journal_chain(out->mark, buf_view(&buf));
    json_close(&buf, '}');
    out->fresh = buf_take(&buf, &work->scope->arena);
    return out->fresh.data ? PAWL_OK : scope_no_memory(work->scope);
}

pawl_status journal_request(struct code_work *work, const struct cause *cause,
                            struct turn_journal *out)
{
    const struct code_memory *memory = work->memory;
    const struct code_journal *journal = &memory->journal;
    size_t from = journal->taken_size + (journal->taken_size > 0);

    *out = (struct turn_journal){ .id = str_of(memory->id),
                                  .before = { journal->events.data, journal->taken_size },
                                  .count = journal->taken,
                                  .calls = memory->numbers,
                                  .mark = journal->taken_mark };
    TRY(print_open(work, &out->open));
    if (!cause->is_owed)
        return print_fresh(work, cause, out);
    out->fresh_mark = journal->mark;
    out->fresh = journal->events.size > from
                     ? (str){ journal->events.data + from, journal->events.size - from }
                     : STR("");
    return PAWL_OK;
}
