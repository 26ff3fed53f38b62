/* effect.c - what an entry caused, printed and read back. */
#include "model/effect.h"
#include "base/grow.h"
#include "base/node_own.h"
#include "base/trace.h"
#include <stddef.h>

/* clang-format off */
static const char *const effect_words[] = {
#define X(name, word) [EFFECT_##name] = (word),
    EFFECT_MAP(X)
#undef X
};

static const char *const status_words[] = {
#define X(name, word) [STEP_##name] = (word),
    STEP_STATUS_MAP(X)
#undef X
};
/* clang-format on */

#define TRACE_HEAD   "[[\"trace\",\"" /* how a body with a trace begins, and nothing else does */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *step_status_name(enum step_status status)
{
    return (size_t)status < COUNT(status_words) ? status_words[status] : "unknown";
}

pawl_status effect_add(struct scope *scope, struct effect_list *list, struct effect effect)
{
    TRY_MEMORY(scope, GROW(&scope->arena, list->items, list->count, list->capacity));
    list->items[list->count++] = effect;
    return PAWL_OK;
}

/* ---- The members of an effect behind its word ---- */

enum member_kind {
    MEMBER_END,
    MEMBER_U32,
    MEMBER_I64,
    MEMBER_TEXT,
    MEMBER_ANY, /* this and the next two: JSON as it is */
    MEMBER_OBJECT,
    MEMBER_ARRAY,
    MEMBER_WORD,    /* a bool: there or not */
    MEMBER_ATTEMPT, /* and status; without them: the first attempt, ready */
    MEMBER_LEASE,   /* how long it lasts, and the token's hash; without them: no lease */
};

struct effect_member {
    enum member_kind kind;
    size_t at;        /* in struct effect */
    bool is_optional; /* where its data is NULL it is left out */
    const char *word;
};

#define OF(kind, member)                                                                           \
    {                                                                                              \
        MEMBER_##kind, offsetof(struct effect, member), false, NULL                                \
    }
#define MAYBE(kind, member)                                                                        \
    {                                                                                              \
        MEMBER_##kind, offsetof(struct effect, member), true, NULL                                 \
    }
#define WORD(member, word)                                                                         \
    {                                                                                              \
        MEMBER_WORD, offsetof(struct effect, member), true, word                                   \
    }
#define MEMBERS_MAX 4

static const struct effect_member effect_members[][MEMBERS_MAX] = {
    [EFFECT_STEP] = { OF(U32, ordinal), OF(U32, plan), { .kind = MEMBER_ATTEMPT } },
    [EFFECT_READY] = { OF(U32, ordinal) },
    [EFFECT_RUN] = { OF(U32, ordinal), { .kind = MEMBER_LEASE } },
    [EFFECT_END] = { OF(U32, ordinal) },
    [EFFECT_ARM] = { OF(TEXT, name), OF(I64, due_at_ms), OF(U32, ordinal), WORD(wall, "wall") },
    [EFFECT_DISARM] = { OF(TEXT, name), OF(U32, ordinal) },
    [EFFECT_AWAIT] = { OF(TEXT, name), OF(U32, ordinal), MAYBE(ANY, state) },
    [EFFECT_LEAVE] = { OF(TEXT, name), OF(U32, ordinal) },
    [EFFECT_STATE] = { OF(OBJECT, state) },
    [EFFECT_SNAPSHOT] = { OF(TEXT, name) },
    [EFFECT_SPAWN] = { OF(U32, ordinal), OF(TEXT, name), WORD(is_abandoned, "abandon") },
    [EFFECT_TAKE] = { OF(TEXT, name) },
    [EFFECT_PLAN] = { OF(OBJECT, state), MAYBE(ARRAY, input) },
    [EFFECT_CALL] = { OF(U32, ordinal), OF(ANY, state), MAYBE(TEXT, name) },
    [EFFECT_VERSION] = { OF(U32, attempt) },
    [EFFECT_REDUCE] = { OF(TEXT, name), OF(ANY, state) },
    [EFFECT_REDRIVE] = { OF(TEXT, name) },
    [EFFECT_NOTE] = { OF(ANY, state) },
    [EFFECT_SEND] = { OF(TEXT, name), OF(OBJECT, state) },
};

static void print_member(const struct effect *effect, const struct effect_member *member,
                         struct buf *out)
{
    const void *at = (const char *)effect + member->at;
    bool is_first = effect->attempt == 1 && effect->status == STEP_READY;

