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

static pawl_status fail(struct scope *scope, const char *doing, const char *path)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s %s: %s", doing, path, strerror(errno));
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

/* Remove what makers that died left behind. No other process makes one now: we hold the lock. */
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

static int put_fact(sqlite3 *db, const char *key, const void *blob, int size)
{
    sqlite3_stmt *statement = NULL;
    int code =
        sqlite3_prepare_v2(db, "INSERT INTO pawl_meta VALUES (?1, ?2)", -1, &statement, NULL);

    if (code != SQLITE_OK)
        return code;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 2, blob, size, SQLITE_STATIC);
    sqlite3_step(statement);
    return sqlite3_finalize(statement);
}

/* Writes the facts that identify this store. */
int sqlite_put_facts(struct sqlite_store *store, sqlite3 *db)
{
    uint8_t id[STORE_ID_SIZE];

    store->env->random(store->env, id, sizeof id);
    return put_fact(db, "store_id", id, sizeof id);
}

/* Nothing is synced on the way: the file has no name yet that a reader trusts, and is synced
 * whole before it gets its name. */
static const char while_making[] = "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY";

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

/* Readable by its owner only, from the first byte on. SQLite gives -wal and -shm the same mode. */
static pawl_status make_empty(struct scope *scope, const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return fail(scope, "making", path);
    close(fd);
    return PAWL_OK;
}

static pawl_status sync_path(struct scope *scope, const char *path, int flags)
{
    int fd = open(path, flags | O_RDONLY | O_CLOEXEC);
    pawl_status status = PAWL_OK;

    if (fd < 0)
        return fail(scope, "opening", path);
    if (fsync(fd) != 0)
        status = fail(scope, "syncing", path);
    close(fd);
    return status;
}

/* Give the file its name, never over another one. */
static pawl_status publish(struct scope *scope, const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return PAWL_OK;
    /* A file system without that: we hold the lock, so no other pawl makes one meanwhile. */
    if ((errno == EINVAL || errno == ENOSYS) && access(to, F_OK) != 0 && rename(from, to) == 0)
        return PAWL_OK;
    return fail(scope, "making", to);
}

/* A WAL without its file belongs to a store that was moved or deleted: SQLite would play it
 * into the new one. */
static pawl_status check_no_wal(struct scope *scope, const char *path)
{
    char wal[PATH_MAX];

    snprintf(wal, sizeof wal, "%.*s-wal", PATH_MAX - 8, path);
    if (access(wal, F_OK) != 0)
        return PAWL_OK;
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "%s lies there without its store %s: put the store back, or delete it", wal,
                      path);
}

pawl_status sqlite_create(struct sqlite_store *store, struct scope *scope)
{
    char temporary[PATH_MAX], directory[PATH_MAX];
    const char *slash = strrchr(store->path, '/');
    pawl_status status = check_no_wal(scope, store->path);

    ASSERT(slash); /* the path is absolute */
    if (status != PAWL_OK)
        return status;
    snprintf(directory, sizeof directory, "%.*s",
             slash == store->path ? 1 : (int)(slash - store->path), store->path);
    remove_leftovers(directory, slash + 1);
    snprintf(temporary, sizeof temporary, "%.*s-new-%ld", PATH_MAX - 32, store->path,
             (long)getpid());
    status = make_empty(scope, temporary);
    if (status == PAWL_OK)
        status = fill(store, scope, temporary);
    if (status == PAWL_OK)
        status = sync_path(scope, temporary, 0);
    if (status == PAWL_OK)
        witness_set_aside(store);
    if (status == PAWL_OK)
        status = publish(scope, temporary, store->path);
    if (status == PAWL_OK)
        return sync_path(scope, directory, O_DIRECTORY);
    remove_leftovers(directory, slash + 1);
    return status;
}
