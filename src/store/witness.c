/* witness.c - the state of a store: what keeps it from committing, and whether its log agrees with
 * FILE-head. */
#include "base/time.h"
#include "store/store.h"
#include <stdio.h>

bool witness_is_against(const struct head_witness *witness)
{
    return witness->verdict != WITNESS_NONE && witness->verdict != WITNESS_AGREES &&
           witness->verdict != WITNESS_SET_ASIDE;
}

bool witness_proves_loss(const struct head_witness *witness)
{
    return witness->verdict == WITNESS_LOG_SHORT || witness->verdict == WITNESS_LOG_DIFFERS;
}

static void set_aside_words(const struct head_witness *witness, const char *at, char *out,
                            size_t size)
{
    char where[96] = "";

    if (witness->pos > 0)
        snprintf(where, sizeof where, ", which had come to position %llu of %s",
                 (unsigned long long)witness->pos, at);
    snprintf(out, size,
             "a new store was made where another one had been%s; the FILE-head of that one is now "
             "FILE-head-%s. If it was not deleted on purpose, stop here and search for its file",
             where, witness->other);
}

void witness_words(const struct head_witness *witness, char *out, size_t size)
{
    unsigned long long pos = witness->pos, last = witness->log_pos;
    char at[TIME_TEXT_SIZE];

    time_print(witness->at_ms, at);
    switch (witness->verdict) {
    case WITNESS_NONE:
        snprintf(out, size, "there is no FILE-head");
        break;
    case WITNESS_AGREES:
        snprintf(out, size, "the log agrees with FILE-head at position %llu of %s", pos, at);
        break;
    case WITNESS_LOG_SHORT:
        snprintf(out, size,
                 "the log ends at position %llu, and FILE-head remembers position %llu of %s: "
                 "records that were acknowledged are missing",
                 last, pos, at);
        break;
    case WITNESS_LOG_DIFFERS:
        snprintf(out, size,
                 "the log, which ends at position %llu, has another root at position %llu than "
                 "FILE-head remembers of %s: records that were acknowledged are missing",
                 last, pos, at);
        break;
    case WITNESS_FOREIGN:
        snprintf(out, size,
                 "FILE-head belongs to another store, %s: the log was not compared with it",
                 witness->other);
        break;
    case WITNESS_UNREADABLE:
        snprintf(out, size, "FILE-head cannot be read: the log was not compared with it");
        break;
    case WITNESS_SET_ASIDE:
        set_aside_words(witness, at, out, size);
        break;
    }
}

/* ---- Asking a backend ---- */

enum store_trouble store_trouble(const struct store *store)
{
    return atomic_load(&store->is_gone) ? TROUBLE_GONE : store->trouble;
}

pawl_status store_witness(struct store *store, struct scope *scope, str accepted_by,
                          struct head_witness *out)
{
    *out = (struct head_witness){ .verdict = WITNESS_NONE };
    return store->ops->witness ? store->ops->witness(store, scope, accepted_by, out) : PAWL_OK;
}
