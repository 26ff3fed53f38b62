/* map_items.c - the items of a map: which have begun, what came of them, and when the map is over.
 *
 * Items begin in the order of the list, so an entry that begins one need not say which it is. No
 * item begins after more have failed than the map tolerates; what was begun runs to its end. */
#include "flow/map_items.h"
#include "base/grow.h"
#include "base/json_scan.h"
#include "base/planted.h"
#include "flow/stop.h"

/* ---- A state --------------------------------------------------------------------------------- */

static uint32_t number_of(const struct plan_step *step, const char *key, uint32_t preset)
{
    const struct node *node = node_find(step->args_node, key);
    uint32_t n = preset;

    if (node && node->kind == NODE_STRING) /* tolerate: all */
        return LIMIT_MAP_ITEMS;
    return node && node_to_u32(node, UINT32_MAX, &n) ? n : preset;
}

static uint32_t tolerated(const struct plan_step *step)
{
    return number_of(step, "tolerate", 0);
}

static uint32_t parallel(const struct plan *plan, const struct plan_step *step)
{
    uint32_t most = MAP_PARALLEL_MAX, n;

    for (uint32_t i = step->body; i != STEP_NONE; i = plan->steps[i].after)
        if (plan->steps[i].kind->may_spawn)
            most = MAP_CHILDREN_MAX;
    n = number_of(step, "max_parallel", most);
    return n < most ? n : most;
}

static bool is_collected(const struct plan_step *step)
{
    const struct node *collect = node_find(step->args_node, "collect");

    return !collect || collect->truth;
}

/* The first item from `from` on that was not done by another instance. */
static uint32_t skip_done(const struct map_state *map, uint32_t from)
{
    while (from < map->count && map->ends[from] != MAP_OPEN)
        from++;
    return from;
}

static uint32_t count_items(str list)
{
    struct json_scan scan;
    uint32_t count = 0;
    str key, item;

    json_scan_begin(&scan, list);
    while (json_scan_next(&scan, &key, &item))
        count++;
    return count;
}

/* Room for the items of `list`, and where each is in it. False: no memory. */
static bool make_items(struct map_state *map, const struct plan *plan, str list,
                       struct arena *arena)
{
    struct json_scan scan;
    str key, item;

    map->over = arena_str(arena, list);
    map->count = count_items(map->over);
    map->items = ARENA_ARRAY(arena, str, map->count + 1);
    map->ends = ARENA_ARRAY(arena, uint8_t, map->count + 1);
    map->results = ARENA_ARRAY(arena, struct kept_text, map->count + 1);
    map->ways =
        map_has_ways(plan, map->plan) ? ARENA_ARRAY(arena, struct item_way, map->count + 1) : NULL;
    if (arena->failed)
        return false;
    json_scan_begin(&scan, map->over);
    for (uint32_t i = 0; json_scan_next(&scan, &key, &item); i++)
        map->items[i] = item;
    return true;
}

struct template_item map_item_of(const struct plan *plan, const struct map_state *map,
                                 uint32_t step, uint32_t index)
{
    uint32_t of = plan->steps[step].of;
    const struct node *as = of != STEP_NONE ? node_find(plan->steps[of].args_node, "as") : NULL;

    if (!map || of == STEP_NONE || index >= map->count)
        return (struct template_item){ .name = STR_NONE };
    return (struct template_item){ .name = as ? as->text : STR("item"),
                                   .value = map->items[index],
                                   .index = index,
                                   .way = map->ways ? &map->ways[index] : NULL };
}

const struct map_state *memory_find_map(const struct flow_memory *memory, uint32_t ordinal)
{
    for (uint32_t i = 0; i < memory->map_count; i++)
        if (memory->maps[i].ordinal == ordinal)
            return &memory->maps[i];
    return NULL;
}

/* ---- Given by the instance that is run again ---- */

static const struct given_map *find_given(const struct flow_memory *memory, uint32_t plan)
{
    for (uint32_t i = 0; i < memory->given_map_count; i++)
        if (memory->given_maps[i].plan == plan)
            return &memory->given_maps[i];
    return NULL;
}

