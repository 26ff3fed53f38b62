/* item_way.c - a map that does several steps for each item: how far each item has come.
 *
 * An item goes on in the entry that ends a step of it. What its steps brought is kept until the
 * item is done, since only its own later steps see it. One that fails keeps its way for a redrive,
 * which goes on at the step that failed. */
#include "base/ids.h"
#include "base/json_scan.h"
#include "flow/flow.h"
#include "flow/map_items.h"
#include <stdio.h>

bool map_has_ways(const struct plan *plan, uint32_t map)
{
    uint32_t body = plan->steps[map].body;

    return body != STEP_NONE && plan->steps[body].after != STEP_NONE;
}

uint32_t map_begins_at(const struct plan *plan, const struct map_state *map, uint32_t item)
{
    const struct item_way *way = map->ways ? &map->ways[item] : NULL;
    bool is_there = way && way->is_begun && way->plan < plan->count &&
                    plan->steps[way->plan].of == map->plan && !plan->steps[way->plan].kind->is_gone;

    return is_there ? way->plan : plan->steps[map->plan].body;
}

/* ---- Folding --------------------------------------------------------------------------------- */

str item_way_begin(struct map_state *map, uint32_t item, const struct attempt *attempt)
{
    struct item_way *way = map->ways ? &map->ways[item] : NULL;
    bool is_given = way && way->ordinal == 0 && way->is_begun && way->plan == attempt->plan;
    str key = is_given ? way->key : attempt->key;

    if (way) {
        way->plan = attempt->plan;
        way->ordinal = attempt->ordinal;
        way->key = key;
        way->is_begun = true;
    }
    return key;
}

/* A row of an item that is done has room for a result of another one. */
static struct passed *take_row(struct flow_memory *memory, struct arena *arena)
{
    struct passed *row = memory->spare_passed;

    if (!row)
        return ARENA_NEW(arena, struct passed);
    memory->spare_passed = row->next;
    return row;
}

bool item_way_pass(struct flow_memory *memory, struct item_way *way, uint32_t plan, str result,
                   uint32_t seq, struct arena *arena)
{
    struct passed *row = take_row(memory, arena), **last = &way->passed;

    if (!row)
        return false;
    while (*last)
        last = &(*last)->next;
    row->plan = plan;
    row->next = NULL;
    *last = row;
    return memory_keep_payload(memory, &row->text, result, seq, arena);
}

void item_way_end(struct flow_memory *memory, struct item_way *way)
{
    while (way->passed) {
        struct passed *row = way->passed;

        way->passed = row->next;
        row->next = memory->spare_passed;
        memory->spare_passed = row;
    }
}

bool item_ways_amend(struct flow_memory *memory, struct arena *arena)
{
    for (uint32_t i = 0; i < memory->map_count; i++) {
        struct map_state *map = &memory->maps[i];
        bool has_ways = map_has_ways(memory->plan, map->plan);

        if (has_ways && !map->ways)
            map->ways = ARENA_ARRAY(arena, struct item_way, map->count + 1);
        else if (!has_ways)
            map->ways = NULL;
    }
    return !arena->failed;
}

/* ---- Given by the instance that is run again ---------------------------------------------------
 *
 * A row [INDEX,null,{"at":STEP,"key":KEY,"results":{STEP:RESULT,...}}] of its map. */

static bool take_results(struct flow_memory *memory, struct item_way *way, str results,
                         struct arena *arena)
{
    struct json_scan scan;
    str name, result;

    json_scan_begin(&scan, results);
    while (json_scan_next(&scan, &name, &result)) {
        uint32_t plan = plan_find(memory->plan, json_unescape(arena, name));

        if (plan != STEP_NONE && !item_way_pass(memory, way, plan, result, 0, arena))
            return false;
    }
    return !arena->failed;
}

bool item_way_take(struct flow_memory *memory, struct item_way *way, str given, struct arena *arena)
{
    struct node at = { 0 }, key = { 0 };
    str text;

    if (json_member(arena, given, STR("at"), &text))
        json_peek(arena, text, &at);
    if (json_member(arena, given, STR("key"), &text))
        json_peek(arena, text, &key);
    way->plan = at.kind == NODE_STRING ? plan_find(memory->plan, at.text) : STEP_NONE;
    way->is_begun = way->plan != STEP_NONE;
    if (!way->is_begun)
        return !arena->failed; /* the definition does not have it any more: from the first step */
    way->key = key.kind == NODE_STRING ? arena_str(arena, key.text) : STR_NONE;
    return !json_member(arena, given, STR("results"), &text) ||
           take_results(memory, way, text, arena);
}

/* Of the attempt with which it stands there: of its child, or as it was given, or its own. */
static str key_of(const struct flow_redrive *args, const struct item_way *way, struct arena *arena)
{
    char own[ID_SIZE + 12];

    for (uint32_t i = 0; way->ordinal > 0 && i < args->attempts->count; i++) {
        const struct flow_attempt *attempt = &args->attempts->items[i];

        if (attempt->first == way->ordinal && attempt->child.data && !attempt->is_retried)
            return attempt->child;
    }
    if (way->key.data || way->ordinal == 0)
        return way->key;
    (void)snprintf(own, sizeof own, "%.*s.%u", STR_ARG(args->retry_of), way->ordinal);
    return arena_str(arena, str_of(own));
}

