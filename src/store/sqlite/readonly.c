/* readonly.c - a store that this user may only read: its file, its folder or its disk.
 *
 * SQLite wants to write beside a database in WAL mode, even to read it. If another program has
 * the file open, -wal and -shm are there and can be shared. If neither is there, no process has
 * it open, and it is read as `immutable`: without any lock, so that a writer who comes later
 * would be read half done. Such a writer makes a -wal first; so before each read we look whether
 * one has appeared, or the file has changed. */
#include "base/assert.h"
#include "sqlite_int.h"
#include "store/owner.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool may_write(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static off_t size_beside(const char *path, const char *ending) /* -1: it is not there */
{
    char name[PATH_MAX + 16];
    struct stat info;

    snprintf(name, sizeof name, "%s%s", path, ending);
    return stat(name, &info) == 0 ? info.st_size : -1;
}

static bool may_make_beside(const char *path)
{
    char folder[PATH_MAX];

    sqlite_folder_of(path, folder);
    return may_write(folder);
}

static bool is_read_only(const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    if (!may_write(path))
        return true;
    return !may_make_beside(path) &&
           (size_beside(path, "-wal") < 0 || size_beside(path, "-shm") < 0);
}

bool sqlite_is_read_only(str path)
{
    char file[BESIDE_SIZE];

    return sqlite_name_beside(path, "", file) && is_read_only(file);
}

/* "file:/a%3fb?immutable=1" */
static bool print_uri(struct sqlite_store *store, const char *query)
{
    static const char digits[] = "0123456789abcdef";
    size_t used;

    store->uri_size = 3 * strlen(store->path) + strlen(query) + 8;
    store->uri = heap_new(store->heap, store->uri_size);
    if (!store->uri)
        return false;
    used = (size_t)snprintf(store->uri, store->uri_size, "file:");
    for (const char *at = store->path; *at; at++)
        if (strchr("?#%", *at)) {
            store->uri[used++] = '%';
            store->uri[used++] = digits[(unsigned char)*at >> 4];
            store->uri[used++] = digits[(unsigned char)*at & 15];
        } else {
            store->uri[used++] = *at;
        }
    snprintf(store->uri + used, store->uri_size - used, "?%s", query);
    return true;
}

pawl_status readonly_begin(struct sqlite_store *store, struct scope *scope, bool own)
{
    struct stat info;
    off_t wal_size;
    bool is_shared;

    if (!is_read_only(store->path) || stat(store->path, &info) != 0)
        return PAWL_OK;
    if (faccessat(AT_FDCWD, store->path, R_OK, AT_EACCESS) != 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s may not be read by this user: expected the rights of user %u, who "
                          "owns it (mode %04o)",
                          store->path, (unsigned)info.st_uid, (unsigned)info.st_mode & 07777u);
    if (own)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s or its folder is read-only for this user: expected to own it, and "
                          "may only read it",
                          store->path);
    wal_size = size_beside(store->path, "-wal");
    is_shared = wal_size >= 0 && size_beside(store->path, "-shm") >= 0;
    if (wal_size > 0 && !is_shared && !may_make_beside(store->path))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s is read-only for this user, and %s-wal has entries that are not in "
                          "it yet: copy both files into a folder that you may write, and read them "
                          "there",
                          store->path, store->path);
    store->is_read_only = true;
    store->is_immutable = wal_size <= 0 && !is_shared;
    store->read_size = info.st_size;
    store->read_mtime = info.st_mtim;
    return print_uri(store, store->is_immutable ? "immutable=1" : "mode=ro")
               ? PAWL_OK
               : scope_no_memory(scope);
}

pawl_status readonly_check(const struct sqlite_store *store, struct scope *scope)
{
    struct stat info;

    ASSERT(store->is_immutable);
    if (stat(store->path, &info) == 0 && info.st_size == store->read_size &&
        info.st_mtim.tv_sec == store->read_mtime.tv_sec &&
        info.st_mtim.tv_nsec == store->read_mtime.tv_nsec && size_beside(store->path, "-wal") <= 0)
        return PAWL_OK;
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "%s has been opened for writing while it was read as a file without "
                      "writers: run this again",
                      store->path);
}

pawl_status readonly_refuse(const struct sqlite_store *store, struct scope *scope)
{
    return scope_fail(scope, PAWL_STORAGE_FAILURE,
                      "%s or its folder is read-only for this user: it can be read, and nothing "
                      "can be recorded in it",
                      store->path);
}

void readonly_end(struct sqlite_store *store)
{
    heap_free(store->heap, store->uri, store->uri_size);
    store->uri = NULL;
}
