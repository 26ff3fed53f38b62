/* given.c - what an instance is given that runs another one again: made from the whole history of
 * the first, and told by the payload of the new one's `start`.
 *
 *   {"retry_of":ID,"begin":[STEP],"after":[[STEP,RESULT]],"joins":[STEP],"done":[STEP],
 *    "failed":[STEP],"arms":{STEP:N},"keys":[[STEP,KEY]],"maps":[[STEP,[[INDEX,RESULT],...]]],
 *    "results":{STEP:JSON},"context":{...}}
 *
 * Steps are found by their names, since the new one may run another definition. `begin`, `after`
 * and `joins` are of graphs, `failed` and `arms` of trees. `after`: steps that are done and from
 * which no branch led on; their results choose again. `keys`: the idempotency keys of steps that
 * did not finish, for when they begin; of a step that spawns, the id of its last child. `maps`: the
 * items that maps which did not finish had done, and ways of others (item_way.c). */
#include "base/ids.h"
#include "base/json_scan.h"
#include "flow/map_items.h"
#include "flow/reads.h"
#include <stdio.h>

#define CONTEXT_RETRIES STR("exec/retries")
#define NO_ATTEMPT      UINT32_MAX
#define WHOLE_SIZE_MAX  (LIMIT_TEXT / 2) /* of results and context: beyond, members are given */

struct outcome {
    enum step_status status; /* of the step's last attempt; PENDING: there was none */
    uint32_t arm;            /* of a select that is done; of the new plan, once they are matched */
    bool is_arm_lost;        /* ... which has no arm that waits for the same */
    uint32_t last;           /* the index of its last attempt; NO_ATTEMPT: none here */
    bool is_redone;          /* graphs: it is done, and will be run again */
};

struct gathering {
    struct scope *scope;
    const struct flow_redrive *args;
    const struct plan *plan; /* that of the first instance ... */
    const struct plan *next; /* ... and of the new one */
    const struct flow_memory *memory;
    const struct flow_attempts *attempts;
    const struct node *before; /* what the first was given itself; NULL: nothing */
    struct outcome *outcomes;  /* by step of `plan` */
    uint32_t from;             /* a step of `next`; STEP_NONE: where it failed */
    uint32_t begun;
    pawl_status status;
    struct buf out;
    struct scope value;      /* of one result at a time */
    struct plan_reads reads; /* of `next`; of NULL: results are given whole */
};

static str name_of(const struct gathering *gathering, uint32_t step)
{
    return gathering->plan->steps[step].name;
}

/* ---- How steps ended ---------------------------------------------------------------------- */

static void note_status(struct gathering *gathering, pawl_status status)
{
    if (status == PAWL_OK || gathering->status != PAWL_OK)
        return;
    gathering->status = status;
    gathering->scope->error = gathering->value.error;
}

/* A text that the memory kept, or left in the history. It lasts until the next one is read. */
static str read_kept(struct gathering *gathering, const struct kept_text *kept)
{
    str text = STR_NONE;

    scope_clear(&gathering->value);
    note_status(gathering, memory_text(gathering->memory, kept, &gathering->value, &text));
    return text;
}

/* What an attempt brought. */
static str read_result(struct gathering *gathering, const struct flow_attempt *attempt)
{
    const struct kept_text left = { .seq = attempt->ended_seq };

    return attempt->result.data || attempt->ended_seq == 0 ? attempt->result
                                                           : read_kept(gathering, &left);
}

/* In the instances before this one. */
static void take_before(struct gathering *gathering, const char *key, enum step_status status)
{
    const struct node *arms = node_find(gathering->before, "arms");
    int64_t arm = 0;

    for (const struct node *item = node_first(gathering->before, key); item; item = item->next) {
        uint32_t step = plan_find(gathering->plan, item->text);

        if (step == STEP_NONE)
            continue;
        gathering->outcomes[step].status = status;
        if (arms && node_to_i64(node_find_str(arms, item->text), &arm))
            gathering->outcomes[step].arm = (uint32_t)arm;
    }
}

