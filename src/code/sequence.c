/* sequence.c - what the macros of pawl_code.h call.
 *
 * Code comes to a place twice: the first time its arms are armed and the turn ends there; with the
 * event it jumps back in, and each arm is asked whether the event is its own. */
#include "code/code_int.h"

/* 0: the beginning; else 1 + the index of the phase it waits at. */
unsigned pawl_seq_at(const pawl_turn *turn)
{
    return turn->event->phase ? names_find(turn->type->phases, turn->event->phase) + 1 : 0;
}

void pawl_seq_arm(pawl_turn *turn, unsigned label)
{
    turn->label = label;
    turn->is_waking = false;
}

/* An instance that goes on by this build is armed again where it waits. */
void pawl_seq_wake(pawl_turn *turn)
{
    if (turn->event->kind == PAWL_EVENT_RENEW)
        pawl_seq_arm(turn, pawl_seq_at(turn));
    else
        turn->is_waking = true;
}

/* Only then are an arm's arguments evaluated. */
bool pawl_seq_is_arming(pawl_turn *turn)
{
    turn->is_given = !turn->is_waking;
    return !turn->is_waking;
}

/* A place that waits for one thing alone has no arguments for it where the code wakes. */
static bool is_bare(pawl_turn *turn)
{
    bool is_given = turn->is_given;

    turn->is_given = false;
    return turn->event->kind == PAWL_EVENT_RENEW && !is_given;
}

static bool is_mine(pawl_turn *turn, bool is_kind, const char *name)
{
    if (!turn->is_waking || turn->is_taken || !is_kind || strcmp(name, turn->event->name) != 0)
        return false;
    turn->is_taken = true;
    return true;
}

/* Only the arms of one place are armed in a turn, so this is another arm for the same timer. The
 * macros refuse that in C, but not in C++ and not in braces of its own. */
static void refuse_armed(pawl_turn *turn, const char *timer)
{
    for (uint32_t i = 0; i < turn->answer->timers.count; i++)
        if (str_is(turn->answer->timers.items[i].name, timer))
            turn_problem(turn, "two arms of the select at '%s' wait for the timer '%.*s'; keep one",
                         turn->type->phases[turn->label - 1],
                         STR_ARG(turn->answer->timers.items[i].name));
}

bool pawl_seq_timer(pawl_turn *turn, unsigned timer, int64_t after_ms)
{
    if (!turn->is_waking) {
        refuse_armed(turn, turn->type->timers[timer]);
        say_timer(turn, turn->type->timers[timer],
                  is_bare(turn) ? TIMER_BARE : turn_due_after(turn->event->at_ms, after_ms));
    }
    return is_mine(turn, turn->event->kind == PAWL_EVENT_TIMER, turn->type->timers[timer]);
}

bool pawl_seq_signal(pawl_turn *turn, unsigned signal)
{
    if (!turn->is_waking)
        say_signal(turn, turn->type->signals[signal]);
    return is_mine(turn, turn->event->kind == PAWL_EVENT_SIGNAL, turn->type->signals[signal]);
}

static bool is_answer(const pawl_turn *turn)
{
    return turn->event->kind == PAWL_EVENT_CALL || turn->event->kind == PAWL_EVENT_CALL_FAILED;
}

static void call_now(pawl_turn *turn, const char *declared, const char *key, const char *args_json)
{
    turn->answer->is_bare = is_bare(turn);
    say_call(turn, declared, key, args_json);
}

bool pawl_seq_call(pawl_turn *turn, unsigned call, const char *args_json)
{
    return pawl_seq_call_keyed(turn, call, NULL, args_json);
}

bool pawl_seq_call_keyed(pawl_turn *turn, unsigned call, const char *key, const char *args_json)
{
    if (!turn->is_waking)
        call_now(turn, turn->type->calls[call], key, args_json);
    return is_mine(turn, is_answer(turn), turn->type->calls[call]);
}

bool pawl_seq_external(pawl_turn *turn, unsigned external, const char *args_json)
{
    if (!turn->is_waking)
        call_now(turn, turn->type->externals[external], NULL, args_json);
    return is_mine(turn, is_answer(turn), turn->type->externals[external]);
}

