/* tree_error.c - which error failed which group of a tree: each try has its own (C27).
 *
 * The error of a step that fails moves up with the failure, from group to group, and rests where
 * others still have to end: in a dopar, or in a try whose rescue or finally runs. So an error lies
 * in one row at a time, and two tries side by side never see each other's. */
#include "base/grow.h"
#include "flow/memory.h"

#define ERROR_TEXT_MAX 1024 /* there may be one for each group that is open */

static struct error_row *row_of(const struct tree_errors *errors, uint32_t row)
{
    return &errors->rows[row - 1];
}

static uint32_t new_row(struct tree_errors *errors, struct arena *arena)
{
    uint32_t row = errors->free;

    if (row != 0) {
        errors->free = row_of(errors, row)->next_free;
        return row;
    }
    if (!GROW(arena, errors->rows, errors->count, errors->capacity))
        return 0;
    errors->rows[errors->count++] = (struct error_row){ 0 };
    return errors->count;
}

uint32_t tree_errors_add(struct tree_errors *errors, str text, uint32_t seq, struct arena *arena)
{
    uint32_t row = new_row(errors, arena);

    if (row == 0)
        return 0;
    if (seq > 0 && (!text.data || text.size > ERROR_TEXT_MAX))
        row_of(errors, row)->text.seq = seq;
    else if (!memory_keep(&row_of(errors, row)->text, text, arena))
        return 0;
    return row;
}

void tree_error_drop(const struct tree_walk *walk, uint32_t node)
{
    struct node_state *state = tree_state_of(walk, node);

    if (state->error != 0 && walk->errors) {
        row_of(walk->errors, state->error)->next_free = walk->errors->free;
        walk->errors->free = state->error;
    }
    state->error = 0;
}

/* The group holds it now; what it held before is forgotten. */
void tree_error_keep(const struct tree_walk *walk, uint32_t node, uint32_t *holder)
{
    if (!walk->errors)
        return;
    tree_error_drop(walk, node);
    if (*holder == 0 && walk->error->data)
        *holder = tree_errors_add(walk->errors, *walk->error, walk->error_seq, walk->arena);
    tree_state_of(walk, node)->error = *holder;
    *holder = 0;
}

/* Something else goes up instead. */
void tree_error_forget(const struct tree_walk *walk, uint32_t *holder)
{
    if (*holder == 0)
        return;
    row_of(walk->errors, *holder)->next_free = walk->errors->free;
    walk->errors->free = *holder;
    *holder = 0;
}

/* The group has failed, and what failed it goes on with the failure. */
void tree_error_lift(const struct tree_walk *walk, uint32_t node, uint32_t *holder)
{
    struct node_state *state = tree_state_of(walk, node);

    if (state->error == 0)
        return;
    *holder = state->error;
    state->error = 0;
}

void tree_error_end(const struct tree_walk *walk, uint32_t holder)
{
    if (walk->errors && holder != 0 && walk->ended)
        *walk->ended = row_of(walk->errors, holder)->text;
}

/* For deciding: the texts stay where they are, a new one is written elsewhere. */
bool tree_errors_copy(const struct tree_errors *from, struct arena *arena, struct tree_errors *out)
{
    *out = *from;
    if (from->count == 0)
        return true;
    out->capacity = from->count;
    out->rows = arena_copy(arena, from->rows, from->count * sizeof *from->rows);
    for (uint32_t i = 0; out->rows && i < out->count; i++)
        out->rows[i].text.capacity = 0;
    return out->rows != NULL;
}

const struct kept_text *tree_last_error(const struct tree_walk *walk, uint32_t node)
{
    static const struct kept_text none;
    const struct plan *plan = walk->plan;
    bool is_after = false;

    for (uint32_t at = node; walk->errors && at != NODE_NONE; at = plan->nodes[at].parent) {
        if (plan->nodes[at].kind == PLAN_TRY && tree_state_of(walk, at)->error != 0)
            return &row_of(walk->errors, tree_state_of(walk, at)->error)->text;
        /* What a try does when its forms are over. */
        is_after = is_after || (plan->nodes[at].parent != NODE_NONE &&
                                plan->nodes[plan->nodes[at].parent].kind == PLAN_TRY &&
                                plan->nodes[at].place != TRY_FORMS);
    }
    return is_after ? &none : NULL;
}
