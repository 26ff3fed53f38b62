/* verify_moved.c - an import's timers are due by the clock of the store that they come from. The
 * import record behind the imported records says by how much each differs by this store's clock. */
#include "base/node.h"
#include "evidence/verify_int.h"

static bool read_by(const struct node *node, int64_t *out)
{
    return node && node_to_i64(node, out) && *out != 0 && *out < MOVED_MAX_MS &&
           *out > -MOVED_MAX_MS;
}

static bool can_move(const struct live_change *timer)
{
    return timer->kind == LIVE_TIMER_PUT && !timer->timer.wall &&
           timer->timer.due_at_ms < DUE_NEVER_MS && timer->timer.due_at_ms > -DUE_NEVER_MS;
}

/* [ID,NAME,ORD,MS] */
static pawl_status move_one(struct verify *v, const struct node *item)
{
    const struct node *id = item->kind == NODE_ARRAY ? item->first : NULL;
    const struct node *name = id ? id->next : NULL, *ordinal = name ? name->next : NULL;
    const struct node *by = ordinal ? ordinal->next : NULL;
    uint8_t random[ID_RANDOM_SIZE];
    struct live_change *timer = NULL;
    struct chain *chain;
    uint64_t number = 0;
    int64_t row = -1, by_ms;

    if (!by || by->next || id->kind != NODE_STRING || name->kind != NODE_STRING ||
        !node_to_i64(ordinal, &row) || row < 0 || row > UINT32_MAX || !read_by(by, &by_ms) ||
        id->text.size != ID_SIZE || !id_parse(id->text, &number, random))
        return verify_bad(v, "an import that does not say how far a timer has moved");
    chain = verify_find_chain(v, number);
    if (!chain && verify_departed(v, number, random))
        return PAWL_OK; /* it ended, and was moved into an archive file since */
    if (number > 0 && chain && chain->pos > v->import_pos &&
        memcmp(chain->random, random, ID_RANDOM_SIZE) == 0)
        timer = verify_find_timer(chain, (uint32_t)row, name->text);
    if (!timer || !can_move(timer))
        return verify_bad(v, "an import moves a timer that it does not bring");
    timer->timer.shift_ms += by_ms;
    return PAWL_OK;
}

/* At the import record behind the records of an import, the body of which is read. */
pawl_status verify_moved(struct verify *v, const struct node *body)
{
    const struct node *offset = node_find(body, "offset"), *moved = node_find(body, "moved");
    int64_t by_ms;

    if (!offset && !moved)
        return PAWL_OK;
    if (v->import_pos == 0 || (moved && moved->kind != NODE_ARRAY) ||
        (offset && !read_by(offset, &by_ms)))
        return verify_bad(v, "an import that moves timers, and brings none or does not say how far");
    for (const struct node *item = moved ? moved->first : NULL; item; item = item->next)
        TRY(move_one(v, item));
    for (uint32_t i = 1; offset && i < v->chain_count; i++)
        for (uint32_t j = 0;
             v->chains[i].pos > v->import_pos && v->chains[i].fold && j < v->chains[i].fold->count;
             j++)
            if (can_move(&v->chains[i].fold->rows[j]))
                v->chains[i].fold->rows[j].timer.shift_ms += by_ms;
    return PAWL_OK;
}
