/* write_departed.c - instances that were moved into an archive file: their rows and values go, and
 * of each record its position, time, hash and root stay.
 *
 * Deleted bytes are overwritten (secure_delete), and pages that become free are given back by
 * vacuum_some() where the file was made for that. */
#include "sqlite_int.h"

static const char leave_place[] =
    "UPDATE pawl_log SET inst = NULL, seq = ?2, prev = NULL, skip = NULL, what = -15, flags = NULL,"
    " fired = NULL, step = NULL, ord = NULL, attempt = NULL, actor = NULL, payload = NULL,"
    " reason = NULL, body = NULL, key = NULL WHERE pos = ?1";
static const char forget_key[] = "DELETE FROM pawl_key WHERE id = ?1 AND pos = ?2";
static const char drop_value[] =
    "DELETE FROM pawl_value WHERE id = ?1 AND coalesce(interned, 0) = 0";
static const char *const drop_rows[] = {
    "DELETE FROM pawl_instance WHERE number = ?1", "DELETE FROM pawl_head WHERE inst = ?1",
    "DELETE FROM pawl_snapshot WHERE inst = ?1",   "DELETE FROM pawl_interest WHERE inst = ?1",
    "DELETE FROM pawl_child WHERE child = ?1",
};

static pawl_status leave(struct connection *writer, struct scope *scope,
                         const struct departure *departure)
{
    TRY(RUN(writer, scope, leave_place, NUMBER(departure->pos), NUMBER(departure->archived)));
    if (!departure->key.data)
        return PAWL_OK;
    return RUN(writer, scope, forget_key, BYTES((const uint8_t *)departure->key.data, KEY_ID_SIZE),
               NUMBER(departure->pos));
}

pawl_status write_departed(struct connection *writer, struct scope *scope,
                           const struct commit *commit)
{
    for (size_t i = 0; i < commit->departure_count; i++)
        TRY(leave(writer, scope, &commit->departures[i]));
    for (size_t i = 0; i < commit->dropped_count; i++)
        TRY(RUN(writer, scope, drop_value, NUMBER(commit->dropped[i])));
    for (size_t i = 0; i < commit->departed_count; i++)
        for (size_t k = 0; k < sizeof drop_rows / sizeof *drop_rows; k++)
            TRY(RUN(writer, scope, drop_rows[k], NUMBER(commit->departed[i].number)));
    return delete_labels(writer, scope, commit->departed, commit->departed_count);
}
