/* standing_rows.c - tokens and alarms: named rows that last from one control record to another. */
#include "sqlite_int.h"

static const char put_one[] = "INSERT OR REPLACE INTO pawl_kept (what, id, due, pos, firing, wall)"
                              " VALUES (?1, ?2, ?3, ?4, nullif(?5, 0), ?6)";
static const char delete_one[] = "DELETE FROM pawl_kept WHERE what = ?1 AND id = ?2";

/* The row that held the test clock before there were clock records. */
static const char drop_old_clock[] = "DELETE FROM pawl_meta WHERE key = 'test_now'";

pawl_status write_standing(struct connection *writer, struct scope *scope,
                           const struct commit *commit)
{
    for (size_t i = 0; i < commit->standing_count; i++) {
        const struct standing_row *row = &commit->standing[i].row;

        if (commit->standing[i].is_put)
            TRY(RUN(writer, scope, put_one, SIGNED(row->what), TEXT(row->id),
                    SIGNED(row->due_at_ms), NUMBER(row->pos), SIGNED(row->firing_ms),
                    OPTIONAL(row->wall)));
        else
            TRY(RUN(writer, scope, delete_one, SIGNED(row->what), TEXT(row->id)));
        if (row->what == CONTROL_CLOCK && str_is(row->id, CLOCK_TEST))
            TRY(connection_run(writer, scope, drop_old_clock));
    }
    return PAWL_OK;
}
