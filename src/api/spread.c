/* spread.c - a call about every shard, where several nodes own them: each does its own, and the
 * answers are added up. Claims look at one node after the other; a worker's answers go to the
 * nodes that own their steps. */
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

/* ---- Claims ---- */

#define ROUND_MS 500 /* a claim waits here so long before it looks at the others again */

static void set_wait(struct op_call *call, int64_t wait_ms)
{
    char text[32];
    struct node *wait = (struct node *)(uintptr_t)node_find(call->input, "wait");

    (void)snprintf(text, sizeof text, "%lldms", (long long)wait_ms);
    if (!wait)
        return;
    wait->text = arena_str(&call->scope->arena, str_of(text));
    wait->raw = STR_NONE;
}

static bool has_steps(const struct buf *out, size_t begun)
{
    str body = str_from(buf_view(out), begun);

    return body.size && !memmem(body.data, body.size, "\"steps\":[]", 10);
}

static pawl_status claim_here(struct op_call *call, int64_t wait_ms, struct buf *out,
                              struct op_answer *answer)
{
    bool waits = false;
    uint32_t count;
    pawl_status status;

    TRY(spread_begin_own(call, &count));
    if (count == 0) {
        station_leave(call);
        return PAWL_NOT_KNOWN;
    }
    set_wait(call, wait_ms);
    call->waiter = NULL;
    status = op_start_here(call, out, answer, &waits);
    ASSERT(!waits);
    return status;
}

/* One look at each of the other nodes; what fails there is not this claim's to tell. */
static pawl_status claim_there(struct op_call *call, struct buf *out, struct op_answer *answer)
{
    char seen[16][NODE_NAME_MAX];
    uint32_t count = 0, at;
    struct station_where where;
    size_t begun = out->size;

    set_wait(call, 0);
    for (uint32_t i = 0; i < shards_count(call->p) && count < 16; i++) {
        if (station_find(shard_at(call->p, i), false, &where) != STATION_THERE)
            continue;
        for (at = 0; at < count && strcmp(seen[at], where.node) != 0; at++)
            continue;
        if (at < count)
            continue;
        memcpy(seen[count++], where.node, sizeof where.node);
        if (forward_there(call, &where, out, answer) == PAWL_OK && has_steps(out, begun))
            return PAWL_OK;
        out->size = begun;
    }
    return PAWL_NOT_KNOWN;
}

static pawl_status no_steps(struct buf *out, struct op_answer *answer)
{
    buf_str(out, STR("{\"steps\":[]}"));
    *answer = (struct op_answer){ .http_status = 200, .content_type = "application/json" };
    return PAWL_OK;
}

pawl_status spread_claim(struct op_call *call, struct buf *out, struct op_answer *answer)
{
    struct env *env = engine_env(call->p->engine);
    int64_t wait_ms = 0, until_ms, now_ms = env->tick_ms(env);
    size_t begun = out->size;

    (void)duration_parse(op_text(call, "wait"), &wait_ms);
    until_ms = now_ms + wait_ms;
    for (;;) {
        pawl_status status;

        if (claim_there(call, out, answer) == PAWL_OK)
            return PAWL_OK;
        now_ms = env->tick_ms(env);
        wait_ms = until_ms - now_ms < ROUND_MS ? until_ms - now_ms : ROUND_MS;
        status = claim_here(call, wait_ms > 0 ? wait_ms : 0, out, answer);
        if (status != PAWL_OK && status != PAWL_NOT_KNOWN && status != PAWL_IN_USE)
            return status;
        if (status == PAWL_OK && (has_steps(out, begun) || wait_ms <= 0))
            return PAWL_OK;
        out->size = begun;
        if (wait_ms <= 0)
            return no_steps(out, answer);
        if (status != PAWL_OK)
            (void)forward_pause(call, 0, now_ms + wait_ms);
    }
}

/* ---- A worker's turn ---- */

static pawl_status run_one(struct op_call *call, const char *operation, str input, str key,
                           struct node **out)
{
    const struct op *op = op_find(str_of(operation));
    struct op_answer answer;
    struct op_call one;
    struct node *members;
    struct buf body, whole;
    pawl_status status;

    TRY(node_read_json(call->scope, input, &members));
    buf_init(&whole, &call->p->heap, LIMIT_SCOPE);
    json_open(&whole, '{');
    for (const struct node *member = members->first; member; member = member->next) {
        json_key_str(&whole, member->key);
        json_raw(&whole, member->raw);
    }
    if (key.data)
        json_put_str(&whole, "idempotency_key", key);
    json_close(&whole, '}');
    buf_init(&body, &call->p->heap, LIMIT_SCOPE);
    status = node_read_json(call->scope, buf_keep(&whole, &call->scope->arena), &members);
    if (status == PAWL_OK)
        status = op_prepare_whole(shard_home(call->p), op, members, &call->who, call->scope, &one);
    if (status == PAWL_OK)
        status = op_perform(&one, &body, &answer);
    if (status == PAWL_OK)
        status = node_read_json(call->scope, buf_keep(&body, &call->scope->arena), out);
    buf_fini(&body);
    buf_fini(&whole);
    return status;
}

/* Each by itself, with a part of the turn's key: it goes to the node that owns its step. */
static pawl_status answer_one(struct op_call *call, const struct node *item, uint32_t n,
                              struct buf *out)
{
    const char *operation = node_find(item, "error") ? "step.fail" : "step.complete";
    char detail[OP_DETAIL_SIZE], *key = NULL;
    struct node *answer = NULL;
    pawl_status status;

    if (call->key_text.data) {
        size_t size = call->key_text.size + 16;

        key = arena_alloc(&call->scope->arena, size);
        TRY_MEMORY(call->scope, key);
        (void)snprintf(key, size, "%.*s#%u", STR_ARG(call->key_text), n);
    }
    status = run_one(call, operation, item->raw, key ? str_of(key) : STR_NONE, &answer);
    json_open(out, '{');
    json_put_str(out, "step_id", node_text(item, "step_id"));
    if (status == PAWL_OK) {
        json_put_str(out, "status", node_text(answer, "status"));
    } else {
        json_put_text(out, "reason", pawl_status_name(status));
        json_put_text(out, "detail", op_detail(status, call->scope->error.message, detail));
    }
    json_close(out, '}');
    return PAWL_OK;
}

pawl_status spread_turn(struct op_call *call, struct buf *out, struct op_answer *answer)
{
    const struct node *steps = node_find(call->input, "steps"), *claim;
    struct node *claimed = NULL;
    uint32_t n = 0;

    if (!steps || steps->kind != NODE_ARRAY || steps->count > 1000)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "steps: expected a list of at most 1000 answers");
    claim = node_find(call->input, "claim");
    json_open(out, '{');
    json_put_open(out, "results", '[');
    for (const struct node *item = steps->first; item; item = item->next)
        if (item->kind != NODE_OBJECT)
            return scope_fail(
                call->scope, PAWL_INVALID_REQUEST,
                "steps: expected {step_id, lease, result} or {step_id, lease, error}");
    for (const struct node *item = steps->first; item; item = item->next)
        TRY(answer_one(call, item, n++, out));
    json_close(out, ']');
    if (claim && claim->kind == NODE_OBJECT)
        TRY(run_one(call, "step.claim", claim->raw, STR_NONE, &claimed));
    json_put_raw(out, "steps", claimed ? node_raw(claimed, "steps") : STR("[]"));
    json_close(out, '}');
    *answer = (struct op_answer){ .http_status = 200, .content_type = "application/json" };
    return PAWL_OK;
}
