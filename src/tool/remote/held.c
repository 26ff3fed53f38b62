/* held.c - calls of the older era that wait for people.
 *
 * There a server asks in the middle of a call, on the connection of the call, and the call is lost
 * with the connection. So the call has a thread of its own, which holds the connection while the
 * flow waits at a gate; no thread of the engine waits. After a crash nothing holds it: its outcome
 * is unknown, and mcp.answer says so. */
#include "base/limits.h"
#include "tool/remote/remote_int.h"
#include <poll.h>
#include <stdio.h>

enum held_state { HELD_WORKS, HELD_ASKS, HELD_ANSWERED, HELD_DONE };

struct remote_held {
    struct remote_held *next;
    uint64_t number;
    struct remote *remote;
    struct scope scope;
    struct remote_talk talk;
    struct remote_request request;
    pthread_t thread;
    enum held_state state; /* this and what follows: guarded by the remote's lock */
    bool is_dropped;
    str question, answer, result; /* in the scope */
};

static bool is_over(const struct remote_held *held)
{
    return held->is_dropped || held->remote->is_stopping || held->remote->toolbox->is_stopping;
}

bool talk_is_over(const struct remote_talk *talk)
{
    bool is_dropped = false;

    if (talk->is_last_word)
        return false;
    if (talk->held) {
        pthread_mutex_lock(&talk->remote->lock);
        is_dropped = is_over(talk->held);
        pthread_mutex_unlock(&talk->remote->lock);
    }
    return is_dropped || talk->remote->is_stopping || (talk->call && call_is_stopping(talk->call));
}

/* ---- In its thread ---- */

bool held_question(struct remote_talk *talk, const struct node *params, str *answer)
{
    struct remote_held *held = talk->held;
    struct env *env = talk->remote->toolbox->options.env;
    int64_t begun = env->tick_ms(env);
    bool is_answered = false, is_lost = false;

    pthread_mutex_lock(&held->remote->lock);
    held->question = params ? params->raw : STR("{}");
    held->state = HELD_ASKS;
    while (!is_answered && !is_lost) {
        is_answered = held->state == HELD_ANSWERED;
        is_lost = is_over(held);
        pthread_mutex_unlock(&held->remote->lock);
        if (!is_answered && !is_lost)
            (void)poll(NULL, 0, SLICE_WAIT_MS);
        pthread_mutex_lock(&held->remote->lock);
    }
    if (is_answered) {
        *answer = held->answer;
        held->state = HELD_WORKS;
    }
    pthread_mutex_unlock(&held->remote->lock);
    talk->paused_ms += env->tick_ms(env) - begun;
    return is_answered;
}

static void *work(void *context)
{
    struct remote_held *held = context;
    struct node *result;
    bool is_done = talk_once(&held->talk, &held->request, &result);

    talk_end(&held->talk);
    pthread_mutex_lock(&held->remote->lock);
    held->result = is_done ? result->raw : STR_NONE;
    held->state = HELD_DONE;
    pthread_mutex_unlock(&held->remote->lock);
    return NULL;
}

/* ---- For the tools of steps ---- */

static void end(struct remote_held *held)
{
    const struct heap *heap = held->remote->toolbox->options.heap;

    (void)pthread_join(held->thread, NULL);
    scope_fini(&held->scope);
    heap_free(heap, held, sizeof *held);
}

static struct remote_held *take_off(struct remote *remote, uint64_t number)
{
    struct remote_held **link = &remote->held, *found;

    pthread_mutex_lock(&remote->lock);
    while (*link && (*link)->number != number)
        link = &(*link)->next;
    found = *link;
    if (found) {
        *link = found->next;
        remote->held_count--;
        found->is_dropped = found->state != HELD_DONE;
    }
    pthread_mutex_unlock(&remote->lock);
    return found;
}

void held_drop(struct remote *remote, uint64_t number)
{
    struct remote_held *held = remote ? take_off(remote, number) : NULL;

    if (held)
        end(held);
}

