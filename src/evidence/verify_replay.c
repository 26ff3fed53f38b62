/* verify_replay.c - flows, decided once more.
 *
 * An entry does not only have to be a declared transition: it has to be what the flow's rules
 * give for the event that came in. So the event is made again from the entry, put to decide()
 * with the memory folded so far, and the drafts must be the entries that follow. The rules come
 * with the request (model/decision.h): nothing here knows what a step is.
 *
 * What an entry does not determine is not compared: who acted and why (the event brings it), a
 * due time that is later than it had to be (the clock may have gone back between deciding and
 * recording; it is never earlier), and all that comes after a value was erased. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "evidence/verify_int.h"
#include "model/fire.h"
#include "model/rights.h"
#include <stdio.h>

#define WORDS_SIZE  160
#define TIME_MAX_MS (INT64_C(1) << 53) /* what is added to it stays a number */

/* ---- the rules ---- */

/* Behaviors know their transitions by index; old definitions have the first of them. */
static bool is_alike(const struct definition *definition, const struct definition *lifecycle)
{
    if (definition->state_count != lifecycle->state_count ||
        definition->transition_count > lifecycle->transition_count ||
        definition->initial != lifecycle->initial)
        return false;
    for (uint32_t i = 0; i < definition->state_count; i++)
        if (definition->states[i].terminal != lifecycle->states[i].terminal)
            return false;
    for (uint32_t i = 0; i < definition->transition_count; i++) {
        const struct transition *a = &definition->transitions[i], *b = &lifecycle->transitions[i];

        if (a->from != b->from || a->to != b->to || !str_eq(a->action, b->action))
            return false;
    }
    return true;
}

pawl_status verify_plan(struct verify *v, struct rules *rules)
{
    const struct behavior *flows = v->request->flows;
    struct definition *definition = rules->definition, lifecycle = { .kind = definition->kind };
    pawl_status status;

    if (!flows || flows->kind != definition->kind)
        return PAWL_OK;
    TRY(definition_set_lifecycle(&lifecycle, &v->scope));
    if (!is_alike(definition, &lifecycle))
        return verify_bad(v, "definition %u: its transitions are not those of a flow", rules->id);
    status = flows->prepare ? flows->prepare(definition, &v->plans) : PAWL_OK;
    TRY_MEMORY(&v->scope, status != PAWL_NO_MEMORY);
    if (status == PAWL_STORAGE_FAILURE && v->report->valid)
        return verify_bad(v, "definition %u: %.160s", rules->id, v->plans.error.message);
    rules->flow = definition;
    return status;
}

/* ---- memories ---- */

static bool is_undecided(const struct replay *replay)
{
    return replay->next < replay->expected.count;
}

static void settle(struct verify *v, struct replay *replay)
{
    ASSERT(v->undecided > 0);
    v->undecided--;
    replay->expected = (struct decision){ 0 };
    replay->next = 0;
    scope_fini(&replay->turn); /* many may be kept: not a block for each */
    scope_init(&replay->turn, v->heap, LIMIT_SCOPE);
}

void verify_drop_replay(struct verify *v, struct chain *chain)
{
    struct replay *replay = chain->replay;

    if (!replay)
        return;
    if (is_undecided(replay))
        settle(v, replay);
    v->replays[replay->slot] = 0;
    scope_fini(&replay->turn);
    arena_fini(&replay->arena);
    heap_free(v->heap, replay, sizeof *replay);
    chain->replay = NULL;
}

/* A free place among those kept: that of the one that has been there longest, if need be. */
static uint32_t take_slot(struct verify *v)
{
    for (uint32_t i = 0; i < REPLAYS_KEPT; i++) {
        uint32_t slot = (v->replay_next + i) % REPLAYS_KEPT, index = v->replays[slot];

        if (index != 0 && is_undecided(v->chains[index].replay))
            continue;
        if (index != 0)
            verify_drop_replay(v, &v->chains[index]);
        v->replay_next = slot + 1;
        return slot;
    }
    return REPLAYS_KEPT;
}

