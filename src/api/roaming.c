/* roaming.c - a claim of steps where other nodes own some. It asks each of them without waiting,
 * and then waits here. It asks again when one of them reports that steps wait there
 * (station_nudge.c), or after a moment. A call with a waiter holds no thread meanwhile. */
#include "api/forward.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "api/station_int.h"
#include "base/assert.h"
#include "base/time.h"
#include "env/env.h"
#include <stdio.h>
#include <sys/eventfd.h>

#define ROUND_MS 500 /* a claim waits here so long before it looks at the others again */

struct roaming {
    struct op_wait wait; /* what the call waits for */
    struct roaming *next;
    struct op_call *call;
    struct op_wait *inner; /* the claim that waits here; NULL: none */
    int64_t until_ms, begun_ms;
    size_t begun; /* of the answer */
    str told;     /* members of the answer that are known; data NULL: none */
    bool is_answered; /* by an owner of some shard */
    bool looks;       /* the next thing that it does is to ask other nodes */
    _Atomic bool is_nudged;
};

/* ---- Those that wait here ---- */

static void enlist(struct roaming *roaming)
{
    struct station *node = station_of(roaming->call->p);

    pthread_mutex_lock(&node->roam_lock);
    roaming->next = node->roaming;
    node->roaming = roaming;
    pthread_mutex_unlock(&node->roam_lock);
}

/* After this no nudge wakes it. */
static void leave(struct roaming *roaming)
{
    struct station *node = station_of(roaming->call->p);
    struct roaming **link = &node->roaming;

    roaming->call->roaming = NULL;
    pthread_mutex_lock(&node->roam_lock);
    while (*link && *link != roaming)
        link = &(*link)->next;
    if (*link)
        *link = roaming->next;
    pthread_mutex_unlock(&node->roam_lock);
}

void roaming_wake_all(struct station *node)
{
    pthread_mutex_lock(&node->roam_lock);
    for (struct roaming *roaming = node->roaming; roaming; roaming = roaming->next)
        if (!atomic_exchange(&roaming->is_nudged, true))
            roaming->call->waiter->wake(roaming->call->waiter->context);
    pthread_mutex_unlock(&node->roam_lock);
}

bool roaming_looks(const struct op_call *call)
{
    return call->roaming && call->roaming->looks;
}

/* The first in a while: the others learn that this node wants to hear of steps. */
static void want_steps(struct station *node)
{
    const char *wants = station_wants(node);
    bool is_known = wants && *wants == 'c';

    atomic_store(&node->roamed_ms, station_tick_ms(node));
    if (!is_known)
        (void)eventfd_write(node->beat_fd, 1);
}

/* ---- Asking ---- */

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

#define NODES_ASKED 16u

/* One look at each of the other nodes; what fails there is not this claim's to tell. */
static bool claim_there(struct roaming *roaming, struct buf *out, struct op_answer *answer)
{
    struct op_call *call = roaming->call;
    char seen[NODES_ASKED][NODE_NAME_MAX];
    uint32_t count = 0, at;
    struct station_where where;
    size_t begun = out->size;

    set_wait(call, 0);
    for (uint32_t i = 0; i < shards_count(call->p) && count < NODES_ASKED; i++) {
        if (station_find(shard_at(call->p, i), false, &where) != STATION_THERE)
            continue;
        for (at = 0; at < count && strcmp(seen[at], where.node) != 0; at++)
            continue;
        if (at < count)
            continue;
        memcpy(seen[count++], where.node, sizeof where.node);
        if (forward_there(call, &where, out, answer) == PAWL_OK) {
            roaming->is_answered = true;
            if (has_steps(out, begun))
                return true;
        }
        out->size = begun;
    }
    return false;
}

/* NOT_KNOWN: this node owns nothing. */
static pawl_status claim_here(struct op_call *call, int64_t wait_ms, struct buf *out,
                              struct op_answer *answer, bool *waits)
{
    uint32_t count;

    *waits = false;
    TRY(spread_begin_own(call, &count));
    if (count == 0) {
        station_leave(call);
        return PAWL_NOT_KNOWN;
    }
    set_wait(call, wait_ms);
    return op_start_here(call, out, answer, waits);
}

/* ---- The answer ---- */

static pawl_status finish(struct roaming *roaming, struct buf *out, struct op_answer *answer)
{
    struct op_call *call = roaming->call;
    str body = str_from(buf_view(out), roaming->begun);

    leave(roaming);
    if (body.size == 0) {
        *answer = (struct op_answer){ .http_status = 200, .content_type = "application/json" };
        body = STR("{\"steps\":[]}");
    }
    if (roaming->told.data) {
        body = arena_str(&call->scope->arena, str_from(body, 1));
        TRY_MEMORY(call->scope, body.data);
        out->size = roaming->begun;
        buf_byte(out, '{');
        buf_str(out, roaming->told);
        buf_byte(out, ',');
        buf_str(out, body);
    } else if (out->size == roaming->begun) {
        buf_str(out, body);
    }
    return out->failed ? scope_no_memory(call->scope) : PAWL_OK;
}

