/* erased_body.c - a record's body without what could be private. */
#include "model/erased_body.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/node.h"
#include "model/effect.h"
#include "model/interest.h"

static const char name_tag[] = "pawl.erased.1";

void redaction_name(struct sha *sha, const uint8_t hash[SHA_SIZE], const uint8_t now[SHA_SIZE],
                    uint8_t out[SHA_SIZE])
{
    sha_begin(sha);
    sha_add(sha, name_tag, sizeof name_tag - 1);
    sha_add(sha, hash, SHA_SIZE);
    sha_add(sha, now, SHA_SIZE);
    sha_end(sha, out);
}

/* `~SIGNAL=VALUE` without its value. */
static bool strip_value(str *name)
{
    str signal = interest_is(*name) ? str_before(*name, '=') : *name;
    bool has_value = signal.data && signal.size < name->size;

    if (has_value)
        *name = signal;
    return has_value;
}

static bool replace(str *text, str by)
{
    bool is_other = !text->data != !by.data || !str_eq(*text, by);

    *text = by;
    return is_other;
}

/* True: it had something private. A snapshot's hash covers a whole memory, and has no salt. */
static bool redact_effect(struct effect *effect, bool *is_dropped)
{
    bool is_private = false;

    *is_dropped = effect->kind == EFFECT_SNAPSHOT;
    switch (effect->kind) {
    case EFFECT_STATE:
    case EFFECT_SEND:
        return replace(&effect->state, STR("{}"));
    case EFFECT_NOTE:
    case EFFECT_REDUCE:
        return replace(&effect->state, STR("null"));
    case EFFECT_CALL:
        is_private = replace(&effect->state, STR("null"));
        return replace(&effect->name, STR_NONE) || is_private;
    case EFFECT_AWAIT:
        is_private = strip_value(&effect->name);
        return replace(&effect->state, STR_NONE) || is_private;
    case EFFECT_LEAVE:
    case EFFECT_TAKE:
        return strip_value(&effect->name);
    case EFFECT_SNAPSHOT:
        return true;
    case EFFECT_STEP: /* these say which, when and how, and what the definition says */
    case EFFECT_READY:
    case EFFECT_RUN:
    case EFFECT_END:
    case EFFECT_ARM:
    case EFFECT_DISARM:
    case EFFECT_SPAWN:
    case EFFECT_PLAN:
    case EFFECT_VERSION:
    case EFFECT_REDRIVE:
        return false;
    }
    return false;
}

static pawl_status redact_effects(struct scope *scope, str body, bool *is_private, str *out)
{
    struct effect_list effects = { 0 };
    uint32_t kept = 0;
    bool is_dropped;
    struct buf buf;

    TRY(effects_read(scope, body, &effects));
    for (uint32_t i = 0; i < effects.count; i++) {
        *is_private |= redact_effect(&effects.items[i], &is_dropped);
        if (!is_dropped)
            effects.items[kept++] = effects.items[i];
    }
    effects.count = kept;
    if (!*is_private)
        return PAWL_OK;
    buf_init(&buf, scope->arena.heap, LIMIT_SCOPE);
    body_print(body_trace(body), &effects, &buf);
    *out = buf_take(&buf, &scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}

static pawl_status redact_kept_signal(struct scope *scope, str body, bool *is_private, str *out)
{
    struct node *read = NULL;
    str name;

    TRY(node_read_json(scope, body, &read));
    name = node_text(read, "name");
    *is_private = name.data && strip_value(&name);
    if (*is_private)
        *out = json_object_of(&scope->arena, "name", name);
    return *is_private && !out->data ? scope_no_memory(scope) : PAWL_OK;
}

pawl_status redact_body(struct scope *scope, const struct record *record, bool *is_private,
                        str *out)
{
    *is_private = false;
    *out = record->body;
    if (!record->body.data || (record->flags & RECORD_ERASED))
        return PAWL_OK;
    if (record->what >= 0)
        return redact_effects(scope, record->body, is_private, out);
    if (record->what == CONTROL_KEEP_SIGNAL)
        return redact_kept_signal(scope, record->body, is_private, out);
    return PAWL_OK;
}
