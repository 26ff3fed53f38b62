/* standing_rows.c - tokens and alarms: named rows that last from one control record to another. */
#include "sqlite_int.h"

static const char put_one[] = "INSERT OR REPLACE INTO pawl_kept (what, id, due, pos, firing, wall)"
                              " VALUES (?1, ?2, ?3, ?4, nullif(?5, 0), ?6)";
static const char delete_one[] = "DELETE FROM pawl_kept WHERE what = ?1 AND id = ?2";

static pawl_status write_one(struct connection *writer, struct scope *scope,
                             const struct standing_change *change)
{
    const struct standing_row *row = &change->row;

    if (!change->is_put)
        return RUN(writer, scope, delete_one, SIGNED(row->what), TEXT(row->id));
    return RUN(writer, scope, put_one, SIGNED(row->what), TEXT(row->id), SIGNED(row->due_at_ms),
               NUMBER(row->pos), SIGNED(row->firing_ms), OPTIONAL(row->wall));
}

/* Deletes the row that held the test clock before there were clock records. */
static pawl_status drop_old_clock(struct connection *writer, struct scope *scope)
{
    if (sqlite3_exec(writer->db, "DELETE FROM pawl_meta WHERE key = 'test_now'", NULL, NULL, NULL))
        return sqlite_fail(scope, writer->db, "dropping the old test clock");
    return PAWL_OK;
}

pawl_status write_standing(struct connection *writer, struct scope *scope,
                           const struct commit *commit)
{
    pawl_status status = PAWL_OK;

    for (size_t i = 0; i < commit->standing_count && status == PAWL_OK; i++) {
        status = write_one(writer, scope, &commit->standing[i]);
        if (status == PAWL_OK && commit->standing[i].row.what == CONTROL_CLOCK &&
            str_is(commit->standing[i].row.id, CLOCK_TEST))
            status = drop_old_clock(writer, scope);
    }
    return status;
}
