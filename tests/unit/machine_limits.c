/* machine_limits.c - the largest machines, the smallest scopes, and too many errors. */
#include "base/limits.h"
#include "lib/fault.h"
#include "lib/test.h"
#include "machine/machine.h"
#include <stdio.h>

#define RELEASE                                                                                    \
    "name: batch-release\n"                                                                        \
    "states: [sampled, testing, released, rejected, aborted]\n"                                    \
    "initial_state: sampled\n"                                                                     \
    "terminal_states: [released, rejected, aborted]\n"                                             \
    "terminal_kinds: {released: success, rejected: failure, aborted: cancel}\n"                    \
    "transitions:\n"                                                                               \
    "  - {from_state: sampled, action: begin-testing, to_state: testing}\n"                        \
    "  - {from_state: testing, action: release, to_state: released, guard: QP-sign-off}\n"         \
    "  - {from_state: testing, action: reject, to_state: rejected, requires_reason: true}\n"       \
    "  - {from_state: sampled, action: abort, to_state: aborted}\n"

TEST(machine_limits, names_may_be_long_but_not_too_long)
{
    struct definition *definition = NULL;
    struct node *document;
    struct buf buf;

    for (size_t size = LIMIT_ACTION; size <= LIMIT_ACTION + 1; size++) {
        buf_init(&buf, &heap_libc, LIMIT_TEXT);
        buf_str(&buf, STR("{\"initial_state\":\"a\",\"transitions\":[],\"states\":[\"a\",\""));
        for (size_t i = 0; i < size; i++)
            buf_byte(&buf, 'x');
        buf_str(&buf, STR("\"]}"));
        EXPECT_OK(node_read_json(&t->scope, buf_view(&buf), &document));
        EXPECT_EQ(machine_compile(&t->scope, document, true, NULL, &definition),
                  size > LIMIT_ACTION ? PAWL_INVALID_DECLARATION : PAWL_OK);
        buf_fini(&buf);
    }
    EXPECT_HAS(t->scope.error.message, "expected at most 1024 bytes, found 1025");
}

/* `count` states s0, s1, ...; each goes to the next, and every one has `stars` in common. */
static void print_chain(struct buf *buf, unsigned count, unsigned stars)
{
    buf_clear(buf);
    buf_str(buf, STR("{\"initial_state\":\"s0\",\"states\":["));
    for (unsigned i = 0; i < count; i++)
        buf_fmt(buf, "%s\"s%u\"", i > 0 ? "," : "", i);
    buf_str(buf, STR("],\"transitions\":["));
    for (unsigned i = 0; i + 1 < count; i++)
        buf_fmt(buf, "%s{\"from_state\":\"s%u\",\"action\":\"go\",\"to_state\":\"s%u\"}",
                i > 0 ? "," : "", i, i + 1);
    for (unsigned i = 0; i < stars; i++)
        buf_fmt(buf,
                ",{\"from_state\":\"*\",\"action\":\"x%u\",\"to_state\":\"s0\",\"guard\":\"g\","
                "\"requires_reason\":true}",
                i);
    buf_str(buf, STR("]}"));
}

TEST(machine_limits, the_largest_machine_compiles_and_a_larger_one_is_refused)
{
    struct definition *definition = NULL;
    struct node *document;
    struct buf buf;

    buf_init(&buf, &heap_libc, LIMIT_SCOPE);
    print_chain(&buf, LIMIT_STATES, 15);
    EXPECT_OK(node_read_json(&t->scope, buf_view(&buf), &document));
    EXPECT_OK(machine_compile(&t->scope, document, false, NULL, &definition));
    EXPECT_EQ(definition->transition_count, LIMIT_STATES * 16 - 1);
    print_chain(&buf, LIMIT_STATES, 17);
    EXPECT_OK(node_read_json(&t->scope, buf_view(&buf), &document));
    EXPECT_EQ(machine_compile(&t->scope, document, false, NULL, &definition),
              PAWL_INVALID_DEFINITION);
    EXPECT_HAS(t->scope.error.message, "at most 65536 once '*' is expanded");
    print_chain(&buf, LIMIT_STATES + 1, 1);
    EXPECT_OK(node_read_json(&t->scope, buf_view(&buf), &document));
    EXPECT_EQ(machine_compile(&t->scope, document, true, NULL, &definition),
              PAWL_INVALID_DECLARATION);
    EXPECT_HAS(t->scope.error.message, "expected 1 to 4096 names, found 4097");
    buf_fini(&buf);
}

