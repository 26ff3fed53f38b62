/* compare.c - is a new version safe? Where instances stand, held against another text.
 *
 * A running instance keeps its version, so putting a new one breaks nothing by itself. What may
 * break is what comes after: going on by the new version, and callers that know its actions alone.
 * One state of several versions is one row; what is missing for one of them is missing. */
#include "base/grow.h"
#include "engine/parts.h"
#include "machine/machine.h"
#include <stdlib.h>

static const char *const verdict_names[] = {
#define X(name, text) [COMPARE_##name] = text,
    COMPARE_VERDICTS(X)
#undef X
};

const char *compare_verdict_name(enum compare_verdict verdict)
{
    return verdict_names[verdict];
}

/* Where some instances of one version are: in a state, or at a step. */
struct state_place {
    const struct definition_slot *slot;
    str name;
    uint64_t instances;
    bool is_step;
};

struct comparing {
    struct engine *engine;
    struct scope *scope;
    str name;
    uint32_t version; /* 0: every one */
    struct definition *new;
    const struct definition_slot **slots; /* of the versions that have instances */
    uint32_t slot_count, slot_capacity;
    struct state_place *places;
    uint32_t place_count, place_capacity;
};

/* ---- Collecting places ---- */

static pawl_status find_slot(struct comparing *comparing, uint32_t version,
                             const struct definition_slot **out)
{
    struct scope *scope = comparing->scope;
    struct definition_slot *slot;
    struct definition_row row;

    for (uint32_t i = 0; i < comparing->slot_count; i++)
        if (comparing->slots[i]->version == version) {
            *out = comparing->slots[i];
            return PAWL_OK;
        }
    TRY(store_find_definition(comparing->engine->store, scope, comparing->name, version, NULL,
                              &row));
    TRY(definitions_get(comparing->engine, scope, row.id, &slot));
    TRY_MEMORY(scope, GROW(&scope->arena, comparing->slots, comparing->slot_count,
                           comparing->slot_capacity));
    comparing->slots[comparing->slot_count++] = *out = slot;
    return PAWL_OK;
}

static pawl_status add_place(struct comparing *comparing, const struct state_place *place)
{
    TRY_MEMORY(comparing->scope, GROW(&comparing->scope->arena, comparing->places,
                                      comparing->place_count, comparing->place_capacity));
    comparing->places[comparing->place_count++] = *place;
    return PAWL_OK;
}

static pawl_status fail_damaged(const struct comparing *comparing, uint32_t version,
                                const char *what)
{
    return scope_fail(comparing->scope, PAWL_STORAGE_FAILURE,
                      "version %u of '%.*s' does not have the %s that an instance is at: run pawl "
                      "verify",
                      version, STR_ARG(comparing->name), what);
}

static pawl_status collect_states(struct comparing *comparing)
{
    struct counts counts;

    TRY(engine_counts(comparing->engine, comparing->scope, comparing->name, comparing->version,
                      &counts));
    for (uint32_t i = 0; i < counts.state_count; i++) {
        const struct state_count *count = &counts.states[i];
        struct state_place place = { .name = count->state, .instances = count->total };

        if (count->terminal != TERMINAL_NOT)
            continue;
        TRY(find_slot(comparing, count->version, &place.slot));
        if (definition_find_state(place.slot->definition, place.name) == UINT32_MAX)
            return fail_damaged(comparing, count->version, "state");
        TRY(add_place(comparing, &place));
    }
    return PAWL_OK;
}

static pawl_status collect_steps(struct comparing *comparing)
{
    struct step_count *counts = NULL;
    uint32_t count = 0;

    TRY(store_step_counts(comparing->engine->store, comparing->scope, comparing->name, &counts,
                          &count));
    for (uint32_t i = 0; i < count; i++) {
        struct state_place place = { .instances = counts[i].total, .is_step = true };

        if (comparing->version && comparing->version != counts[i].version)
            continue;
        TRY(find_slot(comparing, counts[i].version, &place.slot));
        if (place.slot->definition->kind != KIND_FLOW)
            continue;
        if (counts[i].plan >= flow_step_count(place.slot->definition))
            return fail_damaged(comparing, counts[i].version, "step");
        place.name = flow_step_name(place.slot->definition, counts[i].plan);
        TRY(add_place(comparing, &place));
    }
    return PAWL_OK;
}

/* ---- What is wrong with one ---- */

/* An action of a state, or an arm of a select. */
static pawl_status add_missing(struct comparing *comparing, str what, struct compare_row *row)
{
    for (uint32_t i = 0; i < row->missing_count; i++)
        if (str_eq(row->missing[i], what))
            return PAWL_OK;
    TRY_MEMORY(comparing->scope, GROW(&comparing->scope->arena, row->missing, row->missing_count,
                                      row->missing_capacity));
    row->missing[row->missing_count++] = what;
    return PAWL_OK;
}

static pawl_status compare_exits(struct comparing *comparing, const struct state_place *place,
                                 uint32_t new_state, struct compare_row *row)
{
    const struct definition *old = place->slot->definition;
    uint32_t state = definition_find_state(old, place->name);

    for (uint32_t i = old->exit_start[state]; i < old->exit_start[state + 1]; i++) {
        const struct transition *exit = &old->transitions[old->exits[i]];
        const struct transition *same = definition_find(comparing->new, new_state, exit->action);

        if (!exit->by_engine && (!same || same->by_engine))
            TRY(add_missing(comparing, exit->action, row));
    }
    return PAWL_OK;
}

