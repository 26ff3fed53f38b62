/* flow_memory.c - what a flow instance remembers: folded from its entries. */
#include "base/assert.h"
#include "base/grow.h"
#include "flow/group.h"
#include "flow/map_items.h"
#include "flow/stop.h"
#include "flow/undo.h"
#include "model/interest.h"

struct flow_memory *memory_of_plan(const struct plan *plan, str input, struct arena *arena)
{
    struct flow_memory *memory = ARENA_NEW(arena, struct flow_memory);

    if (!memory)
        return NULL;
    memory->plan = plan;
    memory->results = ARENA_ARRAY(arena, struct kept_text, plan->slot_count + 1);
    memory->done = ARENA_ARRAY(arena, uint32_t, plan->count + 1);
    memory->nodes = ARENA_ARRAY(arena, struct node_state, plan->node_count + 1);
    memory->joins = ARENA_ARRAY(arena, bool, plan->is_tree ? 1 : plan->count);
    memory->context = context_new(arena);
    memory->input = arena_str(arena, input);
    return arena->failed ? NULL : memory;
}

void *flow_memory_new(const struct definition *definition, str input, struct arena *arena)
{
    return memory_of_plan(plan_of(definition), input, arena);
}

/* ---- What is live ------------------------------------------------------------------ */

