/* together.c - several calls of tools that one process takes together.
 *
 * To ask a process for each step, and then for the turn behind it, costs two changes of process a
 * step: many times what the step and the turn take. So steps that take next to no time are sent
 * together to the process that has their instances in memory. It answers them in their order, and
 * behind all of them with the turns that they lead to (foreseen.c). */
#include "module/module_int.h"

#define CALL_MS 121000 /* for the next of their answers */

/* Calls for the same child. */
struct lot {
    struct module *module;
    struct child_process *child;
    struct scope *scope;
    struct module_call **calls;
    uint64_t *keeps; /* the number under which the child keeps the instance then; 0: no turn */
    uint32_t count, answered;
};

static uint64_t held_by(const struct child_process *child, const struct module_call *call)
{
    uint64_t found = 0;

    if (call->type)
        found = held_find(child, held_key(call->mark, str_of(call->call->instance_id)));
    if (!found && call->type) /* its first turn was taken before it had an id */
        found = held_find(child, held_key(call->mark, str_of(call->type)));
    return found;
}

/* The turn that its result leads to. */
static void print_then(struct lot *lot, uint32_t i, struct buf *out)
{
    const struct module_call *call = lot->calls[i];
    uint64_t have = held_by(lot->child, call);

    lot->keeps[i] = have ? ++lot->child->numbers : 0;
    if (!have)
        return;
    json_put_open(out, "then", '{');
    json_put_text(out, "type", call->type);
    json_put_i64(out, "at", call->at_ms);
    json_put_u64(out, "have", have);
    json_put_u64(out, "keep", lot->keeps[i]);
    json_put_u64(out, "call", call->number);
    json_close(out, '}');
}

static void print_lot(struct lot *lot, struct buf *out)
{
    json_open(out, '{');
    json_put_open(out, "many", '[');
    pthread_mutex_lock(&lot->module->lock); /* of what the child has */
    for (uint32_t i = 0; i < lot->count; i++) {
        json_open(out, '{');
        call_print(lot->calls[i]->call, out);
        print_then(lot, i, out);
        json_close(out, '}');
    }
    pthread_mutex_unlock(&lot->module->lock);
    json_close(out, ']');
    json_close(out, '}');
}

static bool take_answer(struct lot *lot, const struct node *node)
{
    if (lot->answered == lot->count || node->kind != NODE_OBJECT)
        return false;
    call_take_answer(lot->scope, node, &lot->calls[lot->answered++]->answer);
    return true;
}

/* Frames of answers, until there is one to each call. */
static bool hear_answers(struct lot *lot)
{
    while (lot->answered < lot->count) {
        struct node *root = NULL;
        const struct node *list;
        uint32_t before = lot->answered;
        str text;

        if (frame_read_alone(lot->child->in, CALL_MS, lot->scope, &text) != FRAME_OK ||
            node_read_json(lot->scope, text, &root) != PAWL_OK)
            return false;
        list = node_find(root, "answers");
        for (const struct node *one = list ? list->first : NULL; one; one = one->next)
            if (!take_answer(lot, one))
                return false;
        if (lot->answered == before)
            return false;
    }
    return true;
}

static void foresee(struct lot *lot, uint32_t i, const struct node *node)
{
    const struct module_call *call = lot->calls[i];
    str id = str_of(call->call->instance_id), answer = node_raw(node, "turn");

    if (node->kind != NODE_OBJECT || !answer.data || !lot->keeps[i] || call->answer.has_failed)
        return;
    foreseen_put(lot->module,
                 &(struct foreseen_turn){ .key = foreseen_key(id, call->number),
                                          .mark = call->mark,
                                          .number = call->number,
                                          .at_ms = call->at_ms,
                                          .is_timed = node_find(node, "timed") != NULL,
                                          .child = lot->child,
                                          .keep = lot->keeps[i] },
                 call->answer.json, answer);
}

/* The turns behind them. Without it each is asked for. */
static bool hear_turns(struct lot *lot)
{
    struct node *root = NULL;
    const struct node *list;
    uint32_t i = 0;
    str text;

    if (frame_read_alone(lot->child->in, lot->module->turn_ms, lot->scope, &text) != FRAME_OK ||
        node_read_json(lot->scope, text, &root) != PAWL_OK)
        return false;
    list = node_find(root, "turns");
    for (const struct node *one = list ? list->first : NULL; one && i < lot->count; one = one->next)
        foresee(lot, i++, one);
    return list != NULL;
}

static bool ask(struct lot *lot)
{
    struct buf frame;
    bool ok;

    buf_init(&frame, lot->module->heap, FRAME_MAX);
    print_lot(lot, &frame);
    ok = frame_write(lot->child->out, CALL_MS, &frame) == FRAME_OK;
    buf_fini(&frame);
    return ok && hear_answers(lot) && hear_turns(lot);
}

/* What was not answered is called by itself: nobody knows at which of them the process ended. */
static void end_lot(struct lot *lot)
{
    char words[64];

    process_end(lot->child, words);
    process_give_back(lot->module, lot->child);
    for (uint32_t i = lot->answered; i < lot->count; i++) {
        module_call(lot->module, lot->calls[i]->call, lot->scope, &lot->calls[i]->answer);
        lot->calls[i]->answer.was_lost = true;
    }
}

static void run_lot(struct lot *lot)
{
    if (process_need(lot->module, lot->child, lot->scope) == PAWL_OK && ask(lot))
        process_give_back(lot->module, lot->child);
    else
        end_lot(lot);
    lot->scope->error = (pawl_error){ .status = PAWL_OK };
}

/* Which child has most of them in memory? */
static struct child_process *best_child(struct module *module, const struct module_call *calls,
                                        uint32_t count)
{
    uint32_t best = 0, found = 0;

    pthread_mutex_lock(&module->lock);
    for (uint32_t i = 0; i < CHILDREN; i++) {
        uint32_t held = 0;

        for (uint32_t c = 0; module->children[i].held && c < count; c++)
            held += held_by(&module->children[i], &calls[c]) != 0;
        if (held > found) {
            found = held;
            best = i;
        }
    }
    pthread_mutex_unlock(&module->lock);
    return &module->children[best];
}

bool module_takes_many(const struct module *module)
{
    return module->takes_many;
}

void module_call_many(struct module *module, struct module_call *calls, uint32_t count,
                      struct scope *scope)
{
    struct lot lot = { .module = module, .scope = scope, .count = count };

    lot.calls = ARENA_ARRAY(&scope->arena, struct module_call *, count);
    lot.keeps = ARENA_ARRAY(&scope->arena, uint64_t, count);
    lot.child = lot.calls && lot.keeps
                    ? process_take_one(module, best_child(module, calls, count))
                    : NULL;
    for (uint32_t i = 0; lot.child && i < count; i++)
        lot.calls[i] = &calls[i];
    if (lot.child)
        run_lot(&lot);
    for (uint32_t i = 0; !lot.child && i < count; i++)
        module_call(module, calls[i].call, scope, &calls[i].answer);
}
