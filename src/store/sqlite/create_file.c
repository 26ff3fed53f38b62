/* create_file.c - a new store's file.
 *
 * It is made under another name and takes its own only when it is whole and on disk, so that
 * a process that finds FILE finds a store. What a crash leaves behind is called FILE-new-PID; the
 * next process that makes FILE removes it. */
#include "base/assert.h"
#include "sqlite_int.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const char *const companions[] = { "", "-wal", "-shm", "-journal" };
#define COMPANION_COUNT (sizeof companions / sizeof *companions)

pawl_status sqlite_fail_file(struct scope *scope, const char *doing, const char *path)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s %s: %s", doing, path, strerror(errno));
}

void sqlite_folder_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    ASSERT(slash);
    snprintf(out, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* "new-", digits, and perhaps "-wal" or its like. */
static bool is_leftover(const char *rest)
{
    size_t digits;

    if (strncmp(rest, "-new-", 5) != 0)
        return false;
    rest += 5;
    digits = strspn(rest, "0123456789");
    for (size_t i = 0; i < COMPANION_COUNT; i++)
        if (digits > 0 && strcmp(rest + digits, companions[i]) == 0)
            return true;
    return false;
}

/* Removes what dead makers left behind. No other process makes one now: FILE-owner is locked. */
static void remove_leftovers(const char *directory, const char *base)
{
    size_t size = strlen(base);
    DIR *dir = opendir(directory);
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, base, size) == 0 && is_leftover(entry->d_name + size))
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

/* Writes the facts that identify this store. */
int sqlite_put_facts(const struct sqlite_store *store, sqlite3 *db)
{
    static const char alone[] = "INSERT INTO pawl_meta VALUES ('store_id', ?1)";
    static const char shard[] = "INSERT INTO pawl_meta VALUES ('store_id', ?1), ('whole_id', ?2),"
                                " ('shard', ?3), ('shards', ?4)";
    const struct store_tip *made = &store->made;
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, made->stride > 1 ? shard : alone, -1, &statement, NULL);

    if (code != SQLITE_OK)
        return code;
    bind_bytes(statement, 1, made->store_id, STORE_ID_SIZE);
    if (made->stride > 1) {
        bind_bytes(statement, 2, made->whole_id, STORE_ID_SIZE);
        sqlite3_bind_int64(statement, 3, made->offset);
        sqlite3_bind_int64(statement, 4, made->stride);
    }
    sqlite3_step(statement);
    return sqlite3_finalize(statement);
}

/* Nothing is synced on the way: the file has no name yet that a reader trusts, and is synced
 * whole before it gets its name. */
static const char while_making[] =
    "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY";

static pawl_status fill(struct sqlite_store *store, struct scope *scope, const char *path)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    sqlite3 *db = NULL;
    pawl_status status;

    if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK ||
        sqlite3_exec(db, while_making, NULL, NULL, NULL) != SQLITE_OK)
        status = db ? sqlite_fail(scope, db, path) : scope_no_memory(scope);
    else
        status = sqlite_migrate(store, db, scope, &(struct schema){ 0 });
    if (status == PAWL_OK &&
        sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) != SQLITE_OK)
        status = sqlite_fail(scope, db, path);
    sqlite3_close(db);
    return status;
}

pawl_status sqlite_sync(struct scope *scope, const char *path, int flags)
{
    int fd = open(path, flags | O_RDONLY | O_CLOEXEC);
    pawl_status status = PAWL_OK;

    if (fd < 0)
        return sqlite_fail_file(scope, "opening", path);
    if (fsync(fd) != 0)
        status = sqlite_fail_file(scope, "syncing", path);
    close(fd);
    return status;
}

/* Give the file its name, never over another one. */
static pawl_status publish(struct scope *scope, const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return PAWL_OK;
    /* A file system without that. FILE-owner is locked, so no other pawl makes one meanwhile. */
    if ((errno == EINVAL || errno == ENOSYS) && access(to, F_OK) != 0 && rename(from, to) == 0)
        return PAWL_OK;
    return sqlite_fail_file(scope, "making", to);
}

/* Whole, on disk and with its name. */
static pawl_status make(struct sqlite_store *store, struct scope *scope)
{
    char temporary[PATH_MAX];
    int fd;

    snprintf(temporary, sizeof temporary, "%.*s-new-%ld", PATH_MAX - 32, store->path,
             (long)getpid());
    /* Readable by its owner only, from the first byte on. SQLite gives -wal and -shm that mode. */
    fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return sqlite_fail_file(scope, "making", temporary);
    close(fd);
    TRY(fill(store, scope, temporary));
    TRY(sqlite_sync(scope, temporary, 0));
    witness_set_aside(store);
    return publish(scope, temporary, store->path);
}

pawl_status sqlite_create(struct sqlite_store *store, struct scope *scope)
{
    char wal[PATH_MAX], directory[PATH_MAX];
    const char *name = strrchr(store->path, '/') + 1;
    pawl_status status;

    /* A WAL without its file belongs to a store that was moved or deleted: SQLite would play it
     * into the new one. */
    snprintf(wal, sizeof wal, "%.*s-wal", PATH_MAX - 8, store->path);
    if (access(wal, F_OK) == 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s lies there without its store %s: put the store back, or delete it",
                          wal, store->path);
    sqlite_folder_of(store->path, directory);
    remove_leftovers(directory, name);
    status = make(store, scope);
    if (status == PAWL_OK)
        return sqlite_sync(scope, directory, O_DIRECTORY);
    remove_leftovers(directory, name);
    return status;
}
