/* plain.c - a module without the macros: a table of functions and texts, as pawl_turn.h has it (U7). */
#include <pawl_main.h>
#include <stdio.h>

static void leaf_handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    pawl_turn_complete(turn, event->payload);
}

static const pawl_code_type *leaf(void)
{
    static const pawl_code_type type = { .name = "leaf", .handle = leaf_handle };

    return &type;
}

/* Spawns a leaf, and completes with its id and what it gave. */
static void branch_handle(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    if (event->kind == PAWL_EVENT_START)
        pawl_turn_spawn(turn, "leaf", event->payload, false);
    else
        pawl_turn_complete(turn, pawl_turn_text(turn, "{\"child\":%s,\"gave\":%s}",
                                                pawl_turn_quote(turn, event->child_id), event->payload));
}

static const pawl_code_type *branch(void)
{
    static const char *const children[] = { "leaf", NULL };
    static const pawl_code_type type = { .name = "branch", .children = children, .handle = branch_handle };

    return &type;
}

PAWL_MODULE(leaf, branch);
