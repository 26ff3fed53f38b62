/* effect.c - what an entry caused, printed and read back. */
#include "model/effect.h"
#include "base/grow.h"
#include "base/node_own.h"
#include "base/trace.h"

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

#define WORD_WALL "wall"
#define WORD_ABANDON "abandon"
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

static void print_step(const struct effect *effect, struct buf *out)
{
    json_u64(out, effect->ordinal);
    json_u64(out, effect->plan);
    if (effect->attempt == 1 && effect->status == STEP_READY)
        return;
    json_u64(out, effect->attempt);
    json_text(out, step_status_name(effect->status));
}

static void print_effect(const struct effect *effect, struct buf *out)
{
    json_open(out, '[');
    json_text(out, effect_words[effect->kind]);
    switch (effect->kind) {
    case EFFECT_STEP:
        print_step(effect, out);
        break;
    case EFFECT_RUN:
        json_u64(out, effect->ordinal);
        if (effect->lease.data) {
            json_i64(out, effect->lease_ms);
            json_str(out, effect->lease);
        }
        break;
    case EFFECT_READY:
    case EFFECT_END:
        json_u64(out, effect->ordinal);
        break;
    case EFFECT_ARM:
        json_str(out, effect->name);
        json_i64(out, effect->due_at_ms);
        json_u64(out, effect->ordinal);
        if (effect->wall)
            json_text(out, WORD_WALL);
        break;
    case EFFECT_DISARM:
    case EFFECT_AWAIT:
    case EFFECT_LEAVE:
        json_str(out, effect->name);
        json_u64(out, effect->ordinal);
        if (effect->kind == EFFECT_AWAIT && effect->state.data)
            json_raw(out, effect->state);
        break;
    case EFFECT_SPAWN:
        json_u64(out, effect->ordinal);
        json_str(out, effect->name);
        if (effect->is_abandoned)
            json_text(out, WORD_ABANDON);
        break;
    case EFFECT_STATE:
    case EFFECT_PLAN:
        json_raw(out, effect->state);
        if (effect->input.data)
            json_raw(out, effect->input);
        break;
    case EFFECT_CALL:
        json_u64(out, effect->ordinal);
        json_raw(out, effect->state);
        if (effect->name.data)
            json_str(out, effect->name);
        break;
    case EFFECT_VERSION:
        json_u64(out, effect->attempt);
        break;
    case EFFECT_REDUCE:
        json_str(out, effect->name);
        json_raw(out, effect->state);
        break;
    case EFFECT_SNAPSHOT:
    case EFFECT_TAKE:
    case EFFECT_REDRIVE:
        json_str(out, effect->name);
        break;
    }
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
        print_step(effect, out);
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

static enum step_status take_status(struct members *members)
{
    int status = find_word(status_words, COUNT(status_words), take_text(members));

    if (status != STEP_PENDING && status != STEP_READY) {
        members->ok = false;
        return STEP_PENDING;
    }
    return (enum step_status)status;
}

static str take_any(struct members *members)
{
    const struct node *node = members->next;

    if (!node) {
        members->ok = false;
        return STR_NONE;
    }
    members->next = node->next;
    return node->raw;
}

static str take_list(struct members *members)
{
    const struct node *list = take(members, NODE_ARRAY);

    return list ? list->raw : STR_NONE;
}

static void take_lease(struct members *members, struct effect *effect)
{
    effect->lease_ms = take_i64(members);
    effect->lease = take_text(members);
    if (effect->lease_ms <= 0 || effect->lease.size != LEASE_HASH_SIZE)
        members->ok = false;
}

static void take_attempt(struct members *members, struct effect *effect)
{
    effect->ordinal = take_u32(members);
    effect->plan = take_u32(members);
    effect->attempt = 1;
    effect->status = STEP_READY;
    if (members->next) {
        effect->attempt = take_u32(members);
        effect->status = take_status(members);
    }
}

static void take_rest(struct members *members, struct effect *effect)
{
    switch (effect->kind) {
    case EFFECT_STEP:
        take_attempt(members, effect);
        break;
    case EFFECT_RUN:
        effect->ordinal = take_u32(members);
        if (members->next)
            take_lease(members, effect);
        break;
    case EFFECT_READY:
    case EFFECT_END:
        effect->ordinal = take_u32(members);
        break;
    case EFFECT_ARM:
        effect->name = take_text(members);
        effect->due_at_ms = take_i64(members);
        effect->ordinal = take_u32(members);
        effect->wall = members->next != NULL;
        if (members->next && !str_is(take_text(members), WORD_WALL))
            members->ok = false;
        break;
    case EFFECT_DISARM:
    case EFFECT_AWAIT:
    case EFFECT_LEAVE:
        effect->name = take_text(members);
        effect->ordinal = take_u32(members);
        if (effect->kind == EFFECT_AWAIT && members->next) {
            effect->state = members->next->raw;
            members->next = members->next->next;
        }
        break;
    case EFFECT_SPAWN:
        effect->ordinal = take_u32(members);
        effect->name = take_text(members);
        effect->is_abandoned = members->next != NULL;
        if (members->next && !str_is(take_text(members), WORD_ABANDON))
            members->ok = false;
        break;
    case EFFECT_STATE:
    case EFFECT_PLAN: {
        const struct node *state = take(members, NODE_OBJECT);

        effect->state = state ? state->raw : STR_NONE;
        if (effect->kind == EFFECT_PLAN && members->next)
            effect->input = take_list(members);
        break;
    }
    case EFFECT_CALL:
        effect->ordinal = take_u32(members);
        effect->state = take_any(members);
        if (members->next)
            effect->name = take_text(members);
        break;
    case EFFECT_VERSION:
        effect->attempt = take_u32(members);
        break;
    case EFFECT_REDUCE:
        effect->name = take_text(members);
        effect->state = take_any(members);
        break;
    case EFFECT_SNAPSHOT:
    case EFFECT_TAKE:
    case EFFECT_REDRIVE:
        effect->name = take_text(members);
        break;
    }
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

/* Room for as many as there are: a list that grows leaves its smaller selves in the arena. */
static pawl_status make_room(struct scope *scope, const struct node *first,
                             struct effect_list *list)
{
    for (const struct node *node = first; node; node = node->next)
        list->capacity++;
    if (list->capacity > 0)
        list->items = ARENA_ARRAY(&scope->arena, struct effect, list->capacity);
    return list->items || list->capacity == 0 ? PAWL_OK : scope_no_memory(scope);
}

pawl_status effects_read(struct scope *scope, str body, struct effect_list *out)
{
    struct effect_list list = { 0 };
    struct effect effect;
    struct node *root;
    const struct node *node;
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
    node = body_trace(body).data ? root->first->next : root->first;
    status = make_room(scope, node, &list);
    for (; node && status == PAWL_OK; node = node->next) {
        if (!read_effect(node, &effect))
            return fail_damaged(scope, "an effect is not one");
        status = effect_add(scope, &list, effect);
    }
    if (status != PAWL_OK)
        return status;
    *out = list;
    return PAWL_OK;
}

const struct effect *effects_plan(const struct effect_list *list)
{
    for (uint32_t i = 0; list && i < list->count; i++)
        if (list->items[i].kind == EFFECT_PLAN)
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
