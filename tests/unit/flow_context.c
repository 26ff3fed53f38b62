/* flow_context.c - the context, kept member by member: the same text as if each put wrote all of it
 * again, at the cost of what is put. */
#include "base/limits.h"
#include "flow/flow_int.h"
#include "flow_rig.h"
#include <stdio.h>

/* ---- As if each put wrote the whole text ----------------------------------------------------- */

static void write_put(const struct node *object, str path, str value, struct buf *out)
{
    bool is_object = object && object->kind == NODE_OBJECT;
    const char *dot = memchr(path.data, '.', path.size);
    str key = { path.data, dot ? (size_t)(dot - path.data) : path.size };
    const struct node *old = is_object ? node_find_str(object, key) : NULL;

    json_open(out, '{');
    for (const struct node *child = is_object ? object->first : NULL; child; child = child->next)
        if (child != old) {
            json_key_str(out, child->key);
            json_raw(out, child->raw);
        }
    json_key_str(out, key);
    if (dot)
        write_put(old, str_from(path, key.size + 1), value, out);
    else
        json_raw(out, value);
    json_close(out, '}');
}

static str text_with(struct scope *scope, str text, str path, str value)
{
    struct node *object = NULL;
    struct buf buf;

    EXPECT_OK(node_read_own(scope, text, &object));
    buf_init(&buf, &heap_libc, 0);
    write_put(object, path, value, &buf);
    return buf_take(&buf, &scope->arena);
}

static str print(struct scope *scope, const struct flow_context *context)
{
    str text = STR_NONE;

    EXPECT_OK(context_text(context, scope, &text));
    return text;
}

static void expect_text(struct scope *scope, const struct flow_context *context, str expected)
{
    EXPECT_STR(print(scope, context), expected.data);
    EXPECT_EQ(context_size(context), expected.size);
}

static void expect_found(struct scope *scope, const struct flow_context *context, str text)
{
    static const char *const paths[] = { "a",   "a.b",   "a.b.c", "b",    "b.0",  "c.a.b", "d",
                                         "d.e", "d.e.f", "q\"",   "q\".x", "\xC3\xA9", "", ".",
                                         "a.",  "none",  "b.1.z", "d.e.f.g" };

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        str wanted = template_walk(&scope->arena, text, str_of(paths[i]));
        str found = context_find(context, &scope->arena, str_of(paths[i]));

        EXPECT_EQ(found.data != NULL, wanted.data != NULL);
        EXPECT(str_eq(found, wanted));
    }
    EXPECT(str_eq(context_find(context, &scope->arena, STR_NONE), text));
}

/* Each member, and its place: an expression is charged for those before it. */
static void expect_members(struct scope *scope, const struct flow_context *context, str text)
{
    struct node *object = NULL;
    uint32_t before, count = 0;

    EXPECT_OK(node_read_own(scope, text, &object));
    for (const struct node *child = object->first; child; child = child->next, count++) {
        EXPECT(str_eq(context_member(context, &scope->arena, child->key, &before), child->raw));
        EXPECT_EQ(before, count);
    }
    EXPECT(!context_member(context, &scope->arena, STR("none"), &before).data);
    EXPECT_EQ(before, count);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static const char *const some_paths[] = { "a",     "a.b",   "a.b.c", "b",        "b.x",
                                          "c.a.b", "c.a.d", "q\"",   "q\".x\n.y", "\xC3\xA9.z",
                                          "d.e.f", "d",     "d.e" };
static const char *const some_values[] = {
    "1",         "\"text\"",   "{}",  "{ \"b\" : {\"c\":[1, 2]}, \"x\":2}", "[1,{\"z\":0}]",
    "null",      "{\"e\":{\"f\":{\"g\":7}}}", "\"a longer text than most of the others here\"",
    "{\"q\\u0022\":1,\"d.e\":{\"f\":2}}",
};

static uint32_t roll(uint32_t *state, uint32_t sides)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % sides;
}

