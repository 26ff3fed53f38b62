/* vfs_lock.c - SQLite's file locks and its shared memory, for connections of one process. */
#include "fault/vfs_int.h"
#include "lib/test.h"
#include <stdlib.h>

static struct disk_file *file_of(sqlite3_file *file)
{
    return (struct disk_file *)(void *)file;
}

static bool is_others(const struct disk_file *holder, const struct disk_file *file)
{
    return holder && holder != file;
}

static int take_shared(struct disk_file *file)
{
    struct content *content = file->content;

    if (is_others(content->exclusive, file))
        return SQLITE_BUSY;
    content->shared_count++;
    file->lock = SQLITE_LOCK_SHARED;
    return SQLITE_OK;
}

static int take_exclusive(struct disk_file *file)
{
    struct content *content = file->content;

    if (is_others(content->reserved, file) || is_others(content->exclusive, file))
        return SQLITE_BUSY;
    content->exclusive = file; /* pending: no new readers */
    content->reserved = file;
    if (content->shared_count > 1) {
        file->lock = SQLITE_LOCK_PENDING;
        return SQLITE_BUSY;
    }
    file->lock = SQLITE_LOCK_EXCLUSIVE;
    return SQLITE_OK;
}

int lock_take(sqlite3_file *base, int level)
{
    struct disk_file *file = file_of(base);

    if (file->lock >= level)
        return SQLITE_OK;
    if (disk_ask(DISK_LOCK) != VERDICT_GO)
        return SQLITE_IOERR_LOCK;
    if (level == SQLITE_LOCK_SHARED)
        return take_shared(file);
    if (level == SQLITE_LOCK_EXCLUSIVE)
        return take_exclusive(file);
    if (is_others(file->content->reserved, file))
        return SQLITE_BUSY;
    file->content->reserved = file;
    file->lock = SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
}

int lock_drop(sqlite3_file *base, int level)
{
    struct disk_file *file = file_of(base);
    struct content *content = file->content;

    if (file->lock <= level)
        return SQLITE_OK;
    if (content->exclusive == file)
        content->exclusive = NULL;
    if (content->reserved == file)
        content->reserved = NULL;
    if (level == SQLITE_LOCK_NONE)
        content->shared_count--;
    file->lock = level;
    return SQLITE_OK;
}

int lock_check(sqlite3_file *base, int *out)
{
    *out = file_of(base)->content->reserved != NULL;
    return SQLITE_OK;
}

/* ---- The WAL's index ---- */

int share_map(sqlite3_file *base, int index, int size, int extend, void volatile **out)
{
    struct disk_file *file = file_of(base);
    struct content *content = file->content;

    *out = NULL;
    if (disk_ask(DISK_SHARE) != VERDICT_GO)
        return SQLITE_IOERR_SHMMAP;
    EXPECT(index < SHARE_PIECES);
    content->share_users += !file->uses_share;
    file->uses_share = true;
    if (!content->pieces[index] && extend) {
        content->pieces[index] = calloc(1, (size_t)size);
        EXPECT(content->pieces[index] != NULL);
    }
    *out = content->pieces[index];
    return SQLITE_OK;
}

static int slots_release(struct disk_file *file, uint32_t mask)
{
    struct content *content = file->content;

    for (int i = 0; i < SQLITE_SHM_NLOCK; i++) {
        uint32_t bit = 1u << i;

        if (!(mask & bit))
            continue;
        if (file->slots_shared & bit)
            content->slot_shared[i]--;
        if (file->slots_exclusive & bit)
            content->slot_exclusive[i] = NULL;
        file->slots_shared &= ~bit;
        file->slots_exclusive &= ~bit;
    }
    return SQLITE_OK;
}

static bool slots_are_free(const struct disk_file *file, uint32_t mask, bool exclusive)
{
    const struct content *content = file->content;

    for (int i = 0; i < SQLITE_SHM_NLOCK; i++) {
        uint32_t ours = (file->slots_shared >> i) & 1;

        if (!(mask & 1u << i))
            continue;
        if (is_others(content->slot_exclusive[i], file))
            return false;
        if (exclusive && content->slot_shared[i] > ours)
            return false;
    }
    return true;
}

int share_lock(sqlite3_file *base, int offset, int count, int flags)
{
    struct disk_file *file = file_of(base);
    uint32_t mask = ((1u << count) - 1) << offset;
    bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;

    if (flags & SQLITE_SHM_UNLOCK)
        return slots_release(file, mask);
    if (!slots_are_free(file, mask, exclusive))
        return SQLITE_BUSY;
    for (int i = 0; i < SQLITE_SHM_NLOCK; i++) {
        uint32_t bit = 1u << i;

        if (!(mask & bit))
            continue;
        if (exclusive) {
            file->content->slot_exclusive[i] = file;
            file->slots_exclusive |= bit;
        } else if (!(file->slots_shared & bit)) {
            file->content->slot_shared[i]++;
            file->slots_shared |= bit;
        }
    }
    return SQLITE_OK;
}

void share_barrier(sqlite3_file *base)
{
    (void)base;
    __sync_synchronize();
}

/* Whoever comes after the last one finds it empty, as SQLite sees to on a real disk. */
int share_unmap(sqlite3_file *base, int delete)
{
    struct disk_file *file = file_of(base);
    struct content *content = file->content;

    (void)delete;
    slots_release(file, ~0u);
    if (!file->uses_share)
        return SQLITE_OK;
    file->uses_share = false;
    if (--content->share_users == 0)
        for (int i = 0; i < SHARE_PIECES; i++) {
            free(content->pieces[i]);
            content->pieces[i] = NULL;
        }
    return SQLITE_OK;
}
