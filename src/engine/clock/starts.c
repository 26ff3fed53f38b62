/* starts.c - what a transition of a machine starts when it is fired (A9).
 *
 * The creation is kept as an alarm that is due at once, in the very commit of the entry: it is made
 * once, also after a death, by the thread that fires alarms, not by the drain; an alarm that is
 * refused says so in its own record (A41), and the machine stays in the state it was fired to. Its
 * `on_end` is how the machine learns of the end (writer/ends.c). */
#include "base/node.h"
#include "engine/parts.h"
#include "model/rights.h"

struct starting {
    uint64_t instance;
    uint32_t seq; /* of the entry */
    const struct definition *definition;
    const struct transition *transition;
    const struct event *event;
};

/* What has happened, for whom it starts: the member `event` of its input. */
static void print_event(const struct starting *starting, const char *id, struct buf *out)
{
    const struct transition *transition = starting->transition;
    const struct state *states = starting->definition->states;

    json_put_open(out, "event", '{');
    json_opt_str(out, "instance_id", str_of(id));
    json_put_u64(out, "sequence_number", starting->seq);
    json_opt_str(out, "action", transition->action);
    json_opt_str(out, "from_state", states[transition->from].name);
    json_opt_str(out, "to_state", states[transition->to].name);
    json_opt_str(out, "actor_ref", starting->event->actor);
    json_opt_str(out, "reason", starting->event->reason);
    json_opt_raw(out, "payload", starting->event->payload);
    json_close(out, '}');
}

static void print_input(const struct starting *starting, const struct node *declared,
                        const char *id, struct buf *out)
{
    const struct node *given = node_find(declared, "input");

    json_put_open(out, "input", '{');
    for (const struct node *member = given ? given->first : NULL; member; member = member->next) {
        json_key_str(out, member->key);
        json_raw(out, member->raw);
    }
    print_event(starting, id, out);
    json_close(out, '}');
}

static void print_started_by(const char *id, uint32_t seq, struct buf *out)
{
    json_put_open(out, "instance_metadata", '{');
    json_put_open(out, "started_by", '{');
    json_opt_str(out, "instance_id", str_of(id));
    json_put_u64(out, "sequence_number", seq);
    json_close(out, '}');
    json_close(out, '}');
}

/* The new instance is created with the rights of the instance that starts it, written as scopes. */
static pawl_status print_rights(struct engine *engine, struct scope *scope,
                                const struct starting *starting, struct buf *out)
{
    str rights;

    TRY(rights_of_instance(engine, scope, starting->instance, &rights));
    if (!rights.data)
        return PAWL_OK;
    json_key(out, "scopes");
    buf_byte(out, '"');
    rights_scopes(out, rights);
    buf_byte(out, '"');
    return PAWL_OK;
}

/* What its end fires, for the record behind its creation. */
static void print_on_end(const struct node *declared, const char *id, struct buf *out)
{
    const struct node *on_end = node_find(declared, "on_end");

    if (!on_end)
        return;
    json_put_open(out, "on_end", '{');
    json_opt_str(out, "instance", str_of(id));
    for (const struct node *node = on_end->first; node; node = node->next) {
        json_key_str(out, node->key);
        json_str(out, node->text);
    }
    json_close(out, '}');
}

/* instance.create, in the name of who created the machine, about the same, and a test if it is one.
 */
static pawl_status print_operation(struct engine *engine, struct scope *scope,
                                   const struct starting *starting, struct buf *out)
{
    char id[ID_SIZE + 1];
    struct instance_row row;
    struct node *declared;
    str creator, subject;

    TRY(node_read_json(scope, starting->transition->starts, &declared));
    TRY(store_instance(engine->store, scope, starting->instance, &row));
    TRY(value_text(engine, scope, row.creator, &creator));
    TRY(value_text(engine, scope, row.subject, &subject));
    id_print(row.number, row.random, id);
    json_open(out, '{');
    json_opt_str(out, "operation", STR("instance.create"));
    json_put_open(out, "input", '{');
    json_opt_str(out, "definition", node_find(declared, "definition")->text);
    if (!actor_is_reserved(creator)) /* callers cannot name such an actor: see below */
        json_opt_str(out, "actor_ref", creator);
    json_opt_str(out, "subject_ref", subject);
    json_opt_str(out, "correlation_id", row.correlation);
    if (row.test)
        json_put_bool(out, "test", true);
    print_started_by(id, starting->seq, out);
    print_input(starting, declared, id, out);
    json_close(out, '}');
    if (actor_is_reserved(creator))
        json_opt_str(out, "actor", creator);
    json_put_bool(out, "machine", true); /* callers cannot say so: ops_alarm.c */
    print_on_end(declared, id, out);
    TRY(print_rights(engine, scope, starting, out));
    json_close(out, '}');
    return PAWL_OK;
}

pawl_status start_prepare(struct engine *engine, struct scope *scope, const struct head *head,
                          const struct definition *definition, const struct transition *transition,
                          const struct event *event, str *out)
{
    struct starting starting = { .instance = head->instance,
                                 .seq = head->seq + 1,
                                 .definition = definition,
                                 .transition = transition,
                                 .event = event };
    struct buf text;
    pawl_status status;

    buf_init(&text, engine->heap, LIMIT_SCOPE);
    status = print_operation(engine, scope, &starting, &text);
    *out = buf_take(&text, &scope->arena);
    TRY(status);
    TRY_MEMORY(scope, out->data);
    return standing_room(engine, scope);
}