    if (member->kind == MEMBER_U32)
        json_u64(out, *(const uint32_t *)at);
    else if (member->kind == MEMBER_I64)
        json_i64(out, *(const int64_t *)at);
    else if (member->kind == MEMBER_WORD && *(const bool *)at)
        json_text(out, member->word);
    else if (member->kind == MEMBER_ATTEMPT && !is_first) {
        json_u64(out, effect->attempt);
        json_text(out, step_status_name(effect->status));
    } else if (member->kind == MEMBER_LEASE && effect->lease.data) {
        json_i64(out, effect->lease_ms);
        json_str(out, effect->lease);
    } else if (member->kind >= MEMBER_TEXT && member->kind <= MEMBER_ARRAY &&
               (!member->is_optional || ((const str *)at)->data))
        (member->kind == MEMBER_TEXT ? json_str : json_raw)(out, *(const str *)at);
}

static void print_members(const struct effect *effect, struct buf *out)
{
    for (int i = 0; i < MEMBERS_MAX; i++)
        print_member(effect, &effect_members[effect->kind][i], out);
}

static void print_effect(const struct effect *effect, struct buf *out)
{
    json_open(out, '[');
    json_text(out, effect_words[effect->kind]);
    print_members(effect, out);
    json_close(out, ']');
}

str body_trace(str body)
{
    str trace, rest;

    if (body.size <= strlen(TRACE_HEAD) + TRACE_SIZE || !str_starts(body, STR(TRACE_HEAD)))
        return STR_NONE;
    trace = (str){ body.data + strlen(TRACE_HEAD), TRACE_SIZE };
    rest = str_from(body, strlen(TRACE_HEAD) + TRACE_SIZE);
    return trace_is_valid(trace) && str_starts(rest, STR("\"]")) ? trace : STR_NONE;
}

void effects_print(const struct effect_list *list, struct buf *out)
{
    json_open(out, '[');
    for (uint32_t i = 0; i < list->count; i++)
        print_effect(&list->items[i], out);
    json_close(out, ']');
}

static void print_short(const struct effect *effect, struct buf *out)
{
    if (effect->kind == EFFECT_STEP) {
        json_open(out, '[');
        print_members(effect, out);
        json_close(out, ']');
    } else if (effect->kind == EFFECT_RUN && effect->ordinal > 0 && !effect->lease.data) {
        json_i64(out, -(int64_t)effect->ordinal);
    } else if (effect->kind == EFFECT_END && effect->ordinal > 0) {
        json_u64(out, effect->ordinal);
    } else {
        print_effect(effect, out);
    }
}

void body_print(str trace, const struct effect_list *list, struct buf *out)
{
    json_open(out, '[');
    if (trace.data) {
        json_open(out, '[');
        json_text(out, "trace");
        json_str(out, trace);
        json_close(out, ']');
    }
    for (uint32_t i = 0; i < list->count; i++)
        print_short(&list->items[i], out);
    json_close(out, ']');
}

/* The reader walks the members of one effect; `ok` falls at the first that is not as expected. */
struct members {
    const struct node *next;
    bool ok;
};

static const struct node *take(struct members *members, enum node_kind kind)
{
    const struct node *node = members->next;

    if (!node || node->kind != kind) {
        members->ok = false;
        return NULL;
    }
    members->next = node->next;
    return node;
}

static str take_text(struct members *members)
{
    const struct node *node = take(members, NODE_STRING);

    return node ? node->text : STR_NONE;
}

static int64_t take_i64(struct members *members)
{
    int64_t n = 0;

    if (!node_to_i64(take(members, NODE_NUMBER), &n))
        members->ok = false;
    return n;
}

static uint32_t take_u32(struct members *members)
{
    int64_t n = take_i64(members);

    if (n < 0 || n > UINT32_MAX)
        members->ok = false;
    return (uint32_t)n;
}

static int find_word(const char *const *words, size_t count, str word)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(word, words[i]))
            return (int)i;
    return -1;
}

static str take_raw(struct members *members, enum member_kind kind)
{
    const struct node *node = members->next;

    if (!node || (kind == MEMBER_OBJECT && node->kind != NODE_OBJECT) ||
        (kind == MEMBER_ARRAY && node->kind != NODE_ARRAY)) {
        members->ok = false;
        return STR_NONE;
    }
    members->next = node->next;
    return node->raw;
}

static void take_lease(struct members *members, struct effect *effect)
{
    if (!members->next)
        return;
    effect->lease_ms = take_i64(members);
    effect->lease = take_text(members);
    if (effect->lease_ms <= 0 || effect->lease.size != LEASE_HASH_SIZE)
        members->ok = false;
}

static void take_attempt(struct members *members, struct effect *effect)
{
    int status = STEP_READY;

    effect->attempt = 1;
    if (members->next) {
        effect->attempt = take_u32(members);
        status = find_word(status_words, COUNT(status_words), take_text(members));
        members->ok = members->ok && (status == STEP_PENDING || status == STEP_READY);
    }
    effect->status = status == STEP_READY ? STEP_READY : STEP_PENDING;
}