static bool is_passing(pawl_status status)
{
    return status == PAWL_OK || status == PAWL_NOT_KNOWN || status == PAWL_IN_USE;
}

/* ---- Rounds ---- */

/* Until an owner has answered it waits for one, as every call does. */
static int64_t slice_of(const struct roaming *roaming)
{
    int64_t now_ms = station_tick_ms(station_of(roaming->call->p));
    int64_t left_ms = roaming->until_ms - now_ms;

    if (left_ms <= 0 && !roaming->is_answered)
        left_ms = roaming->begun_ms + FORWARD_WAIT_MS - now_ms;
    return left_ms < 0 ? 0 : left_ms < ROUND_MS ? left_ms : ROUND_MS;
}

static void wait_for(struct roaming *roaming, int64_t wait_ms, bool looks, bool *waits)
{
    roaming->wait.left_ms = wait_ms > 0 ? wait_ms : 1;
    roaming->looks = looks;
    roaming->call->wait = &roaming->wait;
    *waits = true;
}

/* True: it has ended, or waits. */
static bool round_once(struct roaming *roaming, bool is_stopping, struct buf *out,
                       struct op_answer *answer, bool *waits, pawl_status *status)
{
    struct op_call *call = roaming->call;
    struct station_where now;
    int64_t slice_ms;

    atomic_store(&roaming->is_nudged, false);
    (void)station_find(call->p, false, &now);
    *status = PAWL_OK;
    if (!is_stopping && claim_there(roaming, out, answer))
        return true;
    slice_ms = is_stopping ? 0 : slice_of(roaming);
    *status = claim_here(call, slice_ms, out, answer, waits);
    roaming->is_answered = roaming->is_answered || *status == PAWL_OK;
    if (*waits) {
        roaming->inner = call->wait;
        wait_for(roaming, roaming->inner->left_ms, false, waits);
        return true;
    }
    if (!is_passing(*status) || (*status == PAWL_OK && has_steps(out, roaming->begun)))
        return true;
    out->size = roaming->begun;
    *status = PAWL_OK;
    if (slice_ms <= 0)
        return true;
    if (call->waiter)
        wait_for(roaming, slice_ms, true, waits);
    else
        (void)forward_pause(call, now.change, station_tick_ms(station_of(call->p)) + slice_ms);
    return *waits;
}

static pawl_status look(struct roaming *roaming, bool is_stopping, struct buf *out,
                        struct op_answer *answer, bool *waits)
{
    pawl_status status;

    want_steps(station_of(roaming->call->p));
    while (!round_once(roaming, is_stopping, out, answer, waits, &status))
        continue;
    if (*waits)
        return PAWL_OK;
    if (status == PAWL_OK)
        return finish(roaming, out, answer);
    leave(roaming);
    return status;
}

pawl_status roaming_begin(struct op_call *call, str told, struct buf *out, struct op_answer *answer,
                          bool *waits)
{
    struct roaming *roaming = ARENA_NEW(&call->scope->arena, struct roaming);
    int64_t wait_ms = 0;

    *waits = false;
    TRY_MEMORY(call->scope, roaming);
    TRY(op_check_claim(call));
    (void)duration_parse(op_text(call, "wait"), &wait_ms);
    *roaming =
        (struct roaming){ .wait.is_slow = true, .call = call, .told = told, .begun = out->size };
    roaming->begun_ms = station_tick_ms(station_of(call->p));
    roaming->until_ms = roaming->begun_ms + wait_ms;
    call->roaming = roaming;
    if (call->waiter)
        enlist(roaming);
    return look(roaming, false, out, answer, waits);
}

/* The claim that waited here has ended without a step: the others are asked, by a thread that may
 * wait for them. */
static pawl_status look_later(struct roaming *roaming, bool *waits)
{
    const struct waiter *waiter = roaming->call->waiter;

    wait_for(roaming, 0, true, waits);
    waiter->wake(waiter->context);
    return PAWL_OK;
}

pawl_status roaming_go_on(struct op_call *call, bool is_stopping, struct buf *out,
                          struct op_answer *answer, bool *waits)
{
    struct roaming *roaming = call->roaming;
    pawl_status status;

    *waits = false;
    if (!roaming->inner)
        return look(roaming, is_stopping, out, answer, waits);
    call->wait = roaming->inner;
    status =
        op_go_on_here(call, is_stopping || atomic_load(&roaming->is_nudged), out, answer, waits);
    if (*waits) {
        wait_for(roaming, roaming->inner->left_ms, false, waits);
        return PAWL_OK;
    }
    roaming->inner = NULL;
    if (!is_passing(status)) {
        leave(roaming);
        return status;
    }
    if (status == PAWL_OK && has_steps(out, roaming->begun))
        return finish(roaming, out, answer);
    out->size = roaming->begun;
    if (is_stopping || slice_of(roaming) == 0)
        return finish(roaming, out, answer);
    return look_later(roaming, waits);
}
