/* memory_text.c - the snapshot of a flow's memory: printed, and loaded again.
 *
 *   {"plan":{...},"ordinal":3,"live":[[STEP,ORDINAL,ATTEMPT,FIRST,"pending",BACKING_OFF,KEY]],
 *    "arms":[[ORDINAL,IS_TIMER,"NAME",VALUE]],"moved":[[PLACE,INDEX]],
 *    "approvals":[[ORDINAL,"ann"]],"signals":[["NAME",PAYLOAD]],"results":[[STEP,JSON]],
 *    "context":{...},"error":JSON,"nodes":[[NODE,AT,HAS_FAILED,ERROR]],"joins":[STEP],
 *    "keys":[[STEP,"KEY"]],"done":[[STEP,SEQ]]}
 *
 * Members without anything in them are left out; the plan is there after an amend. JSON and ERROR
 * are `null,SEQ` where the text is the payload of entry SEQ. It is read row by row: all of it as
 * nodes would take more memory than the instance. */
#include "base/json_scan.h"
#include "flow/flow_int.h"
#include "flow/map_items.h"
#include "flow/undo.h"

/* ---- Printing -------------------------------------------------------------------- */

/* Arms whose index is not their place among those of their attempt: an amend has moved them. */
static void print_moved(const struct flow_memory *memory, struct buf *out)
{
    size_t before = out->size, opened;
    uint32_t index = 0;

    json_put_open(out, "moved", '[');
    opened = out->size;
    for (uint32_t i = 0; i < memory->arm_count; i++) {
        const struct live_arm *arm = &memory->arms[i];

        index = i > 0 && arm[-1].ordinal == arm->ordinal ? index + 1 : 0;
        if (arm->index == index)
            continue;
        json_open(out, '[');
        json_u64(out, i);
        json_u64(out, arm->index);
        json_close(out, ']');
    }
    if (out->size == opened)
        out->size = before; /* none */
    else
        json_close(out, ']');
}

static void print_joins(const struct flow_memory *memory, struct buf *out)
{
    json_put_open(out, "joins", '[');
    for (uint32_t i = 0; i < memory->plan->count; i++)
        if (memory->joins[i])
            json_u64(out, i);
    json_close(out, ']');
}

/* ---- Rows of lists: one that is not in the snapshot prints nothing ---- */

static void print_live(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    const struct attempt *live = &memory->live[i];

    json_u64(out, live->plan);
    json_u64(out, live->ordinal);
    json_u64(out, live->attempt);
    json_u64(out, live->first_ordinal);
    json_text(out, step_status_name(live->status));
    json_bool(out, live->is_backing_off);
    if (live->key.data)
        json_str(out, live->key);
    else if (live->map > 0)
        json_null(out);
    if (live->map > 0) {
        json_u64(out, live->map);
        json_u64(out, live->item);
    }
}

static void print_arm(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    json_u64(out, memory->arms[i].ordinal);
    json_bool(out, memory->arms[i].is_timer);
    json_str(out, memory->arms[i].name);
    if (memory->arms[i].value.data)
        json_raw(out, memory->arms[i].value);
}

static void print_signal(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    json_str(out, memory->signals[i].name);
    json_raw(out, memory->signals[i].payload);
}

static void print_approval(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    json_u64(out, memory->approvals[i].ordinal);
    json_str(out, memory->approvals[i].approver);
}

static void print_key(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    json_u64(out, memory->keys[i].plan);
    json_str(out, memory->keys[i].key);
}

static void print_given(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    json_u64(out, memory->given_maps[i].plan);
    json_raw(out, memory->given_maps[i].items);
}

/* A text, or the entry that has it. */
static void print_kept(const struct kept_text *kept, struct buf *out)
{
    json_raw(out, kept_view(kept));
    if (kept->seq > 0)
        json_u64(out, kept->seq);
}

static void print_result(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    uint32_t slot = memory->plan->steps[i].result_slot;

    if (slot == STEP_NONE || !kept_is_there(&memory->results[slot]))
        return;
    json_u64(out, i);
    print_kept(&memory->results[slot], out);
}

