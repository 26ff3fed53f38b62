/* foreseen.c - turns that a process took right behind the steps that they are for.
 *
 * A turn is a function of its request. The answer is used if what is asked for is the very turn
 * that was foreseen: the same instance, the same events before, the same result of the same call.
 * The time may differ: the turn was taken at the time at which its step began. Where the code has
 * looked at the time (`timed`) the answer is used only if the clock is not a test's, or stands. */
#include "module/module_int.h"

#define ROWS       1024u
#define ANSWER_MAX 16384u /* bytes of a longer one are not kept: the turn is taken again */

struct foreseen {
    struct foreseen_turn turn;
    char *text; /* the result and the answer; NULL: none */
    size_t result_size, size;
};

static void forget(const struct heap *heap, struct foreseen *row)
{
    if (row->text)
        heap_free(heap, row->text, row->size);
    *row = (struct foreseen){ 0 };
}

static struct foreseen *row_of(struct module *module, uint64_t key)
{
    if (!module->foreseen)
        module->foreseen = heap_new(module->heap, sizeof *module->foreseen * ROWS);
    return module->foreseen ? &module->foreseen[key % ROWS] : NULL;
}

void foreseen_put(struct module *module, const struct foreseen_turn *turn, str result, str answer)
{
    struct foreseen *row;
    char *text;

    if (result.size + answer.size > ANSWER_MAX || answer.size == 0)
        return;
    text = heap_new(module->heap, result.size + answer.size);
    if (!text)
        return;
    memcpy(text, result.data, result.size);
    memcpy(text + result.size, answer.data, answer.size);
    pthread_mutex_lock(&module->lock);
    row = row_of(module, turn->key);
    if (row) {
        forget(module->heap, row);
        *row = (struct foreseen){ *turn, text, result.size, result.size + answer.size };
    } else {
        heap_free(module->heap, text, result.size + answer.size);
    }
    pthread_mutex_unlock(&module->lock);
}

void foreseen_free(struct module *module)
{
    for (uint32_t i = 0; module->foreseen && i < ROWS; i++)
        forget(module->heap, &module->foreseen[i]);
    if (module->foreseen)
        heap_free(module->heap, module->foreseen, sizeof *module->foreseen * ROWS);
    module->foreseen = NULL;
}

/* Is it this one event, and nothing that is owed? */
static bool is_fresh(struct scope *scope, const struct turn_request *request)
{
    struct buf buf;
    bool is_same;

    buf_init(&buf, scope->arena.heap, FRAME_MAX);
    json_open(&buf, '{');
    json_put_u64(&buf, "kind", PAWL_EVENT_CALL);
    json_put_i64(&buf, "at", request->at_ms);
    json_opt_str(&buf, "name", request->name);
    json_opt_raw(&buf, "payload", request->payload);
    json_opt_u64(&buf, "call", request->call);
    json_close(&buf, '}');
    is_same = !buf.failed && str_eq(buf_view(&buf), request->journal->fresh);
    buf_fini(&buf);
    return is_same;
}

static bool is_it(const struct module *module, const struct foreseen *row,
                  const struct turn_request *request)
{
    const struct foreseen_turn *turn = &row->turn;

    return row->text && turn->mark == request->journal->mark && turn->number == request->call &&
           str_eq((str){ row->text, row->result_size }, request->payload) &&
           (!turn->is_timed || turn->at_ms == request->at_ms ||
            (!module->is_near && turn->at_ms < request->at_ms));
}

/* A timer would be due before the turn that arms it. */
static bool is_late(const struct turn_request *request, const struct turn_answer *answer)
{
    for (uint32_t i = 0; i < answer->timers.count; i++)
        if (answer->timers.items[i].due_at_ms <= request->at_ms)
            return true;
    return false;
}

static bool take_text(struct module *module, const struct turn_request *request, uint64_t key,
                      struct scope *scope, struct foreseen_turn *turn, str *out)
{
    struct foreseen *row;

    pthread_mutex_lock(&module->lock);
    row = module->foreseen ? row_of(module, key) : NULL;
    if (row && row->text && row->turn.key == key) {
        if (is_it(module, row, request))
            *out = arena_str(&scope->arena, (str){ row->text + row->result_size,
                                                   row->size - row->result_size });
        *turn = row->turn;
        forget(module->heap, row);
    }
    pthread_mutex_unlock(&module->lock);
    return out->data != NULL;
}

bool foreseen_take(struct module *module, const struct turn_request *request, struct scope *scope,
                   struct foreseen_turn *turn, struct turn_answer *out)
{
    str text = STR_NONE;

    if (request->kind != PAWL_EVENT_CALL || !module->takes_many ||
        !take_text(module, request, foreseen_key(request->journal->id, request->call), scope, turn,
                   &text))
        return false;
    if (is_fresh(scope, request) && wire_read_answer(scope, text, out) == PAWL_OK &&
        !is_late(request, out))
        return true;
    scope->error = (pawl_error){ .status = PAWL_OK };
    return false;
}

uint64_t foreseen_key(str id, uint32_t number)
{
    return journal_chain(number, id);
}
