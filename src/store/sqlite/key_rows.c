/* key_rows.c - idempotency keys: which record each was used for.
 *
 * Their ids are random, so each row costs a page of its own; what keeps the table small is that
 * every commit that adds some deletes twice as many old ones, but none that was used since an alarm
 * began to fire that has not ended. */
#include "sqlite_int.h"

static const char put_key[] = "INSERT OR REPLACE INTO pawl_key (id, at, pos) VALUES (?1, ?2, ?3)";
static const char drop_keys[] = "DELETE FROM pawl_key WHERE id IN"
                                " (SELECT id FROM pawl_key WHERE at < min(?1, ifnull("
                                "(SELECT min(firing) FROM pawl_kept WHERE firing IS NOT NULL), ?1))"
                                " ORDER BY at LIMIT ?2)";

pawl_status write_keys(struct connection *writer, struct scope *scope, const struct commit *commit)
{
    if (commit->key_count > 0)
        TRY(RUN(writer, scope, drop_keys, SIGNED(commit->keys_before_ms),
                NUMBER(2 * commit->key_count)));
    for (size_t i = 0; i < commit->key_count; i++)
        TRY(RUN(writer, scope, put_key, BYTES(commit->keys[i].id, KEY_ID_SIZE),
                SIGNED(commit->keys[i].at_ms), NUMBER(commit->keys[i].pos)));
    return PAWL_OK;
}