static void take_member(struct members *members, const struct effect_member *member,
                        struct effect *effect)
{
    void *at = (char *)effect + member->at;

    if (member->is_optional && !members->next)
        return;
    switch (member->kind) {
    case MEMBER_END:
        break;
    case MEMBER_U32:
        *(uint32_t *)at = take_u32(members);
        break;
    case MEMBER_I64:
        *(int64_t *)at = take_i64(members);
        break;
    case MEMBER_TEXT:
        *(str *)at = take_text(members);
        break;
    case MEMBER_ANY:
    case MEMBER_OBJECT:
    case MEMBER_ARRAY:
        *(str *)at = take_raw(members, member->kind);
        break;
    case MEMBER_WORD:
        *(bool *)at = str_is(take_text(members), member->word);
        members->ok = members->ok && *(bool *)at;
        break;
    case MEMBER_ATTEMPT:
        take_attempt(members, effect);
        break;
    case MEMBER_LEASE:
        take_lease(members, effect);
        break;
    }
}

static void take_rest(struct members *members, struct effect *effect)
{
    for (int i = 0; i < MEMBERS_MAX; i++)
        take_member(members, &effect_members[effect->kind][i], effect);
}

/* -ORD: it is being worked on; ORD: it is spent. */
static bool read_number(const struct node *node, struct effect *out)
{
    int64_t n = 0;

    if (!node_to_i64(node, &n) || n == 0 || n < -(int64_t)UINT32_MAX || n > UINT32_MAX)
        return false;
    *out = (struct effect){ .kind = n < 0 ? EFFECT_RUN : EFFECT_END,
                            .ordinal = (uint32_t)(n < 0 ? -n : n) };
    return true;
}

static bool read_effect(const struct node *node, struct effect *out)
{
    struct members members = { node->first, node->kind == NODE_ARRAY };
    int kind = EFFECT_STEP;

    if (node->kind == NODE_NUMBER)
        return read_number(node, out);
    if (!members.next || members.next->kind != NODE_NUMBER) /* else a step's */
        kind = find_word(effect_words, COUNT(effect_words), take_text(&members));
    if (kind < 0)
        return false;
    *out = (struct effect){ .kind = (enum effect_kind)kind };
    take_rest(&members, out);
    return members.ok && !members.next;
}

static pawl_status fail_damaged(struct scope *scope, const char *what)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "the body of an entry is damaged: %s; look closer with 'pawl verify'", what);
}

pawl_status effects_read(struct scope *scope, str body, struct effect_list *out)
{
    struct effect_list list = { 0 };
    struct node *root;
    const struct node *first;
    pawl_status status;

    if (!body.data) {
        *out = list;
        return PAWL_OK;
    }
    body = arena_str(&scope->arena, body); /* the state of a code instance points into it */
    TRY_MEMORY(scope, body.data);
    status = node_read_own(scope, body, &root);
    if (status != PAWL_OK)
        return status == PAWL_NO_MEMORY ? status : fail_damaged(scope, scope->error.message);
    if (root->kind != NODE_ARRAY)
        return fail_damaged(scope, "it is not a list of effects");
    first = body_trace(body).data ? root->first->next : root->first;
    for (const struct node *node = first; node; node = node->next)
        list.capacity++;
    list.items = ARENA_ARRAY(&scope->arena, struct effect, (size_t)list.capacity + 1);
    TRY_MEMORY(scope, list.items);
    for (const struct node *node = first; node; node = node->next)
        if (!read_effect(node, &list.items[list.count++]))
            return fail_damaged(scope, "an effect is not one");
    *out = list;
    return PAWL_OK;
}

const struct effect *effects_first(const struct effect_list *list, enum effect_kind kind)
{
    for (uint32_t i = 0; list && i < list->count; i++)
        if (list->items[i].kind == kind)
            return &list->items[i];
    return NULL;
}

const char *const plan_step_words[PLAN_STEP_WORDS] = { [PLAN_CALL] = "call",
                                                       [PLAN_EXTERNAL] = "external",
                                                       [PLAN_CHILD] = "child" };

bool plan_step_read(const struct node *item, uint32_t *word, str *name)
{
    const struct node *first = node_at(item, 0), *second = node_at(item, 1);

    if (item->kind != NODE_ARRAY || item->count != 2 || first->kind != NODE_STRING ||
        second->kind != NODE_STRING)
        return false;
    for (*word = 0; *word < PLAN_STEP_WORDS && !str_is(first->text, plan_step_words[*word]);)
        ++*word;
    *name = second->text;
    return *word < PLAN_STEP_WORDS;
}