bool memory_add_given_map(struct flow_memory *memory, const struct given_map *given,
                          struct arena *arena)
{
    if (!GROW(arena, memory->given_maps, memory->given_map_count, memory->given_map_capacity))
        return false;
    memory->given_maps[memory->given_map_count++] =
        (struct given_map){ given->plan, arena_str(arena, given->items) };
    return !arena->failed;
}

/* Items that were done there, and ways of others: [[INDEX,RESULT],[INDEX,null,WAY],...]. */
static bool take_given(struct flow_memory *memory, struct map_state *map, struct arena *arena)
{
    const struct given_map *given = find_given(memory, map->plan);
    struct json_scan scan, pair;
    str key, row, index, result, way;
    uint64_t at;

    if (!given)
        return true;
    json_scan_begin(&scan, given->items);
    while (json_scan_next(&scan, &key, &row)) {
        json_scan_begin(&pair, row);
        if (!json_scan_next(&pair, &key, &index) || !json_scan_next(&pair, &key, &result) ||
            !str_to_u64(index, &at) || at >= map->count || map->ends[at] != MAP_OPEN)
            continue;
        if (json_scan_next(&pair, &key, &way)) {
            if (map->ways && !item_way_take(memory, &map->ways[at], way, arena))
                return false;
            continue;
        }
        map->ends[at] = MAP_DONE;
        map->ended++;
        if (!memory_keep(&map->results[at], result, arena))
            return false;
    }
    return true;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* What a decision makes of a map, over what the memory has. */
struct map_turn {
    struct map_turn *next;
    struct map_state state; /* its counts are the decision's own */
    struct attempt attempt; /* of the map itself */
    struct map_end {
        uint32_t item;
        bool is_success;
        str payload;
        struct map_end *next;
    } * ends; /* of this decision */
};

static struct map_turn *add_turn(struct turn *turn, const struct map_state *state,
                                 const struct attempt *attempt)
{
    struct map_turn *added = ARENA_NEW(&turn->scope->arena, struct map_turn);

    if (!added) {
        turn->status = scope_no_memory(turn->scope);
        return NULL;
    }
    *added = (struct map_turn){ .next = turn->maps, .state = *state, .attempt = *attempt };
    turn->maps = added;
    return added;
}

/* NULL: no memory, or no such map. */
static struct map_turn *find_turn(struct turn *turn, uint32_t ordinal)
{
    const struct attempt *attempt = memory_find(turn->memory, ordinal);
    const struct map_state *state = memory_find_map(turn->memory, ordinal);

    for (struct map_turn *map = turn->maps; map; map = map->next)
        if (map->state.ordinal == ordinal)
            return map;
    if (!attempt || !state) {
        turn_fail(turn, PAWL_STORAGE_FAILURE,
                  "an item of a map that is not under way; verify the "
                  "store");
        return NULL;
    }
    return add_turn(turn, state, attempt);
}

static void begin_step_of(struct turn *turn, const struct map_turn *map, uint32_t step,
                          uint32_t index)
{
    turn->item = map_item_of(turn->plan, &map->state, step, index);
    turn->item_map = map->state.ordinal;
    begin_step(turn, step);
    turn->item = (struct template_item){ .name = STR_NONE };
}

static void begin_item(struct turn *turn, struct map_turn *map)
{
    uint32_t index = skip_done(&map->state, map->state.begun);

    map->state.begun = index + 1;
    map->state.live++;
    begin_step_of(turn, map, map_begins_at(turn->plan, &map->state, index), index);
}

static bool is_failing(const struct turn *turn, const struct map_turn *map)
{
    return map->state.failed > tolerated(&turn->plan->steps[map->attempt.plan]);
}

static void begin_items(struct turn *turn, struct map_turn *map)
{
    uint32_t most = parallel(turn->plan, &turn->plan->steps[map->attempt.plan]);

    if (stop_holds(turn, &turn->plan->steps[map->attempt.plan]))
        return;
    while (turn->status == PAWL_OK && !is_failing(turn, map) && map->state.live < most &&
           skip_done(&map->state, map->state.begun) < map->state.count)
        begin_item(turn, map);
}

/* ---- What came of it ---- */

static const struct map_end *find_end(const struct map_turn *map, uint32_t item)
{
    const struct map_end *end = map->ends;

    while (end && end->item != item)
        end = end->next;
    return end;
}

/* The result or error of an item that is over, and which of them it is. */
static str item_text(struct turn *turn, const struct map_turn *map, uint32_t item,
                     struct scope *scratch, bool *is_success)
{
    const struct map_end *end = find_end(map, item);
    str text = STR_NONE;
    pawl_status status;

    *is_success = end ? end->is_success : map->state.ends[item] == MAP_DONE;
    if (end)
        return end->payload;
    scope_clear(scratch);
    status = memory_text(turn->memory, &map->state.results[item], scratch, &text);
    if (status != PAWL_OK && turn->status == PAWL_OK) {
        turn->scope->error = scratch->error;
        turn->status = status;
    }
    return text.data ? text : RESULT_NULL;
}

/* A failed item that is tolerated has its error in its place. */
static void print_item(struct turn *turn, const struct map_turn *map, uint32_t item,
                       struct scope *scratch, struct buf *out)
{
    bool is_success;
    str text = item_text(turn, map, item, scratch, &is_success);

    if (is_success) {
        json_raw(out, text);
        return;
    }
    json_open(out, '{');
    json_put_bool(out, "failed", true);
    json_put_u64(out, "index", item);
    json_put_raw(out, "error", text);
    json_close(out, '}');
}

static void print_list(struct turn *turn, const struct map_turn *map, struct buf *out)
{
    uint32_t count = map->state.count;
    struct scope scratch;

    scope_init(&scratch, turn->scope->arena.heap, LIMIT_SCOPE);
    json_open(out, '[');
    for (uint32_t i = 0; i < count && turn->status == PAWL_OK && out->size <= LIMIT_TEXT; i++)
        print_item(turn, map, PLANTED(MAP_UNORDERED) ? count - 1 - i : i, &scratch, out);
    json_close(out, ']');
    scope_fini(&scratch);
}

static void print_counts(const struct map_turn *map, struct buf *out)
{
    json_open(out, '{');
    json_put_u64(out, "count", map->state.count);
    json_put_u64(out, "failed", map->state.failed);
    json_close(out, '}');
}

static void succeed(struct turn *turn, struct map_turn *map)
{
    const struct plan_step *step = &turn->plan->steps[map->attempt.plan];
    struct buf buf;

    buf_init(&buf, turn->scope->arena.heap, 3 * (size_t)LIMIT_TEXT);
    if (is_collected(step))
        print_list(turn, map, &buf);
    else
        print_counts(map, &buf);
    if (turn->status == PAWL_OK && buf.size > LIMIT_TEXT) {
        buf_fini(&buf);
        (void)scope_fail(turn->scope, PAWL_TOO_LARGE,
                         "the results of the items: expected at most %u bytes together, found "
                         "more; write collect: false",
                         LIMIT_TEXT);
        step_fail(turn, LIFE_T_STEP_FAIL, &map->attempt, RETRY_FAILED, turn_take_error(turn));
        return;
    }
    step_succeed(turn, LIFE_T_STEP_COMPLETE, &map->attempt, turn_take(turn, &buf), 0);
}

/* The first of the list that failed says why: {"reason":"item-failed","index":N,"error":...}. */
static void fail(struct turn *turn, struct map_turn *map)
{
    struct scope scratch;
    bool is_success = true;
    uint32_t item = 0;
    struct buf buf;
    str error = RESULT_NULL;

    scope_init(&scratch, turn->scope->arena.heap, LIMIT_SCOPE);
    for (; item < map->state.count; item++) {
        const struct map_end *end = find_end(map, item);

        if (end ? !end->is_success : map->state.ends[item] == MAP_FAILED)
            break;
    }
    if (item < map->state.count)
        error = item_text(turn, map, item, &scratch, &is_success);
    buf_init(&buf, turn->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    json_open(&buf, '{');
    json_put_text(&buf, "reason", "item-failed");
    json_put_u64(&buf, "index", item);
    json_put_raw(&buf, "error", error);
    json_close(&buf, '}');
    scope_fini(&scratch);
    error = turn_take(turn, &buf);
    if (turn->status == PAWL_OK)
        step_fail(turn, LIFE_T_STEP_FAIL, &map->attempt, RETRY_FAILED, error);
}

static void go_on(struct turn *turn, struct map_turn *map)
{
    begin_items(turn, map);
    if (turn->status != PAWL_OK || map->state.live > 0)
        return;
    if (is_failing(turn, map) || map->state.ended < map->state.count)
        fail(turn, map);
    else
        succeed(turn, map);
}

/* ---- The two events of a map ---- */

pawl_status map_open(struct turn *turn, const struct attempt *attempt, str list)
{
    struct map_state state = { .ordinal = attempt->ordinal, .plan = attempt->plan };
    struct flow_memory scratch = *turn->memory; /* a decision changes nothing in it */
    struct map_turn *map;

    TRY_MEMORY(turn->scope, make_items(&state, turn->plan, list, &turn->scope->arena) &&
                                take_given(&scratch, &state, &turn->scope->arena));
    if (state.count > LIMIT_MAP_ITEMS)
        return scope_fail(turn->scope, PAWL_TOO_LARGE,
                          "'over': expected at most %u items, found %u", LIMIT_MAP_ITEMS,
                          state.count);
    map = add_turn(turn, &state, attempt);
    if (!map)
        return turn->status;
    turn_draft(turn, LIFE_T_STEP_START, attempt, list);
    go_on(turn, map);
    return turn->status;
}

/* Its next step sees what this one brought. */
static void begin_next(struct turn *turn, const struct map_turn *map, const struct attempt *attempt,
                       str payload)
{
    uint32_t slot = turn->fresh_slot;
    str fresh = turn->fresh;

    turn->fresh_slot = turn->plan->steps[attempt->plan].result_slot;
    turn->fresh = payload;
    begin_step_of(turn, map, turn->plan->steps[attempt->plan].after, attempt->item);
    turn->fresh_slot = slot;
    turn->fresh = fresh;
}

/* A step of an item is done that another one follows. Where nothing begins any more the item stays
 * open. */
static void item_goes_on(struct turn *turn, enum lifecycle_transition transition,
                         const struct attempt *attempt, str payload)
{
    struct map_turn *map = find_turn(turn, attempt->map);

    if (turn->status != PAWL_OK)
        return;
    turn->item_over = attempt->ordinal;
    turn_draft(turn, transition, attempt, payload);
    turn_end(turn, attempt);
    if (!stop_holds(turn, &turn->plan->steps[map->attempt.plan])) {
        begin_next(turn, map, attempt, payload);
        return;
    }
    map->state.live--;
    go_on(turn, map);
}

void map_item_over(struct turn *turn, enum lifecycle_transition transition,
                   const struct attempt *attempt, bool is_success, str payload)
{
    struct map_turn *map;
    struct map_end *end;

    if (is_success && turn->plan->steps[attempt->plan].after != STEP_NONE && !PLANTED(ITEM_CUT)) {
        item_goes_on(turn, transition, attempt, payload);
        return;
    }
    map = find_turn(turn, attempt->map);
    end = ARENA_NEW(&turn->scope->arena, struct map_end);
    if (!end && turn->status == PAWL_OK)
        turn->status = scope_no_memory(turn->scope);
    if (turn->status != PAWL_OK)
        return;
    *end = (struct map_end){ attempt->item, is_success, payload, map->ends };
    map->ends = end;
    map->state.ended++;
    map->state.live--;
    map->state.failed += !is_success;
    turn->item_over = attempt->ordinal;
    if (transition != LIFE_T_COUNT) /* a failure has its draft already */
        turn_draft(turn, transition, attempt, payload);
    if (transition != LIFE_T_COUNT)
        turn_end(turn, attempt);
    go_on(turn, map);
}

void map_end_items(struct turn *turn, const struct attempt *attempt)
{
    for (uint32_t i = 0; i < turn->memory->live_count; i++) {
        const struct attempt *live = &turn->memory->live[i];

        if (live->map == attempt->ordinal && live->ordinal != turn->item_over) {
            turn_note_over(turn, live->ordinal);
            turn_cause(turn, (struct effect){ .kind = EFFECT_END, .ordinal = live->ordinal });
        }
    }
}

/* ---- Folding --------------------------------------------------------------------------------- */

static struct map_state *find_own(struct flow_memory *memory, uint32_t ordinal)
{
    for (uint32_t i = 0; i < memory->map_count; i++)
        if (memory->maps[i].ordinal == ordinal)
            return &memory->maps[i];
    return NULL;
}

/* A place for it: that of its step's last one, which failed, or a new one. */
static struct map_state *add_map(struct flow_memory *memory, uint32_t plan, struct arena *arena)
{
    for (uint32_t i = 0; i < memory->map_count; i++)
        if (memory->maps[i].is_over && memory->maps[i].plan == plan)
            return &memory->maps[i];
    if (!GROW(arena, memory->maps, memory->map_count, memory->map_capacity))
        return NULL;
    return &memory->maps[memory->map_count++];
}

/* It counts once: a map that begins again does all of its items. */
static void drop_given(struct flow_memory *memory, uint32_t plan)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < memory->given_map_count; i++)
        if (memory->given_maps[i].plan != plan)
            memory->given_maps[kept++] = memory->given_maps[i];
    memory->given_map_count = kept;
}