static pawl_status add_replay(struct verify *v, struct chain *chain)
{
    struct replay *replay = heap_new(v->heap, sizeof *replay);
    uint32_t slot = replay ? take_slot(v) : REPLAYS_KEPT;

    if (slot == REPLAYS_KEPT) {
        heap_free(v->heap, replay, sizeof *replay);
        return scope_no_memory(&v->scope);
    }
    arena_init(&replay->arena, v->heap, LIMIT_SCOPE);
    scope_init(&replay->turn, v->heap, LIMIT_SCOPE);
    replay->slot = slot;
    v->replays[slot] = (uint32_t)(chain - v->chains);
    chain->replay = replay;
    return PAWL_OK;
}

/* ---- comparing ---- */

__attribute__((format(printf, 2, 3))) static bool differ(char words[WORDS_SIZE], const char *format,
                                                         ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(words, WORDS_SIZE, format, args);
    va_end(args);
    return true;
}

/* STEP@SLOT: the step's name, and the slot; false: it is no timer of a schedule. */
static bool read_slot(const struct effect *effect, str *step, int64_t *slot_ms)
{
    size_t at = effect->name.size;

    if (effect->kind != EFFECT_ARM || !effect->wall)
        return false;
    while (at > 0 && effect->name.data[at - 1] != '@')
        at--;
    *step = (str){ effect->name.data, at };
    return at > 0 && time_parse(str_from(effect->name, at), slot_ms);
}

/* A decision is made a little before it is recorded: when the next slot was another one, perhaps,
 * and its jitter, which is chance, too. */
static bool is_same_schedule(const struct effect *wanted, const struct effect *found)
{
    int64_t wanted_ms, found_ms;
    str step, other;

    return read_slot(wanted, &step, &wanted_ms) && read_slot(found, &other, &found_ms) &&
           str_eq(step, other) && wanted->ordinal == found->ordinal && found_ms <= wanted_ms &&
           found->due_at_ms >= found_ms;
}

/* Who a child is only the engine knows. */
static bool is_same_effect(const struct effect *wanted, const struct effect *found)
{
    if (wanted->kind == EFFECT_SPAWN)
        return found->kind == EFFECT_SPAWN && wanted->ordinal == found->ordinal &&
               wanted->is_abandoned == found->is_abandoned;
    if (is_same_schedule(wanted, found))
        return true;
    return wanted->kind == found->kind && wanted->ordinal == found->ordinal &&
           wanted->plan == found->plan && wanted->attempt == found->attempt &&
           wanted->status == found->status && str_eq(wanted->name, found->name) &&
           str_eq(wanted->state, found->state) && wanted->wall == found->wall &&
           (wanted->wall ? wanted->due_at_ms == found->due_at_ms
                         : wanted->due_at_ms <= found->due_at_ms);
}

/* That a snapshot was kept is no part of the decision. */
static bool effects_differ(const struct effect_list *wanted, const struct effect_list *found,
                           char words[WORDS_SIZE])
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < found->count; i++) {
        if (found->items[i].kind == EFFECT_SNAPSHOT)
            continue;
        if (next == wanted->count)
            return differ(words, "it gives %u effects, and there is another", wanted->count);
        if (!is_same_effect(&wanted->items[next++], &found->items[i]))
            return differ(words, "it gives another effect in place of number %u", next);
    }
    return next < wanted->count &&
           differ(words, "it gives %u effects, and there are %u", wanted->count, next);
}

