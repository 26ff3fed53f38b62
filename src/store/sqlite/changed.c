/* changed.c - was a file of the store cut or changed by another program, under its own name?
 *
 * The -shm file holds SQLite's WAL-index (https://sqlite.org/walformat.html): how many frames of
 * the -wal are committed, how many pages the database has, and how far checkpoints have come. All
 * programs that open the store by its name keep it right, so what they do is never held against
 * them. A -wal that is shorter than its frames was truncated. A database file whose time changed
 * without a checkpoint of our -wal was written through another name, with another -wal.
 *
 * Such a writer leaves no trace in the file before its first checkpoint. But where the file has two
 * names, the kernel's list of locks shows another owner of it, and the folder another -wal. */
#include "sqlite_int.h"
#include <dirent.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#define REGION_SIZE     32768
#define FRAME_HEAD      24
#define WAL_HEAD        32
#define CHECKPOINT_LOCK 1

/* Offsets in the WAL-index, in units of 4 bytes. */
enum { AT_PAGE_SIZE = 3, AT_FRAMES = 4, AT_PAGES = 5, AT_SALT = 8, AT_MOVED = 24, AT_MOVING = 32 };

/* ---- The WAL-index ---- */

static sqlite3_file *file_of(sqlite3 *db)
{
    sqlite3_file *file = NULL;

    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
        !file->pMethods || file->pMethods->iVersion < 2)
        return NULL;
    return file;
}

/* Bytes 14 and 15, as one number in the machine's order; 1 stands for 65536. */
static uint32_t page_size_of(const volatile uint32_t *index)
{
    uint32_t word = index[AT_PAGE_SIZE];
    uint16_t halves[2];

    memcpy(halves, &word, sizeof halves);
    return halves[1] == 1 ? 65536 : halves[1];
}

struct wal_index unchanged_index(const struct sqlite_store *store)
{
    sqlite3_file *file = store->watched[2].inode ? file_of(store->writer.db) : NULL;
    const volatile uint32_t *index;
    void volatile *region = NULL;

    /* SQLite has it in memory. Opening the file here would be wrong: closing it drops SQLite's
     * locks. */
    if (!file || file->pMethods->xShmMap(file, 0, REGION_SIZE, 0, &region) != SQLITE_OK || !region)
        return (struct wal_index){ 0 };
    index = region;
    return (struct wal_index){ .page_size = page_size_of(index),
                               .frames = index[AT_FRAMES],
                               .pages = index[AT_PAGES],
                               .salt = index[AT_SALT],
                               .moved = index[AT_MOVED],
                               .moving = index[AT_MOVING] };
}

/* Has a checkpoint of our -wal written to the database since, or begun to? */
static bool has_moved(const struct wal_index *before, const struct wal_index *now)
{
    return before->salt != now->salt || before->moved != now->moved ||
           before->moving != now->moving;
}

/* Is a checkpoint writing now? One that began and did not end may also have died. */
static bool is_moving(const struct sqlite_store *store, const struct wal_index *now)
{
    sqlite3_file *file = file_of(store->writer.db);

    if (now->moved >= now->moving || !file)
        return false;
    if (file->pMethods->xShmLock(file, CHECKPOINT_LOCK, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE))
        return true;
    file->pMethods->xShmLock(file, CHECKPOINT_LOCK, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
    return false;
}

/* ---- The files ---- */

/* The index is read first: a checkpoint in between is seen as one later, and not as a stranger. */
void unchanged_note(struct sqlite_store *store)
{
    struct wal_index before = unchanged_index(store);
    struct stat found;

    if (store->watched[0].inode && stat(store->path, &found) == 0)
        store->unchanged = (struct unchanged){ before, found.st_mtim, found.st_size };
}

static bool is_wal_short(const struct wal_index *index, const struct stat *wal)
{
    return index->frames > 0 &&
           wal->st_size < WAL_HEAD + (off_t)index->frames * (FRAME_HEAD + (off_t)index->page_size);
}

/* It becomes shorter only when a program has vacuumed it, and then it has all its pages. */
static bool is_database_short(const struct sqlite_store *store, const struct wal_index *index,
                              const struct stat *database)
{
    return database->st_size < store->unchanged.size &&
           database->st_size < (off_t)index->pages * (off_t)index->page_size;
}

static bool is_database_changed(const struct sqlite_store *store, const struct wal_index *index,
                                const struct stat *database)
{
    const struct timespec *then = &store->unchanged.mtime, *now = &database->st_mtim;
    struct wal_index later;

    if ((then->tv_sec == now->tv_sec && then->tv_nsec == now->tv_nsec) ||
        has_moved(&store->unchanged.index, index) || is_moving(store, index))
        return false;
    later = unchanged_index(store); /* it may have ended while we looked */
    return !has_moved(&store->unchanged.index, &later);
}

/* ---- A second owner ---- */

#define SHARED_FIRST 1073741826ll /* of the database: locked by each program that uses it */
#define IN_USE_BYTE  128ll        /* of the -shm: locked by each program that uses the same -wal */
#define HOLDERS      64

struct holders {
    long pids[HOLDERS];
    int count;
};

static void add_holder(struct holders *holders, long pid)
{
    if (holders->count < HOLDERS)
        holders->pids[holders->count++] = pid;
}

static bool holds(const struct holders *holders, long pid)
{
    for (int i = 0; i < holders->count; i++)
        if (holders->pids[i] == pid)
            return true;
    return false;
}

struct kernel_lock { /* a line of /proc/locks */
    char kind[16], access[16];
    long pid;
    dev_t device;
    unsigned long long inode;
    long long first;
};

static bool read_lock(FILE *file, struct kernel_lock *out)
{
    char line[256];
    unsigned major_number, minor_number;

    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%*d: %15s %*s %15s %ld %x:%x:%llu %lld", out->kind, out->access,
                   &out->pid, &major_number, &minor_number, &out->inode, &out->first) == 7) {
            out->device = makedev(major_number, minor_number);
            return true;
        }
    return false;
}