pawl_status memory_open_map(struct flow_memory *memory, const struct attempt *attempt, str list,
                            struct scope *scope, struct arena *arena)
{
    struct map_state *map = add_map(memory, attempt->plan, arena);

    TRY_MEMORY(scope, map);
    *map = (struct map_state){ .ordinal = attempt->ordinal, .plan = attempt->plan };
    TRY_MEMORY(scope, make_items(map, memory->plan, list, arena) && take_given(memory, map, arena));
    drop_given(memory, map->plan);
    return PAWL_OK;
}

/* The list was erased: it had at least the items that have begun, and they are not known. */
static bool add_unknown(struct map_state *map, struct arena *arena)
{
    uint32_t room = map->count + 1; /* of the arrays: one more than items */
    struct map_state bigger = *map;

    if ((room & (room - 1)) == 0) { /* they double */
        bigger.items = ARENA_ARRAY(arena, str, (size_t)room * 2);
        bigger.ends = ARENA_ARRAY(arena, uint8_t, (size_t)room * 2);
        bigger.results = ARENA_ARRAY(arena, struct kept_text, (size_t)room * 2);
        if (map->ways)
            bigger.ways = ARENA_ARRAY(arena, struct item_way, (size_t)room * 2);
        if (arena->failed)
            return false;
        if (map->ways)
            memcpy(bigger.ways, map->ways, sizeof *map->ways * map->count);
        memcpy(bigger.items, map->items, sizeof *map->items * map->count);
        memcpy(bigger.ends, map->ends, sizeof *map->ends * map->count);
        memcpy(bigger.results, map->results, sizeof *map->results * map->count);
        *map = bigger;
    }
    map->items[map->count++] = RESULT_NULL;
    return true;
}