static bool differs(const struct definition *definition, const struct draft *draft, bool is_first,
                    const struct record *record, const struct entry_view *entry,
                    char words[WORDS_SIZE])
{
    if (draft->transition != entry->transition)
        return differ(words, "it gives '%.*s' here",
                      STR_ARG(definition->transitions[draft->transition].action));
    if (draft->step != entry->step || draft->ordinal != entry->ordinal ||
        draft->attempt != entry->attempt)
        return differ(words, "it gives step %u, row %u, attempt %u here", draft->step,
                      draft->ordinal, draft->attempt);
    if (draft->guard != ((record->flags & RECORD_GUARD) != 0))
        return differ(words, "it asserts the guard otherwise");
    if (!draft->payload.data != !entry->payload.data || !str_eq(draft->payload, entry->payload))
        return differ(words, "it gives another payload");
    if (!is_first && draft->transition != LIFE_T_CANCEL &&
        (record->actor != 0 || record->reason != 0))
        return differ(words, "it gives this entry no actor and no reason");
    /* The end of a flow that has cleaned up is in the name of the caller that cancelled. */
    if (!is_first && draft->transition == LIFE_T_CANCEL &&
        (!str_eq(draft->actor, entry->actor) ||
         (draft->reason.data && entry->reason.data && !str_eq(draft->reason, entry->reason))))
        return differ(words, "it gives this entry another actor or another reason");
    return effects_differ(&draft->effects, entry->effects, words);
}

/* ---- deciding ---- */

static pawl_status bad_decision(struct verify *v, const char *words)
{
    return verify_bad(v, "the entry is not what its flow decides: %s", words);
}

/* Drafts point into their event, and outlive the entry that it was made from. */
static void keep_texts(struct replay *replay, struct event *event)
{
    struct arena *arena = &replay->turn.arena;

    event->payload = event->kind == EVENT_START ? replay->input : arena_str(arena, event->payload);
    event->name = arena_str(arena, event->name);
    event->filter = arena_str(arena, event->filter);
    event->reason = arena_str(arena, event->reason);
    event->given = arena_str(arena, event->given);
}

/* A flow that the engine itself has paused may be cancelled, no matter what its definition says.
 * Callers cannot use an actor of that name. */
static pawl_status is_held_by_engine(struct verify *v, const struct chain *chain, bool *out)
{
    struct record pause;
    struct value actor = { 0 };
    pawl_status status = PAWL_OK;

    *out = false;
    if (!chain->paused_pos)
        return PAWL_OK;
    status = store_record(v->store, &v->scope, chain->paused_pos, &pause);
    if (status == PAWL_OK && pause.actor)
        status = store_value(v->store, &v->scope, pause.actor, &actor);
    *out = status == PAWL_OK && actor_is_reserved(actor.bytes);
    return status == PAWL_NO_MEMORY ? status : PAWL_OK; /* other checks report bad rows */
}

static pawl_status decide_held(struct verify *v, const struct chain *chain,
                               const struct standing *standing, const struct event *event,
                               struct decision *out)
{
    bool is_held;

    TRY(is_held_by_engine(v, chain, &is_held));
    if (!is_held)
        return PAWL_NO_CANCEL_TRANSITION;
    return fire_decide_cancel(v->rules[chain->rules].flow, standing, event, &chain->replay->turn,
                              out);
}

/* Decide one event that may have been; *out_is_it if the entry is what it gives. */
static pawl_status try_event(struct verify *v, const struct chain *chain, struct event *event,
                             const struct record *record, const struct entry_view *entry,
                             bool *out_is_it, char words[WORDS_SIZE])
{
    const struct definition *definition = v->rules[chain->rules].flow;
    struct replay *replay = chain->replay;
    struct standing standing = { .state = chain->state,
                                 .seq = chain->seq,
                                 .memory = replay->memory };
    struct decision decision = { 0 };
    pawl_status status;

    scope_clear(&replay->turn);
    keep_texts(replay, event);
    status = v->request->flows->decide(definition, &standing, event, &replay->turn, &decision);
    if (status == PAWL_NO_CANCEL_TRANSITION)
        status = decide_held(v, chain, &standing, event, &decision);
    if (status == PAWL_NO_MEMORY || replay->turn.arena.failed)
        return scope_no_memory(&v->scope);
    if (replay->is_unreadable) {
        v->scope.error = replay->turn.error;
        return PAWL_STORAGE_FAILURE;
    }
    if (status != PAWL_OK)
        *out_is_it = !differ(words, "%.150s", replay->turn.error.message);
    else if (decision.count == 0)
        *out_is_it = !differ(words, "it gives nothing");
    else
        *out_is_it = !differs(definition, &decision.drafts[0], true, record, entry, words);
    if (*out_is_it)
        replay->expected = decision;
    return PAWL_OK;
}

