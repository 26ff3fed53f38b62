/* remote_ask.c - what a server asks people (elicitation), and their answers. */
#include "tool/remote/remote_int.h"

bool ask_is_known(const struct node *request)
{
    return str_is(node_text(request, "method"), "elicitation/create");
}

void ask_print(str server, str tool, str key, const struct node *params, struct buf *out)
{
    json_open(out, '{');
    json_put_str(out, "server", server);
    json_opt_str(out, "tool", tool);
    json_opt_str(out, "key", key);
    json_opt_str(out, "message", node_text(params, "message"));
    json_opt_str(out, "url", node_text(params, "url"));
    json_opt_raw(out, "requestedSchema", node_raw(params, "requestedSchema"));
    json_close(out, '}');
}

/* What was said, and the defaults of what was not. */
static void put_content(const struct node *schema, const struct node *given, struct buf *out)
{
    bool is_object = given && given->kind == NODE_OBJECT;

    json_put_open(out, "content", '{');
    for (const struct node *one = is_object ? given->first : NULL; one; one = one->next) {
        json_key_str(out, one->key);
        json_raw(out, one->raw);
    }
    for (const struct node *one = node_first(schema, "properties"); one; one = one->next) {
        const struct node *value = node_find(one, "default");

        if (!value || (is_object && node_find_str(given, one->key)))
            continue;
        json_key_str(out, one->key);
        json_raw(out, value->raw);
    }
    json_close(out, '}');
}

void ask_answer(const struct node *params, const struct node *given, bool is_declined,
                struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "action", is_declined ? "decline" : "accept");
    if (!is_declined && !str_is(node_text(params, "mode"), "url"))
        put_content(node_find(params, "requestedSchema"), given, out);
    json_close(out, '}');
}
