/* write_erased.c - what a commit erases: values, parts of bodies, and what instances were found by.
 *
 * PostgreSQL keeps the old version of a row in its files until it is vacuumed, and its own log for
 * as long as it is configured to: docs/howto/retention.md says what to do about both. */
#include "postgres_int.h"

#define ROW_OF_LOG                                                                                 \
    "pos = (SELECT pos FROM pawl_log WHERE shard = $1 AND pos <= $2 ORDER BY pos DESC LIMIT 1)"
/* An array that is missing says that no record of the row has one: it is made with all of them. */
static const char make_flags[] = "UPDATE pawl_log SET flags = array_fill(0, ARRAY[n])"
                                 " WHERE shard = $1 AND flags IS NULL AND " ROW_OF_LOG;
static const char put_flags[] = "UPDATE pawl_log SET flags[($2 - pos + 1)::int] = $3"
                                " WHERE shard = $1 AND " ROW_OF_LOG;
static const char put_body[] = "UPDATE pawl_log SET flags[($2 - pos + 1)::int] = $3,"
                               " body[($2 - pos + 1)::int] = $4 WHERE shard = $1 AND " ROW_OF_LOG;

static const char clear_instances[] = "UPDATE pawl_instance SET correlation = NULL, labels = NULL"
                                      " WHERE shard = $1 AND number = ANY ($2)";
static const char drop_snapshots[] =
    "DELETE FROM pawl_snapshot WHERE shard = $1 AND inst = ANY ($2)";

static pawl_status send_redaction(struct sending *sending, const struct redaction *redaction)
{
    struct params *params = sending_add(sending, make_flags);

    TRY_MEMORY(sending->scope, params);
    params_int(params, (int64_t)redaction->pos);
    params = sending_add(sending, redaction->body.data ? put_body : put_flags);
    TRY_MEMORY(sending->scope, params);
    params_int(params, (int64_t)redaction->pos);
    params_int4(params, redaction->flags);
    if (redaction->body.data)
        params_bytes(params, redaction->body);
    return PAWL_OK;
}

static pawl_status send_cleared(struct sending *sending, const struct commit *commit)
{
    static const struct column number[] = { COLUMN(struct instance_row, number, FROM_U64,
                                                   PG_INT8) };
    const char *const texts[] = { clear_instances, drop_snapshots };

    for (int i = 0; i < 2 && commit->cleared_count; i++) {
        struct params *params = sending_add(sending, texts[i]);

        TRY_MEMORY(sending->scope, params);
        PARAMS_COLUMNS(params, commit->cleared, commit->cleared_count, number);
    }
    return send_label_deletes(sending, commit->cleared, commit->cleared_count);
}

pawl_status send_erased(struct sending *sending, const struct commit *commit)
{
    TRY(send_value_erasures(sending, commit->erasures, commit->erasure_count));
    for (size_t i = 0; i < commit->redaction_count; i++)
        TRY(send_redaction(sending, &commit->redactions[i]));
    return send_cleared(sending, commit);
}
