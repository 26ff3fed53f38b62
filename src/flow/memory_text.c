/* memory_text.c - the snapshot of a flow's memory: printed, and loaded again.
 *
 *   {"plan":{...},"ordinal":3,"live":[[STEP,ORDINAL,ATTEMPT,FIRST,"pending",BACKING_OFF,KEY]],
 *    "arms":[[ORDINAL,IS_TIMER,"NAME",VALUE]],"approvals":[[ORDINAL,"ann"]],
 *    "signals":[["NAME",PAYLOAD]],"results":[[STEP,JSON]],
 *    "context":{...},"error":JSON,"nodes":[[NODE,AT,HAS_FAILED,ERROR]],"joins":[STEP],
 *    "keys":[[STEP,"KEY"]]}
 *
 * Members without anything in them are left out; the plan is there after an amend. */
#include "base/node.h"
#include "flow/flow_int.h"
#include "flow/memory.h"

/* ---- Printing -------------------------------------------------------------------- */

static void print_live(const struct flow_memory *memory, struct buf *out)
{
    json_key(out, "live");
    json_open(out, '[');
    for (uint32_t i = 0; i < memory->live_count; i++) {
        const struct attempt *live = &memory->live[i];

        json_open(out, '[');
        json_u64(out, live->plan);
        json_u64(out, live->ordinal);
        json_u64(out, live->attempt);
        json_u64(out, live->first_ordinal);
        json_text(out, step_status_name(live->status));
        json_bool(out, live->is_backing_off);
        if (live->key.data)
            json_str(out, live->key);
        json_close(out, ']');
    }
    json_close(out, ']');
}

static void print_arms(const struct flow_memory *memory, struct buf *out)
{
    json_key(out, "arms");
    json_open(out, '[');
    for (uint32_t i = 0; i < memory->arm_count; i++) {
        json_open(out, '[');
        json_u64(out, memory->arms[i].ordinal);
        json_bool(out, memory->arms[i].is_timer);
        json_str(out, memory->arms[i].name);
        if (memory->arms[i].value.data)
            json_raw(out, memory->arms[i].value);
        json_close(out, ']');
    }
    json_close(out, ']');
}

static void print_signals(const struct flow_memory *memory, struct buf *out)
{
    json_key(out, "signals");
    json_open(out, '[');
    for (uint32_t i = 0; i < memory->signal_count; i++) {
        json_open(out, '[');
        json_str(out, memory->signals[i].name);
        json_raw(out, memory->signals[i].payload);
        json_close(out, ']');
    }
    json_close(out, ']');
}

static void print_approvals(const struct flow_memory *memory, struct buf *out)
{
    json_key(out, "approvals");
    json_open(out, '[');
    for (uint32_t i = 0; i < memory->approval_count; i++) {
        json_open(out, '[');
        json_u64(out, memory->approvals[i].ordinal);
        json_str(out, memory->approvals[i].approver);
        json_close(out, ']');
    }
    json_close(out, ']');
}

static void print_results(const struct plan *plan, const struct flow_memory *memory,
                          struct buf *out)
{
    json_key(out, "results");
    json_open(out, '[');
    for (uint32_t i = 0; i < plan->count && plan->slot_count > 0; i++) {
        uint32_t slot = plan->steps[i].result_slot;

        if (slot == STEP_NONE || !memory->results[slot].data)
            continue;
        json_open(out, '[');
        json_u64(out, i);
        json_raw(out, kept_view(&memory->results[slot]));
        json_close(out, ']');
    }
    json_close(out, ']');
}

static void print_nodes(const struct plan *plan, const struct flow_memory *memory, struct buf *out)
{
    json_key(out, "nodes");
    json_open(out, '[');
    for (uint32_t i = 0; i < plan->node_count; i++) {
        if (!memory->nodes[i].is_open)
            continue;
        json_open(out, '[');
        json_u64(out, i);
        json_u64(out, memory->nodes[i].at);
        json_bool(out, memory->nodes[i].has_failed);
        if (memory->nodes[i].error != 0)
            json_raw(out, kept_view(&memory->errors.rows[memory->nodes[i].error - 1].text));
        json_close(out, ']');
    }
    json_close(out, ']');
}

static void print_joins(const struct plan *plan, const struct flow_memory *memory, struct buf *out)
{
    json_key(out, "joins");
    json_open(out, '[');
    for (uint32_t i = 0; i < plan->count; i++)
        if (memory->joins[i])
            json_u64(out, i);
    json_close(out, ']');
}

