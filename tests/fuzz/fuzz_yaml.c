/* fuzz_yaml.c - any bytes as YAML. What is accepted is printed as JSON that is read as the same. */
#include "base/node.h"
#include "fuzz.h"

static void require_round_trip(struct scope *scope, const struct node *node)
{
    struct buf first, second;
    struct node *again;

    buf_init(&first, &heap_libc, LIMIT_SCOPE);
    buf_init(&second, &heap_libc, LIMIT_SCOPE);
    node_print(node, &first);
    REQUIRE(node_read_json(scope, buf_view(&first), &again) == PAWL_OK);
    node_print(again, &second);
    require_same(&first, &second);
    buf_fini(&second);
    buf_fini(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const str text = { (const char *)data, size };
    struct scope scope;
    struct node *node;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    if (node_read_yaml(&scope, text, &node) == PAWL_OK)
        require_round_trip(&scope, node);
    else
        REQUIRE(scope.error.message[0]);
    scope_clear(&scope);
    (void)node_read(&scope, text, &node);
    scope_fini(&scope);
    return 0;
}