static bool is_lock_of(const struct kernel_lock *lock, const struct watched *file, long long first)
{
    return lock->inode == file->inode && lock->device == file->device && lock->first == first &&
           strcmp(lock->kind, "POSIX") == 0;
}

/* An owner holds a lock by flock() for life. One that uses our database, but not our -shm, uses
 * another -wal. */
static bool has_second_owner(const struct sqlite_store *store)
{
    struct holders users = { .count = 0 }, ours = { .count = 0 }, owners = { .count = 0 };
    FILE *file = fopen("/proc/locks", "re");
    struct kernel_lock lock;
    bool is_found = false;

    if (!file)
        return false;
    while (read_lock(file, &lock)) {
        if (is_lock_of(&lock, &store->watched[0], SHARED_FIRST))
            add_holder(&users, lock.pid);
        else if (is_lock_of(&lock, &store->watched[2], IN_USE_BYTE))
            add_holder(&ours, lock.pid);
        else if (strcmp(lock.kind, "FLOCK") == 0 && strcmp(lock.access, "WRITE") == 0)
            add_holder(&owners, lock.pid);
    }
    fclose(file);
    for (int i = 0; !is_found && i < users.count; i++)
        is_found = !holds(&ours, users.pids[i]) && holds(&owners, users.pids[i]);
    return is_found;
}

/* ---- A second write-ahead log ---- */

/* A writer that has ended leaves its -wal beside the other name, for as long as we hold the file.
 * Only names in the same folder are found. */
static bool has_wal(const char *folder, int size, const char *name)
{
    char path[PATH_MAX];
    struct stat found;

    return snprintf(path, sizeof path, "%.*s/%s-wal", size, folder, name) < PATH_MAX &&
           stat(path, &found) == 0 && found.st_size > 0;
}

static bool has_second_wal(const struct sqlite_store *store)
{
    const char *slash = strrchr(store->path, '/');
    char folder[PATH_MAX];
    bool is_found = false;
    struct dirent *entry;
    DIR *names;

    snprintf(folder, sizeof folder, "%.*s/", (int)(slash - store->path), store->path);
    names = opendir(folder);
    while (names && !is_found && (entry = readdir(names)) != NULL)
        is_found = entry->d_ino == store->watched[0].inode &&
                   strcmp(entry->d_name, slash + 1) != 0 &&
                   has_wal(folder, (int)(slash - store->path), entry->d_name);
    if (names)
        closedir(names);
    return is_found;
}

/* ---- All of it ---- */

/* Other processes commit and checkpoint meanwhile. The -wal only grows until a checkpoint has
 * moved all of it: it has at least the frames that it had before. A size that was found while a
 * checkpoint moved something tells nothing; the next check looks again. */
const char *unchanged_check(struct sqlite_store *store, const struct wal_index *before,
                            const struct stat found[WATCHED_COUNT], const char **what)
{
    struct wal_index after = unchanged_index(store);
    bool is_at_rest = !has_moved(before, &after);

    *what = "-wal";
    if (before->page_size == 0 || !store->watched[0].inode || !store->watched[1].inode)
        return NULL;
    if (is_at_rest && is_wal_short(before, &found[1]))
        return "was truncated";
    *what = "database";
    if (is_at_rest && is_database_short(store, before, &found[0]))
        return "was truncated";
    if (is_database_changed(store, before, &found[0]))
        return "was changed by another program, not through the store's -wal file,";
    if (found[0].st_nlink > 1 && store->own && has_second_owner(store))
        return "was also owned by a second process under another name";
    if (found[0].st_nlink > 1 && has_second_wal(store))
        return "was changed by another program under another name";
    if (has_moved(&store->unchanged.index, &after) || found[0].st_size != store->unchanged.size)
        unchanged_note(store);
    return NULL;
}