static str some(uint32_t *state, const char *const *texts, size_t size)
{
    return str_of(texts[roll(state, (uint32_t)(size / sizeof texts[0]))]);
}

/* One decision: some puts over the memory's context, which stays what it is. */
static void decide(struct scope *scope, const struct flow_context *kept, str text, uint32_t *state)
{
    struct flow_context *over = context_over(kept, &scope->arena), *top = over;
    str before = text;

    for (uint32_t count = roll(state, 5), i = 0; i < count; i++) {
        str path = some(state, some_paths, sizeof some_paths);
        str value = some(state, some_values, sizeof some_values);

        if (roll(state, 4) == 0) /* as a template does, over what the decision has made */
            top = context_over(top, &scope->arena);
        text = text_with(scope, text, path, value);
        EXPECT(context_put(top, path, value, &scope->arena));
        expect_text(scope, top, text);
        expect_found(scope, top, text);
        expect_members(scope, top, text);
        expect_text(scope, kept, before);
        if (top != over) {
            EXPECT(context_put(over, path, value, &scope->arena));
            top = over;
        }
    }
}

TEST(flow_context, its_text_is_as_if_each_put_had_written_all_of_it_again)
{
    struct scope scope;
    struct arena arena;
    uint32_t state = 7;

    scope_init(&scope, &heap_libc, 0);
    arena_init(&arena, &heap_libc, 0);
    for (int round = 0; round < 24; round++) {
        struct flow_context *kept = context_new(&arena);
        char text[4096] = "{}";

        if (round % 3 == 1) {
            snprintf(text, sizeof text, "{ \"a\": {\"b\" : 1, \"\\u00e9\":2}, "
                                        "\"q\\u0022\":{}, \"d.e\":{\"f\":3}}");
            EXPECT(context_load(kept, str_of(text), &arena));
            expect_text(&scope, kept, (str){ text, strlen(text) });
        }
        for (int i = 0; i < 40; i++) {
            str path = some(&state, some_paths, sizeof some_paths);
            str value = some(&state, some_values, sizeof some_values);
            str after;

            scope_clear(&scope);
            decide(&scope, kept, str_of(text), &state);
            after = text_with(&scope, str_of(text), path, value);
            EXPECT(context_put(kept, path, value, &arena));
            expect_text(&scope, kept, after);
            expect_found(&scope, kept, after);
            expect_members(&scope, kept, after);
            EXPECT(after.size < sizeof text);
            snprintf(text, sizeof text, "%.*s", STR_ARG(after));
        }
    }
    arena_fini(&arena);
    scope_fini(&scope);
}

TEST(flow_context, a_flow_that_puts_the_same_keys_for_ever_stays_bounded)
{
    struct flow_context *context;
    struct arena arena;
    uint32_t state = 1;
    size_t used = 0;

    arena_init(&arena, &heap_libc, 0);
    context = context_new(&arena);
    for (int i = 0; i < 40000; i++) {
        EXPECT(context_put(context, some(&state, some_paths, sizeof some_paths),
                           some(&state, some_values, sizeof some_values - sizeof some_values[0]),
                           &arena));
        if (i == 4000)
            used = arena.used;
    }
    EXPECT(arena.used <= used + 4096);
    arena_fini(&arena);
}

/* ---- The limit ------------------------------------------------------------------------------- */

/* A JSON string that makes {"KEY":...} exactly `size` bytes, together with `more`. */
static const char *filler(struct test *t, size_t size, const char *key)
{
    size_t count = size - strlen("{\"\":}") - strlen(key);
    char *text = arena_alloc(&t->scope.arena, count + 1);

    memset(text, 'x', count);
    text[0] = text[count - 1] = '"';
    return text;
}

#define FILL "do:\n  - {name: s1, tool: a, args: {}, augment: {k: identity}}\n"

