/* augment.c - the context of a flow: what its steps put there for those that follow (C24-C27). */
#include "base/node.h"
#include "base/planted.h"
#include "flow/flow_int.h"

/* Dotted paths: a.b.c. An empty rest means that the path ends here. */
static str head_of(str path, str *rest)
{
    const char *dot = memchr(path.data, '.', path.size);
    size_t size = dot ? (size_t)(dot - path.data) : path.size;

    *rest = dot ? str_from(path, size + 1) : STR_NONE;
    return (str){ path.data, size };
}

/* `object` with `value` at `path`; whatever stood in the way is replaced. Its depth is that of
 * the path, which the compiler bounds. */
static void print_put(const struct node *object, str path, str value, struct buf *out)
{
    bool is_object = object && object->kind == NODE_OBJECT;
    str rest, key = head_of(path, &rest);
    const struct node *old = is_object ? node_find_str(object, key) : NULL;

    json_open(out, '{');
    for (const struct node *child = is_object ? object->first : NULL; child; child = child->next)
        if (child != old) {
            json_key_str(out, child->key);
            json_raw(out, child->raw);
        }
    json_key_str(out, key);
    if (rest.data)
        print_put(old, rest, value, out);
    else
        json_raw(out, value);
    json_close(out, '}');
}

static pawl_status put(struct scope *scope, const struct node *object, str path, str value,
                       str *out)
{
    struct buf buf;
    str kept;
    bool is_over;

    buf_init(&buf, scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    print_put(object, path, value, &buf);
    is_over = buf.size > LIMIT_TEXT;
    kept = is_over ? STR_NONE : buf_keep(&buf, &scope->arena);
    buf_fini(&buf);
    if (is_over)
        return scope_fail(scope, PAWL_TOO_LARGE, "the context is over %u bytes with '%.*s'",
                          LIMIT_TEXT, STR_ARG(path));
    if (!kept.data)
        return scope_no_memory(scope);
    *out = kept;
    return PAWL_OK;
}

pawl_status context_put(struct scope *scope, str context, str dest, str value, str *out)
{
    struct node *object = NULL;
    pawl_status status = node_read_own(scope, context, &object);

    return status == PAWL_OK ? put(scope, object, dest, value, out) : status;
}

/* A failure must be recorded whatever it says: it is told in its entry in any case. */
pawl_status context_note_error(struct scope *scope, str context, str error, str *out)
{
    pawl_status status = context_put(scope, context, CONTEXT_LAST_ERROR, error, out);

    if (status != PAWL_TOO_LARGE && !PLANTED(ERROR_FORGOTTEN))
        return status;
    scope->error = (pawl_error){ .status = PAWL_OK };
    *out = context;
    return PAWL_OK;
}

static const struct node *find_source(const struct node *result, str source)
{
    return str_is(source, "identity") ? result : template_walk(result, source);
}

/* A source that the result does not have puts null: the key is there, and says so. */
pawl_status context_augment(struct scope *scope, const struct plan_step *step, str context,
                            str result, str *out)
{
    struct node *root = NULL;
    pawl_status status = step->augment_count > 0 ? node_read_own(scope, result, &root) : PAWL_OK;

    for (uint32_t i = 0; i < step->augment_count && status == PAWL_OK; i++) {
        const struct node *found = find_source(root, step->augments[i].source);

        status = context_put(scope, context, step->augments[i].dest,
                             found ? found->raw : STR("null"), &context);
    }
    if (status == PAWL_OK)
        *out = context;
    return status;
}
