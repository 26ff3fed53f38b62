/* watch.c - are the store's files still there? Files that were deleted or replaced under a running
 * program still accept writes, and lose them all when it ends. So before each COMMIT three stat()
 * calls, a few microseconds, check that the names still lead to the files that were opened.
 * changed.c judges what the same calls say about their sizes and times.
 *
 * A second name of the file (a hard link) leads to a second write-ahead log. Opening such a file is
 * rejected; a link that is made later is reported (TROUBLE_LINKED). */
#include "sqlite_int.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const char *const endings[WATCHED_COUNT] = { "", "-wal", "-shm" };

static bool stat_file(const struct sqlite_store *store, int which, struct stat *out)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.*s%s", PATH_MAX - 8, store->path, endings[which]);
    return stat(path, out) == 0;
}

static bool is_same(const struct watched *watched, const struct stat *found)
{
    return watched->inode == found->st_ino && watched->device == found->st_dev;
}

/* After connecting. A file that is not there then (tests have a disk of their own) is not
 * watched. */
void watch_begin(struct sqlite_store *store)
{
    struct stat found;

    for (int i = 0; i < WATCHED_COUNT; i++)
        store->watched[i] = stat_file(store, i, &found)
                                ? (struct watched){ found.st_dev, found.st_ino }
                                : (struct watched){ 0 };
    unchanged_note(store);
}

/* The first name that no longer leads to the file that was opened; NULL: all still do. */
static const char *find_gone(struct sqlite_store *store, struct stat found[WATCHED_COUNT],
                             const char **how)
{
    for (int i = 0; i < WATCHED_COUNT; i++) {
        bool is_there = stat_file(store, i, &found[i]);

        if (store->watched[i].inode == 0)
            continue;
        *how = is_there ? "was replaced" : "was deleted";
        if (!is_there || !is_same(&store->watched[i], &found[i]))
            return i == 0 ? "database" : endings[i];
        if (i == 0 && found[i].st_nlink > 1)
            store->base.trouble = TROUBLE_LINKED;
    }
    return NULL;
}

/* By the drain, once: other threads read the words from the moment that is_gone is set. */
static void mark_gone(struct sqlite_store *store, const char *what, const char *how)
{
    if (atomic_load(&store->base.is_gone))
        return;
    snprintf(store->gone_words, sizeof store->gone_words,
             "the store's %s file %s while it was open: nothing is acknowledged any more; stop "
             "this process, check the files, and start it again",
             what, how);
    atomic_store(&store->base.is_gone, true);
    atomic_store(&store->broken, true);
}

const char *watch_words(const struct sqlite_store *store)
{
    return atomic_load(&store->is_rescued)
               ? "the store's -wal file was deleted while it was open: acknowledged entries were "
                 "moved into the database, and nothing more is acknowledged; restart this process"
               : store->gone_words;
}

pawl_status watch_check(struct sqlite_store *store, struct scope *scope)
{
    struct stat found[WATCHED_COUNT] = { 0 };
    struct wal_index before;
    const char *how = NULL, *what;

    if (store->is_attached)
        return PAWL_OK;
    before = unchanged_index(store);
    what = find_gone(store, found, &how);
    if (!what)
        how = unchanged_check(store, &before, found, &what);
    if (!how || !what)
        return PAWL_OK;
    mark_gone(store, what, how);
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: %s", store->path, watch_words(store));
}

void watch_second_owner(struct sqlite_store *store)
{
    mark_gone(store, "database", "was written by another process, which owns the store as well,");
}

/* The write-ahead log was deleted, but is still open here: move its contents into the database, as
 * closing would. Not if there is a new -wal already, or if the database itself was replaced. */
void watch_rescue(struct sqlite_store *store)
{
    struct stat found;
    int pages = 0, moved = 0;

    if (!stat_file(store, 0, &found) || !is_same(&store->watched[0], &found) || stat_file(store, 1, &found))
        return;
    if (sqlite3_wal_checkpoint_v2(store->keeper.db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages,
                                  &moved) != SQLITE_OK ||
        pages != moved)
        return;
    atomic_store(&store->is_rescued, true);
}

/* Closing must not checkpoint into, or delete, files that are no longer ours. A connection belongs
 * to the thread that uses it, so this is left to closing, when all others have gone. */
void watch_end(struct sqlite_store *store)
{
    sqlite3 *const all[] = { store->writer.db, store->reader.db, store->keeper.db };

    for (size_t i = 0; atomic_load(&store->base.is_gone) && i < sizeof all / sizeof *all; i++)
        if (all[i])
            sqlite3_db_config(all[i], SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

/* ---- Files of ours beside the database's ---- */

/* With the mode of the database, regardless of the umask. Files of a new store are 0600. */
int sqlite_open_beside(const char *database, const char *path)
{
    struct stat like;
    bool is_there = stat(database, &like) == 0;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int ignored = 0;

    if (fd < 0)
        return errno == EEXIST ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (is_there)
        ignored |= fchmod(fd, like.st_mode & 0666);
    if (is_there && geteuid() == 0)
        ignored |= fchown(fd, like.st_uid, like.st_gid); /* as SQLite does with its own */
    (void)ignored;
    return fd;
}