TEST(machine_limits, the_largest_machine_is_loaded_again_from_its_compiled_text)
{
    struct definition *definition, *loaded;
    struct node *document;
    struct buf buf;

    buf_init(&buf, &heap_libc, LIMIT_SCOPE);
    print_chain(&buf, LIMIT_STATES, 15);
    EXPECT_OK(node_read_json(&t->scope, buf_view(&buf), &document));
    EXPECT_OK(machine_compile(&t->scope, document, false, NULL, &definition));
    buf_clear(&buf);
    definition_print(definition, &buf);
    EXPECT(!buf.failed);
    EXPECT_OK(definition_load(&t->scope, buf_view(&buf), &loaded));
    EXPECT_EQ(loaded->transition_count, definition->transition_count);
    EXPECT_EQ(
        definition_transition_index(loaded, definition_find(loaded, 4000, STR("x14"))),
        definition_transition_index(definition, definition_find(definition, 4000, STR("x14"))));
    buf_fini(&buf);
}

TEST(machine_limits, a_thousand_errors_are_cut_to_a_hundred)
{
    struct findings findings = { 0 };
    struct definition *definition;
    struct node *document;
    struct buf buf;

    buf_init(&buf, &heap_libc, LIMIT_TEXT);
    buf_str(&buf, STR("{\"states\":[1"));
    for (int i = 0; i < 1000; i++)
        buf_str(&buf, STR(",1"));
    buf_str(&buf, STR("],\"initial_state\":\"a\",\"transitions\":[]}"));
    EXPECT_OK(node_read_json(&t->scope, buf_view(&buf), &document));
    EXPECT_EQ(machine_compile(&t->scope, document, true, &findings, &definition),
              PAWL_INVALID_DECLARATION);
    EXPECT_EQ(findings.count, 100);
    buf_fini(&buf);
}

static pawl_status compile_in(struct scope *scope, const char *text)
{
    struct findings findings = { 0 };
    struct definition *definition;
    struct node *document;
    pawl_status status = node_read(scope, str_of(text), &document);

    return status == PAWL_OK ? machine_compile(scope, document, false, &findings, &definition)
                             : status;
}

TEST(machine_limits, no_memory_is_a_status_wherever_it_strikes)
{
    struct fault_heap fault = { 0 };
    char text[16384] = RELEASE; /* with transitions enough to need more than one block */
    size_t size = strlen(text);

    for (unsigned i = 0; i < 40; i++)
        size +=
            (size_t)snprintf(text + size, sizeof text - size,
                             "  - {from_state: '*', action: go%u, to_state: testing, x-u: 1}\n", i);
    FAULT_EACH(fault, FAULT_ONCE)
    {
        struct scope scope;
        pawl_status status;

        scope_init(&scope, &fault.heap, LIMIT_SCOPE);
        status = compile_in(&scope, text);
        EXPECT_EQ(status, fault.has_failed ? PAWL_NO_MEMORY : PAWL_OK);
        scope_fini(&scope);
    }
}

TEST(machine_limits, a_scope_of_any_size_suffices_or_says_that_it_does_not)
{
    pawl_status status = PAWL_NO_MEMORY;

    for (size_t limit = 64; status != PAWL_OK; limit += 64) {
        struct scope scope;

        EXPECT(limit < LIMIT_TEXT);
        scope_init(&scope, &heap_libc, limit);
        status = compile_in(&scope, RELEASE "x-colour: red\n");
        EXPECT(status == PAWL_OK || status == PAWL_NO_MEMORY);
        scope_fini(&scope);
    }
}