/* Of steps that something asks for. */
static void print_done(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    const struct plan_step *step = &memory->plan->steps[i];

    if (memory->done[i] == 0 || (step->result_slot == STEP_NONE && step->augment_count == 0))
        return;
    json_u64(out, i);
    json_u64(out, memory->done[i]);
}

static void print_node(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    const struct node_state *state = &memory->nodes[i];

    if (!state->is_open)
        return;
    json_u64(out, i);
    json_u64(out, state->at);
    json_bool(out, state->has_failed);
    if (state->error != 0)
        print_kept(&memory->errors.rows[state->error - 1].text, out);
}

static void print_stopping(const struct flow_memory *memory, uint32_t i, struct buf *out)
{
    if (memory->nodes[i].is_open && memory->nodes[i].is_stopping)
        json_u64(out, i);
}

static bool has_stopping(const struct flow_memory *memory)
{
    const struct plan *plan = memory->plan;
    uint32_t i = 0;

    while (plan->is_tree && i < plan->node_count &&
           !(memory->nodes[i].is_open && memory->nodes[i].is_stopping))
        i++;
    return plan->is_tree && i < plan->node_count;
}

/* [ACTOR,REASON] */
static void print_cancelling(const struct flow_memory *memory, struct buf *out)
{
    json_put_open(out, "cancelling", '[');
    json_str(out, memory->cancel_actor);
    json_str(out, memory->cancel_reason);
    json_close(out, ']');
}

static void print_rows(const struct flow_memory *memory, const char *key, uint32_t count,
                       void (*print)(const struct flow_memory *memory, uint32_t i, struct buf *out),
                       struct buf *out)
{
    json_put_open(out, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        size_t before = out->size, opened;

        json_open(out, '[');
        opened = out->size;
        print(memory, i, out);
        if (out->size == opened)
            out->size = before; /* no row */
        else
            json_close(out, ']');
    }
    json_close(out, ']');
}

void flow_memory_print(const struct definition *definition, const void *state, struct buf *out)
{
    const struct flow_memory *memory = state;
    const struct plan *plan = memory->plan;

    (void)definition;
    json_open(out, '{');
    if (memory->is_amended) {
        json_key(out, "plan");
        plan_print(plan, out);
    }
    json_put_u64(out, "ordinal", memory->ordinal_last);
    print_rows(memory, "live", memory->live_count, print_live, out);
    if (memory->arm_count > 0)
        print_rows(memory, "arms", memory->arm_count, print_arm, out);
    print_moved(memory, out);
    if (memory->approval_count > 0)
        print_rows(memory, "approvals", memory->approval_count, print_approval, out);
    if (memory->signal_count > 0)
        print_rows(memory, "signals", memory->signal_count, print_signal, out);
    print_rows(memory, "results", plan->slot_count > 0 ? plan->count : 0, print_result, out);
    if (memory->context->is_there) {
        json_key(out, "context");
        context_print(memory->context, out);
    }
    if (memory->last_error.data)
        json_put_raw(out, "error", kept_view(&memory->last_error));
    if (plan->is_tree)
        print_rows(memory, "nodes", plan->node_count, print_node, out);
    else if (memory->join_count > 0)
        print_joins(memory, out);
    if (memory->key_count > 0)
        print_rows(memory, "keys", memory->key_count, print_key, out);
    if (memory->done)
        print_rows(memory, "done", plan->count, print_done, out);
    if (memory->undo_count > 0)
        print_rows(memory, "undos", memory->undo_count, undo_print, out);
    if (memory->undoing != UNDO_NOT) {
        json_key(out, "undoing");
        undoing_print(memory, out);
    }
    if (has_stopping(memory))
        print_rows(memory, "stopping", plan->node_count, print_stopping, out);
    if (memory->is_cancelling)
        print_cancelling(memory, out);
    if (memory->map_count > 0) {
        print_rows(memory, "maps", memory->map_count, map_print, out);
        print_rows(memory, "items", memory->map_count, map_print_items, out);
    }
    if (item_ways_any(memory)) {
        json_put_open(out, "ways", '[');
        item_ways_print(memory, out);
        json_close(out, ']');
    }
    if (memory->given_map_count > 0)
        print_rows(memory, "given", memory->given_map_count, print_given, out);
    json_close(out, '}');
}