static enum compare_verdict judge(const struct comparing *comparing, const struct state_place *place,
                                  uint32_t new_state)
{
    if (place->slot->definition->kind != comparing->new->kind)
        return COMPARE_OTHER_KIND;
    if (place->is_step)
        return flow_has_step(comparing->new, place->name) ? COMPARE_SAFE : COMPARE_STEP_GONE;
    if (new_state == UINT32_MAX)
        return COMPARE_STATE_GONE;
    return comparing->new->states[new_state].terminal == TERMINAL_NOT ? COMPARE_SAFE
                                                                      : COMPARE_STATE_ENDED;
}

/* What a select waits for now, and would wait for no more. */
static pawl_status compare_arms(struct comparing *comparing, const struct state_place *place,
                                struct compare_row *row)
{
    struct flow_lost_arms lost;

    TRY(flow_lost_arms(comparing->scope, place->slot->definition, comparing->new, place->name,
                       &lost));
    for (uint32_t i = 0; i < lost.count; i++)
        TRY(add_missing(comparing, lost.texts[i], row));
    return PAWL_OK;
}

/* Add a place to the row of its name: the worst verdict stands. */
static pawl_status compare_place(struct comparing *comparing, const struct state_place *place,
                                 struct compare_row *row)
{
    uint32_t new_state = definition_find_state(comparing->new, place->name);
    enum compare_verdict verdict = judge(comparing, place, new_state);

    if (verdict == COMPARE_SAFE)
        TRY(place->is_step ? compare_arms(comparing, place, row)
                           : compare_exits(comparing, place, new_state, row));
    if (verdict == COMPARE_SAFE && row->missing_count > 0)
        verdict = place->is_step ? COMPARE_ARMS_MISSING : COMPARE_EXITS_MISSING;
    row->name = place->name;
    row->instances += place->instances;
    row->verdict = verdict > row->verdict ? verdict : row->verdict;
    return PAWL_OK;
}

/* ---- Rows ---- */

static int compare_places(const void *a, const void *b)
{
    const struct state_place *left = a, *right = b;
    int order = left->is_step - right->is_step;

    if (order == 0)
        order = str_compare(left->name, right->name);
    if (order == 0)
        order = (left->slot->version > right->slot->version) -
                (left->slot->version < right->slot->version);
    return order;
}

/* States come before steps; places of one name are beside each other. */
static pawl_status make_rows(struct comparing *comparing, struct comparison *out)
{
    struct compare_row *rows =
        ARENA_ARRAY(&comparing->scope->arena, struct compare_row, comparing->place_count + 1);
    struct compare_row *row = rows;

    TRY_MEMORY(comparing->scope, rows);
    if (comparing->place_count > 1)
        qsort(comparing->places, comparing->place_count, sizeof *comparing->places, compare_places);
    out->states = rows;
    out->is_safe = true;
    for (uint32_t i = 0; i < comparing->place_count; i++) {
        const struct state_place *place = &comparing->places[i], *next = place + 1;

        TRY(compare_place(comparing, place, row));
        if (i + 1 < comparing->place_count && next->is_step == place->is_step &&
            str_eq(next->name, place->name))
            continue;
        out->is_safe = out->is_safe && row->verdict == COMPARE_SAFE;
        *(place->is_step ? &out->step_count : &out->state_count) += 1;
        row++;
    }
    out->steps = rows + out->state_count;
    return PAWL_OK;
}

static int compare_versions(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static pawl_status list_versions(struct comparing *comparing, struct comparison *out)
{
    uint32_t count = comparing->slot_count;

    out->versions = ARENA_ARRAY(&comparing->scope->arena, uint32_t, count + 1);
    TRY_MEMORY(comparing->scope, out->versions);
    for (uint32_t i = 0; i < count; i++)
        out->versions[i] = comparing->slots[i]->version;
    qsort(out->versions, count, sizeof *out->versions, compare_versions);
    out->version_count = count;
    return PAWL_OK;
}

pawl_status engine_compare(struct engine *engine, struct scope *scope, str name, uint32_t version,
                           str text, struct comparison *out)
{
    struct comparing comparing = {
        .engine = engine, .scope = scope, .name = name, .version = version
    };
    struct comparison comparison = { .name = name };
    struct findings findings = { 0 };
    struct definition_row known;
    const struct behavior *behavior;
    str own_name;

    TRY(store_find_definition(engine->store, scope, name, version, NULL, &known));
    TRY(definition_compile(scope, text, false, &findings, &comparing.new, &own_name));
    behavior = behavior_of(comparing.new->kind);
    if (behavior->prepare)
        TRY(behavior->prepare(comparing.new, scope));
    TRY(collect_states(&comparing));
    TRY(collect_steps(&comparing));
    TRY(make_rows(&comparing, &comparison));
    TRY(list_versions(&comparing, &comparison));
    *out = comparison;
    return PAWL_OK;
}
