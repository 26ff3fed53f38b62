/* ends.c - the machine that started an instance learns of its end (clock/starts.c, and back).
 *
 * What an instance's end fires stands in the record behind its creation. With the commit of its
 * last entry an alarm is recorded that is due at once: so the action is fired once, also after
 * a death, and one that is refused says so in its own record. What could not be created has failed.
 */
#include "base/node.h"
#include "base/planted.h"
#include "engine/parts.h"
#include "model/rights.h"

#define RESULT_ROOM 4096u /* of the text that the action is fired with, beside result or error */

static const char *word_of(enum instance_status status)
{
    return status == STATUS_CANCELLED ? "cancelled"
           : status == STATUS_FAILED  ? "failed"
                                      : "completed";
}

/* A result or error as large as a text may be does not fit beside the rest: its size is said. */
static void print_outcome(const struct ended *ended, struct buf *out)
{
    const char *key = ended->status == STATUS_FAILED ? "error" : "result";

    json_put_open(out, "payload", '{');
    json_opt_str(out, "instance_id", ended->id);
    json_put_text(out, "status", word_of(ended->status));
    if (ended->status == STATUS_CANCELLED)
        json_opt_str(out, "reason", ended->reason);
    else if (ended->payload.size > LIMIT_TEXT - RESULT_ROOM)
        json_put_u64(out, "left_out", ended->payload.size);
    else if (ended->payload.data)
        json_put_raw(out, key, ended->payload);
    json_close(out, '}');
}

static const char *said(const struct ended *ended)
{
    return !ended->id.data                     ? "what was started could not be created"
           : ended->status == STATUS_FAILED    ? "what was started has failed"
           : ended->status == STATUS_CANCELLED ? "what was started was cancelled"
                                               : "what was started has completed";
}

pawl_status on_end_fire(struct scope *scope, const struct heap *heap, str on_end,
                        const struct ended *ended, str *out)
{
    struct node *declared;
    struct buf text;
    str action;

    *out = STR_NONE;
    TRY(node_read_json(scope, on_end, &declared));
    action = node_text(declared, word_of(ended->status));
    if (!action.data)
        return PAWL_OK;
    buf_init(&text, heap, LIMIT_SCOPE);
    json_open(&text, '{');
    json_opt_str(&text, "operation", STR("instance.fire"));
    json_put_open(&text, "input", '{');
    json_opt_str(&text, "instance_id", node_text(declared, "instance"));
    json_opt_str(&text, "action", action);
    json_put_text(&text, "reason", said(ended));
    print_outcome(ended, &text);
    json_close(&text, '}');
    json_opt_str(&text, "actor", STR("pawl/on_end"));
    json_put_bool(&text, "machine", true);
    json_close(&text, '}');
    *out = buf_take(&text, &scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}

/* ---- in the drain ---- */

static pawl_status tell(struct engine *engine, struct scope *scope, const struct batch_end *end,
                        int64_t at_ms)
{
    struct ended ended = { .status = end->status, .payload = end->payload, .reason = end->reason };
    struct starter starter;
    char id[ID_SIZE + 1];
    str operation;

    TRY(starter_now(engine, scope, end->instance, &starter));
    if (!starter.on_end.data)
        return PAWL_OK;
    id_print(end->instance, end->random, id);
    ended.id = str_of(id);
    TRY(on_end_fire(scope, engine->heap, starter.on_end, &ended, &operation));
    if (!operation.data || PLANTED(END_UNTOLD))
        return PAWL_OK;
    TRY(standing_room(engine, scope));
    return alarm_record_start(engine, scope, operation, at_ms);
}

void on_end_tell(struct engine *engine, struct scope *scope, int64_t at_ms)
{
    struct batch *batch = &engine->writer.batch;

    ASSERT_DRAINING(engine);
    for (uint32_t i = 0; i < batch->end_count && !engine->writer.batch_status; i++) {
        pawl_status status = tell(engine, scope, &batch->ends[i], at_ms);

        if (status)
            batch_spoil(engine, scope, status);
    }
    batch->end_count = 0;
}