static void take_attempts(struct gathering *gathering)
{
    for (uint32_t i = 0; i < gathering->attempts->count; i++) {
        const struct flow_attempt *attempt = &gathering->attempts->items[i];
        struct outcome *outcome = &gathering->outcomes[attempt->plan];

        outcome->status = attempt->status;
        outcome->last = i;
        if (attempt->status == STEP_DONE &&
            gathering->plan->steps[attempt->plan].kind->leads_by_arm)
            outcome->arm =
                memory_taken_arm(read_result(gathering, attempt), &gathering->value);
    }
}

/* ---- Arms ----------------------------------------------------------------------------------- */

static bool has_begun(const struct gathering *gathering, uint32_t node)
{
    const struct plan_node *of = &gathering->plan->nodes[node];
    bool has_step = of->kind == PLAN_LEAF || of->kind == PLAN_ARMS;

    if (has_step && gathering->outcomes[of->step].status != STEP_PENDING)
        return true;
    for (uint32_t i = 0; i < of->child_count; i++)
        if (has_begun(gathering, of->children[i]))
            return true;
    return false;
}

/* The result of a select tells the arm by the plan of that time. An amend may have moved it since:
 * then what has begun below an arm tells. */
static uint32_t taken_arm(const struct gathering *gathering, uint32_t step)
{
    const struct plan_node *node = &gathering->plan->nodes[gathering->plan->steps[step].node];
    uint32_t arm = gathering->outcomes[step].arm;

    if (arm < node->child_count && has_begun(gathering, node->children[arm]))
        return arm;
    for (uint32_t i = 0; i < node->child_count; i++)
        if (has_begun(gathering, node->children[i]))
            return i;
    return arm;
}

/* The arm of the new plan that waits for what this select has had. */
static pawl_status match_arm(const struct gathering *gathering, uint32_t step)
{
    const struct plan_step *from = &gathering->plan->steps[step];
    uint32_t to = plan_find(gathering->next, from->name), arm, count;
    struct outcome *outcome = &gathering->outcomes[step];
    struct awaited_arm *arms;
    pawl_status status;

    if (to == STEP_NONE || !gathering->next->steps[to].kind->leads_by_arm)
        return PAWL_OK;
    arm = taken_arm(gathering, step);
    status = arms_match(gathering->scope, from, &gathering->next->steps[to], &arms, &count);
    if (status != PAWL_OK || arm >= count)
        return status;
    outcome->arm = arms[arm].match;
    outcome->is_arm_lost = outcome->arm == ARM_NONE;
    return PAWL_OK;
}

static pawl_status match_arms(const struct gathering *gathering)
{
    for (uint32_t i = 0; gathering->plan->is_tree && i < gathering->plan->count; i++)
        if (gathering->plan->steps[i].kind->leads_by_arm &&
            gathering->outcomes[i].status == STEP_DONE)
            TRY(match_arm(gathering, i));
    return PAWL_OK;
}

