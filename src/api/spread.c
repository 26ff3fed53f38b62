/* spread.c - a call about every shard, where several nodes own them: each does its own, and the
 * answers are added up. A worker's answers go to the nodes that own their steps. */
#include "api/forward.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/assert.h"
#include "env/env.h"
#include <stdio.h>

/* ---- Which shards a part is about ---- */

bool op_has_shard(const struct op_call *call, uint32_t shard)
{
    return !call->own_shards || call->own_shards[shard];
}

/* "0,3,5" */
static bool read_list(str list, uint32_t count, bool *out)
{
    uint64_t shard;
    str word;

    while (str_take(&list, ',', &word)) {
        if (!str_to_u64(word, &shard) || shard >= count)
            return false;
        out[shard] = true;
    }
    return true;
}

static pawl_status shards_new(struct op_call *call, bool **out)
{
    *out = ARENA_ARRAY(&call->scope->arena, bool, shards_count(call->p));
    TRY_MEMORY(call->scope, *out);
    memset(*out, 0, shards_count(call->p) * sizeof **out);
    return PAWL_OK;
}

pawl_status spread_begin_part(struct op_call *call)
{
    bool *wanted;

    TRY(shards_new(call, &wanted));
    if (!read_list(call->part, shards_count(call->p), wanted))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          OP_SIGNED_PART ": expected numbers of shards, found '%.*s'",
                          STR_ARG(call->part));
    if (!station_enter_these(call->p, wanted))
        return scope_fail(call->scope, PAWL_IN_USE, "this node does not own all of these shards");
    call->own_shards = wanted;
    call->entered = ENTERED_SOME;
    return PAWL_OK;
}

pawl_status spread_begin_own(struct op_call *call, uint32_t *count)
{
    bool *own;

    TRY(shards_new(call, &own));
    *count = station_enter_own(call->p, own);
    call->own_shards = own;
    call->entered = ENTERED_SOME;
    return PAWL_OK;
}

/* ---- Sums ---- */

#define SUMS_MAX 8u

struct sums {
    str names[SUMS_MAX];
    int64_t values[SUMS_MAX];
    uint32_t count;
};

static pawl_status add_up(struct op_call *call, str body, struct sums *sums)
{
    struct node *answer;

    TRY(node_read_json(call->scope, body, &answer));
    for (const struct node *member = answer->first; member; member = member->next) {
        uint32_t at = 0;
        int64_t n = 0;

        if (!node_to_i64(member, &n))
            continue;
        while (at < sums->count && !str_eq(sums->names[at], member->key))
            at++;
        if (at == SUMS_MAX)
            continue;
        if (at == sums->count)
            sums->names[sums->count++] = member->key;
        sums->values[at] += n;
    }
    return PAWL_OK;
}

/* Every shard that is still to be asked and whose owner is where the first one's is. */
static enum station_place group_of(struct op_call *call, const bool *done, bool *group,
                                   struct station_where *where)
{
    uint32_t count = shards_count(call->p), first = 0;
    struct station_where other;
    enum station_place place;

    while (first < count && done[first])
        first++;
    place = station_find(shard_at(call->p, first), false, where);
    for (uint32_t i = 0; i < count; i++)
        group[i] = !done[i] &&
                   (i == first || (station_find(shard_at(call->p, i), false, &other) == place &&
                                   (place != STATION_THERE || !strcmp(other.node, where->node))));
    return place;
}

static pawl_status run_group_here(struct op_call *call, const bool *group, struct buf *out)
{
    struct op_call part = *call;
    pawl_status status;

    if (!station_enter_these(call->p, group))
        return scope_fail(call->scope, PAWL_IN_USE, "a shard is on its way to another node");
    part.own_shards = group;
    json_open(out, '{');
    status = call->op->handle(&part, out);
    json_close(out, '}');
    station_exit_these(call->p, group);
    return status;
}

static pawl_status run_group_there(struct op_call *call, const bool *group,
                                   const struct station_where *where, struct buf *out)
{
    struct op_call part = *call;
    struct op_answer answer;
    struct buf list;

    buf_init(&list, call->scope->arena.heap, 16384);
    for (uint32_t i = 0; i < shards_count(call->p); i++)
        if (group[i])
            buf_fmt(&list, "%s%u", list.size ? "," : "", i);
    part.part = buf_take(&list, &call->scope->arena);
    TRY_MEMORY(call->scope, part.part.data);
    return forward_there(&part, where, out, &answer);
}