/* ---- Loading --------------------------------------------------------------------- */

struct flow_loading {
    const struct plan *plan;
    struct flow_memory *memory;
    struct arena *arena;
    struct scope row; /* the row that is read */
};

static bool load_live(struct flow_loading *loading, const struct node *row)
{
    struct flow_memory *memory = loading->memory;
    uint32_t before = memory->live_count > 0 ? memory->live[memory->live_count - 1].ordinal : 0;
    struct attempt live = { 0 };

    if (row->count < 6 || row->count == 8 || row->count > 9 || loading->plan->count == 0)
        return false;
    live.is_backing_off = node_at(row, 5)->truth;
    if (row->count >= 7 && node_at(row, 6)->kind == NODE_STRING)
        live.key = arena_str(loading->arena, node_at(row, 6)->text);
    if (row->count == 9 && (!node_to_u32(node_at(row, 7), UINT32_MAX, &live.map) ||
                            !node_to_u32(node_at(row, 8), UINT32_MAX, &live.item)))
        return false;
    while (live.status <= STEP_RUNNING &&
           !str_is(node_at(row, 4)->text, step_status_name(live.status)))
        live.status++;
    return live.status <= STEP_RUNNING &&
           node_to_u32(node_at(row, 0), loading->plan->count - 1, &live.plan) &&
           node_to_u32(node_at(row, 1), UINT32_MAX, &live.ordinal) && live.ordinal > before &&
           node_to_u32(node_at(row, 2), UINT32_MAX, &live.attempt) &&
           node_to_u32(node_at(row, 3), UINT32_MAX, &live.first_ordinal) &&
           memory_add_live(memory, &live, loading->arena);
}

static bool load_arm(struct flow_loading *loading, const struct node *row)
{
    struct live_arm arm = { 0 };

    if (row->count < 3 || row->count > 4 || !node_to_u32(node_at(row, 0), UINT32_MAX, &arm.ordinal))
        return false;
    arm.value = row->count == 4 ? node_at(row, 3)->raw : STR_NONE;
    arm.is_timer = node_at(row, 1)->truth;
    arm.name = node_at(row, 2)->text;
    return arm.name.data && memory_add_arm(loading->memory, &arm, loading->arena);
}

static bool load_moved(struct flow_loading *loading, const struct node *row)
{
    uint32_t place;

    return row->count == 2 && loading->memory->arm_count > 0 &&
           node_to_u32(row->first, loading->memory->arm_count - 1, &place) &&
           node_to_u32(row->first->next, ARM_NONE - 1, &loading->memory->arms[place].index);
}

static bool load_approval(struct flow_loading *loading, const struct node *row)
{
    struct approval approval = { 0 };

    if (row->count != 2 || !node_to_u32(node_at(row, 0), UINT32_MAX, &approval.ordinal))
        return false;
    approval.approver = node_at(row, 1)->text;
    return memory_add_approval(loading->memory, &approval, loading->arena);
}

static bool load_signal(struct flow_loading *loading, const struct node *row)
{
    struct kept_signal signal;

    if (row->count != 2 || row->first->kind != NODE_STRING)
        return false;
    signal = (struct kept_signal){ row->first->text, row->first->next->raw };
    return memory_add_signal(loading->memory, &signal, loading->arena);
}

static bool load_seq(const struct node *node, uint32_t *out)
{
    return node_to_u32(node, UINT32_MAX, out) && *out > 0;
}

static bool load_result(struct flow_loading *loading, const struct node *row)
{
    struct flow_memory *memory = loading->memory;
    uint32_t index, slot, seq = 0;

    if (row->count < 2 || row->count > 3 || loading->plan->count == 0 ||
        !node_to_u32(row->first, loading->plan->count - 1, &index) ||
        (row->count == 3 && !load_seq(node_at(row, 2), &seq)))
        return false;
    slot = loading->plan->steps[index].result_slot;
    if (slot == STEP_NONE)
        return true;
    memory->results[slot].seq = seq;
    return seq > 0 ||
           memory_keep_payload(memory, &memory->results[slot], node_at(row, 1)->raw, 0,
                               loading->arena);
}