/* A done step with branches, of which none was taken. */
static bool is_dead_end(const struct gathering *gathering, uint32_t step)
{
    const struct plan_step *declared = &gathering->plan->steps[step];
    const struct outcome *outcome = &gathering->outcomes[step];

    if (outcome->status != STEP_DONE || outcome->last == NO_ATTEMPT || declared->way != WAY_BRANCH)
        return false;
    for (uint32_t i = outcome->last + 1; i < gathering->attempts->count; i++) {
        const struct flow_attempt *after = &gathering->attempts->items[i];

        for (uint32_t j = 0; j < declared->target_count; j++)
            if (after->begun_by == gathering->attempts->items[outcome->last].ordinal &&
                declared->targets[j].step == after->plan)
                return false;
    }
    return true;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* The key that this instance was given for the beginning of a step, if it was given one. */
static str given_key(const struct gathering *gathering, const struct flow_attempt *attempt)
{
    uint32_t skip = attempt->round;

    for (const struct node *key = node_first(gathering->before, "keys"); key; key = key->next)
        if (str_eq(key->first->text, name_of(gathering, attempt->plan)) && skip-- == 0)
            return key->first->next->text;
    return STR_NONE;
}

static void print_key(struct gathering *gathering, uint32_t step, str key)
{
    if (plan_find(gathering->next, name_of(gathering, step)) == STEP_NONE ||
        (gathering->outcomes[step].status == STEP_DONE &&
         gathering->plan->steps[step].of == STEP_NONE))
        return;
    json_open(&gathering->out, '[');
    json_str(&gathering->out, name_of(gathering, step));
    json_str(&gathering->out, key);
    json_close(&gathering->out, ']');
}

static bool is_unfinished(const struct flow_attempt *attempt)
{
    return (attempt->status == STEP_FAILED || attempt->status == STEP_CANCELLED) &&
           !attempt->is_retried;
}

static bool stands_alone(const struct gathering *gathering, const struct flow_attempt *attempt)
{
    const struct plan *plan = gathering->plan;

    return plan->steps[attempt->plan].of == STEP_NONE && attempt->plan + 1 != plan->whole;
}

static void print_attempt_key(struct gathering *gathering, const struct flow_attempt *attempt)
{
    str given = attempt->child.data ? attempt->child : given_key(gathering, attempt);
    char own[ID_SIZE + 12];

    (void)snprintf(own, sizeof own, "%.*s.%u", STR_ARG(gathering->args->retry_of), attempt->first);
    print_key(gathering, attempt->plan, given.data ? given : str_of(own));
}

/* Keys are taken as items begin, which is in the order of the list: by rounds, and not by when the
 * last attempt of each was made. */
static void print_item_keys(struct gathering *gathering, const struct map_state *map)
{
    const struct flow_attempts *attempts = gathering->attempts;
    uint32_t body = gathering->plan->steps[map->plan].body;
    uint32_t rounds = body < attempts->step_count ? attempts->steps[body].rounds : 0;
    const struct flow_attempt **by_round =
        ARENA_ARRAY(&gathering->scope->arena, const struct flow_attempt *, rounds + 1);

    for (uint32_t i = 0; i < attempts->count && by_round; i++) {
        const struct flow_attempt *attempt = &attempts->items[i];

        if (attempt->plan == body && attempt->ordinal > map->ordinal && is_unfinished(attempt) &&
            attempt->round < rounds)
            by_round[attempt->round] = attempt;
    }
    for (uint32_t i = 0; i < rounds && by_round; i++)
        if (by_round[i])
            print_attempt_key(gathering, by_round[i]);
    if (!by_round && gathering->status == PAWL_OK)
        gathering->status = scope_no_memory(gathering->scope);
}

/* Of every attempt that ended without a result and was not followed by another, and those that were
 * given and not used. A step that is done and is run again on purpose gets a new key. */
static void print_keys(struct gathering *gathering)
{
    const struct flow_attempts *attempts = gathering->attempts;

    json_put_open(&gathering->out, "keys", '[');
    for (uint32_t i = 0; i < attempts->count; i++)
        if (is_unfinished(&attempts->items[i]) && stands_alone(gathering, &attempts->items[i]))
            print_attempt_key(gathering, &attempts->items[i]);
    for (uint32_t i = 0; i < gathering->memory->map_count; i++)
        if (!gathering->memory->maps[i].ways) /* their keys are with how far they came */
            print_item_keys(gathering, &gathering->memory->maps[i]);
    for (uint32_t i = 0; i < gathering->memory->key_count; i++)
        print_key(gathering, gathering->memory->keys[i].plan, gathering->memory->keys[i].key);
    json_close(&gathering->out, ']');
}

static void print_begin(struct gathering *gathering, uint32_t step)
{
    str name = name_of(gathering, step);

    gathering->begun++;
    json_str(&gathering->out, name);
    if (plan_find(gathering->next, name) == STEP_NONE && gathering->status == PAWL_OK)
        gathering->status = scope_fail(gathering->scope, PAWL_INVALID_REQUEST,
                                       "it ended at step '%.*s', which the definition does not "
                                       "have: say from which step to begin (from)",
                                       STR_ARG(name));
}

static void print_again(struct gathering *gathering, uint32_t step)
{
    gathering->outcomes[step].is_redone = true;
    print_begin(gathering, step);
}

/* Its failure led to another step, which is looked at by itself. */
static bool is_routed(const struct gathering *gathering, uint32_t index)
{
    const struct flow_attempts *attempts = gathering->attempts;
    const struct flow_attempt *failed = &attempts->items[index];

    if (gathering->plan->steps[failed->plan].error_count == 0)
        return false;
    for (uint32_t i = index + 1; i < attempts->count; i++)
        if (attempts->items[i].begun_by == failed->ordinal)
            return true;
    return false;
}

static void print_unfinished(struct gathering *gathering)
{
    const struct flow_attempts *attempts = gathering->attempts;

    for (uint32_t i = 0; i < attempts->count; i++) {
        enum step_status status = attempts->items[i].status;

        if (!stands_alone(gathering, &attempts->items[i]))
            continue; /* its map is among them; the time of all begins anyway */
        if (status == STEP_CANCELLED ||
            (status == STEP_FAILED && !attempts->items[i].is_retried && !is_routed(gathering, i)))
            print_again(gathering, attempts->items[i].plan);
    }
}

/* Nothing failed, but no branch led on: by the same definition it would fail again, so the step is
 * run again; by another one its result chooses again. */
static void print_dead_ends(struct gathering *gathering)
{
    for (uint32_t i = 0; i < gathering->plan->count; i++)
        if (!gathering->args->is_other && is_dead_end(gathering, i))
            print_again(gathering, i);
    json_close(&gathering->out, ']');
    json_put_open(&gathering->out, "after", '[');
    for (uint32_t i = 0; gathering->args->is_other && i < gathering->plan->count; i++)
        if (is_dead_end(gathering, i)) {
            json_open(&gathering->out, '[');
            print_begin(gathering, i);
            json_raw(&gathering->out,
                     read_result(gathering,
                                 &gathering->attempts->items[gathering->outcomes[i].last]));
            json_close(&gathering->out, ']');
        }
}

/* The steps that `from` leads to. Each is looked at once. */
static bool mark_from(struct gathering *gathering)
{
    const struct plan *next = gathering->next;
    uint32_t *found = ARENA_ARRAY(&gathering->scope->arena, uint32_t, next->count);
    bool *is_found = ARENA_ARRAY(&gathering->scope->arena, bool, next->count);
    uint32_t count = 1;

    if (!found || !is_found)
        return false;
    found[0] = gathering->from;
    is_found[gathering->from] = true;
    for (uint32_t at = 0; at < count; at++) {
        const struct plan_step *step = &next->steps[found[at]];
        uint32_t old = plan_find(gathering->plan, step->name);

        if (old != STEP_NONE)
            gathering->outcomes[old].is_redone = true;
        for (uint32_t i = 0; i < step_lead_count(step); i++)
            if (!is_found[step_lead(step, i)]) {
                is_found[step_lead(step, i)] = true;
                found[count++] = step_lead(step, i);
            }
    }
    return true;
}

static void print_graph(struct gathering *gathering)
{
    json_put_open(&gathering->out, "begin", '[');
    if (gathering->from != STEP_NONE) {
        json_str(&gathering->out, gathering->next->steps[gathering->from].name);
        gathering->begun++;
        if (!mark_from(gathering))
            note_status(gathering, scope_no_memory(&gathering->value));
    } else {
        print_unfinished(gathering);
    }
    if (gathering->begun == 0)
        print_dead_ends(gathering);
    json_close(&gathering->out, ']');
    json_put_open(&gathering->out, "joins", '[');
    for (uint32_t i = 0; gathering->from == STEP_NONE && i < gathering->plan->count; i++)
        if (gathering->memory->joins[i])
            json_str(&gathering->out, name_of(gathering, i));
    json_close(&gathering->out, ']');
}

/* The step of the first plan that has the name of the new plan's step at `node`. */
static struct outcome *outcome_at(const struct gathering *gathering, uint32_t node)
{
    uint32_t step = gathering->next->nodes[node].step;

    step = plan_find(gathering->plan, gathering->next->steps[step].name);
    return step == STEP_NONE ? NULL : &gathering->outcomes[step];
}

/* Everything below `node` counts as this. What the first plan does not have stays open. */
static void set_below(struct gathering *gathering, uint32_t node, enum step_status status)
{
    const struct plan_node *of = &gathering->next->nodes[node];
    struct outcome *outcome =
        of->kind == PLAN_LEAF || of->kind == PLAN_ARMS ? outcome_at(gathering, node) : NULL;

    if (outcome) {
        outcome->status = status;
        outcome->is_arm_lost = false;
    }
    for (uint32_t i = 0; i < of->child_count; i++)
        set_below(gathering, of->children[i], status);
}

static pawl_status fail_rescue(const struct gathering *gathering)
{
    return scope_fail(gathering->scope, PAWL_INVALID_REQUEST,
                      "from: step '%.*s' is part of a rescue, which begins only when something "
                      "fails; name a step of its try",
                      STR_ARG(gathering->args->from));
}

/* It begins at `from`: what a `do` or a try has before it counts as done, what follows is open.
 * Branches beside it stay as they are. */
static void begin_from(struct gathering *gathering)
{
    const struct plan *plan = gathering->next;
    uint32_t at = plan->steps[gathering->from].node;
    struct outcome *outcome = outcome_at(gathering, at);

    if (outcome && outcome->status == STEP_DONE)
        outcome->status = STEP_PENDING;
    for (; plan->nodes[at].parent != NODE_NONE; at = plan->nodes[at].parent) {
        const struct plan_node *parent = &plan->nodes[plan->nodes[at].parent];
        uint32_t place = plan->nodes[at].place;

        if (parent->kind == PLAN_TRY && place == TRY_RESCUE)
            gathering->status = fail_rescue(gathering);
        for (uint32_t i = 0; i < parent->child_count; i++)
            if ((parent->kind == PLAN_DO || parent->kind == PLAN_TRY) && i != place)
                set_below(gathering, parent->children[i], i < place ? STEP_DONE : STEP_PENDING);
        outcome = parent->kind == PLAN_ARMS ? outcome_at(gathering, plan->nodes[at].parent) : NULL;
        if (outcome) {
            outcome->status = STEP_DONE;
            outcome->arm = place;
            outcome->is_arm_lost = false;
        }
    }
}

static void print_names(struct gathering *gathering, const char *key, enum step_status status)
{
    json_put_open(&gathering->out, key, '[');
    for (uint32_t i = 0; i < gathering->plan->count; i++)
        if (gathering->outcomes[i].status == status && !gathering->outcomes[i].is_redone &&
            gathering->plan->steps[i].of == STEP_NONE)
            json_str(&gathering->out, name_of(gathering, i));
    json_close(&gathering->out, ']');
}

static void print_arms(struct gathering *gathering)
{
    json_put_open(&gathering->out, "arms", '{');
    for (uint32_t i = 0; i < gathering->plan->count; i++) {
        const struct outcome *outcome = &gathering->outcomes[i];

        if (!gathering->plan->steps[i].kind->leads_by_arm || outcome->status != STEP_DONE)
            continue;
        if (outcome->is_arm_lost && gathering->status == PAWL_OK)
            gathering->status =
                scope_fail(gathering->scope, PAWL_CONFLICT,
                           "it took an arm of the select '%.*s' that the definition "
                           "does not have: say from which step to begin (from)",
                           STR_ARG(name_of(gathering, i)));
        if (outcome->arm == ARM_NONE)
            continue;
        json_key_str(&gathering->out, name_of(gathering, i));
        json_u64(&gathering->out, outcome->arm);
    }
    json_close(&gathering->out, '}');
}

/* ---- Results and context --------------------------------------------------------------------- */

/* The result that the new one asks for, as the first instance kept it, or as its step brought it;
 * data NULL: it does not ask, or the step has no result. */
static str wanted_result(struct gathering *gathering, uint32_t step)
{
    const struct plan_step *wanted = &gathering->next->steps[step];
    uint32_t old = wanted->result_slot == STEP_NONE || wanted->of != STEP_NONE
                       ? STEP_NONE
                       : plan_find(gathering->plan, wanted->name);
    uint32_t slot = old == STEP_NONE ? STEP_NONE : gathering->plan->steps[old].result_slot;
    const struct flow_attempt *last;

    if (slot != STEP_NONE)
        return read_kept(gathering, &gathering->memory->results[slot]);
    last = old == STEP_NONE ? NULL : flow_last_result(gathering->attempts, old);
    return last ? read_result(gathering, last) : STR_NONE;
}

/* Results that do not fit whole are given as far as they are read. */
static void print_results(struct gathering *gathering)
{
    size_t size = context_size(gathering->memory->context) + gathering->out.size;

    for (uint32_t i = 0; i < gathering->next->count && size < WHOLE_SIZE_MAX; i++)
        size += wanted_result(gathering, i).size + gathering->next->steps[i].name.size;
    if (size >= WHOLE_SIZE_MAX && gathering->status == PAWL_OK)
        gathering->status = reads_find(gathering->scope, gathering->next, &gathering->reads);
    json_put_open(&gathering->out, "results", '{');
    for (uint32_t i = 0; i < gathering->next->count && gathering->status == PAWL_OK; i++) {
        str result = wanted_result(gathering, i);

        if (!result.data || gathering->out.failed)
            continue;
        json_key_str(&gathering->out, gathering->next->steps[i].name);
        if (gathering->reads.of)
            reads_print(&gathering->reads, i, result, &gathering->value, &gathering->out);
        else
            json_raw(&gathering->out, result);
    }
    json_close(&gathering->out, '}');
}

/* The context goes on, and counts (C38). */
static pawl_status print_context(struct gathering *gathering)
{
    struct arena *arena = &gathering->scope->arena;
    struct flow_context *context = context_over(gathering->memory->context, arena);
    str found = context ? context_find(context, arena, CONTEXT_RETRIES) : STR_NONE;
    struct node before = { 0 };
    char count[24];
    int64_t retries = 0;

    if (found.data)
        json_peek(arena, found, &before);
    (void)node_to_i64(&before, &retries);
    (void)snprintf(count, sizeof count, "%lld", (long long)retries + 1);
    TRY_MEMORY(gathering->scope,
               context && context_put(context, CONTEXT_RETRIES, str_of(count), arena));
    json_key(&gathering->out, "context");
    context_print(context, &gathering->out);
    return PAWL_OK;
}

static void print_map(struct gathering *gathering, const struct map_state *map)
{
    json_open(&gathering->out, '[');
    json_str(&gathering->out, name_of(gathering, map->plan));
    json_open(&gathering->out, '[');
    for (uint32_t i = 0; i < map->count && !gathering->out.failed; i++) {
        str result;

        if (map->ends[i] != MAP_DONE) {
            note_status(gathering,
                        item_way_give(gathering->args, map, i, &gathering->value, &gathering->out));
            continue;
        }
        result =
            kept_is_there(&map->results[i]) ? read_kept(gathering, &map->results[i]) : RESULT_NULL;
        json_open(&gathering->out, '[');
        json_u64(&gathering->out, i);
        json_raw(&gathering->out, result.data ? result : RESULT_NULL);
        json_close(&gathering->out, ']');
    }
    json_close(&gathering->out, ']');
    json_close(&gathering->out, ']');
}

/* Those that did not finish, and what this instance itself was given and has not used. */
static void print_maps(struct gathering *gathering)
{
    const struct flow_memory *memory = gathering->memory;

    if (memory->map_count + memory->given_map_count == 0 || gathering->from != STEP_NONE)
        return;
    json_put_open(&gathering->out, "maps", '[');
    for (uint32_t i = 0; i < memory->map_count; i++)
        if (plan_find(gathering->next, name_of(gathering, memory->maps[i].plan)) != STEP_NONE)
            print_map(gathering, &memory->maps[i]);
    for (uint32_t i = 0; i < memory->given_map_count; i++) {
        json_open(&gathering->out, '[');
        json_str(&gathering->out, name_of(gathering, memory->given_maps[i].plan));
        json_raw(&gathering->out, memory->given_maps[i].items);
        json_close(&gathering->out, ']');
    }
    json_close(&gathering->out, ']');
}

static pawl_status print_given(struct gathering *gathering)
{
    pawl_status status;

    if (gathering->plan->is_tree && gathering->from != STEP_NONE)
        begin_from(gathering);
    json_open(&gathering->out, '{');
    json_put_str(&gathering->out, "retry_of", gathering->args->retry_of);
    if (!gathering->plan->is_tree)
        print_graph(gathering);
    print_names(gathering, "done", STEP_DONE);
    if (gathering->plan->is_tree) {
        print_names(gathering, "failed", STEP_FAILED);
        print_arms(gathering);
    }
    print_keys(gathering);
    print_maps(gathering);
    print_results(gathering);
    status = print_context(gathering);
    json_close(&gathering->out, '}');
    return gathering->status != PAWL_OK ? gathering->status : status;
}

/* Is something left to do? Told by the walk that the new one will take. */
static pawl_status check_given(struct gathering *gathering, str given)
{
    struct node *document = NULL;
    struct tree_redo *redo = NULL;

    if (!gathering->plan->is_tree)
        return gathering->begun > 0 ? PAWL_OK : redo_fail_nothing(gathering->scope);
    TRY(node_read_own(gathering->scope, given, &document));
    TRY(redo_read(gathering->scope, gathering->next, document, &redo));
    return redo->outcomes[0] == REDO_DONE ? redo_fail_nothing(gathering->scope) : PAWL_OK;
}

static pawl_status find_from(struct gathering *gathering)
{
    str from = gathering->args->from;

    gathering->from = from.data ? plan_find(gathering->next, from) : STEP_NONE;
    if (gathering->plan->is_tree != gathering->next->is_tree)
        return scope_fail(gathering->scope, PAWL_INVALID_REQUEST,
                          "definition: expected a %s, as the first one ran, found a %s",
                          gathering->plan->is_tree ? "tree" : "graph",
                          gathering->next->is_tree ? "tree" : "graph");
    if (from.data && gathering->from == STEP_NONE)
        return scope_fail(gathering->scope, PAWL_INVALID_REQUEST,
                          "from: expected the name of a step, found '%.*s'", STR_ARG(from));
    return PAWL_OK;
}

static pawl_status gather(struct gathering *gathering)
{
    uint32_t count = gathering->plan->count;
    struct node *document = NULL;

    if (gathering->memory->undoing != UNDO_NOT)
        return scope_fail(gathering->scope, PAWL_CONFLICT,
                          "what it had done was undone: start a new instance instead");
    TRY(find_from(gathering));
    if (gathering->args->before.data)
        TRY(given_read(gathering->scope, gathering->args->before, &document));
    gathering->before = document;
    gathering->outcomes = ARENA_ARRAY(&gathering->scope->arena, struct outcome, count + 1);
    TRY_MEMORY(gathering->scope, gathering->outcomes);
    for (uint32_t i = 0; i < count; i++)
        gathering->outcomes[i].last = NO_ATTEMPT;
    take_before(gathering, "done", STEP_DONE);
    take_before(gathering, "failed", STEP_FAILED);
    take_attempts(gathering);
    return match_arms(gathering);
}

pawl_status flow_redrive(struct scope *scope, const struct flow_redrive *args, str *out)
{
    const struct flow_memory *memory = args->memory;
    struct gathering gathering = { .scope = scope,
                                   .args = args,
                                   .plan = memory->plan,
                                   .next = plan_of(args->definition),
                                   .memory = memory,
                                   .attempts = args->attempts };
    str given = STR_NONE;
    pawl_status status;

    scope_init(&gathering.value, scope->arena.heap, LIMIT_SCOPE);
    buf_init(&gathering.out, scope->arena.heap, LIMIT_TEXT);
    status = gather(&gathering);
    if (status == PAWL_OK)
        status = print_given(&gathering);
    if (status == PAWL_OK && gathering.out.failed)
        status = scope_fail(scope, PAWL_TOO_LARGE, "its results and its context are over %u bytes",
                            LIMIT_TEXT);
    if (status == PAWL_OK)
        given = buf_keep(&gathering.out, &scope->arena);
    buf_fini(&gathering.out);
    scope_fini(&gathering.value);
    if (status == PAWL_OK)
        status = given.data ? check_given(&gathering, given) : scope_no_memory(scope);
    if (status == PAWL_OK)
        *out = given;
    return status;
}