static pawl_status run_group(struct op_call *call, const bool *group, enum station_place place,
                             const struct station_where *where, struct sums *sums)
{
    struct buf body;
    pawl_status status;

    if (place == STATION_NOWHERE)
        return scope_fail(call->scope, PAWL_IN_USE, "a shard has no owner now");
    buf_init(&body, &call->p->heap, LIMIT_SCOPE);
    status = place == STATION_HERE ? run_group_here(call, group, &body)
                                   : run_group_there(call, group, where, &body);
    if (status == PAWL_OK)
        status = add_up(call, buf_keep(&body, &call->scope->arena), sums);
    buf_fini(&body);
    return status;
}

/* A part that may have happened is asked again only with a key. */
static pawl_status run_parts(struct op_call *call, bool *done, bool *group, struct sums *sums)
{
    int64_t until_ms = forward_until_ms(call);
    uint32_t left = shards_count(call->p);

    while (left > 0) {
        struct station_where where;
        enum station_place place = group_of(call, done, group, &where);
        pawl_status status = run_group(call, group, place, &where, sums);

        if (status != PAWL_OK && !forward_may_repeat(call, status))
            return status;
        if (status != PAWL_OK) {
            if (!forward_pause(call, where.change, until_ms))
                return scope_fail(call->scope, PAWL_OUTCOME_UNKNOWN,
                                  "%u of the shards have had no owner for %d s: what was done on "
                                  "the others stays; repeat it with the same key",
                                  left, FORWARD_WAIT_MS / 1000);
            continue;
        }
        for (uint32_t i = 0; i < shards_count(call->p); i++) {
            left -= group[i];
            done[i] = done[i] || group[i];
        }
    }
    return PAWL_OK;
}

pawl_status spread_sum(struct op_call *call, struct buf *out)
{
    struct sums sums = { 0 };
    bool *done, *group;

    TRY(shards_new(call, &done));
    TRY(shards_new(call, &group));
    TRY(run_parts(call, done, group, &sums));
    for (uint32_t i = 0; i < sums.count; i++) {
        json_key_str(out, sums.names[i]);
        json_i64(out, sums.values[i]);
    }
    return PAWL_OK;
}

/* ---- A worker's turn ---- */

struct spread_turn {
    struct op_call *call;
    const struct node **items;
    str *results;  /* by item: an object; data NULL: not known yet */
    pawl **shards; /* of the items */
    uint32_t count;
    const struct node *claim; /* NULL: none, or it was answered */
    str steps;                /* that were claimed: a list; data NULL: none yet */
};

static void print_result(struct spread_turn *turn, uint32_t n, pawl_status status, str outcome)
{
    struct scope *scope = turn->call->scope;
    char detail[OP_DETAIL_SIZE];
    struct buf out;

    buf_init(&out, &turn->call->p->heap, LIMIT_SCOPE);
    json_open(&out, '{');
    json_put_str(&out, "step_id", node_text(turn->items[n], "step_id"));
    if (status == PAWL_OK) {
        json_put_str(&out, "status", outcome);
    } else {
        json_put_text(&out, "reason", pawl_status_name(status));
        json_put_text(&out, "detail", op_detail(status, scope->error.message, detail));
    }
    json_close(&out, '}');
    turn->results[n] = buf_keep(&out, &scope->arena);
    buf_fini(&out);
}

static pawl_status fail_lost(struct op_call *call)
{
    return scope_fail(call->scope, PAWL_OVERLOADED,
                      "no node has owned the step's shard for %d s: nothing happened; try later",
                      FORWARD_WAIT_MS / 1000);
}

/* A call with this input, by the same caller. */
static pawl_status prepare_one(struct op_call *call, const char *operation, struct buf *text,
                               struct op_call *out)
{
    struct node *members;

    TRY(node_read_json(call->scope, buf_keep(text, &call->scope->arena), &members));
    return op_prepare_whole(shard_home(call->p), op_find(str_of(operation)), members, &call->who,
                            call->scope, out);
}

/* Every item that is not answered and whose shard is where the first one's is. */
static enum station_place group_items(const struct spread_turn *turn, bool *group,
                                      struct station_where *where)
{
    enum station_place place;
    struct station_where other;
    uint32_t first = 0;

