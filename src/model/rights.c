/* rights.c - lists of scopes and what they allow; the engine's own names. */
#include "model/rights.h"
#include "base/node.h"
#include "base/sort.h"
#include "model/definition.h"
#include "model/record.h"
#include <stdlib.h>
#include <string.h>

bool actor_is_reserved(str actor)
{
    return str_starts(actor, STR(ACTOR_RESERVED));
}

bool scope_next(str *list, str *word, str *definition)
{
    str one;

    if (!str_take(list, ',', &one))
        return false;
    *word = str_before(one, ':');
    *definition = str_after(one, ':');
    return true;
}

/* ---- Rights ---- */

/* Sorts the names, drops repeated ones, and joins them with commas, in at most `size` bytes. */
static bool join(struct arena *arena, str *names, size_t count, size_t size, str *out)
{
    char *text = arena_alloc(arena, size + 1);
    size_t used = 0;

    if (!text)
        return false;
    if (count > 1)
        qsort(names, count, sizeof *names, compare_strs);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && str_eq(names[i], names[i - 1]))
            continue;
        if (used > 0)
            text[used++] = ',';
        memcpy(text + used, names[i].data, names[i].size);
        used += names[i].size;
    }
    text[used] = '\0';
    *out = (str){ text, used };
    return true;
}

bool rights_of(struct arena *arena, str scopes, bool defines, str *out)
{
    size_t count = 0, size = scopes.size;
    str *names = ARENA_ARRAY(arena, str, size / 2 + 1);
    str word, definition;

    *out = STR_NONE;
    if (!names)
        return false;
    while (scope_next(&scopes, &word, &definition)) {
        if (!str_is(word, "write") && !str_is(word, "all") &&
            !(defines && str_is(word, "define")))
            continue;
        if (definition.size == 0)
            return true;
        names[count++] = definition;
    }
    return join(arena, names, count, size, out);
}

bool rights_allow(str rights, str definition)
{
    str one;

    if (!rights.data)
        return true;
    while (str_take(&rights, ',', &one))
        if (str_eq(one, definition))
            return true;
    return false;
}

bool rights_meet(struct arena *arena, str a, str b, str *out)
{
    size_t count = 0, size = a.size;
    str *names, one;

    *out = a.data ? a : b;
    if (!a.data || !b.data)
        return true;
    names = ARENA_ARRAY(arena, str, size / 2 + 1);
    while (names && str_take(&a, ',', &one))
        if (rights_allow(b, one))
            names[count++] = one;
    return names && join(arena, names, count, size, out);
}

bool rights_within(str inner, str outer)
{
    bool within = !outer.data || inner.data;
    str one;

    while (within && outer.data && str_take(&inner, ',', &one))
        within = rights_allow(outer, one);
    return within;
}

bool rights_are_valid(str rights)
{
    str one, before = STR_NONE;
    bool valid = rights.data && (rights.size == 0 || rights.data[rights.size - 1] != ',');

    while (valid && str_take(&rights, ',', &one)) {
        valid = definition_name_is_valid(one) && (!before.data || str_compare(before, one) < 0);
        before = one;
    }
    return valid;
}

/* ---- Recorded ---- */

void rights_member(struct buf *out, str rights)
{
    json_opt_str(out, "rights", rights);
}

void define_body(struct buf *out, const struct definition_row *row, str rights)
{
    char source[2 * SHA_SIZE + 1], compiled[2 * SHA_SIZE + 1];

    sha_hex(row->source_sha, SHA_SIZE, source);
    sha_hex(row->compiled_sha, SHA_SIZE, compiled);
    json_open(out, '{');
    json_put_str(out, "name", row->name);
    json_put_u64(out, "version", row->version);
    json_put_text(out, "kind", definition_kind_name((enum definition_kind)row->kind));
    json_put_text(out, "source", source);
    json_put_text(out, "compiled", compiled);
    rights_member(out, rights);
    json_close(out, '}');
}

bool starter_is_empty(const struct starter *starter)
{
    return !starter->rights.data && !starter->on_end.data;
}

void starter_print(struct buf *out, const struct starter *starter)
{
    json_open(out, '{');
    rights_member(out, starter->rights);
    json_opt_raw(out, "on_end", starter->on_end);
    json_close(out, '}');
}

/* {"instance":ID,"completed":ACTION,...}: in this order, at least one action. */
static bool on_end_is_valid(const struct node *on_end)
{
    static const char *const keys[] = { "instance", "completed", "failed", "cancelled" };
    const struct node *node = on_end->kind == NODE_OBJECT ? on_end->first : NULL;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (node && str_is(node->key, keys[i]) && node->kind == NODE_STRING && node->text.size > 0)
            node = node->next;
    return !node && on_end->kind == NODE_OBJECT && on_end->count > 1 &&
           str_is(on_end->first->key, keys[0]);
}

bool starter_read(const struct node *body, struct starter *out)
{
    *out = (struct starter){ .rights = STR_NONE, .on_end = STR_NONE };
    if (body->kind != NODE_OBJECT || body->count == 0)
        return false;
    for (const struct node *node = body->first; node; node = node->next) {
        if (str_is(node->key, "rights") && node->kind == NODE_STRING && node == body->first &&
            rights_are_valid(node->text))
            out->rights = node->text;
        else if (str_is(node->key, "on_end") && !node->next && on_end_is_valid(node))
            out->on_end = node->raw;
        else
            return false;
    }
    return true;
}

void rights_id(struct buf *out, str name, uint32_t version)
{
    buf_fmt(out, "%.*s@%u", STR_ARG(name), version);
}

void rights_scopes(struct buf *out, str rights)
{
    size_t begin = out->size;
    str one;

    while (str_take(&rights, ',', &one))
        buf_fmt(out, "%swrite:%.*s", out->size > begin ? "," : "", STR_ARG(one));
}