static pawl_status decide_again(struct verify *v, struct chain *chain, const struct record *record,
                                const struct entry_view *entry)
{
    const struct definition *definition = v->rules[chain->rules].flow;
    char words[WORDS_SIZE] = "no event makes it by itself", other[WORDS_SIZE];
    struct event event;
    bool is_it = false;

    for (uint32_t n = 0;
         !is_it && v->request->flows->event_of(definition, chain->replay->memory, entry, n, &event);
         n++)
        TRY(try_event(v, chain, &event, record, entry, &is_it, n == 0 ? words : other));
    if (!is_it)
        return bad_decision(v, words);
    v->undecided++;
    chain->replay->next = 0;
    return PAWL_OK;
}

static pawl_status compare_next(struct verify *v, const struct chain *chain,
                                const struct record *record, const struct entry_view *entry)
{
    struct replay *replay = chain->replay;
    char words[WORDS_SIZE];

    if (differs(v->rules[chain->rules].flow, &replay->expected.drafts[replay->next],
                replay->next == 0, record, entry, words))
        return bad_decision(v, words);
    replay->next++;
    if (!is_undecided(replay))
        settle(v, replay);
    return PAWL_OK;
}

static pawl_status replay_entry(struct verify *v, struct chain *chain, const struct record *record)
{
    struct effect_list effects;
    struct entry_view entry;

    TRY(verify_view_entry(v, &v->scope, record, &effects, &entry, &chain->is_blind));
    if (chain->is_blind)
        return PAWL_OK;
    if (record->at_ms < -TIME_MAX_MS || record->at_ms > TIME_MAX_MS)
        return verify_bad(v, "its time is out of all range");
    if (!is_undecided(chain->replay))
        TRY(verify_make_small(v, chain));
    chain->replay->pos = record->pos;
    if (!is_undecided(chain->replay))
        TRY(decide_again(v, chain, record, &entry));
    TRY(compare_next(v, chain, record, &entry));
    return verify_fold_entry(v, chain, &v->scope, &entry);
}

pawl_status verify_replay(struct verify *v, struct chain *chain, const struct record *record)
{
    pawl_status status = PAWL_OK;

    if (!v->rules[chain->rules].flow || chain->is_blind)
        return PAWL_OK;
    if (!chain->replay) {
        status = add_replay(v, chain);
        if (status == PAWL_OK)
            status = verify_restore(v, chain);
    }
    if (status == PAWL_OK && !chain->is_blind)
        status = replay_entry(v, chain, record);
    if (chain->is_blind)
        verify_drop_replay(v, chain);
    return status;
}

/* A decision is recorded whole: at the end of a commit nothing of it is left. */
pawl_status verify_replay_over(struct verify *v, const struct chain *chain)
{
    const struct replay *replay = chain->replay;
    const struct definition *definition;

    if (!replay || !is_undecided(replay))
        return PAWL_OK;
    definition = v->rules[chain->rules].flow;
    verify_at(v, chain->pos, chain->number, chain->seq);
    return verify_bad(
        v, "its flow decides more than was recorded: '%.*s' is missing",
        STR_ARG(definition->transitions[replay->expected.drafts[replay->next].transition].action));
}

pawl_status verify_all_replays_over(struct verify *v)
{
    for (uint32_t i = 0; v->undecided > 0 && i < REPLAYS_KEPT; i++)
        if (v->replays[i] != 0)
            TRY(verify_replay_over(v, &v->chains[v->replays[i]]));
    return PAWL_OK;
}
