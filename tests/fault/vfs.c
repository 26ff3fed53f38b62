/* vfs.c - the disk as SQLite sees it: every call is counted, and may be the one that fails. */
#include "fault/vfs.h"
#include "fault/vfs_int.h"
#include "lib/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct disk_plan plan;
static uint64_t count;
static bool has_failed;
static uint32_t open_count;
static uint64_t randomness = 1;
static void (*sync_hook)(void *context);
static void *sync_context;

/* ---- Which call fails ---- */

void disk_arm(struct disk_plan new_plan)
{
    plan = new_plan;
    count = 0;
    has_failed = false;
}

void disk_disarm(void)
{
    plan.at = 0;
}

bool disk_has_failed(void)
{
    return has_failed;
}

bool disk_is_off(void)
{
    return plan.at > 0 && plan.fault == FAULT_POWER && has_failed;
}

void disk_on_sync(void (*fn)(void *context), void *context)
{
    sync_hook = fn;
    sync_context = context;
}

uint64_t disk_count(void)
{
    return count;
}

bool disk_is_closed(void)
{
    return open_count == 0;
}

static enum disk_verdict verdict_of(enum disk_fault fault, enum disk_op op)
{
    switch (fault) {
    case FAULT_EIO:
    case FAULT_FULL:
        return VERDICT_FAIL;
    case FAULT_SHORT:
        return op == DISK_WRITE ? VERDICT_HALF : VERDICT_FAIL;
    case FAULT_AFTER:
        return VERDICT_DO_AND_FAIL;
    case FAULT_POWER:
        return VERDICT_CUT;
    }
    abort();
}

enum disk_verdict disk_ask(enum disk_op op)
{
    if (disk_is_off())
        return VERDICT_FAIL;
    if (plan.at == 0 || !(plan.ops & op))
        return VERDICT_GO;
    count++;
    if (count != plan.at && !(plan.for_ever && count > plan.at))
        return VERDICT_GO;
    has_failed = true;
    return verdict_of(plan.fault, op);
}

int disk_error(enum disk_op op)
{
    bool is_full = plan.fault == FAULT_FULL || plan.fault == FAULT_SHORT;

    switch (op) {
    case DISK_READ:
        return SQLITE_IOERR_READ;
    case DISK_WRITE:
        return is_full ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    case DISK_SYNC:
        return SQLITE_IOERR_FSYNC;
    case DISK_TRUNCATE:
        return SQLITE_IOERR_TRUNCATE;
    case DISK_OPEN:
        return SQLITE_CANTOPEN;
    case DISK_DELETE:
        return SQLITE_IOERR_DELETE;
    case DISK_ACCESS:
        return SQLITE_IOERR_ACCESS;
    case DISK_SIZE:
        return SQLITE_IOERR_FSTAT;
    case DISK_LOCK:
    case DISK_SHARE:
    case DISK_CHANGES:
    case DISK_ALL:
        break;
    }
    return SQLITE_IOERR;
}

/* ---- Files ---- */

static struct content *content_of(sqlite3_file *file)
{
    return ((struct disk_file *)(void *)file)->content;
}

static int file_close(sqlite3_file *file)
{
    lock_drop(file, SQLITE_LOCK_NONE);
    share_unmap(file, 0);
    open_count--;
    return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *out, int size, sqlite3_int64 at)
{
    const struct bytes *now = &content_of(file)->now;
    size_t begin = (size_t)at, wanted = (size_t)size, there = 0;

    if (disk_ask(DISK_READ) != VERDICT_GO)
        return disk_error(DISK_READ);
    if (begin < now->size)
        there = now->size - begin < wanted ? now->size - begin : wanted;
    if (there)
        memcpy(out, now->data + begin, there);
    memset((char *)out + there, 0, wanted - there);
    return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    struct content *content = content_of(file);

    switch (disk_ask(DISK_WRITE)) {
    case VERDICT_GO:
        content_write(content, (size_t)at, data, (size_t)size);
        return SQLITE_OK;
    case VERDICT_HALF:
        content_write(content, (size_t)at, data, (size_t)size / 2);
        break;
    case VERDICT_DO_AND_FAIL:
        content_write(content, (size_t)at, data, (size_t)size);
        break;
    case VERDICT_CUT: /* on its way to the disk */
        content_note(content, (size_t)at, data, (size_t)size);
        break;
    case VERDICT_FAIL:
        break;
    }
    return disk_error(DISK_WRITE);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    enum disk_verdict verdict = disk_ask(DISK_TRUNCATE);

    if (verdict == VERDICT_GO || verdict == VERDICT_DO_AND_FAIL)
        content_truncate(content_of(file), (size_t)size);
    return verdict == VERDICT_GO ? SQLITE_OK : disk_error(DISK_TRUNCATE);
}

