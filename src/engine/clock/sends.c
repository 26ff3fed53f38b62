/* sends.c - what code, or a flow's `notify`, orders with the commit of its turn: another
 * instance is started or signalled.
 *
 * Each order is an alarm that is due at once, in the very commit of the entry that has the
 * effect `send`: it is done once, also after a death, by the thread that fires alarms. One that
 * is refused says so in the log, and the sender goes on. */
#include "base/node.h"
#include "engine/parts.h"
#include "model/rights.h"

bool sends_any(const struct decision *decision)
{
    for (uint32_t i = 0; i < decision->count; i++)
        if (effects_first(&decision->drafts[i].effects, EFFECT_SEND))
            return true;
    return false;
}

/* What a flow notifies of: the creation gets its id, which a decision need not know. */
static pawl_status print_notice(struct scope *scope, const struct sender_of *sender,
                                const struct effect *effect, struct buf *out)
{
    const struct node *input;
    struct node *order;

    TRY(node_read_json(scope, effect->state, &order));
    input = node_find(order, "input");
    json_put_str(out, "operation", STR("instance.create"));
    json_put_open(out, "input", '{');
    json_put_str(out, "definition", node_text(order, "definition"));
    if (sender->is_test)
        json_put_bool(out, "test", true);
    json_put_open(out, "input", '{');
    for (const struct node *member = input ? input->first : NULL; member; member = member->next) {
        json_key_str(out, member->key);
        if (!str_is(member->key, "event")) {
            json_raw(out, member->raw);
            continue;
        }
        json_open(out, '{');
        json_put_text(out, "instance_id", sender->id);
        for (const struct node *part = member->first; part; part = part->next) {
            json_key_str(out, part->key);
            json_raw(out, part->raw);
        }
        json_close(out, '}');
    }
    json_close(out, '}');
    json_close(out, '}');
    return PAWL_OK;
}

/* In the sender's rights, written as scopes; data NULL: it may do all. */
static pawl_status record_one(struct engine *engine, struct scope *scope,
                              const struct sender_of *sender, const struct effect *effect,
                              str rights, int64_t at_ms)
{
    struct buf text;
    str operation;
    pawl_status status = PAWL_OK;

    buf_init(&text, engine->heap, LIMIT_SCOPE);
    json_open(&text, '{');
    if (str_is(effect->name, "notify")) {
        status = print_notice(scope, sender, effect, &text);
    } else {
        json_put_str(&text, "operation", effect->name);
        json_put_raw(&text, "input", effect->state);
    }
    if (rights.data) {
        json_key(&text, "scopes");
        buf_byte(&text, '"');
        rights_scopes(&text, rights);
        buf_byte(&text, '"');
    }
    json_close(&text, '}');
    operation = buf_take(&text, &scope->arena);
    TRY(status);
    TRY_MEMORY(scope, operation.data);
    TRY(standing_room(engine, scope));
    return alarm_record_start(engine, scope, operation, at_ms);
}

pawl_status sends_record(struct engine *engine, struct scope *scope, const struct sender_of *sender,
                         const struct decision *decision, str rights, int64_t at_ms)
{
    ASSERT_DRAINING(engine);
    for (uint32_t i = 0; i < decision->count; i++) {
        const struct effect_list *effects = &decision->drafts[i].effects;

        for (uint32_t e = 0; e < effects->count; e++) {
            pawl_status status = PAWL_OK;

            if (effects->items[e].kind == EFFECT_SEND)
                status = record_one(engine, scope, sender, &effects->items[e], rights, at_ms);
            if (status)
                return batch_spoil(engine, scope, status);
        }
    }
    return PAWL_OK;
}