static pawl_status give_results(const struct flow_memory *memory, const struct item_way *way,
                                struct scope *value, struct buf *out)
{
    json_put_open(out, "results", '{');
    for (const struct passed *row = way->passed; row && !out->failed; row = row->next) {
        str result;

        scope_clear(value);
        TRY(memory_text(memory, &row->text, value, &result));
        json_key_str(out, memory->plan->steps[row->plan].name);
        json_raw(out, result.data ? result : RESULT_NULL);
    }
    json_close(out, '}');
    return PAWL_OK;
}

/* It goes on at the step that was not done, and sees what those before it brought. */
pawl_status item_way_give(const struct flow_redrive *args, const struct map_state *map,
                          uint32_t item, struct scope *value, struct buf *out)
{
    const struct flow_memory *memory = args->memory;
    const struct item_way *way = map->ways ? &map->ways[item] : NULL;
    const struct passed *row = way ? way->passed : NULL;
    uint32_t at = way && way->is_begun ? way->plan : STEP_NONE;

    while (row && row->plan != at)
        row = row->next;
    if (row) /* it was stopped before its next step began */
        at = memory->plan->steps[at].after;
    if (at == STEP_NONE)
        return PAWL_OK;
    json_open(out, '[');
    json_u64(out, item);
    json_null(out);
    json_open(out, '{');
    json_put_str(out, "at", memory->plan->steps[at].name);
    scope_clear(value);
    if (!row)
        json_opt_str(out, "key", key_of(args, way, &value->arena));
    TRY(give_results(memory, way, value, out));
    json_close(out, '}');
    json_close(out, ']');
    return PAWL_OK;
}

/* ---- In a snapshot: [MAP,ITEM,PLAN,ORDINAL,KEY,[[PLAN,TEXT,SEQ],...]] ---- */

static bool is_printed(const struct map_state *map, uint32_t item)
{
    return map->ways && map->ways[item].is_begun && map->ends[item] != MAP_DONE;
}

static void print_passed(const struct passed *row, struct buf *out)
{
    json_open(out, '[');
    json_u64(out, row->plan);
    json_raw(out, row->text.seq > 0 ? RESULT_NULL : kept_view(&row->text));
    if (row->text.seq > 0)
        json_u64(out, row->text.seq);
    json_close(out, ']');
}

static void print_way(const struct map_state *map, uint32_t place, uint32_t item, struct buf *out)
{
    const struct item_way *way = &map->ways[item];

    json_open(out, '[');
    json_u64(out, place);
    json_u64(out, item);
    json_u64(out, way->plan);
    json_u64(out, way->ordinal);
    if (way->key.data)
        json_str(out, way->key);
    else
        json_null(out);
    json_open(out, '[');
    for (const struct passed *row = way->passed; row; row = row->next)
        print_passed(row, out);
    json_close(out, ']');
    json_close(out, ']');
}

bool item_ways_any(const struct flow_memory *memory)
{
    for (uint32_t i = 0; i < memory->map_count; i++)
        for (uint32_t item = 0; memory->maps[i].ways && item < memory->maps[i].count; item++)
            if (is_printed(&memory->maps[i], item))
                return true;
    return false;
}

void item_ways_print(const struct flow_memory *memory, struct buf *out)
{
    for (uint32_t i = 0; i < memory->map_count; i++)
        for (uint32_t item = 0; memory->maps[i].ways && item < memory->maps[i].count; item++)
            if (is_printed(&memory->maps[i], item))
                print_way(&memory->maps[i], i, item, out);
}

static bool load_passed(struct flow_memory *memory, struct item_way *way, const struct node *row,
                        struct arena *arena)
{
    uint32_t plan, seq = 0;
    struct passed *last;

    if (row->kind != NODE_ARRAY || row->count < 2 || row->count > 3 ||
        !node_to_u32(row->first, memory->plan->count - 1, &plan) ||
        (row->count == 3 && !node_to_u32(node_at(row, 2), UINT32_MAX, &seq)) ||
        !item_way_pass(memory, way, plan, row->count == 3 ? STR("") : node_at(row, 1)->raw, 0,
                       arena))
        return false;
    for (last = way->passed; last->next;)
        last = last->next;
    last->text.seq = seq;
    return true;
}

bool item_way_load(struct flow_memory *memory, const struct node *row, struct arena *arena)
{
    uint32_t place, item;
    struct item_way *way;

    if (row->kind != NODE_ARRAY || row->count != 6 || memory->map_count == 0 ||
        !node_to_u32(row->first, memory->map_count - 1, &place) || !memory->maps[place].ways ||
        !node_to_u32(node_at(row, 1), memory->maps[place].count, &item) ||
        item >= memory->maps[place].count)
        return false;
    way = &memory->maps[place].ways[item];
    way->is_begun = true;
    if (!node_to_u32(node_at(row, 2), memory->plan->count - 1, &way->plan) ||
        !node_to_u32(node_at(row, 3), UINT32_MAX, &way->ordinal))
        return false;
    if (node_at(row, 4)->kind == NODE_STRING)
        way->key = arena_str(arena, node_at(row, 4)->text);
    for (const struct node *passed = node_at(row, 5)->first; passed; passed = passed->next)
        if (!load_passed(memory, way, passed, arena))
            return false;
    return !arena->failed;
}