static bool load_done(struct flow_loading *loading, const struct node *row)
{
    uint32_t index;

    return row->count == 2 && loading->plan->count > 0 &&
           node_to_u32(row->first, loading->plan->count - 1, &index) &&
           load_seq(row->first->next, &loading->memory->done[index]);
}

static bool load_node(struct flow_loading *loading, const struct node *row)
{
    struct node_state state = { .is_open = true };
    uint32_t index, seq = 0;

    if (row->count < 3 || row->count > 5 || loading->plan->node_count == 0 ||
        !node_to_u32(node_at(row, 0), loading->plan->node_count - 1, &index) ||
        !node_to_u32(node_at(row, 1), UINT32_MAX, &state.at) ||
        (row->count == 5 && !load_seq(node_at(row, 4), &seq)))
        return false;
    state.has_failed = node_at(row, 2)->truth;
    if (row->count > 3)
        state.error = tree_errors_add(&loading->memory->errors,
                                      seq > 0 ? STR_NONE : node_at(row, 3)->raw, seq,
                                      loading->arena);
    loading->memory->nodes[index] = state;
    return row->count == 3 || state.error != 0;
}

static bool load_join(struct flow_loading *loading, const struct node *row)
{
    uint32_t index;

    if (loading->plan->is_tree || !node_to_u32(row, loading->plan->count - 1, &index))
        return false;
    if (!plan_is_joined(loading->plan, index) || loading->memory->joins[index])
        return true;
    loading->memory->joins[index] = true;
    loading->memory->join_count++;
    return true;
}

static bool load_key(struct flow_loading *loading, const struct node *row)
{
    struct given_key key;

    if (row->count != 2 || loading->plan->count == 0 ||
        !node_to_u32(row->first, loading->plan->count - 1, &key.plan))
        return false;
    key.key = row->first->next->text;
    return memory_add_key(loading->memory, &key, loading->arena);
}

static bool load_undo(struct flow_loading *loading, const struct node *row)
{
    return undo_load(loading->memory, row, loading->arena);
}

static bool load_undoing(struct flow_loading *loading, const struct node *row)
{
    return undoing_load(loading->memory, row, loading->arena);
}

static bool load_stopping(struct flow_loading *loading, const struct node *row)
{
    uint32_t index;

    if (row->count != 1 || loading->plan->node_count == 0 ||
        !node_to_u32(row->first, loading->plan->node_count - 1, &index))
        return false;
    loading->memory->nodes[index].is_stopping = true;
    return true;
}

static bool load_cancelling(struct flow_loading *loading, const struct node *row)
{
    struct flow_memory *memory = loading->memory;

    if (row->kind != NODE_ARRAY || row->count != 2)
        return false;
    memory->is_cancelling = true;
    if (node_at(row, 0)->kind == NODE_STRING)
        memory->cancel_actor = arena_str(loading->arena, node_at(row, 0)->text);
    if (node_at(row, 1)->kind == NODE_STRING)
        memory->cancel_reason = arena_str(loading->arena, node_at(row, 1)->text);
    return !loading->arena->failed;
}

static bool load_map(struct flow_loading *loading, const struct node *row)
{
    return map_load(loading->memory, row, loading->arena);
}

static bool load_items(struct flow_loading *loading, const struct node *row)
{
    return map_load_item(loading->memory, row, loading->arena);
}

static bool load_way(struct flow_loading *loading, const struct node *row)
{
    return item_way_load(loading->memory, row, loading->arena);
}

static bool load_given(struct flow_loading *loading, const struct node *row)
{
    struct given_map given = { 0 };

    if (row->count != 2 || loading->plan->count == 0 ||
        !node_to_u32(row->first, loading->plan->count - 1, &given.plan))
        return false;
    given.items = row->first->next->raw;
    return memory_add_given_map(loading->memory, &given, loading->arena);
}

static bool load_ordinal(struct flow_loading *loading, const struct node *ordinal)
{
    return node_to_u32(ordinal, UINT32_MAX, &loading->memory->ordinal_last);
}