    while (turn->results[first].data)
        first++;
    place = station_find(turn->shards[first], false, where);
    for (uint32_t i = 0; i < turn->count; i++)
        group[i] = !turn->results[i].data &&
                   (i == first || (station_find(turn->shards[i], false, &other) == place &&
                                   (place != STATION_THERE || !strcmp(other.node, where->node))));
    return place;
}

/* The claim rides with the first group, and does not wait there. */
static void print_group(const struct spread_turn *turn, const bool *group, struct buf *out)
{
    json_open(out, '{');
    json_put_open(out, "steps", '[');
    for (uint32_t i = 0; i < turn->count; i++)
        if (group[i])
            json_raw(out, turn->items[i]->raw);
    json_close(out, ']');
    if (turn->claim && !turn->steps.data) {
        json_put_open(out, "claim", '{');
        for (const struct node *member = turn->claim->first; member; member = member->next)
            if (!str_is(member->key, "wait")) {
                json_key_str(out, member->key);
                json_raw(out, member->raw);
            }
        json_close(out, '}');
    }
    json_close(out, '}');
}

static pawl_status run_here(struct op_call *one, struct buf *out, struct op_answer *answer)
{
    uint32_t count;
    bool waits;

    TRY(spread_begin_own(one, &count));
    if (count > 0)
        return op_start_here(one, out, answer, &waits);
    station_leave(one);
    return scope_fail(one->scope, PAWL_IN_USE, "the shard is on its way to another node");
}

static pawl_status ask_group(struct spread_turn *turn, const bool *group, enum station_place place,
                             const struct station_where *where, struct node **out)
{
    struct op_call *call = turn->call, one;
    struct op_answer answer;
    struct buf text, body;
    pawl_status status;

    if (place == STATION_NOWHERE)
        return scope_fail(call->scope, PAWL_IN_USE, "the step's shard has no owner now");
    buf_init(&text, &call->p->heap, LIMIT_SCOPE);
    buf_init(&body, &call->p->heap, LIMIT_SCOPE);
    print_group(turn, group, &text);
    status = prepare_one(call, "step.complete_many", &text, &one);
    if (status == PAWL_OK)
        status = place == STATION_HERE ? run_here(&one, &body, &answer)
                                       : forward_there(&one, where, &body, &answer);
    if (status == PAWL_OK)
        status = node_read_json(call->scope, buf_keep(&body, &call->scope->arena), out);
    buf_fini(&body);
    buf_fini(&text);
    return status;
}

static pawl_status take_group(struct spread_turn *turn, const bool *group,
                              const struct node *answer)
{
    const struct node *results = node_find(answer, "results");
    const struct node *steps = node_find(answer, "steps");
    const struct node *next = results ? results->first : NULL;

    for (uint32_t i = 0; i < turn->count; i++) {
        if (!group[i])
            continue;
        if (!next)
            return scope_fail(turn->call->scope, PAWL_STORAGE_FAILURE,
                              "a node answered fewer steps than it was sent");
        turn->results[i] = next->raw;
        next = next->next;
    }
    if (turn->claim && !turn->steps.data && steps && steps->first)
        turn->steps = steps->raw;
    return PAWL_OK;
}

/* What is in use elsewhere is asked again; any other failure is that of its items. */
static pawl_status answer_groups(struct spread_turn *turn)
{
    int64_t until_ms = forward_until_ms(turn->call);
    bool *group = ARENA_ARRAY(&turn->call->scope->arena, bool, turn->count + 1);
    uint32_t left = turn->count;

    TRY_MEMORY(turn->call->scope, group);
    while (left > 0) {
        struct station_where where;
        enum station_place place = group_items(turn, group, &where);
        struct node *answer = NULL;
        pawl_status status = ask_group(turn, group, place, &where, &answer);

        if (status == PAWL_IN_USE) {
            if (forward_pause(turn->call, where.change, until_ms))
                continue;
            status = fail_lost(turn->call);
        }
        if (status == PAWL_OK)
            TRY(take_group(turn, group, answer));
        for (uint32_t i = 0; i < turn->count; i++) {
            if (group[i] && status != PAWL_OK)
                print_result(turn, i, status, STR_NONE);
            left -= group[i];
        }
    }
    return PAWL_OK;
}

