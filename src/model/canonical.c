/* canonical.c - one text for each value of JSON. */
#include "model/canonical.h"
#include "base/limits.h"
#include "base/sort.h"
#include "model/decimal.h"

static bool print_value(struct arena *arena, const struct node *value, struct buf *out);

static bool print_members(struct arena *arena, const struct node *object, struct buf *out)
{
    const struct node **members =
        ARENA_ARRAY(arena, const struct node *, (size_t)object->count + 1);
    uint32_t count = 0;
    bool ok = members != NULL;

    for (const struct node *member = object->first; member && ok; member = member->next)
        members[count++] = member;
    if (ok)
        sort_nodes(members, count, node_by_key, NULL);
    json_open(out, '{');
    for (uint32_t i = 0; i < count && ok; i++) {
        json_key_str(out, members[i]->key);
        ok = print_value(arena, members[i], out);
    }
    json_close(out, '}');
    return ok;
}

/* False: no memory. Not deeper than NODE_DEPTH_MAX. */
static bool print_value(struct arena *arena, const struct node *value, struct buf *out)
{
    switch (value->kind) {
    case NODE_NULL:
        json_null(out);
        return true;
    case NODE_BOOL:
        json_bool(out, value->truth);
        return true;
    case NODE_NUMBER:
        json_raw(out, STR(""));
        decimal_print(value->text, out);
        return true;
    case NODE_STRING:
        json_str(out, value->text);
        return true;
    case NODE_ARRAY:
        json_open(out, '[');
        for (const struct node *item = value->first; item; item = item->next)
            if (!print_value(arena, item, out))
                return false;
        json_close(out, ']');
        return true;
    case NODE_OBJECT:
        break;
    }
    return print_members(arena, value, out);
}

pawl_status canonical_print(struct scope *scope, const struct node *value, str *out)
{
    struct buf buf;
    bool ok;

    buf_init(&buf, scope->arena.heap, LIMIT_SCOPE);
    ok = print_value(&scope->arena, value, &buf);
    *out = ok ? buf_keep(&buf, &scope->arena) : STR_NONE;
    buf_fini(&buf);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}
