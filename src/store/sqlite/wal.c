/* wal.c - keeping the WAL small.
 *
 * A passive checkpoint moves what it can into the file and never waits. Once everything
 * has been moved and no reader needs the WAL, the next write begins it again. Readers
 * that always overlap would keep that from ever happening, so a WAL that has grown large all
 * the same is cut by the writer, at a moment when that needs no waiting.
 *
 * Nothing here can fail a commit: what is in the WAL is durable where it is. */
#include "sqlite_int.h"
#include <stdio.h>
#include <unistd.h>

#define WAL_KEEP_PAGES 1792u  /* 7 MiB of the usual 4 KiB pages: one commit in hundreds waits */
#define WAL_CUT_PAGES  16384u /* 64 MiB */
#define SCRUB_WAIT_MS  200    /* for readers: they end soon, or the next attempt waits again */
#define VACUUM_PAGES   4096u  /* 16 MiB, at one time */
#define WAL_FRAME_SIZE (4096u + 24) /* of a page, with its head */

int wal_hook(void *context, sqlite3 *db, const char *name, int pages)
{
    struct sqlite_store *store = context;

    (void)db;
    (void)name;
    if ((uint32_t)pages <= store->wal_pages || store->wal_pages == 0) {
        store->wal_next = 0; /* it starts again at its beginning */
        unchanged_note(store);
    }
    store->wal_pages = (uint32_t)pages;
    store->base.wal_bytes = (uint64_t)pages * WAL_FRAME_SIZE;
    return SQLITE_OK;
}

static void cut(struct sqlite_store *store)
{
    sqlite3 *db = store->writer.db;

    sqlite3_busy_timeout(db, 0);
    sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
}

void wal_keep_small(struct sqlite_store *store)
{
    int pages = 0, moved = 0, code;

    if (store->wal_pages < WAL_KEEP_PAGES || store->wal_pages < store->wal_next)
        return;
    code = sqlite3_wal_checkpoint_v2(store->keeper.db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages,
                                     &moved);
    if (store->wal_pages >= WAL_CUT_PAGES)
        cut(store);
    unchanged_note(store);
    /* Where a reader stands in the way, trying again at every commit would be in vain. */
    store->wal_next = code == SQLITE_OK && pages == moved ? 0 : store->wal_pages + WAL_KEEP_PAGES;
}

/* ---- After erasing ---- */

/* The place of a check that was stopped repeats names and values of open waits. */
static void drop_checkpoint(const struct sqlite_store *store)
{
    char path[PATH_MAX + 16];

    (void)snprintf(path, sizeof path, "%s-verify", store->path);
    (void)unlink(path);
}

/* Pages that are free go back to the disk, so many at a time. In a file that an older release made
 * (auto_vacuum 0) nothing happens: VACUUM once with PRAGMA auto_vacuum = 2 changes that. */
static void vacuum_some(struct sqlite_store *store)
{
    char text[64];

    (void)snprintf(text, sizeof text, "PRAGMA incremental_vacuum(%u)", VACUUM_PAGES);
    (void)sqlite3_exec(store->writer.db, text, NULL, NULL, NULL);
}

/* What was erased stands in the WAL until that is moved into the file and cut to nothing. Deleted
 * rows of the file are overwritten as they go (secure_delete). Pages in memory are let go, because
 * SQLite leaves bytes that it has moved where they were, and would write them again. */
pawl_status sqlite_scrub(struct store *base, struct scope *scope)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int code;

    if (store->is_attached || store->is_read_only)
        return PAWL_OK; /* the file is the host's, and so is when it is moved */
    TRY(sqlite_check(store, scope));
    drop_checkpoint(store);
    vacuum_some(store);
    sqlite3_busy_timeout(store->writer.db, SCRUB_WAIT_MS);
    code =
        sqlite3_wal_checkpoint_v2(store->writer.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    sqlite3_busy_timeout(store->writer.db, BUSY_TIMEOUT_MS);
    sqlite3_db_release_memory(store->writer.db);
    unchanged_note(store);
    store->wal_next = 0;
    if (code == SQLITE_OK)
        return PAWL_OK;
    return scope_fail(scope, PAWL_OVERLOADED,
                      "what was erased is still in the write-ahead log of %s, because a reader "
                      "uses it: %s",
                      store->path, sqlite3_errstr(code));
}