static bool load_context(struct flow_loading *loading, const struct node *context)
{
    return context_load(loading->memory->context, context->raw, loading->arena);
}

static bool load_error(struct flow_loading *loading, const struct node *error)
{
    return memory_keep(&loading->memory->last_error, error->raw, loading->arena);
}

typedef bool (*load_fn)(struct flow_loading *loading, const struct node *value);

static const struct member {
    const char *key;
    load_fn load;
    bool is_list; /* of values that are loaded one by one */
} members[] = {
    { "ordinal", load_ordinal, false },   { "live", load_live, true },
    { "arms", load_arm, true },           { "moved", load_moved, true },
    { "approvals", load_approval, true }, { "signals", load_signal, true },
    { "results", load_result, true },     { "nodes", load_node, true },
    { "joins", load_join, true },         { "keys", load_key, true },
    { "context", load_context, false },   { "error", load_error, false },
    { "done", load_done, true },          { "maps", load_map, true },
    { "items", load_items, true },        { "given", load_given, true },
    { "undos", load_undo, true },         { "undoing", load_undoing, false },
    { "stopping", load_stopping, true },  { "cancelling", load_cancelling, false },
    { "ways", load_way, true },
};

static bool load_value(struct flow_loading *loading, str value, load_fn load)
{
    struct node *node = NULL;

    scope_clear(&loading->row);
    return node_read_own(&loading->row, value, &node) == PAWL_OK && load(loading, node);
}

static bool load_member(struct flow_loading *loading, str key, str value)
{
    struct json_scan scan;
    size_t i = 0;
    str row;

    while (i < sizeof members / sizeof members[0] && !str_is(key, members[i].key))
        i++;
    if (i == sizeof members / sizeof members[0])
        return true; /* the plan, which was read first */
    if (!members[i].is_list)
        return load_value(loading, value, members[i].load);
    json_scan_begin(&scan, value);
    while (json_scan_next(&scan, &key, &row))
        if (!load_value(loading, row, members[i].load))
            return false;
    return !scan.is_object && json_scan_is_whole(&scan);
}

static bool load_all(struct flow_loading *loading, str text)
{
    struct json_scan scan;
    bool has_ordinal = false, has_done = false;
    str key, value;

    json_scan_begin(&scan, text);
    while (scan.is_object && json_scan_next(&scan, &key, &value)) {
        has_ordinal = has_ordinal || str_is(key, "ordinal");
        has_done = has_done || str_is(key, "done");
        if (!load_member(loading, key, value))
            return false;
    }
    if (!has_done)
        loading->memory->done = NULL;
    return has_ordinal && json_scan_is_whole(&scan);
}

/* A memory by the plan that the snapshot says, if it says one. */
static pawl_status begin_loading(const struct definition *definition, str text, str input,
                                 struct scope *scope, struct flow_loading *loading)
{
    struct plan *amended = NULL;
    str plan_text;

    if (json_member(&scope->arena, text, STR("plan"), &plan_text))
        TRY(plan_load_into(loading->arena, plan_text, scope, &amended));
    loading->plan = amended ? amended : plan_of(definition);
    loading->memory = memory_of_plan(loading->plan, input, loading->arena);
    TRY_MEMORY(scope, loading->memory);
    loading->memory->is_amended = amended;
    return PAWL_OK;
}

pawl_status flow_memory_load(const struct definition *definition, str text, str input,
                             struct scope *scope, struct arena *arena, void **out)
{
    struct flow_loading loading = { .arena = arena };
    pawl_status status = begin_loading(definition, text, input, scope, &loading);
    bool is_loaded, is_poor;

    scope_init(&loading.row, scope->arena.heap, LIMIT_SCOPE);
    is_loaded = status == PAWL_OK && load_all(&loading, text);
    is_poor = loading.row.arena.failed;
    scope_fini(&loading.row);
    if (status == PAWL_NO_MEMORY || arena->failed || is_poor)
        return scope_no_memory(scope);
    if (!is_loaded)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the snapshot of a flow cannot be read; delete it, it is rebuilt");
    *out = loading.memory;
    return PAWL_OK;
}