static bool is_erased(const struct map_state *map)
{
    return map->over.size == 0 || map->over.data[0] != '[';
}

bool memory_begin_item(struct flow_memory *memory, uint32_t ordinal, uint32_t *item,
                       struct arena *arena)
{
    struct map_state *map = find_own(memory, ordinal);

    if (!map)
        return false;
    *item = skip_done(map, map->begun);
    if (*item >= map->count && (!is_erased(map) || !add_unknown(map, arena)))
        return false;
    map->begun = *item + 1;
    map->live++;
    return true;
}

void memory_begin_way(struct flow_memory *memory, struct attempt *attempt)
{
    struct map_state *map = find_own(memory, attempt->map);

    if (map && attempt->item < map->count)
        attempt->key = item_way_begin(map, attempt->item, attempt);
}

bool memory_pass_item(struct flow_memory *memory, const struct attempt *attempt, bool goes_on,
                      str payload, uint32_t seq, struct arena *arena)
{
    struct map_state *map = find_own(memory, attempt->map);

    if (!map || attempt->item >= map->count || map->live == 0 || !map->ways)
        return true; /* what verify finds */
    map->live -= !goes_on;
    return item_way_pass(memory, &map->ways[attempt->item], attempt->plan, payload, seq, arena);
}

bool memory_end_item(struct flow_memory *memory, const struct attempt *attempt, bool is_success,
                     str payload, uint32_t seq, struct arena *arena)
{
    struct map_state *map = find_own(memory, attempt->map);

    if (!map || attempt->item >= map->count || map->live == 0)
        return true; /* an end that verify finds */
    map->ends[attempt->item] = is_success ? MAP_DONE : MAP_FAILED;
    map->ended++;
    map->live--;
    map->failed += !is_success;
    if (is_success && map->ways)
        item_way_end(memory, &map->ways[attempt->item]);
    if (is_success && !is_collected(&memory->plan->steps[map->plan]))
        return true;
    return memory_keep_payload(memory, &map->results[attempt->item], payload, seq, arena);
}