void held_end_all(struct remote *remote)
{
    while (remote->held)
        held_drop(remote, remote->held->number);
}

/* Waits until it asks or is done. */
static bool wait_for(struct call *call, struct remote_held *held, struct held_result *out,
                     struct remote_talk *why)
{
    enum held_state state = HELD_WORKS;

    for (;;) {
        pthread_mutex_lock(&held->remote->lock);
        state = held->state;
        out->is_question = state == HELD_ASKS;
        out->text = arena_str(&call->scope->arena, state == HELD_ASKS   ? held->question
                                                   : state == HELD_DONE ? held->result
                                                                        : STR_NONE);
        pthread_mutex_unlock(&held->remote->lock);
        if (state == HELD_ASKS)
            return true;
        if (state == HELD_DONE || call_is_stopping(call))
            break;
        (void)poll(NULL, 0, 5);
    }
    if (state != HELD_DONE)
        talk_fails(why, FAULT_STOPPED, "stopped before it answered");
    else if (!out->text.data)
        *why = held->talk;
    held_drop(held->remote, held->number);
    why->data = NULL; /* it lay in the scope of the call */
    return why->fault == FAULT_NONE;
}

static struct remote_held *new_held(struct call *call, const struct remote_talk *talk, str name,
                                    str params)
{
    struct remote *remote = talk->remote;
    struct remote_held *held = heap_new(remote->toolbox->options.heap, sizeof *held);
    struct env *env = remote->toolbox->options.env;

    if (!held)
        return NULL;
    *held = (struct remote_held){ .remote = remote, .talk = *talk };
    env->random(env, &held->number, sizeof held->number);
    held->number |= 1;
    scope_init(&held->scope, remote->toolbox->options.heap, LIMIT_SCOPE);
    held->talk.scope = &held->scope;
    held->talk.held = held;
    held->talk.call = NULL;
    held->request = (struct remote_request){ .method = "tools/call",
                                             .name = arena_str(&held->scope.arena, name),
                                             .params = arena_str(&held->scope.arena, params) };
    (void)call;
    return held;
}

/* The talk goes over to the thread: its caller does not end it. */
bool held_begin(struct call *call, const struct remote_talk *talk, str name, str params,
                uint64_t *number, struct held_result *out, struct remote_talk *why)
{
    struct remote *remote = talk->remote;
    struct remote_held *held = NULL;
    bool has_room;

    pthread_mutex_lock(&remote->lock);
    has_room = remote->held_count < HELD_MAX;
    pthread_mutex_unlock(&remote->lock);
    *why = *talk;
    if (has_room)
        held = new_held(call, talk, name, params);
    if (!held || held->scope.arena.failed || pthread_create(&held->thread, NULL, work, held) != 0) {
        talk_end(why);
        if (held)
            scope_fini(&held->scope);
        heap_free(remote->toolbox->options.heap, held, sizeof *held);
        return talk_fails(why, FAULT_UNREACHABLE, "too many calls wait for people already");
    }
    *number = held->number;
    pthread_mutex_lock(&remote->lock);
    held->next = remote->held;
    remote->held = held;
    remote->held_count++;
    pthread_mutex_unlock(&remote->lock);
    why->link = NULL;
    return wait_for(call, held, out, why);
}

bool held_answer(struct call *call, uint64_t number, str answer, struct held_result *out,
                 struct remote_talk *why)
{
    struct remote *remote = call->toolbox->remote;
    struct remote_held *held;

    pthread_mutex_lock(&remote->lock);
    for (held = remote->held; held && held->number != number; held = held->next)
        ;
    if (held && held->state == HELD_ASKS) {
        held->answer = arena_str(&held->scope.arena, answer);
        held->state = HELD_ANSWERED;
    }
    pthread_mutex_unlock(&remote->lock);
    if (!held)
        return talk_fails(why, FAULT_BROKEN,
                          "the connection on which it was asked did not survive");
    return wait_for(call, held, out, why);
}