/* With a key each goes by itself, with a part of it: the nodes may change before it is repeated. */
static pawl_status answer_keyed(struct spread_turn *turn, uint32_t n)
{
    const struct node *item = turn->items[n];
    struct op_call *call = turn->call, one;
    struct op_answer answer;
    struct node *answered = NULL;
    struct buf text, body;
    pawl_status status;

    buf_init(&text, &call->p->heap, LIMIT_SCOPE);
    buf_init(&body, &call->p->heap, LIMIT_SCOPE);
    json_open(&text, '{');
    for (const struct node *member = item->first; member; member = member->next) {
        json_key_str(&text, member->key);
        json_raw(&text, member->raw);
    }
    json_put_fmt(&text, "idempotency_key", "%.*s#%u", STR_ARG(call->key_text), n);
    json_close(&text, '}');
    status =
        prepare_one(call, node_find(item, "error") ? "step.fail" : "step.complete", &text, &one);
    if (status == PAWL_OK)
        status = op_perform(&one, &body, &answer);
    if (status == PAWL_OK)
        status = node_read_json(call->scope, buf_keep(&body, &call->scope->arena), &answered);
    print_result(turn, n, status, status == PAWL_OK ? node_text(answered, "status") : STR_NONE);
    buf_fini(&body);
    buf_fini(&text);
    return PAWL_OK;
}

static pawl_status read_turn(struct op_call *call, struct spread_turn *turn)
{
    const struct node *steps = node_find(call->input, "steps");
    size_t count = steps->count;

    *turn = (struct spread_turn){ .call = call, .claim = node_find(call->input, "claim") };
    turn->items = ARENA_ARRAY(&call->scope->arena, const struct node *, count + 1);
    turn->results = ARENA_ARRAY(&call->scope->arena, str, count + 1);
    turn->shards = ARENA_ARRAY(&call->scope->arena, pawl *, count + 1);
    TRY_MEMORY(call->scope, turn->items && turn->results && turn->shards);
    if (turn->claim && turn->claim->kind != NODE_OBJECT)
        turn->claim = NULL;
    for (const struct node *item = steps->first; item; item = item->next) {
        turn->results[turn->count] = STR_NONE;
        turn->shards[turn->count] = shard_of_id(call->p, node_text(item, "step_id"));
        turn->items[turn->count++] = item;
    }
    return PAWL_OK;
}

/* Members of the answer: what came of each. */
static pawl_status print_results(const struct spread_turn *turn, str *out)
{
    struct buf text;

    buf_init(&text, &turn->call->p->heap, LIMIT_SCOPE);
    json_put_open(&text, "results", '[');
    for (uint32_t i = 0; i < turn->count; i++)
        json_raw(&text, turn->results[i]);
    json_close(&text, ']');
    *out = buf_keep(&text, &turn->call->scope->arena);
    buf_fini(&text);
    return out->data ? PAWL_OK : scope_no_memory(turn->call->scope);
}

/* The call goes on as a claim that has these members in its answer. */
static pawl_status claim_after(struct spread_turn *turn, str told, struct buf *out,
                               struct op_answer *answer, bool *waits)
{
    struct op_call *call = turn->call, claim;
    struct buf text;
    pawl_status status;

    buf_init(&text, &call->p->heap, LIMIT_SCOPE);
    json_raw(&text, turn->claim->raw);
    status = prepare_one(call, "step.claim", &text, &claim);
    buf_fini(&text);
    TRY(status);
    claim.waiter = call->waiter;
    claim.is_near = call->is_near;
    *call = claim;
    return roaming_begin(call, told, out, answer, waits);
}

pawl_status spread_turn(struct op_call *call, struct buf *out, struct op_answer *answer,
                        bool *waits)
{
    struct spread_turn turn;
    str told;

    TRY(op_check_turn(call));
    TRY(read_turn(call, &turn));
    if (!call->key_text.data)
        TRY(answer_groups(&turn));
    for (uint32_t i = 0; call->key_text.data && i < turn.count; i++)
        TRY(answer_keyed(&turn, i));
    TRY(print_results(&turn, &told));
    if (turn.claim && !turn.steps.data)
        return claim_after(&turn, told, out, answer, waits);
    json_open(out, '{');
    buf_str(out, told);
    json_put_raw(out, "steps", turn.steps.data ? turn.steps : STR("[]"));
    json_close(out, '}');
    *answer = (struct op_answer){ .http_status = 200, .content_type = "application/json" };
    return PAWL_OK;
}