static int file_sync(sqlite3_file *file, int flags)
{
    enum disk_verdict verdict = disk_ask(DISK_SYNC);

    (void)flags;
    if (sync_hook)
        sync_hook(sync_context);
    if (verdict == VERDICT_GO || verdict == VERDICT_DO_AND_FAIL)
        content_sync(content_of(file));
    return verdict == VERDICT_GO ? SQLITE_OK : disk_error(DISK_SYNC);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *out)
{
    if (disk_ask(DISK_SIZE) != VERDICT_GO)
        return disk_error(DISK_SIZE);
    *out = (sqlite3_int64)content_of(file)->now.size;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int operation, void *argument)
{
    (void)file;
    (void)operation;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int file_sector_size(sqlite3_file *file)
{
    (void)file;
    return 4096;
}

/* As SQLite assumes of every real disk: a write touches nothing beside itself. */
static int file_characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = lock_take,
    .xUnlock = lock_drop,
    .xCheckReservedLock = lock_check,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = share_map,
    .xShmLock = share_lock,
    .xShmBarrier = share_barrier,
    .xShmUnmap = share_unmap,
};

/* ---- The folder ---- */

static struct content *find_or_make(const char *path, int flags)
{
    struct name *name;

    if (!path)
        return content_new(); /* a temporary file: never seen again */
    name = name_find(path);
    if (name && name->now)
        return name->now;
    if (!(flags & SQLITE_OPEN_CREATE))
        return NULL;
    name = name_add(path);
    name_point(name, content_new());
    return name->now;
}

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out)
{
    struct disk_file *file = (struct disk_file *)(void *)base;

    (void)vfs;
    memset(file, 0, sizeof *file);
    if (disk_ask(DISK_OPEN) != VERDICT_GO)
        return disk_error(DISK_OPEN);
    file->content = find_or_make(path, flags);
    if (!file->content)
        return SQLITE_CANTOPEN;
    file->base.pMethods = &file_methods;
    open_count++;
    if (out)
        *out = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    enum disk_verdict verdict = disk_ask(DISK_DELETE);
    struct name *name = name_find(path);

    (void)vfs;
    if (verdict != VERDICT_GO && verdict != VERDICT_DO_AND_FAIL)
        return disk_error(DISK_DELETE);
    if (!name || !name->now)
        return SQLITE_IOERR_DELETE_NOENT;
    name_point(name, NULL);
    if (sync)
        name_sync(name);
    return verdict == VERDICT_GO ? SQLITE_OK : disk_error(DISK_DELETE);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    const struct name *name = name_find(path);

    (void)vfs;
    (void)flags;
    if (disk_ask(DISK_ACCESS) != VERDICT_GO)
        return disk_error(DISK_ACCESS);
    *out = name && name->now;
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int size, char *out)
{
    (void)vfs;
    return snprintf(out, (size_t)size, "%s", path) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_randomness(sqlite3_vfs *vfs, int size, char *out)
{
    (void)vfs;
    for (int i = 0; i < size; i++) {
        randomness = randomness * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = (char)(randomness >> 56);
    }
    return size;
}

static int vfs_sleep(sqlite3_vfs *vfs, int for_us)
{
    (void)vfs;
    return for_us; /* nobody else runs: waiting changes nothing */
}

void disk_install(void)
{
    static sqlite3_vfs vfs;

    EXPECT(sqlite3_initialize() == SQLITE_OK);
    vfs = *sqlite3_vfs_find(NULL);
    vfs.zName = "pawl-disk";
    vfs.szOsFile = (int)sizeof(struct disk_file);
    vfs.mxPathname = 511;
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    vfs.xAccess = vfs_access;
    vfs.xFullPathname = vfs_full_path;
    vfs.xRandomness = vfs_randomness;
    vfs.xSleep = vfs_sleep;
    EXPECT(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK);
}

void disk_load(const char *path)
{
    char piece[4096], head[4096];
    struct name *name;
    FILE *file = fopen(path, "rb");
    size_t size;

    EXPECT(file != NULL);
    EXPECT(disk_is_closed());
    disk_forget();
    snprintf(head, sizeof head, "%s-head", path); /* on the real disk: it would remember */
    unlink(head);
    disk_disarm();
    randomness = 1;
    name = name_add(path);
    name_point(name, content_new());
    while ((size = fread(piece, 1, sizeof piece, file)) > 0)
        bytes_write(&name->now->now, name->now->now.size, piece, size);
    fclose(file);
    bytes_copy(&name->now->safe, &name->now->now);
    content_sync(name->now);
}

void disk_save(const char *path)
{
    const struct name *name = name_find(path);
    FILE *file = fopen(path, "wb");

    EXPECT(file != NULL && name != NULL && disk_is_closed());
    EXPECT(fwrite(name->now->now.data, name->now->now.size, 1, file) == 1);
    EXPECT(fclose(file) == 0);
}