/* The place of the first attempt whose ordinal is not below. */
static uint32_t live_place(const struct flow_memory *memory, uint32_t ordinal)
{
    uint32_t low = 0, high = memory->live_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (memory->live[middle].ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct attempt *memory_find(const struct flow_memory *memory, uint32_t ordinal)
{
    uint32_t place = live_place(memory, ordinal);

    return place < memory->live_count && memory->live[place].ordinal == ordinal
               ? &memory->live[place]
               : NULL;
}

uint32_t memory_find_arm(const struct flow_memory *memory, uint32_t ordinal, bool is_timer,
                         str name)
{
    for (uint32_t i = 0; i < memory->arm_count; i++) {
        const struct live_arm *arm = &memory->arms[i];

        if (arm->ordinal == ordinal && arm->is_timer == is_timer && str_eq(arm->name, name))
            return arm->index;
    }
    return ARM_NONE;
}

bool memory_add_live(struct flow_memory *memory, const struct attempt *attempt, struct arena *arena)
{
    if (memory->live_count == memory->live_capacity && memory->live_skip > memory->live_count / 2) {
        struct attempt *first = memory->live - memory->live_skip;

        memmove(first, memory->live, memory->live_count * sizeof *first);
        memory->live = first;
        memory->live_capacity += memory->live_skip;
        memory->live_skip = 0;
    }
    if (memory->live_count == memory->live_capacity)
        memory->live_skip = 0; /* they move to a new place */
    if (!GROW(arena, memory->live, memory->live_count, memory->live_capacity))
        return false;
    memory->live[memory->live_count++] = *attempt;
    return true;
}

bool memory_add_key(struct flow_memory *memory, const struct given_key *key, struct arena *arena)
{
    if (!GROW(arena, memory->keys, memory->key_count, memory->key_capacity))
        return false;
    memory->keys[memory->key_count++] = (struct given_key){ key->plan, arena_str(arena, key->key) };
    return !arena->failed;
}

/* A step begins: the first key that was given for it is taken. */
static str take_key(struct flow_memory *memory, uint32_t plan)
{
    for (uint32_t i = 0; i < memory->key_count; i++)
        if (memory->keys[i].plan == plan) {
            str key = memory->keys[i].key;

            ARRAY_DROP(memory->keys, memory->key_count, i);
            return key;
        }
    return STR_NONE;
}

/* Arms of one attempt are added together, in the order of its plan. */
bool memory_add_arm(struct flow_memory *memory, const struct live_arm *arm, struct arena *arena)
{
    struct live_arm *added;
    bool is_next;

    if (!GROW(arena, memory->arms, memory->arm_count, memory->arm_capacity))
        return false;
    added = &memory->arms[memory->arm_count];
    is_next = memory->arm_count++ > 0 && added[-1].ordinal == arm->ordinal;
    *added = (struct live_arm){ .ordinal = arm->ordinal,
                                .index = is_next ? added[-1].index + 1 : 0,
                                .is_timer = arm->is_timer,
                                .name = arena_str(arena, arm->name),
                                .value = arena_str(arena, arm->value) };
    return !arena->failed;
}

bool memory_add_signal(struct flow_memory *memory, const struct kept_signal *signal,
                       struct arena *arena)
{
    if (!GROW(arena, memory->signals, memory->signal_count, memory->signal_capacity))
        return false;
    memory->signals[memory->signal_count++] =
        (struct kept_signal){ arena_str(arena, signal->name), arena_str(arena, signal->payload) };
    return !arena->failed;
}

pawl_status flow_keep(void *memory, str name, str payload, struct scope *scope, struct arena *arena)
{
    struct kept_signal signal = { name, payload.data ? payload : STR("null") };

    return memory_add_signal(memory, &signal, arena) ? PAWL_OK : scope_no_memory(scope);
}

/* The oldest of this name is spent. */
static void drop_signal(struct flow_memory *memory, str name)
{
    for (uint32_t i = 0; i < memory->signal_count; i++)
        if (str_eq(memory->signals[i].name, name)) {
            ARRAY_DROP(memory->signals, memory->signal_count, i);
            return;
        }
}

bool memory_add_approval(struct flow_memory *memory, const struct approval *approval,
                         struct arena *arena)
{
    if (!GROW(arena, memory->approvals, memory->approval_count, memory->approval_capacity))
        return false;
    memory->approvals[memory->approval_count++] =
        (struct approval){ approval->ordinal, arena_str(arena, approval->approver) };
    return !arena->failed;
}

/* Thousands may be live, and most often the oldest end first: the shorter side is moved. */
static void drop_attempt(struct flow_memory *memory, uint32_t place)
{
    if (place >= memory->live_count / 2) {
        ARRAY_DROP(memory->live, memory->live_count, place);
        return;
    }
    memmove(&memory->live[1], memory->live, place * sizeof *memory->live);
    memory->live++;
    memory->live_skip++;
    memory->live_capacity--;
    memory->live_count--;
}

static void drop_live(struct flow_memory *memory, uint32_t ordinal)
{
    uint32_t place = live_place(memory, ordinal), arms = 0, approvals = 0;

    drop_attempt(memory, place);
    for (uint32_t i = 0; i < memory->arm_count; i++)
        if (memory->arms[i].ordinal != ordinal)
            memory->arms[arms++] = memory->arms[i];
    memory->arm_count = arms;
    for (uint32_t i = 0; i < memory->approval_count; i++)
        if (memory->approvals[i].ordinal != ordinal)
            memory->approvals[approvals++] = memory->approvals[i];
    memory->approval_count = approvals;
}

/* ---- Folding effects ----------------------------------------------------------------- */

struct folding {
    const struct definition *definition;
    const struct plan *plan;
    struct flow_memory *memory;
    const struct entry_view *entry;
    struct scope *scope;
    struct arena *arena;
    struct attempt subject; /* the attempt the entry speaks of, as it was; ordinal 0: none */
    bool is_over;           /* the entry ended it */
};

static pawl_status fail_damaged(const struct folding *fold, const char *what)
{
    return scope_fail(fold->scope, PAWL_STORAGE_FAILURE,
                      "the history of a flow does not follow its plan (%s); verify the store",
                      what);
}

/* A step of an item is done, and this is the next one for the same item. */
static bool item_goes_on(const struct folding *fold, const struct effect *effect)
{
    const struct attempt *subject = &fold->subject;

    return subject->ordinal > 0 && subject->map > 0 && effect->attempt == 1 &&
           fold->plan->steps[subject->plan].after == effect->plan && fold->is_over &&
           !lifecycle_is_failure(fold->entry->transition);
}

/* Items begin in the order of their list: which one an attempt is for follows from whose entry
 * began it. */
static pawl_status fold_item(struct folding *fold, const struct effect *effect,
                             struct attempt *attempt)
{
    uint32_t of = fold->plan->steps[effect->plan].of;
    bool is_map = fold->subject.ordinal > 0 && fold->subject.plan == of;

    if (of == STEP_NONE)
        return PAWL_OK;
    attempt->map = is_map ? fold->subject.ordinal : fold->subject.map;
    attempt->item = fold->subject.item;
    if (effect->attempt > 1)
        return PAWL_OK;
    if (!item_goes_on(fold, effect) &&
        !memory_begin_item(fold->memory, attempt->map, &attempt->item, fold->arena))
        return fold->arena->failed ? scope_no_memory(fold->scope)
                                   : fail_damaged(fold, "an item that a map does not have");
    memory_begin_way(fold->memory, attempt);
    return PAWL_OK;
}

static pawl_status fold_step(struct folding *fold, const struct effect *effect)
{
    struct flow_memory *memory = fold->memory;
    struct attempt attempt = { .plan = effect->plan,
                               .ordinal = effect->ordinal,
                               .attempt = effect->attempt,
                               .first_ordinal = effect->ordinal,
                               .status = effect->status };

    if (effect->plan >= fold->plan->count || effect->ordinal != memory->ordinal_last + 1)
        return fail_damaged(fold, "an attempt that cannot be");
    /* A retry keeps its step's first ordinal: the idempotency key is stable (section 3.5). */
    if (effect->attempt > 1 && fold->is_over && fold->subject.plan == effect->plan) {
        attempt.first_ordinal = fold->subject.first_ordinal;
        attempt.key = fold->subject.key;
    } else {
        attempt.key = take_key(memory, effect->plan);
    }
    TRY(fold_item(fold, effect, &attempt));
    memory->ordinal_last = effect->ordinal;
    if (!fold->plan->is_tree && memory->joins[effect->plan])
        TRY(memory_end_join(memory, &fold->subject, fold->entry, effect, fold->scope));
    TRY_MEMORY(fold->scope, memory_add_live(memory, &attempt, fold->arena));
    return PAWL_OK;
}

static pawl_status fold_arm(struct folding *fold, struct attempt *live, const struct effect *effect)
{
    struct live_arm arm = { .ordinal = effect->ordinal,
                            .is_timer = effect->kind == EFFECT_ARM,
                            .name = effect->name,
                            .value = effect->state };

    if (arm.is_timer && (str_eq(arm.name, TIMER_TIMEOUT) || str_eq(arm.name, TIMER_WORKER)))
        return PAWL_OK; /* known by its name */
    if (arm.is_timer && str_eq(arm.name, TIMER_RETRY)) {
        live->is_backing_off = true;
        return PAWL_OK;
    }
    TRY_MEMORY(fold->scope, memory_add_arm(fold->memory, &arm, fold->arena));
    return PAWL_OK;
}

static pawl_status fold_live(struct folding *fold, const struct effect *effect)
{
    struct attempt *live;

    if (!memory_find(fold->memory, effect->ordinal))
        return fail_damaged(fold, "an attempt that is not live");
    live = &fold->memory->live[live_place(fold->memory, effect->ordinal)];
    if (effect->kind == EFFECT_END) {
        fold->is_over = fold->is_over || effect->ordinal == fold->subject.ordinal;
        if (fold->plan->steps[live->plan].kind->body)
            memory_close_map(fold->memory, effect->ordinal,
                             !lifecycle_is_failure(fold->entry->transition) &&
                                 !lifecycle_is_stop(fold->entry->transition));
        drop_live(fold->memory, effect->ordinal);
    } else if (effect->kind == EFFECT_ARM || effect->kind == EFFECT_AWAIT) {
        return fold_arm(fold, live, effect);
    } else if (effect->kind == EFFECT_RUN) {
        live->status = STEP_RUNNING;
    } else if (effect->kind == EFFECT_READY) {
        live->status = STEP_READY;
        live->is_backing_off = false;
    } else if (effect->kind == EFFECT_DISARM) { /* a backoff that is over */
        live->is_backing_off = false;
    } else if (effect->kind != EFFECT_SPAWN) { /* the row waits; who it is for is in the store */
        return fail_damaged(fold, "an effect that flows do not have");
    }
    return PAWL_OK;
}

static pawl_status fold_effects(struct folding *fold)
{
    uint32_t count = fold->entry->effects ? fold->entry->effects->count : 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct effect *effect = &fold->entry->effects->items[i];
        /* A row by which broadcasts find the flow: the store's alone. */
        bool is_interest =
            effect->kind == EFFECT_AWAIT && effect->ordinal == 0 && interest_is(effect->name);

        if (effect->kind == EFFECT_STEP)
            TRY(fold_step(fold, effect));
        else if (effect->kind == EFFECT_TAKE)
            /* A reader of entries alone has not seen it: then nothing is dropped. */
            drop_signal(fold->memory, effect->name);
        else if (effect->kind != EFFECT_SEND && /* its alarm is the store's alone */
                 effect->kind != EFFECT_SNAPSHOT && effect->kind != EFFECT_REDRIVE && !is_interest)
            TRY(fold_live(fold, effect));
    }
    return PAWL_OK;
}

/* ---- Folding what it means ------------------------------------------------------------ */

static str payload_of(const struct folding *fold)
{
    return fold->entry->payload.data ? fold->entry->payload : STR("null");
}

pawl_status flow_recall(void *state, uint32_t plan_index, str result, uint32_t seq,
                        struct scope *scope, struct arena *arena)
{
    struct flow_memory *memory = state;
    const struct plan_step *step = &memory->plan->steps[plan_index];

    if (step->result_slot != STEP_NONE &&
        !memory_keep_payload(memory, &memory->results[step->result_slot], result, seq, arena))
        return scope_no_memory(scope);
    if (memory->done)
        memory->done[plan_index] = seq;
    return context_augment(scope, step, memory->context, result, arena);
}

static pawl_status fold_success(struct folding *fold)
{
    const struct plan_step *step = &fold->plan->steps[fold->subject.plan];
    struct flow_memory *memory = fold->memory;

    if (step->way == WAY_JOIN && !memory->joins[step->targets[0].step]) {
        memory->joins[step->targets[0].step] = true;
        memory->join_count++;
    }
    return flow_recall(memory, fold->subject.plan, payload_of(fold), fold->entry->seq, fold->scope,
                       fold->arena);
}

static struct tree_walk fold_walk(const struct folding *fold, str *error)
{
    return (struct tree_walk){
        .plan = fold->plan,
        .states = fold->memory->nodes,
        .errors = tree_errors_of(fold->definition->compiler, &fold->memory->errors),
        .arena = fold->arena,
        .over = group_folded,
        .over_context = (void *)(uintptr_t)fold->entry,
        .error = error,
        .error_seq = fold->memory->payloads ? fold->entry->seq : 0,
    };
}

static void fold_tree(const struct folding *fold, bool is_success)
{
    const struct plan_step *step = &fold->plan->steps[fold->subject.plan];
    str error = is_success ? STR_NONE : payload_of(fold);
    struct tree_walk walk = fold_walk(fold, &error);

    if (is_success && step->kind->leads_by_arm)
        (void)tree_take_arm(&walk, step->node, memory_taken_arm(payload_of(fold), fold->scope));
    else
        (void)tree_settle(&walk, step->node, is_success);
}

/* Where a graph's errors lead somewhere, the context has the last one. */
static pawl_status fold_error(struct folding *fold)
{
    if (fold->plan->steps[fold->subject.plan].error_count == 0)
        return PAWL_OK;
    return context_note_error(fold->scope, fold->memory->context, payload_of(fold), fold->arena);
}

/* A step of an item is over: the item goes on with its next one, or is over. */
static bool fold_item_outcome(const struct folding *fold, bool is_success)
{
    uint32_t after = fold->plan->steps[fold->subject.plan].after;
    bool goes_on = false;

    if (!is_success || after == STEP_NONE)
        return memory_end_item(fold->memory, &fold->subject, is_success, payload_of(fold),
                               fold->entry->seq, fold->arena);
    for (uint32_t i = 0; fold->entry->effects && i < fold->entry->effects->count; i++)
        goes_on = goes_on || (fold->entry->effects->items[i].kind == EFFECT_STEP &&
                              fold->entry->effects->items[i].plan == after);
    return memory_pass_item(fold->memory, &fold->subject, goes_on, payload_of(fold),
                            fold->entry->seq, fold->arena);
}

/* The subject is settled: its result, or its failure, is what the rest builds on. It comes
 * before the effects, because a join that completes is known by the step that it begins. A tree
 * remembers what went wrong last; a graph ends with it. */
static pawl_status fold_outcome(struct folding *fold)
{
    struct flow_memory *memory = fold->memory;
    bool is_success = !lifecycle_is_failure(fold->entry->transition);

    if (memory->undoing != UNDO_NOT)
        return is_success ? memory_undone(memory, &fold->subject, payload_of(fold), fold->scope,
                                          fold->arena)
                          : PAWL_OK;
    if (fold->plan->steps[fold->subject.plan].of != STEP_NONE) {
        if (is_success)
            TRY(memory_note_undo(memory, &fold->subject, payload_of(fold), fold->scope,
                                 fold->arena));
        TRY_MEMORY(fold->scope, fold_item_outcome(fold, is_success));
        return PAWL_OK;
    }
    if (is_success) {
        TRY(fold_success(fold));
        TRY(memory_note_undo(memory, &fold->subject, payload_of(fold), fold->scope, fold->arena));
    }
    if (!fold->plan->is_tree)
        return is_success ? PAWL_OK : fold_error(fold);
    if (!is_success) {
        TRY_MEMORY(fold->scope, memory_keep(&memory->last_error, payload_of(fold), fold->arena));
        TRY(context_note_error(fold->scope, memory->context, payload_of(fold), fold->arena));
    }
    fold_tree(fold, is_success);
    TRY_MEMORY(fold->scope, !fold->arena->failed);
    return PAWL_OK;
}

/* Does the entry end the attempt that it speaks of, of this step, and for good? */
static bool ends_subject(const struct entry_view *entry, uint32_t plan_index)
{
    bool ends = false, is_retried = false;

    for (uint32_t i = 0; entry->effects && i < entry->effects->count; i++) {
        const struct effect *effect = &entry->effects->items[i];

        ends = ends || (effect->kind == EFFECT_END && effect->ordinal == entry->ordinal);
        is_retried = is_retried || (effect->kind == EFFECT_STEP && effect->attempt > 1 &&
                                    effect->plan == plan_index);
    }
    return ends && !is_retried;
}

bool flow_has_result(const struct entry_view *entry)
{
    return entry->step > 0 && !lifecycle_is_failure(entry->transition) &&
           ends_subject(entry, entry->step - 1);
}

static pawl_status fold_group(struct folding *fold)
{
    str none = STR_NONE;
    struct tree_walk walk = fold_walk(fold, &none);

    return memory_group(fold->memory, fold->entry, fold->plan->steps[fold->subject.plan].node,
                        &walk, fold->scope);
}

static pawl_status fold_subject(struct folding *fold)
{
    const struct attempt *subject = memory_find(fold->memory, fold->entry->ordinal);

    if (fold->entry->ordinal == 0)
        return PAWL_OK;
    if (!subject)
        return fail_damaged(fold, "an attempt that is not live");
    fold->subject = *subject;
    if (fold->entry->transition == LIFE_T_STEP_START && fold->plan->steps[subject->plan].kind->body)
        TRY(memory_open_map(fold->memory, subject, payload_of(fold), fold->scope, fold->arena));
    if (fold->entry->transition == LIFE_T_GATE_APPROVE &&
        !memory_add_approval(
            fold->memory, &(struct approval){ subject->ordinal, fold->entry->actor }, fold->arena))
        return scope_no_memory(fold->scope);
    if (step_is_group(fold->plan, &fold->plan->steps[subject->plan]))
        return fold->plan->is_tree ? fold_group(fold) : PAWL_OK;
    return ends_subject(fold->entry, subject->plan) ? fold_outcome(fold) : PAWL_OK;
}

/* What it was given if it runs another one again, and where that begins. */
static pawl_status fold_given(const struct folding *fold, struct tree_walk *walk)
{
    struct tree_redo *redo = NULL;
    struct node *given = NULL;
    pawl_status status = given_read(fold->scope, fold->entry->payload, &given);

    if (status == PAWL_OK)
        status = memory_begin(fold->memory, given, fold->scope, fold->arena);
    if (status == PAWL_OK && fold->plan->is_tree)
        status = redo_read(fold->scope, fold->plan, given, &redo);
    walk->redo = redo;
    return status == PAWL_INVALID_REQUEST ? fail_damaged(fold, "a start that cannot be read")
                                          : status;
}

static pawl_status fold_begin(const struct folding *fold)
{
    struct tree_walk walk = { .plan = fold->plan, .states = fold->memory->nodes };

    if (fold->entry->transition != LIFE_T_START)
        return PAWL_OK;
    if (fold->entry->payload.data)
        TRY(fold_given(fold, &walk));
    if (fold->plan->is_tree)
        (void)tree_begin(&walk, 0);
    return PAWL_OK;
}

pawl_status flow_apply(const struct definition *definition, void *state,
                       const struct entry_view *entry, struct scope *scope, struct arena *arena)
{
    struct folding fold = { .definition = definition,
                            .plan = ((struct flow_memory *)state)->plan,
                            .memory = state,
                            .entry = entry,
                            .scope = scope,
                            .arena = arena };

    ASSERT(entry->transition < definition->transition_count);
    if (entry->transition == LIFE_T_AMEND)
        return memory_amend(state, entry, scope, arena);
    if (entry->transition == LIFE_T_COMPENSATE)
        TRY(memory_begin_undo(state, entry, scope, arena));
    TRY(fold_begin(&fold));
    TRY(fold_subject(&fold));
    TRY(fold_effects(&fold));
    if (entry->transition == LIFE_T_CLEAN_UP)
        TRY(memory_clean_up(state, entry, definition->compiler, scope, arena));
    /* An entry into a terminal state ends every row, timer and wait (model/effect.h). */
    if (definition->states[definition->transitions[entry->transition].to].terminal != TERMINAL_NOT)
        fold.memory->live_count = fold.memory->arm_count = fold.memory->approval_count = 0;
    return PAWL_OK;
}
