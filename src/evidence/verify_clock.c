/* verify_clock.c - clock records: the offset between the store's clock and the wall clock. A record
 * with a shift moves the store's clock and every due time by it; only such a record may have an
 * earlier time. */
#include "base/node.h"
#include "evidence/verify_int.h"

struct clock_body {
    bool is_test;
    int64_t test_ms, wall_ms, offset_ms, shift_ms;
};

static bool take(const struct node *body, const char *name, int64_t *out, uint32_t *taken)
{
    const struct node *node = node_find(body, name);

    *taken += node != NULL;
    return node && node_to_i64(node, out);
}

static pawl_status read_body(struct verify *v, const struct record *record, struct clock_body *out)
{
    struct node *body = NULL;
    uint32_t taken = 0;
    bool ok;

    *out = (struct clock_body){ 0 };
    if (node_read_json(&v->scope, record->body, &body) == PAWL_NO_MEMORY)
        return PAWL_NO_MEMORY;
    if (!body || body->kind != NODE_OBJECT)
        return verify_bad(v, "a clock record with an invalid body");
    out->is_test = node_find(body, "test_now") != NULL;
    if (out->is_test)
        ok = take(body, "test_now", &out->test_ms, &taken) && out->test_ms != 0;
    else
        ok = take(body, "wall", &out->wall_ms, &taken) &&
             take(body, "offset", &out->offset_ms, &taken) &&
             (!node_find(body, "shift") ||
              (take(body, "shift", &out->shift_ms, &taken) && out->shift_ms != 0));
    return ok && taken == body->count ? PAWL_OK
                                      : verify_bad(v, "a clock record with an invalid body");
}

pawl_status verify_clock_time(struct verify *v, const struct record *record)
{
    struct clock_body body;

    TRY(read_body(v, record, &body));
    if (record->instance != 0)
        return verify_bad(v, "a clock record in an instance's chain");
    if (body.shift_ms && (body.offset_ms || body.wall_ms != record->at_ms))
        return verify_bad(v, "the clock is moved, but not to the wall clock");
    if (body.shift_ms < 0 && v->pos > 0 && record->at_ms - v->at_ms < body.shift_ms)
        return verify_bad(v, "the time of this record falls by more than the clock is moved");
    if (body.shift_ms >= 0 && v->pos > 0 && record->at_ms < v->at_ms)
        return verify_bad(v, "the time of this record is before that of the one before it");
    return PAWL_OK;
}

static void shift(struct verify *v, int64_t by_ms)
{
    for (uint32_t i = 0; i < v->chain_count; i++)
        for (uint32_t j = 0; v->chains[i].fold && j < v->chains[i].fold->count; j++) {
            struct live_change *row = &v->chains[i].fold->rows[j];

            if (row->kind == LIVE_TIMER_PUT && !row->timer.wall &&
                row->timer.due_at_ms + row->timer.shift_ms < DUE_NEVER_MS)
                row->timer.shift_ms += by_ms;
        }
    for (uint32_t i = 0; i < v->standing_count; i++)
        if (v->standing[i].what == CONTROL_ALARM && !v->standing[i].wall &&
            v->standing[i].due_at_ms < DUE_NEVER_MS)
            v->standing[i].due_at_ms += by_ms;
}

pawl_status verify_note_clock(struct verify *v, const struct record *record)
{
    struct clock_body body;
    pawl_status status = read_body(v, record, &body);

    if (status != PAWL_OK || !v->whole)
        return status;
    if (body.shift_ms)
        shift(v, body.shift_ms);
    return verify_replace_standing(
        v, &(struct standing_row){ .what = CONTROL_CLOCK,
                                   .id = str_of(body.is_test ? CLOCK_TEST : CLOCK_WALL),
                                   .due_at_ms = body.is_test ? body.test_ms : body.offset_ms,
                                   .pos = record->pos });
}