void memory_close_map(struct flow_memory *memory, uint32_t ordinal, bool is_success)
{
    struct map_state *map = find_own(memory, ordinal);

    if (!map)
        return;
    map->is_over = true;
    if (is_success)
        ARRAY_DROP(memory->maps, memory->map_count, (uint32_t)(map - memory->maps));
}

/* ---- In a snapshot ---- */

void map_print(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    const struct map_state *map = &memory->maps[i];

    json_u64(out, map->ordinal);
    json_u64(out, map->plan);
    json_u64(out, map->begun);
    json_u64(out, map->live);
    json_bool(out, map->is_over);
    json_raw(out, map->over);
}

bool map_load(struct flow_memory *memory, const struct node *row, struct arena *arena)
{
    struct map_state map = { 0 };

    if (row->count != 6 || memory->plan->count == 0 || node_at(row, 5)->kind != NODE_ARRAY ||
        !node_to_u32(node_at(row, 0), UINT32_MAX, &map.ordinal) ||
        !node_to_u32(node_at(row, 1), memory->plan->count - 1, &map.plan) ||
        !node_to_u32(node_at(row, 2), UINT32_MAX, &map.begun) ||
        !node_to_u32(node_at(row, 3), UINT32_MAX, &map.live) ||
        !GROW(arena, memory->maps, memory->map_count, memory->map_capacity) ||
        !make_items(&map, memory->plan, node_at(row, 5)->raw, arena))
        return false;
    map.is_over = node_at(row, 4)->truth;
    memory->maps[memory->map_count++] = map;
    return true;
}

