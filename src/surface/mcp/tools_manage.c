/* tools_manage.c - tools over one operation each; tools.yaml lists them. */
#include "surface/mcp/fixtures.h"
#include "surface/mcp/mcp_int.h"
#include <strings.h>

const struct manage_tool *manage_find(str name)
{
    for (const struct manage_tool *tool = manage_tools; tool->name; tool++)
        if (str_is(name, tool->name))
            return tool;
    return NULL;
}

/* Of what reads one thing, or is committed without a thread. */
bool exchange_is_quick(const struct rpc_exchange *exchange)
{
    str name = node_text(exchange->params, "name");
    const struct manage_tool *tool;

    if (exchange->method->run != method_tools_call)
        return exchange->method->is_quick;
    tool = fixture_tool_has(exchange, name) ? NULL : manage_find(name);
    return tool && !tool->decides && tool->operations[0] &&
           op_find(str_of(tool->operations[0]))->flags & (OP_QUICK | OP_ASYNC);
}

/* ---- Arguments ---- */

static void append(struct node *object, struct node *member)
{
    struct node **link = &object->first;

    while (*link)
        link = &(*link)->next;
    *link = member;
    object->count++;
}

/* A copy of what the caller gave, without the parameter that chooses, and with what is preset. The
 * message itself stays as it is. */
static pawl_status read_arguments(struct rpc_exchange *exchange, const struct manage_tool *tool,
                                  struct node **out)
{
    const struct node *given = node_find(exchange->params, "arguments");
    struct scope *work = &exchange->turn->work;
    struct node *preset, *next;

    TRY(node_read_json(work, given ? given->raw : STR("{}"), out));
    TRY(node_read_json(work, str_of(tool->preset), &preset));
    for (struct node *one = preset->first; one; one = next) {
        next = one->next;
        one->next = NULL;
        if (!node_find_str(*out, one->key))
            append(*out, one);
    }
    return PAWL_OK;
}

/* Takes a member off an object; NULL: it has none. */
static struct node *take(struct node *object, const char *name)
{
    for (struct node **link = &object->first; *link; link = &(*link)->next)
        if (str_is((*link)->key, name)) {
            struct node *found = *link;

            *link = found->next;
            object->count--;
            return found;
        }
    return NULL;
}

static pawl_status choose(struct rpc_exchange *exchange, const struct manage_tool *tool,
                          struct node *arguments, const char **operation)
{
    const struct node *decision;
    str choices = str_of(tool->choices), one;

    *operation = tool->operations[0];
    if (!tool->decides)
        return PAWL_OK;
    decision = take(arguments, tool->decides);
    for (uint32_t i = 0; i < 2 && str_take(&choices, ',', &one); i++)
        if (decision && decision->kind == NODE_STRING && str_eq(decision->text, one)) {
            *operation = tool->operations[i];
            return PAWL_OK;
        }
    return scope_fail(&exchange->turn->work, PAWL_INVALID_REQUEST, "'%s': expected one of %s",
                      tool->decides, tool->choices);
}

/* ---- Search ---- */

static bool has_word(str text, str word)
{
    for (size_t i = 0; word.size > 0 && i + word.size <= text.size; i++)
        if (strncasecmp(text.data + i, word.data, word.size) == 0)
            return true;
    return false;
}

/* Every word of the query is in the name or the description. */
static bool is_found(const struct definition_tool *tool, str query)
{
    str word;

    while (str_take(&query, ' ', &word))
        if (word.size > 0 && !has_word(tool->definition, word) &&
            !has_word(tool->description, word))
            return false;
    return true;
}

static void put_found(const struct definition_tool *tool, struct buf *out)
{
    char name[TOOL_NAME_MAX + 1];

    tool_name_of(tool->definition, name);
    json_open(out, '{');
    json_put_str(out, "definition", tool->definition);
    json_put_text(out, "tool", name);
    json_put_str(out, "description", tool->description);
    json_put_raw(out, "arguments", tool->schema);
    json_close(out, '}');
}

#define SEARCH_LOOKS 1000u

static pawl_status search(struct rpc_exchange *exchange, struct node *arguments, struct buf *out)
{
    const struct node *query = node_find(arguments, "query");
    str names[SEARCH_LOOKS + 1];
    uint32_t count = 0, found = 0, limit = 20;

    if (query && query->kind != NODE_STRING)
        return scope_fail(&exchange->turn->work, PAWL_INVALID_REQUEST,
                          "'query': expected a string");
    node_to_u32(node_find(arguments, "limit"), LIMIT_LIST, &limit);
    TRY(definitions_list(exchange, SEARCH_LOOKS, names, &count));
    json_put_open(out, "definitions", '[');
    for (uint32_t i = 0; i < count && i < SEARCH_LOOKS && found < limit; i++) {
        struct definition_tool tool;

        TRY(definition_tool_read(exchange, names[i], &tool));
        if (!query || is_found(&tool, query->text)) {
            put_found(&tool, out);
            found++;
        }
    }
    json_close(out, ']');
    return PAWL_OK;
}

/* ---- Calling ---- */

/* The answer as text, and as what it is. */
static void put_answer(struct buf *result, str answer)
{
    tool_result_text(result, answer, false);
    if (answer.size > 0 && answer.data[0] == '{')
        json_put_raw(result, "structuredContent", answer);
}

static pawl_status run(struct rpc_exchange *exchange, const struct manage_tool *tool,
                       struct buf *out)
{
    const char *operation;
    struct node *arguments;

    TRY(read_arguments(exchange, tool, &arguments));
    if (strcmp(tool->name, "definition_search") == 0) {
        json_open(out, '{');
        TRY(search(exchange, arguments, out));
        json_close(out, '}');
        return PAWL_OK;
    }
    TRY(choose(exchange, tool, arguments, &operation));
    return exchange->waiter ? op_begin(exchange, operation, arguments, out)
                            : op_ask(exchange, operation, arguments, out);
}

/* What an operation refuses is the tool's answer; what the protocol refuses is an error. */
pawl_status manage_end(struct rpc_exchange *exchange, pawl_status status, struct buf *answer,
                       struct buf *result)
{
    if (status == PAWL_OK && !answer->failed)
        put_answer(result, buf_view(answer));
    else
        status = tool_refused(exchange, status == PAWL_OK ? PAWL_NO_MEMORY : status, result);
    return status;
}

pawl_status manage_call(struct rpc_exchange *exchange, const struct manage_tool *tool,
                        struct buf *result)
{
    struct buf *answer = &exchange->under_way_out;
    pawl_status status;

    buf_clear(answer);
    status = run(exchange, tool, answer);
    if (status != PAWL_OK)
        exchange->under_way = NULL;
    if (exchange->under_way || exchange->needs_thread)
        return PAWL_OK;
    return manage_end(exchange, status, answer, result);
}
