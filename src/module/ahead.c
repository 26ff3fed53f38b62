/* ahead.c - turns that a child takes before they are asked for.
 *
 * With a test clock most turns are those of a timer, and nothing happens between two of them.
 * Asking for each takes longer than the turn. A turn is a function of its request: so an answer
 * that is there is used for a request of exactly the same bytes, and else not at all. */
#include "module/module_int.h"

#define COUNT_MAX 31u

void ahead_init(struct ahead *ahead, const struct heap *heap)
{
    *ahead = (struct ahead){ 0 };
    buf_init(&ahead->request, heap, FRAME_MAX);
    buf_init(&ahead->answers, heap, FRAME_MAX);
}

void ahead_fini(struct ahead *ahead)
{
    buf_fini(&ahead->request);
    buf_fini(&ahead->answers);
}

bool ahead_foresee(const struct turn_answer *answer, struct turn_request *out)
{
    const struct effect *first = answer->timers.items;

    if (answer->end != TURN_WAITS || answer->timers.count == 0 || answer->call_count > 0 ||
        answer->keeps || answer->reduces.count > 0 || !answer->state.data)
        return false;
    for (uint32_t i = 1; i < answer->timers.count; i++)
        if (answer->timers.items[i].due_at_ms < first->due_at_ms)
            first = &answer->timers.items[i];
    *out = (struct turn_request){ .kind = PAWL_EVENT_TIMER,
                                  .name = first->name,
                                  .at_ms = first->due_at_ms,
                                  .state = answer->state };
    return true;
}

static void foresee(struct ahead *ahead, const char *type, const struct turn_answer *answer)
{
    struct turn_request next;

    buf_clear(&ahead->request);
    if (ahead_foresee(answer, &next))
        wire_print_request(type, &next, 0, 0, &ahead->request);
}

/* More of them each time that what was foreseen has come. */
bool ahead_take(struct ahead *ahead, const char *type, str request, struct scope *scope,
                struct turn_answer *out)
{
    bool has_come = ahead->request.size > 0 && str_eq(buf_view(&ahead->request), request);
    str rest = str_from(buf_view(&ahead->answers), ahead->used), text;

    if (has_come && str_take(&rest, '\0', &text)) {
        ahead->used = ahead->answers.size - rest.size;
        text = arena_str(&scope->arena, text);
        if (text.data && wire_read_answer(scope, text, out) == PAWL_OK) {
            foresee(ahead, type, out);
            return true;
        }
        scope->error = (pawl_error){ .status = PAWL_OK };
        ahead->is_off = true;
    }
    ahead->count = !has_come || ahead->is_off ? 0 : 2 * ahead->count + 1;
    if (ahead->count > COUNT_MAX)
        ahead->count = COUNT_MAX;
    return false;
}

void ahead_keep(struct ahead *ahead, const char *type, const struct turn_answer *answer,
                str answers)
{
    buf_clear(&ahead->answers);
    buf_str(&ahead->answers, answers);
    ahead->used = 0;
    foresee(ahead, type, answer);
}