/* [MAP,[[INDEX,IS_DONE,TEXT,SEQ],...]]; those that are not over are left out. */
void map_print_items(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    const struct map_state *map = &memory->maps[i];

    json_u64(out, i);
    json_open(out, '[');
    for (uint32_t item = 0; item < map->count; item++) {
        const struct kept_text *kept = &map->results[item];

        if (map->ends[item] == MAP_OPEN)
            continue;
        json_open(out, '[');
        json_u64(out, item);
        json_bool(out, map->ends[item] == MAP_DONE);
        if (kept_is_there(kept))
            json_raw(out, kept->seq > 0 ? RESULT_NULL : kept_view(kept));
        if (kept->seq > 0)
            json_u64(out, kept->seq);
        json_close(out, ']');
    }
    json_close(out, ']');
}

static bool load_end(struct flow_memory *memory, struct map_state *map, const struct node *row,
                     struct arena *arena)
{
    uint32_t item, seq = 0;

    if (row->kind != NODE_ARRAY || row->count < 2 || row->count > 4 || map->count == 0 ||
        !node_to_u32(node_at(row, 0), map->count - 1, &item) ||
        (row->count == 4 && !node_to_u32(node_at(row, 3), UINT32_MAX, &seq)))
        return false;
    map->ends[item] = node_at(row, 1)->truth ? MAP_DONE : MAP_FAILED;
    map->ended++;
    map->failed += !node_at(row, 1)->truth;
    if (row->count == 4)
        map->results[item].seq = seq;
    return row->count != 3 ||
           memory_keep_payload(memory, &map->results[item], node_at(row, 2)->raw, 0, arena);
}

bool map_load_item(struct flow_memory *memory, const struct node *row, struct arena *arena)
{
    uint32_t map;

    if (row->count != 2 || memory->map_count == 0 ||
        !node_to_u32(row->first, memory->map_count - 1, &map))
        return false;
    for (const struct node *end = row->first->next->first; end; end = end->next)
        if (!load_end(memory, &memory->maps[map], end, arena))
            return false;
    return true;
}
