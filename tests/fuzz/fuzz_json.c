/* fuzz_json.c - any bytes as JSON. What is accepted is printed and read back as the same. */
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

/* Every child is found by its key, and its bytes lie within the text. */
static void require_sound(const struct node *node, str text)
{
    int64_t number;

    REQUIRE(node->raw.data >= text.data);
    REQUIRE(node->raw.data + node->raw.size <= text.data + text.size);
    REQUIRE(node->line > 0 && node->column > 0);
    (void)node_to_i64(node, &number);
    for (const struct node *child = node->first; child; child = child->next) {
        REQUIRE(node->kind != NODE_OBJECT || node_find_str(node, child->key) == child);
        require_sound(child, text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const str text = { (const char *)data, size };
    struct scope scope;
    struct node *node;
    pawl_status status;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    status = node_read_json(&scope, text, &node);
    if (status == PAWL_OK) {
        require_sound(node, text);
        require_round_trip(&scope, node);
    } else
        REQUIRE(scope.error.message[0]);
    scope_fini(&scope);
    return 0;
}
