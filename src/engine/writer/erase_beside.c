/* erase_beside.c - what the store's own chain keeps for instances that are erased: the answers to
 * keyed calls that name them, what alarms did to them, and what an alarm created them with.
 *
 * Such records name no instance but in their payloads, so those are read: of the time since the
 * oldest of the instances was created, and back to the order of each alarm that created one. */
#include "base/node.h"
#include "engine/parts.h"
#include "engine/writer/erasing.h"

#define PAGE       64u
#define COMMIT_MAX 64u /* records between a creation and the end of the alarm that ordered it */

struct beside {
    struct erasing *erasing;
    str *alarms; /* in force no more, and to be found: they created instances */
    uint32_t alarm_count, alarm_capacity;
    struct scope ids; /* of these */
};

static bool is_id_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
}

/* Does the text have the id of one of them? */
static bool names_one(const struct erasing *erasing, str text)
{
    uint64_t number;

    for (size_t i = 0, end; i < text.size; i = end + 1) {
        for (end = i; end < text.size && is_id_char(text.data[end]); end++)
            continue;
        if (end - i == ID_SIZE && id_parse((str){ text.data + i, ID_SIZE }, &number, NULL) &&
            number && map_get(&erasing->gone, number) != MAP_NONE)
            return true;
    }
    return false;
}

static pawl_status body_of(struct erasing *erasing, const struct record *record, str *id, str *over)
{
    struct node *body = NULL;

    TRY(node_read_json(&erasing->reading, record->body, &body));
    *id = node_text(body, "id");
    *over = node_text(body, "over");
    return PAWL_OK;
}

/* Right before its end, and in its commit, stands what it did. */
static pawl_status has_created(struct erasing *erasing, uint64_t pos, bool *out)
{
    struct record record = { 0 };

    *out = false;
    for (uint32_t i = 1; i <= COMMIT_MAX && i < pos; i++) {
        TRY(store_record(erasing->engine->store, &erasing->reading, pos - i, &record));
        if (record.has_root)
            return PAWL_OK;
        *out =
            record.what == CONTROL_CREATE && map_get(&erasing->gone, record.instance) != MAP_NONE;
        if (*out)
            return PAWL_OK;
    }
    return PAWL_OK;
}

static pawl_status note_end(struct beside *beside, uint64_t pos, str id)
{
    struct erasing *erasing = beside->erasing;
    bool is_creator;

    TRY(has_created(erasing, pos, &is_creator));
    if (!is_creator)
        return PAWL_OK;
    TRY_MEMORY(&erasing->reading, HEAP_GROW(erasing->engine->heap, beside->alarms,
                                            beside->alarm_capacity, beside->alarm_count + 1));
    beside->alarms[beside->alarm_count] = arena_str(&beside->ids.arena, id);
    TRY_MEMORY(&erasing->reading, beside->alarms[beside->alarm_count].data);
    beside->alarm_count++;
    return PAWL_OK;
}

static bool take_alarm(struct beside *beside, str id)
{
    for (uint32_t i = 0; i < beside->alarm_count; i++)
        if (str_eq(beside->alarms[i], id)) {
            beside->alarms[i] = beside->alarms[--beside->alarm_count];
            return true;
        }
    return false;
}

/* One that is still in force keeps what it is for, whomever it names: it will do it. */
static pawl_status look_at_alarm(struct beside *beside, const struct record *record,
                                 bool *is_wanted, bool *is_in_force)
{
    struct erasing *erasing = beside->erasing;
    struct standing_row row;
    str id, over;
    pawl_status status;

    *is_wanted = *is_in_force = false;
    TRY(body_of(erasing, record, &id, &over));
    if (over.data)
        return note_end(beside, record->pos, id);
    status = store_standing(erasing->engine->store, &erasing->reading, CONTROL_ALARM, id, &row);
    *is_in_force = status == PAWL_OK;
    if (status != PAWL_NOT_KNOWN)
        return status;
    *is_wanted = take_alarm(beside, id);
    return PAWL_OK;
}

static pawl_status look(struct beside *beside, const struct record *record)
{
    struct erasing *erasing = beside->erasing;
    bool is_alarm = record->what == CONTROL_ALARM, is_wanted = false, is_in_force = false;
    str text;

    if (!is_alarm && record->what != CONTROL_KEYED)
        return PAWL_OK;
    scope_clear(&erasing->reading);
    if (is_alarm)
        TRY(look_at_alarm(beside, record, &is_wanted, &is_in_force));
    if (!record->payload || is_in_force)
        return PAWL_OK;
    if (!is_wanted) {
        TRY(value_text(erasing->engine, &erasing->reading, record->payload, &text));
        is_wanted = text.data && names_one(erasing, text);
    }
    if (is_wanted)
        TRY(erase_add_value(erasing, record->payload));
    return erase_is_full(&erasing->slice) ? erase_flush(erasing) : PAWL_OK;
}

static pawl_status walk(struct beside *beside, struct scope *page, uint64_t pos)
{
    struct chain_query query = { pos, .skip_from = UINT64_MAX, .with_texts = true };
    struct erasing *erasing = beside->erasing;
    struct record *records;
    pawl_status status;
    uint32_t count;

    while (query.pos && (query.pos >= erasing->oldest_pos || beside->alarm_count)) {
        scope_clear(page);
        records = ARENA_ARRAY(&page->arena, struct record, PAGE);
        TRY_MEMORY(&erasing->reading, records);
        status = store_records_of(erasing->engine->store, page, &query, records, PAGE, &count);
        if (status)
            erasing->reading.error = page->error;
        TRY(status);
        for (uint32_t i = 0; i < count; i++)
            TRY(look(beside, &records[i]));
    }
    return PAWL_OK;
}

pawl_status erase_gather_beside(struct erasing *erasing)
{
    struct beside beside = { .erasing = erasing };
    struct head_row head;
    struct scope page;
    pawl_status status;

    if (!erasing->gone.count)
        return PAWL_OK;
    scope_clear(&erasing->reading);
    status = store_head(erasing->engine->store, &erasing->reading, 0, false, &head);
    if (status)
        return status == PAWL_NOT_KNOWN ? PAWL_OK : status;
    scope_init(&page, erasing->engine->heap, LIMIT_SCOPE);
    scope_init(&beside.ids, erasing->engine->heap, LIMIT_SCOPE);
    status = walk(&beside, &page, head.pos);
    scope_fini(&page);
    scope_fini(&beside.ids);
    heap_free(erasing->engine->heap, beside.alarms, sizeof *beside.alarms * beside.alarm_capacity);
    return status;
}
