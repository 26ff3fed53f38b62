/* fuzz_expr.c - any text as a condition and as a value: it compiles or not, and ends by itself, always
 * alike; a value is JSON. */
#include "base/node.h"
#include "expr/expr.h"
#include "fuzz.h"

static const char values[] =
    "{\"n\":5,\"s\":\"some text\",\"list\":[1,null,[2.5],{\"a\":true}],\"o\":{}}";

static const struct node *find_global(void *context, str name, pawl_status *status)
{
    (void)status;
    return str_is(name, "result") || str_is(name, "input") ? context : NULL;
}

static bool find_step(void *context, str name, const struct node **out, pawl_status *status)
{
    (void)status;
    *out = context;
    return str_is(name, "a");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const str text = { (const char *)data, size };
    struct node *node = NULL;
    struct expr_world world = { find_global, find_step, NULL };
    struct scope scope;
    pawl_status compiled, first, second;
    bool once = false, twice = false;
    size_t at = 0, last = 0;
    str name, value = STR_NONE, again = STR_NONE;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    REQUIRE(node_read_json(&scope, str_of(values), &node) == PAWL_OK);
    world.context = node;
    compiled = expr_check(&scope, EXPR_CONDITION, text);
    REQUIRE(compiled == PAWL_OK || (compiled == PAWL_INVALID_DEFINITION && scope.error.message[0]));
    first = expr_holds(&scope, text, &world, &once);
    second = expr_holds(&scope, text, &world, &twice);
    REQUIRE(first == second && once == twice);
    REQUIRE(first == PAWL_OK || (first == PAWL_INVALID_REQUEST && scope.error.message[0]));
    REQUIRE(compiled == PAWL_OK || first != PAWL_OK);
    REQUIRE(expr_value(&scope, EXPR_VALUE, text, &world, &value) ==
            expr_value(&scope, EXPR_VALUE, text, &world, &again));
    REQUIRE((value.data != NULL) == (again.data != NULL) && (!value.data || str_eq(value, again)));
    REQUIRE(!value.data || node_read_json(&scope, value, &node) == PAWL_OK);
    REQUIRE(expr_end(text) == SIZE_MAX || expr_end(text) + 2 <= size);
    for (; expr_next_step(text, &at, &name); last = at) {
        REQUIRE(at > last && name.data >= text.data && name.data + name.size <= text.data + size);
    }
    scope_fini(&scope);
    return 0;
}
