/* remote_tools.c - the tools of a server. Their list is remembered for as long as the server says,
 * or for some minutes, because each call asks what its tool declares. */
#include "base/grow.h"
#include "base/limits.h"
#include "tool/remote/remote_int.h"

#define HOLDS_MS     60000 /* unless the server says how long its list holds */
#define HOLDS_MAX_MS 3600000
#define PAGES_MAX    100
#define HEADER_DEPTH 8

/* ---- Arguments that are headers too (x-mcp-header) ---- */

static bool is_header_name(str name)
{
    static const char *const more = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !strchr(more, c))
            return false;
    }
    return name.size > 0 && name.size <= 64;
}

static bool is_same(str a, str b)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++)
        if ((a.data[i] | 0x20) != (b.data[i] | 0x20))
            return false;
    return true;
}

struct header_walk {
    struct remote_talk *talk;
    struct remote_pair *found;
    bool is_invalid;
};

static bool is_plain(const struct node *property)
{
    static const char *const types[] = { "string", "integer", "boolean", NULL };

    return str_is_one_of(node_text(property, "type"), types);
}

static void note_header(struct header_walk *walk, const struct node *property,
                        const struct node *name, const struct node *value)
{
    struct remote_pair *pair = ARENA_NEW(&walk->talk->scope->arena, struct remote_pair);

    if (!pair || name->kind != NODE_STRING || !is_header_name(name->text) || !is_plain(property)) {
        walk->is_invalid = true;
        return;
    }
    *pair = (struct remote_pair){ walk->found, name->text, STR_NONE };
    for (const struct remote_pair *other = walk->found; other; other = other->next)
        walk->is_invalid = walk->is_invalid || is_same(other->name, name->text);
    if (value && value->kind == NODE_BOOL)
        pair->value = str_of(value->truth ? "true" : "false");
    else if (value && (value->kind == NODE_STRING || value->kind == NODE_NUMBER))
        pair->value = value->text;
    walk->found = pair;
}

/* Is a header declared where no path of properties leads? */
static bool has_header_elsewhere(const struct node *schema, uint32_t depth)
{
    for (const struct node *item = schema->first; item; item = item->next)
        if (str_is(item->key, "x-mcp-header") ||
            (depth > 0 && (item->kind == NODE_OBJECT || item->kind == NODE_ARRAY) &&
             has_header_elsewhere(item, depth - 1)))
            return true;
    return false;
}

static void walk_schema(struct header_walk *walk, const struct node *schema,
                        const struct node *args, uint32_t depth)
{
    for (const struct node *item = schema ? schema->first : NULL; item; item = item->next)
        if (!str_is(item->key, "properties") && !str_is(item->key, "x-mcp-header") &&
            (item->kind == NODE_OBJECT || item->kind == NODE_ARRAY) &&
            has_header_elsewhere(item, HEADER_DEPTH))
            walk->is_invalid = true;
    for (const struct node *property = node_first(schema, "properties"); property && depth > 0;
         property = property->next) {
        const struct node *name = node_find(property, "x-mcp-header");
        const struct node *value = args ? node_find_str(args, property->key) : NULL;

        if (name)
            note_header(walk, property, name, value);
        if (property->kind == NODE_OBJECT)
            walk_schema(walk, property, value, depth - 1);
    }
}

bool tools_headers(struct remote_talk *talk, const struct node *tool, const struct node *args,
                   struct remote_request *request)
{
    struct header_walk walk = { .talk = talk };

    walk_schema(&walk, node_find(tool, "inputSchema"), args, HEADER_DEPTH);
    if (walk.is_invalid || !request)
        return !walk.is_invalid;
    for (struct remote_pair *pair = walk.found, *next; pair; pair = next) {
        next = pair->next;
        if (!pair->value.data)
            continue;
        pair->next = request->headers;
        request->headers = pair;
    }
    return true;
}

/* ---- The list ---- */

/* Over HTTP a tool whose headers are not valid cannot be called. */
static bool is_usable(struct remote_talk *talk, const struct node *tool)
{
    return node_text(tool, "name").data &&
           (talk->link || talk->peer.era != ERA_MODERN || tools_headers(talk, tool, NULL, NULL));
}