TEST(flow_context, a_context_of_exactly_its_limit_is_fine_and_one_byte_more_fails_the_step)
{
    static const size_t room = sizeof ",\"out\":{\"n\":12}" - 1;
    struct rig rig;

    for (size_t over = 0; over <= 1; over++) {
        rig_init(&rig, &t->scope,
                 FILL "  - {name: s2, tool: a, args: {}, augment: {out.n: identity}}\n", NULL);
        rig_begin(&rig);
        rig_run(&rig, 1, filler(t, LIMIT_TEXT - room + over, "k"));
        EXPECT_EQ(context_size(((struct flow_memory *)rig.memory)->context),
                  LIMIT_TEXT - room + over);
        rig_run(&rig, 2, "12");
        EXPECT_EQ(rig.state, over ? LIFE_FAILED : LIFE_COMPLETED);
        if (over)
            EXPECT_STORY(&rig, "step.fail s2.2#1 \"the context is over 1048576 bytes with 'out.n'\" "
                               "[[\"end\",2]]\nfail \"the context is over 1048576 bytes with "
                               "'out.n'\"\n");
        else
            EXPECT_EQ(rig.last_payload.size, LIMIT_TEXT);
        rig_fini(&rig);
    }
}

TEST(flow_context, an_error_is_noted_if_it_just_fits_and_left_out_if_it_does_not)
{
    static const size_t room = sizeof ",\"exec/last-error\":\"no\"" - 1;
    struct rig rig;

    for (size_t over = 0; over <= 1; over++) {
        str text;

        rig_init(&rig, &t->scope,
                 "try: [{tool: a, args: {}, augment: {k: identity}}, {tool: F, args: {}}]\n"
                 "rescue: [{tool: r, args: {}}]\n",
                 NULL);
        rig_begin(&rig);
        rig_run(&rig, 1, filler(t, LIMIT_TEXT - room + over, "k"));
        EXPECT_OK(rig_step(&rig, EVENT_STEP_START, 2, NULL));
        EXPECT_OK(rig_step(&rig, EVENT_STEP_FAILED, 2, "\"no\""));
        text = print(&t->scope, ((struct flow_memory *)rig.memory)->context);
        EXPECT_EQ(text.size, over ? LIMIT_TEXT - room + 1 : LIMIT_TEXT);
        EXPECT_EQ(strstr(text.data, "exec/last-error") != NULL, over == 0);
        rig_run(&rig, 3, "1");
        EXPECT_STR(rig.last_payload, text.data);
        rig_fini(&rig);
    }
}

/* {"a0":0,"a1":0,...} of nearly a megabyte. */
static const char *dense(struct test *t)
{
    struct buf text;

    buf_init(&text, &heap_libc, 0);
    buf_byte(&text, '{');
    for (uint32_t i = 0; text.size < LIMIT_TEXT - 64; i++)
        buf_fmt(&text, "%s\"%x\":0", i ? "," : "", i);
    buf_byte(&text, '}');
    return buf_take(&text, &t->scope.arena).data;
}

TEST(flow_context, a_put_into_a_member_of_many_small_ones_takes_half_of_a_decision_at_most)
{
    struct arena kept, decision;
    struct flow_context *context, *over;

    arena_init(&kept, &heap_libc, LIMIT_SCOPE / 2);
    arena_init(&decision, &heap_libc, LIMIT_SCOPE / 2);
    context = context_new(&kept);
    EXPECT(context_put(context, STR("k"), str_of(dense(t)), &kept));
    over = context_over(context, &decision);
    EXPECT(context_put(over, STR("k.one"), STR("1"), &decision));
    EXPECT(context_put(context, STR("k.one"), STR("1"), &kept));
    EXPECT_STR(context_find(over, &decision, STR("k.ff")), "0");
    EXPECT_EQ(context_size(over), context_size(context));
    EXPECT_STR(print(&t->scope, over), print(&t->scope, context).data);
    arena_fini(&decision);
    arena_fini(&kept);
}