bool pawl_seq_spawn(pawl_turn *turn, unsigned child, const char *input_json, bool abandon)
{
    pawl_event_kind kind = turn->event->kind;

    if (!turn->is_waking) {
        turn->answer->is_bare = is_bare(turn);
        say_spawn(turn, turn->type->children[child], input_json, abandon);
    }
    return is_mine(turn, kind == PAWL_EVENT_CHILD || kind == PAWL_EVENT_CHILD_FAILED,
                   turn->type->children[child]);
}

/* ---- Several at once ------------------------------------------------------------------------- */

/* True: the code comes to the place, and begins them. */
bool pawl_seq_gathers(pawl_turn *turn)
{
    turn->is_gathering = !turn->is_waking;
    return turn->is_gathering;
}

void pawl_seq_gather_call(pawl_turn *turn, unsigned call, const char *key, const char *args_json)
{
    say_call(turn, turn->type->calls[call], key, args_json);
}

void pawl_seq_gather_external(pawl_turn *turn, unsigned external, const char *args_json)
{
    say_call(turn, turn->type->externals[external], NULL, args_json);
}

void pawl_seq_gather_child(pawl_turn *turn, unsigned child, const char *input_json)
{
    say_spawn(turn, turn->type->children[child], input_json, false);
}

/* True: one of them has answered. */
bool pawl_seq_gathered(pawl_turn *turn)
{
    pawl_event_kind kind = turn->event->kind;

    turn->is_taken =
        turn->is_waking && !turn->is_taken &&
        (is_answer(turn) || kind == PAWL_EVENT_CHILD || kind == PAWL_EVENT_CHILD_FAILED);
    return turn->is_taken;
}

/* True: the code has to return, because it waits for those that are still under way. */
bool pawl_seq_gather_over(pawl_turn *turn)
{
    bool waits = turn->is_waking ? turn->open_calls > 0 : turn->answer->call_count > 0;

    turn->is_gathering = false;
    if (turn->is_waking && !turn->is_taken)
        return pawl_seq_over(turn);
    turn->answer->keeps = turn->is_waking && waits; /* its phase is the one that it woke at */
    if (waits && !turn->is_waking)
        return pawl_seq_over(turn);
    return waits;
}

unsigned pawl_seq_which(const pawl_turn *turn)
{
    return turn->which;
}

void pawl_seq_subscribe(pawl_turn *turn, unsigned signal, const char *value_json)
{
    say_subscribe(turn, signal, value_json);
}

void pawl_seq_unsubscribe(pawl_turn *turn, unsigned signal, const char *value_json)
{
    say_unsubscribe(turn, signal, value_json);
}

/* True: the code has to return. It waits here now, or no arm would have the event: a build whose
 * select lost an arm that an instance waits for. That instance keeps waiting. */
bool pawl_seq_over(pawl_turn *turn)
{
    if (!turn->is_waking) {
        turn->phase = str_of(turn->type->phases[turn->label - 1]);
        return true;
    }
    if (turn->is_taken)
        return false;
    if (turn->status == PAWL_OK)
        turn->status = scope_fail(
            turn->scope, PAWL_NOT_KNOWN,
            "code type '%s' in this program has no arm for '%s' at '%s', where the "
            "instance waits for it; run it with a build that has",
            turn->type->name, turn->event->name ? turn->event->name : "", turn->event->phase);
    return true;
}

const char *pawl_seq_error(const pawl_turn *turn)
{
    return turn->event->kind == PAWL_EVENT_CALL_FAILED ||
                   turn->event->kind == PAWL_EVENT_CHILD_FAILED
               ? turn->event->payload
               : NULL;
}

bool pawl_seq_failed(pawl_turn *turn)
{
    const char *error = pawl_seq_error(turn);

    if (error)
        say_end(turn, TURN_FAILS, "error", error);
    return error != NULL;
}

void pawl_seq_done(pawl_turn *turn)
{
    turn->is_done = true;
}

void pawl_seq_finish(pawl_turn *turn, const void *result)
{
    if (turn->is_done)
        pawl_turn_return(turn, result);
}
