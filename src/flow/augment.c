/* augment.c - the context of a flow: what its steps put there for those that follow (C24-C27). */
#include "base/json_scan.h"
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
static void print_put(struct arena *arena, str object, str path, str value, struct buf *out)
{
    str rest, key = head_of(path, &rest), old = STR_NONE, raw, member;
    struct json_scan scan;

    json_open(out, '{');
    json_scan_begin(&scan, object);
    while (scan.is_object && json_scan_next(&scan, &raw, &member)) {
        str found = json_unescape(arena, raw);

        if (str_eq(found, key)) {
            old = member;
            continue;
        }
        json_key_str(out, found);
        json_raw(out, member);
    }
    json_key_str(out, key);
    if (rest.data)
        print_put(arena, old, rest, value, out);
    else
        json_raw(out, value);
    json_close(out, '}');
}

pawl_status context_put(struct scope *scope, str context, str path, str value, str *out)
{
    struct buf buf;
    str kept;
    bool is_over;

    buf_init(&buf, scope->arena.heap, 3 * (size_t)LIMIT_TEXT); /* the context, and the value */
    print_put(&scope->arena, context, path, value, &buf);
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

static str find_source(struct arena *arena, str result, str source)
{
    str found = str_is(source, "identity") ? result : template_walk(arena, result, source);

    return found.data ? found : STR("null");
}

/* A source that the result does not have puts null: the key is there, and says so. */
pawl_status context_augment(struct scope *scope, const struct plan_step *step, str context,
                            str result, str *out)
{
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < step->augment_count && status == PAWL_OK; i++)
        status = context_put(scope, context, step->augments[i].dest,
                             find_source(&scope->arena, result, step->augments[i].source),
                             &context);
    if (status == PAWL_OK)
        *out = context;
    return status;
}