static bool add_page(struct remote_talk *talk, struct buf *list, str *cursor, int64_t *holds_ms)
{
    struct remote_request request = { .method = "tools/list" };
    struct node *result;
    struct buf params;

    buf_init(&params, talk->scope->arena.heap, LIMIT_TEXT);
    if (cursor->data)
        json_put_str(&params, "cursor", *cursor);
    request.params = buf_take(&params, &talk->scope->arena);
    if (!cursor->data)
        request.params = STR_NONE;
    if (!talk_request(talk, &request, &result))
        return false;
    for (const struct node *tool = node_first(result, "tools"); tool; tool = tool->next)
        if (is_usable(talk, tool)) {
            if (list->size > 1)
                buf_byte(list, ',');
            buf_str(list, tool->raw);
        }
    node_to_i64(node_find(result, "ttlMs"), holds_ms);
    *cursor = node_text(result, "nextCursor");
    return true;
}

static bool fetch(struct remote_talk *talk, struct buf *list, int64_t *holds_ms)
{
    str cursor = STR_NONE;

    buf_byte(list, '[');
    for (int page = 0; page < PAGES_MAX; page++) {
        if (!add_page(talk, list, &cursor, holds_ms))
            return false;
        if (cursor.size == 0)
            break;
    }
    buf_byte(list, ']');
    if (list->failed)
        return talk_fails(talk, FAULT_INVALID, "its list of tools is over %zu bytes",
                          REMOTE_TEXT_MAX);
    return true;
}

static void keep_list(struct remote_talk *talk, const struct buf *list, int64_t holds_ms)
{
    struct env *env = talk->remote->toolbox->options.env;

    holds_ms = holds_ms < 0 ? 0 : holds_ms > HOLDS_MAX_MS ? HOLDS_MAX_MS : holds_ms;
    pthread_mutex_lock(&talk->remote->lock);
    buf_clear(&talk->server->tools);
    buf_str(&talk->server->tools, buf_view(list));
    talk->server->tools_until_ms = env->tick_ms(env) + holds_ms;
    pthread_mutex_unlock(&talk->remote->lock);
}

static str remembered(struct remote_talk *talk)
{
    struct env *env = talk->remote->toolbox->options.env;
    str list = STR_NONE;

    pthread_mutex_lock(&talk->remote->lock);
    if (env->tick_ms(env) < talk->server->tools_until_ms)
        list = buf_keep(&talk->server->tools, &talk->scope->arena);
    pthread_mutex_unlock(&talk->remote->lock);
    return list.size > 0 ? list : STR_NONE;
}

bool tools_list(struct remote_talk *talk, struct node **out)
{
    int64_t holds_ms = HOLDS_MS;
    str text = remembered(talk);
    struct buf list;

    if (!text.data) {
        buf_init(&list, talk->scope->arena.heap, REMOTE_TEXT_MAX);
        if (fetch(talk, &list, &holds_ms)) {
            keep_list(talk, &list, holds_ms);
            text = buf_keep(&list, &talk->scope->arena);
        }
        buf_fini(&list);
    }
    if (talk->fault != FAULT_NONE)
        return false;
    if (!text.data || node_read_json(talk->scope, text, out) != PAWL_OK)
        return talk_fails(talk, FAULT_INVALID, "its list of tools cannot be read");
    return true;
}

void tools_forget(struct remote_talk *talk)
{
    pthread_mutex_lock(&talk->remote->lock);
    talk->server->tools_until_ms = 0;
    pthread_mutex_unlock(&talk->remote->lock);
}

static const struct node *find(const struct node *list, str name)
{
    for (const struct node *tool = list->first; tool; tool = tool->next)
        if (str_eq(node_text(tool, "name"), name))
            return tool;
    return NULL;
}

/* A list that is remembered may lack what was added since. */
bool tools_find(struct remote_talk *talk, str name, const struct node **out)
{
    bool was_remembered = remembered(talk).data != NULL;
    struct node *list;

    if (!tools_list(talk, &list))
        return false;
    *out = find(list, name);
    if (*out || !was_remembered)
        return true;
    tools_forget(talk);
    if (!tools_list(talk, &list))
        return false;
    *out = find(list, name);
    return true;
}