static void print_keys(const struct flow_memory *memory, struct buf *out)
{
    json_key(out, "keys");
    json_open(out, '[');
    for (uint32_t i = 0; i < memory->key_count; i++) {
        json_open(out, '[');
        json_u64(out, memory->keys[i].plan);
        json_str(out, memory->keys[i].key);
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
    json_key(out, "ordinal");
    json_u64(out, memory->ordinal_last);
    print_live(memory, out);
    if (memory->arm_count > 0)
        print_arms(memory, out);
    if (memory->approval_count > 0)
        print_approvals(memory, out);
    if (memory->signal_count > 0)
        print_signals(memory, out);
    print_results(plan, memory, out);
    if (memory->context.data) {
        json_key(out, "context");
        json_raw(out, kept_view(&memory->context));
    }
    if (memory->last_error.data) {
        json_key(out, "error");
        json_raw(out, kept_view(&memory->last_error));
    }
    if (plan->is_tree)
        print_nodes(plan, memory, out);
    else if (memory->join_count > 0)
        print_joins(plan, memory, out);
    if (memory->key_count > 0)
        print_keys(memory, out);
    json_close(out, '}');
}

/* ---- Loading --------------------------------------------------------------------- */

struct loading {
    const struct plan *plan;
    struct flow_memory *memory;
    struct arena *arena;
};

static bool load_u32(const struct node *node, uint32_t max, uint32_t *out)
{
    int64_t n;

    if (!node_to_i64(node, &n) || n < 0 || n > max)
        return false;
    *out = (uint32_t)n;
    return true;
}

static bool load_status(const struct node *node, enum step_status *out)
{
    for (enum step_status status = STEP_PENDING; status <= STEP_RUNNING; status++)
        if (str_is(node->text, step_status_name(status))) {
            *out = status;
            return true;
        }
    return false;
}

static bool load_live(const struct loading *loading, const struct node *row)
{
    struct attempt live = { 0 };
    uint32_t before = loading->memory->live_count > 0
                          ? loading->memory->live[loading->memory->live_count - 1].ordinal
                          : 0;

    if (row->count < 6 || row->count > 7 || loading->plan->count == 0)
        return false;
    live.is_backing_off = node_at(row, 5)->truth;
    if (row->count == 7)
        live.key = arena_str(loading->arena, node_at(row, 6)->text);
    return load_u32(node_at(row, 0), loading->plan->count - 1, &live.plan) &&
           load_u32(node_at(row, 1), UINT32_MAX, &live.ordinal) && live.ordinal > before &&
           load_u32(node_at(row, 2), UINT32_MAX, &live.attempt) &&
           load_u32(node_at(row, 3), UINT32_MAX, &live.first_ordinal) &&
           load_status(node_at(row, 4), &live.status) &&
           memory_add_live(loading->memory, &live, loading->arena);
}

static bool load_arm(const struct loading *loading, const struct node *row)
{
    struct live_arm arm = { 0 };

    if (row->count < 3 || row->count > 4 || !load_u32(node_at(row, 0), UINT32_MAX, &arm.ordinal))
        return false;
    arm.value = row->count == 4 ? node_at(row, 3)->raw : STR_NONE;
    arm.is_timer = node_at(row, 1)->truth;
    arm.name = node_at(row, 2)->text;
    return arm.name.data && memory_add_arm(loading->memory, &arm, loading->arena);
}

static bool load_approval(const struct loading *loading, const struct node *row)
{
    struct approval approval = { 0 };

    if (row->count != 2 || !load_u32(node_at(row, 0), UINT32_MAX, &approval.ordinal))
        return false;
    approval.approver = node_at(row, 1)->text;
    return memory_add_approval(loading->memory, &approval, loading->arena);
}

static bool load_signal(const struct loading *loading, const struct node *row)
{
    struct kept_signal signal;

    if (row->count != 2 || row->first->kind != NODE_STRING)
        return false;
    signal = (struct kept_signal){ row->first->text, row->first->next->raw };
    return memory_add_signal(loading->memory, &signal, loading->arena);
}

static bool load_result(const struct loading *loading, const struct node *row)
{
    uint32_t index, slot;

    if (row->count != 2 || loading->plan->count == 0 ||
        !load_u32(row->first, loading->plan->count - 1, &index))
        return false;
    slot = loading->plan->steps[index].result_slot;
    return slot == STEP_NONE ||
           memory_keep(&loading->memory->results[slot], row->first->next->raw, loading->arena);
}

static bool load_node(const struct loading *loading, const struct node *row)
{
    struct node_state state = { .is_open = true };
    uint32_t index;

    if (row->count < 3 || row->count > 4 || loading->plan->node_count == 0 ||
        !load_u32(node_at(row, 0), loading->plan->node_count - 1, &index) ||
        !load_u32(node_at(row, 1), UINT32_MAX, &state.at))
        return false;
    state.has_failed = node_at(row, 2)->truth;
    if (row->count == 4)
        state.error =
            tree_errors_add(&loading->memory->errors, node_at(row, 3)->raw, loading->arena);
    loading->memory->nodes[index] = state;
    return row->count == 3 || state.error != 0;
}

static bool load_join(const struct loading *loading, const struct node *row)
{
    uint32_t index;

    if (loading->plan->is_tree || !load_u32(row, loading->plan->count - 1, &index))
        return false;
    if (!plan_is_joined(loading->plan, index) || loading->memory->joins[index])
        return true;
    loading->memory->joins[index] = true;
    loading->memory->join_count++;
    return true;
}

static bool load_key(const struct loading *loading, const struct node *row)
{
    struct given_key key;

    if (row->count != 2 || loading->plan->count == 0 ||
        !load_u32(row->first, loading->plan->count - 1, &key.plan))
        return false;
    key.key = row->first->next->text;
    return memory_add_key(loading->memory, &key, loading->arena);
}

static bool load_rows(const struct loading *loading, const struct node *rows,
                      bool (*load)(const struct loading *, const struct node *))
{
    for (const struct node *row = rows ? rows->first : NULL; row; row = row->next)
        if (!load(loading, row))
            return false;
    return true;
}

static bool load_all(const struct loading *loading, const struct node *document)
{
    const struct node *context = node_find(document, "context");
    const struct node *error = node_find(document, "error");
    struct flow_memory *memory = loading->memory;

    return load_u32(node_find(document, "ordinal"), UINT32_MAX, &memory->ordinal_last) &&
           load_rows(loading, node_find(document, "live"), load_live) &&
           load_rows(loading, node_find(document, "arms"), load_arm) &&
           load_rows(loading, node_find(document, "approvals"), load_approval) &&
           load_rows(loading, node_find(document, "signals"), load_signal) &&
           load_rows(loading, node_find(document, "results"), load_result) &&
           load_rows(loading, node_find(document, "nodes"), load_node) &&
           load_rows(loading, node_find(document, "joins"), load_join) &&
           load_rows(loading, node_find(document, "keys"), load_key) &&
           (!context || memory_keep(&memory->context, context->raw, loading->arena)) &&
           (!error || memory_keep(&memory->last_error, error->raw, loading->arena));
}

/* A memory by the plan that the snapshot says, if it says one. */
static pawl_status begin_loading(const struct definition *definition, const struct node *document,
                                 str input, struct scope *scope, struct loading *loading)
{
    const struct node *text = node_find(document, "plan");
    struct definition amended = *definition;
    struct plan *plan = NULL;
    pawl_status status = PAWL_OK;

    if (text) {
        status = plan_load_into(loading->arena, text->raw, scope, &plan);
        amended.plan = plan;
    }
    if (status != PAWL_OK)
        return status;
    loading->memory = flow_memory_new(text ? &amended : definition, input, loading->arena);
    if (!loading->memory)
        return scope_no_memory(scope);
    loading->memory->is_amended = text != NULL;
    loading->plan = loading->memory->plan;
    return PAWL_OK;
}

pawl_status flow_memory_load(const struct definition *definition, str text, str input,
                             struct scope *scope, struct arena *arena, void **out)
{
    struct loading loading = { .arena = arena };
    struct node *document = NULL;
    pawl_status status = node_read_own(scope, text, &document);
    bool is_loaded;

    if (status == PAWL_OK)
        status = begin_loading(definition, document, input, scope, &loading);
    is_loaded = status == PAWL_OK && load_all(&loading, document);

    if (status == PAWL_NO_MEMORY || arena->failed)
        return scope_no_memory(scope);
    if (!is_loaded)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "the snapshot of a flow cannot be read; delete it, it is rebuilt");
    *out = loading.memory;
    return PAWL_OK;
}
