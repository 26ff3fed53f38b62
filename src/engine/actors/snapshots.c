/* snapshots.c - the memory of a flow or code instance, kept now and then, so that its whole
 * history need not be folded. */
#include "engine/parts.h"

/* The entry after which it is kept says so, with its hash: a snapshot that was changed is known
 * by that and thrown away (actors.c), and the chain covers it. */
static bool tell_snapshot(struct scope *scope, const struct decision *decision, str text)
{
    struct draft *last = &decision->drafts[decision->count - 1];
    char hex[2 * SHA_SIZE + 1];
    uint8_t hash[SHA_SIZE];
    struct sha *sha = sha_new(scope->arena.heap);
    str kept;

    if (!sha)
        return false;
    sha_once(sha, text, hash);
    sha_free(sha);
    sha_hex(hash, SHA_SIZE, hex);
    kept = arena_str(&scope->arena, str_of(hex));
    return kept.data &&
           effect_add(scope, &last->effects,
                      (struct effect){ .kind = EFFECT_SNAPSHOT, .name = kept }) == PAWL_OK;
}

str snapshot_if_due(struct engine *engine, struct actor *actor, struct scope *scope,
                    const struct decision *decision)
{
    struct buf buf;
    str text;

    if (decision->drafts[decision->count - 1].keep.data || /* no entry, which could tell of it */
        actor->bytes_since_snapshot < SNAPSHOT_BYTES ||
        actor->bytes_since_snapshot < actor->snapshot_size ||
        actor->definition->states[actor->state].terminal != TERMINAL_NOT)
        return STR_NONE;
    buf_init(&buf, engine->heap, LIMIT_SCOPE);
    behavior_of(actor->definition->kind)->memory_print(actor->definition, actor->memory, &buf);
    text = buf_take(&buf, &scope->arena);
    return text.data && tell_snapshot(scope, decision, text) ? text : STR_NONE;
}
